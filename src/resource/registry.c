#include "resource/registry.h"

#include <stdlib.h>

#include "resource/fault_filter.h"
#include "resource/session_filter.h"

static const void *no_settings(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_reading *p)
{
    (void)config;
    (void)p;
    return type;
}

const struct tc_http_filter_type tc_http_filter_router = {
    .config_name = "envoy.extensions.filters.http.router.v3.Router",
    .terminal = true,
    .on_clients = true,
    .parse = no_settings,
};

/* A41: for servers. A listener for clients cannot have it, but routes may serve both, so its overrides are let pass. */
static const struct tc_http_filter_type rbac = {
    .config_name = "envoy.extensions.filters.http.rbac.v3.RBAC",
    .override_name = "envoy.extensions.filters.http.rbac.v3.RBACPerRoute",
    .parse = no_settings,
    .parse_override = no_settings,
};

static const struct tc_http_filter_type *const standard_filters[] = {&tc_http_filter_router, &rbac,
                                                                     &tc_http_filter_fault, &tc_http_filter_session};

static bool env_is(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && tc_slice_ieq(tc_slice_str(text), tc_slice_str(value));
}

/* Also the registries of a context that brings none: without a look at the environment. */
static const struct tc_xds_registries defaults = {
    .limits =
        {
            .eds_priorities = 128,
            .eds_localities = 16384,
            .eds_endpoints = 262144,
            .eds_drops = 64,
            .vhosts = 65536,
            .routes = 65536,
            .http_filters = 1024,
            .lb_depth = 16,
            .aggregate_children = 1024,
            .decode_bytes = TC_XDS_DECODE_BYTES,
            .regexes_bytes = 16u << 20,
            .regex = {TC_REGEX_PATTERN_MAX_BYTES, TC_REGEX_MEMORY_MAX_BYTES},
        },
    .filters = standard_filters,
    .n_filters = TC_ARRAY_LEN(standard_filters),
};

void tc_xds_registries_init(struct tc_xds_registries *r)
{
    *r = defaults;
    r->hash_key_ignored = env_is("GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT", "true");
    r->ring_hash_off = env_is("GRPC_XDS_EXPERIMENTAL_ENABLE_RING_HASH", "false");
}

const struct tc_xds_registries *tc_xds_registries_of(const struct tc_xds_decode_context *ctx)
{
    return ctx && ctx->registries ? ctx->registries : &defaults;
}

static void set(size_t *limit, uint64_t configured)
{
    if (configured)
        *limit = (size_t)configured;
}

struct tc_resource_limits tc_resource_limits_of(const struct tc_xds_decode_context *ctx)
{
    struct tc_resource_limits l = tc_xds_registries_of(ctx)->limits;
    if (!ctx || !ctx->bootstrap)
        return l;
    const struct tc_xds_limits *set_by = &ctx->bootstrap->limits;
    set(&l.eds_priorities, set_by->eds_priorities);
    set(&l.eds_localities, set_by->eds_localities);
    set(&l.eds_endpoints, set_by->eds_endpoints);
    set(&l.eds_drops, set_by->eds_drop_categories);
    set(&l.vhosts, set_by->virtual_hosts);
    set(&l.routes, set_by->routes);
    set(&l.http_filters, set_by->http_filters);
    set(&l.aggregate_children, set_by->aggregate_clusters);
    set(&l.decode_bytes, set_by->decode_bytes);
    set(&l.regexes_bytes, set_by->regexes_total_bytes);
    set(&l.regex.pattern_bytes, set_by->regex_bytes);
    set(&l.regex.memory_bytes, set_by->regex_memory_bytes);
    return l;
}

const struct tc_http_filter_type *tc_xds_registries_filter(const struct tc_xds_registries *r, struct tc_slice name)
{
    for (size_t i = 0; i < r->n_filters; i++)
        if (tc_slice_eq_str(name, r->filters[i]->config_name) ||
            (r->filters[i]->override_name && tc_slice_eq_str(name, r->filters[i]->override_name)))
            return r->filters[i];
    return NULL;
}

const struct tc_http_filter_override *tc_http_filter_override_find(const struct tc_http_filter_overrides *o,
                                                                   struct tc_slice name)
{
    for (size_t i = 0; i < o->n; i++)
        if (tc_slice_eq(o->at[i].name, name))
            return &o->at[i];
    return NULL;
}

bool tc_xds_registries_lb_known(const struct tc_xds_registries *r, const char *name)
{
    static const char *const torcs[] = {
        "pick_first",
        "priority",
        "priority_experimental",
        "ring_hash",
        "ring_hash_experimental",
        "round_robin",
        "weighted_target",
        "weighted_target_experimental",
        "xds_wrr_locality",
        "xds_wrr_locality_experimental",
    };
    if (r->lb_known)
        return r->lb_known(r->arg, name);
    for (size_t i = 0; i < TC_ARRAY_LEN(torcs); i++)
        if (strcmp(name, torcs[i]) == 0)
            return true;
    return false;
}
