/* least_request (A48): some READY endpoints are drawn for each RPC, which goes to the one with the fewest RPCs under
 * way. Two variants are Envoy's, where the config asks for them: the fewest RPCs of all endpoints, and weights that
 * shrink with the RPCs under way. Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_POLICIES_LEAST_REQUEST_H
#define TC_LB_POLICIES_LEAST_REQUEST_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_least_request_factory;

#endif
