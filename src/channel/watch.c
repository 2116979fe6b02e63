/* The channel's state: published for any thread, and told to those who watch. */
#include <stdlib.h>

#include "base/mem.h"
#include "channel/channel_struct.h"

/* A state that was published and is to be told. */
struct published {
    struct tc_link link;
    enum torc_connectivity state;
    struct tc_status status;
};

static void tell_one(torc_channel *ch, const struct published *p)
{
    /* Watches may be removed, and added at the end, by those that are told. */
    struct tc_link told;
    tc_list_init(&told);
    tc_list_splice(&told, &ch->watches);
    struct tc_link *link;
    while ((link = tc_list_pop(&told))) {
        tc_list_append(&ch->watches, link);
        if (ch->ended && p->state != TORC_SHUTDOWN)
            continue;
        struct tc_channel_watch *w = TC_CONTAINER_OF(link, struct tc_channel_watch, link);
        w->fn(w, p->state, &p->status);
    }
}

static void drop(struct published *p)
{
    tc_status_fini(&p->status);
    tc_free(p);
}

static void on_tell(struct tc_task *task)
{
    torc_channel *ch = TC_CONTAINER_OF(task, torc_channel, tell);
    struct tc_link *link = tc_list_pop(&ch->states);
    if (!link)
        return;
    if (!tc_list_empty(&ch->states))
        tc_loop_defer(ch->loop, &ch->tell);
    struct published *p = TC_CONTAINER_OF(link, struct published, link);
    tc_channel_ref(ch);
    if (!ch->ended)
        tc_channel_observe_event(ch, "state", torc_connectivity_name(p->state), tc_status_text(&p->status));
    tell_one(ch, p);
    tc_channel_unref(ch);
    drop(p);
}

void tc_channel_watch_init(torc_channel *ch)
{
    tc_list_init(&ch->watches);
    tc_list_init(&ch->states);
    tc_task_init(&ch->tell, on_tell);
}

void tc_channel_publish(torc_channel *ch)
{
    struct published *last = NULL;
    atomic_store(&ch->published, (int)ch->state);
    if (!tc_list_empty(&ch->states))
        last = TC_CONTAINER_OF(ch->states.prev, struct published, link);
    /* The same state again, with a newer reason: joined with what is yet to be told. */
    if (last && last->state == ch->state) {
        tc_status_set(&last->status, tc_status_ref(&ch->status));
        return;
    }
    struct published *p = TC_NEW(struct published);
    p->state = ch->state;
    p->status = tc_status_ref(&ch->status);
    tc_list_append(&ch->states, &p->link);
    tc_loop_defer(ch->loop, &ch->tell);
}

void tc_channel_watch_end(torc_channel *ch, bool tell)
{
    struct tc_link *link;
    tc_task_cancel(&ch->tell);
    while ((link = tc_list_pop(&ch->states)))
        drop(TC_CONTAINER_OF(link, struct published, link));
    struct published end = {.state = TORC_SHUTDOWN};
    if (tell)
        tell_one(ch, &end);
    while (tc_list_pop(&ch->watches))
        ;
}

void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch)
{
    tc_list_append(&ch->watches, &watch->link);
}

void tc_channel_watch_remove(struct tc_channel_watch *watch)
{
    tc_list_remove(&watch->link);
}

/* torc_channel_watch_state: told once, when the state is no longer the given one. */
struct state_watch {
    struct tc_channel_watch base;
    struct tc_task task;
    torc_channel *ch;
    enum torc_connectivity last;
    torc_channel_state_fn fn;
    void *arg;
};

static void fire(struct state_watch *w, enum torc_connectivity state, const struct tc_status *status)
{
    tc_channel_watch_remove(&w->base);
    w->fn(state == TORC_SHUTDOWN ? NULL : w->ch, state, tc_status_text(status), w->arg);
    tc_channel_unref(w->ch);
    tc_free(w);
}

static void on_state(struct tc_channel_watch *base, enum torc_connectivity state, const struct tc_status *status)
{
    struct state_watch *w = TC_CONTAINER_OF(base, struct state_watch, base);
    if (state != w->last)
        fire(w, state, status);
}

