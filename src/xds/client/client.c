/* The interface of xDS clients: references, and dispatch to the kind. */
#include "xds/client/client.h"

#include "xds/client/client_internal.h"

void tc_xds_client_init(struct tc_xds_client *c, const struct tc_xds_client_ops *ops, struct tc_loop *loop,
                        struct tc_xds_bootstrap *bootstrap)
{
    tc_lref_init(&c->refs);
    c->ops = ops;
    c->loop = loop;
    c->bootstrap = tc_xds_bootstrap_ref(bootstrap);
}

struct tc_xds_client *tc_xds_client_ref(struct tc_xds_client *c)
{
    if (c)
        tc_lref_inc(&c->refs);
    return c;
}

void tc_xds_client_unref(struct tc_xds_client *c)
{
    if (c && tc_lref_dec(&c->refs))
        c->ops->free(c);
}

const char *tc_xds_node_id(const struct tc_xds_client *c)
{
    return tc_rstr_cstr(c->bootstrap->node_id);
}

void tc_xds_client_watch(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                         struct tc_xds_watcher *watcher)
{
    c->ops->watch(c, type, name, watcher);
}

void tc_xds_client_unwatch(struct tc_xds_client *c, struct tc_xds_watcher *watcher)
{
    if (watcher->internal)
        c->ops->unwatch(c, watcher);
}

void tc_xds_client_reset_backoff(struct tc_xds_client *c)
{
    c->ops->reset_backoff(c);
}

struct tc_load_cluster *tc_xds_client_load(struct tc_xds_client *c, const struct tc_rstr *server_key,
                                           struct tc_rstr *cluster, struct tc_rstr *service)
{
    const struct tc_xds_server *server = tc_xds_bootstrap_server(c->bootstrap, server_key);
    return server ? c->ops->load(c, server, cluster, service) : NULL;
}

const struct tc_xds_bootstrap *tc_xds_client_bootstrap(const struct tc_xds_client *c)
{
    return c->bootstrap;
}

void tc_xds_client_dump(const struct tc_xds_client *c, tc_xds_dump_fn fn, void *arg)
{
    if (c->ops->dump)
        c->ops->dump(c, fn, arg);
}
