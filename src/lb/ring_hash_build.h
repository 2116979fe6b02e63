/* Making the ring of a set of endpoints, on whatever thread. Internal to ring_hash. */
#ifndef TC_LB_RING_HASH_BUILD_H
#define TC_LB_RING_HASH_BUILD_H

#include "lb/ring_hash_set.h"

/* All that a ring is made of. */
struct tc_rh_build;

/* The ring over the set's endpoints, out of that of the set that this one replaces (NULL: none). from[i]: where
 * endpoint i was there, TC_RING_ADDED for one that is new. Only this call looks at the sets. */
struct tc_rh_build *tc_rh_build_new(const struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *from,
                                    const struct tc_ring_hash_config *config, uint32_t cap);
void tc_rh_build_free(struct tc_rh_build *b);
/* One that the process has already, with a reference; NULL: it has none. */
struct tc_ring *tc_rh_build_find(const struct tc_rh_build *b);
/* Will it have more entries? */
bool tc_rh_build_exceeds(const struct tc_rh_build *b, uint32_t entries);
/* Builds it. Any thread. */
struct tc_ring *tc_rh_build_run(const struct tc_rh_build *b);

#endif
