/* What validation must ask of others, handed in by whoever decodes (resource includes neither lb nor mesh), and the
 * caps on hostile sizes. It is what tc_xds_decode_context.registries points at. */
#ifndef TC_RESOURCE_REGISTRY_H
#define TC_RESOURCE_REGISTRY_H

#include <jansson.h>

#include "base/faults.h"
#include "regex/regex.h"
#include "resource/http_filter.h"
#include "xds/resource_type.h"

struct tc_resource_limits {
    size_t eds_priorities;        /* 128 */
    size_t eds_localities;        /* 16384 in a resource */
    size_t eds_endpoints;         /* 262144 in a resource, additional addresses counted */
    size_t eds_drops;             /* 64 categories */
    size_t vhosts;                /* 65536 in a resource */
    size_t routes;                /* 65536 in a resource */
    size_t http_filters;          /* 1024 in a chain */
    size_t lb_depth;              /* 16 nested LB policies (A52) */
    size_t aggregate_children;    /* 1024 in a resource */
    size_t decode_bytes;          /* 48 MiB for the messages of a resource while it is decoded */
    size_t regexes_bytes;         /* 16 MiB of compiled regexes in a response */
    struct tc_regex_limits regex; /* 8 KiB, 8 MiB */
};

struct tc_xds_registries {
    struct tc_resource_limits limits;
    /* HTTP filter types that are known; by default those of Torc. */
    const struct tc_http_filter_type *const *filters;
    size_t n_filters;
    /* Whether an LB policy of that name can be made. NULL: the ones of Torc. */
    bool (*lb_known)(void *arg, const char *name);
    /* Checks a loadBalancingConfig list as the LB policies will see it; adds faults. NULL: no check. */
    void (*lb_check)(void *arg, const json_t *list, struct tc_faults *faults);
    /* Whether a certificate provider plugin of that name is there (A29). NULL: any. */
    bool (*cert_plugin_known)(void *arg, const char *plugin);
    void *arg;
    bool hash_key_ignored; /* GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT=true (A76) */
    bool ring_hash_off;    /* GRPC_XDS_EXPERIMENTAL_ENABLE_RING_HASH=false (A42) */
};

/* Defaults, with the switches as the environment says. */
void tc_xds_registries_init(struct tc_xds_registries *r);
/* Of a decode context; one with the defaults when the context brings none. */
const struct tc_xds_registries *tc_xds_registries_of(const struct tc_xds_decode_context *ctx);
/* Its limits, with those that the context's bootstrap sets. */
struct tc_resource_limits tc_resource_limits_of(const struct tc_xds_decode_context *ctx);
/* By the name of its config or override message; NULL: unknown. */
const struct tc_http_filter_type *tc_xds_registries_filter(const struct tc_xds_registries *r, struct tc_slice name);
/* Whether an LB policy of that name can be made. */
bool tc_xds_registries_lb_known(const struct tc_xds_registries *r, const char *name);

#endif
