/* Parsers of HTTP filter chains and overrides (A39). */
#ifndef TC_RESOURCE_FILTER_PARSE_H
#define TC_RESOURCE_FILTER_PARSE_H

#include "pb/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "resource/http_filter.h"
#include "resource/listener.h"
#include "resource/reading.h"

/* The http_filters of a listener: faults at .http_filters. */
void tc_read_http_filters(
    struct tc_reading *p,
    const Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager *m,
    struct tc_listener *out);
/* One entry of a typed_per_filter_config, at its own path. False when it is left out, with faults or (optional and
 * unknown) without. */
bool tc_read_filter_override(struct tc_reading *p, const char *name, const Google__Protobuf__Any *config,
                             struct tc_http_filter_override *out);

/* Reads the map<string, Any> typed_per_filter_config of `message` into the overrides `*out`. Each message has an entry
 * type of its own, hence a macro. */
#define TC_READ_FILTER_OVERRIDES(p, message, out)                                                                      \
    do {                                                                                                               \
        size_t n_ =                                                                                                    \
            tc_proto_map_dedupe((void **)(message)->typed_per_filter_config, (message)->n_typed_per_filter_config);    \
        struct tc_http_filter_override *at_ = TC_STORE_ARRAY((p)->store, n_, struct tc_http_filter_override);          \
        (out)->n = 0;                                                                                                  \
        (out)->at = at_;                                                                                               \
        for (size_t i_ = 0; i_ < n_; i_++)                                                                             \
            if (tc_read_filter_override((p), (message)->typed_per_filter_config[i_]->key,                              \
                                        (message)->typed_per_filter_config[i_]->value, &at_[(out)->n]))                \
                (out)->n++;                                                                                            \
    } while (0)

#endif
