/* The HTTP filters of RPCs on one route, in order. Loop thread only. */
#ifndef TC_XDS_FILTER_FILTER_CHAIN_H
#define TC_XDS_FILTER_FILTER_CHAIN_H

#include "resolver/call_filter.h"
#include "xds/resource/xds_config.h"

/* Returns an empty chain with room for `max` filters, with one reference. The chain takes a reference of the config;
 * `route` and the filters' settings must belong to the config's resources. */
struct tc_filter_chain *tc_http_filter_chain_new(struct tc_xds_config *config, const struct tc_route *route,
                                                 size_t max);
/* Appends a copy of the filter. Called at least once and at most `max` times, before an RPC uses the chain. */
void tc_http_filter_chain_add(struct tc_filter_chain *chain, const struct tc_call_filter *filter);
/* Sends the RPC to another cluster of its route (A60). Called by a filter of the chain, in start or resume. Returns
 * false, and changes nothing, if the route has no cluster of this name, the cluster is not in use, or the resolver has
 * ended. */
bool tc_http_filter_chain_use_cluster(struct tc_filter_call *call, struct tc_slice name);

#endif
