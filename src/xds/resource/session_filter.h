/* The stateful session filter's settings (A55): envoy.extensions.filters.http.stateful_session.v3.StatefulSession with
 * cookie-based session state. */
#ifndef TC_XDS_RESOURCE_SESSION_FILTER_H
#define TC_XDS_RESOURCE_SESSION_FILTER_H

#include "xds/resource/http_filter.h"

struct tc_session_config {
    bool on;              /* false: disabled, or without session state: the filter does nothing */
    struct tc_slice name; /* of the cookie; not empty */
    struct tc_slice path; /* "/" when none is given */
    uint64_t ttl_s;       /* rounded up; 0: none */
};

/* Its overrides are StatefulSessionPerRoute. The config is a struct tc_session_config. */
extern const struct tc_http_filter_type tc_http_filter_session;

#endif
