/* xDS resources as large, or as expensive, as the limits allow, of many kinds of content. The client rejects each of
 * hostile_resources. */
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
    HOSTILE_MOST_ENDPOINTS = 4, /* 262,144 endpoints, the most allowed, if the room is large enough */
    HOSTILE_COPIED = 8,         /* the scan (proto/scan.h) copies most of the resource; its strings are copied again */
};

struct hostile_resource {
    const char *name, *url;           /* url: the type URL */
    void (*make)(struct tc_buf *out); /* appends the serialised resource */
    const char *nack; /* a part of the rejecting request as kit_mesh_requests tells it; "NACK": any NACK */
    unsigned kind;    /* flags: HOSTILE_* */
};

/* Sets how many bytes of a response are available for resources: at least 8,000,000, which the largest fixed rows need.
 * Must be called before `make` and the functions below that append to a buffer. */
void hostile_resources_room(size_t bytes);
/* Returns the rows, which are static, and stores their number in *n. */
const struct hostile_resource *hostile_resources(size_t *n);
/* Appends an assignment of "victim" that fills the room but for less than 1.1 MB, with an unknown field of 4,000,000
 * bytes. Also the `make` of a row of hostile_resources. */
void hostile_half_unknown_fields(struct tc_buf *b);
/* Appends a good assignment of "victim" with n endpoints, or as many as fit. */
void hostile_good_endpoints(struct tc_buf *b, size_t n);

#endif
