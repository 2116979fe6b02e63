/* Between outlier_detection.c and outlier_detection_config.c alone: the config's part of the class. */
#ifndef TC_LB_OUTLIER_DETECTION_CONFIG_H
#define TC_LB_OUTLIER_DETECTION_CONFIG_H

#include "lb/outlier_detection.h"

struct tc_lb_config *tc_outlier_detection_parse(const struct tc_lb_class *cls, const json_t *json,
                                                const struct tc_lb_registry *registry, unsigned depth,
                                                struct tc_faults *faults);
void tc_outlier_detection_free_config(struct tc_lb_config *config);
bool tc_outlier_detection_equal_config(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
