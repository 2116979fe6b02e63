/* Caps on hostile sizes, which the bootstrap's member "torc.limits" may set. Other programs that read the bootstrap
 * ignore the member. Zero means not set: the default holds. The bootstrap has the struct. Any thread. */
#ifndef TC_XDS_BOOTSTRAP_LIMITS_H
#define TC_XDS_BOOTSTRAP_LIMITS_H

#include <jansson.h>

#include "base/validation_errors.h"

struct tc_xds_limits {
    uint64_t ads_message_bytes;      /* of one response; default 64 MiB */
    uint64_t decode_bytes;           /* memory for decoding a resource, and for unpacking a response; default 48 MiB */
    uint64_t resources_per_response; /* default 65536 */
    uint64_t held_bytes;             /* of all resources that one client has in use, as received; default 256 MiB */
    /* The limits below are for one resource, unless a comment says otherwise. Their defaults are in
     * xds/resource/registry.c. `routes` and `aggregate_clusters` above their defaults also raise limits of
     * xds/resolver. */
    uint64_t eds_priorities, eds_localities, eds_endpoints, eds_drop_categories;
    uint64_t virtual_hosts, routes, http_filters, aggregate_clusters;
    uint64_t regex_bytes;         /* of one pattern */
    uint64_t regex_memory_bytes;  /* of one compiled pattern */
    uint64_t regexes_total_bytes; /* memory of all patterns of a response, compiled and while they are read */
};

/* The default of decode_bytes. */
#define TC_XDS_DECODE_BYTES ((uint64_t)48 << 20)

/* The default of held_bytes. */
#define TC_XDS_HELD_BYTES ((uint64_t)256 << 20)

/* Reads the member "torc.limits" of the object `bootstrap`; the member may be absent. Does not change limits that the
 * member does not name. Adds every error with its path to *f. */
void tc_xds_limits_parse(const json_t *bootstrap, struct tc_xds_limits *out, struct tc_validation_errors *f);

#endif
