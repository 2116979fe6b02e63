#include "lb/ring_sort.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

enum {
    DISTRIBUTE_MAX = 100000, /* beyond it one distribution no longer stays in the cache */
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    PASSES_FULL = 6, /* 6 x 11 bits >= 64 */
};

/* Puts nearly sorted entries in order. False when that took more moves than `budget`: they were not nearly sorted, and
 * what is done so far is lost work, not a lost order. */
static bool insertion_sort(uint64_t *hash, uint32_t *item, size_t n, size_t budget)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t h = hash[i];
        if (hash[i - 1] <= h)
            continue;
        uint32_t it = item[i];
        size_t j = i;
        do {
            hash[j] = hash[j - 1];
            item[j] = item[j - 1];
            j--;
        } while (j > 0 && hash[j - 1] > h);
        hash[j] = h;
        item[j] = it;
        if (i - j > budget)
            return false;
        budget -= i - j;
    }
    return true;
}

/* One stable pass of a radix sort on the bits [shift, shift + DIGIT_BITS). */
static void radix_pass(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n,
                       unsigned shift, uint32_t *starts)
{
    memset(starts, 0, DIGITS * sizeof(*starts));
    for (size_t i = 0; i < n; i++)
        starts[(hash[i] >> shift) & (DIGITS - 1)]++;
    uint32_t sum = 0;
    for (size_t d = 0; d < DIGITS; d++) {
        uint32_t count = starts[d];
        starts[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t to = starts[(hash[i] >> shift) & (DIGITS - 1)]++;
        out_hash[to] = hash[i];
        out_item[to] = item[i];
    }
}

/* Radix passes on the given digits, least significant first; an odd number of them ends in `out`, an even number in the
 * input arrays. */
static void radix_sort(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n,
                       const unsigned *shifts, unsigned passes)
{
    uint32_t *starts = tc_reallocarray(NULL, DIGITS, sizeof(*starts));
    for (unsigned p = 0; p < passes; p++) {
        if (p % 2 == 0)
            radix_pass(hash, item, out_hash, out_item, n, shifts[p], starts);
        else
            radix_pass(out_hash, out_item, hash, item, n, shifts[p], starts);
    }
    tc_free(starts);
}

static void sort_fully(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n)
{
    static const unsigned shifts[PASSES_FULL] = {0, 11, 22, 33, 44, 55};
    radix_sort(hash, item, out_hash, out_item, n, shifts, PASSES_FULL);
    memcpy(out_hash, hash, n * sizeof(*hash));
    memcpy(out_item, item, n * sizeof(*item));
}

/* Distributes on as many top bits as give a bucket an entry or two; what shares a bucket stays in its order. */
static void distribute(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n)
{
    unsigned bits = 1;
    while (((size_t)1 << bits) < n)
        bits++;
    size_t buckets = (size_t)1 << bits;
    uint32_t *starts = tc_calloc(buckets, sizeof(*starts));
    for (size_t i = 0; i < n; i++)
        starts[hash[i] >> (64 - bits)]++;
    uint32_t sum = 0;
    for (size_t b = 0; b < buckets; b++) {
        uint32_t count = starts[b];
        starts[b] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t to = starts[hash[i] >> (64 - bits)]++;
        out_hash[to] = hash[i];
        out_item[to] = item[i];
    }
    tc_free(starts);
}

void tc_ring_sort(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n)
{
    if (n == 0)
        return;
    if (n <= DISTRIBUTE_MAX) {
        distribute(hash, item, out_hash, out_item, n);
    } else {
        /* The top 33 bits order uniform hashes all but for a few neighbours. */
        static const unsigned shifts[3] = {31, 42, 53};
        radix_sort(hash, item, out_hash, out_item, n, shifts, 3);
    }
    if (insertion_sort(out_hash, out_item, n, 4 * n + 64))
        return;
    /* Crafted hashes. Where the input arrays were not overwritten they hold the original order; after three passes they
     * hold entries of equal hash in their order too, as every pass is stable. */
    sort_fully(hash, item, out_hash, out_item, n);
}
