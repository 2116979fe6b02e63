/* HTTP filters (A39): their types, instances in a listener, overrides in virtual hosts, routes and weighted clusters. A
 * filter that acts on RPCs has its type in src/xds/filter, its config's parser in src/xds/resource, and a row in
 * api/builtin.c. Any thread. */
#ifndef TC_XDS_RESOURCE_HTTP_FILTER_H
#define TC_XDS_RESOURCE_HTTP_FILTER_H

#include "base/validation_errors.h"
#include "xds/resource/resource_arena.h"

struct tc_call_filter_ops;
struct tc_decoder;

/* A kind of filter, registered by its config's message name. */
struct tc_http_filter_type {
    const char *config_name;   /* "envoy.extensions.filters.http.router.v3.Router" */
    const char *override_name; /* message name of overrides; NULL: the filter has none */
    bool terminal;             /* must be the last in a chain, and a chain must end with such a filter */
    bool on_clients;           /* false: known, but for servers only */
    /* Parses the bytes of a config. Returns the config, kept by the arena of `dec`; NULL with errors if it is invalid.
     * A filter without settings returns `type`, since NULL means an error. */
    const void *(*parse)(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_decoder *dec);
    /* Parses the bytes of an override; the result is as for `parse`. NULL if override_name is NULL. */
    const void *(*parse_override)(const struct tc_http_filter_type *type, struct tc_slice config,
                                  struct tc_decoder *dec);
    /* The filter's work on RPCs (resolver/call_filter.h). NULL: the filter leaves RPCs alone. */
    const struct tc_call_filter_ops *ops;
    /* Returns false if the filter does nothing with this config: chains leave it out. NULL: the filter always acts. */
    bool (*applies)(const void *config);
};

/* The router, the only terminal filter: every chain ends with it. */
extern const struct tc_http_filter_type tc_http_filter_router;
/* RBAC (A41) is for servers: a listener for clients is refused if it requires RBAC. Overrides of RBAC are accepted,
 * since routes may serve clients and servers. */
extern const struct tc_http_filter_type tc_http_filter_rbac;

/* One instance in a listener's chain. Optional filters that are unknown, for servers only, or without a config are left
 * out. */
struct tc_http_filter {
    struct tc_slice name;
    const struct tc_http_filter_type *type;
    const void *config;
    bool disabled; /* left out on routes without an override that enables it */
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
    const struct tc_http_filter_override *at; /* sorted by name, no name twice */
};

/* Sorts by name. */
void tc_http_filter_overrides_sort(struct tc_http_filter_override *at, size_t n);
/* Returns the override for the instance of that name, borrowed; NULL: none. */
const struct tc_http_filter_override *tc_http_filter_override_find(const struct tc_http_filter_overrides *o,
                                                                   struct tc_slice name);

#endif
