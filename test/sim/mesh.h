/* The mesh of a run as plain data: the workload changes it, servers serve it (servers.c), and the oracle judges by it.
 */
#ifndef SIM_MESH_H
#define SIM_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_HOSTS = 12,
    SIM_CLUSTERS = 6,
    SIM_HEDGED = 5, /* the cluster of the service that needs no control plane */
    SIM_SERVICES = 4,
    SIM_CHILDREN = 3,
    SIM_LOCALITIES = 4,
    SIM_ENDPOINTS = 4, /* of a locality */
};

/* A policy that does not hash is below wrr_locality: a locality is chosen by weight, and the policy chooses among its
 * endpoints (A42, A52). From SIM_LEAST_REQUEST on, policies aggregate states as round_robin does. */
enum sim_policy {
    SIM_ROUND_ROBIN,
    SIM_RING_HASH, /* hashes, as does SIM_MAGLEV */
    SIM_MAGLEV,
    SIM_PICK_FIRST,
    SIM_LEAST_REQUEST,
    SIM_FULL_SCAN, /* least_request over all endpoints */
    SIM_BIASED,    /* least_request by weights */
    SIM_WEIGHTED,  /* weighted_round_robin */
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
    enum sim_policy policy; /* of others */
    bool dns;               /* LOGICAL_DNS: all endpoints are one of the name dCvVERSION.test */
    unsigned version;       /* of the endpoints, in the name: only the scene `move` changes a name's addresses */
    bool outliers;          /* detected (A50) */
    unsigned max_requests;  /* circuit breaking (A32); 0: none */
    unsigned table_size;    /* of maglev; 0: the default */
    bool locality_weights;  /* count for maglev */
    unsigned balance;       /* hash_balance_factor of policies that hash; 0: loads are not bounded */
    unsigned drop_percent;  /* of picks that the endpoints' resource wants dropped; a name has no such resource */
    unsigned revisions[2];  /* updates without a difference, of the cluster and of its endpoints */
    bool moved;             /* its endpoints have their second name, see sim_endpoints_name */
    size_t n_localities;
    struct sim_locality localities[SIM_LOCALITIES];
};

struct sim_service {
    unsigned cluster;
    unsigned retries;       /* after UNAVAILABLE (A44); 0: none */
    bool sessions;          /* by cookie (A55) */
    bool hedged;            /* a plain DNS channel to its cluster, which hedges instead of retrying (A6) */
    bool unrouted;          /* nothing routes its calls: no virtual host matches, or its listener counts as deleted */
    unsigned abort_percent; /* of calls that the fault filter fails with SIM_ABORT_CODE (A33) */
    unsigned limit_ms;      /* of a call, by its route (A31), for the whole run; 0: none */
    bool rds;               /* the routes are a resource of their own, for the whole run */
    unsigned revision;      /* updates of the listener without a difference */
};

enum {
    SIM_ABORT_CODE = 10,  /* ABORTED */
    SIM_NO_PUSHBACK = -2, /* of a server (A6); -1: no further try */
    SIM_MANY_STREAMS = 100,
};

enum { SIM_HEDGING_DELAY_MS = 100 };

/* The kinds of calls. */
enum sim_kind { SIM_UNARY, SIM_CLIENT_STREAM, SIM_SERVER_STREAM, SIM_BIDI_STREAM, SIM_KINDS };

struct sim_mesh {
    size_t n_hosts, n_clusters, n_services;
    unsigned max_streams;                      /* of a connection to a backend, which says so in its SETTINGS */
    struct sim_cluster clusters[SIM_CLUSTERS]; /* leaves, then an aggregate; SIM_HEDGED is not counted in n_clusters */
    struct sim_service services[SIM_SERVICES];
};

/* The kinds of resources. */
enum sim_resource { SIM_LISTENER, SIM_CLUSTER, SIM_ENDPOINTS_OF, SIM_RESOURCES };

/* The version of a resource that the control plane serves. */
enum sim_served { SIM_SERVED_GOOD, SIM_SERVED_BAD, SIM_SERVED_DELETED };

/* The settings of outlier detection where a cluster has it: an endpoint whose calls all failed in an interval is
 * ejected for SIM_EJECTION_MS, and for SIM_EJECTION_MAX_MS if that happens again in the first interval after. */
enum { SIM_OUTLIER_INTERVAL_MS = 10000, SIM_EJECTION_MS = 18000, SIM_EJECTION_MAX_MS = 36000 };

/* Returns whether the cluster sends a key to one endpoint. */
static inline bool sim_hashes(const struct sim_cluster *c)
{
    return !c->dns && (c->policy == SIM_RING_HASH || c->policy == SIM_MAGLEV);
}

/* Writes the name of the resource of a cluster's endpoints. */
void sim_endpoints_name(const struct sim_cluster *c, unsigned which, char *name, size_t size);
/* Writes the cluster in short: "of c0 c1", or "round_robin 0/3*1,4*2 1/" (PRIORITY/HOST*WEIGHT,..., a locality
 * each). */
void sim_cluster_text(const struct sim_cluster *c, char *text, size_t size);
/* The weight of a host by the load that it reports (A58). */
static inline unsigned sim_host_weight(unsigned host)
{
    return host % 3 ? 1 : 8;
}

/* Returns "10.1.0.N:8080" with N = host + 1; static. */
const char *sim_host_address(unsigned host);
/* Returns the number of the host with this address; -1: none. */
int sim_host_of(const char *address);

#endif
