/* outlier_detection (A50, with A61's endpoints and health reports, and A75's place above priority).
 *
 * Counts how the RPCs of each endpoint end. At the end of each interval it ejects, for a while, the endpoints that fail
 * much more often than the others, or more often than a threshold. An ejected endpoint keeps its connection, but the
 * pick_first that a petiole policy has for the endpoint reports TRANSIENT_FAILURE. A pick_first that is not below a
 * petiole policy ignores ejections (A61). Policies: loop thread only; configs: any thread. */
#ifndef TC_LB_OUTLIER_DETECTION_POLICY_H
#define TC_LB_OUTLIER_DETECTION_POLICY_H

#include "lb/outlier_detection/config.h"

/* The interval is at least 10 ms plus 1 ms for each 200 endpoints: a shorter one would leave the loop no time for
 * anything else. */
enum { TC_OUTLIER_INTERVAL_MIN_MS = 10, TC_OUTLIER_PER_MS = 200 };

extern const struct tc_lb_factory tc_outlier_detection_factory;

#endif
