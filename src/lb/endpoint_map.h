/* Finds an endpoint's place in a list by its unordered set of addresses (A61: an endpoint's identity). */
#ifndef TC_LB_ENDPOINT_MAP_H
#define TC_LB_ENDPOINT_MAP_H

#include "lb/endpoint.h"

struct tc_endpoint_map {
    size_t mask;    /* slots - 1; slots is a power of two */
    uint64_t mixer; /* odd, and another one for each map: nobody can choose addresses that all meet in one place */
    struct {
        const struct tc_endpoint *endpoint; /* NULL: free */
        uint32_t hash;
        uint32_t index;
    } * slots;
};

/* Room for `n` endpoints, which must outlive the map. */
void tc_endpoint_map_init(struct tc_endpoint_map *m, size_t n);
void tc_endpoint_map_fini(struct tc_endpoint_map *m);
/* The index that an endpoint of the same addresses was added with; adds this one with `index` and returns `index` when
 * there is none. */
uint32_t tc_endpoint_map_add(struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t index);
/* False when there is none. */
bool tc_endpoint_map_find(const struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t *index);

#endif
