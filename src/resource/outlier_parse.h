/* The parser of a cluster's outlier_detection (A50). */
#ifndef TC_RESOURCE_OUTLIER_PARSE_H
#define TC_RESOURCE_OUTLIER_PARSE_H

#include "pb/envoy/config/cluster/v3/outlier_detection.pb-c.h"
#include "resource/cluster.h"
#include "resource/reading.h"

/* Kept by the store; with faults at .outlier_detection what it gives is not to be used. */
const struct tc_outlier_detection *tc_read_outlier(struct tc_reading *p,
                                                   const Envoy__Config__Cluster__V3__OutlierDetection *m);

#endif
