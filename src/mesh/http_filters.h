/* The HTTP filters of Torc at work (A39): which filters an RPC on a route passes, with the most specific settings of
 * each. A filter is a row of the table in http_filters.c: its type (resource/http_filter.h) and what it does
 * (resolver/call_filter.h). */
#ifndef TC_MESH_HTTP_FILTERS_H
#define TC_MESH_HTTP_FILTERS_H

#include "mesh/config.h"
#include "resolver/call_filter.h"

struct tc_http_filter_class {
    const struct tc_http_filter_type *type;
    const struct tc_call_filter_ops *ops;
    /* False: with these settings the filter does nothing, and is left out. NULL: it always does something. */
    bool (*applies)(const void *config);
};

/* The filters of RPCs on a route of the config's virtual host and, with weighted clusters, to one of them (else NULL):
 * a reference, which takes one of the config. NULL: no filter has anything to do. */
struct tc_filter_chain *tc_http_filters_chain(struct tc_xds_config *config, const struct tc_route *route,
                                              const struct tc_weighted_cluster *cluster);
/* For a filter of such a chain, in start or resume: sends the RPC to another of its route's clusters, by name. False,
 * with nothing changed, when the route has no such cluster or nothing uses it any more (A60). */
bool tc_http_filters_use_cluster(struct tc_filter_call *call, struct tc_slice name);

#endif
