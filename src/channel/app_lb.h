/* LB policies of the application's own (torc/lb.h) as policies of src/lb. */
#ifndef TC_CHANNEL_APP_LB_H
#define TC_CHANNEL_APP_LB_H

#include <torc/lb.h>

#include "lb/policy.h"

/* A registry with the standard policies, mesh's, and the application's classes. */
struct tc_app_lb_classes;

/* NULL-terminated list. NULL with the reason in *why (tc_free) when a class is malformed or its name is taken. */
struct tc_app_lb_classes *tc_app_lb_classes_new(const struct torc_lb_class *const *list, char **why);
void tc_app_lb_classes_free(struct tc_app_lb_classes *c);
const struct tc_lb_registry *tc_app_lb_classes_registry(const struct tc_app_lb_classes *c);
/* The registry that all channels without policies of the application share. */
const struct tc_lb_registry *tc_shared_lb_registry(void);

#endif
