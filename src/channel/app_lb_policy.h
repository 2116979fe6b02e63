/* The adapter of one policy class of the application. Inside src/channel. */
#ifndef TC_CHANNEL_APP_LB_POLICY_H
#define TC_CHANNEL_APP_LB_POLICY_H

#include "channel/app_lb.h"

/* Fills in the class; `app` must outlive it. */
void tc_app_lb_class_init(struct tc_lb_class *cls, const struct torc_lb_class *app);

#endif
