/* round_robin: the connected endpoints in turn, each with a pick_first of its own (A61). No settings. */
#ifndef TC_LB_ROUND_ROBIN_H
#define TC_LB_ROUND_ROBIN_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_round_robin_class;

/* A config with one reference. */
struct tc_lb_config *tc_round_robin_config_new(void);

#endif
