/* Routing of an RPC: its virtual host and route (A27, A28), and the cluster of a weighted route. Any thread. */
#ifndef TC_XDS_RESOURCE_ROUTE_MATCH_H
#define TC_XDS_RESOURCE_ROUTE_MATCH_H

#include "xds/resource/route_config.h"

/* Returns the virtual host for an authority: exact domain, else the longest "*suffix", else the longest "prefix*", else
 * "*"; case-insensitive. NULL: none. */
const struct tc_virtual_host *tc_route_table_find(const struct tc_route_table *t, struct tc_slice authority);
/* Returns true when the route takes the request. `random` is a uniform number for this route and RPC, read only with a
 * fraction. */
bool tc_route_match(const struct tc_route *r, struct tc_slice path, const struct tc_headers *headers, uint64_t random,
                    uint64_t *steps);
/* Returns the first route that takes the request; NULL: none. A28: each route with a fraction draws a number of its own
 * from `rng`, which may be NULL when no route has a fraction. `*steps` is what matching may take (matchers.h), for all
 * routes together; when it comes out as 0 the walk was given up. */
const struct tc_route *tc_virtual_host_route(const struct tc_virtual_host *v, struct tc_slice path,
                                             const struct tc_headers *headers, struct tc_rng *rng, uint64_t *steps);
/* Returns the weighted cluster for a uniform random number. The route must be a TC_ROUTE_WEIGHTED. */
const struct tc_weighted_cluster *tc_route_weighted_pick(const struct tc_route *r, uint64_t random);
/* Appends a text for logs and --explain: `prefix "/" and header "k" exact "v"`. */
void tc_route_format(const struct tc_route *r, struct tc_buf *out);

#endif
