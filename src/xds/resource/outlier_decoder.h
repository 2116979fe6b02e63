/* The parser of a cluster's outlier_detection (A50). Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_OUTLIER_DECODER_H
#define TC_XDS_RESOURCE_OUTLIER_DECODER_H

#include "pb/envoy/config/cluster/v3/outlier_detection.pb-c.h"
#include "xds/resource/cluster.h"
#include "xds/resource/decoder.h"

/* Returns the settings, kept by the arena. After errors at .outlier_detection they must not be used. */
const struct tc_outlier_settings *tc_decode_outlier(struct tc_decoder *dec,
                                                    const Envoy__Config__Cluster__V3__OutlierDetection *m);

#endif
