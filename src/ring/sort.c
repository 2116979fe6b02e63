/* Sorts by two distributions and one pass of mending.
 *
 * - While entries are added they go to the group of their top bits. A group has 512 to 1,023 entries on average (more
 *   if there are over two million in all). Hashes are uniform, so a group has room for seven standard deviations more
 *   than its share, and nothing is counted beforehand. A group that is full all the same proves that hashes are not
 *   uniform: then everything becomes one list (sort_give_up_groups). Up to 8,192 entries are a list from the beginning.
 * - tc_ring_sort_finish sorts each group in the first-level cache (group_sort). Each entry becomes a single number: its
 *   hash without the group's bits, with the entry's place in the group instead of the last 13 bits. The numbers are
 *   distributed to slots, on average one to two for each entry. One pass then puts a slot's entries, rarely more than a
 *   few, in order, writes the entries out and finds hashes that may be equal.
 * - The places of the slots give the index of the ring.
 * - A radix sort over all bits (sort_fully) sorts a group whose hashes may be equal, or are uneven beyond a budget of
 *   moves, and the list of groups that were given up.
 *
 * tc_ring_sort_init allocates one block for all of this. Giving up the groups replaces the block by one for the list.
 * tc_ring_sort_finish frees the block. One thread at a time. */
#include "ring/sort.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ring/memory.h"

enum {
    NUMBER_BITS = 13,            /* bits of an entry's place in its group */
    LIST_MAX = 1 << NUMBER_BITS, /* entries that need no groups */
    GROUP_BITS_MAX = 11,         /* to write to more groups side by side is slow */
    GROUP = 512,                 /* the least entries of a group, on average */
    DEVIATIONS = 7,              /* standard deviations that a group may be larger than its share */
    CHUNK = 1024,                /* entries that are hashed before they are distributed */
    INSERTION_MAX = 32,          /* the most entries that sort_fully sorts by insertion */
    LANES = 4,                   /* slots that are summed at a time */
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    PASSES_FULL = 6 /* 6 x 11 bits >= 64 */
};

#define NUMBER (((uint64_t)1 << NUMBER_BITS) - 1)

struct tc_ring_group {
    uint32_t next, end; /* where the group's next entry goes, and where the group's room ends */
};

