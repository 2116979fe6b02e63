/* XXH64; with seed 0 the hash of A42 for requests and ring entries alike. Any thread. */
#ifndef TC_BASE_HASH_H
#define TC_BASE_HASH_H

#include "base/slice.h"

uint64_t tc_xxh64_seeded(const void *data, size_t len, uint64_t seed);

static inline uint64_t tc_xxh64(const void *data, size_t len)
{
    return tc_xxh64_seeded(data, len, 0);
}

static inline uint64_t tc_xxh64_slice(struct tc_slice s)
{
    return tc_xxh64(s.data, s.len);
}

/* For hash tables alone: the seed is drawn at random, once in a process, so that nobody outside can choose keys of one
 * hash. (With a seed that is known, XXH64 lets anybody compute such keys.) */
uint64_t tc_table_hash(const void *data, size_t len);

#endif
