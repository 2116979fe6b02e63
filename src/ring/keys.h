/* The hashes of a ring's entries. Internal to the ring. Pure functions, any thread. */
#ifndef TC_RING_KEYS_H
#define TC_RING_KEYS_H

#include "base/slice.h"

/* Entries of an item. Their hashes are XXH64 (seed 0) of key + "_" + i in decimal, for i = first .. first + n - 1. */
struct tc_ring_part {
    struct tc_slice key;
    uint32_t item, first, n;
};

/* Writes the hashes of the entries of n parts, part after part. `out` has room for all of them. */
void tc_ring_keys(const struct tc_ring_part *parts, size_t n, uint64_t *out);

#endif
