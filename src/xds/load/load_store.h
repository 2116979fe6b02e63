/* Counts of RPCs for one LRS server: drops by {cluster, EDS service}, outcomes by locality and, if the server asks for
 * it, by endpoint. Knows nothing of streams: a caller takes a report out, and settles it once it knows whether the
 * report was handed over. Loop thread only; times are the loop's. */
#ifndef TC_XDS_LOAD_LOAD_STORE_H
#define TC_XDS_LOAD_LOAD_STORE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/ref.h"
#include "base/rstr.h"
#include "base/table.h"
#include "base/vec.h"
#include "pb/envoy/config/endpoint/v3/load_report.pb-c.h"

struct tc_load_store;
struct tc_load_cluster;
struct tc_load_locality;

/* `now`: not in any report yet. `reported`: in the report under way. */
struct tc_load_count {
    uint64_t now, reported;
};

/* Metrics of backends (A64, A85): those with fields of their own, and those by name. */
enum tc_load_metric { TC_LOAD_CPU, TC_LOAD_MEM, TC_LOAD_APPLICATION, TC_LOAD_NAMED };

struct tc_load_metric_sum {
    enum tc_load_metric kind;
    struct tc_rstr *name; /* of TC_LOAD_NAMED; else NULL */
    struct tc_load_count requests;
    double sum, reported_sum; /* as `now` and `reported` of a count */
};

/* The counts of a locality, or of one endpoint of a locality. */
struct tc_load_locality {
    struct tc_lref ref;
    struct tc_rstr *region, *zone, *sub_zone; /* NULL for an endpoint */
    struct tc_rstr *key;                      /* of these names; NULL for an endpoint */
    struct tc_load_locality *of;              /* an endpoint's locality, a reference; NULL for a locality */
    struct tc_rstr *address;                  /* an endpoint's, as tc_addr_format writes it */
    struct tc_load_locality *endpoints;       /* of a locality, by address; a reference each */
    UT_hash_handle hh;                        /* of the cluster's localities, or of a locality's endpoints */
    uint64_t in_progress;
    struct tc_load_count issued, succeeded, failed;
    TC_VEC(struct tc_load_metric_sum) metrics;
};

struct tc_load_drop {
    struct tc_rstr *category;
    struct tc_load_count count;
};

struct tc_load_cluster {
    struct tc_lref ref;
    size_t users;                /* see tc_load_cluster_get */
    struct tc_load_store *store; /* NULL: the store is gone or has dropped the cluster: counts go nowhere */
    struct tc_link link;
    UT_hash_handle hh;                   /* in the store, by key */
    struct tc_rstr *key;                 /* of cluster and service */
    struct tc_rstr *cluster, *service;   /* service NULL: none */
    struct tc_load_locality *localities; /* by key; a reference each */
    TC_VEC(struct tc_load_drop) drops;
    size_t name_bytes;                    /* of the keys of `localities` and the categories of `drops` */
    struct tc_load_count dropped;         /* with and without a category */
    uint64_t since_ns, reported_until_ns; /* start of the next interval; end of the one in the report under way */
    size_t n_endpoints;                   /* of all localities */
    bool in_report;                       /* counts of the cluster may be in the report under way */
    bool by_endpoint;                     /* RPCs are to be counted by endpoint */
};

/* Returns an empty store. Calls `on_users` (may be NULL) from inside tc_load_cluster_get when the first cluster comes
 * into use, and from inside tc_load_cluster_unuse when the last one goes out of use. `on_users` must not free the
 * store. */
struct tc_load_store *tc_load_store_new(void (*on_users)(void *arg), void *arg);
/* Frees the store and removes its sources; calls no callback. Clusters with references stay, but are not reported. */
void tc_load_store_free(struct tc_load_store *s);
/* Returns whether a cluster has a user. */
bool tc_load_store_in_use(const struct tc_load_store *s);
/* Sets whether RPCs that start from now on are counted by endpoint. A change asks every source: RPCs on another loop
 * follow once that loop was asked. */
void tc_load_store_by_endpoint(struct tc_load_store *s, bool by_endpoint);
/* Sets on_use. tc_load_cluster_get calls it when a cluster gets its first user (`used`), tc_load_cluster_unuse when a
 * cluster has lost its last user. The counts of the latter can still be taken, unless MAX_IDLE_CLUSTERS (load_store.c)
 * was exceeded. */
void tc_load_store_on_use(struct tc_load_store *s,
                          void (*on_use)(void *arg, const struct tc_load_cluster *cluster, bool used), void *arg);

/* Another loop where loads are counted for this store; embedded in the object that carries the counts to this store. */
struct tc_load_source {
    struct tc_link link;
    struct tc_load_store *store; /* NULL: in no store, or the store is gone */
    bool pending;                /* asked by tc_load_store_gather, and not answered yet */
    bool by_endpoint;            /* the store's, see tc_load_store_by_endpoint */
    /* Asks for the counts, and hands `by_endpoint` on. tc_load_source_answered must follow, but not from inside. May be
     * called again before the answer. */
    void (*ask)(struct tc_load_source *source);
};

