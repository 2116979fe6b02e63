/* Between load_store.c and load_report.c. */
#ifndef TC_XDS_LOAD_IMPL_H
#define TC_XDS_LOAD_IMPL_H

#include "xds/load_store.h"

struct tc_load_store {
    struct tc_link clusters;         /* a reference each */
    struct tc_load_cluster *by_name; /* the same ones */
    size_t n_idle;                   /* clusters that nobody uses */
    size_t n_used;
    void (*on_users)(void *arg);
    void (*on_gathered)(void *arg);
    void *arg;
    void (*on_use)(void *arg, const struct tc_load_cluster *cluster, bool used);
    void *on_use_arg;
    struct tc_link sources;
};

/* Drops what nobody uses and nothing is left to be said of; `unasked`: whatever is left. */
void tc_load_cluster_sweep(struct tc_load_cluster *c, bool unasked);
/* Borrowed; made when there is none, without a user. */
struct tc_load_cluster *tc_load_cluster_find(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service,
                                             uint64_t now_ns);
/* As the ones for a single RPC. */
void tc_load_cluster_drops(struct tc_load_cluster *c, struct tc_rstr *category, uint64_t n);
void tc_load_locality_metrics(struct tc_load_locality *l, enum tc_load_metric kind, struct tc_slice name, uint64_t n,
                              double sum);
bool tc_load_locality_is_zero(const struct tc_load_locality *l);

#endif
