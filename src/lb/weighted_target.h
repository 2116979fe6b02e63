/* weighted_target (A28): splits picks among named children by weight. Child `name` gets the endpoint list of that
 * name. */
#ifndef TC_LB_WEIGHTED_TARGET_H
#define TC_LB_WEIGHTED_TARGET_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_weighted_target_class;

struct tc_weighted_target {
    struct tc_rstr *name;
    uint32_t weight; /* >= 1 */
    struct tc_lb_config *config;
};

/* A config with one reference; takes references of its own to names and configs. Names must differ. n may be 0: RPCs
 * then fail. */
struct tc_lb_config *tc_weighted_target_config_new(const struct tc_weighted_target *targets, size_t n);

#endif
