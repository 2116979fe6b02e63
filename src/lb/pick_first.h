/* pick_first (A61, A62): one connection to the first address that answers. */
#ifndef TC_LB_PICK_FIRST_H
#define TC_LB_PICK_FIRST_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_pick_first_class;

/* A config with one reference. shuffle: shuffleAddressList (A62). */
struct tc_lb_config *tc_pick_first_config_new(bool shuffle);
/* For a policy that gives each endpoint a pick_first of its own: its failures are the bare error of the last address,
 * since the parent says the rest. */
struct tc_lb_config *tc_pick_first_config_new_petiole(void);
/* A113: GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=true. The shuffle goes by the endpoints' weights then, and those of xDS
 * are shares of their priority. */
bool tc_pick_first_weighted_shuffling(void);

#endif
