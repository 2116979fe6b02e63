/* The config of outlier_detection: A50's OutlierDetectionLoadBalancingConfig, from JSON and from code (cds makes it
 * from a Cluster). Immutable and counted, as all LB configs are; any thread. */
#ifndef TC_LB_OUTLIER_DETECTION_CONFIG_H
#define TC_LB_OUTLIER_DETECTION_CONFIG_H

#include "lb/policy.h"

/* The settings that A50's two algorithms have in common. */
struct tc_outlier_algorithm {
    bool on;
    uint32_t enforcement_percent; /* 0..100: the chance that an endpoint that the algorithm finds is ejected */
    uint32_t minimum_hosts;       /* with fewer endpoints that reach request_volume the algorithm does nothing */
    uint32_t request_volume; /* RPCs that an endpoint must have had in the interval to be looked at; 0 counts as 1 */
};

/* Fractions are stored as whole numbers, so that configs can be compared exactly. */
struct tc_outlier_settings {
    uint64_t interval_ms;
    uint64_t base_ejection_ms;
    uint64_t max_ejection_ms; /* as configured; the longer of this and base_ejection_ms counts */
    /* 0..100. Once this share of the endpoints is ejected, no other is. One endpoint may be ejected in any case. */
    uint32_t max_ejection_percent;
    struct tc_outlier_algorithm success_rate;
    uint32_t stdev_factor; /* of the success rate algorithm, in thousandths */
    struct tc_outlier_algorithm failure_percentage;
    uint32_t failure_threshold; /* of the failure percentage algorithm, in percent */
};

struct tc_outlier_config {
    struct tc_lb_config base; /* first */
    struct tc_outlier_settings settings;
    struct tc_lb_config *child; /* a reference */
};

static inline const struct tc_outlier_config *tc_outlier_config(const struct tc_lb_config *config)
{
    return TC_CONTAINER_OF(config, const struct tc_outlier_config, base);
}

/* A50's default settings with both algorithms off: a policy with these settings ejects nothing. */
extern const struct tc_outlier_settings tc_outlier_defaults;

/* Returns a config for `factory`, which is outlier_detection's, with one reference. Takes a reference of `child`. */
struct tc_lb_config *tc_outlier_config_new(const struct tc_lb_factory *factory,
                                           const struct tc_outlier_settings *settings, struct tc_lb_config *child);

/* The operations of the factory that concern configs. */
struct tc_lb_config *tc_outlier_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                             const struct tc_lb_registry *registry, unsigned depth,
                                             struct tc_validation_errors *errors);
void tc_outlier_config_free(struct tc_lb_config *config);
bool tc_outlier_config_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
