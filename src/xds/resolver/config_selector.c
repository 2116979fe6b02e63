/* The config selector of the xds resolver: A31's and A42's decisions for each RPC.
 *
 * The resolver makes a selector when the routing changes (tc_xds_config_same_routing) or an error is over, not for each
 * update of endpoints. The selector holds a reference of every cluster that the routes name, and each RPC takes one
 * more, so that a cluster stays configured until its last RPC is over. refs[first[i]] is the cluster of route i; the
 * other clusters of a weighted route follow.
 *
 * Fast path: selector_select. First route that matches, one weighted cluster, timeout, hash, filters. It allocates only
 * for regexes, for a matched or hashed header with several values, and for an RPC that fails or is to be explained. */
#include "xds/resolver/config_selector.h"

#include "base/mem.h"
#include "base/random.h"
#include "xds/filter/http_filters.h"
#include "xds/resource/route_match.h"

enum { MAX_PATH_SHOWN = 256 };

struct xds_selector {
    struct tc_config_selector base;
    struct tc_xds_config *config; /* a reference; without clusters */
    uint64_t channel_id;
    size_t *first;                   /* first[i]: index in `refs` of route i's first cluster */
    struct tc_retry_policy *retries; /* retries[i]: of route i, if it has one; NULL: no route has one */
    size_t n_refs;
    struct tc_cluster_ref **refs; /* a reference each */
    /* chains[i]: the filters of RPCs to refs[i]; NULL: none act. The array is NULL if none act on any RPC. */
    struct tc_filter_chain **chains;
};

static void release_cluster(void *hold)
{
    tc_cluster_ref_release(hold);
}

static struct tc_status selector_failure(const struct xds_selector *s, const char *text)
{
    return (struct tc_status){TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                              tc_with_node_id(tc_slice_str(text), s->config->node_id)};
}

