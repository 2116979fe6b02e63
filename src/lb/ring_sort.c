#include "lb/ring_sort.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

enum {
    GROUP_BITS_MAX = 11, /* groups that one pass can write to side by side */
    GROUP = 512,         /* entries of a group, or more when that makes too many */
    PACKED_BITS = 13,    /* entries of a group that are sorted packed have numbers of so many bits */
    PACKED = 1 << PACKED_BITS,
    GROUP_SLACK = 4, /* a group so many times larger than its share is no chance */
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    PASSES_FULL = 6 /* 6 x 11 bits >= 64 */
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

/* All digits, least significant first: an even number of passes, so the result is where the input was. */
static void sort_fully(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n)
{
    uint32_t *starts = tc_reallocarray(NULL, DIGITS, sizeof(*starts));
    for (unsigned p = 0; p < PASSES_FULL; p += 2) {
        radix_pass(hash, item, out_hash, out_item, n, p * DIGIT_BITS, starts);
        radix_pass(out_hash, out_item, hash, item, n, (p + 1) * DIGIT_BITS, starts);
    }
    tc_free(starts);
    memcpy(out_hash, hash, n * sizeof(*hash));
    memcpy(out_item, item, n * sizeof(*item));
}

/* Carries the larger of two neighbours on, without a branch to mispredict: leaves few entries out of order. */
static void settle(uint64_t *hash, uint32_t *item, size_t n)
{
    uint64_t h = hash[0];
    uint32_t it = item[0];
    for (size_t i = 1; i < n; i++) {
        uint64_t next = hash[i];
        uint32_t next_item = item[i];
        uint64_t keep = -(uint64_t)(h <= next);
        hash[i - 1] = next ^ ((h ^ next) & keep);
        item[i - 1] = next_item ^ ((it ^ next_item) & (uint32_t)keep);
        h = h ^ ((h ^ next) & keep);
        it = it ^ ((it ^ next_item) & (uint32_t)keep);
    }
    hash[n - 1] = h;
    item[n - 1] = it;
}

static unsigned log2_of(size_t n)
{
    return n > 1 ? 63 - (unsigned)__builtin_clzll(n) : 0;
}

/* Where the entries of a group wait while they are put in order, and the places of its slots. */
struct scratch {
    uint64_t *hash;
    uint32_t *item;
    uint16_t *starts;
};

/* Turns the numbers of entries in each slot into the place of the slot's first. */
static void places(uint16_t *starts, size_t slots)
{
    unsigned sum = 0;
    for (size_t s = 0; s < slots; s++) {
        unsigned count = starts[s];
        starts[s] = (uint16_t)sum;
        sum += count;
    }
}

/* Puts nearly sorted numbers in order, with a budget of moves as insertion_sort has it. */
static bool insertion_sort_packed(uint64_t *v, size_t n, size_t budget)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t x = v[i];
        if (v[i - 1] <= x)
            continue;
        size_t j = i;
        do {
            v[j] = v[j - 1];
            j--;
        } while (j > 0 && v[j - 1] > x);
        v[j] = x;
        if (i - j > budget)
            return false;
        budget -= i - j;
    }
    return true;
}

/* Orders a group of at most PACKED entries as single numbers: a hash without the `skip` bits that all share and without
 * its last bits, in the place of which the entry's number stands. What is moved about is half as much, and once. False
 * when two hashes differ in their last bits alone, or not at all: these do not show which is first. */
