/* The numbers of outlier_detection: how each endpoint's RPCs ended, and who is ejected by them (A50's algorithms).
 * Knows neither subchannels nor timers. */
#ifndef TC_LB_OUTLIER_SWEEP_H
#define TC_LB_OUTLIER_SWEEP_H

#include "base/random.h"
#include "lb/outlier_detection.h"

struct tc_outlier_count {
    uint64_t successes;
    uint64_t failures;
};

/* What is known of an endpoint. Zero-initialised but for `endpoint` it is a new one. */
struct tc_outlier {
    struct tc_endpoint *endpoint;  /* borrowed from the list; identity is its set of addresses (A61) */
    struct tc_outlier_count now;   /* RPCs that ended since the last sweep */
    struct tc_outlier_count swept; /* in the interval before that */
    bool ejected;
    uint64_t ejected_at_ms;
    uint64_t multiplier; /* of the next ejection's time, but for one */
};

/* What the timer does: counts the interval off, ejects by the algorithms that are on, takes back those whose time is
 * over. Returns whether anyone's `ejected` changed. */
bool tc_outlier_sweep(struct tc_outlier **all, size_t n, const struct tc_outlier_settings *s, uint64_t now_ms,
                      struct tc_rng *rng);

#endif
