/* The construction of a set's look-up, a ring or a table, in three steps so that the second may be on another thread:
 * the loop's thread copies the input out of the sets, the ring is built, the loop's thread takes the ring. */
#ifndef TC_LB_RING_HASH_BUILD_H
#define TC_LB_RING_HASH_BUILD_H

#include "lb/ring_hash/endpoints.h"

/* Everything that a ring is made of, without a pointer into a set. */
struct tc_rh_build;

/* Prepares the look-up over the set's endpoints. A ring is prepared as an update of the ring of `old`, the set that
 * this set replaces (NULL: none). from[i]: where endpoint i is in `old`, TC_RING_ADDED if it is new. Only this call
 * reads the sets. `cap` bounds rings. */
struct tc_rh_build *tc_rh_build_new(const struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *from,
                                    uint32_t cap);
/* NULL is allowed. Any thread. */
void tc_rh_build_free(struct tc_rh_build *b);
/* Returns a reference to the ring that `b` describes if the process has it already, or NULL. */
struct tc_ring *tc_rh_build_find(const struct tc_rh_build *b);
/* Returns whether the look-up may cost more than a ring of so many entries. */
bool tc_rh_build_exceeds(const struct tc_rh_build *b, uint32_t entries);
/* Builds the ring, and returns a reference to it or to an equal one that the process has meanwhile. Any thread. */
struct tc_ring *tc_rh_build_run(const struct tc_rh_build *b);

#endif
