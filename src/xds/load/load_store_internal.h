/* The inside of a load store, shared by load_store.c, load_report.c and load_source.c. Loop thread only. */
#ifndef TC_XDS_LOAD_LOAD_STORE_INTERNAL_H
#define TC_XDS_LOAD_LOAD_STORE_INTERNAL_H

#include "xds/load/load_store.h"

struct tc_load_store {
    /* Clusters stay until their counts were reported, also without a user (see load_store.c). */
    struct tc_link clusters;         /* a reference each */
    struct tc_load_cluster *by_name; /* the same clusters by key */
    size_t n_idle;                   /* clusters without a user */
    size_t n_used;                   /* clusters with a user */
    void (*on_users)(void *arg);     /* n_used is no longer 0, or is 0 again: the LRS stream begins or ends */
    void (*on_gathered)(void *arg);  /* no source is pending any longer; NULL until the first gather */
    void *arg;                       /* of on_users and on_gathered */
    bool by_endpoint;                /* tc_load_store_by_endpoint; a new cluster takes it over */
    /* A cluster got its first user (`used`), or lost its last one. NULL: nobody asks. */
    void (*on_use)(void *arg, const struct tc_load_cluster *cluster, bool used);
    void *on_use_arg;
    struct tc_link sources; /* of struct tc_load_source */
};

/* Removes localities and endpoints that nobody else holds and that have neither counts nor RPCs in progress. Then
 * removes the cluster if it has no user, no locality and no drops and only the store holds it. `unasked`: removes it
 * whenever it has no user. May free the cluster. */
void tc_load_cluster_sweep(struct tc_load_cluster *c, bool unasked);
/* Sweeps a cluster that has no user; removes it if the store has more than MAX_IDLE_CLUSTERS (load_store.c) of them.
 * The cluster must be in a store. May free the cluster. */
void tc_load_cluster_limit(struct tc_load_cluster *c);
/* Returns the cluster, borrowed. Makes the cluster, without a user, if it does not exist. */
struct tc_load_cluster *tc_load_cluster_find(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service,
                                             uint64_t now_ns);
/* Adds to the sums of this locality or endpoint alone. */
void tc_load_locality_add_metric(struct tc_load_locality *l, enum tc_load_metric kind, struct tc_slice name, uint64_t n,
                                 double sum);
/* Returns true if the locality or endpoint has neither counts nor RPCs in progress. Does not look at metrics. */
bool tc_load_locality_is_zero(const struct tc_load_locality *l);

#endif
