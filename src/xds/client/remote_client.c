/* A client on one loop that watches through the client of another loop, its origin.
 *
 *   this loop                     mail                     the origin's loop
 *   remote_watch      ---- start ------------------------> tc_xds_client_watch
 *   told_arrives      <--- told -------------------------- on_origin_changed, on_origin_ambient_error
 *   remote_stop_watch ---- stop -------------------------> tc_xds_client_unwatch
 *   watch_gone        <--- gone -------------------------- stop_arrives
 *
 * `gone` is the last mail about a watch: watch_gone frees the watch.
 *
 * A watch has at most one `told` on its way. A later change replaces the value that waits in `news`, under the mutex.
 * So a loop that nobody turns holds one value for each watch, and its watcher may miss values in between. Both loops
 * share the resources, which are immutable. Mail to a closed mailbox is dropped, on the thread of the closer or of any
 * sender; the drop functions see to it that nothing leaks. `close` is the last mail to the origin's loop. */
#include "xds/client/remote_client.h"

#include <pthread.h>

#include "base/mem.h"
#include "xds/client/client_internal.h"
#include "xds/client/remote_load.h"
#include "xds/client/watcher.h"

/* The origin's end of a remote client. The remote client's loop makes this object and sends the two mails. The origin's
 * loop uses the rest. The mail `close` frees the object. */
struct remote_origin {
    struct tc_xds_remote_opts opts; /* with a reference to each mailbox */
    struct tc_xds_client *client;   /* the origin, borrowed from opts.open; NULL before */
    struct tc_mail open, close;
};

struct remote_client {
    struct tc_xds_client base;
    struct tc_mailbox *here, *there; /* a reference each */
    struct remote_origin *origin;    /* freed by its mail `close` */
    struct tc_link watches;          /* of struct remote_watch: the watches that are not stopped */
    struct tc_link watching;         /* of struct tc_xds_watcher: the user of each of these watches */
    struct tc_xds_remote_loads loads;
};

static struct remote_client *remote_of(struct tc_xds_client *base)
{
    return TC_CONTAINER_OF(base, struct remote_client, base);
}

/* --- watches --- */

/* The content of the next `told`. changed: on_changed is due, with `resource`, or with `error` if `resource` is NULL.
 * ambient: on_ambient_error is due, after on_changed. Holds references. */
struct remote_news {
    bool changed, ambient;
    struct tc_xds_resource *resource;
    struct tc_status error, ambient_error;
};

/* One watcher of the remote client, and the watch on the origin for this watcher. Freed by `gone`, the last mail about
 * the watch. */
struct remote_watch {
    /* For the remote client's loop. */
    struct tc_link link;
    struct tc_xds_watcher *user; /* NULL: the watch was stopped */
    /* For the origin's loop. */
    struct tc_xds_watcher watcher;
    /* For both loops; constant, but for the links of the mails, which their mailbox uses. */
    struct remote_origin *origin; /* borrowed; `close` comes after `stop` */
    const struct tc_xds_resource_type *type;
    struct tc_rstr *name;    /* a reference */
    struct tc_mailbox *here; /* a reference */
    struct tc_mail start, stop, told, gone;

    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct remote_news news;
    bool telling; /* `told` is on its way */
};

static void pending_news_fini(struct remote_news *n)
{
    tc_xds_resource_unref(n->resource);
    tc_status_fini(&n->error);
    tc_status_fini(&n->ambient_error);
}

static void told_arrives(struct tc_mail *mail)
{
    struct remote_watch *w = TC_CONTAINER_OF(mail, struct remote_watch, told);
    pthread_mutex_lock(&w->mutex);
    struct remote_news n = w->news;
    w->news = (struct remote_news){0};
    w->telling = false;
    pthread_mutex_unlock(&w->mutex);
    if (w->user && n.changed)
        tc_xds_watch_changed(w->user, n.resource, n.resource ? NULL : &n.error, NULL);
    if (w->user && n.ambient)
        tc_xds_watch_ambient(w->user, &n.ambient_error, NULL);
    pending_news_fini(&n);
}

