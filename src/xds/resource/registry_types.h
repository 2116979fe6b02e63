/* The registries that validation asks, and the caps on hostile sizes. The caller of the decoder hands them in
 * (tc_xds_decode_context.registries), since xds/resource includes neither LB policies nor certificate providers.
 * Constant while in use. Any thread. */
#ifndef TC_XDS_RESOURCE_REGISTRY_TYPES_H
#define TC_XDS_RESOURCE_REGISTRY_TYPES_H

#include <jansson.h>

#include "base/validation_errors.h"
#include "regex/regex.h"
#include "xds/client/resource_type.h"
#include "xds/resource/http_filter.h"

/* The caps; comments name the defaults. */
struct tc_resource_limits {
    size_t eds_priorities;        /* 128 */
    size_t eds_localities;        /* 16384 in a resource */
    size_t eds_endpoints;         /* 262144 in a resource, additional addresses counted */
    size_t eds_drops;             /* 64 categories */
    size_t vhosts;                /* 65536 in a resource */
    size_t routes;                /* 65536 in a resource */
    size_t http_filters;          /* 1024 in a chain */
    size_t lb_depth;              /* 16 nested LB policies (A52) */
    size_t aggregate_children;    /* 1024 in a resource */
    size_t decode_bytes;          /* 48 MiB for the messages of a resource while it is decoded */
    size_t regexes_bytes;         /* 16 MiB for compiled regexes in a response, tc_regex_reading_cost included */
    struct tc_regex_limits regex; /* 8 KiB for a pattern, 8 MiB for what it is compiled to */
};

struct tc_xds_registries {
    struct tc_resource_limits limits;
    /* HTTP filter types that are known, borrowed; by default the router and RBAC. */
    const struct tc_http_filter_type *const *filters;
    size_t n_filters;
    /* Any thread may call the functions, with `arg`. lb_known returns whether an LB policy of that name exists. NULL:
     * every name passes. */
    bool (*lb_known)(void *arg, const char *name);
    /* Checks a loadBalancingConfig list with the parsers of the LB policies; adds errors. NULL: no check. */
    void (*lb_check)(void *arg, const json_t *list, struct tc_validation_errors *errors);
    /* Returns whether a certificate provider plugin of that name exists (A29). NULL: every name passes. */
    bool (*cert_plugin_known)(void *arg, const char *plugin);
    void *arg;
    bool hash_key_ignored; /* GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT=true (A76): endpoints have no hash_key */
    bool aggregate_lb;     /* GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT=true (A75): an aggregate's LB policy counts */
    /* GRPC_XDS_EXPERIMENTAL_ENABLE_RING_HASH=false (A42): RING_HASH, MAGLEV, the messages RingHash and Maglev, and a
     * TypedStruct that names one of the two policies count as unknown, and hash policies are ignored. */
    bool ring_hash_off;
    /* GRPC_EXPERIMENTAL_XDS_MAX_CONCURRENT_STREAMS_CONNECTION_SCALING=false: per_host_thresholds are ignored (A105). */
    bool connection_scaling_off;
};

#endif
