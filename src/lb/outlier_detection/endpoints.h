/* The endpoints that outlier_detection watches. A lookup takes the endpoint and the address for which a child policy
 * creates a subchannel.
 *
 * A new list of endpoints makes a new set, and the state of endpoints that stay moves into the new set. A set owns each
 * struct tc_outlier and borrows the endpoints. Loop thread only. */
#ifndef TC_LB_OUTLIER_DETECTION_ENDPOINTS_H
#define TC_LB_OUTLIER_DETECTION_ENDPOINTS_H

#include "lb/address_list.h"
#include "lb/endpoint_map.h"
#include "lb/outlier_detection/ejection.h"

/* Zero-initialised it is empty. Both maps hold indexes of `all`. */
struct tc_outlier_set {
    size_t n;
    struct tc_outlier **all;            /* owned, as are the n elements; NULL: the element moved to a later set */
    struct tc_endpoint_map by_endpoint; /* by the set of addresses */
    struct tc_addr_map by_addr;         /* by each address: the first endpoint that has it */
};

/* Fills the set with the endpoints of the list and of the lists below it, each once. list NULL: an empty set. The list
 * must outlive the set. `before` is the set of the last list, which must still be alive. An endpoint that is in
 * `before`, too, takes its struct tc_outlier along; the caller then ends `before` with tc_outlier_set_fini. */
void tc_outlier_set_init(struct tc_outlier_set *set, const struct tc_endpoints *list, struct tc_outlier_set *before);
void tc_outlier_set_fini(struct tc_outlier_set *set);
/* Returns the endpoint with the addresses of `endpoint`; otherwise the first endpoint that has `addr`, since a child
 * policy may regroup addresses or hold an endpoint of an earlier list; otherwise NULL. Borrowed from the set, or from
 * the later set into which it moves. */
struct tc_outlier *tc_outlier_set_find(const struct tc_outlier_set *set, const struct tc_endpoint *endpoint,
                                       const struct tc_addr *addr);

#endif
