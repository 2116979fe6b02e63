/* sums[k] covers k & -k weights, the last one being weight k - 1. So weight i is in at most log2(n) + 1 sums: sums[k]
 * for k = i + 1, then for k + (k & -k), and so on. A search begins with a step of `top`, and halves it each time. */
#include "lb/weight_tree.h"

#include "base/mem.h"

void tc_weight_tree_init(struct tc_weight_tree *t, size_t n)
{
    *t = (struct tc_weight_tree){.n = n, .sums = tc_calloc(n + 1, sizeof(*t->sums))};
    t->top = n ? (size_t)1 << (63 - __builtin_clzll(n)) : 0;
}

void tc_weight_tree_fini(struct tc_weight_tree *t)
{
    tc_free(t->sums);
    *t = (struct tc_weight_tree){0};
}

void tc_weight_tree_add(struct tc_weight_tree *t, size_t i, int64_t weight)
{
    t->total += (uint64_t)weight;
    for (size_t k = i + 1; k <= t->n; k += k & -k)
        t->sums[k] += (uint64_t)weight;
}
