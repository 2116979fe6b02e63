/* The config of weighted_round_robin (A58, A114). Immutable and counted, any thread. */
#ifndef TC_LB_WEIGHTED_ROUND_ROBIN_CONFIG_H
#define TC_LB_WEIGHTED_ROUND_ROBIN_CONFIG_H

#include "lb/policy.h"

enum {
    TC_WRR_UPDATE_MIN_MS = 100,      /* A58: a shorter weightUpdatePeriod is raised to this */
    TC_WRR_UPDATE_MAX_MS = 86400000, /* a longer weightUpdatePeriod is cut to this, one day */
    TC_WRR_METRICS_MAX = 100,        /* a config with more metricNamesForComputingUtilization is refused */
};

/* A metric that may be the utilization (A114). */
struct tc_wrr_metric {
    uint64_t field;       /* enum tc_orca_field */
    struct tc_rstr *name; /* empty for fields without names */
};

struct tc_wrr_config {
    struct tc_lb_config base; /* first */
    bool oob;                 /* enableOobLoadReport: reports come out of band, not with RPCs */
    uint64_t oob_period_ms;   /* the interval of reports that backends are asked for; 0: the backend decides */
    uint64_t blackout_ms;     /* how long reports must have come before a weight is used */
    uint64_t expiration_ms;   /* how long a weight is used after the last usable report */
    uint64_t update_ms;       /* weightUpdatePeriod: at most so long between schedulers */
    double penalty;           /* errorUtilizationPenalty */
    size_t n_metrics;
    struct tc_wrr_metric *metrics;
};

static inline const struct tc_wrr_config *tc_wrr_config(const struct tc_lb_config *config)
{
    return TC_CONTAINER_OF(config, const struct tc_wrr_config, base);
}

/* The operations of the factory that concern configs. */
struct tc_lb_config *tc_wrr_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_validation_errors *errors);
void tc_wrr_config_free(struct tc_lb_config *config);
bool tc_wrr_config_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
