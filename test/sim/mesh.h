/* The mesh of a run as plain data: the workload changes it, servers.c serves it, and the oracle judges by it. */
#ifndef SIM_MESH_H
#define SIM_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_HOSTS = 12,
    SIM_CLUSTERS = 6,
    SIM_HEDGED = 5, /* the index of the cluster of the service that hedges, which needs no control plane */
    SIM_SERVICES = 4,
    SIM_CHILDREN = 3, /* of an aggregate */
    SIM_LOCALITIES = 4,
    SIM_ENDPOINTS = 4, /* of a locality */
};

/* SIM_RING_HASH and SIM_MAGLEV choose an endpoint by a hash. Every other policy is below wrr_locality: a locality is
 * chosen by weight, and the policy chooses among its endpoints (A52). */
enum sim_policy {
    SIM_ROUND_ROBIN,
    SIM_RING_HASH,
    SIM_MAGLEV,
    SIM_PICK_FIRST,
    SIM_LEAST_REQUEST, /* from here on: the policies of SIM_FEATURE_BALANCERS */
    SIM_FULL_SCAN,     /* least_request over all endpoints */
    SIM_BIASED,        /* least_request by weights */
    SIM_WEIGHTED,      /* weighted_round_robin */
    SIM_POLICIES,
};

/* Names for the story: "round_robin", "full scan". */
extern const char *const sim_policy_names[SIM_POLICIES];

struct sim_endpoint {
    unsigned host, weight;
};

struct sim_locality {
    unsigned priority, weight;
    size_t n_endpoints;
    struct sim_endpoint endpoints[SIM_ENDPOINTS];
};

struct sim_cluster {
    bool is_aggregate;
    size_t n_children; /* of an aggregate */
    unsigned children[SIM_CHILDREN];
    enum sim_policy policy; /* of a leaf */
    bool dns;               /* LOGICAL_DNS: the endpoints are the addresses of dCvVERSION.test (SIM_HEDGED: dC.test) */
    unsigned version;       /* of the endpoints. In the DNS name, so that only scene_move changes a name's addresses */
    bool outliers;          /* outlier detection is on (A50) */
    unsigned max_requests;  /* circuit breaking (A32); 0: none */
    unsigned table_size;    /* of maglev; 0: the default */
    bool locality_weights;  /* maglev heeds the localities' weights */
    unsigned balance;       /* hash_balance_factor of policies that hash; 0: loads are not bounded */
    unsigned drop_percent;  /* the percentage of picks that the endpoints' resource drops; unused with `dns` */
    unsigned revisions[2];  /* how many updates had no difference that counts: of the cluster, of its endpoints */
    bool moved;             /* the endpoints' resource has its second name (sim_endpoints_name) */
    size_t n_localities;
    struct sim_locality localities[SIM_LOCALITIES];
};

struct sim_service {
    unsigned cluster;
    unsigned retries;       /* after UNAVAILABLE (A44); 0: none. If `hedged`: the attempts after the first */
    bool sessions;          /* by cookie (A55) */
    bool hedged;            /* its channels use the plain DNS name of its cluster, and hedge instead of retrying (A6) */
    bool unrouted;          /* nothing routes its calls: no virtual host matches, or clients have no listener */
    unsigned abort_percent; /* the percentage of calls that the fault filter fails with SIM_ABORT_CODE (A33) */
    unsigned limit_ms;      /* the time limit of the route (A31), fixed at the start; 0: none */
    bool rds;               /* the routes are a resource of their own; fixed at the start */
    unsigned revision;      /* how many updates of the listener had no difference that counts */
};

enum {
    SIM_ABORT_CODE = 10,    /* ABORTED */
    SIM_NO_PUSHBACK = -2,   /* the server sends none (A6); -1 asks for no further try */
    SIM_MANY_STREAMS = 100, /* max_streams without SIM_FEATURE_FEW_STREAMS */
};

enum { SIM_HEDGING_DELAY_MS = 100 };

/* The kinds of calls. */
enum sim_kind { SIM_UNARY, SIM_CLIENT_STREAM, SIM_SERVER_STREAM, SIM_BIDI_STREAM, SIM_KINDS };

struct sim_mesh {
    size_t n_hosts, n_clusters, n_services;
    unsigned max_streams; /* SETTINGS_MAX_CONCURRENT_STREAMS of the backends */
    /* n_clusters: leaves, then perhaps an aggregate. The cluster SIM_HEDGED is not counted. */
    struct sim_cluster clusters[SIM_CLUSTERS];
    struct sim_service services[SIM_SERVICES];
};

/* The kinds of resources. */
enum sim_resource { SIM_LISTENER, SIM_CLUSTER, SIM_ENDPOINTS_OF, SIM_RESOURCES };

/* The state in which the control plane serves a resource. */
enum sim_served { SIM_SERVED_GOOD, SIM_SERVED_BAD, SIM_SERVED_DELETED };

/* The settings of outlier detection where a cluster has it: an endpoint whose calls all failed in an interval is
 * ejected for SIM_EJECTION_MS, and for SIM_EJECTION_MAX_MS if that happens again in the first interval after its
 * return. */
enum { SIM_OUTLIER_INTERVAL_MS = 10000, SIM_EJECTION_MS = 18000, SIM_EJECTION_MAX_MS = 36000 };

/* Returns whether the cluster chooses the endpoint of a call by the call's key. */
static inline bool sim_hashes(const struct sim_cluster *c)
{
    return !c->dns && (c->policy == SIM_RING_HASH || c->policy == SIM_MAGLEV);
}

/* Writes the name of the EDS resource of cluster number `which`. */
void sim_endpoints_name(const struct sim_cluster *c, unsigned which, char *name, size_t size);
/* Writes the cluster in short: "of c0 c1", or the policy, options and localities, each as PRIORITY/HOST*WEIGHT,...:
 * "round_robin limit 3 0/3*1,4*2 1/". */
void sim_cluster_text(const struct sim_cluster *c, char *text, size_t size);
/* Returns a number in proportion to the weight that weighted_round_robin gives to the host, by the load that the host
 * reports (A58). */
static inline unsigned sim_host_weight(unsigned host)
{
    return host % 3 ? 1 : 8;
}

/* Returns "10.1.0.N:8080" with N = host + 1; static. */
const char *sim_host_address(unsigned host);
/* Returns the number of the host with this address; -1: none. */
int sim_host_of(const char *address);

#endif
