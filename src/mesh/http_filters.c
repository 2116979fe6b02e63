#include "mesh/http_filters.h"

#include "base/mem.h"
#include "mesh/cluster_ref.h"
#include "mesh/fault_filter.h"
#include "mesh/session_filter.h"

/* The router is no filter here: behind the last one comes the pick. */
static const struct tc_http_filter_class *const classes[] = {&tc_fault_filter_class, &tc_session_filter_class};

struct chain {
    struct tc_filter_chain base;
    struct tc_xds_config *config; /* a reference: settings and the route live in its resources */
    const struct tc_route *route;
    struct tc_call_filter filters[];
};

static const struct tc_http_filter_class *class_of(const struct tc_http_filter_type *type)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(classes); i++)
        if (classes[i]->type == type)
            return classes[i];
    return NULL;
}

/* A39: the weighted cluster's, else the route's, else the virtual host's. */
static const struct tc_http_filter_override *override_of(const struct tc_virtual_host *vhost,
                                                         const struct tc_route *route,
                                                         const struct tc_weighted_cluster *cluster,
                                                         struct tc_slice name)
{
    const struct tc_http_filter_override *o = cluster ? tc_http_filter_override_find(&cluster->overrides, name) : NULL;
    if (!o)
        o = tc_http_filter_override_find(&route->overrides, name);
    return o ? o : tc_http_filter_override_find(&vhost->overrides, name);
}

/* The instance as it is on the route; false when it does nothing there. */
static bool merge(const struct tc_http_filter *filter, const struct tc_http_filter_override *override,
                  struct tc_call_filter *out)
{
    const struct tc_http_filter_class *cls = class_of(filter->type);
    if (!cls || (override ? override->disabled : filter->disabled))
        return false;
    /* An override under the name of a filter of another type is none of it. */
    bool overridden = override && override->type == filter->type;
    *out = (struct tc_call_filter){
        .ops = cls->ops, .name = filter->name, .config = overridden ? override->config : filter->config};
    return !cls->applies || cls->applies(out->config);
}

static void chain_free(struct tc_filter_chain *base)
{
    struct chain *chain = TC_CONTAINER_OF(base, struct chain, base);
    tc_xds_config_unref(chain->config);
    tc_free(chain);
}

struct tc_filter_chain *tc_http_filters_chain(struct tc_xds_config *config, const struct tc_route *route,
                                              const struct tc_weighted_cluster *cluster)
{
    const struct tc_listener *l = config->listener;
    struct chain *chain = NULL;
    for (size_t i = 0; i < l->n_filters; i++) {
        struct tc_call_filter filter;
        if (!merge(&l->filters[i], override_of(config->vhost, route, cluster, l->filters[i].name), &filter))
            continue;
        if (!chain) {
            chain = tc_calloc(1, sizeof(*chain) + (l->n_filters - i) * sizeof(chain->filters[0]));
            tc_lref_init(&chain->base.ref);
            chain->base.free = chain_free;
            chain->base.filters = chain->filters;
            chain->config = tc_xds_config_ref(config);
            chain->route = route;
        }
        chain->filters[chain->base.n++] = filter;
    }
    return chain ? &chain->base : NULL;
}

static struct tc_rstr *cluster_of_route(const struct tc_route *route, struct tc_slice name)
{
    if (route->kind == TC_ROUTE_CLUSTER)
        return tc_slice_eq(tc_rstr_slice(route->cluster), name) ? route->cluster : NULL;
    for (size_t i = 0; i < route->n_weighted; i++)
        if (tc_slice_eq(tc_rstr_slice(route->weighted[i].name), name))
            return route->weighted[i].name;
    return NULL;
}

bool tc_http_filters_use_cluster(struct tc_filter_call *call, struct tc_slice name)
{
    const struct chain *chain = TC_CONTAINER_OF(call->config->filters, struct chain, base);
    struct tc_rstr *cluster = cluster_of_route(chain->route, name);
    struct tc_cluster_ref *now = call->config->hold;
    struct tc_cluster_ref *other = cluster && now ? tc_cluster_ref_find(now, tc_rstr_slice(cluster)) : NULL;
    if (!other)
        return false;
    call->config->hold = tc_cluster_ref_hold(other);
    call->config->cluster = tc_rstr_slice(other->name);
    tc_cluster_ref_release(now);
    return true;
}
