/* The parser of a cluster's transport_socket (A29, A86). */
#ifndef TC_RESOURCE_TLS_PARSE_H
#define TC_RESOURCE_TLS_PARSE_H

#include "pb/envoy/config/core/v3/base.pb-c.h"
#include "resource/cluster.h"
#include "resource/reading.h"

/* What UpstreamTlsContext says, alone or inside of Http11ProxyUpstreamTransport (A86), which sets *http_connect. Kept
 * by the store; NULL with faults, and where the latter has nothing inside. */
const struct tc_upstream_tls *tc_read_transport_socket(struct tc_reading *p,
                                                       const Envoy__Config__Core__V3__TransportSocket *m,
                                                       bool *http_connect);

#endif
