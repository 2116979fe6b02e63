/* A set of numbers below n that finds the next member from any place at once, however many are missing between: a word
 * of bits for 64 numbers, and above the words a level that says which of them are not zero, and so on. */
#ifndef TC_BASE_INDEX_SET_H
#define TC_BASE_INDEX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TC_INDEX_SET_LEVELS 6
#define TC_INDEX_NONE UINT32_MAX

struct tc_index_set {
    uint64_t *levels[TC_INDEX_SET_LEVELS]; /* of one allocation */
    uint32_t sizes[TC_INDEX_SET_LEVELS];   /* words of each */
    unsigned n_levels;
    uint32_t n;
};

/* Empty, for numbers below n. */
void tc_index_set_init(struct tc_index_set *s, uint32_t n);
void tc_index_set_fini(struct tc_index_set *s);
/* i < n. */
void tc_index_set_add(struct tc_index_set *s, uint32_t i);
void tc_index_set_remove(struct tc_index_set *s, uint32_t i);
static inline bool tc_index_set_has(const struct tc_index_set *s, uint32_t i)
{
    return s->levels[0][i / 64] >> (i % 64) & 1;
}
/* The least member that is not below i (any number); TC_INDEX_NONE: there is none. */
uint32_t tc_index_set_next(const struct tc_index_set *s, uint32_t i);

#endif
