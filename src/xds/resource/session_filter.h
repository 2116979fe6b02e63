/* The stateful session filter's settings (A55): envoy.extensions.filters.http.stateful_session.v3.StatefulSession with
 * cookie-based session state. Any thread. */
#ifndef TC_XDS_RESOURCE_SESSION_FILTER_H
#define TC_XDS_RESOURCE_SESSION_FILTER_H

#include "xds/resource/http_filter.h"

struct tc_session_config {
    bool on;              /* false: the filter does nothing, and the rest is zero */
    struct tc_slice name; /* of the cookie; not empty */
    struct tc_slice path; /* "/" when none is given */
    uint64_t ttl_s;       /* of the cookie, rounded up; 0: none */
};

/* `parse` (of a StatefulSession) and `parse_override` (of a StatefulSessionPerRoute) of struct tc_http_filter_type.
 * Both return a struct tc_session_config, kept by the decoder's arena; NULL with errors. */
const void *tc_session_config_parse(const struct tc_http_filter_type *type, struct tc_slice config,
                                    struct tc_decoder *dec);
const void *tc_session_override_parse(const struct tc_http_filter_type *type, struct tc_slice config,
                                      struct tc_decoder *dec);

#endif
