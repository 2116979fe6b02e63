/* The cache of one token. What an RPC does depends on how long the token still serves (token_left_ns), which is
 * TC_TOKEN_MARGIN_NS less than it is valid:
 *
 *   TC_TOKEN_REFRESH_NS or more   it is used
 *   less                          it is used; a fetch of the next one starts, unless one runs already or the backoff of
 *                                 the last failure lasts
 *   0                             RPCs wait for a fetch, or fail while the backoff of the last failure lasts */
#include "creds/call/token_cache.h"

void tc_token_refuse_expired(struct tc_token *token, const char *from, const struct tc_clock *clock)
{
    int64_t now = clock->realtime_ns(clock->arg);
    if (!token->metadata || token->expires_ns > now)
        return;
    tc_auth_metadata_unref(token->metadata);
    token->metadata = NULL;
    tc_status_set(&token->error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CREDENTIALS,
                                                "the token from %s cannot be used: it expired %.3f s ago", from,
                                                (double)(now - token->expires_ns) / 1e9));
}

void tc_token_cache_init(struct tc_token_cache *c, const struct tc_clock *clock)
{
    *c = (struct tc_token_cache){.clock = clock};
    tc_backoff_init(&c->backoff, &tc_backoff_default);
    tc_rng_init_system(&c->rng);
}

void tc_token_cache_fini(struct tc_token_cache *c)
{
    tc_auth_metadata_unref(c->metadata);
    tc_status_fini(&c->error);
}

/* Returns how long the token still serves; 0: it has expired, or there is none. */
static uint64_t token_left_ns(const struct tc_token_cache *c)
{
    uint64_t now = c->clock->monotonic_ns(c->clock->arg);
    int64_t real = c->clock->realtime_ns(c->clock->arg);
    if (!c->metadata || now >= c->expires_ns || real >= c->expires_real_ns)
        return 0;
    return TC_MIN(c->expires_ns - now, (uint64_t)(c->expires_real_ns - real));
}

enum tc_token_answer tc_token_cache_ask(struct tc_token_cache *c, bool *fetch)
{
    uint64_t left = token_left_ns(c);
    *fetch = !c->fetching && left < TC_TOKEN_REFRESH_NS && c->clock->monotonic_ns(c->clock->arg) >= c->retry_ns;
    if (*fetch)
        c->fetching = true;
    if (left > 0)
        return TC_TOKEN_USE;
    return c->fetching ? TC_TOKEN_WAIT : TC_TOKEN_FAIL;
}

void tc_token_cache_store(struct tc_token_cache *c, struct tc_token *token)
{
    uint64_t now = c->clock->monotonic_ns(c->clock->arg);
    c->fetching = false;
    if (!token->metadata) {
        tc_status_set(&c->error, token->error);
        c->retry_ns = now + tc_backoff_next_ms(&c->backoff, &c->rng) * TC_NS_PER_MS;
        return;
    }
    tc_status_fini(&token->error);
    tc_status_fini(&c->error);
    tc_backoff_reset(&c->backoff);
    c->retry_ns = 0;
    tc_auth_metadata_unref(c->metadata);
    c->metadata = token->metadata;
    int64_t real = c->clock->realtime_ns(c->clock->arg);
    int64_t left = token->expires_ns - (int64_t)TC_TOKEN_MARGIN_NS - real;
    c->expires_real_ns = token->expires_ns - (int64_t)TC_TOKEN_MARGIN_NS;
    c->expires_ns = left > 0 ? now + (uint64_t)left : 0;
}
