/* The default registries: the HTTP filters that do nothing on RPCs, caps on hostile sizes, and the switches of the
 * environment.
 *
 * The caps hold where the bootstrap's "torc.limits" says nothing (docs/operations/limits.md).
 * tc_xds_registries_init reads the environment. It is called once in a process, so that all resources are decoded
 * alike. */
#include "xds/resource/registry.h"

#include <stdlib.h>

static const struct tc_http_filter_type *const default_filters[] = {&tc_http_filter_router, &tc_http_filter_rbac};

static bool env_is(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && tc_slice_ieq(tc_slice_str(text), tc_slice_str(value));
}

/* The registries of a decode context that has none. The environment does not change them. */
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
    .filters = default_filters,
    .n_filters = TC_ARRAY_LEN(default_filters),
};

void tc_xds_registries_init(struct tc_xds_registries *r)
{
    *r = defaults;
    r->hash_key_ignored = env_is("GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT", "true");
    r->aggregate_lb = env_is("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT", "true");
    r->ring_hash_off = env_is("GRPC_XDS_EXPERIMENTAL_ENABLE_RING_HASH", "false");
    r->connection_scaling_off = env_is("GRPC_EXPERIMENTAL_XDS_MAX_CONCURRENT_STREAMS_CONNECTION_SCALING", "false");
}

const struct tc_xds_registries *tc_xds_registries_of(const struct tc_xds_decode_context *ctx)
{
    return ctx && ctx->registries ? ctx->registries : &defaults;
}

const struct tc_http_filter_type *tc_xds_registries_filter(const struct tc_xds_registries *r, struct tc_slice name)
{
    for (size_t i = 0; i < r->n_filters; i++)
        if (tc_slice_eq_str(name, r->filters[i]->config_name) ||
            (r->filters[i]->override_name && tc_slice_eq_str(name, r->filters[i]->override_name)))
            return r->filters[i];
    return NULL;
}

bool tc_xds_registries_lb_known(const struct tc_xds_registries *r, const char *name)
{
    return !r->lb_known || r->lb_known(r->arg, name);
}
