/* The number of entries that each item of a ring gets (A42). Internal to the ring. Pure functions, any thread. */
#ifndef TC_RING_SHARES_H
#define TC_RING_SHARES_H

#include "ring/item.h"

/* Clamps the bounds of a ring's size as tc_ring_new says. */
static inline void tc_ring_clamp(uint64_t *min, uint64_t *max, uint64_t *cap)
{
    *cap = TC_MAX(TC_MIN(*cap, TC_RING_SIZE_MAX), 1);
    *max = TC_MAX(TC_MIN(*max, *cap), 1);
    *min = TC_MAX(TC_MIN(*min, *max), 1);
}

/* Sets counts[0..n) to the number of entries of each item, and returns the sum. Clamps the bounds itself. */
uint32_t tc_ring_shares(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                        uint32_t *counts);

#endif
