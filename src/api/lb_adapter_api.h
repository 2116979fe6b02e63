/* LB policies of the application's own (torc/lb.h) as policies of src/lb. Any thread. */
#ifndef TC_API_LB_ADAPTER_API_H
#define TC_API_LB_ADAPTER_API_H

#include <torc/lb.h>

#include "lb/policy.h"

/* A registry with the built-in policies and the application's classes. */
struct tc_app_lb_classes;

/* `list` ends with NULL. Returns NULL with the reason in *why (tc_free) if a class is malformed or its name is taken.
 */
struct tc_app_lb_classes *tc_app_lb_classes_new(const struct torc_lb_class *const *list, char **why);
void tc_app_lb_classes_free(struct tc_app_lb_classes *c);
const struct tc_lb_registry *tc_app_lb_classes_registry(const struct tc_app_lb_classes *c);

#endif