static void on_add(struct tc_task *task)
{
    struct state_watch *w = TC_CONTAINER_OF(task, struct state_watch, task);
    tc_channel_attach(w->ch);
    if (w->ch->ended)
        fire(w, TORC_SHUTDOWN, &w->ch->end_status);
    else if (w->ch->state != w->last)
        fire(w, w->ch->state, &w->ch->status);
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
    tc_runtime_run(ch->rt, &w->task);
    return 0;
}

/* Blocking: a watch that wakes a thread. Counted by that thread and by the loop. */
struct waiter {
    struct tc_channel_watch base;
    struct tc_task add, remove;
    torc_channel *ch;
    enum torc_connectivity last;
    struct tc_wait wait;
    bool connect, removed;
};

static void wake_waiter(struct waiter *w, enum torc_connectivity state)
{
    torc_runtime *rt = w->ch->rt;
    if (state == TORC_SHUTDOWN)
        tc_channel_watch_remove(&w->base);
    tc_runtime_lock(rt);
    w->removed |= state == TORC_SHUTDOWN;
    if (state != w->last)
        tc_wait_wake(&w->wait);
    tc_runtime_unlock(rt);
    /* After the end the thread may be gone, and its struct with it. */
}

static void on_waiter_state(struct tc_channel_watch *base, enum torc_connectivity state, const struct tc_status *status)
{
    (void)status;
    wake_waiter(TC_CONTAINER_OF(base, struct waiter, base), state);
}

static void on_waiter_add(struct tc_task *task)
{
    struct waiter *w = TC_CONTAINER_OF(task, struct waiter, add);
    tc_channel_attach(w->ch);
    if (w->ch->ended) {
        wake_waiter(w, TORC_SHUTDOWN);
        return;
    }
    if (w->connect)
        tc_channel_exit_idle(w->ch);
    wake_waiter(w, w->ch->state);
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

static uint64_t until_ns(torc_channel *ch, int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return UINT64_MAX;
    uint64_t now = tc_loop_clock_ns(ch->loop);
    uint64_t ms = (uint64_t)timeout_ms;
    return ms > (UINT64_MAX - now) / TC_NS_PER_MS ? UINT64_MAX : now + ms * TC_NS_PER_MS;
}

/* Waits until the state differs from `last`, or, with `connect`, until it is READY. */
static int wait_state(torc_channel *ch, enum torc_connectivity last, int64_t timeout_ms, bool connect,
                      enum torc_connectivity *now)
{
    int rc = ch ? tc_runtime_check_blocking(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct waiter w = {.base.fn = on_waiter_state, .ch = ch, .last = last, .connect = connect};
    uint64_t until = until_ns(ch, timeout_ms);
    enum torc_connectivity state = last;
    tc_list_init(&w.base.link);
    tc_wait_init(&w.wait);
    tc_task_init(&w.add, on_waiter_add);
    tc_task_init(&w.remove, on_waiter_remove);
    tc_loop_post(ch->loop, &w.add);
    tc_runtime_lock(ch->rt);
    do {
        rc = tc_runtime_wait(ch->rt, &w.wait, until);
        state = (enum torc_connectivity)atomic_load(&ch->published);
        w.last = state;
    } while (rc == 0 && !w.removed && (connect ? state != TORC_READY : state == last));
    bool removed = w.removed;
    tc_runtime_unlock(ch->rt);
    /* It runs after `add`: posts of one thread keep their order. */
    if (!removed)
        tc_loop_post(ch->loop, &w.remove);
    tc_runtime_lock(ch->rt);
    while (!w.removed)
        tc_runtime_wait(ch->rt, &w.wait, UINT64_MAX);
    tc_runtime_unlock(ch->rt);
    tc_wait_fini(&w.wait);
    if (rc == 0 && connect && state == TORC_SHUTDOWN)
        rc = TORC_ECLOSED;
    if (rc == 0 && now)
        *now = state;
    return rc;
}

int torc_channel_wait_state(torc_channel *ch, enum torc_connectivity last, int64_t timeout_ms,
                            enum torc_connectivity *now)
{
    return wait_state(ch, last, timeout_ms, false, now);
}

int torc_channel_connect(torc_channel *ch, int64_t timeout_ms)
{
    return wait_state(ch, TORC_IDLE, timeout_ms, true, NULL);
}
