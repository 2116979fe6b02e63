/* The composition root: api/builtin.c names every LB policy and HTTP filter of Torc, and the "xds" resolver.
 * resolver/registry.c names the other resolvers. Any thread. */
#ifndef TC_API_BUILTIN_H
#define TC_API_BUILTIN_H

#include "lb/policy.h"

struct tc_xds_registries;

/* Registers the "xds" resolver, and sets up the validation context of xDS resources. Repeated calls do nothing, and so
 * does a call in a library without xDS. Must run before the target of the first channel is parsed and before the first
 * resource is validated. tc_builtin_policies and tc_builtin_validation_context call it. Any thread. */
void tc_builtin_init(void);
/* Adds every built-in LB policy to an empty registry, which no other thread uses meanwhile. */
void tc_builtin_add_policies(struct tc_lb_registry *registry);
/* Calls tc_builtin_init, and returns the process's validation context (xds/domain/validation_context.h). Only in a
 * library with xDS. Any thread. */
const struct tc_xds_registries *tc_builtin_validation_context(void);
/* Calls tc_builtin_init, and returns the registry of all built-in LB policies: constant, never freed. Any thread. */
const struct tc_lb_registry *tc_builtin_policies(void);

#endif