/* Sends `told` unless it is on its way. Called with the mutex held; releases the mutex. */
static void watch_tell(struct remote_watch *w)
{
    bool telling = w->telling;
    w->telling = true;
    pthread_mutex_unlock(&w->mutex);
    if (!telling)
        tc_mailbox_send(w->here, &w->told);
}

static void on_origin_changed(struct tc_xds_watcher *watcher, struct tc_xds_resource *resource,
                              const struct tc_status *error, struct tc_xds_token *token)
{
    struct remote_watch *w = TC_CONTAINER_OF(watcher, struct remote_watch, watcher);
    (void)token;
    pthread_mutex_lock(&w->mutex);
    pending_news_fini(&w->news);
    w->news = (struct remote_news){.changed = true, .resource = tc_xds_resource_ref(resource)};
    if (error)
        w->news.error = tc_status_ref(error);
    watch_tell(w);
}

static void on_origin_ambient_error(struct tc_xds_watcher *watcher, const struct tc_status *error,
                                    struct tc_xds_token *token)
{
    struct remote_watch *w = TC_CONTAINER_OF(watcher, struct remote_watch, watcher);
    (void)token;
    pthread_mutex_lock(&w->mutex);
    w->news.ambient = true;
    tc_status_set(&w->news.ambient_error, tc_status_ref(error));
    watch_tell(w);
}

static const struct tc_xds_watcher_ops watcher_ops = {.on_changed = on_origin_changed,
                                                      .on_ambient_error = on_origin_ambient_error};

static void start_arrives(struct tc_mail *mail)
{
    struct remote_watch *w = TC_CONTAINER_OF(mail, struct remote_watch, start);
    tc_xds_client_watch(w->origin->client, w->type, tc_rstr_slice(w->name), &w->watcher);
}

static void stop_arrives(struct tc_mail *mail)
{
    struct remote_watch *w = TC_CONTAINER_OF(mail, struct remote_watch, stop);
    tc_xds_client_unwatch(w->origin->client, &w->watcher);
    tc_mailbox_send(w->here, &w->gone);
}

static void stop_dropped(struct tc_mail *mail)
{
    struct remote_watch *w = TC_CONTAINER_OF(mail, struct remote_watch, stop);
    tc_mailbox_send(w->here, &w->gone);
}

static void watch_gone(struct tc_mail *mail)
{
    struct remote_watch *w = TC_CONTAINER_OF(mail, struct remote_watch, gone);
    pending_news_fini(&w->news);
    pthread_mutex_destroy(&w->mutex);
    tc_rstr_unref(w->name);
    tc_mailbox_unref(w->here);
    tc_free(w);
}

static void remote_watch(struct tc_xds_client *base, const struct tc_xds_resource_type *type, struct tc_slice name,
                         struct tc_xds_watcher *watcher)
{
    struct remote_client *r = remote_of(base);
    struct remote_watch *w = TC_NEW(struct remote_watch);
    w->user = watcher;
    w->watcher.ops = &watcher_ops;
    w->origin = r->origin;
    w->type = type;
    w->name = tc_rstr_new(name.data, name.len);
    w->here = tc_mailbox_ref(r->here);
    w->start = (struct tc_mail){.run = start_arrives};
    w->stop = (struct tc_mail){.run = stop_arrives, .drop = stop_dropped};
    w->told = (struct tc_mail){.run = told_arrives};
    w->gone = (struct tc_mail){.run = watch_gone, .drop = watch_gone};
    pthread_mutex_init(&w->mutex, NULL);
    watcher->remote = w;
    tc_list_init(&w->link);
    tc_list_append(&r->watches, &w->link);
    tc_xds_watch_start(watcher, base, NULL, &r->watching);
    tc_mailbox_send(r->there, &w->start);
}

