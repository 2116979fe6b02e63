/* A client in front of two clients. The shared client may outlive this one, so watches on the shared client are kept in
 * a list, and end with this client. Watches on the own client end with the own client. */
#include "xds/client/forwarding_client.h"

#include "base/mem.h"
#include "xds/client/client_internal.h"
#include "xds/client/name.h"
#include "xds/client/watcher.h"

struct forwarding_client {
    struct tc_xds_client base;
    struct tc_xds_client *own, *shared; /* a reference each */
    struct tc_link watches;             /* the watchers on `shared`, by tc_xds_watcher.forwarded */
};

static struct forwarding_client *forwarding_of(struct tc_xds_client *base)
{
    return TC_CONTAINER_OF(base, struct forwarding_client, base);
}

/* Returns whether the resource is watched on the shared client. Returns false for a malformed name or an unknown
 * authority: the own client reports the error. */
static bool name_is_shared(const struct tc_xds_bootstrap *b, const struct tc_xds_resource_type *type,
                           struct tc_slice text)
{
    struct tc_xds_name name;
    char *why = NULL;
    if (!tc_xds_name_parse(type, text, &name, &why)) {
        tc_free(why);
        return false;
    }
    const struct tc_xds_authority *authority =
        name.federated ? tc_xds_bootstrap_authority(b, tc_rstr_slice(name.authority)) : NULL;
    bool known = !name.federated || authority;
    tc_xds_name_fini(&name);
    return known && tc_xds_bootstrap_shares(b, authority);
}

static void forwarding_watch(struct tc_xds_client *base, const struct tc_xds_resource_type *type, struct tc_slice name,
                             struct tc_xds_watcher *watcher)
{
    struct forwarding_client *c = forwarding_of(base);
    bool shared = name_is_shared(base->bootstrap, type, name);
    tc_xds_client_watch(shared ? c->shared : c->own, type, name, watcher);
    tc_list_init(&watcher->forwarded);
    if (shared)
        tc_list_append(&c->watches, &watcher->forwarded);
}

static void forwarding_unwatch(struct tc_xds_client *base, struct tc_xds_watcher *watcher)
{
    (void)base;
    tc_list_remove(&watcher->forwarded);
    tc_xds_client_unwatch(tc_xds_watch_client(watcher), watcher);
}

static void forwarding_reset_backoff(struct tc_xds_client *base)
{
    struct forwarding_client *c = forwarding_of(base);
    tc_xds_client_reset_backoff(c->own);
    tc_xds_client_reset_backoff(c->shared);
}

static struct tc_load_cluster *forwarding_load(struct tc_xds_client *base, const struct tc_xds_server *server,
                                               struct tc_rstr *cluster, struct tc_rstr *service)
{
    struct forwarding_client *c = forwarding_of(base);
    bool shared = tc_xds_bootstrap_shares_server(base->bootstrap, server);
    return tc_xds_client_load(shared ? c->shared : c->own, server->key, cluster, service);
}

static void forwarding_dump(const struct tc_xds_client *base, tc_xds_dump_fn fn, void *arg)
{
    tc_xds_client_dump(((const struct forwarding_client *)base)->own, fn, arg);
}

static void forwarding_free(struct tc_xds_client *base)
{
    struct forwarding_client *c = forwarding_of(base);
    while (!tc_list_empty(&c->watches))
        forwarding_unwatch(base, TC_CONTAINER_OF(c->watches.next, struct tc_xds_watcher, forwarded));
    tc_xds_client_unref(c->own);
    tc_xds_client_unref(c->shared);
    tc_xds_bootstrap_unref(base->bootstrap);
    tc_free(c);
}

static const struct tc_xds_client_ops forwarding_ops = {
    .watch = forwarding_watch,
    .unwatch = forwarding_unwatch,
    .reset_backoff = forwarding_reset_backoff,
    .load = forwarding_load,
    .dump = forwarding_dump,
    .free = forwarding_free,
};

struct tc_xds_client *tc_xds_forwarding_client_new(struct tc_xds_client *own, struct tc_xds_client *shared)
{
    struct forwarding_client *c = TC_NEW(struct forwarding_client);
    tc_xds_client_init(&c->base, &forwarding_ops, shared->loop, shared->bootstrap);
    c->own = own;
    c->shared = tc_xds_client_ref(shared);
    tc_list_init(&c->watches);
    return &c->base;
}
