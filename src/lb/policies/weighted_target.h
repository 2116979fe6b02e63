/* weighted_target (A28): splits picks among named children by weight. Each child gets the endpoint list that has its
 * name. Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_POLICIES_WEIGHTED_TARGET_H
#define TC_LB_POLICIES_WEIGHTED_TARGET_H

#include "lb/child_configs.h"

extern const struct tc_lb_factory tc_weighted_target_factory;

#endif
