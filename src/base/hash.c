#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tc_xxh64_seeded(const void *data, size_t len, uint64_t seed)
{
    return XXH64(data, len, seed);
}
