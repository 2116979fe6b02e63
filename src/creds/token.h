/* Call credentials out of a source of tokens: cached, fetched early, one fetch at a time, each on a thread of its own.
 *
 * A thread and not the loop, since the credentials serve several runtimes, each of which may end while the others wait;
 * since reading files and signing block; and since a fetch an hour needs no pool. The last reference to the credentials
 * ends a fetch that runs and waits for its thread. */
#ifndef TC_CREDS_TOKEN_H
#define TC_CREDS_TOKEN_H

#include "creds/token_cache.h"

struct tc_token_source;

struct tc_token_source_ops {
    const char *type; /* of the credentials */
    /* May block; on the fetching thread, one at a time. */
    void (*fetch)(struct tc_token_source *s, struct tc_token *out);
    /* From another thread: the fetch that runs, and any later one, has to end soon. NULL: it does so by itself. */
    void (*abort)(struct tc_token_source *s);
    void (*free)(struct tc_token_source *s);
};

/* Implementations embed it first. */
struct tc_token_source {
    const struct tc_token_source_ops *ops;
    const char *from; /* names the file or the URL; the source's own */
};

/* Takes over the source. The clock must outlive the credentials. */
torc_call_credentials *tc_token_creds_new(struct tc_token_source *source, const struct tc_clock *clock);

/* For sources: the outcome is a failure. Takes over the status. */
static inline void tc_token_fail(struct tc_token *out, struct tc_status status)
{
    tc_status_set(&out->error, status);
}

#endif
