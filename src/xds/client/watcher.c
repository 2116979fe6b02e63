/* Delivery to watchers, by the loop's queue.
 *
 * Each watcher has a queue of events and one task. A new on_changed drops the queued events: a slow watcher sees the
 * newest state, not the history. Each run of the task delivers one event, because a callback may end any watch, its own
 * included. An event holds the token of its response until the callback returns. */
#include "xds/client/watcher.h"

#include "base/mem.h"
#include "xds/client/client_internal.h"

/* A callback that is due; holds references. */
struct watch_event {
    struct tc_link link;
    bool ambient;                     /* on_ambient_error; false: on_changed */
    struct tc_xds_resource *resource; /* NULL: the event has `error` */
    struct tc_status error;
    struct tc_xds_token *token; /* of the response that brought the news; NULL: none */
};

/* The client's side of a watcher: what tc_xds_watcher.internal points at. */
struct watch_queue {
    struct tc_xds_client *client;
    struct tc_xds_watcher *watcher;
    struct tc_xds_entry *entry; /* NULL: the name cannot be requested, or the client is remote */
    struct tc_link events;      /* of struct watch_event */
    struct tc_task task;        /* queued while there are events */
};

static void watch_event_free(struct watch_event *e)
{
    tc_xds_resource_unref(e->resource);
    tc_status_fini(&e->error);
    tc_xds_token_unref(e->token);
    tc_free(e);
}

static void watch_drop_events(struct watch_queue *watch)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&watch->events)))
        watch_event_free(TC_CONTAINER_OF(link, struct watch_event, link));
}

/* Delivers one event. The callback may end any watch, this watch included, and the client. */
static void on_deliver(struct tc_task *task)
{
    struct watch_queue *watch = TC_CONTAINER_OF(task, struct watch_queue, task);
    struct tc_xds_watcher *w = watch->watcher;
    struct watch_event *e = TC_CONTAINER_OF(tc_list_pop(&watch->events), struct watch_event, link);
    if (!tc_list_empty(&watch->events))
        tc_loop_defer(watch->client->loop, &watch->task);
    const struct tc_status *error = e->resource ? NULL : &e->error;
    if (e->ambient)
        w->ops->on_ambient_error(w, &e->error, e->token);
    else
        w->ops->on_changed(w, e->resource, error, e->token);
    watch_event_free(e);
}

void tc_xds_watch_start(struct tc_xds_watcher *w, struct tc_xds_client *holder, struct tc_xds_entry *entry,
                        struct tc_link *list)
{
    struct watch_queue *watch = TC_NEW(struct watch_queue);
    watch->client = holder;
    watch->watcher = w;
    watch->entry = entry;
    tc_list_init(&watch->events);
    tc_task_init(&watch->task, on_deliver);
    w->internal = watch;
    tc_list_init(&w->link);
    tc_list_append(list, &w->link);
}

void tc_xds_watch_stop(struct tc_xds_watcher *w)
{
    struct watch_queue *watch = w->internal;
    w->internal = NULL;
    tc_list_remove(&w->link);
    tc_task_cancel(&watch->task);
    watch_drop_events(watch);
    tc_free(watch);
}

struct tc_xds_entry *tc_xds_watch_entry(const struct tc_xds_watcher *w)
{
    const struct watch_queue *watch = w->internal;
    return watch->entry;
}

void tc_xds_watch_stop_all(struct tc_link *list)
{
    while (!tc_list_empty(list))
        tc_xds_watch_stop(TC_CONTAINER_OF(list->next, struct tc_xds_watcher, link));
}

struct tc_xds_client *tc_xds_watch_client(const struct tc_xds_watcher *w)
{
    const struct watch_queue *watch = w->internal;
    return watch->client;
}

static void watch_queue_event(struct tc_xds_watcher *w, bool ambient, struct tc_xds_resource *resource,
                              const struct tc_status *error, struct tc_xds_token *token)
{
    struct watch_queue *watch = w->internal;
    struct watch_event *e = TC_NEW(struct watch_event);
    e->ambient = ambient;
    e->resource = tc_xds_resource_ref(resource);
    if (error)
        e->error = tc_status_ref(error);
    e->token = token;
    tc_xds_token_ref(token);
    tc_list_init(&e->link);
    tc_list_append(&watch->events, &e->link);
    tc_loop_defer(watch->client->loop, &watch->task);
}

void tc_xds_watch_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                          struct tc_xds_token *token)
{
    /* on_changed ends an ambient error by itself, so the queued events say nothing that still holds. Without them, the
     * task's next run delivers the value: all watchers get the values of one response before any task that their
     * callbacks defer. */
    watch_drop_events(w->internal);
    watch_queue_event(w, false, resource, error, token);
}

void tc_xds_watch_ambient(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_token *token)
{
    watch_queue_event(w, true, NULL, error, token);
}
