/* The weight of an endpoint by its load reports (A58, A114). Counted: the policy has a reference, and each RPC whose
 * trailers may bring a report. Loop thread only. */
#ifndef TC_LB_WEIGHTED_ROUND_ROBIN_WEIGHT_H
#define TC_LB_WEIGHTED_ROUND_ROBIN_WEIGHT_H

#include "base/ref.h"
#include "lb/weighted_round_robin/config.h"

struct tc_wrr_weight {
    struct tc_lref ref;
    float weight;                /* RPCs a second by utilization, of the last usable report; 0: none came */
    uint64_t last_update_ns;     /* when that report came, in the loop's time */
    uint64_t non_empty_since_ns; /* UINT64_MAX: no report since the endpoint became READY, or since the last expired */
};

/* Returns a weight of 0, which has no report, with one reference. */
struct tc_wrr_weight *tc_wrr_weight_new(void);
/* NULL is allowed. */
void tc_wrr_weight_unref(struct tc_wrr_weight *w);
/* Takes a report. A report that is malformed, or gives no finite weight of at least TC_WRR_WEIGHT_MIN, changes
 * nothing. */
void tc_wrr_weight_report(struct tc_wrr_weight *w, const struct tc_wrr_config *config, struct tc_slice report,
                          uint64_t now_ns);
/* Returns the weight; 0 while it cannot be used: there was no report, the last one has expired (which begins the
 * blackout period again), or the blackout period is not over. Without a blackout period an endpoint that connects again
 * keeps its weight. */
float tc_wrr_weight_get(struct tc_wrr_weight *w, const struct tc_wrr_config *config, uint64_t now_ns);

#endif
