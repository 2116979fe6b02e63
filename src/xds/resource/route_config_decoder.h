/* Decodes a table of virtual hosts, of a RouteConfiguration or inline in a Listener. Any thread decodes,
 * each with a context of its own. */
#ifndef TC_XDS_RESOURCE_ROUTE_CONFIG_DECODER_H
#define TC_XDS_RESOURCE_ROUTE_CONFIG_DECODER_H

#include "pb/envoy/config/route/v3/route.pb-c.h"
#include "xds/resource/decoder.h"
#include "xds/resource/route_config.h"

/* Fills `out` from the message. Errors are added at the path of the field that is invalid. */
void tc_decode_route_table(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteConfiguration *m,
                           struct tc_route_table *out);

#endif
