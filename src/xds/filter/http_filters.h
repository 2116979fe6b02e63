/* The HTTP filters that RPCs on a route pass, each with its most specific settings (A39). A filter has a type
 * (xds/resource/http_filter.h); a type that acts on RPCs has operations (resolver/call_filter.h). Loop thread only. */
#ifndef TC_XDS_FILTER_HTTP_FILTERS_H
#define TC_XDS_FILTER_HTTP_FILTERS_H

#include "xds/filter/filter_chain.h"

/* Returns a new chain, with one reference, of the filters for RPCs on a route of the config's virtual host. The chain
 * holds a reference of the config. `cluster`: the weighted cluster that the RPCs go to, or NULL for a route without
 * weights. Returns NULL if every filter leaves these RPCs alone. */
struct tc_filter_chain *tc_http_filters_chain(struct tc_xds_config *config, const struct tc_route *route,
                                              const struct tc_weighted_cluster *cluster);

#endif
