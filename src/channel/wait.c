/* Threads that wait for the loop, and who drives it when the runtime has no thread. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "channel/runtime_struct.h"

void tc_runtime_lock(torc_runtime *rt)
{
    pthread_mutex_lock(&rt->mutex);
}

void tc_runtime_unlock(torc_runtime *rt)
{
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

void tc_wait_init(struct tc_wait *w)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
    tc_list_init(&w->link);
    tc_list_init(&w->owner);
    w->woken = false;
}

void tc_wait_fini(struct tc_wait *w)
{
    tc_list_remove(&w->owner);
    pthread_cond_destroy(&w->cond);
}

void tc_wait_wake(struct tc_wait *w)
{
    w->woken = true;
    pthread_cond_signal(&w->cond);
}

/* Whoever waits first may drive now. */
static void pass_on(torc_runtime *rt)
{
    if (rt->mode != TORC_RUNTIME_CALLER || rt->driven || tc_list_empty(&rt->waiters))
        return;
    struct tc_wait *next = TC_CONTAINER_OF(rt->waiters.next, struct tc_wait, link);
    pthread_cond_signal(&next->cond);
}

static void wake_pollers(torc_runtime *rt)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&rt->pollers)))
        tc_wait_wake(TC_CONTAINER_OF(link, struct tc_wait, owner));
}

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

/* `first`: a waiter that has posted what it waits for, and whose post goes before the loop looks for events. */
static bool one_turn(torc_runtime *rt, int timeout_ms, const struct tc_wait *first)
{
    rt->driven = true;
    rt->driver = pthread_self();
    pthread_mutex_unlock(&rt->mutex);
    bool did = first && tc_loop_turn_posts(rt->loop);
    /* Only the loop wakes, and the loop is us. */
    if (!did || !first->woken)
        did = tc_loop_turn(rt->loop, timeout_ms);
    pthread_mutex_lock(&rt->mutex);
    rt->driven = false;
    if (!tc_list_empty(&rt->pollers))
        wake_pollers(rt);
    return did;
}

static void wait_signal(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&w->cond, &rt->mutex);
        return;
    }
    struct timespec ts = {.tv_sec = (time_t)(until_ns / TC_NS_PER_S), .tv_nsec = (long)(until_ns % TC_NS_PER_S)};
    pthread_cond_timedwait(&w->cond, &rt->mutex, &ts);
}

int tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns)
{
    int rc = 0;
    const struct tc_wait *first = w; /* once, so that events wait for no more */
    tc_list_append(&rt->waiters, &w->link);
    while (!w->woken) {
        if (until_ns != UINT64_MAX && tc_loop_clock_ns(rt->loop) >= until_ns) {
            rc = TORC_ETIMEDOUT;
            break;
        }
        if (rt->mode == TORC_RUNTIME_CALLER && !rt->driven && !atomic_load(&rt->stopped))
            one_turn(rt, turn_timeout_ms(rt, until_ns), first);
        else
            wait_signal(rt, w, until_ns);
        first = NULL;
    }
    w->woken = false;
    tc_list_remove(&w->link);
    pass_on(rt);
    return rc;
}

int torc_runtime_poll(torc_runtime *rt, int timeout_ms)
{
    int rc = tc_runtime_check_blocking(rt);
    if (rc != 0)
        return rc;
    if (rt->mode != TORC_RUNTIME_CALLER)
        return TORC_ESTATE;
    rc = 0;
    pthread_mutex_lock(&rt->mutex);
    if (!rt->driven) {
        rc = one_turn(rt, timeout_ms, NULL);
        pass_on(rt);
    } else if (timeout_ms != 0) {
        uint64_t until_ns = UINT64_MAX;
        if (timeout_ms > 0)
            until_ns = tc_loop_clock_ns(rt->loop) + (uint64_t)timeout_ms * TC_NS_PER_MS;
        struct tc_wait w;
        tc_wait_init(&w);
        tc_list_append(&rt->pollers, &w.owner);
        while (!w.woken && rt->driven && tc_loop_clock_ns(rt->loop) < until_ns)
            wait_signal(rt, &w, until_ns);
        tc_wait_fini(&w);
    }
    pthread_mutex_unlock(&rt->mutex);
    return rc;
}

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
    struct deed d = {.rt = rt, .fn = fn, .arg = arg};
    tc_task_init(&d.task, on_deed);
    tc_wait_init(&d.wait);
    tc_runtime_ref(rt);
    tc_runtime_run(rt, &d.task);
    tc_runtime_lock(rt);
    while (!d.done)
        tc_runtime_wait(rt, &d.wait, UINT64_MAX);
    tc_runtime_unlock(rt);
    tc_wait_fini(&d.wait);
    tc_runtime_unref(rt);
    return 0;
}

int tc_runtime_check_blocking(const torc_runtime *rt)
{
    int rc = tc_runtime_check(rt);
    if (rc == 0 && tc_loop_in_turn(rt->loop))
        rc = TORC_EDEADLK;
    return rc;
}
