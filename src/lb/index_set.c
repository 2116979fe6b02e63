/* An example of n = 200: level 0 has four words of bits for the numbers, level 1 one word, whose bits 0 to 3 say which
 * of the four are not zero. The search for the next member of {3, 190} from 70 on: word 1 of level 0 has no bit from
 * bit 6 on, so the search goes up to level 1. The next bit there after bit 1 is bit 2, so the search goes down to word
 * 2, whose first bit is 62: the member is 2 * 64 + 62 = 190. */
#include "lb/index_set.h"

#include "base/mem.h"

static uint32_t index_set_words(uint32_t n)
{
    return n / 64 + (n % 64 != 0);
}

void tc_index_set_init(struct tc_index_set *s, uint32_t n)
{
    uint32_t left = n ? n : 1;
    size_t total = 0;
    *s = (struct tc_index_set){.n = n};
    do {
        left = index_set_words(left);
        s->sizes[s->n_levels++] = left;
        total += left;
    } while (left > 1);
    uint64_t *at = tc_calloc(total, sizeof(*at));
    for (unsigned k = 0; k < s->n_levels; k++) {
        s->levels[k] = at;
        at += s->sizes[k];
    }
}

void tc_index_set_fini(struct tc_index_set *s)
{
    tc_free(s->levels[0]);
    *s = (struct tc_index_set){0};
}

void tc_index_set_add(struct tc_index_set *s, uint32_t i)
{
    for (unsigned k = 0; k < s->n_levels; k++, i /= 64)
        s->levels[k][i / 64] |= UINT64_C(1) << (i % 64);
}

void tc_index_set_remove(struct tc_index_set *s, uint32_t i)
{
    for (unsigned k = 0; k < s->n_levels; k++, i /= 64)
        if (s->levels[k][i / 64] &= ~(UINT64_C(1) << (i % 64)))
            return; /* the word has other members: the levels above do not change */
}

uint32_t tc_index_set_next(const struct tc_index_set *s, uint32_t i)
{
    if (i >= s->n)
        return TC_INDEX_NONE;
    unsigned k = 0;
    uint64_t word;
    /* Goes up until the word of i has a bit at or after i. Each step makes i a bit number of the next level. */
    while (!(word = s->levels[k][i / 64] & (UINT64_MAX << (i % 64)))) {
        i = i / 64 + 1;
        if (++k == s->n_levels || i >= s->sizes[k - 1])
            return TC_INDEX_NONE;
    }
    i = i / 64 * 64 + (uint32_t)__builtin_ctzll(word);
    /* Goes down again, to the first bit of each word. */
    while (k-- > 0)
        i = i * 64 + (uint32_t)__builtin_ctzll(s->levels[k][i]);
    return i;
}
