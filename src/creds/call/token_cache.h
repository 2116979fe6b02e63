/* The rules of A97 (and A83) for a cached token: when it is used, waited for and fetched, and when RPCs fail. Starts no
 * thread and reads no file; the owner guards it by a lock. */
#ifndef TC_CREDS_CALL_TOKEN_CACHE_H
#define TC_CREDS_CALL_TOKEN_CACHE_H

#include "base/clock.h"
#include "creds/call/auth_request.h"
#include "io/backoff.h"

/* A97: a token counts as expired this long before its end, since clocks differ and the server needs time too. */
#define TC_TOKEN_MARGIN_NS (30 * TC_NS_PER_S)
/* A97: a token with less than this left to serve (it ends within 90 s) is still used while the next one is fetched. */
#define TC_TOKEN_REFRESH_NS (60 * TC_NS_PER_S)

/* The outcome of a fetch. */
struct tc_token {
    struct tc_auth_metadata *metadata; /* NULL: the fetch failed with `error` */
    int64_t expires_ns;                /* the token's end, realtime */
    struct tc_status error;            /* UNAVAILABLE or UNAUTHENTICATED */
};

struct tc_token_cache {
    const struct tc_clock *clock;
    struct tc_auth_metadata *metadata; /* NULL: none yet */
    /* When the token stops serving, TC_TOKEN_MARGIN_NS before its end. The clock that says so first counts: the
     * monotonic clock stands still while the machine sleeps, the realtime clock can be set back. */
    int64_t expires_real_ns;
    uint64_t expires_ns;    /* monotonic */
    bool fetching;          /* a fetch was asked for, and its outcome is not stored yet */
    struct tc_status error; /* of the last fetch, if it failed: the reason of TC_TOKEN_FAIL */
    struct tc_backoff backoff;
    uint64_t retry_ns; /* when the next fetch may begin after a failure, monotonic; 0: at once */
    struct tc_rng rng;
};

enum tc_token_answer { TC_TOKEN_USE, TC_TOKEN_WAIT, TC_TOKEN_FAIL };

/* Turns a token that has already expired into a failure with UNAVAILABLE: its source has not renewed it yet, and may do
 * so. Leaves a failure as it is. `from` names the source. */
void tc_token_refuse_expired(struct tc_token *token, const char *from, const struct tc_clock *clock);

/* The clock must outlive the cache. */
void tc_token_cache_init(struct tc_token_cache *c, const struct tc_clock *clock);
void tc_token_cache_fini(struct tc_token_cache *c);
/* Returns what an RPC does: USE: it uses c->metadata; FAIL: it fails with c->error; WAIT: it waits for the fetch that
 * runs. c->metadata and c->error are borrowed until the next store. If *fetch is true, the caller must start a fetch
 * and pass its outcome to tc_token_cache_store, also if the fetch cannot start. Until then no other fetch is asked for.
 */
enum tc_token_answer tc_token_cache_ask(struct tc_token_cache *c, bool *fetch);
/* Stores the outcome of a fetch; after a failure the old token stays. Takes ownership of the contents of `token`. */
void tc_token_cache_store(struct tc_token_cache *c, struct tc_token *token);

#endif
