/* Decodes a table of virtual hosts, of a RouteConfiguration or inline in a Listener, and the parts of its routes. The
 * decoder's arena keeps what the decoded structs point at. Any thread decodes, each with a decoder of its own. */
#ifndef TC_XDS_RESOURCE_ROUTE_CONFIG_DECODER_H
#define TC_XDS_RESOURCE_ROUTE_CONFIG_DECODER_H

#include "pb/envoy/config/route/v3/route.pb-c.h"
#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "xds/resource/decoder.h"
#include "xds/resource/route_config.h"

/* Fills `out` from the message. Sorts the message's plugins in place. An error has the path of the field that is
 * invalid. If a limit is exceeded, adds an error and leaves `out`. */
void tc_decode_route_table(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteConfiguration *m,
                           struct tc_route_table *out);

/* --- matches (A28): route_match_decoder.c --- */

/* Fills the match part of a route; `m` may be NULL, which is an error. Returns false if the route is to be left out:
 * without an error if it can match no RPC, with errors if it is invalid. */
bool tc_decode_route_match(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out);
/* Returns the name of a header in lower case, kept by the arena. */
struct tc_slice tc_decode_header_name(struct tc_decoder *dec, const char *name);

/* --- actions on an RPC that matched (A28, A44, A81): route_action_decoder.c --- */

/* Returns whether the bootstrap trusts the server that sent the resource (A81, trusted_xds_server). */
bool tc_decode_is_trusted(const struct tc_decoder *dec);
/* Sorts cluster_specifier_plugins by name, for tc_decode_route_action. */
void tc_decode_sort_plugins(const Envoy__Config__Route__V3__RouteConfiguration *m);
/* Decodes the action of a route. Returns false if the route is to be left out because its cluster specifier is not
 * supported (A28), with an error if it names a plugin that is not listed. True says nothing about errors. `m` is the
 * whole configuration, whose cluster_specifier_plugins must be sorted. */
bool tc_decode_route_action(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteConfiguration *m,
                            const Envoy__Config__Route__V3__RouteAction *a, struct tc_route *out);
/* Decodes the field hash_policy (A42); errors are at .hash_policy. Stores the policies that have an effect in *out,
 * kept by the arena, and returns their number. Returns 0 if the registries say ring_hash_off. If there are more than
 * TC_HASH_POLICIES_MAX, adds an error, returns 0 and leaves *out. */
size_t tc_decode_hash_policies(struct tc_decoder *dec, size_t n,
                               Envoy__Config__Route__V3__RouteAction__HashPolicy *const *list,
                               const struct tc_hash_policy **out);
/* Returns a retry policy (A44), kept by the arena; NULL with errors. */
const struct tc_route_retry *tc_decode_retry_policy(struct tc_decoder *dec,
                                                    const Envoy__Config__Route__V3__RetryPolicy *m);

#endif
