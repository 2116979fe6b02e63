#include "lb/ring_cache.h"

#include <pthread.h>

#define XXH_INLINE_ALL
#include <uthash.h>
#include <xxhash.h>

#include "base/mem.h"
#include "base/random.h"
#include "lb/ring_impl.h"

/* A ring that somebody holds. The table holds none itself. */
struct tc_ring_cached {
    struct tc_ring_id id;
    struct tc_ring *ring; /* NULL: another took its place in the table */
    UT_hash_handle hh;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t secret;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tc_ring_cached *table; /* under the mutex */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void init(void)
{
    struct tc_rng rng;
    tc_rng_init_system(&rng);
    secret = tc_rng_u64(&rng);
    pthread_atfork(before_fork, after_fork, after_fork);
}

struct tc_ring_id tc_ring_id(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    pthread_once(&once, init);
    tc_ring_clamp(&min, &max, &cap);
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

/* The last reference went. */
static void release(struct tc_ring *r)
{
    struct tc_ring_cached *c = r->cached;
    pthread_mutex_lock(&mutex);
    if (c->ring)
        HASH_DEL(table, c);
    pthread_mutex_unlock(&mutex);
    tc_free(c);
    tc_free(r);
}

/* With the mutex held. */
static struct tc_ring *find(const struct tc_ring_id *id, struct tc_ring_cached **c)
{
    HASH_FIND(hh, table, id, sizeof(*id), *c);
    return *c && tc_ref_try_inc(&(*c)->ring->ref) ? (*c)->ring : NULL;
}

struct tc_ring *tc_ring_cache_find(const struct tc_ring_id *id)
{
    struct tc_ring_cached *c;
    pthread_mutex_lock(&mutex);
    struct tc_ring *r = find(id, &c);
    pthread_mutex_unlock(&mutex);
    return r;
}

struct tc_ring *tc_ring_cache_add(const struct tc_ring_id *id, struct tc_ring *ring)
{
    struct tc_ring_cached *c;
    pthread_mutex_lock(&mutex);
    struct tc_ring *other = find(id, &c);
    if (!other) {
        if (c) { /* its last reference just went */
            HASH_DEL(table, c);
            c->ring = NULL;
        }
        struct tc_ring_cached *mine = TC_NEW(struct tc_ring_cached);
        mine->id = *id;
        mine->ring = ring;
        HASH_ADD(hh, table, id, sizeof(mine->id), mine);
        ring->cached = mine;
        ring->release = release;
    }
    pthread_mutex_unlock(&mutex);
    if (!other)
        return ring;
    tc_ring_unref(ring);
    return other;
}
