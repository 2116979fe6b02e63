/* Consistent hashing with bounded loads, as Envoy has it (Mirrokni, Thorup and Zadimoghaddam, 2018): an endpoint whose
 * RPCs exceed its part of the mean passes further ones on. Internal to ring_hash. Loop thread only. */
#ifndef TC_LB_RING_HASH_BALANCE_H
#define TC_LB_RING_HASH_BALANCE_H

#include "lb/ring_hash/endpoints.h"

/* Gives a set whose config bounds loads its counts: those of `old` (NULL: none) for endpoints that were in it at
 * was[i]. The set has its ring, and the states of its endpoints. Does nothing for other sets. */
void tc_rh_balance_start(struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *was);
/* Returns the endpoint that takes an RPC with this hash whose walk ended at endpoint i: i unless i is loaded beyond its
 * bound; else the first endpoint of a walk that depends on the hash alone whose load is within its bound, or the one
 * with the least load. Endpoints in TRANSIENT_FAILURE and without an entry are left out; with `ready`, all that are not
 * READY. */
uint32_t tc_rh_balance_choose(const struct tc_rh_set *set, uint32_t i, uint64_t hash, bool ready);

#endif
