/* Resources that are as large as the limits let them be, made of whatever there is, each refused for another reason. */
#ifndef TC_SUPPORT_HOSTILE_RESOURCES_H
#define TC_SUPPORT_HOSTILE_RESOURCES_H

#include "base/buf.h"

#define HOSTILE_URL(type) "type.googleapis.com/envoy.config." type
#define LDS HOSTILE_URL("listener.v3.Listener")
#define CDS HOSTILE_URL("cluster.v3.Cluster")
#define EDS HOSTILE_URL("endpoint.v3.ClusterLoadAssignment")

enum {
    HOSTILE_SLOW = 1,           /* needs much of a processor */
    HOSTILE_REGEXES = 2,        /* takes what it takes, whatever room there is */
    HOSTILE_MOST_ENDPOINTS = 4, /* 262,144 of them, and one too many */
};

struct hostile_resource {
    const char *name, *url;
    void (*make)(struct tc_buf *out); /* serialised */
    const char *nack;                 /* a part of its text */
    unsigned kind;
};

/* What a response has room for; the resources are made for it. */
void hostile_resources_room(size_t bytes);
const struct hostile_resource *hostile_resources(size_t *n);
/* One of them. */
void hostile_half_unknown_fields(struct tc_buf *b);
/* A good assignment of "victim": so many endpoints, or as many as there is room for. */
void hostile_good_endpoints(struct tc_buf *b, size_t n);

#endif