/* One stable pass of a radix sort on the bits [shift, shift + DIGIT_BITS). */
static void radix_pass(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n,
                       unsigned shift)
{
    uint32_t starts[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        starts[(hash[i] >> shift) & (DIGITS - 1)]++;
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

static void sort_by_insertion(const uint64_t *hash, const uint32_t *item, uint64_t *out_hash, uint32_t *out_item,
                              size_t n)
{
    for (size_t i = 0, j; i < n; i++) {
        for (j = i; j > 0 && out_hash[j - 1] > hash[i]; j--) {
            out_hash[j] = out_hash[j - 1];
            out_item[j] = out_item[j - 1];
        }
        out_hash[j] = hash[i];
        out_item[j] = item[i];
    }
}

/* Sorts into the outputs: few entries by insertion, more by all digits, least significant first, which overwrites the
 * inputs. The number of passes is even, so the result is where the input was, and is copied. */
static void sort_fully(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n)
{
    if (n <= INSERTION_MAX) {
        sort_by_insertion(hash, item, out_hash, out_item, n);
        return;
    }
    for (unsigned p = 0; p < PASSES_FULL; p += 2) {
        radix_pass(hash, item, out_hash, out_item, n, p * DIGIT_BITS);
        radix_pass(out_hash, out_item, hash, item, n, (p + 1) * DIGIT_BITS);
    }
    memcpy(out_hash, hash, n * sizeof(*hash));
    memcpy(out_item, item, n * sizeof(*item));
}

static unsigned floor_log2(size_t n)
{
    return n > 1 ? 63 - (unsigned)__builtin_clzll(n) : 0;
}

void tc_ring_sort_init(struct tc_ring_sort *s, uint32_t n)
{
    *s = (struct tc_ring_sort){.n = n, .list = n <= LIST_MAX, .capacity = n};
    size_t room = n, groups = 0, chunk = 0;
    if (!s->list) {
        s->group_bits = TC_MIN(floor_log2(n / GROUP), GROUP_BITS_MAX);
        uint32_t mean = n >> s->group_bits;
        s->capacity = mean + DEVIATIONS * (uint32_t)sqrt(mean);
        chunk = CHUNK;
        groups = (size_t)1 << s->group_bits;
        room = groups * s->capacity;
    }
    s->slot_bits = TC_MAX(floor_log2(n >> s->group_bits), 1) + 1;
    size_t slots = (size_t)1 << s->slot_bits, words = room + chunk + s->capacity + 1;
    size_t bytes =
        words * sizeof(uint64_t) + groups * sizeof(*s->groups) + slots * sizeof(*s->slots) + room * sizeof(*s->item);
    s->hash = tc_malloc(bytes);
    tc_ring_block_advise(s->hash, bytes);
    s->chunk = s->hash + room;
    s->v = s->chunk + chunk;
    s->groups = (struct tc_ring_group *)(void *)(s->hash + words);
    s->item = (uint32_t *)(void *)(s->groups + groups);
    s->slots = (uint16_t *)(void *)(s->item + room);
    for (uint32_t g = 0; g < groups; g++)
        s->groups[g] = (struct tc_ring_group){g * s->capacity, (g + 1) * s->capacity};
}

uint64_t *tc_ring_sort_room(const struct tc_ring_sort *s, uint32_t *most)
{
    *most = s->list ? s->n - s->come : CHUNK;
    return s->list ? s->hash + s->come : s->chunk;
}

/* Adds entries whose hashes are in the list already. */
static void list_add_items(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n)
{
    uint32_t *out = s->item + s->come;
    for (size_t i = 0; i < n; i++) {
        uint32_t item = parts[i].item;
        for (uint32_t *end = out + parts[i].n; out < end; out++)
            *out = item;
    }
    s->come = (uint32_t)(out - s->item);
}

/* Turns the groups into a list. Entries of equal hash are in one group, so they stay in order. */
static void sort_make_list(struct tc_ring_sort *s)
{
    uint64_t *hash = tc_reallocarray(NULL, s->n, sizeof(*hash) + sizeof(*s->item));
    uint32_t *item = (uint32_t *)(void *)(hash + s->n);
    for (size_t g = 0; g < (size_t)1 << s->group_bits; g++) {
        size_t from = g * s->capacity, count = s->groups[g].next - from;
        memcpy(hash + s->come, s->hash + from, count * sizeof(*hash));
        memcpy(item + s->come, s->item + from, count * sizeof(*item));
        s->come += (uint32_t)count;
    }
    tc_free(s->hash);
    s->hash = hash;
    s->item = item;
    s->list = true;
}

/* Puts n entries of an item into their groups, until a group is full. Returns how many. */
static inline uint32_t sort_distribute(const struct tc_ring_sort *s, const uint64_t *hash, uint32_t n, uint32_t item)
{
    struct tc_ring_group *groups = s->groups;
    uint64_t *to_hash = s->hash;
    uint32_t *to_item = s->item;
    unsigned shift = 64 - s->group_bits;
    for (uint32_t k = 0; k < n; k++) {
        uint64_t h = hash[k];
        struct tc_ring_group *g = &groups[h >> shift];
        uint32_t at = g->next;
        if (TC_UNLIKELY(at == g->end))
            return k;
        g->next = at + 1;
        to_hash[at] = h;
        to_item[at] = item;
    }
    return n;
}

/* Turns the groups, one of which is full, into a list, and copies the hashes of the parts behind it, except `done`
 * entries of the first part. The caller adds the items of these hashes (list_add_items). */
static __attribute__((noinline)) void sort_give_up_groups(struct tc_ring_sort *s, const struct tc_ring_part *parts,
                                                          size_t n, const uint64_t *hash, uint32_t done)
{
    uint64_t rest[CHUNK];
    size_t left = 0;
    for (size_t i = 0; i < n; hash += parts[i].n, i++, done = 0)
        for (uint32_t k = done; k < parts[i].n; k++)
            rest[left++] = hash[k];
    sort_make_list(s);
    memcpy(s->hash + s->come, rest, left * sizeof(*rest));
}

void tc_ring_sort_add(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n)
{
    if (s->list) {
        list_add_items(s, parts, n);
        return;
    }
    const struct tc_ring_sort fixed = *s; /* a local copy, which no store below changes */
    const uint64_t *hash = fixed.chunk;
    for (size_t i = 0; i < n; hash += parts[i].n, i++) {
        uint32_t done = sort_distribute(&fixed, hash, parts[i].n, parts[i].item);
        if (TC_LIKELY(done == parts[i].n))
            continue;
        sort_give_up_groups(s, parts + i, n - i, hash, done);
        struct tc_ring_part first = parts[i];
        first.n -= done;
        list_add_items(s, &first, 1);
        list_add_items(s, parts + i + 1, n - i - 1);
        return;
    }
}

void tc_ring_sort_keys(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t most, entries = 0;
        uint64_t *room = tc_ring_sort_room(s, &most);
        for (end = i; end < n && parts[end].n <= most - entries; end++)
            entries += parts[end].n;
        if (end > i) {
            tc_ring_keys(parts + i, end - i, room);
            tc_ring_sort_add(s, parts + i, end - i);
            continue;
        }
        struct tc_ring_part piece = parts[i]; /* more than there is room for at a time */
        for (uint32_t left = piece.n; left; left -= piece.n, piece.first += piece.n) {
            room = tc_ring_sort_room(s, &most);
            piece.n = TC_MIN(left, most);
            tc_ring_keys(&piece, 1, room);
            tc_ring_sort_add(s, &piece, 1);
        }
        end = i + 1;
    }
}

/* Turns the number of entries in each slot into the place of the slot's first entry: an exclusive prefix sum. */
static void slots_place(uint16_t *starts, size_t slots)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
    /* Four slots at a time: a multiplication by `each` adds to each lane the lanes below it. */
    uint64_t each = 0x0001000100010001u, before = 0;
    __asm__("" : "+r"(each)); /* keeps the compiler from making shifts of the multiplication */
    for (size_t s = 0; s < slots; s += LANES) {
        uint64_t counts;
        memcpy(&counts, starts + s, sizeof(counts));
        uint64_t sums = counts * each, firsts = (sums << 16) + before;
        memcpy(starts + s, &firsts, sizeof(firsts));
        before += (sums >> 48) * each;
    }
#else
    unsigned sum = 0;
    for (size_t s = 0; s < slots; s++) {
        unsigned count = starts[s];
        starts[s] = (uint16_t)sum;
        sum += count;
    }
#endif
}

