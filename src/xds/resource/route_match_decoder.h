/* Parsers of what a route matches (A28). Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_ROUTE_MATCH_DECODER_H
#define TC_XDS_RESOURCE_ROUTE_MATCH_DECODER_H

#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "xds/resource/decoder.h"
#include "xds/resource/route_config.h"

/* Fills the match part of a route. Returns false when the route is to be left out: because it can match no gRPC path or
 * is of a kind that gRPC ignores (no error), or because it is invalid (errors). */
bool tc_decode_route_match(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out);
/* Returns a name of a header in lower case, kept by the arena. */
struct tc_slice tc_decode_header_name(struct tc_decoder *dec, const char *name);

#endif
