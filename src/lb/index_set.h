/* A set of numbers below n, in words of 64 bits. Level 0 has a bit for each number. Level k + 1 has a bit for each word
 * of level k, which is set if that word is not zero. So the search for the next member from any number on costs one
 * look at a word for each level up and down: O(log n). One thread at a time. */
#ifndef TC_LB_INDEX_SET_H
#define TC_LB_INDEX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TC_INDEX_SET_LEVELS 6
#define TC_INDEX_NONE UINT32_MAX

struct tc_index_set {
    uint64_t *levels[TC_INDEX_SET_LEVELS]; /* owned; in one allocation, which begins at levels[0] */
    uint32_t sizes[TC_INDEX_SET_LEVELS];   /* in words */
    unsigned n_levels;
    uint32_t n;
};

/* Makes an empty set for numbers below n; n may be 0. */
void tc_index_set_init(struct tc_index_set *s, uint32_t n);
/* A set of zeroes is allowed. */
void tc_index_set_fini(struct tc_index_set *s);
/* Both need i below n. Adding a member changes nothing, nor does removing a number that is not a member. */
void tc_index_set_add(struct tc_index_set *s, uint32_t i);
void tc_index_set_remove(struct tc_index_set *s, uint32_t i);
/* Returns the least member that is not below i, or TC_INDEX_NONE. i may be any number. */
uint32_t tc_index_set_next(const struct tc_index_set *s, uint32_t i);

#endif
