/* Builds the table of Maglev (Eisenbud et al., NSDI 2016) with Envoy's weights.
 *
 * Items are taken in the order of their keys. Each has a permutation of the slots: it begins at XXH64(key, 0) % size
 * and goes on in steps of XXH64(key, 1) % (size - 1) + 1, which reach every slot, since the size is a prime. In each
 * round every item claims the first slot of its permutation that nobody has, until no slot is free. An item of less
 * than the largest weight passes rounds over: it claims in round r if r * weight has reached its target, and then its
 * target grows by the largest weight. Rounding errors decide ties, so the operations are Envoy's, in doubles.
 *
 * Six items of equal weight and a table of 7 slots:
 *
 *     item   begins  step   round 1                round 2
 *     a        2      4     claims 2               6, 3, 0, 4 and 1 are taken: claims 5
 *     b        3      6     claims 3               (no slot is free)
 *     c        0      2     claims 0
 *     d        3      3     3 is taken: claims 6
 *     e        1      3     claims 1
 *     f        1      5     1 and 6 are taken: claims 4
 *
 *     slot     0  1  2  3  4  5  6
 *     item     c  e  a  b  f  a  d
 *
 * What costs time is finding free slots. A step is an addition instead of a division, and what is taken is a bit, so
 * that most tables fit the nearest cache. The last slots take many steps each, so the last few are listed, and their
 * distances on a path are computed. Items of one key have one permutation, and share the place that they have come to:
 * a control plane that gives one key to all endpoints would otherwise have each of them pass all slots of the others.
 *
 * Where one weight is far above the mean, most items pass most rounds over. A heap of the rounds in which items claim
 * next then replaces the look at each item in each round. */
#include "ring/maglev.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "base/wide.h"
#include "ring/ring_internal.h"

enum { SKEW = 16 }; /* the largest weight over the mean, from which the heap is cheaper */

/* The permutation of a key. */
struct path {
    uint32_t at, step; /* at: the next slot */
};

/* An item, in the order of keys. */
struct claimant {
    uint32_t item, path; /* path: the first host with its key */
    double weight, target;
};

struct maglev_build {
    struct tc_ring *table;
    uint32_t left; /* free slots */
    uint64_t *taken;
    struct path *paths;
    struct claimant *hosts;
    size_t n;
    double largest;
    uint32_t few;   /* so many free slots are listed */
    uint32_t *last; /* NULL: more are free */
};

bool tc_maglev_size_valid(uint64_t size)
{
    if (size < 2 || size > TC_MAGLEV_SIZE_MAX)
        return false;
    for (uint64_t d = 2; d * d <= size; d++)
        if (size % d == 0)
            return false;
    return true;
}

struct tc_ring_id tc_maglev_id(const struct tc_ring_item *items, const double *weights, size_t n, uint32_t size)
{
    struct tc_ring_item *weighted = tc_reallocarray(NULL, n, sizeof(*weighted));
    for (size_t i = 0; i < n; i++) {
        weighted[i].key = items[i].key;
        memcpy(&weighted[i].weight, &weights[i], sizeof(weights[i]));
    }
    /* No ring has more entries at least than it has at most. */
    struct tc_ring_id id = tc_ring_id_of_sizes(weighted, n, size, 0);
    tc_free(weighted);
    return id;
}

static int by_key(const void *pa, const void *pb)
{
    const struct tc_ring_item *a = *(const struct tc_ring_item *const *)pa,
                              *b = *(const struct tc_ring_item *const *)pb;
    int c = tc_slice_cmp(a->key, b->key);
    return c ? c : (a > b) - (a < b);
}

static void build_sort_hosts(struct maglev_build *b, const struct tc_ring_item *items, const double *weights)
{
    const struct tc_ring_item **order = tc_reallocarray(NULL, b->n, sizeof(*order));
    for (size_t i = 0; i < b->n; i++)
        order[i] = &items[i];
    qsort(order, b->n, sizeof(*order), by_key);
    uint32_t size = b->table->size;
    for (size_t i = 0; i < b->n; i++) {
        struct tc_slice key = order[i]->key;
        bool same = i > 0 && tc_slice_eq(key, order[i - 1]->key);
        uint32_t item = (uint32_t)(order[i] - items);
        b->hosts[i] = (struct claimant){item, same ? b->hosts[i - 1].path : (uint32_t)i, weights[item], 0};
        b->largest = TC_MAX(b->largest, weights[item]);
        b->paths[i].at = (uint32_t)(XXH64(key.data, key.len, 0) % size);
        b->paths[i].step = (uint32_t)(XXH64(key.data, key.len, 1) % (size - 1)) + 1;
    }
    tc_free(order);
}

static inline uint32_t slot_add(uint32_t at, uint32_t step, uint32_t size)
{
    uint32_t around = at + (step - size);
    return (int32_t)around < 0 ? at + step : around;
}

static inline unsigned slot_taken(const uint64_t *taken, uint32_t at)
{
    return (unsigned)(taken[at / 64] >> (at % 64)) & 1;
}

/* Returns the first free slot of a path. Two walks take every other slot each: neither waits for the other. */
static inline uint32_t path_find(const struct path *p, const uint64_t *taken, uint32_t size)
{
    uint32_t even = p->at, odd = slot_add(even, p->step, size), twice = slot_add(p->step, p->step, size);
    for (;;) {
        if (!slot_taken(taken, even))
            return even;
        even = slot_add(even, twice, size);
        if (!slot_taken(taken, odd))
            return odd;
        odd = slot_add(odd, twice, size);
    }
}

