/* xds_wrr_locality: picks a locality by its weight, then an endpoint in it by the child policy (A28, A52): a
 * weighted_target over the localities that the endpoint list is made of. Loop thread only. */
#ifndef TC_XDS_LB_WRR_LOCALITY_H
#define TC_XDS_LB_WRR_LOCALITY_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_wrr_locality_factory;

#endif
