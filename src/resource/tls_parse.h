/* The parser of a cluster's transport_socket (A29). */
#ifndef TC_RESOURCE_TLS_PARSE_H
#define TC_RESOURCE_TLS_PARSE_H

#include "pb/envoy/config/core/v3/base.pb-c.h"
#include "resource/cluster.h"
#include "resource/reading.h"

/* What UpstreamTlsContext says, kept by the store; NULL with faults. */
const struct tc_upstream_tls *tc_read_upstream_tls(struct tc_reading *p,
                                                   const Envoy__Config__Core__V3__TransportSocket *m);

#endif
