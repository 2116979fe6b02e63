#include "lb/ring.h"

#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "lb/ring_sort.h"

enum {
    LONG_KEY = 64,   /* bytes; longer keys are hashed once and continued for each suffix */
    SUFFIX_MAX = 12, /* '_' and ten digits */
    STRIDE = 8       /* entries that a search looks at without a branch */
};

struct tc_ring {
    struct tc_ref ref;
    uint32_t size;
    uint32_t absent;
    unsigned shift;   /* of a hash to its index bucket */
    uint64_t *hash;   /* size, ascending; then STRIDE times the largest number, which no hash is above */
    uint32_t *item;   /* size */
    uint32_t *index;  /* first entry of each bucket of top bits, and the size at the end */
    uint32_t *counts; /* entries of each item */
};

/* How many entries each item gets (A42); returns their sum. */
static uint64_t allot(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint32_t *counts)
{
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
    double target = 0, norm = 0;
    uint64_t current = 0, weight = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].weight != weight || i == 0) {
            weight = items[i].weight;
            norm = (double)TC_MAX(weight, 1) / total;
        }
        target += scale * norm;
        /* "while current < target: add an entry" */
        uint64_t upto = (uint64_t)target;
        upto += (double)upto < target;
        counts[i] = upto > current ? (uint32_t)(upto - current) : 0;
        current += counts[i];
    }
    return current;
}

/* Adds one to the decimal number in text[0..*len). */
static void increment(char *text, size_t *len)
{
    size_t i = *len;
    while (i > 0 && text[i - 1] == '9')
        text[--i] = '0';
    if (i > 0) {
        text[i - 1]++;
        return;
    }
    memmove(text + 1, text, *len);
    text[0] = '1';
    (*len)++;
}

/* The hashes of key + "_" + 0, 1, ... */
static void hash_entries(struct tc_slice key, uint64_t *out, size_t n)
{
    char text[LONG_KEY + SUFFIX_MAX];
    if (key.len <= LONG_KEY) {
        if (key.len)
            memcpy(text, key.data, key.len);
        char *digits = text + key.len + 1;
        size_t len = 1;
        digits[-1] = '_';
        digits[0] = '0';
        for (size_t i = 0; i < n; i++) {
            out[i] = XXH64(text, key.len + 1 + len, 0);
            increment(digits, &len);
        }
        return;
    }
    XXH64_state_t prefix, state;
    XXH64_reset(&prefix, 0);
    XXH64_update(&prefix, key.data, key.len);
    size_t len = 1;
    text[0] = '_';
    text[1] = '0';
    for (size_t i = 0; i < n; i++) {
        state = prefix;
        XXH64_update(&state, text, 1 + len);
        out[i] = XXH64_digest(&state);
        increment(text + 1, &len);
    }
}

/* A bucket for every four entries or so. */
static void build_index(struct tc_ring *r)
{
    unsigned bits = 1;
    while (((uint64_t)4 << bits) < r->size)
        bits++;
    uint32_t buckets = (uint32_t)1 << bits;
    r->shift = 64 - bits;
    r->index = tc_reallocarray(NULL, (size_t)buckets + 1, sizeof(*r->index));
    /* Backwards, so that the first entry of a bucket is the last to be written; then the empty buckets. */
    memset(r->index, 0xff, buckets * sizeof(*r->index));
    r->index[buckets] = r->size;
    for (uint32_t e = r->size; e-- > 0;)
        r->index[r->hash[e] >> r->shift] = e;
    for (uint32_t b = buckets; b-- > 0;)
        r->index[b] = r->index[b] == UINT32_MAX ? r->index[b + 1] : r->index[b];
}

static void fill(struct tc_ring *r, const struct tc_ring_item *items, size_t n)
{
    uint64_t *hash = tc_reallocarray(NULL, r->size, sizeof(*hash));
    uint32_t *item = tc_reallocarray(NULL, r->size, sizeof(*item));
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        hash_entries(items[i].key, hash + at, r->counts[i]);
        for (uint32_t k = 0; k < r->counts[i]; k++)
            item[at++] = (uint32_t)i;
        r->absent += r->counts[i] == 0;
    }
    tc_ring_sort(hash, item, r->hash, r->item, r->size);
    tc_free(hash);
    tc_free(item);
}

struct tc_ring *tc_ring_new(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    cap = TC_MAX(TC_MIN(cap, TC_RING_SIZE_MAX), 1);
    max = TC_MAX(TC_MIN(max, cap), 1);
    min = TC_MAX(TC_MIN(min, max), 1);
    struct tc_ring *r = TC_NEW(struct tc_ring);
    tc_ref_init(&r->ref);
    r->counts = tc_calloc(n + 1, sizeof(*r->counts));
    r->size = n ? (uint32_t)allot(items, n, min, max, r->counts) : 0;
    r->hash = tc_reallocarray(NULL, (size_t)r->size + STRIDE, sizeof(*r->hash));
    memset(r->hash + r->size, 0xff, STRIDE * sizeof(*r->hash));
    r->item = tc_reallocarray(NULL, (size_t)r->size + 1, sizeof(*r->item));
    if (r->size)
        fill(r, items, n);
    build_index(r);
    return r;
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
    tc_free(r->hash);
    tc_free(r->item);
    tc_free(r->index);
    tc_free(r->counts);
    tc_free(r);
}

uint32_t tc_ring_size(const struct tc_ring *r)
{
    return r->size;
}

uint32_t tc_ring_find(const struct tc_ring *r, uint64_t h)
{
    uint64_t bucket = h >> r->shift;
    uint32_t lo = r->index[bucket];
    /* How many of the next entries lie below, counted without a branch that could be mispredicted: those of later
     * buckets are above anyway. */
    const uint64_t *hash = r->hash + lo;
    uint32_t below = 0;
    __builtin_prefetch(r->item + lo); /* what the caller asks for next, fetched beside the hashes */
    for (unsigned k = 0; k < STRIDE; k++)
        below += hash[k] < h;
    lo += below;
    if (TC_UNLIKELY(below == STRIDE)) {
        uint32_t hi = r->index[bucket + 1];
        while (lo < hi) {
            uint32_t mid = lo + (hi - lo) / 2;
            if (r->hash[mid] < h)
                lo = mid + 1;
            else
                hi = mid;
        }
    }
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
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint32_t e = 0; e < r->size; e++) {
        unsigned char bytes[12];
        for (unsigned k = 0; k < 8; k++)
            bytes[k] = (unsigned char)(r->hash[e] >> (8 * k));
        for (unsigned k = 0; k < 4; k++)
            bytes[8 + k] = (unsigned char)(r->item[e] >> (8 * k));
        XXH64_update(&state, bytes, sizeof(bytes));
    }
    return XXH64_digest(&state);
}
