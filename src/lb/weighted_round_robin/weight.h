/* The weight of an endpoint by its load reports (A58, A114). Counted: the policy holds a reference for the endpoint,
 * and so does each RPC whose trailers may bring a report. Loop thread only. */
#ifndef TC_LB_WEIGHTED_ROUND_ROBIN_WEIGHT_H
#define TC_LB_WEIGHTED_ROUND_ROBIN_WEIGHT_H

#include "base/ref.h"
#include "lb/weighted_round_robin/config.h"

struct tc_wrr_weight {
    struct tc_lref ref;
    float weight;            /* RPCs a second divided by utilization (weight.c), from the last usable report; 0: none */
    uint64_t last_update_ns; /* when the last usable report came, in the loop's time */
    /* When the first usable report came since the endpoint became READY, or since tc_wrr_weight_get last found the
     * weight expired. UINT64_MAX: none came. The blackout period begins here. */
    uint64_t non_empty_since_ns;
};

/* Returns a weight without a report, with one reference; never NULL. */
struct tc_wrr_weight *tc_wrr_weight_new(void);
/* NULL is allowed. */
void tc_wrr_weight_unref(struct tc_wrr_weight *w);
/* Reads a report. A report that is malformed, or gives no finite weight of at least TC_WRR_WEIGHT_MIN, changes
 * nothing. */
void tc_wrr_weight_report(struct tc_wrr_weight *w, const struct tc_wrr_config *config, struct tc_slice report,
                          uint64_t now_ns);
/* Returns the weight, or 0 while it must not be used: no usable report came, the last one has expired, or the blackout
 * period is not over. After an expiry the next usable report begins a new blackout period. With a blackout period of 0,
 * an endpoint that connects again keeps its weight. */
float tc_wrr_weight_get(struct tc_wrr_weight *w, const struct tc_wrr_config *config, uint64_t now_ns);

#endif
