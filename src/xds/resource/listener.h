/* Listener as a client reads it: the API listener's HttpConnectionManager (A27, A39). Immutable; everything lives as
 * long as the resource. Any thread. */
#ifndef TC_XDS_RESOURCE_LISTENER_H
#define TC_XDS_RESOURCE_LISTENER_H

#include "xds/client/resource_type.h"
#include "xds/resource/http_filter.h"
#include "xds/resource/route_config.h"

struct tc_listener {
    struct tc_decoded base; /* first */
    struct tc_rstr *name;
    bool is_api; /* false: a socket listener, which a channel cannot use (A74): the members below are zero */
    struct tc_rstr *rds_name;            /* the RouteConfiguration to watch; NULL: `routes` is inline */
    const struct tc_route_table *routes; /* inline; NULL: by RDS */
    struct tc_rstr *routes_name;         /* name of the inline RouteConfiguration; may be empty; NULL: by RDS */
    size_t n_filters;                    /* the last one is terminal; 0: a socket listener */
    const struct tc_http_filter *filters;
    uint64_t max_stream_duration_ns; /* common_http_protocol_options; 0: none (A31) */
};

extern const struct tc_xds_resource_type tc_listener_type;

static inline const struct tc_listener *tc_listener_of(const struct tc_xds_resource *r)
{
    return (const struct tc_listener *)(const void *)r;
}

#endif
