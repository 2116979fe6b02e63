#include "base/hash.h"

#include <pthread.h>

#include "base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tc_xxh64_seeded(const void *data, size_t len, uint64_t seed)
{
    return XXH64(data, len, seed);
}

static uint64_t table_seed;

static void table_seed_draw(void)
{
    struct tc_rng rng;
    tc_rng_init_system(&rng);
    table_seed = tc_rng_u64(&rng);
}

uint64_t tc_table_hash(const void *data, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, table_seed_draw);
    return tc_xxh64_seeded(data, len, table_seed);
}
