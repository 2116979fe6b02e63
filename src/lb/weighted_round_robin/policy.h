/* weighted_round_robin (A58): RPCs go to the READY endpoints in proportion to weights, which follow from the load that
 * the backends report (A51), with RPCs or out of band. Connects and reports states as round_robin does. Policies: loop
 * thread only; configs: any thread. */
#ifndef TC_LB_WEIGHTED_ROUND_ROBIN_POLICY_H
#define TC_LB_WEIGHTED_ROUND_ROBIN_POLICY_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_weighted_round_robin_factory;

#endif
