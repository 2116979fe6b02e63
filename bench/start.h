/* The clients of bench/start: `PROGRAM TARGET` sends one empty unary RPC and prints the time at which the answer came,
 * in seconds of the monotonic clock. Its exit status is 0 if the RPC's status is OK. */
#ifndef TORC_BENCH_START_H
#define TORC_BENCH_START_H

#include <stdio.h>
#include <time.h>

#define START_METHOD "/bench.Echo/Echo"

/* Prints the time now. Called as soon as the RPC has ended, before its status is checked. */
static inline void start_answered(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    printf("%lld.%09ld\n", (long long)t.tv_sec, t.tv_nsec);
    fflush(stdout);
}

#endif
