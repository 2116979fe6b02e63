/* Between load_store.c and load_report.c. */
#ifndef TC_XDS_LOAD_IMPL_H
#define TC_XDS_LOAD_IMPL_H

#include "xds/load_store.h"

struct tc_load_store {
    struct tc_link clusters; /* a reference each */
    size_t n_idle;           /* clusters that nobody uses */
    size_t n_used;
    void (*on_users)(void *arg);
    void *arg;
};

/* Drops what nobody uses and nothing is left to be said of; `unasked`: whatever is left. */
void tc_load_cluster_sweep(struct tc_load_cluster *c, bool unasked);
bool tc_load_locality_is_zero(const struct tc_load_locality *l);

#endif
