/* XXH64. With seed 0 it is the hash of A42, for requests and for ring entries. Any thread. */
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

/* For hash tables alone. The seed is drawn at random, once in a process: with a known seed, a peer could compute keys
 * that all have the same hash. */
uint64_t tc_table_hash(const void *data, size_t len);

#endif
