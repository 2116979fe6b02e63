/* The order in which pick_first tries addresses: endpoints flattened, families interleaved, duplicates left out. */
#ifndef TC_LB_ADDR_LIST_H
#define TC_LB_ADDR_LIST_H

#include "base/random.h"
#include "lb/endpoint.h"

/* Finds an address's place in a list. */
struct tc_addr_map {
    size_t mask; /* slots - 1 */
    struct {
        const struct tc_addr *addr; /* NULL: free */
        uint32_t index;
    } * slots;
};

/* Room for `n` addresses, which must outlive the map. */
void tc_addr_map_init(struct tc_addr_map *m, size_t n);
void tc_addr_map_fini(struct tc_addr_map *m);
/* The index that this address was added with; adds it with `index` and returns `index` when it is new. */
uint32_t tc_addr_map_add(struct tc_addr_map *m, const struct tc_addr *a, uint32_t index);
/* False when it is not there. */
bool tc_addr_map_find(const struct tc_addr_map *m, const struct tc_addr *a, uint32_t *index);

struct tc_addr_list_entry {
    struct tc_endpoint *endpoint; /* borrowed from the list that it came of */
    const struct tc_addr *addr;   /* of the endpoint's */
};

enum tc_shuffle {
    TC_SHUFFLE_NONE,
    TC_SHUFFLE_EVEN,     /* A62: every order is as likely */
    TC_SHUFFLE_WEIGHTED, /* A113: endpoints are drawn one after another by their weights */
};

/* A61: shuffles the endpoints (rng may be NULL for NONE), flattens them, drops duplicates (the first one stays),
 * and interleaves address families, the first address's family first. The array is freed with tc_free; NULL when there
 * is no address. */
struct tc_addr_list_entry *tc_addr_list_new(const struct tc_endpoints *endpoints, enum tc_shuffle shuffle,
                                            struct tc_rng *rng, size_t *n);

#endif
