/* random_subsetting (A68): gives its child subsetSize of the endpoints, chosen by a random seed that each policy draws
 * once. If there are not more than subsetSize, the child gets all. So with many backends a client connects to a few of
 * them, and a backend has connections from a part of the clients. Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_POLICIES_RANDOM_SUBSETTING_H
#define TC_LB_POLICIES_RANDOM_SUBSETTING_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_random_subsetting_factory;

/* Returns the list of the `size` endpoints with the least hashes of their first address, in the order of the hashes; or
 * `all` itself if it has no more than `size`. A new reference in both cases. The lists of named children keep the
 * endpoints that were chosen, and lose lists of children of their own. */
struct tc_endpoints *tc_random_subset(struct tc_endpoints *all, uint32_t size, uint64_t seed);

#endif
