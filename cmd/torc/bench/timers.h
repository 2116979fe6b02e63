/* Times at which something is due: a binary heap. It has no clock, so that times may be as fine as the caller's: those
 * of the loop are milliseconds. */
#ifndef TORC_BENCH_TIMERS_H
#define TORC_BENCH_TIMERS_H

#include <stdint.h>

#include "base/vec.h"

/* Zero-initialised: not set. */
struct bench_timer {
    uint64_t due_ns;
    size_t place; /* in the heap, from 1; 0: not set */
};

struct bench_timers {
    TC_VEC(struct bench_timer *) heap;
};

/* Sets a timer, again if it is set; UINT64_MAX: never. */
void bench_timer_set(struct bench_timers *t, struct bench_timer *timer, uint64_t due_ns);
/* Returns the timer that is due first, or NULL. */
struct bench_timer *bench_timers_first(const struct bench_timers *t);
void bench_timers_fini(struct bench_timers *t);

#endif
