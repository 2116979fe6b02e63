/* The ring of A42: building it, and finding a request's endpoint. Maglev's table (maglev.c) has the same struct.
 *
 * An item with the key K and a share of n entries has the entries XXH64("K_0") .. XXH64("K_<n-1>"). A request with the
 * hash h belongs to the item of the first entry whose hash is at least h; past the last entry, to the item of entry 0.
 *
 * A ring of ten entries over the keys a, b, c (items 0, 1, 2) of equal weight. Each share is 10/3, so the running sums
 * are 3.3, 6.7 and 10: a gets 4 entries, b and c get 3.
 *
 *     entry     0     1     2     3     4     5     6     7     8     9    | padding
 *     hash   3991  3a24  461a  4e3d  5b0c  6d2c  7100  ba5c  cd69  fa0c  | ffff ...      (the first 16 of 64 bits)
 *     text    a_2   b_2   c_1   b_0   b_1   a_0   c_2   a_3   c_0   a_1
 *     item      0     1     2     1     1     0     2     0     2     0    | 0 ...
 *
 *     index   0  2  7  8 10          index[b]: the first entry whose top two bits are at least b
 *
 * A search for h = 5000... looks at bucket 01, whose entries begin at index[1] = 2. Among the eight entries from there
 * on it counts those below h, without a branch (461a and 4e3d: 2), and finds entry 4, of b. A search for ff00... finds
 * none and takes entry 0. The padding lets the count run past the last entry. Buckets hold two to four entries on
 * average. If all eight are below h, as may be in a bucket of eight or more, a binary search in the bucket follows. A
 * ring of 2^19 entries or more has 32 to 64 entries a bucket, so that the index stays in the cache, and a search
 * guesses the place in the bucket by interpolation.
 *
 * To build: tc_ring_shares counts the entries of each item, tc_ring_sort_keys (sort.c) hashes them (keys.c), and
 * tc_ring_sort_finish sorts them and fills the index. update.c makes a changed ring of the old one, and has a picture.
 * One thread builds a ring; then any thread may read it. Policies that ask for the same ring share it (cache.c). */
#include "ring/ring.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "base/wide.h"
#include "ring/memory.h"
#include "ring/ring_internal.h"
#include "ring/shares.h"
#include "ring/sort.h"

enum {
    STRIDE = 8,       /* entries that a search compares without a branch; in a sparse ring TC_RING_PADDING */
    LINE = 64,        /* bytes of a cache line */
    FINGERPRINT = 12, /* bytes of an entry in a fingerprint */
    /* The most entries of an index bucket, on average. With fewer entries a search is faster if the index is in the
     * cache, and slower if it is not. The index of a ring that fits no cache should itself stay in one. */
    PER_BUCKET = 4,
    PER_BUCKET_SPARSE = 64,
    SPARSE_SIZE = 1 << 19, /* entries from which the index is sparse */
    PARTS = 256,           /* items that are hashed at a time */
    TABLE_WALK = 4096      /* slots of a table that a walk passes: the entries of a ring of the default cap */
};

/* --- construction --- */

/* Adds room for n elements to a block of *bytes, and returns their offset. */
static size_t block_plan(size_t *bytes, size_t n, size_t size)
{
    size_t at = *bytes, more;
    if (__builtin_mul_overflow(n, size, &more) || __builtin_add_overflow(at, more + LINE, bytes) || more + LINE < more)
        *bytes = SIZE_MAX / 2; /* cannot be allocated */
    else
        *bytes &= ~(size_t)(LINE - 1);
    return at;
}

static unsigned ring_index_bits(uint32_t size, bool sparse)
{
    unsigned bits = 1;
    while (((uint64_t)(sparse ? PER_BUCKET_SPARSE : PER_BUCKET) << bits) < size)
        bits++;
    return bits;
}

void tc_ring_count_absent(struct tc_ring *r)
{
    r->absent = 0;
    for (size_t i = 0; i < r->n_items; i++)
        r->absent += r->counts[i] == 0;
}

/* Allocates a block of at least `bytes`. Returns the ring at its front, with one reference; the arrays are not set. */
static struct tc_ring *ring_block(size_t bytes, uint32_t size, size_t n)
{
    bytes = tc_ring_block_size(bytes);
    struct tc_ring *r = tc_malloc(bytes);
    tc_ring_block_advise(r, bytes);
    memset(r, 0, sizeof(*r));
    tc_ref_init(&r->ref);
    r->size = size;
    r->n_items = (uint32_t)n;
    return r;
}

