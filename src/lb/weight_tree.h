/* Weights in order, with partial sums (a Fenwick tree): changing a weight and drawing a place cost O(log n). One thread
 * at a time. */
#ifndef TC_LB_WEIGHT_TREE_H
#define TC_LB_WEIGHT_TREE_H

#include <stddef.h>
#include <stdint.h>

struct tc_weight_tree {
    uint64_t total;
    size_t n, top;  /* top: the largest power of two that is not above n; 0 if n is 0 */
    uint64_t *sums; /* 1-based: sums[k] is the sum of the weights from k - (k & -k) to k - 1 */
};

/* Makes n weights of 0, whose sum may become UINT64_MAX at most. tc_weight_tree_fini frees them. */
void tc_weight_tree_init(struct tc_weight_tree *t, size_t n);
void tc_weight_tree_fini(struct tc_weight_tree *t);
/* Adds to weight i, or takes from it if `weight` is negative: weight i must not fall below 0. */
void tc_weight_tree_add(struct tc_weight_tree *t, size_t i, int64_t weight);
/* Returns the place that `key` falls on when the weights lie side by side, in order, from 0. key < total. */
static inline size_t tc_weight_tree_find(const struct tc_weight_tree *t, uint64_t key)
{
    size_t at = 0;
    for (size_t step = t->top; step; step >>= 1)
        if (at + step <= t->n && t->sums[at + step] <= key) {
            at += step;
            key -= t->sums[at];
        }
    return at;
}

#endif
