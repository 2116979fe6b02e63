/* LB policies of the application's own (torc/lb.h) as policies of src/lb. Any thread. */
#ifndef TC_API_LB_ADAPTER_API_H
#define TC_API_LB_ADAPTER_API_H

#include <torc/lb.h>

#include "lb/policy.h"

/* A registry with the built-in policies and copies of the application's factories; owned by its maker, the channel. */
struct tc_app_lb_factories;

/* Makes the registry from a list that ends with NULL. Returns NULL with an error if a factory is malformed or its name
 * is taken. */
struct tc_app_lb_factories *tc_app_lb_factories_new(const struct torc_lb_factory *const *list, torc_error **error);
/* Calls the `release` of each factory. Called at most once, before tc_app_lb_factories_free. NULL is allowed. */
void tc_app_lb_factories_release(const struct tc_app_lb_factories *c);
/* Frees registry and copies, which no policy may use any longer. Does not call `release`. NULL is allowed. */
void tc_app_lb_factories_free(struct tc_app_lb_factories *c);
/* Returns the registry, which lives as long as `c`. */
const struct tc_lb_registry *tc_app_lb_factories_registry(const struct tc_app_lb_factories *c);

#endif
