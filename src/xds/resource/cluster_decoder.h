/* The parsers of a Cluster's parts. Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_CLUSTER_DECODER_H
#define TC_XDS_RESOURCE_CLUSTER_DECODER_H

#include "pb/envoy/config/cluster/v3/outlier_detection.pb-c.h"
#include "pb/envoy/config/core/v3/base.pb-c.h"
#include "xds/resource/cluster.h"
#include "xds/resource/decoder.h"

/* Returns the settings of outlier_detection (A50), kept by the arena. After errors at .outlier_detection they must not
 * be used. */
const struct tc_outlier_settings *tc_decode_outlier(struct tc_decoder *dec,
                                                    const Envoy__Config__Cluster__V3__OutlierDetection *m);
/* Returns the settings of an UpstreamTlsContext (A29), kept by the arena. The context may stand alone or inside of
 * Http11ProxyUpstreamTransport (A86). The latter sets *http_connect, which is otherwise left unchanged. Returns NULL
 * with errors, or if the proxy transport has no transport socket inside. */
const struct tc_upstream_tls *tc_decode_transport_socket(struct tc_decoder *dec,
                                                         const Envoy__Config__Core__V3__TransportSocket *m,
                                                         bool *http_connect);

#endif
