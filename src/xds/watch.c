/* Delivery to watchers, by the loop's queue, and the tokens of flow control. */
#include "xds/client_impl.h"

/* --- tokens --- */

struct tc_xds_done {
    struct tc_lref refs;
    struct tc_xds_channel *channel; /* NULL: its stream is gone */
};

struct tc_xds_done *tc_xds_done_new(struct tc_xds_channel *ch)
{
    struct tc_xds_done *d = TC_NEW(struct tc_xds_done);
    tc_lref_init(&d->refs);
    d->channel = ch;
    return d;
}

void tc_xds_done_ref(struct tc_xds_done *d)
{
    if (d)
        tc_lref_inc(&d->refs);
}

void tc_xds_done_unref(struct tc_xds_done *d)
{
    if (!d || !tc_lref_dec(&d->refs))
        return;
    struct tc_xds_channel *ch = d->channel;
    tc_free(d);
    if (ch)
        tc_xds_ads_read(ch);
}

void tc_xds_done_detach(struct tc_xds_done *d)
{
    d->channel = NULL;
}

/* --- watches --- */

struct event {
    struct tc_link link;
    bool ambient;
    struct tc_xds_resource *resource;
    struct tc_status error;
    struct tc_xds_done *done;
};

/* The client's side of a watcher. */
struct watch {
    struct tc_xds_client *client;
    struct tc_xds_watcher *watcher;
    struct tc_xds_entry *entry; /* NULL: the name cannot be */
    struct tc_link events;
    struct tc_task task;
};

static void event_free(struct event *e)
{
    tc_xds_resource_unref(e->resource);
    tc_status_fini(&e->error);
    tc_xds_done_unref(e->done);
    tc_free(e);
}

/* One event a run: a callback may end any watch, this one too, and the client. */
static void on_task(struct tc_task *task)
{
    struct watch *watch = TC_CONTAINER_OF(task, struct watch, task);
    struct tc_xds_watcher *w = watch->watcher;
    struct event *e = TC_CONTAINER_OF(tc_list_pop(&watch->events), struct event, link);
    if (!tc_list_empty(&watch->events))
        tc_loop_defer(watch->client->loop, &watch->task);
    const struct tc_status *error = e->resource ? NULL : &e->error;
    if (e->ambient)
        w->ops->on_ambient_error(w, &e->error, e->done);
    else
        w->ops->on_changed(w, e->resource, error, e->done);
    event_free(e);
}

void tc_xds_watch_start(struct tc_xds_client *c, struct tc_xds_watcher *w, struct tc_xds_entry *e)
{
    struct watch *watch = TC_NEW(struct watch);
    watch->client = c;
    watch->watcher = w;
    watch->entry = e;
    tc_list_init(&watch->events);
    tc_task_init(&watch->task, on_task);
    w->internal = watch;
    tc_list_init(&w->link);
    tc_list_append(e ? &e->watches : &c->orphans, &w->link);
}

void tc_xds_watch_stop(struct tc_xds_watcher *w)
{
    struct watch *watch = w->internal;
    struct tc_link *link;
    w->internal = NULL;
    tc_list_remove(&w->link);
    tc_task_cancel(&watch->task);
    while ((link = tc_list_pop(&watch->events)))
        event_free(TC_CONTAINER_OF(link, struct event, link));
    tc_free(watch);
}

struct tc_xds_entry *tc_xds_watch_entry(const struct tc_xds_watcher *w)
{
    const struct watch *watch = w->internal;
    return watch->entry;
}

static void queue_event(struct tc_xds_watcher *w, bool ambient, struct tc_xds_resource *resource,
                        const struct tc_status *error, struct tc_xds_done *done)
{
    struct watch *watch = w->internal;
    struct event *e = TC_NEW(struct event);
    e->ambient = ambient;
    e->resource = tc_xds_resource_ref(resource);
    if (error)
        e->error = tc_status_ref(error);
    e->done = done;
    tc_xds_done_ref(done);
    tc_list_init(&e->link);
    tc_list_append(&watch->events, &e->link);
    tc_loop_defer(watch->client->loop, &watch->task);
}

void tc_xds_watch_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                          struct tc_xds_done *done)
{
    queue_event(w, false, resource, error, done);
}

void tc_xds_watch_ambient(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_done *done)
{
    queue_event(w, true, NULL, error, done);
}