static void remote_stop_watch(struct remote_client *r, struct remote_watch *w)
{
    tc_list_remove(&w->link);
    tc_xds_watch_stop(w->user);
    w->user = NULL;
    tc_mailbox_send(r->there, &w->stop);
}

static void remote_unwatch(struct tc_xds_client *base, struct tc_xds_watcher *watcher)
{
    remote_stop_watch(remote_of(base), watcher->remote);
}

/* --- life --- */

static void origin_opens(struct tc_mail *mail)
{
    struct remote_origin *o = TC_CONTAINER_OF(mail, struct remote_origin, open);
    o->client = o->opts.open(o->opts.arg);
}

static void origin_closes(struct tc_mail *mail)
{
    struct remote_origin *o = TC_CONTAINER_OF(mail, struct remote_origin, close);
    struct tc_mailbox *here = o->opts.here, *there = o->opts.there;
    o->opts.close(o->opts.arg);
    tc_free(o);
    tc_mailbox_unref(here);
    tc_mailbox_unref(there);
}

static void remote_free(struct tc_xds_client *base)
{
    struct remote_client *r = remote_of(base);
    while (!tc_list_empty(&r->watches))
        remote_stop_watch(r, TC_CONTAINER_OF(r->watches.next, struct remote_watch, link));
    tc_xds_remote_loads_end(&r->loads);
    tc_mailbox_send(r->there, &r->origin->close);
    tc_mailbox_unref(r->here);
    tc_mailbox_unref(r->there);
    tc_xds_bootstrap_unref(base->bootstrap);
    tc_free(r);
}

/* --- backoff, loads --- */

struct remote_reset {
    struct tc_mail mail;
    struct remote_origin *origin;
};

static void reset_arrives(struct tc_mail *mail)
{
    struct remote_reset *r = TC_CONTAINER_OF(mail, struct remote_reset, mail);
    tc_xds_client_reset_backoff(r->origin->client);
    tc_free(r);
}

static void reset_dropped(struct tc_mail *mail)
{
    tc_free(TC_CONTAINER_OF(mail, struct remote_reset, mail));
}

static void remote_reset_backoff(struct tc_xds_client *base)
{
    struct remote_client *c = remote_of(base);
    struct remote_reset *r = TC_NEW(struct remote_reset);
    r->mail = (struct tc_mail){.run = reset_arrives, .drop = reset_dropped};
    r->origin = c->origin;
    tc_mailbox_send(c->there, &r->mail);
}

static struct tc_load_cluster *remote_load(struct tc_xds_client *base, const struct tc_xds_server *server,
                                           struct tc_rstr *cluster, struct tc_rstr *service)
{
    return tc_xds_remote_load(&remote_of(base)->loads, server->key, cluster, service);
}

static const struct tc_xds_client_ops remote_ops = {
    .watch = remote_watch,
    .unwatch = remote_unwatch,
    .reset_backoff = remote_reset_backoff,
    .load = remote_load,
    .free = remote_free,
};

struct tc_xds_client *tc_xds_remote_client_new(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                               const struct tc_xds_remote_opts *opts)
{
    struct remote_client *c = TC_NEW(struct remote_client);
    struct remote_origin *o = TC_NEW(struct remote_origin);
    tc_xds_client_init(&c->base, &remote_ops, loop, bootstrap);
    o->opts = *opts;
    o->opts.here = tc_mailbox_ref(opts->here);
    o->opts.there = tc_mailbox_ref(opts->there);
    o->open = (struct tc_mail){.run = origin_opens};
    o->close = (struct tc_mail){.run = origin_closes, .drop = origin_closes};
    c->here = tc_mailbox_ref(opts->here);
    c->there = tc_mailbox_ref(opts->there);
    c->origin = o;
    tc_list_init(&c->watches);
    tc_list_init(&c->watching);
    tc_xds_remote_loads_init(&c->loads, loop, c->here, c->there, &o->client);
    tc_mailbox_send(o->opts.there, &o->open);
    return &c->base;
}
