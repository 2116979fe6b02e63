/* Call credentials out of a source of tokens: cached, fetched early, one fetch at a time, each on a thread of its own.
 *
 * A fetch has a thread since it blocks, and since the credentials serve several runtimes, each of which may end while
 * others wait; fetches are too rare for a pool. Giving up the last reference to the credentials asks a fetch that runs
 * to end (abort), and waits for its thread. */
#ifndef TC_CREDS_CALL_TOKEN_H
#define TC_CREDS_CALL_TOKEN_H

#include <torc/credentials.h>

#include "creds/call/token_cache.h"

struct tc_token_source;

struct tc_token_source_ops {
    const char *type; /* of the credentials: "jwt_token_file" */
    /* Stores the token, or a failure (tc_token_fail), in *out, which is zero. May block. Called on the fetch's thread,
     * one call at a time. */
    void (*fetch)(struct tc_token_source *s, struct tc_token *out);
    /* Called before free, at most once, if a fetch may still run, and from any thread but the fetch's: a fetch that
     * runs, or is about to begin, must end soon. NULL: a fetch ends by itself. */
    void (*abort)(struct tc_token_source *s);
    /* Called after the last fetch has ended. Any thread. */
    void (*free)(struct tc_token_source *s);
};

/* Implementations embed it first. */
struct tc_token_source {
    const struct tc_token_source_ops *ops;
    const char *from; /* the file or the URL; owned by the source */
};

/* Makes credentials with one reference. Takes over the source. The clock must outlive the credentials. */
torc_call_credentials *tc_token_creds_new(struct tc_token_source *source, const struct tc_clock *clock);

/* For sources: makes the outcome a failure. Takes over the status. */
static inline void tc_token_fail(struct tc_token *out, struct tc_status status)
{
    tc_status_set(&out->error, status);
}

#endif
