/* Takes the endpoints' bytes out of a ClusterLoadAssignment before it is unpacked. Each endpoint is then unpacked by
 * itself, into memory that the next endpoint uses again: the messages of one endpoint take hundreds of bytes, and a
 * resource may have 262,144 endpoints by default. Any thread. */
#ifndef TC_XDS_RESOURCE_ENDPOINTS_SPLIT_H
#define TC_XDS_RESOURCE_ENDPOINTS_SPLIT_H

#include "base/buf.h"
#include "base/vec.h"

struct tc_endpoint_counts {
    size_t localities;
    size_t addresses; /* one for each endpoint, and one for each additional address */
};

struct tc_lifted_endpoints {
    struct tc_buf rest;                 /* the assignment, its localities without endpoints */
    TC_VEC(struct tc_slice) localities; /* LocalityLbEndpoints as they were, in their order, borrowed */
};

/* The functions are for bytes that passed tc_scan. */

/* Takes no memory. */
struct tc_endpoint_counts tc_endpoints_count(struct tc_slice assignment);
/* Takes the endpoints out of the assignment, whose bytes must outlive *out. *out must be zeroed; free it with
 * tc_lifted_endpoints_fini. */
void tc_endpoints_lift(struct tc_slice assignment, struct tc_lifted_endpoints *out);
void tc_lifted_endpoints_fini(struct tc_lifted_endpoints *l);
/* Stores the next LbEndpoint of a locality, borrowed, and moves the start of *locality behind it. Returns false if none
 * is left. */
bool tc_endpoints_next(struct tc_slice *locality, struct tc_slice *endpoint);
/* Returns the number of endpoints of a locality. */
size_t tc_endpoints_of(struct tc_slice locality);

#endif
