/* ring_hash (A42 with the picker of A61, A76): each RPC to the endpoint that its hash hits on the ring. */
#ifndef TC_LB_RING_HASH_H
#define TC_LB_RING_HASH_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_ring_hash_class;

struct tc_ring_hash_config {
    struct tc_lb_config base;
    uint64_t min_ring_size;
    uint64_t max_ring_size;
    struct tc_rstr *request_hash_header; /* A76, lower case; NULL: the hash comes with the pick */
};

/* A config with one reference. 1 <= min <= max <= TC_RING_SIZE_MAX; the channel's cap applies later. The header's name
 * must be valid and not end in "-bin"; empty: none. */
struct tc_lb_config *tc_ring_hash_config_new(uint64_t min_ring_size, uint64_t max_ring_size,
                                             struct tc_slice request_hash_header);
/* True unless GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY=false turns request_hash_header off. */
bool tc_ring_hash_header_enabled(void);

#endif
