/* Consistent hashing with bounded loads, as Envoy has it (Mirrokni, Thorup and Zadimoghaddam, 2018): an endpoint passes
 * further RPCs on while it has more RPCs than its part, by weight, of all RPCs times the config's factor. balance.c has
 * the arithmetic. Internal to ring_hash. Loop thread only.
 *
 * An RPC that is passed on to an endpoint without a connection waits for the connection, or until an RPC of any
 * endpoint ends: then the endpoint that the hash hits may be within its bound again. */
#ifndef TC_LB_RING_HASH_BALANCE_H
#define TC_LB_RING_HASH_BALANCE_H

#include "lb/ring_hash/endpoints.h"

/* Makes set->balance, which the set owns. Endpoint i takes over the count of endpoint was[i] of `old`, unless was[i] is
 * TC_RING_ADDED. If `old` is NULL or did not bound loads, all counts begin at 0. The set must have its ring, and its
 * endpoints their states. Does nothing if the set's config does not bound loads. */
void tc_rh_balance_start(struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *was);
/* Returns the endpoint that takes an RPC with this hash whose walk over the ring ended at endpoint i. That is i, unless
 * i is loaded beyond its bound. Then a second walk, whose order depends on the hash and the list alone, gives the first
 * endpoint within its bound, or else the one with the least load. It leaves out endpoints in TRANSIENT_FAILURE and
 * endpoints without an entry; with `ready`, all that are not READY. The set must have `balance`. */
uint32_t tc_rh_balance_choose(const struct tc_rh_set *set, uint32_t i, uint64_t hash, bool ready);

#endif