static struct tc_status selector_no_route(const struct xds_selector *s, struct tc_slice path)
{
    const struct tc_xds_config *c = s->config;
    const char *name = tc_rstr_cstr(c->routes ? c->routes->name : c->listener->routes_name);
    struct tc_buf text = {0};
    tc_buf_append_str(&text, "No matching route found in xDS route config");
    if (*name)
        tc_buf_printf(&text, " \"" TC_SHOWN "\"", TC_SHOW(name));
    tc_buf_printf(&text, " for method \"%.*s\"", (int)TC_MIN(path.len, (size_t)MAX_PATH_SHOWN), path.data);
    struct tc_status status = selector_failure(s, tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return status;
}

/* Returns the index in `refs` of the cluster for one RPC. Draws the cluster of a weighted route. */
static size_t selector_cluster_index(const struct xds_selector *s, const struct tc_route *route, struct tc_rng *rng)
{
    size_t at = s->first[route - s->config->vhost->routes];
    if (route->kind == TC_ROUTE_WEIGHTED)
        at += (size_t)(tc_route_weighted_pick(route, tc_rng_u64(rng)) - route->weighted);
    return at;
}

static struct tc_slice route_explain(const struct tc_route *route, struct tc_arena *arena)
{
    struct tc_buf text = {0};
    if (route->name.len) {
        tc_buf_append_slice(&text, route->name);
        tc_buf_append_str(&text, ": ");
    }
    tc_route_format(route, &text);
    struct tc_slice slice = tc_arena_copy(arena, tc_buf_slice(&text));
    tc_buf_fini(&text);
    return slice;
}

static struct tc_status selector_select(struct tc_config_selector *base, const struct tc_select_args *args,
                                        struct tc_call_config *out)
{
    const struct xds_selector *s = TC_CONTAINER_OF(base, struct xds_selector, base);
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    const struct tc_route *route =
        tc_virtual_host_route(s->config->vhost, args->path, args->headers, args->rng, &steps);
    if (!steps)
        return selector_failure(
            s, "Matching the routes' regular expressions takes too long for this path and these headers");
    if (!route)
        return selector_no_route(s, args->path);
    if (route->kind != TC_ROUTE_CLUSTER && route->kind != TC_ROUTE_WEIGHTED)
        return selector_failure(s, "Matching route has inappropriate action");
    size_t at = selector_cluster_index(s, route, args->rng);
    struct tc_cluster_ref *cluster = tc_cluster_ref_hold(s->refs[at]);
    *out = TC_CALL_CONFIG_NONE;
    out->cluster = tc_rstr_slice(cluster->name);
    out->release = release_cluster;
    out->hold = cluster;
    out->auto_host_rewrite = route->auto_host_rewrite;
    if (s->chains)
        out->filters = tc_filter_chain_ref(s->chains[at]);
    if (s->retries && route->retry)
        out->retry = &s->retries[route - s->config->vhost->routes];
    uint64_t timeout_ns =
        route->has_max_stream_duration ? route->max_stream_duration_ns : s->config->listener->max_stream_duration_ns;
    out->timeout_ns = timeout_ns ? timeout_ns : UINT64_MAX; /* A31: 0 means no timeout */
    /* A42: without a result, a random number, the same for all picks of the RPC. */
    out->has_hash = true;
    out->channel_id = s->channel_id;
    if (!tc_hash_policies_compute(route->hash_policies, route->n_hash_policies, args->headers, s->channel_id,
                                  &out->hash))
        out->hash = tc_rng_u64(args->rng);
    if (args->explain)
        out->route = route_explain(route, args->arena);
    return (struct tc_status){0};
}

static void selector_free(struct tc_config_selector *base)
{
    struct xds_selector *s = TC_CONTAINER_OF(base, struct xds_selector, base);
    for (size_t i = 0; i < s->n_refs; i++)
        tc_cluster_ref_release(s->refs[i]);
    for (size_t i = 0; s->chains && i < s->n_refs; i++)
        tc_filter_chain_unref(s->chains[i]);
    tc_free(s->chains);
    tc_free(s->refs);
    tc_free(s->retries);
    tc_free(s->first);
    tc_xds_config_unref(s->config);
    tc_free(s);
}

static const struct tc_config_selector_ops selector_ops = {.select = selector_select, .free = selector_free};

static size_t route_cluster_count(const struct tc_route *route)
{
    return route->kind == TC_ROUTE_WEIGHTED ? route->n_weighted : route->kind == TC_ROUTE_CLUSTER ? 1 : 0;
}

/* Translates the retry policy of route i into one of a service config (A44). Ignores a policy without codes: it never
 * retries. */
static void selector_add_retry(struct xds_selector *s, size_t i, const struct tc_route_retry *from)
{
    if (!from || !from->retry_on)
        return;
    if (!s->retries)
        s->retries = tc_calloc(s->config->vhost->n_routes, sizeof(*s->retries));
    s->retries[i] = (struct tc_retry_policy){
        .max_attempts = TC_MIN(from->num_retries, TC_RETRY_MAX_ATTEMPTS - 1) + 1,
        .codes = from->retry_on,
        .backoff = {from->base_interval_ms, from->max_interval_ms, .multiplier = 2, .jitter = 0.2},
    };
}

/* Makes the filters of RPCs to refs[i]. Routes do not share chains, because their overrides may differ. `n`: the length
 * of refs. */
static void selector_add_chain(struct xds_selector *s, size_t i, const struct tc_route *route,
                               const struct tc_weighted_cluster *cluster, size_t n)
{
    struct tc_filter_chain *chain = tc_http_filters_chain(s->config, route, cluster);
    if (chain && !s->chains)
        s->chains = tc_calloc(n, sizeof(*s->chains));
    if (chain)
        s->chains[i] = chain;
}

struct tc_config_selector *tc_xds_selector_new(struct tc_xds_config *config, struct tc_cluster_refs *clusters,
                                               uint64_t channel_id)
{
    const struct tc_virtual_host *vhost = config->vhost;
    struct xds_selector *s = TC_NEW(struct xds_selector);
    s->base.ops = &selector_ops;
    tc_lref_init(&s->base.ref);
    s->config = tc_xds_config_routing(config);
    s->channel_id = channel_id;
    s->first = tc_calloc(vhost->n_routes, sizeof(*s->first));
    size_t n = 0;
    for (size_t i = 0; i < vhost->n_routes; i++) {
        s->first[i] = n;
        n += route_cluster_count(&vhost->routes[i]);
    }
    s->refs = tc_calloc(n, sizeof(struct tc_cluster_ref *));
    for (size_t i = 0; i < vhost->n_routes; i++) {
        const struct tc_route *r = &vhost->routes[i];
        selector_add_retry(s, i, r->retry);
        for (size_t k = 0; k < route_cluster_count(r); k++) {
            const struct tc_weighted_cluster *w = r->kind == TC_ROUTE_WEIGHTED ? &r->weighted[k] : NULL;
            s->refs[s->n_refs] = tc_cluster_ref_get(clusters, w ? w->name : r->cluster);
            selector_add_chain(s, s->n_refs++, r, w, n);
        }
    }
    return &s->base;
}
