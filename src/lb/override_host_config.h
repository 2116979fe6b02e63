/* Between override_host.c and override_host_config.c alone: the config's part of the class. */
#ifndef TC_LB_OVERRIDE_HOST_CONFIG_H
#define TC_LB_OVERRIDE_HOST_CONFIG_H

#include "lb/override_host.h"

struct tc_lb_config *tc_override_host_parse(const struct tc_lb_class *cls, const json_t *json,
                                            const struct tc_lb_registry *registry, unsigned depth,
                                            struct tc_faults *faults);
void tc_override_host_free_config(struct tc_lb_config *config);
bool tc_override_host_equal_config(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
