/* The HTTP filters of RPCs on one route, in order. Loop thread only. */
#ifndef TC_XDS_FILTER_FILTER_CHAIN_H
#define TC_XDS_FILTER_FILTER_CHAIN_H

#include "resolver/call_filter.h"
#include "xds/resource/xds_config.h"

/* Returns an empty chain with room for `max` filters: one reference. Takes a reference of the config, whose resources
 * hold the route and the filters' settings. */
struct tc_filter_chain *tc_http_filter_chain_new(struct tc_xds_config *config, const struct tc_route *route,
                                                 size_t max);
void tc_http_filter_chain_add(struct tc_filter_chain *chain, const struct tc_call_filter *filter);
/* Sends the RPC to the cluster of this name, which must be one of its route's clusters. Called by a filter of the
 * chain, in start or resume. Returns false, and changes nothing, if the route has no such cluster or nothing uses the
 * cluster (A60). */
bool tc_http_filter_chain_use_cluster(struct tc_filter_call *call, struct tc_slice name);

#endif
