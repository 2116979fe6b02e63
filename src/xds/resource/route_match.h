/* Routing: the virtual host for a channel's authority (A27), and the route of an RPC (A28) with the cluster of a
 * weighted route. What is returned is borrowed from the table. Any thread. */
#ifndef TC_XDS_RESOURCE_ROUTE_MATCH_H
#define TC_XDS_RESOURCE_ROUTE_MATCH_H

#include "xds/resource/route_config.h"

/* Returns the virtual host for an authority: exact domain, else the longest "*suffix", else the longest "prefix*", else
 * "*"; case-insensitive. NULL: none. */
const struct tc_virtual_host *tc_route_table_find(const struct tc_route_table *t, struct tc_slice authority);
/* Returns true if the route matches the request. `random` is a uniform number drawn for this route and RPC; it is read
 * only if the route has a fraction. `*steps`: see matchers.h. */
bool tc_route_match(const struct tc_route *r, struct tc_slice path, const struct tc_headers *headers, uint64_t random,
                    uint64_t *steps);
/* Returns the first route that matches the request; NULL: none. A28: each route with a fraction draws its number from
 * `rng`, which may be NULL if no route has a fraction. `*steps` is the budget of all routes together (matchers.h). If
 * it is 0 afterwards, it did not suffice, and the result must be ignored. */
const struct tc_route *tc_virtual_host_route(const struct tc_virtual_host *v, struct tc_slice path,
                                             const struct tc_headers *headers, struct tc_rng *rng, uint64_t *steps);
/* Returns the weighted cluster for a uniform random number. The route must be a TC_ROUTE_WEIGHTED. */
const struct tc_weighted_cluster *tc_route_weighted_pick(const struct tc_route *r, uint64_t random);
/* Appends a text for logs and --explain: `prefix "/" and header "k" exact "v"`. */
void tc_route_format(const struct tc_route *r, struct tc_buf *out);

#endif
