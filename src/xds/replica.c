#include "xds/replica.h"

#include <pthread.h>

#include "base/mem.h"
#include "xds/replica_impl.h"

/* --- watches --- */

/* What a watcher was not told yet: the newest value, or why there is none, and the error beside it. A loop that nobody
 * turns for a while holds this much of each watch, whatever comes in the meantime. */
struct news {
    bool changed, ambient;
    struct tc_xds_resource *resource;
    struct tc_status error, ambient_error;
};

/* One watcher, and the watch that the origin keeps for it. It ends when the origin's last word about it has come. */
struct watch {
    /* The replica's loop. */
    struct tc_link link;
    struct tc_xds_watcher *user; /* NULL: it was stopped */
    /* The origin's loop. */
    struct tc_xds_watcher watcher;
    /* Both; never changed. */
    struct tc_xds_origin *origin;
    const struct tc_xds_resource_type *type;
    struct tc_rstr *name;
    struct tc_mailbox *here;
    struct tc_mail start, stop, told, gone;

    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct news news;
    bool telling; /* `told` is on its way */
};

static void news_fini(struct news *n)
{
    tc_xds_resource_unref(n->resource);
    tc_status_fini(&n->error);
    tc_status_fini(&n->ambient_error);
}

static void told_arrives(struct tc_mail *mail)
{
    struct watch *w = TC_CONTAINER_OF(mail, struct watch, told);
    pthread_mutex_lock(&w->mutex);
    struct news n = w->news;
    w->news = (struct news){0};
    w->telling = false;
    pthread_mutex_unlock(&w->mutex);
    if (w->user && n.changed)
        tc_xds_watch_changed(w->user, n.resource, n.resource ? NULL : &n.error, NULL);
    if (w->user && n.ambient)
        tc_xds_watch_ambient(w->user, &n.ambient_error, NULL);
    news_fini(&n);
}

static void told_dropped(struct tc_mail *mail)
{
    (void)mail; /* the replica's loop ended, and its watches with it */
}

/* With the mutex held, which it gives back. */
static void tell(struct watch *w)
{
    bool telling = w->telling;
    w->telling = true;
    pthread_mutex_unlock(&w->mutex);
    if (!telling)
        tc_mailbox_send(w->here, &w->told);
}

static void on_changed(struct tc_xds_watcher *watcher, struct tc_xds_resource *resource, const struct tc_status *error,
                       struct tc_xds_done *done)
{
    struct watch *w = TC_CONTAINER_OF(watcher, struct watch, watcher);
    (void)done;
    pthread_mutex_lock(&w->mutex);
    news_fini(&w->news);
    w->news = (struct news){.changed = true, .resource = tc_xds_resource_ref(resource)};
    if (error)
        w->news.error = tc_status_ref(error);
    tell(w);
}

static void on_ambient_error(struct tc_xds_watcher *watcher, const struct tc_status *error, struct tc_xds_done *done)
{
    struct watch *w = TC_CONTAINER_OF(watcher, struct watch, watcher);
    (void)done;
    pthread_mutex_lock(&w->mutex);
    w->news.ambient = true;
    tc_status_set(&w->news.ambient_error, tc_status_ref(error));
    tell(w);
}

static const struct tc_xds_watcher_ops watcher_ops = {.on_changed = on_changed, .on_ambient_error = on_ambient_error};

static void start_arrives(struct tc_mail *mail)
{
    struct watch *w = TC_CONTAINER_OF(mail, struct watch, start);
    tc_xds_client_watch(w->origin->client, w->type, tc_rstr_slice(w->name), &w->watcher);
}

static void start_dropped(struct tc_mail *mail)
{
    (void)mail; /* its stop follows */
}

static void stop_arrives(struct tc_mail *mail)
{
    struct watch *w = TC_CONTAINER_OF(mail, struct watch, stop);
    tc_xds_client_unwatch(w->origin->client, &w->watcher);
    tc_mailbox_send(w->here, &w->gone);
}

static void stop_dropped(struct tc_mail *mail)
{
    struct watch *w = TC_CONTAINER_OF(mail, struct watch, stop);
    tc_mailbox_send(w->here, &w->gone);
}

/* The origin tells nothing after it. */
static void gone(struct tc_mail *mail)
{
    struct watch *w = TC_CONTAINER_OF(mail, struct watch, gone);
    news_fini(&w->news);
    pthread_mutex_destroy(&w->mutex);
    tc_rstr_unref(w->name);
    tc_mailbox_unref(w->here);
    tc_free(w);
}

