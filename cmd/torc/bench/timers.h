/* Timers in a binary heap. The heap reads no clock: times are the caller's, in nanoseconds, while the loop's own timers
 * have milliseconds. */
#ifndef TORC_BENCH_TIMERS_H
#define TORC_BENCH_TIMERS_H

#include <stdint.h>

#include "base/vec.h"

/* Zero-initialised: not set. */
struct bench_timer {
    uint64_t due_ns;
    size_t place; /* in the heap, from 1; 0: not set */
};

/* Zero-initialised: empty. Borrows the timers: a timer must not be set when its memory is freed. */
struct bench_timers {
    TC_VEC(struct bench_timer *) heap;
};

/* Sets a timer, or moves one that is set. UINT64_MAX takes it out of the heap. */
void bench_timer_set(struct bench_timers *t, struct bench_timer *timer, uint64_t due_ns);
/* Returns the timer that is due first, or NULL if none is set. */
struct bench_timer *bench_timers_first(const struct bench_timers *t);
void bench_timers_fini(struct bench_timers *t);

#endif
