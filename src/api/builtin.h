/* The composition root: the one file that names every LB policy and HTTP filter of Torc, and the resolvers of higher
 * layers than src/resolver (resolver/registry.c names the others). Any thread. */
#ifndef TC_API_BUILTIN_H
#define TC_API_BUILTIN_H

#include "lb/policy.h"

struct tc_xds_registries;

/* Registers the resolvers of higher layers than src/resolver ("xds"), and gives the built-in LB policies and HTTP
 * filters to the validation of xDS resources. Repeated calls do nothing. Must run before the first channel is made and
 * before the first resource is validated: torc_channel_new calls it, as does the command. Any thread. */
void tc_builtin_init(void);
/* Adds every built-in LB policy to a registry that has none of them. Any thread. */
void tc_builtin_add_policies(struct tc_lb_registry *registry);
/* Calls tc_builtin_init, and returns the process's validation context (xds/domain/validation_context.h). Only in a
 * library with xDS. Any thread. */
const struct tc_xds_registries *tc_builtin_validation_context(void);
/* Returns the registry of all built-in LB policies, which the process shares and never frees. Any thread. */
const struct tc_lb_registry *tc_builtin_policies(void);

#endif
