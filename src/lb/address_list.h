/* The order in which pick_first tries addresses: endpoints flattened, duplicates dropped, address families interleaved.
 * Loop thread only. */
#ifndef TC_LB_ADDRESS_LIST_H
#define TC_LB_ADDRESS_LIST_H

#include "base/random.h"
#include "lb/endpoint.h"

/* A hash map from addresses to their places in a list. */
struct tc_addr_map {
    size_t mask; /* slots - 1 */
    struct {
        const struct tc_addr *addr; /* NULL: free */
        uint32_t index;
    } * slots;
};

/* Makes room for `n` addresses, the most that may be added. Addresses that are added must outlive the map. */
void tc_addr_map_init(struct tc_addr_map *m, size_t n);
void tc_addr_map_fini(struct tc_addr_map *m);
/* Adds the address with `index` and returns `index`. If it is there already, returns its index instead. */
uint32_t tc_addr_map_add(struct tc_addr_map *m, const struct tc_addr *a, uint32_t index);
/* Stores the index of the address. Returns false when it is not there. */
bool tc_addr_map_find(const struct tc_addr_map *m, const struct tc_addr *a, uint32_t *index);

struct tc_addr_list_entry {
    struct tc_endpoint *endpoint; /* borrowed from the list of endpoints */
    const struct tc_addr *addr;   /* points into the endpoint */
};

enum tc_shuffle {
    TC_SHUFFLE_NONE,
    TC_SHUFFLE_EVEN,     /* A62: every order is equally likely */
    TC_SHUFFLE_WEIGHTED, /* A113: endpoints are drawn one after another by their weights */
};

/* Shuffles the endpoints (`rng` may be NULL for TC_SHUFFLE_NONE), flattens them, drops all duplicates after the first,
 * and interleaves the address families, beginning with the first address's (A61). Returns an array of *n entries for
 * tc_free, or NULL when there is no address. */
struct tc_addr_list_entry *tc_addr_list_new(const struct tc_endpoints *endpoints, enum tc_shuffle shuffle,
                                            struct tc_rng *rng, size_t *n);

#endif
