#include "io/backoff.h"

/* connection-backoff.md */
const struct tc_backoff_opts tc_backoff_default = {
    .initial_ms = 1000,
    .max_ms = 120000,
    .multiplier = 1.6,
    .jitter = 0.2,
};

void tc_backoff_init(struct tc_backoff *b, const struct tc_backoff_opts *opts)
{
    b->opts = opts ? *opts : tc_backoff_default;
    b->current_ms = 0;
}

uint64_t tc_backoff_next_ms(struct tc_backoff *b, struct tc_rng *rng)
{
    double delay_ms = b->current_ms > 0 ? b->current_ms * b->opts.multiplier : (double)b->opts.initial_ms;
    b->current_ms = delay_ms;
    delay_ms = TC_MIN(delay_ms, (double)b->opts.max_ms);
    double factor = 1 + b->opts.jitter * (2 * tc_rng_double(rng) - 1);
    double jittered_ms = delay_ms * factor;
    return jittered_ms > 0 ? (uint64_t)(jittered_ms + 0.5) : 0;
}

void tc_backoff_reset(struct tc_backoff *b)
{
    b->current_ms = 0;
}
