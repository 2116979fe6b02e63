/* The inside of a load store, for its reports (load_report.c) and for counts of other loops (load_source.c). Loop
 * thread only. */
#ifndef TC_XDS_LOAD_LOAD_STORE_INTERNAL_H
#define TC_XDS_LOAD_LOAD_STORE_INTERNAL_H

#include "xds/load/load_store.h"

struct tc_load_store {
    /* Clusters stay until their counts were reported, also without a user: RPCs that ended must not be lost. */
    struct tc_link clusters;         /* a reference each */
    struct tc_load_cluster *by_name; /* the same clusters by key */
    size_t n_idle;                   /* clusters that nobody uses */
    size_t n_used;
    void (*on_users)(void *arg);    /* n_used is no longer 0, or is 0 again: the LRS stream begins or ends */
    void (*on_gathered)(void *arg); /* all sources have handed in their counts; NULL: nobody waits */
    void *arg;                      /* of on_users and on_gathered */
    bool by_endpoint;               /* for clusters that are made from now on, too */
    /* A cluster got its first user (`used`), or lost its last one. NULL: nobody asks. */
    void (*on_use)(void *arg, const struct tc_load_cluster *cluster, bool used);
    void *on_use_arg;
    struct tc_link sources; /* stores of other loops whose counts this one reports */
};

/* Removes localities and endpoints that nobody else holds and that have neither counts nor RPCs in progress. Then
 * removes the cluster if only the store holds it and it has no user and no counts. `unasked`: removes a cluster without
 * users in any case. */
void tc_load_cluster_sweep(struct tc_load_cluster *c, bool unasked);
/* Returns the cluster, borrowed. It is made, without a user, if it does not exist. */
struct tc_load_cluster *tc_load_cluster_find(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service,
                                             uint64_t now_ns);
/* Adds to the sums of this locality or endpoint alone. */
void tc_load_locality_add_metric(struct tc_load_locality *l, enum tc_load_metric kind, struct tc_slice name, uint64_t n,
                                 double sum);
/* Returns true if a report would say nothing about the locality or endpoint. */
bool tc_load_locality_is_zero(const struct tc_load_locality *l);

#endif
