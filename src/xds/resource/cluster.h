/* Cluster (A27, A37, A42, A50, A52, A55, A75): data. Immutable; all pointers live as long as the resource. Any
 * thread. */
#ifndef TC_XDS_RESOURCE_CLUSTER_H
#define TC_XDS_RESOURCE_CLUSTER_H

#include <jansson.h>

#include "lb/outlier_detection/config.h"
#include "xds/client/resource_type.h"
#include "xds/resource/hash_policy.h"
#include "xds/resource/matchers.h"
#include "xds/resource/resource_arena.h"

enum tc_cluster_kind { TC_CLUSTER_EDS, TC_CLUSTER_LOGICAL_DNS, TC_CLUSTER_AGGREGATE };

/* A29: what UpstreamTlsContext says. */
struct tc_upstream_tls {
    struct tc_rstr *ca_instance; /* certificate provider of the roots; NULL: system roots */
    struct tc_slice ca_cert_name;
    bool system_root_certs;            /* A82 */
    struct tc_rstr *identity_instance; /* NULL: no client certificate */
    struct tc_slice identity_cert_name;
    size_t n_san_matchers; /* 0: any name passes, unless auto_sni_san_validation */
    const struct tc_string_matcher *san_matchers;
    /* A101. tls_sni_of (xds/lb/tls.c) chooses the name that the handshake sends. auto_sni_san_validation: if a name was
     * sent, the certificate must have that name, and the matchers do not apply. */
    struct tc_slice sni; /* empty: none given */
    bool auto_host_sni;
    bool auto_sni_san_validation;
};

/* A55: sets of health statuses, a bit for each number of Envoy's HealthStatus. */
enum {
    TC_OVERRIDE_HOST_UNKNOWN = (1 << 0),
    TC_OVERRIDE_HOST_HEALTHY = (1 << 1),
    TC_OVERRIDE_HOST_DRAINING = (1 << 3),
};
#define TC_OVERRIDE_HOST_DEFAULT (TC_OVERRIDE_HOST_UNKNOWN | TC_OVERRIDE_HOST_HEALTHY)
enum {
    TC_CIRCUIT_BREAKER_DEFAULT = 1024,
    TC_IDLE_TIMEOUT_DEFAULT_MS = 3600000,
};

/* Which values of a backend's load report go into load reports to the LRS server. */
enum tc_lrs_metrics { TC_LRS_CPU = 1, TC_LRS_MEM = 2, TC_LRS_APPLICATION = 4, TC_LRS_ALL_NAMED = 8 };

struct tc_cluster {
    struct tc_decoded base; /* first */
    struct tc_rstr *name;
    enum tc_cluster_kind kind;
    struct tc_rstr *eds_name;    /* EDS: the ClusterLoadAssignment to watch: service_name, else the cluster's name */
    struct tc_rstr *eds_service; /* EDS: service_name as given; NULL: none (for load reports and circuit breaking) */
    struct tc_rstr *dns_target;  /* LOGICAL_DNS: "host:port", "[v6]:port" */
    size_t n_children;           /* AGGREGATE: >= 1, in order */
    struct tc_rstr *const *children;
    /* A loadBalancingConfig list of one entry that Torc's policies parse; shared, never changed. NULL for an aggregate,
     * whose own policy is ignored (A75), unless GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT is true. */
    json_t *lb_config;
    /* Of the LB policy (Envoy's consistent_hashing_lb_config): they replace the routes' hash policies. NULL: none. */
    const struct tc_hash_policy *hash_policies;
    size_t n_hash_policies;
    bool has_lrs;                     /* load reports to the server that sent the resource (lrs_server self) */
    const struct tc_rstr *lrs_server; /* with has_lrs: that server's key; NULL: not sent by a server */
    unsigned lrs_metrics;             /* A85: lrs_report_endpoint_metrics, a sum of enum tc_lrs_metrics */
    size_t n_lrs_names;               /* single entries of named_metrics, by name: sorted, each once */
    const struct tc_slice *lrs_names;
    uint32_t max_concurrent_requests;          /* A32; TC_CIRCUIT_BREAKER_DEFAULT if not set */
    uint32_t max_connections;                  /* of each subchannel (A105); 1 if not set */
    const struct tc_outlier_settings *outlier; /* NULL: none (a no-op policy is still inserted, A50) */
    unsigned override_host_status;             /* A55: sum of TC_OVERRIDE_HOST_* */
    uint64_t idle_timeout_ms;                  /* A75: of upstream HttpProtocolOptions; default 1 h */
    const struct tc_upstream_tls *tls;         /* NULL: no UpstreamTlsContext */
    bool http_connect;                         /* A86: endpoints are reached through the proxies that they name */
};

extern const struct tc_xds_resource_type tc_cluster_type;

static inline const struct tc_cluster *tc_cluster_of(const struct tc_xds_resource *r)
{
    return (const struct tc_cluster *)(const void *)r;
}

#endif
