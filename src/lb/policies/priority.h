/* priority (A56, A115): the highest of several children that works. Child `name` gets the endpoint list of that name.
 * Loop thread only. */
#ifndef TC_LB_POLICIES_PRIORITY_H
#define TC_LB_POLICIES_PRIORITY_H

#include "lb/child_configs.h"

extern const struct tc_lb_factory tc_priority_factory;

#endif
