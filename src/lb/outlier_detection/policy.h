/* outlier_detection (A50, with A61's endpoints and health reports, and A75's place above priority).
 *
 * Counts how the RPCs of each endpoint end. At the end of each interval it ejects the endpoints that fail much more
 * often than the others, or more often than a threshold, for a while. An ejected endpoint keeps its connection: a
 * policy with one pick_first for each endpoint reports the endpoint as TRANSIENT_FAILURE. A pick_first that is a policy
 * of its own ignores ejections (A61). Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_OUTLIER_DETECTION_POLICY_H
#define TC_LB_OUTLIER_DETECTION_POLICY_H

#include "lb/outlier_detection/config.h"

/* The interval is at least 10 ms, and 1 ms more for each 200 endpoints: a shorter one would leave the loop no time for
 * anything else. */
enum { TC_OUTLIER_INTERVAL_MIN_MS = 10, TC_OUTLIER_PER_MS = 200 };

extern const struct tc_lb_factory tc_outlier_detection_factory;

#endif
