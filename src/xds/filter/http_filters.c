/* Builds the filter chain of a route (A39). The listener gives the instances and their order, the most specific
 * override gives the settings. Chains are made when a config selector is made, not for each RPC. */
#include "xds/filter/http_filters.h"

/* Returns the override of the instance `name`, borrowed: the weighted cluster's, else the route's, else the virtual
 * host's (A39); NULL: none. `cluster` may be NULL. */
static const struct tc_http_filter_override *filter_override(const struct tc_virtual_host *vhost,
                                                             const struct tc_route *route,
                                                             const struct tc_weighted_cluster *cluster,
                                                             struct tc_slice name)
{
    const struct tc_http_filter_override *o = cluster ? tc_http_filter_override_find(&cluster->overrides, name) : NULL;
    if (!o)
        o = tc_http_filter_override_find(&route->overrides, name);
    return o ? o : tc_http_filter_override_find(&vhost->overrides, name);
}

/* Stores the instance with its merged settings. Returns false if the instance leaves the RPCs alone. `override` may be
 * NULL. */
static bool filter_merge(const struct tc_http_filter *filter, const struct tc_http_filter_override *override,
                         struct tc_call_filter *out)
{
    const struct tc_http_filter_type *type = filter->type;
    if (!type->ops || (override ? override->disabled : filter->disabled))
        return false;
    /* An override of another type does not apply. One with `disabled` has no type: it was handled above. */
    bool overridden = override && override->type == type;
    *out = (struct tc_call_filter){
        .ops = type->ops, .name = filter->name, .config = overridden ? override->config : filter->config};
    return !type->applies || type->applies(out->config);
}

struct tc_filter_chain *tc_http_filters_chain(struct tc_xds_config *config, const struct tc_route *route,
                                              const struct tc_weighted_cluster *cluster)
{
    const struct tc_listener *l = config->listener;
    struct tc_filter_chain *chain = NULL;
    for (size_t i = 0; i < l->n_filters; i++) {
        struct tc_call_filter filter;
        if (!filter_merge(&l->filters[i], filter_override(config->vhost, route, cluster, l->filters[i].name), &filter))
            continue;
        if (!chain)
            chain = tc_http_filter_chain_new(config, route, l->n_filters - i);
        tc_http_filter_chain_add(chain, &filter);
    }
    return chain;
}
