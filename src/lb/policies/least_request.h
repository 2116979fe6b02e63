/* least_request (A48): each RPC goes to the endpoint with the fewest RPCs under way of some that are drawn. As Envoy,
 * where the config asks, also of all, or by weights that shrink with the RPCs under way. Loop thread only. */
#ifndef TC_LB_POLICIES_LEAST_REQUEST_H
#define TC_LB_POLICIES_LEAST_REQUEST_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_least_request_factory;

#endif
