/* Parsers of what a route matches (A28). */
#ifndef TC_RESOURCE_MATCHERS_PARSE_H
#define TC_RESOURCE_MATCHERS_PARSE_H

#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "resource/reading.h"
#include "resource/route_config.h"

/* Fills the match part of a route. False when the route is to be left out: because it can match no gRPC path or is of a
 * kind that gRPC ignores (no fault), or because it is invalid (faults). */
bool tc_read_route_match(struct tc_reading *p, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out);
bool tc_read_header_matcher(struct tc_reading *p, const Envoy__Config__Route__V3__HeaderMatcher *m,
                            struct tc_header_matcher *out);
/* A name of a header in lower case, kept by the store. */
struct tc_slice tc_read_header_name(struct tc_reading *p, const char *name);

#endif
