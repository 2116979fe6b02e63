/* The config of ring_hash: A42's RingHashLoadBalancingConfig with A76's header, from JSON and from code. Immutable and
 * counted, any thread. */
#ifndef TC_LB_RING_HASH_CONFIG_H
#define TC_LB_RING_HASH_CONFIG_H

#include "lb/policy.h"

struct tc_ring_hash_config {
    struct tc_lb_config base;
    uint64_t min_ring_size;
    uint64_t max_ring_size;
    struct tc_rstr *request_hash_header; /* A76, lower case; NULL: the hash comes with the pick */
};

/* Returns a config for `factory`, which is ring_hash's, with one reference. 1 <= min <= max <= TC_RING_SIZE_MAX; the
 * channel's cap applies later. The header's name must be valid and not end in "-bin"; empty: no header. */
struct tc_lb_config *tc_rh_config_new(const struct tc_lb_factory *factory, uint64_t min_ring_size,
                                      uint64_t max_ring_size, struct tc_slice request_hash_header);
/* Returns true unless GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY=false turns request_hash_header off. */
bool tc_ring_hash_header_enabled(void);

/* The operations of the factory that concern configs. */
struct tc_lb_config *tc_rh_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                        const struct tc_lb_registry *registry, unsigned depth,
                                        struct tc_validation_errors *errors);
void tc_rh_config_free(struct tc_lb_config *config);
bool tc_rh_config_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
