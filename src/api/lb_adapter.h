/* The adapter of one of the application's LB policies, for lb_adapter_registry.c. Any thread. */
#ifndef TC_API_LB_ADAPTER_H
#define TC_API_LB_ADAPTER_H

#include "api/lb_adapter_api.h"

/* Fills in a factory whose policies call `app`'s functions. `app` is borrowed and must outlive the factory. */
void tc_app_lb_factory_init(struct tc_lb_factory *factory, const struct torc_lb_factory *app);

#endif
