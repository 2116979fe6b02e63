/* Consistent hashing with bounded loads, as Envoy has it (Mirrokni, Thorup and Zadimoghaddam, 2018): an endpoint whose
 * RPCs exceed its part of all RPCs by more than the config's factor passes further RPCs on. Internal to ring_hash. Loop
 * thread only.
 *
 * An RPC that is passed on to an endpoint without a connection waits for the connection, or until an RPC of any
 * endpoint ends: by then its own endpoint may be within its bound. */
#ifndef TC_LB_RING_HASH_BALANCE_H
#define TC_LB_RING_HASH_BALANCE_H

#include "lb/ring_hash/endpoints.h"

/* Gives a set whose config bounds loads its counts. Endpoint i, if it was endpoint was[i] of `old` (NULL: none), takes
 * over the count that it had there. The set must have its ring, and its endpoints their states. Does nothing for a set
 * whose config does not bound loads. */
void tc_rh_balance_start(struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *was);
/* Returns the endpoint that takes an RPC with this hash whose walk over the ring ended at endpoint i. That is i, unless
 * i is loaded beyond its bound. Then a second walk, whose order depends on the hash and the list alone, gives the first
 * endpoint within its bound, or the one with the least load. Endpoints in TRANSIENT_FAILURE and without an entry are
 * left out; with `ready`, all that are not READY. The set must have `balance`. */
uint32_t tc_rh_balance_choose(const struct tc_rh_set *set, uint32_t i, uint64_t hash, bool ready);

#endif
