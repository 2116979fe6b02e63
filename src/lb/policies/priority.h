/* priority (A56, A115): serves from the highest of several children that works. Each child gets the endpoint list that
 * has its name. Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_POLICIES_PRIORITY_H
#define TC_LB_POLICIES_PRIORITY_H

#include "lb/child_configs.h"

extern const struct tc_lb_factory tc_priority_factory;

#endif
