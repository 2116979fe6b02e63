/* pick_first (A61, A62): one connection, to the first address of the list that answers. Policies: loop thread only;
 * configs: any thread. */
#ifndef TC_LB_POLICIES_PICK_FIRST_H
#define TC_LB_POLICIES_PICK_FIRST_H

#include "lb/policy.h"

extern const struct tc_lb_factory tc_pick_first_factory;

/* Returns a config with one reference. shuffle: shuffleAddressList (A62). */
struct tc_lb_config *tc_pick_first_config_new(bool shuffle);
/* Returns a config with one reference, for a policy that gives each endpoint a pick_first of its own (A61). With this
 * config the endpoint's health counts, and the text of a failure is only the error of the address that failed last: the
 * parent adds the rest. */
struct tc_lb_config *tc_pick_first_config_new_petiole(void);
/* Returns true unless the environment has GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=false (in any case of letters).
 * True (A113): endpoints are shuffled by weight, and the weight of an xDS endpoint is in proportion to its share of its
 * priority. False: all orders are equally likely (A62), and the weight of an xDS endpoint is A42's product of the
 * locality's weight and the endpoint's own. Any thread. */
bool tc_pick_first_weighted_shuffling(void);

#endif
