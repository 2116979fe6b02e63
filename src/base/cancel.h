/* Cancellation of threads (pthread_cancel). It is disabled on Torc's own threads (base/thread.h, api/server/pool.c),
 * while a thread holds a struct tc_lock or is in a foreign section (base/fork.h), and in blocks with TC_NO_CANCEL. */
#ifndef TC_BASE_CANCEL_H
#define TC_BASE_CANCEL_H

#include <pthread.h>

/* Disables the cancellation of the calling thread. Returns the previous state, for tc_cancel_restore. */
static inline int tc_cancel_disable(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void tc_cancel_restore(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

/* Disables the cancellation of the calling thread until the end of the block. For code that holds a lock, or lends its
 * stack to the loop, across a cancellation point. */
#define TC_NO_CANCEL                                                                                                   \
    __attribute__((cleanup(tc_cancel_restore), unused)) int tc_cancel_state_before = tc_cancel_disable()

#endif
