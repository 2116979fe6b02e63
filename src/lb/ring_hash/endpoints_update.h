/* The endpoints of an update, found again in the set that the policy has. Loop thread only. */
#ifndef TC_LB_RING_HASH_ENDPOINTS_UPDATE_H
#define TC_LB_RING_HASH_ENDPOINTS_UPDATE_H

#include "lb/ring_hash/endpoints.h"
#include "ring/update.h"

/* Appends the endpoints of the list to `set`, which has room for them. Endpoints with the same addresses become one,
 * whose weight is the sum of theirs (A61). was[i] becomes the index of the set's endpoint i in `old` (may be NULL),
 * TC_RING_ADDED if it is not in there; `was` has room for list->n. */
void tc_rh_set_merge(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                     uint32_t *was);

#endif