static bool sort_packed(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n,
                        unsigned skip, const struct scratch *s)
{
    const uint64_t number = PACKED - 1;
    unsigned bits = log2_of(n) + 1, shift = 64 - bits;
    uint64_t *v = out_hash; /* each number gives way to its hash in the end */
    memset(s->starts, 0, ((size_t)1 << bits) * sizeof(*s->starts));
    for (size_t i = 0; i < n; i++)
        s->starts[hash[i] << skip >> shift]++;
    places(s->starts, (size_t)1 << bits);
    for (size_t i = 0; i < n; i++)
        v[s->starts[hash[i] << skip >> shift]++] = (hash[i] << skip & ~number) | i;
    /* The larger of two neighbours is carried on, without a branch to mispredict. */
    uint64_t carried = v[0];
    for (size_t i = 1; i < n; i++) {
        uint64_t next = v[i];
        v[i - 1] = TC_MIN(carried, next);
        carried = TC_MAX(carried, next);
    }
    v[n - 1] = carried;
    if (!insertion_sort_packed(v, n, 4 * n + 64))
        return false;
    bool alike = false;
    uint64_t before = ~v[0];
    for (size_t i = 0; i < n; i++) {
        uint64_t x = v[i];
        size_t from = x & number;
        alike |= (x ^ before) <= number;
        before = x;
        out_hash[i] = hash[from];
        out_item[i] = item[from];
    }
    return !alike;
}

/* Orders a group, whose hashes agree in the top `skip` bits: distributes on the bits below into a slot for each entry
 * or two, then mends what shares a slot. False when the hashes are not uniform. */
static bool sort_group(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n,
                       unsigned skip, const struct scratch *s)
{
    if (n == 0 || (n <= PACKED && sort_packed(hash, item, out_hash, out_item, n, skip, s)))
        return true;
    uint16_t *starts = s->starts;
    unsigned bits = log2_of(n) + 1, shift = 64 - bits;
    memset(starts, 0, ((size_t)1 << bits) * sizeof(*starts));
    for (size_t i = 0; i < n; i++)
        starts[hash[i] << skip >> shift]++;
    places(starts, (size_t)1 << bits);
    for (size_t i = 0; i < n; i++) {
        size_t to = starts[hash[i] << skip >> shift]++;
        out_hash[to] = hash[i];
        out_item[to] = item[i];
    }
    settle(out_hash, out_item, n);
    return insertion_sort(out_hash, out_item, n, 4 * n + 64);
}

/* Distributes on the top bits into groups that fit the cache, and orders each. The input is only read. */
static bool sort_uniform(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n,
                         struct scratch *s, size_t group_max, unsigned bits)
{
    if (bits == 0)
        return sort_group(hash, item, out_hash, out_item, n, 0, s);
    uint32_t starts[1 << GROUP_BITS_MAX] = {0}, sum = 0;
    size_t groups = (size_t)1 << bits;
    for (size_t i = 0; i < n; i++)
        starts[hash[i] >> (64 - bits)]++;
    for (size_t g = 0; g < groups; g++) {
        uint32_t count = starts[g];
        if (count > group_max)
            return false;
        starts[g] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t to = starts[hash[i] >> (64 - bits)]++;
        out_hash[to] = hash[i];
        out_item[to] = item[i];
    }
    uint32_t at = 0;
    for (size_t g = 0; g < groups; at = starts[g++]) {
        size_t count = starts[g] - at; /* a group's start has moved to its end */
        memcpy(s->hash, out_hash + at, count * sizeof(*out_hash));
        memcpy(s->item, out_item + at, count * sizeof(*out_item));
        if (!sort_group(s->hash, s->item, out_hash + at, out_item + at, count, bits, s))
            return false;
    }
    return true;
}

void tc_ring_sort(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n)
{
    if (n == 0)
        return;
    unsigned bits = n <= PACKED ? 0 : TC_MIN(log2_of(n / GROUP), GROUP_BITS_MAX);
    size_t group_max = bits ? TC_MIN((n >> bits) * GROUP_SLACK, UINT16_MAX) : n;
    struct scratch s = {0};
    if (bits) { /* one group is sorted from where it is */
        s.hash = tc_reallocarray(NULL, group_max, sizeof(*s.hash));
        s.item = tc_reallocarray(NULL, group_max, sizeof(*s.item));
    }
    s.starts = tc_reallocarray(NULL, group_max * 2, sizeof(*s.starts));
    /* False: crafted hashes; what was done is lost work. */
    if (!sort_uniform(hash, item, out_hash, out_item, n, &s, group_max, bits))
        sort_fully(hash, item, out_hash, out_item, n);
    tc_free(s.hash);
    tc_free(s.item);
    tc_free(s.starts);
}
