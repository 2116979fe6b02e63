/* The adapter of one LB policy of the application. */
#ifndef TC_API_LB_ADAPTER_H
#define TC_API_LB_ADAPTER_H

#include "api/lb_adapter_api.h"

/* Fills in the class. `app` must outlive it. */
void tc_app_lb_factory_init(struct tc_lb_factory *factory, const struct torc_lb_factory *app);

#endif
