/* Threads that wait for the loop, and the choice of the thread that drives the loop of a runtime without a thread of
 * its own.
 *
 * rt->mutex guards what waiting threads share with callbacks on the loop, and rt->driven: whether a thread drives the
 * loop. At most one does; a runtime's own thread does from its start to its end. In TORC_RUNTIME_CALLER mode a thread
 * in tc_runtime_wait, tc_runtime_turn or torc_runtime_poll drives the loop if nobody else does (drive_one_turn releases
 * the mutex around the turn). While another thread drives it, a thread in tc_runtime_wait or torc_runtime_poll sleeps
 * on its condition. Once the runtime has shut down (`stopped`), torc_runtime_free alone begins turns.
 *
 * A thread that stops driving passes the loop on (drive_pass_on) to a waiter. If there is none, the application may
 * wait for the loop's descriptor in an event loop of its own. If the loop has work before that wait ends (told_ms),
 * drive_pass_on makes the descriptor readable.
 *
 * Fast path of a blocking unary call: the call is posted without a wake-up, and the waiting thread's first turn begins
 * with the posts (`first`), so that neither a system call nor another thread is needed to start the call. */
#include "runtime/blocking.h"

#include "base/clock.h"
#include "base/fork.h"
#include "base/thread.h"
#include "runtime/runtime_internal.h"

/* Returns true in a child of the process that made the runtime. */
static bool is_of_parent(const torc_runtime *rt)
{
    return TC_UNLIKELY(rt->generation != tc_fork_generation());
}

void tc_runtime_lock(torc_runtime *rt)
{
    if (!is_of_parent(rt))
        pthread_mutex_lock(&rt->mutex);
}

void tc_runtime_unlock(torc_runtime *rt)
{
    if (!is_of_parent(rt))
        pthread_mutex_unlock(&rt->mutex);
}

bool tc_runtime_caller_drives(const torc_runtime *rt)
{
    return rt->mode == TORC_RUNTIME_CALLER;
}

bool tc_runtime_driven(const torc_runtime *rt)
{
    return rt->driven;
}

bool tc_runtime_drives(torc_runtime *rt)
{
    tc_runtime_lock(rt);
    bool drives = rt->mode == TORC_RUNTIME_CALLER && rt->driven && pthread_equal(rt->driver, pthread_self());
    tc_runtime_unlock(rt);
    return drives;
}

/* Returns true if a thread that waits may drive the loop now. Called with the mutex. */
static bool loop_is_free(const torc_runtime *rt)
{
    return rt->mode == TORC_RUNTIME_CALLER && !rt->driven && !atomic_load(&rt->stopped);
}

/* Hands the loop to the first waiter. Without a waiter, wakes the thread that waits for the descriptor, if its wait
 * ends too late for the loop's next work. Does nothing unless loop_is_free. Called with the mutex. */
static void drive_pass_on(torc_runtime *rt)
{
    if (!loop_is_free(rt))
        return;
    if (!tc_list_empty(&rt->waiters))
        pthread_cond_signal(&TC_CONTAINER_OF(rt->waiters.next, struct tc_wait, link)->cond);
    else if (rt->told_ms > 0 && tc_loop_next_ms(rt->loop) < rt->told_ms)
        tc_loop_wake(rt->loop);
}

/* Wakes the threads in torc_runtime_poll that wait for the driver, and empties their list. Called with the mutex. */
static void wake_pollers(torc_runtime *rt)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&rt->pollers)))
        tc_wait_wake(TC_CONTAINER_OF(link, struct tc_wait, owner));
}

void tc_runtime_wake_all(void *arg)
{
    torc_runtime *rt = arg;
    tc_runtime_lock(rt);
    TC_LIST_FOREACH(it, &rt->waiters)
    pthread_cond_signal(&TC_CONTAINER_OF(it, struct tc_wait, link)->cond);
    wake_pollers(rt);
    tc_runtime_unlock(rt);
}

/* Returns how long a turn may wait, in milliseconds; -1: for any time. */
static int turn_timeout_ms(const torc_runtime *rt, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX)
        return -1;
    uint64_t now = tc_loop_clock_ns(rt->loop);
    if (until_ns <= now)
        return 0;
    uint64_t ms = (until_ns - now + TC_NS_PER_MS - 1) / TC_NS_PER_MS;
    return ms > 1000000 ? 1000000 : (int)ms;
}

/* In the child of a callback that forked: forgets the threads that waited, which the child does not have. */
TC_APART static void forget_threads(torc_runtime *rt)
{
    tc_list_init(&rt->waiters);
    tc_list_init(&rt->pollers);
}

/* Drives the loop for a turn. Called with the mutex, which is released meanwhile. `first`: this thread's wait, if posts
 * are to run before the loop looks for events; else NULL. Returns true if the turn did anything. The posts count only
 * if the loop does not look for events after them. */
