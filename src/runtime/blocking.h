/* Threads that block until the loop has done something for them. Any thread, unless a comment says otherwise.
 *
 *   struct tc_wait w;                           The loop's side, in a callback:
 *   tc_wait_init(&w);                               tc_runtime_lock(rt);
 *   tc_runtime_lock(rt);                            done = true;
 *   while (!done && rc == 0)                        tc_wait_wake(&w);
 *       rc = tc_runtime_wait(rt, &w, until_ns);     tc_runtime_unlock(rt);
 *   tc_runtime_unlock(rt);
 *   tc_wait_fini(&w);
 *
 * In TORC_RUNTIME_CALLER mode one of the waiting threads drives the loop while no other thread does. */
#ifndef TC_RUNTIME_BLOCKING_H
#define TC_RUNTIME_BLOCKING_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/runtime.h"

/* A thread that waits; on its stack. */
struct tc_wait {
    struct tc_link link;  /* among the runtime's waiters */
    struct tc_link owner; /* on a list of the object that wakes the thread */
    pthread_cond_t cond;
    const uint64_t *ends_ns; /* for libtorc-testing: when the awaited RPC ends at the latest; NULL: not set */
    atomic_bool woken;       /* the mark; changed under the runtime's lock */
};

/* Prepare and end a wait. tc_wait_fini takes the wait off its owner's list, and must have the lock if the wait is on
 * one. */
void tc_wait_init(struct tc_wait *w);
void tc_wait_fini(struct tc_wait *w);
/* Marks the thread as woken, and wakes it. With the lock held. A caller that is not on the loop also has the loop wake,
 * by a post or tc_loop_wake: the thread may drive the loop, and sleep in its turn. */
void tc_wait_wake(struct tc_wait *w);

/* Sleeps until a signal to `w`, or until the monotonic clock is at until_ns (UINT64_MAX: no limit). May return earlier.
 * With the lock held, which is released meanwhile. */
void tc_wait_sleep(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns);

/* The runtime's lock: guards the data that blocking threads share with the loop. In a forked child both functions do
 * nothing: a thread that the child does not have may have held the lock. */
void tc_runtime_lock(torc_runtime *rt);
void tc_runtime_unlock(torc_runtime *rt);

/* Waits until woken (returns 0), or until the loop's clock is at until_ns (returns TORC_ETIMEDOUT; UINT64_MAX: no
 * limit). Clears the mark. With the lock held, which is released meanwhile. Returns TORC_EFORK when the loop's last
 * turn has ended because the process is exiting, or is a child that a callback forked: memory lent to the loop may be
 * taken back then. While the loop is inside a turn, an exit alone does not end a wait. */
int tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns);
/* Waits until the turn of the thread that drives the loop ends, at most timeout_ms (-1: no limit; must not be 0). With
 * the lock held, which is released meanwhile. */
void tc_runtime_await_driver(torc_runtime *rt, int timeout_ms);
/* Has the tasks run that this thread posted without a wake-up: by a turn of this thread that does not wait, or by
 * waking the thread that drives the loop now. `w` is this thread's. With the lock held, which is released during the
 * turn. For a runtime in TORC_RUNTIME_CALLER mode. Does nothing once the runtime has shut down and is no longer driven:
 * torc_runtime_free then runs the tasks. */
void tc_runtime_turn(torc_runtime *rt, const struct tc_wait *w);
/* Runs fn on the loop and waits until fn has run. Calls fn at once if the caller is inside a callback of the runtime.
 * Returns 0; what tc_runtime_check returns, or TORC_ECLOSED if the loop has ended since, and fn is not called; or
 * TORC_EFORK if the process exits meanwhile, or in the child of a callback that forked meanwhile: then fn may have been
 * called. */
int tc_runtime_do(torc_runtime *rt, void (*fn)(void *arg), void *arg);

/* tc_runtime_check for a call that blocks: also TORC_EDEADLK when the calling thread is inside a callback of the
 * runtime. */
int tc_runtime_check_blocking(const torc_runtime *rt);
/* Returns true if threads that wait drive the loop (TORC_RUNTIME_CALLER). */
bool tc_runtime_caller_drives(const torc_runtime *rt);
/* Returns true while a thread drives the loop. With the lock held. */
bool tc_runtime_driven(const torc_runtime *rt);
/* Returns true if the calling thread drives the loop of a runtime in TORC_RUNTIME_CALLER mode: it is inside a callback
 * of the loop or, in a world, inside the wait of torc_runtime_poll. Without the lock. */
bool tc_runtime_drives(torc_runtime *rt);
/* Has all waiting threads look at the loop again. For tc_loop_on_stopped; `rt` is the runtime. Without the lock. */
void tc_runtime_wake_all(void *rt);

#endif
