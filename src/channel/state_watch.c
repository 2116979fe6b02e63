/* Delivers the channel's states to its watches and observer, and events of connections to the observer, by the serial
 * queue: a watch that is called may add and remove watches, start calls, and end the channel. Every state is delivered,
 * in order, with two exceptions: a TRANSIENT_FAILURE right after an undelivered TRANSIENT_FAILURE replaces it, with the
 * newer reason; the end of the channel drops what is not delivered yet. tc_state_watch_end, if it is to tell the
 * watches, calls them with SHUTDOWN at once. In the child of a callback that forked nobody is told of anything
 * (tc_loop_forked). */
#include "channel/state_watch.h"

#include "base/mem.h"
#include "lb/connectivity.h"

/* A state that was published and is not delivered yet. */
struct published {
    struct tc_link link;
    enum torc_connectivity state;
    struct tc_status status;
};

/* Calls the present watches. A watch that is added meanwhile gets later states only. If a watch calls
 * tc_channel_shutdown, the watches behind it are removed, and are not called. Every other end of a channel comes by a
 * task, never from inside a watch. */
static void watches_tell(struct tc_channel_connectivity *c, const struct published *p)
{
    struct tc_link told;
    tc_list_init(&told);
    tc_list_splice(&told, &c->watches);
    struct tc_link *link;
    while ((link = tc_list_pop(&told))) {
        if (c->ended && p->state != TORC_CONNECTIVITY_SHUTDOWN)
            continue;
        tc_list_append(&c->watches, link);
        struct tc_channel_watch *w = TC_CONTAINER_OF(link, struct tc_channel_watch, link);
        if (!tc_loop_forked(c->loop))
            w->fn(w, p->state, &p->status);
    }
}

static void published_drop(struct published *p)
{
    tc_status_fini(&p->status);
    tc_free(p);
}

/* Delivers one state; a task for each, so that other tasks of the serial queue get their turns in between. */
static void on_tell(struct tc_task *task)
{
    struct tc_channel_connectivity *c = TC_CONTAINER_OF(task, struct tc_channel_connectivity, tell);
    struct tc_link *link = tc_list_pop(&c->states);
    if (!link)
        return;
    if (!tc_list_empty(&c->states))
        tc_loop_defer(c->loop, &c->tell);
    struct published *p = TC_CONTAINER_OF(link, struct published, link);
    if (c->observer)
        c->observer("state", tc_connectivity_name(p->state), tc_status_text(&p->status), c->observer_arg);
    watches_tell(c, p);
    published_drop(p);
}

/* An event of a connection that is not delivered to the observer yet. */
struct event {
    struct tc_link link;
    const char *kind;
    struct tc_rstr *address, *reason;
};

static void event_free(struct event *e)
{
    tc_rstr_unref(e->address);
    tc_rstr_unref(e->reason);
    tc_free(e);
}

static void on_tell_events(struct tc_task *task)
{
    struct tc_channel_connectivity *c = TC_CONTAINER_OF(task, struct tc_channel_connectivity, tell_events);
    struct tc_link *link;
    while (!tc_loop_forked(c->loop) && (link = tc_list_pop(&c->events))) {
        struct event *e = TC_CONTAINER_OF(link, struct event, link);
        c->observer(e->kind, e->address->data, tc_rstr_cstr(e->reason), c->observer_arg);
        event_free(e);
    }
}

void tc_state_watch_on_conn_event(void *arg, const char *kind, struct tc_rstr *address, const char *reason)
{
    struct tc_channel_connectivity *c = arg;
    if (!c->observer)
        return;
    struct event *e = TC_NEW(struct event);
    e->kind = kind;
    e->address = tc_rstr_ref(address);
    e->reason = tc_rstr_str(reason);
    tc_list_append(&c->events, &e->link);
    tc_loop_defer(c->loop, &c->tell_events);
}

void tc_state_watch_set_observer(struct tc_channel_connectivity *c, torc_channel_event_fn fn, void *arg)
{
    struct tc_link *link;
    tc_task_cancel(&c->tell_events);
    while ((link = tc_list_pop(&c->events)))
        event_free(TC_CONTAINER_OF(link, struct event, link));
    c->observer = fn;
    c->observer_arg = arg;
}

void tc_state_watch_init(struct tc_channel_connectivity *c, struct tc_loop *loop)
{
    c->loop = loop;
    atomic_init(&c->published, TORC_CONNECTIVITY_IDLE);
    tc_list_init(&c->events);
    tc_task_init(&c->tell_events, on_tell_events);
    tc_list_init(&c->watches);
    tc_list_init(&c->states);
    tc_task_init(&c->tell, on_tell);
}

void tc_state_watch_publish(struct tc_channel_connectivity *c)
{
    struct published *last = NULL;
    atomic_store(&c->published, (int)c->state);
    if (!tc_list_empty(&c->states))
        last = TC_CONTAINER_OF(c->states.prev, struct published, link);
    if (last && last->state == c->state) {
        tc_status_set(&last->status, tc_status_ref(&c->status));
        return;
    }
    struct published *p = TC_NEW(struct published);
    p->state = c->state;
    p->status = tc_status_ref(&c->status);
    tc_list_append(&c->states, &p->link);
    tc_loop_defer(c->loop, &c->tell);
}

void tc_state_watch_end(struct tc_channel_connectivity *c, bool tell)
{
    struct tc_link *link;
    c->ended = true;
    tc_status_fini(&c->status);
    c->state = TORC_CONNECTIVITY_SHUTDOWN;
    atomic_store(&c->published, TORC_CONNECTIVITY_SHUTDOWN);
    tc_state_watch_set_observer(c, NULL, NULL);
    tc_task_cancel(&c->tell);
    while ((link = tc_list_pop(&c->states)))
        published_drop(TC_CONTAINER_OF(link, struct published, link));
    struct published end = {.state = TORC_CONNECTIVITY_SHUTDOWN};
    if (tell)
        watches_tell(c, &end);
    while (tc_list_pop(&c->watches))
        ;
}
