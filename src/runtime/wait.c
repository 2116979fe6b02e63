/* Threads that sleep until another thread wakes them, and threads that have a function run on the loop.
 *
 * libtorc-testing replaces tc_runtime_wait, which tc_runtime_do calls, and tc_runtime_await_driver, which
 * torc_runtime_poll calls. The linker's --wrap does not reach a call inside the file that defines the function, so this
 * file is apart from blocking.c. */
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "runtime/blocking.h"
#include "runtime/runtime_internal.h"

void tc_wait_init(struct tc_wait *w)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
    tc_list_init(&w->link);
    tc_list_init(&w->owner);
    w->ends_ns = NULL;
    atomic_init(&w->woken, false);
}

void tc_wait_fini(struct tc_wait *w)
{
    tc_list_remove(&w->owner);
    pthread_cond_destroy(&w->cond);
}

void tc_wait_wake(struct tc_wait *w)
{
    atomic_store_explicit(&w->woken, true, memory_order_relaxed);
    pthread_cond_signal(&w->cond);
}

void tc_wait_sleep(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&w->cond, &rt->mutex);
        return;
    }
    struct timespec ts = {.tv_sec = (time_t)(until_ns / TC_NS_PER_S), .tv_nsec = (long)(until_ns % TC_NS_PER_S)};
    pthread_cond_timedwait(&w->cond, &rt->mutex, &ts);
}

void tc_runtime_await_driver(torc_runtime *rt, int timeout_ms)
{
    uint64_t until_ns = UINT64_MAX;
    if (timeout_ms > 0)
        until_ns = tc_loop_clock_ns(rt->loop) + (uint64_t)timeout_ms * TC_NS_PER_MS;
    struct tc_wait w;
    tc_wait_init(&w);
    tc_list_append(&rt->pollers, &w.owner);
    while (!w.woken && rt->driven && tc_loop_clock_ns(rt->loop) < until_ns)
        tc_wait_sleep(rt, &w, until_ns);
    tc_wait_fini(&w);
}

/* --- a function on the loop --- */

/* A call of tc_runtime_do, on the stack of its thread. */
struct deed {
    struct tc_task task;
    struct tc_wait wait;
    torc_runtime *rt;
    void (*fn)(void *arg);
    void *arg;
    bool done;
};

static void on_deed(struct tc_task *task)
{
    struct deed *d = TC_CONTAINER_OF(task, struct deed, task);
    torc_runtime *rt = d->rt;
    d->fn(d->arg);
    tc_runtime_lock(rt);
    d->done = true;
    tc_wait_wake(&d->wait);
    tc_runtime_unlock(rt);
}

int tc_runtime_do(torc_runtime *rt, void (*fn)(void *arg), void *arg)
{
    int rc = tc_runtime_check_blocking(rt);
    if (rc == TORC_EDEADLK)
        fn(arg);
    if (rc != 0)
        return rc == TORC_EDEADLK ? 0 : rc;
    TC_NO_CANCEL;
    struct deed d = {.rt = rt, .fn = fn, .arg = arg};
    tc_task_init(&d.task, on_deed);
    tc_wait_init(&d.wait);
    tc_runtime_ref(rt);
    if (tc_runtime_run(rt, &d.task)) {
        tc_runtime_lock(rt);
        while (!d.done && rc == 0)
            rc = tc_runtime_wait(rt, &d.wait, UINT64_MAX);
        tc_runtime_unlock(rt);
    } else {
        rc = TORC_ECLOSED;
    }
    tc_wait_fini(&d.wait);
    tc_runtime_unref(rt);
    return rc;
}