struct tc_ring *tc_ring_alloc(uint32_t size, const uint32_t *counts, size_t n, const struct tc_ring *like)
{
    bool sparse = size >= SPARSE_SIZE;
    unsigned bits = ring_index_bits(size, sparse);
    /* An index with as many buckets as the old one can be moved (merge.c). A bucket with an eighth more or fewer
     * entries does not slow a search. */
    if (like && like->sparse == sparse && size / 8 > (size > like->size ? size - like->size : like->size - size)) {
        unsigned before = 64 - like->shift;
        if (before == ring_index_bits(size - size / 8, sparse) || before == ring_index_bits(size + size / 8, sparse))
            bits = before;
    }
    size_t bytes = 0;
    block_plan(&bytes, 1, sizeof(struct tc_ring));
    size_t index = block_plan(&bytes, ((size_t)1 << bits) + 1 + TC_RING_INDEX_PADDING, sizeof(uint32_t));
    size_t hash = block_plan(&bytes, (size_t)size + TC_RING_PADDING, sizeof(uint64_t));
    size_t item = block_plan(&bytes, (size_t)size + TC_RING_PADDING, sizeof(uint32_t));
    size_t count = block_plan(&bytes, n, sizeof(uint32_t));
    struct tc_ring *r = ring_block(bytes, size, n);
    char *block = (char *)r;
    r->shift = 64 - bits;
    r->sparse = sparse;
    r->index = (uint32_t *)(block + index);
    r->hash = (uint64_t *)(block + hash);
    r->item = (uint32_t *)(block + item);
    r->counts = (uint32_t *)(block + count);
    if (n)
        memcpy(r->counts, counts, n * sizeof(*counts));
    tc_ring_count_absent(r);
    tc_ring_pad(r);
    return r;
}

struct tc_ring *tc_ring_alloc_table(uint32_t size, size_t n)
{
    size_t bytes = 0;
    block_plan(&bytes, 1, sizeof(struct tc_ring));
    size_t item = block_plan(&bytes, size, sizeof(uint32_t));
    size_t count = block_plan(&bytes, n, sizeof(uint32_t));
    struct tc_ring *r = ring_block(bytes, size, n);
    r->inverse = size ? UINT64_MAX / size : 1;
    r->sparse = true;
    r->item = (uint32_t *)(void *)((char *)r + item);
    r->counts = memset((char *)r + count, 0, n * sizeof(uint32_t));
    return r;
}

void tc_ring_pad(struct tc_ring *r)
{
    memset(r->hash + r->size, 0xff, TC_RING_PADDING * sizeof(*r->hash));
    memset(r->item + r->size, 0, TC_RING_PADDING * sizeof(*r->item));
}

void tc_ring_index(struct tc_ring *r)
{
    uint32_t buckets = tc_ring_buckets(r);
    uint64_t before = 0;
    bool ties = false;
    /* First the end of each bucket that has entries, without a branch; then the empty buckets, which are few. */
    memset(r->index, 0, ((size_t)buckets + 1) * sizeof(*r->index));
    for (uint32_t e = 0; e < r->size; e++) {
        uint64_t h = r->hash[e];
        r->index[(h >> r->shift) + 1] = e + 1;
        ties |= e > 0 && h == before;
        before = h;
    }
    for (uint32_t b = 1; b <= buckets; b++)
        r->index[b] = TC_MAX(r->index[b], r->index[b - 1]);
    r->ties = ties;
}

static void ring_make_entries(const struct tc_ring *r, const struct tc_ring_item *items, struct tc_ring_sort *sort)
{
    struct tc_ring_part parts[PARTS];
    for (uint32_t i = 0; i < r->n_items;) {
        uint32_t n = 0;
        for (; n < PARTS && i < r->n_items; i++)
            parts[n++] = (struct tc_ring_part){items[i].key, i, 0, r->counts[i]};
        tc_ring_sort_keys(sort, parts, n);
    }
}

struct tc_ring *tc_ring_new(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    uint32_t *counts = tc_reallocarray(NULL, n, sizeof(*counts));
    uint32_t size = tc_ring_shares(items, n, min, max, cap, counts);
    /* The scratch memory comes before the ring: as the last block on the heap it would give its pages back to the
     * system each time that it is freed. */
    struct tc_ring_sort sort;
    tc_ring_sort_init(&sort, size);
    struct tc_ring *r = tc_ring_alloc(size, counts, n, NULL);
    tc_free(counts);
    ring_make_entries(r, items, &sort);
    if (!tc_ring_sort_finish(&sort, r->hash, r->item, r->index, 64 - r->shift))
        tc_ring_index(r);
    return r;
}

uint32_t tc_ring_entries(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    uint32_t *counts = tc_reallocarray(NULL, n, sizeof(*counts));
    uint32_t size = tc_ring_shares(items, n, min, max, cap, counts);
    tc_free(counts);
    return size;
}

struct tc_ring *tc_ring_ref(struct tc_ring *r)
{
    if (r)
        tc_ref_inc(&r->ref);
    return r;
}

void tc_ring_unref(struct tc_ring *r)
{
    if (!r || !tc_ref_dec(&r->ref))
        return;
    if (r->release)
        r->release(r);
    else
        tc_free(r);
}

