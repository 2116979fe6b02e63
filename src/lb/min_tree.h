/* A tree of keys by place, which finds a place with the least key in O(log n). Of several such places each is drawn
 * with the same probability. One thread at a time. */
#ifndef TC_LB_MIN_TREE_H
#define TC_LB_MIN_TREE_H

#include "base/random.h"

struct tc_min_node {
    double key; /* the least key of the places below */
    uint32_t n; /* how many of these places have that key; 0: none of them has a key, and `key` is INFINITY */
};

/* Zero-initialised, it has no keys. */
struct tc_min_tree {
    uint32_t leaves;           /* a power of two, or 0 */
    struct tc_min_node *nodes; /* owned; the root is nodes[1], place i nodes[leaves + i]; NULL if leaves is 0 */
};

void tc_min_tree_fini(struct tc_min_tree *t);
/* Sets the key of place i, in O(log n). INFINITY: the place has no key. The key must not be NaN. If i is not below
 * `leaves` the tree grows, in O(i). */
void tc_min_tree_set(struct tc_min_tree *t, uint32_t i, double key);
/* Returns the key of place i, which must have been set; INFINITY: it has no key. */
static inline double tc_min_tree_get(const struct tc_min_tree *t, uint32_t i)
{
    return t->nodes[t->leaves + i].key;
}
/* Returns a place with the least key; UINT32_MAX if no place has a key. */
uint32_t tc_min_tree_draw(const struct tc_min_tree *t, struct tc_rng *rng);

#endif