/* Where a group is written out. v: the numbers by which the entries are sorted. */
struct sorted {
    uint64_t *v, *hash;
    uint32_t *item;
};

/* Moves entry i to its place among the entries before it, which are in order, and takes the moves off *budget. Returns
 * false if the entry's number does not tell its hash from a neighbour's, or if *budget has too few moves. */
static __attribute__((noinline)) bool sorted_mend(const struct sorted *to, size_t i, size_t *budget)
{
    uint64_t x = to->v[i], hash = to->hash[i];
    uint32_t item = to->item[i];
    size_t j = i;
    for (; j > 0 && to->v[j - 1] > x; j--) {
        to->v[j] = to->v[j - 1];
        to->hash[j] = to->hash[j - 1];
        to->item[j] = to->item[j - 1];
    }
    to->v[j] = x;
    to->hash[j] = hash;
    to->item[j] = item;
    if (i - j > *budget)
        return false;
    *budget -= i - j;
    return (x ^ to->v[j + 1]) > NUMBER && (j == 0 || (x ^ to->v[j - 1]) > NUMBER);
}

/* Sorts the n entries of a group as single numbers: the hash without the `skip` top bits that all share, and with the
 * entry's place in the group instead of the last bits. Returns false if two hashes may differ in these last bits only,
 * or not at all: then the numbers do not show which one is first. Also returns false if the hashes are so uneven that
 * mending takes more than its budget of moves. In all cases `starts` then holds where each slot ends. */
