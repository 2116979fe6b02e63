/* RouteConfiguration (A28, A31, A36, A42, A44, A81): data. Immutable; everything lives as long as the resource.
 * route_match.h finds routes in it. Any thread. */
#ifndef TC_XDS_RESOURCE_ROUTE_CONFIG_H
#define TC_XDS_RESOURCE_ROUTE_CONFIG_H

#include "base/random.h"
#include "xds/client/resource_type.h"
#include "xds/resource/hash_policy.h"
#include "xds/resource/http_filter.h"
#include "xds/resource/matchers.h"

/* A retry policy (A44). */
struct tc_route_retry {
    uint32_t retry_on;         /* codes by bit (1u << TORC_STATUS_...); 0: the policy never retries */
    uint32_t num_retries;      /* >= 1; an RPC has at most num_retries + 1 attempts */
    uint64_t base_interval_ms; /* >= 1 */
    uint64_t max_interval_ms;  /* >= base_interval_ms */
};

struct tc_weighted_cluster {
    struct tc_rstr *name;
    uint32_t weight; /* > 0 */
    struct tc_http_filter_overrides overrides;
};

enum tc_route_action_kind {
    TC_ROUTE_CLUSTER,        /* cluster */
    TC_ROUTE_WEIGHTED,       /* weighted */
    TC_ROUTE_NON_FORWARDING, /* for servers: an RPC that matches fails */
    TC_ROUTE_UNSUPPORTED,    /* redirect, direct response, ...: an RPC that matches fails */
};

struct tc_route {
    struct tc_slice name; /* may be empty */
    /* The match: all conditions must hold. */
    struct tc_string_matcher path; /* EXACT, PREFIX or REGEX */
    size_t n_headers;
    const struct tc_header_matcher *headers;
    bool has_fraction;
    uint32_t fraction_millionths;
    /* The action. */
    enum tc_route_action_kind kind;
    struct tc_rstr *cluster; /* TC_ROUTE_CLUSTER */
    size_t n_weighted;       /* TC_ROUTE_WEIGHTED: > 0 */
    const struct tc_weighted_cluster *weighted;
    uint64_t total_weight; /* of weighted; > 0 and at most 2^32 - 1 */
    size_t n_hash_policies;
    const struct tc_hash_policy *hash_policies;
    const struct tc_route_retry *retry; /* the route's own, else its virtual host's; NULL: none */
    bool has_max_stream_duration;       /* false: the listener's max_stream_duration applies */
    uint64_t max_stream_duration_ns;    /* 0: no bound (A31) */
    bool auto_host_rewrite;             /* A81; only from a trusted server */
    struct tc_http_filter_overrides overrides;
};

struct tc_virtual_host {
    struct tc_slice name;
    size_t n_domains;
    const struct tc_slice *domains;
    size_t n_routes;
    const struct tc_route *routes;
    struct tc_http_filter_overrides overrides;
};

/* The virtual hosts of a RouteConfiguration, as a resource or inline in a Listener. */
struct tc_route_table {
    size_t n_vhosts;
    const struct tc_virtual_host *vhosts;
    bool trusted; /* A81: a trusted_xds_server sent the table, so its routes may rewrite the authority */
};

struct tc_route_config {
    struct tc_decoded base; /* first */
    struct tc_rstr *name;
    struct tc_route_table table;
};

extern const struct tc_xds_resource_type tc_route_config_type;

static inline const struct tc_route_config *tc_route_config_of(const struct tc_xds_resource *r)
{
    return (const struct tc_route_config *)(const void *)r;
}

#endif
