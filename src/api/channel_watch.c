/* Watching a channel's state: by a callback (torc_channel_watch_state), or by a thread that waits
 * (torc_channel_wait_state, torc_channel_connect). torc/channel.h has the contract.
 *
 * Both hand the loop a task that adds a struct tc_channel_watch. The task looks at the state first, so that it does not
 * miss a change before the watch. It adds no watch if the channel has ended, or if the callback is due at once. A
 * thread whose state is reached already, or that only looks (torc_channel_wait_state with a timeout of 0), posts no
 * task.
 *
 * A struct state_watch is on the heap. The loop owns it once its task is handed over, and frees it after the callback.
 * A struct waiter is on the stack of its thread, which takes it back from the loop before it returns. */
#include <torc/channel.h>

#include "base/mem.h"
#include "base/thread.h"
#include "channel/channel_internal.h"
#include "runtime/blocking.h"

/* --- torc_channel_watch_state: one callback, when the state differs from `last` --- */

struct state_watch {
    struct tc_channel_watch base;
    struct tc_task task; /* on_add */
    torc_channel *ch;    /* a reference */
    enum torc_connectivity last;
    torc_channel_state_fn fn;
    void *arg;
};

/* Calls the callback, and frees the watch, which may be on no list. */
static void watch_fire(struct state_watch *w, enum torc_connectivity state, const struct tc_status *status)
{
    tc_channel_watch_remove(&w->base);
    w->fn(state == TORC_CONNECTIVITY_SHUTDOWN ? NULL : w->ch, state, tc_status_text(status), w->arg);
    tc_channel_unref(w->ch);
    tc_free(w);
}

static void on_state(struct tc_channel_watch *base, enum torc_connectivity state, const struct tc_status *status)
{
    struct state_watch *w = TC_CONTAINER_OF(base, struct state_watch, base);
    if (state != w->last)
        watch_fire(w, state, status);
}

static void on_add(struct tc_task *task)
{
    struct state_watch *w = TC_CONTAINER_OF(task, struct state_watch, task);
    tc_channel_attach(w->ch);
    if (w->ch->ended)
        watch_fire(w, TORC_CONNECTIVITY_SHUTDOWN, &w->ch->end_status);
    else if (w->ch->connectivity.state != w->last)
        watch_fire(w, w->ch->connectivity.state, &w->ch->connectivity.status);
    else
        tc_channel_watch_add(w->ch, &w->base);
}

