/* The consistent hashing policies. ring_hash (A42 with the picker of A61, and A76) sends each RPC to the endpoint that
 * its hash hits on the ring. maglev does the same with Envoy's Maglev table instead of the ring. Policies: loop thread
 * only; configs: any thread. */
#ifndef TC_LB_RING_HASH_POLICY_H
#define TC_LB_RING_HASH_POLICY_H

#include "lb/ring_hash/config.h"

extern const struct tc_lb_factory tc_ring_hash_factory;
extern const struct tc_lb_factory tc_maglev_factory;

/* Returns a config with one reference. 1 <= min <= max <= TC_RING_SIZE_MAX; the channel's cap applies later. The
 * header's name must be valid, in lower case, and not end in "-bin"; empty, or tc_ring_hash_header_enabled() is false:
 * no header. */
struct tc_lb_config *tc_ring_hash_config_new(uint64_t min_ring_size, uint64_t max_ring_size,
                                             struct tc_slice request_hash_header);

#endif
