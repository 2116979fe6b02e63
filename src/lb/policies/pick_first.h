/* pick_first (A61, A62): one connection, to the first address that answers of those tried in the order of the list.
 * Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_POLICIES_PICK_FIRST_H
#define TC_LB_POLICIES_PICK_FIRST_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_pick_first_factory;

/* Returns a config with one reference. `shuffle` is shuffleAddressList (A62). */
struct tc_lb_config *tc_pick_first_config_new(bool shuffle);
/* Returns a config with one reference, for a petiole policy (A61), which gives each endpoint a pick_first of its own.
 * The endpoint's health counts. The text of a failure is the last error alone: the petiole policy adds the rest. */
struct tc_lb_config *tc_pick_first_config_new_petiole(void);
/* Returns true unless GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=false (in upper or lower case). True (A113): the shuffle
 * goes by the endpoints' weights, and the weight of an EDS endpoint is in proportion to its share of its priority.
 * False: all orders are equally likely (A62), and the weight of an EDS endpoint is A42's product of its locality's
 * weight and its own. Reads the environment each time. */
bool tc_pick_first_weighted_shuffling(void);

#endif