int torc_channel_watch_state(torc_channel *ch, enum torc_connectivity last, torc_channel_state_fn fn, void *arg)
{
    int rc = ch && fn ? tc_runtime_check(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct state_watch *w = TC_NEW(struct state_watch);
    tc_list_init(&w->base.link);
    w->base.fn = on_state;
    w->ch = tc_channel_ref(ch);
    w->last = last;
    w->fn = fn;
    w->arg = arg;
    tc_task_init(&w->task, on_add);
    if (tc_runtime_run(ch->rt, &w->task))
        return 0;
    tc_channel_unref(ch);
    tc_free(w);
    return TORC_ECLOSED;
}

/* --- threads that wait --- */

/* A watch on the stack of the thread that it wakes. The thread leaves when the loop no longer refers to the watch: both
 * tasks have run, or were refused because the loop has ended. It also leaves with TORC_EFORK (the process exits, or is
 * the child of a callback that forked): the loop has run its last turn then. */
struct waiter {
    struct tc_channel_watch base;
    struct tc_task add, remove;
    torc_channel *ch; /* held by the thread */
    bool connect;     /* fixed */
    /* Under the runtime's lock. */
    enum torc_connectivity last; /* the state that the thread saw last; another state wakes the thread */
    struct tc_wait wait;
    bool over, removed; /* over: the channel has ended. removed: the task `remove` has run */
};

static void waiter_wake(struct waiter *w, enum torc_connectivity state)
{
    torc_runtime *rt = w->ch->rt;
    tc_runtime_lock(rt);
    w->over |= state == TORC_CONNECTIVITY_SHUTDOWN;
    if (state != w->last || w->over)
        tc_wait_wake(&w->wait);
    tc_runtime_unlock(rt);
}

static void on_waiter_state(struct tc_channel_watch *base, enum torc_connectivity state,
                            const struct tc_status *status TC_UNUSED)
{
    struct waiter *w = TC_CONTAINER_OF(base, struct waiter, base);
    if (w->connect && state == TORC_CONNECTIVITY_IDLE)
        tc_channel_exit_idle(w->ch);
    waiter_wake(w, state);
}

static void on_waiter_add(struct tc_task *task)
{
    struct waiter *w = TC_CONTAINER_OF(task, struct waiter, add);
    tc_channel_attach(w->ch);
    if (w->ch->ended) {
        waiter_wake(w, TORC_CONNECTIVITY_SHUTDOWN);
        return;
    }
    if (w->connect)
        tc_channel_exit_idle(w->ch);
    waiter_wake(w, w->ch->connectivity.state);
    tc_channel_watch_add(w->ch, &w->base);
}

static void on_waiter_remove(struct tc_task *task)
{
    struct waiter *w = TC_CONTAINER_OF(task, struct waiter, remove);
    torc_runtime *rt = w->ch->rt;
    tc_channel_watch_remove(&w->base);
    tc_runtime_lock(rt);
    w->removed = true;
    tc_wait_wake(&w->wait);
    tc_runtime_unlock(rt);
}

/* Returns when the wait ends, in the time of tc_loop_clock_ns; UINT64_MAX: never. */
static uint64_t deadline_ns(torc_channel *ch, int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return UINT64_MAX;
    uint64_t now = tc_loop_clock_ns(ch->loop);
    uint64_t ms = (uint64_t)timeout_ms;
    return ms > (UINT64_MAX - now) / TC_NS_PER_MS ? UINT64_MAX : now + ms * TC_NS_PER_MS;
}

/* Stores the published state in *state. Returns true if that state ends the wait: READY for a thread that connects,
 * else any state but `last`. */
static bool waiter_reached(const struct waiter *w, enum torc_connectivity last, enum torc_connectivity *state)
{
    *state = (enum torc_connectivity)atomic_load(&w->ch->connectivity.published);
    return w->connect ? *state == TORC_CONNECTIVITY_READY : *state != last;
}

/* Returns 0 when the state is reached; TORC_ETIMEDOUT if the time passes first, TORC_ECLOSED if the loop or the channel
 * has ended without it, or TORC_EFORK. */
static int waiter_wait(struct waiter *w, enum torc_connectivity last, uint64_t until, enum torc_connectivity *state)
{
    torc_runtime *rt = w->ch->rt;
    int rc = 0;
    if (!tc_loop_post(w->ch->loop, &w->add))
        return TORC_ECLOSED;
    tc_runtime_lock(rt);
    while (!waiter_reached(w, last, state) && !w->over && rc == 0) {
        w->last = *state;
        rc = tc_runtime_wait(rt, &w->wait, until);
    }
    if (waiter_reached(w, last, state))
        rc = 0; /* reached at the last moment */
    else if (w->over)
        rc = TORC_ECLOSED;
    tc_runtime_unlock(rt);
    /* Runs after `add`: the posts of a thread keep their order. */
    bool runs = tc_loop_post(w->ch->loop, &w->remove);
    tc_runtime_lock(rt);
    while (runs && !w->removed && rc != TORC_EFORK)
        if (tc_runtime_wait(rt, &w->wait, UINT64_MAX) == TORC_EFORK)
            rc = TORC_EFORK;
    tc_runtime_unlock(rt);
    return rc;
}

/* Waits until the state differs from `last`; with `connect`, connects and waits until the state is READY (`last` is
 * unused). Stores the state in *now (may be NULL) if it returns 0. Returns what torc_channel_wait_state or
 * torc_channel_connect returns. */
static int state_wait(torc_channel *ch, enum torc_connectivity last, int64_t timeout_ms, bool connect,
                      enum torc_connectivity *now)
{
    if (!ch || timeout_ms < -1)
        return TORC_EINVAL;
    bool looks = timeout_ms == 0 && !connect;
    int rc = looks ? tc_runtime_check(ch->rt) : tc_runtime_check_blocking(ch->rt);
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct waiter w = {.base.fn = on_waiter_state, .ch = tc_channel_ref(ch), .last = last, .connect = connect};
    enum torc_connectivity state;
    tc_list_init(&w.base.link);
    tc_wait_init(&w.wait);
    tc_task_init(&w.add, on_waiter_add);
    tc_task_init(&w.remove, on_waiter_remove);
    if (!waiter_reached(&w, last, &state)) {
        if (state == TORC_CONNECTIVITY_SHUTDOWN)
            rc = TORC_ECLOSED;
        else
            rc = looks ? TORC_ETIMEDOUT : waiter_wait(&w, last, deadline_ns(ch, timeout_ms), &state);
    }
    tc_wait_fini(&w.wait);
    if (rc != TORC_EFORK) /* else the channel is leaked: the loop, which does not run again, may refer to it */
        tc_channel_unref(ch);
    if (rc == 0 && now)
        *now = state;
    return rc;
}

int torc_channel_wait_state(torc_channel *ch, enum torc_connectivity last, int64_t timeout_ms,
                            enum torc_connectivity *now)
{
    return state_wait(ch, last, timeout_ms, false, now);
}

int torc_channel_connect(torc_channel *ch, int64_t timeout_ms)
{
    return state_wait(ch, TORC_CONNECTIVITY_IDLE, timeout_ms, true, NULL);
}
