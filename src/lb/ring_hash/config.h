/* The configs of the consistent hashing policies, from JSON and from code: A42's RingHashLoadBalancingConfig with A76's
 * header, and maglev's; both with Envoy's settings of consistent hashing. Immutable and counted, any thread. */
#ifndef TC_LB_RING_HASH_CONFIG_H
#define TC_LB_RING_HASH_CONFIG_H

#include "lb/policy.h"

enum { TC_RH_BALANCE_MIN = 100 }; /* percent: the least balance_factor */

struct tc_ring_hash_config {
    struct tc_lb_config base;
    uint64_t min_ring_size;              /* entries, 1 to max_ring_size */
    uint64_t max_ring_size;              /* entries, at most TC_RING_SIZE_MAX; the channel's cap applies later */
    uint32_t table_size;                 /* maglev: slots of the table; 0: hashes are looked up in a ring */
    bool locality_weighted;              /* maglev: localities share by weight, then the endpoints of each locality */
    bool use_hostname;                   /* an endpoint without hash_key is hashed by its hostname, if it has one */
    uint32_t balance_factor;             /* bounded loads (balance.h): percent, at least 100; 0: loads do not count */
    struct tc_rstr *request_hash_header; /* A76, lower case; NULL: the hash comes with the pick */
};

/* Returns true unless GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY=false, in any case of letters, turns
 * request_hash_header off. */
bool tc_ring_hash_header_enabled(void);
/* Returns a config for `factory` with the default sizes of ring_hash and one reference. The header's name must be
 * valid, in lower case, and not end in "-bin"; empty: no header. If tc_ring_hash_header_enabled() is false, the
 * config has no header. */
struct tc_ring_hash_config *tc_rh_config_new(const struct tc_lb_factory *factory, struct tc_slice request_hash_header);

/* The operations of the factories that concern configs. */
struct tc_lb_config *tc_rh_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                        const struct tc_lb_registry *registry, unsigned depth,
                                        struct tc_validation_errors *errors);
struct tc_lb_config *tc_maglev_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                            const struct tc_lb_registry *registry, unsigned depth,
                                            struct tc_validation_errors *errors);
void tc_rh_config_free(struct tc_lb_config *config);
bool tc_rh_config_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);
/* Returns true if both configs make the same look-up of the same endpoints. */
bool tc_rh_config_same_ring(const struct tc_ring_hash_config *a, const struct tc_ring_hash_config *b);

#endif
