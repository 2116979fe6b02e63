/* The construction of a set's look-up, a ring or a table, in three steps: the loop's thread copies the input out of the
 * sets, any thread builds the look-up, the loop's thread takes it. Loop thread only, unless a comment says
 * otherwise. */
#ifndef TC_LB_RING_HASH_BUILD_H
#define TC_LB_RING_HASH_BUILD_H

#include "lb/ring_hash/endpoints.h"

/* Everything that a look-up is made of, without a pointer into a set. */
struct tc_rh_build;

/* Prepares the look-up over the set's endpoints. The caller frees the result with tc_rh_build_free. Only this call
 * reads the sets. A ring is prepared as an update of the ring of `old`, the set that this set replaces (NULL: none),
 * unless the two configs differ in use_hostname. from[i]: where endpoint i is in `old`, TC_RING_ADDED if it is new; not
 * kept, and not read if `old` is NULL. `cap`: the largest ring; does not bound tables. */
struct tc_rh_build *tc_rh_build_new(const struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *from,
                                    uint32_t cap);
/* NULL is allowed. Any thread. */
void tc_rh_build_free(struct tc_rh_build *b);
/* Returns a reference to the look-up that `b` describes if the process has it already, or NULL. */
struct tc_ring *tc_rh_build_find(const struct tc_rh_build *b);
/* Returns whether the look-up may cost more than a ring of so many entries. */
bool tc_rh_build_exceeds(const struct tc_rh_build *b, uint32_t entries);
/* Builds the look-up, and returns a reference to it or to an equal one that the process has meanwhile. Any thread. */
struct tc_ring *tc_rh_build_run(const struct tc_rh_build *b);

#endif
