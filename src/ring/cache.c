/* A table from ids to rings that somebody holds, under a lock of the process.
 *
 * The table has no references of its own, so a ring may lose its last reference while another thread finds it. The
 * finder takes a reference only if one is left (tc_ref_try_inc). If a thread then adds an equal ring, the new ring
 * takes the place in the table. The secret keeps a control plane from choosing items whose ids are equal. */
#include "ring/cache.h"

#include <pthread.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fork.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/table.h"
#include "ring/ring_internal.h"
#include "ring/shares.h"

/* A ring that somebody holds. The last unref of the ring takes it out of the table. */
struct tc_ring_cached {
    struct tc_ring_id id;
    struct tc_ring *ring; /* NULL: an equal ring took its place in the table */
    UT_hash_handle hh;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t secret;
static struct tc_ring_cached *table; /* under the lock */

static void cache_lock(void)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_RINGS));
}

static void cache_unlock(void)
{
    tc_lock_give(tc_lock_of_process(TC_RANK_RINGS));
}

static void cache_init(void)
{
    struct tc_rng rng;
    tc_rng_init_system(&rng);
    secret = tc_rng_u64(&rng);
}

struct tc_ring_id tc_ring_id(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    tc_ring_clamp(&min, &max, &cap);
    return tc_ring_id_of_sizes(items, n, min, max);
}

struct tc_ring_id tc_ring_id_of_sizes(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max)
{
    pthread_once(&once, cache_init);
    uint64_t sizes[] = {n, min, max};
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset_withSeed(&state, secret);
    XXH3_128bits_update(&state, sizes, sizeof(sizes));
    for (size_t i = 0; i < n; i++) {
        uint64_t head[] = {items[i].key.len, TC_MAX(items[i].weight, 1)};
        XXH3_128bits_update(&state, head, sizeof(head));
        if (items[i].key.len)
            XXH3_128bits_update(&state, items[i].key.data, items[i].key.len);
    }
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (struct tc_ring_id){hash.low64, hash.high64};
}

/* The `release` of a ring that is, or was, in the table: called by the last unref. Frees the ring. */
static void cache_release(struct tc_ring *r)
{
    struct tc_ring_cached *c = r->cached;
    cache_lock();
    if (c->ring)
        HASH_DEL(table, c);
    cache_unlock();
    tc_free(c);
    tc_free(r);
}

/* Called with the lock held. Returns a reference, or NULL. Sets *c to the entry, also if the last reference to its ring
 * has just gone; to NULL if there is no entry. */
static struct tc_ring *cache_find(const struct tc_ring_id *id, struct tc_ring_cached **c)
{
    HASH_FIND(hh, table, id, sizeof(*id), *c);
    return *c && tc_ref_try_inc(&(*c)->ring->ref) ? (*c)->ring : NULL;
}

struct tc_ring *tc_ring_cache_find(const struct tc_ring_id *id)
{
    struct tc_ring_cached *c;
    cache_lock();
    struct tc_ring *r = cache_find(id, &c);
    cache_unlock();
    return r;
}

struct tc_ring *tc_ring_cache_add(const struct tc_ring_id *id, struct tc_ring *ring)
{
    struct tc_ring_cached *c;
    cache_lock();
    struct tc_ring *other = cache_find(id, &c);
    if (!other) {
        if (c) { /* the old ring's last reference has just gone, and cache_release has yet to take the lock */
            HASH_DEL(table, c);
            c->ring = NULL;
        }
        struct tc_ring_cached *mine = TC_NEW(struct tc_ring_cached);
        mine->id = *id;
        mine->ring = ring;
        HASH_ADD(hh, table, id, sizeof(mine->id), mine);
        ring->cached = mine;
        ring->release = cache_release;
    }
    cache_unlock();
    if (!other)
        return ring;
    tc_ring_unref(ring);
    return other;
}
