/* The order in which pick_first tries addresses: endpoints shuffled and flattened, duplicates dropped, address families
 * interleaved. Also a map of addresses, which other policies use, too. Loop thread only. */
#ifndef TC_LB_ADDRESS_LIST_H
#define TC_LB_ADDRESS_LIST_H

#include "base/random.h"
#include "lb/endpoint.h"

/* A hash map from addresses to indices. A map that is all zero, as after fini, may be ended, but not used. */
struct tc_addr_map {
    size_t mask; /* slots - 1 */
    struct {
        const struct tc_addr *addr; /* NULL: free */
        uint32_t index;
    } * slots;
};

/* Makes an empty map with room for `n` addresses, the most that may be added. Added addresses are borrowed and must
 * outlive the map. */
void tc_addr_map_init(struct tc_addr_map *m, size_t n);
void tc_addr_map_fini(struct tc_addr_map *m);
/* Adds the address with `index` and returns `index`. If the map has the address, changes nothing and returns its
 * index. */
uint32_t tc_addr_map_add(struct tc_addr_map *m, const struct tc_addr *a, uint32_t index);
/* Stores the index of the address. Returns false if the map does not have the address. */
bool tc_addr_map_find(const struct tc_addr_map *m, const struct tc_addr *a, uint32_t *index);

struct tc_addr_list_entry {
    struct tc_endpoint *endpoint; /* borrowed from the tc_endpoints */
    const struct tc_addr *addr;   /* an address of the endpoint */
};

enum tc_shuffle {
    TC_SHUFFLE_NONE,
    TC_SHUFFLE_EVEN,     /* A62: every order is equally likely */
    TC_SHUFFLE_WEIGHTED, /* A113: endpoints are drawn one after another by their weights */
};

/* Shuffles a copy of the list of endpoints (`rng` may be NULL for TC_SHUFFLE_NONE), flattens it, keeps the first of
 * equal addresses, and interleaves the address families, beginning with that of the first address (A61). Returns an
 * array of *n entries, which the caller frees with tc_free; NULL, with *n 0, if there is no address. */
struct tc_addr_list_entry *tc_addr_list_new(const struct tc_endpoints *endpoints, enum tc_shuffle shuffle,
                                            struct tc_rng *rng, size_t *n);

#endif
