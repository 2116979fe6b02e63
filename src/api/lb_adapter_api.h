/* LB policies of the application's own (torc/lb.h) as policies of src/lb. Made and freed by one thread at a time; the
 * registry is for any thread. */
#ifndef TC_API_LB_ADAPTER_API_H
#define TC_API_LB_ADAPTER_API_H

#include <torc/lb.h>

#include "lb/policy.h"

/* A registry with the built-in policies and copies of the application's factories. The channel owns it. */
struct tc_app_lb_factories;

/* Makes the registry from a list that ends with NULL. The structs are copied, their texts are borrowed; so is the
 * channel's loop, while configs are parsed. Returns NULL with an error if a factory is malformed or its name is
 * taken. */
struct tc_app_lb_factories *tc_app_lb_factories_new(const struct torc_lb_factory *const *list,
                                                    const struct tc_loop *loop, torc_error **error);
/* Calls the `release` of each factory that has one. Called at most once, before tc_app_lb_factories_free. NULL is
 * allowed. */
void tc_app_lb_factories_release(const struct tc_app_lb_factories *c);
/* Frees the registry and the copies. No policy may use them any longer. Does not call `release`. NULL is allowed. */
void tc_app_lb_factories_free(struct tc_app_lb_factories *c);
/* Returns the registry, which lives as long as `c`. */
const struct tc_lb_registry *tc_app_lb_factories_registry(const struct tc_app_lb_factories *c);

#endif
