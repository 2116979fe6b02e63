/* A chain holds a reference of the XdsConfig, since its route and the settings of its filters live in the resources of
 * the XdsConfig. The router is not in the chain: the pick comes after the last filter. */
#include "xds/filter/filter_chain.h"

#include "base/mem.h"
#include "xds/resource/cluster_ref.h"

struct route_filter_chain {
    struct tc_filter_chain base;
    struct tc_xds_config *config;    /* a reference */
    const struct tc_route *route;    /* of the config's resources */
    struct tc_call_filter filters[]; /* base.n of them */
};

static void chain_free(struct tc_filter_chain *base)
{
    struct route_filter_chain *chain = TC_CONTAINER_OF(base, struct route_filter_chain, base);
    tc_xds_config_unref(chain->config);
    tc_free(chain);
}

struct tc_filter_chain *tc_http_filter_chain_new(struct tc_xds_config *config, const struct tc_route *route, size_t max)
{
    struct route_filter_chain *chain = tc_calloc(1, sizeof(*chain) + max * sizeof(chain->filters[0]));
    tc_lref_init(&chain->base.ref);
    chain->base.free = chain_free;
    chain->base.filters = chain->filters;
    chain->config = tc_xds_config_ref(config);
    chain->route = route;
    return &chain->base;
}

void tc_http_filter_chain_add(struct tc_filter_chain *base, const struct tc_call_filter *filter)
{
    struct route_filter_chain *chain = TC_CONTAINER_OF(base, struct route_filter_chain, base);
    chain->filters[base->n++] = *filter;
}

/* Returns the route's cluster of this name, borrowed, or NULL. */
static struct tc_rstr *route_cluster(const struct tc_route *route, struct tc_slice name)
{
    if (route->kind == TC_ROUTE_CLUSTER)
        return tc_slice_eq(tc_rstr_slice(route->cluster), name) ? route->cluster : NULL;
    for (size_t i = 0; i < route->n_weighted; i++)
        if (tc_slice_eq(tc_rstr_slice(route->weighted[i].name), name))
            return route->weighted[i].name;
    return NULL;
}

bool tc_http_filter_chain_use_cluster(struct tc_filter_call *call, struct tc_slice name)
{
    const struct route_filter_chain *chain = TC_CONTAINER_OF(call->config->filters, struct route_filter_chain, base);
    struct tc_rstr *cluster = route_cluster(chain->route, name);
    struct tc_cluster_ref *now = call->config->hold;
    struct tc_cluster_ref *other = cluster && now ? tc_cluster_ref_find(now, tc_rstr_slice(cluster)) : NULL;
    if (!other)
        return false;
    call->config->hold = tc_cluster_ref_hold(other);
    call->config->cluster = tc_rstr_slice(other->name);
    tc_cluster_ref_release(now);
    return true;
}
