/* Parsers of HTTP filter chains and overrides (A39). Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_HTTP_FILTER_DECODER_H
#define TC_XDS_RESOURCE_HTTP_FILTER_DECODER_H

#include "pb/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "xds/resource/decoder.h"
#include "xds/resource/http_filter.h"
#include "xds/resource/listener.h"

/* Decodes the http_filters of a listener; adds errors at .http_filters. */
void tc_decode_http_filters(
    struct tc_decoder *dec,
    const Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager *m,
    struct tc_listener *out);
/* Decodes one entry of a typed_per_filter_config, whose key is `name`. Adds errors at the entry's path. Returns true if
 * *out has an override, even one with errors. Returns false if the entry is left out: after an error, or because the
 * entry is optional and has no config that is a known override. */
bool tc_decode_filter_override(struct tc_decoder *dec, const char *name, const Google__Protobuf__Any *config,
                               struct tc_http_filter_override *out);

/* Decodes the map<string, Any> typed_per_filter_config of `message` into the overrides `*out`, sorted by name. A macro,
 * because each message type has an entry type of its own. */
#define TC_DECODE_FILTER_OVERRIDES(dec, message, out)                                                                  \
    do {                                                                                                               \
        size_t n_ =                                                                                                    \
            tc_proto_map_dedupe((void **)(message)->typed_per_filter_config, (message)->n_typed_per_filter_config);    \
        struct tc_http_filter_override *at_ = TC_RESOURCE_ARRAY((dec)->arena, n_, struct tc_http_filter_override);     \
        (out)->n = 0;                                                                                                  \
        (out)->at = at_;                                                                                               \
        for (size_t i_ = 0; i_ < n_; i_++)                                                                             \
            if (tc_decode_filter_override((dec), (message)->typed_per_filter_config[i_]->key,                          \
                                          (message)->typed_per_filter_config[i_]->value, &at_[(out)->n]))              \
                (out)->n++;                                                                                            \
        tc_http_filter_overrides_sort(at_, (out)->n);                                                                  \
    } while (0)

#endif