static bool group_sort(const uint64_t *hash, const uint32_t *item, const struct sorted *to, size_t n, unsigned skip,
                       unsigned slot_bits, uint16_t *starts)
{
    uint64_t *v = to->v;
    unsigned shift = 64 - slot_bits;
    memset(starts, 0, ((size_t)1 << slot_bits) * sizeof(*starts));
    for (size_t i = 0; i < n; i++)
        starts[hash[i] << skip >> shift]++;
    slots_place(starts, (size_t)1 << slot_bits);
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash[i] << skip;
        v[starts[h >> shift]++] = (h & ~NUMBER) | i;
    }
    v[n] = UINT64_MAX;
    /* Carries the larger of two neighbours on, without a branch, so that few entries are left to mend. */
    uint64_t carried = v[0], last = 0;
    size_t budget = 4 * n + 64;
    bool alike = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t next = v[i + 1], x = TC_MIN(carried, next), from = x & NUMBER;
        carried = TC_MAX(carried, next);
        v[i] = x;
        to->hash[i] = hash[from];
        to->item[i] = item[from];
        if (TC_UNLIKELY(x < last)) {
            if (!sorted_mend(to, i, &budget))
                return false;
            continue;
        }
        alike |= (x ^ last) <= NUMBER;
        last = x;
    }
    return !alike;
}

/* Writes the first entry of each of a group's 2^bits buckets, from the ends of the group's slots. */
static void group_index(uint32_t *out, unsigned bits, uint32_t first, const uint16_t *ends, unsigned slot_bits)
{
    out[0] = first;
    for (size_t b = 1; b < (size_t)1 << bits; b++)
        out[b] = first + ends[(b << (slot_bits - bits)) - 1];
}

/* A group, or the list as the only group. */
struct group {
    uint64_t *hash;
    uint32_t *item;
    size_t n;
};

static struct group sort_group_at(const struct tc_ring_sort *s, size_t g)
{
    if (s->list)
        return (struct group){s->hash, s->item, s->n};
    size_t from = g * s->capacity;
    return (struct group){s->hash + from, s->item + from, s->groups[g].next - from};
}

static bool sort_all_groups(const struct tc_ring_sort *s, uint64_t *out_hash, uint32_t *out_item, uint32_t *index,
                            unsigned index_bits)
{
    unsigned group_bits = s->group_bits, slot_bits = s->slot_bits;
    size_t groups = (size_t)1 << group_bits;
    bool apart = true, fine = index && index_bits >= group_bits && index_bits <= group_bits + slot_bits;
    uint32_t at = 0;
    for (size_t g = 0; g < groups; g++) {
        struct group from = sort_group_at(s, g);
        struct sorted to = {s->v, out_hash + at, out_item + at};
        bool done = group_sort(from.hash, from.item, &to, from.n, group_bits, slot_bits, s->slots);
        if (TC_UNLIKELY(!done))
            sort_fully(from.hash, from.item, to.hash, to.item, from.n);
        apart = apart && done;
        if (fine)
            group_index(index + (g << (index_bits - group_bits)), index_bits - group_bits, at, s->slots, slot_bits);
        at += (uint32_t)from.n;
    }
    if (fine)
        index[(size_t)1 << index_bits] = at;
    return apart && (fine || !index);
}

bool tc_ring_sort_finish(struct tc_ring_sort *s, uint64_t *out_hash, uint32_t *out_item, uint32_t *index,
                         unsigned index_bits)
{
    bool apart = false;
    if (s->list && s->n > LIST_MAX)
        sort_fully(s->hash, s->item, out_hash, out_item, s->n);
    else
        apart = sort_all_groups(s, out_hash, out_item, index, index_bits);
    tc_free(s->hash);
    return apart;
}
