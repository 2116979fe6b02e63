/* A hash map from endpoints to their places in a list. The key is the unordered set of addresses, which is an
 * endpoint's identity (A61). One thread at a time. */
#ifndef TC_LB_ENDPOINT_MAP_H
#define TC_LB_ENDPOINT_MAP_H

#include "lb/endpoint.h"

struct tc_endpoint_map {
    size_t mask; /* the number of slots, a power of two, minus 1 */
    struct {
        const struct tc_endpoint *endpoint; /* NULL: free */
        uint32_t hash;                      /* the upper half of the hash of the endpoint's addresses */
        uint32_t index;                     /* the endpoint's place, as it was added */
    } * slots;
};

/* Makes an empty map, to which at most `n` endpoints may be added. Endpoints that are added must outlive the map. */
void tc_endpoint_map_init(struct tc_endpoint_map *m, size_t n);
/* A map of zeroes is allowed. */
void tc_endpoint_map_fini(struct tc_endpoint_map *m);
/* Adds the endpoint with `index` and returns `index`. If an endpoint of the same addresses is in the map already, adds
 * nothing and returns that endpoint's index. */
uint32_t tc_endpoint_map_add(struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t index);
/* Stores the index of the endpoint of the same addresses in *index. Returns false when no endpoint has them: *index is
 * left as it is. */
bool tc_endpoint_map_find(const struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t *index);

#endif
