/* outlier_detection (A50, with A61's endpoints and health reports and A75's place above priority): counts how the RPCs
 * of each endpoint end, and takes those that fail much more often than the others, or more often than a threshold, out
 * of service for a while. An ejected endpoint keeps its connection; the pick_first of a policy that gives each endpoint
 * one reports it as TRANSIENT_FAILURE. A pick_first that stands for itself hears nothing of it. */
#ifndef TC_LB_OUTLIER_DETECTION_H
#define TC_LB_OUTLIER_DETECTION_H

/* An interval is no shorter than this, and 1 ms for so many endpoints. */
#define TC_OUTLIER_INTERVAL_MIN_MS 10
#define TC_OUTLIER_PER_MS 200

#include "lb/policy.h"

struct tc_outlier_settings {
    uint64_t interval_ms;
    uint64_t base_ejection_ms;
    uint64_t max_ejection_ms; /* as configured; the longer of this and base_ejection_ms counts */
    uint32_t max_ejection_percent;
    bool by_success_rate; /* the algorithm is on */
    struct {
        uint32_t stdev_factor; /* thousandths */
        uint32_t enforcement_percent;
        uint32_t minimum_hosts;
        uint32_t request_volume;
    } success_rate;
    bool by_failure_percentage;
    struct {
        uint32_t threshold;
        uint32_t enforcement_percent;
        uint32_t minimum_hosts;
        uint32_t request_volume;
    } failure_percentage;
};

/* A50's default settings, both algorithms off: a policy of these does nothing. */
extern const struct tc_outlier_settings tc_outlier_defaults;

extern const struct tc_lb_class tc_outlier_detection_class;

/* A config with one reference; takes a reference of child. */
struct tc_lb_config *tc_outlier_detection_config_new(const struct tc_outlier_settings *settings,
                                                     struct tc_lb_config *child);
/* Borrowed from the config. */
const struct tc_outlier_settings *tc_outlier_detection_settings(const struct tc_lb_config *config);
struct tc_lb_config *tc_outlier_detection_child(const struct tc_lb_config *config);

#endif
