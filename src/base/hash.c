#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tc_xxh64(const void *data, size_t len)
{
    return XXH64(data, len, 0);
}
