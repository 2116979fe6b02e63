#include "mesh/config_selector.h"

#include "base/mem.h"
#include "base/random.h"
#include "mesh/http_filters.h"

enum { MAX_PATH_SHOWN = 256 };

struct selector {
    struct tc_config_selector base;
    struct tc_xds_config *config; /* without clusters */
    uint64_t channel_id;
    /* The clusters of route i: refs[first[i]] and, under weights, those that follow. */
    size_t *first;
    struct tc_retry_policy *retries; /* of route i; NULL: no route has one */
    size_t n_refs;
    struct tc_cluster_ref **refs;
    struct tc_filter_chain **chains; /* one for each of refs, or NULL; NULL: no filter does anything anywhere */
};

static void release(void *hold)
{
    tc_cluster_ref_release(hold);
}

static struct tc_status failure(const struct selector *s, const char *text)
{
    return (struct tc_status){TORC_STATUS_UNAVAILABLE, tc_with_node_id(tc_slice_str(text), s->config->node_id)};
}

static struct tc_status no_route(const struct selector *s, struct tc_slice path)
{
    const struct tc_xds_config *c = s->config;
    const char *name = tc_rstr_cstr(c->routes ? c->routes->name : c->listener->routes_name);
    struct tc_buf text = {0};
    tc_buf_append_str(&text, "No matching route found in xDS route config");
    if (*name)
        tc_buf_printf(&text, " \"%s\"", name);
    tc_buf_printf(&text, " for method \"%.*s\"", (int)TC_MIN(path.len, (size_t)MAX_PATH_SHOWN), path.data);
    struct tc_status status = failure(s, tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return status;
}

/* Index of the cluster in refs. */
static size_t choose_cluster(const struct selector *s, const struct tc_route *route, struct tc_rng *rng)
{
    size_t at = s->first[route - s->config->vhost->routes];
    if (route->kind == TC_ROUTE_WEIGHTED)
        at += (size_t)(tc_route_weighted_pick(route, tc_rng_u64(rng)) - route->weighted);
    return at;
}

static struct tc_slice explain(const struct tc_route *route, struct tc_arena *arena)
{
    struct tc_buf text = {0};
    if (route->name.len) {
        tc_buf_append_slice(&text, route->name);
        tc_buf_append_str(&text, ": ");
    }
    tc_route_format(route, &text);
    char *copy = tc_arena_dup(arena, tc_buf_slice(&text));
    struct tc_slice slice = copy ? tc_slice_of(copy, text.len) : tc_slice_of(NULL, 0);
    tc_buf_fini(&text);
    return slice;
}

static struct tc_status choose(struct tc_config_selector *base, const struct tc_select_args *args,
                               struct tc_call_config *out)
{
    const struct selector *s = TC_CONTAINER_OF(base, struct selector, base);
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    const struct tc_route *route =
        tc_virtual_host_route(s->config->vhost, args->path, args->headers, tc_rng_u64(args->rng), &steps);
    if (!steps)
        return failure(s, "Matching the routes' regular expressions takes too long for this path and these headers");
    if (!route)
        return no_route(s, args->path);
    if (route->kind != TC_ROUTE_CLUSTER && route->kind != TC_ROUTE_WEIGHTED)
        return failure(s, "Matching route has inappropriate action");
    size_t at = choose_cluster(s, route, args->rng);
    struct tc_cluster_ref *cluster = tc_cluster_ref_hold(s->refs[at]);
    *out = (struct tc_call_config){.wait_for_ready = -1};
    out->cluster = tc_rstr_slice(cluster->name);
    out->release = release;
    out->hold = cluster;
    out->auto_host_rewrite = route->auto_host_rewrite;
    if (s->chains)
        out->filters = tc_filter_chain_ref(s->chains[at]);
    if (s->retries && route->retry)
        out->retry = &s->retries[route - s->config->vhost->routes];
    out->timeout_ns =
        route->has_max_stream_duration ? route->max_stream_duration_ns : s->config->listener->max_stream_duration_ns;
    /* A42: without a result, a random number that stays the RPC's for all its picks. */
    out->has_hash = true;
    if (!tc_hash_policies_compute(route->hash_policies, route->n_hash_policies, args->headers, s->channel_id,
                                  &out->hash))
        out->hash = tc_rng_u64(args->rng);
    if (args->explain)
        out->route = explain(route, args->arena);
    return (struct tc_status){0};
}

static void selector_free(struct tc_config_selector *base)
{
    struct selector *s = TC_CONTAINER_OF(base, struct selector, base);
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

static const struct tc_config_selector_ops selector_ops = {.select = choose, .free = selector_free};

static size_t clusters_of(const struct tc_route *route)
{
    return route->kind == TC_ROUTE_WEIGHTED ? route->n_weighted : route->kind == TC_ROUTE_CLUSTER ? 1 : 0;
}

/* A44: as gRPC's own policy. One that retries after no code is none. */
static void add_retry(struct selector *s, size_t i, const struct tc_route_retry *from)
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

/* The filters of RPCs to refs[i]; routes share nothing, as their overrides may differ. */
static void add_chain(struct selector *s, size_t i, const struct tc_route *route,
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
    struct selector *s = TC_NEW(struct selector);
    s->base.ops = &selector_ops;
    tc_lref_init(&s->base.ref);
    s->config = tc_xds_config_routing(config);
    s->channel_id = channel_id;
    s->first = tc_calloc(vhost->n_routes, sizeof(*s->first));
    size_t n = 0;
    for (size_t i = 0; i < vhost->n_routes; i++) {
        s->first[i] = n;
        n += clusters_of(&vhost->routes[i]);
    }
    s->refs = tc_calloc(n, sizeof(struct tc_cluster_ref *));
    for (size_t i = 0; i < vhost->n_routes; i++) {
        const struct tc_route *r = &vhost->routes[i];
        add_retry(s, i, r->retry);
        for (size_t k = 0; k < clusters_of(r); k++) {
            const struct tc_weighted_cluster *w = r->kind == TC_ROUTE_WEIGHTED ? &r->weighted[k] : NULL;
            s->refs[s->n_refs] = tc_cluster_ref_get(clusters, w ? w->name : r->cluster);
            add_chain(s, s->n_refs++, r, w, n);
        }
    }
    return &s->base;
}
