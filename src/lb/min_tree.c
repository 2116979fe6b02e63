/* A tournament: each node knows the least key below it and how many places have that key. A draw takes a random number
 * below the root's `n` and goes down, at each node to the side that this number falls on. A change goes up until a node
 * stays as it was. */
#include "lb/min_tree.h"

#include <math.h>

#include "base/mem.h"

void tc_min_tree_fini(struct tc_min_tree *t)
{
    tc_free(t->nodes);
    *t = (struct tc_min_tree){0};
}

static struct tc_min_node min_tree_join(struct tc_min_node a, struct tc_min_node b)
{
    if (a.key < b.key)
        return a;
    return a.key > b.key ? b : (struct tc_min_node){a.key, a.n + b.n};
}

static void min_tree_grow(struct tc_min_tree *t, uint32_t n)
{
    struct tc_min_tree old = *t;
    t->leaves = old.leaves ? old.leaves : 1;
    while (t->leaves < n)
        t->leaves *= 2;
    t->nodes = tc_reallocarray(NULL, 2 * (size_t)t->leaves, sizeof(*t->nodes));
    for (uint32_t i = 0; i < t->leaves; i++)
        t->nodes[t->leaves + i] = i < old.leaves ? old.nodes[old.leaves + i] : (struct tc_min_node){INFINITY, 0};
    for (uint32_t k = t->leaves - 1; k; k--)
        t->nodes[k] = min_tree_join(t->nodes[2 * k], t->nodes[2 * k + 1]);
    tc_free(old.nodes);
}

void tc_min_tree_set(struct tc_min_tree *t, uint32_t i, double key)
{
    if (i >= t->leaves)
        min_tree_grow(t, i + 1);
    uint32_t k = t->leaves + i;
    struct tc_min_node node = {key, key < INFINITY};
    do {
        if (!(t->nodes[k].key < node.key) && !(t->nodes[k].key > node.key) && t->nodes[k].n == node.n)
            return;
        t->nodes[k] = node;
        k /= 2;
        node = k ? min_tree_join(t->nodes[2 * k], t->nodes[2 * k + 1]) : node;
    } while (k);
}

uint32_t tc_min_tree_draw(const struct tc_min_tree *t, struct tc_rng *rng)
{
    if (!t->leaves || !t->nodes[1].n)
        return UINT32_MAX;
    uint64_t left = tc_rng_below(rng, t->nodes[1].n);
    uint32_t k = 1;
    while (k < t->leaves) {
        double least = t->nodes[k].key;
        k *= 2;
        uint32_t n = t->nodes[k].key > least ? 0 : t->nodes[k].n; /* places of the left side with the least key */
        if (left < n)
            continue;
        left -= n;
        k++;
    }
    return k - t->leaves;
}
