/* HTTP filters as resources name them (A39): instances in a listener, overrides in virtual hosts, routes and weighted
 * clusters. What a filter does is the mesh's; here is only who parses its config. */
#ifndef TC_RESOURCE_HTTP_FILTER_H
#define TC_RESOURCE_HTTP_FILTER_H

#include "base/faults.h"
#include "resource/store.h"

struct tc_reading;

/* A kind of filter, registered by its config's message name. */
struct tc_http_filter_type {
    const char *config_name;   /* "envoy.extensions.filters.http.router.v3.Router" */
    const char *override_name; /* message name of overrides; NULL: it has none */
    bool terminal;
    bool on_clients; /* false: known, but for servers only (LR06) */
    /* Parses the message's bytes; NULL with faults when it is invalid. What it returns lives in the store of `p`; a
     * filter without settings returns its type. */
    const void *(*parse)(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_reading *p);
    const void *(*parse_override)(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_reading *p);
    void *arg;
};

/* The router, which is all that a listener must have. */
extern const struct tc_http_filter_type tc_http_filter_router;

/* One instance in a listener's chain. Optional filters of unknown type are left out. */
struct tc_http_filter {
    struct tc_slice name;
    const struct tc_http_filter_type *type;
    const void *config;
    bool disabled; /* but where an override enables it */
};

/* One entry of a typed_per_filter_config. */
struct tc_http_filter_override {
    struct tc_slice name; /* of the instance that it changes */
    bool disabled;        /* the instance is left out; type and config are NULL */
    const struct tc_http_filter_type *type;
    const void *config;
};

struct tc_http_filter_overrides {
    size_t n;
    const struct tc_http_filter_override *at;
};

/* The override for the instance of that name; NULL: none. */
const struct tc_http_filter_override *tc_http_filter_override_find(const struct tc_http_filter_overrides *o,
                                                                   struct tc_slice name);

#endif
