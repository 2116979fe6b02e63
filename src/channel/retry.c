/* Decides whether another attempt follows (A6). The throttle is a token bucket of the channel: a failure with a
 * retryable status, or with a pushback that forbids retries, takes a token; a success gives back `ratio` of a token.
 * With half of `max` or fewer nothing is retried. A delay that the server gives (grpc-retry-pushback-ms) resets the
 * backoff. */
#include "channel/retry.h"

#include "base/parse.h"

void tc_retry_throttle_update(struct tc_retry_throttle *t, const struct tc_retry_throttle *settings)
{
    if (t->max == settings->max && t->ratio == settings->ratio)
        return;
    *t = *settings;
    t->tokens = t->max;
}

bool tc_retry_throttle_open(const struct tc_retry_throttle *t)
{
    return t->max == 0 || t->tokens > t->max / 2;
}

void tc_retry_throttle_failure(struct tc_retry_throttle *t)
{
    t->tokens = t->tokens > 1000 ? t->tokens - 1000 : 0;
}

enum tc_pushback tc_retry_pushback(const struct tc_headers *trailers, uint64_t *delay_ms)
{
    const struct tc_header *h = trailers ? tc_headers_find(trailers, tc_slice_str("grpc-retry-pushback-ms")) : NULL;
    if (!h)
        return TC_PUSHBACK_NONE;
    return tc_parse_u64(h->value, INT32_MAX, delay_ms) == 0 ? TC_PUSHBACK_DELAY : TC_PUSHBACK_STOP;
}

bool tc_retry_next(struct tc_retry *r, struct tc_retry_throttle *throttle, const struct tc_retry_outcome *o,
                   struct tc_rng *rng, uint64_t *delay_ms)
{
    const struct tc_retry_policy *p = &r->policy;
    if (p->max_attempts == 0)
        return false;
    *delay_ms = 0;
    enum tc_pushback pushback = tc_retry_pushback(o->trailers, delay_ms);
    bool retryable = (p->codes >> o->code & 1) != 0;
    if (retryable || pushback == TC_PUSHBACK_STOP)
        tc_retry_throttle_failure(throttle);
    if (!retryable || !tc_retry_throttle_open(throttle) || pushback == TC_PUSHBACK_STOP || !o->resendable ||
        r->tries + 1 >= p->max_attempts)
        return false;
    if (r->tries == 0 || pushback == TC_PUSHBACK_DELAY)
        tc_backoff_init(&r->backoff, &p->backoff);
    /* A6: maxBackoff does not bound the delay of the first retry. */
    r->backoff.opts.max_ms = r->tries == 0 ? UINT64_MAX : p->backoff.max_ms;
    if (pushback == TC_PUSHBACK_NONE)
        *delay_ms = tc_backoff_next_ms(&r->backoff, rng);
    r->tries++;
    return true;
}
