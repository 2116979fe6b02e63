/* Waits of the public API's functions. timeout_ms: 0 does not wait, -1 has no limit. Any thread.
 *
 *   int rc = tc_wait_check(rt, timeout_ms);               The loop's side, in a callback:
 *   if (rc != 0)                                              tc_runtime_lock(rt);
 *       return rc;                                            done = true;
 *   struct tc_timed_wait w;                                   tc_wait_wake_all(&waits);
 *   tc_timed_wait_begin(&w, rt, &waits, timeout_ms);          tc_runtime_unlock(rt);
 *   while (rc == 0 && !done)
 *       rc = tc_timed_wait_once(&w);
 *   tc_timed_wait_end(&w);
 *
 * tc_timed_wait_begin takes the runtime's lock, tc_timed_wait_once releases it while it waits, and tc_timed_wait_end
 * releases it. The caller holds a reference to the owner of `waits` until then. */
#ifndef TC_API_WAIT_H
#define TC_API_WAIT_H

#include "runtime/blocking.h"

/* A thread that waits for something of an object; on its stack. */
struct tc_timed_wait {
    struct tc_wait wait;
    torc_runtime *rt; /* borrowed */
    int64_t timeout_ms;
    uint64_t until_ns; /* by the loop's clock; UINT64_MAX: no limit */
    bool quietly;      /* the thread posts without a wake-up, and then drives the loop itself or wakes its driver */
};

/* Returns 0 if the function may go on, also after torc_runtime_free: what came before the free may still be returned.
 * Returns TORC_EINVAL for a timeout below -1; TORC_EFORK as tc_runtime_check; TORC_EDEADLK inside a callback of the
 * runtime, if the timeout is not 0. `rt` must not be NULL. */
int tc_wait_check(const torc_runtime *rt, int64_t timeout_ms);
/* Puts the thread on `waits`, a list of tc_wait.owner under the runtime's lock. */
void tc_timed_wait_begin(struct tc_timed_wait *w, torc_runtime *rt, struct tc_link *waits, int64_t timeout_ms);
void tc_timed_wait_end(struct tc_timed_wait *w);
/* Waits until woken and returns 0; or TORC_ETIMEDOUT, or TORC_EFORK as tc_runtime_wait does. With a timeout of 0,
 * returns TORC_EAGAIN at once. */
int tc_timed_wait_once(struct tc_timed_wait *w);
/* Called with the lock held after this thread posted to the loop. Wakes the loop if the post was quiet and another
 * thread drives the loop. If no thread drives it, this thread's wait begins with a turn, which takes the post. */
void tc_timed_wait_posted(const struct tc_timed_wait *w);
/* Wakes all threads of the list. With the lock held. */
void tc_wait_wake_all(struct tc_link *waits);

#endif
