/* Functions of the API that may wait, with a timeout_ms as torc/stream.h has it. Any thread.
 *
 *   int rc = tc_wait_check(rt, timeout_ms);     The loop's side, in a callback:
 *   struct tc_timed_wait w;                         tc_runtime_lock(rt);
 *   tc_timed_wait_begin(&w, rt, &waits, timeout_ms);  done = true;
 *   while (rc == 0 && !done)                        tc_wait_wake_all(&waits);
 *       rc = tc_timed_wait_once(&w);                tc_runtime_unlock(rt);
 *   tc_timed_wait_end(&w);
 *
 * tc_timed_wait_begin takes the runtime's lock, tc_timed_wait_once releases it while it waits, and tc_timed_wait_end
 * gives it back. The owner of `waits` must stay meanwhile. */
#ifndef TC_API_WAIT_H
#define TC_API_WAIT_H

#include "runtime/blocking.h"

/* A thread that waits for something of an object; on its stack. */
struct tc_timed_wait {
    struct tc_wait wait;
    torc_runtime *rt;
    int64_t timeout_ms;
    uint64_t until_ns;
    bool quietly; /* the thread's requests are posted without a wake-up, because it drives the loop itself */
};

/* Returns 0 if the function may go on, else TORC_EINVAL, TORC_EFORK or TORC_EDEADLK. After torc_runtime_free it may:
 * what has come before stays. */
int tc_wait_check(const torc_runtime *rt, int64_t timeout_ms);
/* Puts the thread on `waits`, a list of tc_wait.owner under the runtime's lock. */
void tc_timed_wait_begin(struct tc_timed_wait *w, torc_runtime *rt, struct tc_link *waits, int64_t timeout_ms);
void tc_timed_wait_end(struct tc_timed_wait *w);
/* Waits until woken: 0; TORC_EAGAIN with a timeout of 0, TORC_ETIMEDOUT, TORC_EFORK. */
int tc_timed_wait_once(struct tc_timed_wait *w);
/* Called after a post of the thread, with the lock held: after a quiet post, wakes the loop if another thread drives it
 * and may sleep. Otherwise the thread's own wait begins with a turn, which takes the post. */
void tc_timed_wait_posted(const struct tc_timed_wait *w);
/* Wakes all threads of the list. With the lock held. */
void tc_wait_wake_all(struct tc_link *waits);

#endif
