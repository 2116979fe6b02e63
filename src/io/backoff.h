/* Connection backoff (gRPC's connection-backoff.md): initial 1 s, x1.6, at most 120 s, jitter 20 %. One thread at a
 * time. */
#ifndef TC_IO_BACKOFF_H
#define TC_IO_BACKOFF_H

#include "base/random.h"

/* The numbers are those of tc_backoff_default. */
struct tc_backoff_opts {
    uint64_t initial_ms; /* 1000 */
    uint64_t max_ms;     /* before jitter; 120000 */
    double multiplier;   /* 1.6 */
    double jitter;       /* the share of a delay by which it becomes longer or shorter, at most; 0.2 */
};

extern const struct tc_backoff_opts tc_backoff_default;

struct tc_backoff {
    struct tc_backoff_opts opts;
    double current_ms; /* the last delay before cap and jitter; 0: none since init or reset */
};

/* `opts` is copied; NULL: tc_backoff_default. */
void tc_backoff_init(struct tc_backoff *b, const struct tc_backoff_opts *opts);
/* Returns the next delay in ms, rounded to the nearest: from [d(1-jitter), d(1+jitter)] for d = initial x multiplier^n,
 * capped at max before jitter. n: how many delays were returned since init or reset. */
uint64_t tc_backoff_next_ms(struct tc_backoff *b, struct tc_rng *rng);
/* Makes the next delay the initial one. */
void tc_backoff_reset(struct tc_backoff *b);

#endif
