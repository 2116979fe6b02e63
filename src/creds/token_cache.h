/* When a token is used, waited for, fetched and given up: the rules of A97 (and A83), without threads or files. Guarded
 * by its owner. */
#ifndef TC_CREDS_TOKEN_CACHE_H
#define TC_CREDS_TOKEN_CACHE_H

#include "base/clock.h"
#include "creds/call.h"
#include "io/backoff.h"

/* A97: a token counts as expired so long before it does: clocks differ, and the server needs time too. */
#define TC_TOKEN_MARGIN_NS (30 * TC_NS_PER_S)
/* A97: one that expires within this time is fetched anew while it still serves. */
#define TC_TOKEN_REFRESH_NS (60 * TC_NS_PER_S)

/* What a fetch led to. */
struct tc_token {
    struct tc_auth_metadata *metadata; /* NULL: none, see error */
    int64_t expires_ns;                /* realtime */
    struct tc_status error;            /* UNAVAILABLE or UNAUTHENTICATED */
};

struct tc_token_cache {
    const struct tc_clock *clock;
    struct tc_auth_metadata *metadata; /* NULL: none yet */
    /* By both clocks: the monotonic one stands still while the machine sleeps, the other can be set back. */
    int64_t expires_real_ns;
    uint64_t expires_ns;
    bool fetching;
    struct tc_status error; /* of the last attempt, while it is the reason to wait */
    struct tc_backoff backoff;
    uint64_t retry_ns; /* no attempt before it */
    struct tc_rng rng;
};

enum tc_token_answer { TC_TOKEN_USE, TC_TOKEN_WAIT, TC_TOKEN_FAIL };

/* One that has expired already becomes the failure that it leads to at the server, UNAVAILABLE since whoever makes them
 * is late with the next: A97 would send it to those that wait. `from` names where it is from. */
void tc_token_refuse_expired(struct tc_token *token, const char *from, const struct tc_clock *clock);

void tc_token_cache_init(struct tc_token_cache *c, const struct tc_clock *clock);
void tc_token_cache_fini(struct tc_token_cache *c);
/* An RPC asks. USE: c->metadata; FAIL: c->error; WAIT: for the fetch that runs. *fetch: the caller has to start one. */
enum tc_token_answer tc_token_cache_ask(struct tc_token_cache *c, bool *fetch);
/* A fetch ended. Takes over what `token` holds. */
void tc_token_cache_store(struct tc_token_cache *c, struct tc_token *token);

#endif
