/* The parser of a cluster's transport_socket (A29, A86). Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_TRANSPORT_SOCKET_DECODER_H
#define TC_XDS_RESOURCE_TRANSPORT_SOCKET_DECODER_H

#include "pb/envoy/config/core/v3/base.pb-c.h"
#include "xds/resource/cluster.h"
#include "xds/resource/decoder.h"

/* Returns the settings of an UpstreamTlsContext, alone or inside of Http11ProxyUpstreamTransport (A86), which sets
 * *http_connect. The arena keeps it. Returns NULL with errors, or if the proxy transport has no transport socket
 * inside. */
const struct tc_upstream_tls *tc_decode_transport_socket(struct tc_decoder *dec,
                                                         const Envoy__Config__Core__V3__TransportSocket *m,
                                                         bool *http_connect);

#endif
