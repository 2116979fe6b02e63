/* Resources as large, or as expensive, as the limits allow, of many kinds of content. Each of hostile_resources is
 * rejected. */
#ifndef TC_SUPPORT_HOSTILE_RESOURCES_H
#define TC_SUPPORT_HOSTILE_RESOURCES_H

#include "base/buf.h"

#define HOSTILE_URL(type) "type.googleapis.com/envoy.config." type
#define LDS HOSTILE_URL("listener.v3.Listener")
#define CDS HOSTILE_URL("cluster.v3.Cluster")
#define EDS HOSTILE_URL("endpoint.v3.ClusterLoadAssignment")

enum {
    HOSTILE_SLOW = 1,           /* needs much CPU time */
    HOSTILE_REGEXES = 2,        /* its cost does not depend on the size of the response */
    HOSTILE_MOST_ENDPOINTS = 4, /* 262,144 endpoints, as many as there may be: the last one repeats the first */
};

struct hostile_resource {
    const char *name, *url;
    void (*make)(struct tc_buf *out); /* serialised */
    const char *nack;                 /* a part of the NACK's text */
    unsigned kind;
};

/* Sets the size available in a response, which `make` and the functions below fill. Call it first. */
void hostile_resources_room(size_t bytes);
const struct hostile_resource *hostile_resources(size_t *n);
/* Makes a resource whose unknown field has 4,000,000 bytes: half, where the room is twice as large. A row of
 * hostile_resources, which a test also uses alone. */
void hostile_half_unknown_fields(struct tc_buf *b);
/* Makes a good assignment of "victim" with n endpoints, or as many as fit. */
void hostile_good_endpoints(struct tc_buf *b, size_t n);

#endif
