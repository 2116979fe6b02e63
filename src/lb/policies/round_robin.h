/* round_robin (A61): picks the READY endpoints one after the other. Has no settings. Policies: loop thread only;
 * configs: any thread. */
#ifndef TC_LB_POLICIES_ROUND_ROBIN_H
#define TC_LB_POLICIES_ROUND_ROBIN_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_round_robin_factory;

/* Returns a config with one reference. */
struct tc_lb_config *tc_round_robin_config_new(void);

#endif
