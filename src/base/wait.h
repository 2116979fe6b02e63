/* Waits that end at a time of the monotonic clock. Libraries other than glibc may have no such waits (musl): there the
 * end is a time of the realtime clock, which may be set meanwhile. Any thread.
 *
 *   tc_wait_until        converts a time of the monotonic clock to the end of a wait, for the two others
 *   tc_wait_semaphore    returns 0, or -1 with errno set (ETIMEDOUT, EINTR)
 *   tc_wait_write_lock   returns 0 with the lock taken, or an errno (ETIMEDOUT) */
#ifndef TC_BASE_WAIT_H
#define TC_BASE_WAIT_H

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "base/clock.h"

#ifdef __GLIBC__
static inline struct timespec tc_wait_until(uint64_t until_ns)
{
    return (struct timespec){.tv_sec = (time_t)(until_ns / TC_NS_PER_S), .tv_nsec = (long)(until_ns % TC_NS_PER_S)};
}

static inline int tc_wait_semaphore(sem_t *semaphore, const struct timespec *until)
{
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, until);
}

static inline int tc_wait_write_lock(pthread_rwlock_t *lock, const struct timespec *until)
{
    return pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, until);
}
#else
static inline struct timespec tc_wait_until(uint64_t until_ns)
{
    uint64_t now_ns = tc_system_clock.monotonic_ns(NULL), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    uint64_t at_ns = (uint64_t)tc_system_clock.realtime_ns(NULL) + left_ns;
    return (struct timespec){.tv_sec = (time_t)(at_ns / TC_NS_PER_S), .tv_nsec = (long)(at_ns % TC_NS_PER_S)};
}

static inline int tc_wait_semaphore(sem_t *semaphore, const struct timespec *until)
{
    return sem_timedwait(semaphore, until);
}

static inline int tc_wait_write_lock(pthread_rwlock_t *lock, const struct timespec *until)
{
    return pthread_rwlock_timedwrlock(lock, until);
}
#endif

#endif
