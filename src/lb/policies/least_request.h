/* least_request (A48): each RPC draws some READY endpoints, and goes to the one of them with the fewest RPCs under way.
 * A config may ask for one of Envoy's variants: the fewest RPCs of all READY endpoints, or weights that shrink with the
 * RPCs under way. Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_POLICIES_LEAST_REQUEST_H
#define TC_LB_POLICIES_LEAST_REQUEST_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_least_request_factory;

#endif
