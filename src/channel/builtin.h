/* What src/mesh plugs into the channel. Both are defined in src/mesh/init.c, which libtorc always links; the channel
 * calls them, so that a static archive keeps them too. */
#ifndef TC_CHANNEL_BUILTIN_H
#define TC_CHANNEL_BUILTIN_H

#include "lb/policy.h"

/* Registers the resolvers of src/mesh ("xds") by tc_resolver_register. Called once in a process, before the first
 * target is parsed; from any thread. */
void tc_builtin_init(void);
/* Adds the LB policies of src/mesh to a registry that has the standard ones already. From any thread. */
void tc_builtin_lb_add(struct tc_lb_registry *registry);

#endif