void tc_xds_replica_watch(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                          struct tc_xds_watcher *watcher)
{
    struct tc_xds_replica *r = c->replica;
    struct watch *w = TC_NEW(struct watch);
    w->user = watcher;
    w->watcher.ops = &watcher_ops;
    w->origin = r->origin;
    w->type = type;
    w->name = tc_rstr_new(name.data, name.len);
    w->here = tc_mailbox_ref(r->here);
    w->start = (struct tc_mail){.run = start_arrives, .drop = start_dropped};
    w->stop = (struct tc_mail){.run = stop_arrives, .drop = stop_dropped};
    w->told = (struct tc_mail){.run = told_arrives, .drop = told_dropped};
    w->gone = (struct tc_mail){.run = gone, .drop = gone};
    pthread_mutex_init(&w->mutex, NULL);
    watcher->remote = w;
    tc_list_init(&w->link);
    tc_list_append(&r->watches, &w->link);
    tc_xds_watch_start(c, watcher, NULL);
    tc_mailbox_send(r->there, &w->start);
}

static void stop_watch(struct tc_xds_replica *r, struct watch *w)
{
    tc_list_remove(&w->link);
    tc_xds_watch_stop(w->user);
    w->user = NULL;
    tc_mailbox_send(r->there, &w->stop);
}

void tc_xds_replica_unwatch(struct tc_xds_client *c, struct tc_xds_watcher *watcher)
{
    stop_watch(c->replica, watcher->remote);
}

/* --- life --- */

static void origin_opens(struct tc_mail *mail)
{
    struct tc_xds_origin *o = TC_CONTAINER_OF(mail, struct tc_xds_origin, open);
    o->client = o->opts.open(o->opts.arg);
}

static void open_dropped(struct tc_mail *mail)
{
    (void)mail; /* its close follows */
}

static void origin_closes(struct tc_mail *mail)
{
    struct tc_xds_origin *o = TC_CONTAINER_OF(mail, struct tc_xds_origin, close);
    struct tc_mailbox *here = o->opts.here, *there = o->opts.there;
    o->opts.close(o->opts.arg);
    tc_free(o);
    tc_mailbox_unref(here);
    tc_mailbox_unref(there);
}

struct tc_xds_client *tc_xds_client_new_replica(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                                const struct tc_xds_replica_opts *opts)
{
    struct tc_xds_client *c = tc_xds_client_new(loop, bootstrap, NULL, NULL);
    struct tc_xds_origin *o = TC_NEW(struct tc_xds_origin);
    o->opts = *opts;
    o->opts.here = tc_mailbox_ref(opts->here);
    o->opts.there = tc_mailbox_ref(opts->there);
    o->open = (struct tc_mail){.run = origin_opens, .drop = open_dropped};
    o->close = (struct tc_mail){.run = origin_closes, .drop = origin_closes};
    c->replica = TC_NEW(struct tc_xds_replica);
    c->replica->here = tc_mailbox_ref(opts->here);
    c->replica->there = tc_mailbox_ref(opts->there);
    c->replica->origin = o;
    tc_list_init(&c->replica->watches);
    tc_list_init(&c->replica->loads);
    tc_mailbox_send(o->opts.there, &o->open);
    return c;
}

void tc_xds_replica_end(struct tc_xds_replica *r)
{
    while (!tc_list_empty(&r->watches))
        stop_watch(r, TC_CONTAINER_OF(r->watches.next, struct watch, link));
    tc_xds_replica_loads_end(r);
    tc_mailbox_send(r->there, &r->origin->close);
    tc_mailbox_unref(r->here);
    tc_mailbox_unref(r->there);
    tc_free(r);
}

struct reset {
    struct tc_mail mail;
    struct tc_xds_origin *origin;
};

static void reset_arrives(struct tc_mail *mail)
{
    struct reset *r = TC_CONTAINER_OF(mail, struct reset, mail);
    tc_xds_client_reset_backoff(r->origin->client);
    tc_free(r);
}

static void reset_dropped(struct tc_mail *mail)
{
    tc_free(TC_CONTAINER_OF(mail, struct reset, mail));
}

void tc_xds_replica_reset_backoff(struct tc_xds_client *c)
{
    struct reset *r = TC_NEW(struct reset);
    r->mail = (struct tc_mail){.run = reset_arrives, .drop = reset_dropped};
    r->origin = c->replica->origin;
    tc_mailbox_send(c->replica->there, &r->mail);
}
