/* A50's ejection algorithms, over the outcomes of each endpoint's RPCs. This file knows neither subchannels nor timers:
 * the policy counts into struct tc_outlier, calls the sweep, and acts on `ejected`. Loop thread only. */
#ifndef TC_LB_OUTLIER_DETECTION_EJECTION_H
#define TC_LB_OUTLIER_DETECTION_EJECTION_H

#include "base/random.h"
#include "lb/outlier_detection/config.h"

struct tc_outlier_count {
    uint64_t successes;
    uint64_t failures;
};

/* One endpoint, owned by a struct tc_outlier_set (endpoints.h). A new one is zero-initialised, except `endpoint`. */
struct tc_outlier {
    struct tc_endpoint *endpoint;  /* borrowed from the list; known again by its set of addresses (A61) */
    struct tc_outlier_count now;   /* RPCs that ended since the last sweep */
    struct tc_outlier_count swept; /* RPCs that ended in the interval before the last sweep */
    bool ejected;
    uint64_t ejected_at_ms; /* the loop's time of the last ejection */
    uint64_t multiplier;    /* A50's ejection time multiplier: an ejection adds 1, and lasts `multiplier` times the base
                               time, up to the maximum; a sweep that finds the endpoint not ejected takes 1 away */
};

/* Performs the work of A50's timer: closes the interval's counts, ejects endpoints by the algorithms that are on, and
 * returns the ejected endpoints whose time is over to service. `all` has the policy's n endpoints, none of them NULL.
 * Logs each change at INFO; `target` begins the lines. Returns true if `ejected` of any endpoint changed. */
bool tc_outlier_sweep(struct tc_outlier **all, size_t n, const struct tc_outlier_settings *s, uint64_t now_ms,
                      struct tc_rng *rng, struct tc_slice target);

#endif
