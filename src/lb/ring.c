#include "lb/ring_impl.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "lb/ring_margin.h"
#include "lb/ring_sort.h"

enum {
    STRIDE = 8,            /* entries that a search looks at without a branch; of a sparse index TC_RING_PADDING */
    LINE = 64,             /* bytes of a cache line */
    LARGE_PAGE = 2 << 20,  /* bytes */
    LARGE_BLOCK = 4 << 20, /* bytes from which large pages are asked for */
    ENTRY_BYTES = 12,      /* in a fingerprint */
    /* Entries of an index bucket: fewer are faster warm and slower cold. Of a ring that no cache holds, its index at
     * least should stay in one. */
    PER_BUCKET = 4,
    PER_BUCKET_SPARSE = 64,
    SPARSE_SIZE = 1 << 19, /* entries from which the index is sparse */
    PARTS = 256,           /* items that are hashed at a time */
    TARGETS = 64,          /* shares that are summed before they are counted */
    LANES = 4
};

typedef int32_t four __attribute__((vector_size(16), aligned(4)));

/* "while current < target: add an entry", for each target; the last current. Far from either end of an int32_t. */
static int32_t count_up_to(const double *targets, size_t n, int32_t current, uint32_t *counts)
{
    size_t k = 0;
#if defined(__SSE2__)
    __m128i before = _mm_cvtsi32_si128(current);
    for (; k + LANES <= n; k += LANES) {
        __m128d low = _mm_loadu_pd(targets + k), high = _mm_loadu_pd(targets + k + LANES / 2);
        __m128i low_int = _mm_cvttpd_epi32(low), high_int = _mm_cvttpd_epi32(high);
        __m128d low_less = _mm_cmplt_pd(_mm_cvtepi32_pd(low_int), low),
                high_less = _mm_cmplt_pd(_mm_cvtepi32_pd(high_int), high); /* -1 where it is so */
        __m128i less = _mm_castps_si128(
            _mm_shuffle_ps(_mm_castpd_ps(low_less), _mm_castpd_ps(high_less), _MM_SHUFFLE(2, 0, 2, 0)));
        __m128i upto = _mm_sub_epi32(_mm_unpacklo_epi64(low_int, high_int), less);
        __m128i from = _mm_or_si128(_mm_slli_si128(upto, sizeof(int32_t)), before);
        _mm_storeu_si128((void *)(counts + k), _mm_sub_epi32(upto, from));
        before = _mm_srli_si128(upto, (LANES - 1) * sizeof(int32_t));
    }
    current = _mm_cvtsi128_si32(before);
#endif
    for (; k < n; k++) {
        int32_t upto = (int32_t)targets[k];
        upto += (double)upto < targets[k];
        counts[k] = (uint32_t)(upto - current);
        current = upto;
    }
    return current;
}

uint32_t tc_ring_allot(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                       uint32_t *counts)
{
    if (n == 0)
        return 0;
    tc_ring_clamp(&min, &max, &cap);
    unsigned __int128 sum = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t w = TC_MAX(items[i].weight, 1);
        sum += w;
        least = TC_MIN(least, w);
    }
    /* A42: plain IEEE doubles in this order; a fused or reordered operation moves keys. */
    double total = (double)sum;
    double min_norm = (double)least / total;
    double scale = fmin(ceil(min_norm * (double)min) / min_norm, (double)max);
    double targets[TARGETS], target = 0, norm = 0;
    int32_t current = 0;
    uint64_t weight = 0;
    for (size_t i = 0; i < n;) {
        size_t k = 0, first = i;
        for (; k < TARGETS && i < n; k++, i++) {
            if (items[i].weight != weight || i == 0) {
                weight = items[i].weight;
                norm = (double)TC_MAX(weight, 1) / total;
            }
            target += scale * norm;
            targets[k] = target;
        }
        current = count_up_to(targets, k, current, counts + first);
    }
    return (uint32_t)current;
}

