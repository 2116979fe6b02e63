#include "base/clock.h"

#include <time.h>
#include <torc/time.h>

static uint64_t monotonic_ns(void *arg TC_UNUSED)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * TC_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int64_t realtime_ns(void *arg TC_UNUSED)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * (int64_t)TC_NS_PER_S + (int64_t)ts.tv_nsec;
}

uint64_t tc_thread_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * TC_NS_PER_S + (uint64_t)ts.tv_nsec;
}

const struct tc_clock tc_system_clock = {monotonic_ns, realtime_ns, NULL};

int64_t torc_time_ms(void)
{
    return (int64_t)(monotonic_ns(NULL) / TC_NS_PER_MS);
}

int64_t torc_time_left(int64_t end_ms)
{
    int64_t now_ms = torc_time_ms();
    return end_ms > now_ms ? end_ms - now_ms : -1;
}
