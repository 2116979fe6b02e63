/* Clocks as a table of functions, so that tests can have clocks of their own. Any thread. */
#ifndef TC_BASE_CLOCK_H
#define TC_BASE_CLOCK_H

#include "base/common.h"

struct tc_clock {
    /* Returns nanoseconds since an unspecified start; never goes back. */
    uint64_t (*monotonic_ns)(void *arg);
    /* Returns nanoseconds since 1970. */
    int64_t (*realtime_ns)(void *arg);
    void *arg; /* for the functions */
};

/* The machine's clocks (CLOCK_MONOTONIC, CLOCK_REALTIME). */
extern const struct tc_clock tc_system_clock;
/* Returns the CPU time of the calling thread, in nanoseconds. */
uint64_t tc_thread_cpu_ns(void);

#define TC_NS_PER_MS UINT64_C(1000000)
#define TC_NS_PER_S UINT64_C(1000000000)

#endif
