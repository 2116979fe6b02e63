/* Parsers of routes: route_config_parse.c has the table, route_action_parse.c what a route does. */
#ifndef TC_RESOURCE_ROUTE_PARSE_H
#define TC_RESOURCE_ROUTE_PARSE_H

#include "pb/envoy/config/route/v3/route.pb-c.h"
#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "resource/reading.h"
#include "resource/route_config.h"

/* The virtual hosts of a RouteConfiguration, inline in a listener or a resource of its own. */
void tc_read_route_table(struct tc_reading *p, const Envoy__Config__Route__V3__RouteConfiguration *m,
                         struct tc_route_table *out);
/* The action of a route. False when the route is to be left out (A28: unsupported cluster specifiers). `m` is the whole
 * configuration, for its cluster_specifier_plugins. */
bool tc_read_route_action(struct tc_reading *p, const Envoy__Config__Route__V3__RouteConfiguration *m,
                          const Envoy__Config__Route__V3__RouteAction *a, struct tc_route *out);
/* A retry policy (A44), kept by the store; NULL with faults. */
const struct tc_route_retry *tc_read_retry_policy(struct tc_reading *p, const Envoy__Config__Route__V3__RetryPolicy *m);

#endif