/* Returns the inverse of a step modulo the size, a prime. */
static int64_t step_inverse(int64_t step, int64_t size)
{
    int64_t a = size, b = step, x = 0, y = 1;
    while (b) {
        int64_t quotient = a / b, rest = a - quotient * b, z = x - quotient * y;
        a = b;
        b = rest;
        x = y;
        y = z;
    }
    return x < 0 ? x + size : x;
}

/* Returns the first of the last free slots on a path, by their distances: the steps to slot s are (s - at) / step,
 * modulo the size. Takes the slot from the list. */
static uint32_t path_find_last(const struct path *p, struct maglev_build *b)
{
    const struct tc_ring *table = b->table;
    uint64_t inverse = (uint64_t)step_inverse(p->step, table->size), least = UINT64_MAX;
    uint32_t best = 0;
    for (uint32_t i = 0; i < b->left; i++) {
        uint64_t x = (b->last[i] < p->at ? b->last[i] + table->size - p->at : b->last[i] - p->at) * inverse;
        uint64_t steps = x - tc_mul_high(x, table->inverse) * table->size;
        steps = steps < table->size ? steps : steps - table->size;
        if (steps < least) {
            least = steps;
            best = i;
        }
    }
    uint32_t at = b->last[best];
    b->last[best] = b->last[b->left - 1];
    return at;
}

/* Lists the free slots. */
static void build_list_last(struct maglev_build *b)
{
    uint32_t n = 0;
    b->last = tc_reallocarray(NULL, b->left, sizeof(*b->last));
    for (uint32_t word = 0; word <= b->table->size / 64; word++)
        for (uint64_t rest = ~b->taken[word]; rest; rest &= rest - 1) {
            uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(rest);
            if (at < b->table->size)
                b->last[n++] = at;
        }
}

static inline void build_claim(struct maglev_build *b, struct claimant *h)
{
    struct path *p = &b->paths[h->path];
    uint32_t size = b->table->size;
    if (TC_UNLIKELY(b->left == b->few))
        build_list_last(b);
    uint32_t at = b->last ? path_find_last(p, b) : path_find(p, b->taken, size);
    b->taken[at / 64] |= (uint64_t)1 << (at % 64);
    b->table->item[at] = h->item;
    p->at = slot_add(at, p->step, size);
    h->target += b->largest;
    b->left--;
}

static void build_in_rounds(struct maglev_build *b)
{
    for (uint64_t round = 1; b->left; round++)
        for (struct claimant *h = b->hosts; h < b->hosts + b->n && b->left; h++)
            if (!((double)round * h->weight < h->target))
                build_claim(b, h);
}

/* Returns the first round after `round` in which the host claims a slot; UINT32_MAX for one that never comes. */
static uint32_t host_next_round(const struct claimant *h, uint32_t round)
{
    double quotient = h->target / h->weight; /* at most one round away, and rounds are at most some millions */
    if (quotient >= UINT32_MAX - 2.0)
        return UINT32_MAX;
    uint32_t next = (uint32_t)quotient;
    next = TC_MAX(next > 0 ? next - 1 : 0, round + 1);
    while ((double)next * h->weight < h->target)
        next++;
    return next;
}

/* Claims in the same order as build_in_rounds. An element of the heap is a round, and in its lower half a host. */
static void build_by_heap(struct maglev_build *b)
{
    uint64_t *heap = tc_reallocarray(NULL, b->n, sizeof(*heap));
    for (size_t i = 0; i < b->n; i++)
        heap[i] = (uint64_t)1 << 32 | i;
    while (b->left) {
        struct claimant *h = &b->hosts[(uint32_t)heap[0]];
        build_claim(b, h);
        uint64_t moved = (uint64_t)host_next_round(h, (uint32_t)(heap[0] >> 32)) << 32 | (uint32_t)heap[0];
        size_t at = 0, child;
        for (; (child = 2 * at + 1) < b->n; at = child) {
            child += child + 1 < b->n && heap[child + 1] < heap[child];
            if (moved <= heap[child])
                break;
            heap[at] = heap[child];
        }
        heap[at] = moved;
    }
    tc_free(heap);
}

struct tc_ring *tc_maglev_new(const struct tc_ring_item *items, const double *weights, size_t n, uint32_t size)
{
    struct maglev_build b = {.n = n, .left = n ? size : 0};
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    b.taken = tc_calloc(size / 64 + 1, sizeof(*b.taken));
    b.paths = tc_reallocarray(NULL, n, sizeof(*b.paths));
    b.hosts = tc_reallocarray(NULL, n, sizeof(*b.hosts));
    b.table = tc_ring_alloc_table(b.left, n);
    while (b.few * b.few < size / 2) /* where `few` distances cost as much as size / few steps */
        b.few++;
    build_sort_hosts(&b, items, weights);
    if (b.largest * (double)n > SKEW * sum)
        build_by_heap(&b);
    else
        build_in_rounds(&b);
    for (uint32_t e = 0; e < b.table->size; e++)
        b.table->counts[b.table->item[e]]++;
    tc_ring_count_absent(b.table);
    tc_free(b.last);
    tc_free(b.taken);
    tc_free(b.paths);
    tc_free(b.hosts);
    return b.table;
}