/* Adds the source, which must be in no store. Calls `ask` from inside if the store counts by endpoint. */
void tc_load_source_add(struct tc_load_store *s, struct tc_load_source *source);
/* Does nothing for a source that is in no store. May call on_gathered from inside. */
void tc_load_source_remove(struct tc_load_source *source);
/* Says that the source's counts were added (tc_load_store_add). Does nothing unless `pending`; may call on_gathered. */
void tc_load_source_answered(struct tc_load_source *source);
/* Asks all sources. Returns false if there are none; else on_gathered (with the argument of tc_load_store_new) follows
 * when the last source has answered or was removed. */
bool tc_load_store_gather(struct tc_load_store *s, void (*on_gathered)(void *arg));
/* Adds a report that was taken out of another store. Adds the report's issued RPCs to the RPCs in progress, and
 * subtracts its ended RPCs and its RPCs in progress: their end is not expected in a later report. now_ns: the start of
 * the interval of clusters that are new to the store. */
void tc_load_store_add(struct tc_load_store *s, Envoy__Config__Endpoint__V3__ClusterStats **stats, size_t n,
                       uint64_t now_ns);
/* Clears the RPCs in progress of a report, before tc_load_store_add: a later report will have their end. */
void tc_load_stats_none_in_progress(Envoy__Config__Endpoint__V3__ClusterStats **stats, size_t n);

/* Returns the cluster's loads, with one more reference and one more user, which tc_load_cluster_unuse ends. Counts may
 * be added while there is a reference; the store is in use while any cluster has a user. service may be NULL. now_ns:
 * the start of the interval of a new cluster. */
struct tc_load_cluster *tc_load_cluster_get(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service,
                                            uint64_t now_ns);
/* Ends a user; the caller's reference stays. */
void tc_load_cluster_unuse(struct tc_load_cluster *c);
void tc_load_cluster_unref(struct tc_load_cluster *c); /* c may be NULL */
/* Counts RPCs that were dropped. category NULL: without a category (circuit breaking). A new category counts as NULL
 * while the cluster has 1,024 categories, or if the cluster's names would exceed 16 MiB. */
void tc_load_cluster_drop(struct tc_load_cluster *c, struct tc_rstr *category, uint64_t rpcs);

/* Returns the loads of one locality, with one more reference. While the cluster has 65,536 localities, or if the
 * cluster's names would exceed 16 MiB, returns the locality without names instead of a new one. */
struct tc_load_locality *tc_load_locality_get(struct tc_load_cluster *c, struct tc_slice region, struct tc_slice zone,
                                              struct tc_slice sub_zone);
struct tc_load_locality *tc_load_locality_ref(struct tc_load_locality *l);
void tc_load_locality_unref(struct tc_load_locality *l); /* l may be NULL */
/* Returns the counts of the endpoint with this address (tc_addr_format), with one more reference. While the cluster has
 * 65,536 endpoints, returns the locality instead of a new endpoint. Counts of an endpoint go to its locality, too. */
struct tc_load_locality *tc_load_endpoint_get(struct tc_load_cluster *c, struct tc_load_locality *l,
                                              struct tc_slice address);
/* Counts the start of an RPC, which _finished or _revoked must follow. */
void tc_load_locality_started(struct tc_load_locality *l);
/* Counts the end of an RPC. */
void tc_load_locality_finished(struct tc_load_locality *l, bool success);
/* Undoes the start of an RPC that never began. If all starts are in reports already, the RPC counts as failed. */
void tc_load_locality_revoked(struct tc_load_locality *l);
/* Adds `sum`, the sum of a metric's values over `rpcs` RPCs. `name` is read for TC_LOAD_NAMED only, the one kind that
 * endpoints have. Ignores a sum that is not finite, metrics beyond 256 in a locality or 16 in an endpoint, and a new
 * metric of an endpoint if its locality has no room for it. */
void tc_load_locality_metric(struct tc_load_locality *l, enum tc_load_metric kind, struct tc_slice name, uint64_t rpcs,
                             double sum);

/* A cluster that was asked for, in a table by its name. */
struct tc_load_name {
    struct tc_rstr *name;
    UT_hash_handle hh;
};

/* The clusters that a report covers. */
struct tc_load_filter {
    bool all;
    bool endpoints;                   /* report endpoints, too */
    const struct tc_load_name *names; /* unless `all`: the table of the clusters' names */
};

/* Takes out the counts since the last report. Stores them in *out as ClusterStats, in the arena (which must have no
 * budget), and returns their number. Strings point into the store: read them before anything else happens to the store.
 * tc_load_store_settle must follow before the next report is taken. Leaves out localities with neither counts nor RPCs
 * in progress, and clusters with neither a locality to report nor drops. Drops clusters that have no user and that the
 * filter does not name, with their counts. */
size_t tc_load_store_take(struct tc_load_store *s, const struct tc_load_filter *filter, uint64_t now_ns,
                          struct tc_arena *arena, Envoy__Config__Endpoint__V3__ClusterStats ***out);
/* Ends the report under way, if there is one. The counts of a report that was not handed over go into the next one. */
void tc_load_store_settle(struct tc_load_store *s, bool handed_over);
/* Returns whether a cluster that the filter names has counts to report. RPCs in progress are not such counts. */
bool tc_load_store_has_counts(const struct tc_load_store *s, const struct tc_load_filter *filter);

#endif