void tc_ring_advise(void *block, size_t bytes)
{
    if (bytes < LARGE_BLOCK)
        return;
    uintptr_t start = ((uintptr_t)block + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
    /* Advice only: a system without large pages refuses. */
    if (end > start)
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Takes room for n elements from a block's plan; where they start. */
static size_t plan(size_t *bytes, size_t n, size_t size)
{
    size_t at = *bytes, more;
    if (__builtin_mul_overflow(n, size, &more) || __builtin_add_overflow(at, more + LINE, bytes) || more + LINE < more)
        *bytes = SIZE_MAX - LARGE_PAGE; /* more than there is */
    else
        *bytes &= ~(size_t)(LINE - 1);
    return at;
}

static unsigned index_bits(uint32_t size, bool sparse)
{
    unsigned bits = 1;
    while (((uint64_t)(sparse ? PER_BUCKET_SPARSE : PER_BUCKET) << bits) < size)
        bits++;
    return bits;
}

uint32_t tc_ring_count_above(const uint32_t *counts, size_t n, uint32_t than)
{
    const four limit = (four){0} + (int32_t)than;
    four sums = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        four v;
        memcpy(&v, counts + i, sizeof(v));
        sums -= v > limit; /* -1 where it is so */
    }
    uint32_t above = (uint32_t)(sums[0] + sums[1] + sums[2] + sums[3]);
    for (; i < n; i++)
        above += counts[i] > than;
    return above;
}

struct tc_ring *tc_ring_alloc(uint32_t size, const uint32_t *counts, size_t n, const struct tc_ring *like, bool margin)
{
    bool sparse = size >= SPARSE_SIZE;
    unsigned bits = index_bits(size, sparse);
    /* An index of the same buckets can be moved; an eighth more or less in each makes no difference to a search. */
    if (like && like->sparse == sparse && size / 8 > (size > like->size ? size - like->size : like->size - size)) {
        unsigned before = 64 - like->shift;
        if (before == index_bits(size - size / 8, sparse) || before == index_bits(size + size / 8, sparse))
            bits = before;
    }
    size_t bytes = 0;
    plan(&bytes, 1, sizeof(struct tc_ring));
    size_t index = plan(&bytes, ((size_t)1 << bits) + 1 + TC_RING_INDEX_PADDING, sizeof(uint32_t));
    size_t hash = plan(&bytes, (size_t)size + TC_RING_PADDING, sizeof(uint64_t));
    size_t item = plan(&bytes, (size_t)size + TC_RING_PADDING, sizeof(uint32_t));
    size_t count = plan(&bytes, n, sizeof(uint32_t));
    size_t room = margin ? n + TC_RING_PADDING : 0;
    size_t margin_hash = plan(&bytes, room, sizeof(uint64_t));
    size_t margin_item = plan(&bytes, room, sizeof(uint32_t));
    size_t margin_at = plan(&bytes, room, sizeof(uint32_t));
    bytes = tc_ring_steps(bytes);
    char *block = tc_malloc(bytes);
    tc_ring_advise(block, bytes);
    struct tc_ring *r = (struct tc_ring *)block;
    memset(r, 0, sizeof(*r));
    tc_ref_init(&r->ref);
    r->size = size;
    r->n_items = (uint32_t)n;
    r->shift = 64 - bits;
    r->sparse = sparse;
    r->index = (uint32_t *)(block + index);
    r->hash = (uint64_t *)(block + hash);
    r->item = (uint32_t *)(block + item);
    r->counts = (uint32_t *)(block + count);
    r->margin.hash = (uint64_t *)(block + margin_hash);
    r->margin.item = (uint32_t *)(block + margin_item);
    r->margin.at = (uint32_t *)(block + margin_at);
    if (n)
        memcpy(r->counts, counts, n * sizeof(*counts));
    r->absent = (uint32_t)n - tc_ring_count_above(counts, n, 0);
    tc_ring_pad(r);
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
    /* Where each bucket ends, by writing without a branch; then the empty ones, which are few. */
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

static void make_entries(const struct tc_ring *r, const struct tc_ring_item *items, struct tc_ring_sort *sort)
{
    struct tc_ring_part parts[PARTS];
    for (uint32_t i = 0; i < r->n_items;) {
        uint32_t n = 0;
        for (; n < PARTS && i < r->n_items; i++)
            parts[n++] = (struct tc_ring_part){items[i].key, i, 0, r->counts[i], 0};
        tc_ring_sort_keys(sort, parts, n);
    }
}

struct tc_ring *tc_ring_build(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                              struct tc_ring_how how)
{
    uint32_t *counts = tc_reallocarray(NULL, n, sizeof(*counts)), base;
    uint32_t size = tc_ring_allot(items, n, min, max, cap, counts);
    bool margin = size >= how.margin_from && tc_ring_at_max(size, min, max, cap) &&
                  tc_ring_margin_base(counts, (uint32_t)n, size, &base);
    uint64_t *hash = margin ? tc_reallocarray(NULL, n, sizeof(*hash)) : NULL;
    /* What is needed for a while comes before what stays: were it the last on the heap, freeing it would give its pages
     * back to the system each time. */
    struct tc_ring_sort sort;
    tc_ring_sort_init(&sort, size);
    struct tc_ring *r = tc_ring_alloc(size, counts, n, NULL, margin);
    tc_free(counts);
    if (margin)
        tc_ring_margin_entries(r, items, base, &sort, hash);
    else
        make_entries(r, items, &sort);
    if (!tc_ring_sort_finish(&sort, r->hash, r->item, r->index, 64 - r->shift))
        tc_ring_index(r);
    if (margin)
        tc_ring_margin_set(r, base, hash, !how.plain && tc_ring_keys_can_wide());
    tc_free(hash);
    return r;
}

struct tc_ring *tc_ring_new(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    return tc_ring_build(items, n, min, max, cap, TC_RING_USUAL);
}

uint32_t tc_ring_entries(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    uint32_t *counts = tc_reallocarray(NULL, n, sizeof(*counts));
    uint32_t size = tc_ring_allot(items, n, min, max, cap, counts);
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

uint32_t tc_ring_size(const struct tc_ring *r)
{
    return r->size;
}

/* By halves, where hashes are not uniform. */
static uint32_t find_by_halves(const struct tc_ring *r, uint64_t h, uint32_t lo, uint32_t hi)
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

/* How many of n entries lie below h, counted without a branch that could be mispredicted. */
static inline uint32_t count_below(const uint64_t *hash, uint64_t h, unsigned n)
{
    uint32_t below = 0;
    for (unsigned k = 0; k < n; k++)
        below += hash[k] < h;
    return below;
}

static __attribute__((noinline)) uint32_t find_sparse(const struct tc_ring *r, uint64_t h)
{
    uint64_t bucket = h >> r->shift;
    uint32_t lo = r->index[bucket], hi = r->index[bucket + 1];
    /* Hashes are uniform, so how far h is into its bucket says where its entry is, give or take a few. */
    uint64_t into = h << (64 - r->shift) >> 32;
    uint32_t guess = (uint32_t)((hi - lo) * into >> 32);
    uint32_t from = lo + (guess > TC_RING_PADDING / 2 ? guess - TC_RING_PADDING / 2 : 0);
    /* What the caller asks for next: both lines that it may be on. */
    __builtin_prefetch(r->item + from);
    __builtin_prefetch(r->item + from + TC_RING_PADDING);
    uint32_t below = count_below(r->hash + from, h, TC_RING_PADDING), found = from + below;
    if (TC_UNLIKELY(below == TC_RING_PADDING || (below == 0 && from > lo)))
        found = find_by_halves(r, h, lo, hi);
    return found == r->size ? 0 : found;
}

uint32_t tc_ring_find(const struct tc_ring *r, uint64_t h)
{
    if (r->sparse)
        return find_sparse(r, h);
    uint64_t bucket = h >> r->shift;
    uint32_t lo = r->index[bucket];
    __builtin_prefetch(r->item + lo); /* what the caller asks for next, fetched beside the hashes */
    uint32_t below = count_below(r->hash + lo, h, STRIDE); /* of later buckets none */
    lo += below;
    if (TC_UNLIKELY(below == STRIDE))
        lo = find_by_halves(r, h, lo, r->index[bucket + 1]);
    return lo == r->size ? 0 : lo;
}

uint64_t tc_ring_hash_at(const struct tc_ring *r, uint32_t entry)
{
    return r->hash[entry];
}

uint32_t tc_ring_item_at(const struct tc_ring *r, uint32_t entry)
{
    return r->item[entry];
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
    /* Eight and four bytes an entry, little endian, whatever the machine. */
    unsigned char bytes[ENTRY_BYTES * 128];
    size_t len = 0;
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint32_t e = 0; e < r->size; e++) {
        for (unsigned k = 0; k < 8; k++)
            bytes[len++] = (unsigned char)(r->hash[e] >> (8 * k));
        for (unsigned k = 0; k < 4; k++)
            bytes[len++] = (unsigned char)(r->item[e] >> (8 * k));
        if (len == sizeof(bytes) || e + 1 == r->size) {
            XXH64_update(&state, bytes, len);
            len = 0;
        }
    }
    return XXH64_digest(&state);
}