static bool drive_one_turn(torc_runtime *rt, int timeout_ms, const struct tc_wait *first)
{
    rt->driven = true;
    rt->driver = pthread_self();
    tc_runtime_unlock(rt);
    bool did = first && tc_loop_turn_posts(rt->loop);
    /* Read without the lock. If another thread sets `woken` (it finishes the stream or the server's call), that thread
     * also wakes the loop, so that the turn below does not sleep if the mark is seen too late. */
    if (!did || !atomic_load_explicit(&first->woken, memory_order_relaxed))
        did = tc_loop_turn(rt->loop, timeout_ms);
    if (is_of_parent(rt))
        forget_threads(rt);
    tc_runtime_lock(rt);
    rt->driven = false;
    if (!tc_list_empty(&rt->pollers))
        wake_pollers(rt);
    return did;
}

int tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns)
{
    int rc = 0;
    const struct tc_wait *first = w; /* for one turn only: events must not wait longer */
    tc_list_append(&rt->waiters, &w->link);
    while (!w->woken) {
        if (until_ns != UINT64_MAX && tc_loop_clock_ns(rt->loop) >= until_ns) {
            rc = TORC_ETIMEDOUT;
            break;
        }
        if (TC_UNLIKELY(tc_loop_forked(rt->loop)) && tc_loop_left(rt->loop)) {
            rc = TORC_EFORK;
            break;
        }
        if (loop_is_free(rt))
            drive_one_turn(rt, turn_timeout_ms(rt, until_ns), first);
        else
            tc_wait_sleep(rt, w, until_ns);
        first = NULL;
    }
    atomic_store_explicit(&w->woken, false, memory_order_relaxed);
    if (TC_UNLIKELY(tc_list_empty(&rt->waiters)))
        tc_list_init(&w->link); /* in a fork's child: forget_threads has emptied the list */
    tc_list_remove(&w->link);
    drive_pass_on(rt);
    return rc;
}

void tc_runtime_turn(torc_runtime *rt, const struct tc_wait *w)
{
    if (loop_is_free(rt)) {
        drive_one_turn(rt, 0, w);
        drive_pass_on(rt);
    } else if (rt->driven) {
        tc_loop_wake(rt->loop);
    }
}

int torc_runtime_poll(torc_runtime *rt, int timeout_ms)
{
    int rc = timeout_ms >= -1 ? tc_runtime_check_blocking(rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    if (rt->mode != TORC_RUNTIME_CALLER)
        return TORC_ESTATE;
    TC_NO_CANCEL;
    rc = 0;
    tc_runtime_lock(rt);
    if (atomic_load(&rt->stopped)) {
        rc = TORC_ECLOSED; /* the thread in torc_runtime_free drives the loop */
    } else if (!rt->driven) {
        rc = drive_one_turn(rt, timeout_ms, NULL);
        if (rt->asks && pthread_equal(rt->asker, pthread_self()))
            rt->told_ms = 0; /* the asker asks again before it waits */
        drive_pass_on(rt);
    } else if (timeout_ms != 0) {
        tc_runtime_await_driver(rt, timeout_ms);
    }
    tc_runtime_unlock(rt);
    return rc;
}

/* The public functions take a const runtime: their bookkeeping is invisible to the application. */
static torc_runtime *inside(const torc_runtime *rt)
{
    return (torc_runtime *)(uintptr_t)rt;
}

int torc_runtime_fd(const torc_runtime *given)
{
    torc_runtime *rt = inside(given);
    int rc = tc_runtime_check(rt);
    if (rc != 0)
        return rc;
    if (rt->mode != TORC_RUNTIME_CALLER)
        return TORC_ESTATE;
    if (!atomic_load_explicit(&rt->fd_given, memory_order_relaxed)) {
        tc_runtime_lock(rt);
        if (!rt->asks)
            rt->told_ms = UINT64_MAX;
        atomic_store(&rt->fd_given, true);
        tc_runtime_unlock(rt);
    }
    return rt->fd;
}

int torc_runtime_timeout_ms(const torc_runtime *given)
{
    torc_runtime *rt = inside(given);
    int ms = -1;
    if (tc_runtime_check(rt) != 0 || rt->mode != TORC_RUNTIME_CALLER)
        return -1;
    if (tc_loop_in_turn(rt->loop))
        return tc_loop_timeout_ms(rt->loop);
    tc_runtime_lock(rt);
    rt->asks = true;
    rt->asker = pthread_self();
    rt->told_ms = UINT64_MAX;
    if (loop_is_free(rt)) {
        rt->told_ms = tc_loop_next_ms(rt->loop);
        ms = tc_loop_wait_ms(rt->loop, rt->told_ms);
    }
    tc_runtime_unlock(rt);
    return ms;
}

int tc_runtime_check_blocking(const torc_runtime *rt)
{
    int rc = tc_runtime_check(rt);
    if (rc == 0 && tc_loop_in_turn(rt->loop))
        rc = TORC_EDEADLK;
    return rc;
}