/* --- search --- */

uint32_t tc_ring_size(const struct tc_ring *r)
{
    return r->size;
}

static uint32_t ring_find_by_halves(const struct tc_ring *r, uint64_t h, uint32_t lo, uint32_t hi)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (r->hash[mid] < h)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Returns how many of n hashes are below h. Without a branch, which would be mispredicted. */
static inline uint32_t hash_count_below(const uint64_t *hash, uint64_t h, unsigned n)
{
    uint32_t below = 0;
    for (unsigned k = 0; k < n; k++)
        below += hash[k] < h;
    return below;
}

static __attribute__((noinline)) uint32_t ring_find_sparse(const struct tc_ring *r, uint64_t h)
{
    uint64_t bucket = h >> r->shift;
    uint32_t lo = r->index[bucket], hi = r->index[bucket + 1];
    /* Hashes are uniform, so the share of the bucket's entries below h is about the share of its range below h. */
    uint64_t into = h << (64 - r->shift) >> 32;
    uint32_t guess = (uint32_t)((hi - lo) * into >> 32);
    uint32_t from = lo + (guess > TC_RING_PADDING / 2 ? guess - TC_RING_PADDING / 2 : 0);
    /* The caller asks for the item next, which is on one of two cache lines. */
    __builtin_prefetch(r->item + from);
    __builtin_prefetch(r->item + from + TC_RING_PADDING);
    uint32_t below = hash_count_below(r->hash + from, h, TC_RING_PADDING), found = from + below;
    if (TC_UNLIKELY(below == TC_RING_PADDING || (below == 0 && from > lo)))
        found = ring_find_by_halves(r, h, lo, hi);
    return found == r->size ? 0 : found;
}

/* Returns h % size. A division takes longer than the rest of a pick, so the quotient is computed by a multiplication,
 * and is at most one too small. */
static inline uint32_t table_slot(const struct tc_ring *r, uint64_t h)
{
    uint64_t rest = h - tc_mul_high(h, r->inverse) * r->size;
    return (uint32_t)(rest < r->size ? rest : rest - r->size);
}

uint32_t tc_ring_find(const struct tc_ring *r, uint64_t h)
{
    if (r->sparse)
        return r->inverse ? table_slot(r, h) : ring_find_sparse(r, h);
    uint64_t bucket = h >> r->shift;
    uint32_t lo = r->index[bucket];
    __builtin_prefetch(r->item + lo);                           /* the caller asks for the item next */
    uint32_t below = hash_count_below(r->hash + lo, h, STRIDE); /* entries of later buckets are not below h */
    lo += below;
    if (TC_UNLIKELY(below == STRIDE))
        lo = ring_find_by_halves(r, h, lo, r->index[bucket + 1]);
    return lo == r->size ? 0 : lo;
}

uint64_t tc_ring_hash_at(const struct tc_ring *r, uint32_t entry)
{
    return r->inverse ? entry : r->hash[entry];
}

uint32_t tc_ring_item_at(const struct tc_ring *r, uint32_t entry)
{
    return r->item[entry];
}

bool tc_ring_is_table(const struct tc_ring *r)
{
    return r->inverse != 0;
}

uint32_t tc_ring_walk_steps(const struct tc_ring *r)
{
    return r->inverse ? TC_MIN(r->size, TABLE_WALK) + r->n_items : r->size;
}

uint32_t tc_ring_walk(const struct tc_ring *r, uint32_t first, uint32_t step)
{
    if (r->inverse && step >= TC_MIN(r->size, TABLE_WALK)) {
        uint64_t item = (uint64_t)r->item[first] + step - TC_MIN(r->size, TABLE_WALK);
        item = item < r->n_items ? item : item - r->n_items;
        return r->counts[item] ? (uint32_t)item : r->item[first];
    }
    uint32_t room = r->size - first; /* entries up to the last */
    return r->item[step < room ? first + step : step - room];
}

uint32_t tc_ring_count_of(const struct tc_ring *r, uint32_t item)
{
    return r->counts[item];
}

uint32_t tc_ring_absent(const struct tc_ring *r)
{
    return r->absent;
}

uint64_t tc_ring_fingerprint(const struct tc_ring *r)
{
    /* An entry is 8 bytes of hash and 4 of item, little endian on every machine. */
    unsigned char bytes[FINGERPRINT * 128];
    size_t len = 0;
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint32_t e = 0; e < r->size; e++) {
        for (unsigned k = 0; k < 8; k++)
            bytes[len++] = (unsigned char)(tc_ring_hash_at(r, e) >> (8 * k));
        for (unsigned k = 0; k < 4; k++)
            bytes[len++] = (unsigned char)(r->item[e] >> (8 * k));
        if (len == sizeof(bytes) || e + 1 == r->size) {
            XXH64_update(&state, bytes, len);
            len = 0;
        }
    }
    return XXH64_digest(&state);
}
