/* The adapter of one of the application's LB policies, for lb_adapter_registry.c. Any thread. */
#ifndef TC_API_LB_ADAPTER_H
#define TC_API_LB_ADAPTER_H

#include "api/lb_adapter_api.h"

/* The factory of an application's policy. The owner sets `app`, whose texts are borrowed, and `loop`, the channel's,
 * which must live while the factory is used: once it no longer turns (tc_loop_forked), check_config is not called. */
struct tc_app_lb_factory {
    struct tc_lb_factory base;
    struct torc_lb_factory app;
    const struct tc_loop *loop;
};

/* Fills in `base`, whose policies call the functions of `app`. */
void tc_app_lb_factory_init(struct tc_app_lb_factory *factory);

#endif
