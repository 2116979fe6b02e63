/* xds_wrr_locality: picks a locality by its weight, then an endpoint in it by the child policy (A28, A52): a
 * weighted_target over the localities that the endpoint list is made of. */
#ifndef TC_MESH_WRR_LOCALITY_H
#define TC_MESH_WRR_LOCALITY_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_wrr_locality_class;

/* A config with one reference; takes a reference of its own of the child's. */
struct tc_lb_config *tc_wrr_locality_config_new(struct tc_lb_config *child);

#endif
