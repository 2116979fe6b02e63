/* The endpoints that outlier_detection watches, found by what a child policy makes subchannels of. */
#ifndef TC_LB_OUTLIER_SET_H
#define TC_LB_OUTLIER_SET_H

#include "lb/addr_list.h"
#include "lb/endpoint_map.h"
#include "lb/outlier_sweep.h"

/* Zero-initialised is empty. */
struct tc_outlier_set {
    size_t n;
    struct tc_outlier **all;
    /* Indexes of `all`: by the set of addresses, and by each address (its first endpoint). */
    struct tc_endpoint_map by_endpoint;
    struct tc_addr_map by_addr;
};

/* Each endpoint of the list and those below it once (NULL: none), with what `before` knows of it, which moves over. The
 * lists of both must outlive their sets. */
void tc_outlier_set_init(struct tc_outlier_set *set, const struct tc_endpoints *list, struct tc_outlier_set *before);
void tc_outlier_set_fini(struct tc_outlier_set *set);
/* The endpoint with these addresses; else, for one that a child policy put together anew or holds from an earlier list,
 * one that has this address; else NULL. Borrowed. */
struct tc_outlier *tc_outlier_set_find(const struct tc_outlier_set *set, const struct tc_endpoint *endpoint,
                                       const struct tc_addr *addr);

#endif
