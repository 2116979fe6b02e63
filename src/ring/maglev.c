/* Builds the table of Maglev (Eisenbud et al., NSDI 2016) with Envoy's weights.
 *
 * Items claim slots in the order of their keys. Each item has a permutation of the slots: it begins at XXH64(key, 0) %
 * size and goes on in steps of XXH64(key, 1) % (size - 1) + 1, which reach every slot, since the size is a prime. In
 * each round every item claims the first free slot of its permutation, until no slot is free. An item of less than the
 * largest weight skips rounds: it claims in round r if r * weight has reached its target (0 at first), and then its
 * target grows by the largest weight. Rounding errors decide ties, so the operations are Envoy's, in doubles.
 *
 * Six items of equal weight, with the keys 127.0.0.1:90 (a) to 127.0.0.1:95 (f), and a table of 7 slots:
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
 * What costs time is finding free slots. build_claim tells how they are found, and what bounds the time if the keys
 * were chosen to make a build slow. struct maglev_build lives for one call of tc_maglev_new, which frees its arrays;
 * the table is the caller's. */
#include "ring/maglev.h"

#include <endian.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "base/wide.h"
#include "ring/ring_internal.h"

enum {
    SKEW = 16,      /* the heap is cheaper if the largest weight is more than this many times the mean */
    CROWDED = 16,   /* a table is crowded if at most 1/CROWDED of its slots are free */
    BATCH = 256,    /* the most paths that are advanced together */
    BATCH_MIN = 32, /* the fewest items whose paths are worth advancing together */
    MOST_STEPS = 64 /* times the size: the steps after which a build stops searching */
};

/* The permutation of a key. */
struct path {
    uint32_t at, step; /* at: the next slot */
};

/* An item's claim to one slot. Items of one key have one permutation, and share the place that they have reached: a
 * control plane that gives one key to all endpoints would otherwise make each endpoint pass the slots of all the
 * others. */
struct claim {
    uint32_t item, path; /* path: the index in `paths` of the first claimant with the key */
};

/* An item that claims slots: a host, as Envoy says. The array `hosts` is in the order of keys. */
struct claimant {
    struct claim claim;
    double weight, target;
};

struct maglev_build {
    struct tc_ring *table;
    uint32_t left;      /* free slots */
    uint64_t *taken;    /* a bit for each slot: the bits of most tables fit the nearest cache */
    struct path *paths; /* by claimant; claimants that share a key use the first one's */
    struct claimant *hosts;
    struct claim *claims; /* of one round or several, in their order */
    size_t n;
    double largest;
    bool even;      /* all weights are equal */
    uint32_t few;   /* once at most this many slots are free, `last` lists them */
    uint32_t *last; /* the free slots, `left` of them; NULL while more than `few` are free and steps are left */
    uint64_t steps; /* the steps that may still be taken */
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
    /* Passes a largest size of 0, which no ring has (tc_ring_clamp): a table never has the id of a ring. */
    struct tc_ring_id id = tc_ring_id_of_sizes(weighted, n, size, 0);
    tc_free(weighted);
    return id;
}

/* An item to be sorted. */
struct keyed {
    uint64_t head; /* the first eight bytes of the key, as a number */
    const struct tc_ring_item *item;
};

static int by_key(const void *pa, const void *pb)
{
    const struct keyed *a = pa, *b = pb;
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    int c = tc_slice_cmp(a->item->key, b->item->key);
    return c ? c : (a->item > b->item) - (a->item < b->item);
}

static void build_sort_hosts(struct maglev_build *b, const struct tc_ring_item *items, const double *weights)
{
    struct keyed *order = tc_calloc(b->n, sizeof(*order));
    for (size_t i = 0; i < b->n; i++) {
        if (items[i].key.len)
            memcpy(&order[i].head, items[i].key.data, TC_MIN(items[i].key.len, sizeof(order[i].head)));
        order[i].head = be64toh(order[i].head);
        order[i].item = &items[i];
    }
    qsort(order, b->n, sizeof(*order), by_key);
    uint32_t size = b->table->size;
    b->even = true;
    for (size_t i = 0; i < b->n; i++) {
        struct tc_slice key = order[i].item->key;
        bool same = i > 0 && tc_slice_eq(key, order[i - 1].item->key);
        uint32_t item = (uint32_t)(order[i].item - items);
        b->hosts[i] = (struct claimant){{item, same ? b->hosts[i - 1].claim.path : (uint32_t)i}, weights[item], 0};
        b->even = b->even && weights[item] == weights[0];
        b->largest = TC_MAX(b->largest, weights[item]);
        b->paths[i].at = (uint32_t)(XXH64(key.data, key.len, 0) % size);
        b->paths[i].step = (uint32_t)(XXH64(key.data, key.len, 1) % (size - 1)) + 1;
    }
    tc_free(order);
}

/* Returns the slot one step on: an addition instead of a division. */
static inline uint32_t slot_add(uint32_t at, uint32_t step, uint32_t size)
{
    uint32_t around = at + (step - size);
    return (int32_t)around < 0 ? at + step : around;
}

static inline unsigned slot_taken(const uint64_t *taken, uint32_t at)
{
    return (unsigned)(taken[at / 64] >> (at % 64)) & 1;
}

/* Returns the first free slot of a path. Adds the number of steps to *steps, or up to two fewer. Two walks, `even` and
 * `odd`, look at every other slot each, so that neither waits for the other. */
static inline uint32_t path_find(const struct path *p, const uint64_t *taken, uint32_t size, uint64_t *steps)
{
    uint32_t even = p->at;
    if (!slot_taken(taken, even))
        return even;
    uint32_t odd = slot_add(even, p->step, size), twice = slot_add(p->step, p->step, size);
    for (;; *steps += 2) {
        if (!slot_taken(taken, odd))
            return odd;
        odd = slot_add(odd, twice, size);
        even = slot_add(even, twice, size);
        if (!slot_taken(taken, even))
            return even;
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

/* Returns that slot of `last` which comes first on a path: the number of steps to slot s is (s - at) / step, modulo the
 * size. Takes the slot off `last`; the caller counts `left` down. */
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

/* Advances the paths of n claims, at most BATCH, to their first slots that are free now, while steps are left. */
static void paths_advance(struct maglev_build *b, const struct claim *claims, size_t n)
{
    struct path *searching[BATCH];
    const uint64_t *taken = b->taken;
    uint32_t size = b->table->size;
    for (size_t i = 0; i < n; i++)
        searching[i] = &b->paths[claims[i].path];
    while (n > 0 && b->steps > n) {
        size_t still = 0;
        b->steps -= n;
        for (size_t i = 0; i < n; i++) {
            struct path *p = searching[i];
            unsigned is_taken = slot_taken(taken, p->at);
            p->at = slot_add(p->at, p->step & (0u - is_taken), size);
            searching[still] = p;
            still += is_taken;
        }
        n = still;
    }
}

/* Claims a slot for each of n claims until the steps are used up. n is at most left - few. Returns the number of slots
 * claimed. */
static size_t build_claim_many(struct maglev_build *b, const struct claim *claims, size_t n)
{
    uint32_t size = b->table->size, *item = b->table->item, *counts = b->table->counts;
    struct path *paths = b->paths;
    uint64_t *taken = b->taken, steps = 0, most = b->steps;
    const struct claim *c = claims;
    for (; c < claims + n && steps < most; c++) {
        struct path *p = &paths[c->path];
        uint32_t at = path_find(p, taken, size, &steps);
        taken[at / 64] |= (uint64_t)1 << (at % 64);
        item[at] = c->item;
        counts[c->item]++;
        p->at = slot_add(at, p->step, size);
    }
    b->steps -= TC_MIN(steps, most);
    b->left -= (uint32_t)(c - claims);
    return (size_t)(c - claims);
}

/* Claims one of the slots in `last`. */
static void build_claim_last(struct maglev_build *b, const struct claim *c)
{
    if (!b->last)
        build_list_last(b);
    uint32_t at = b->left > b->few ? b->last[b->left - 1] : path_find_last(&b->paths[c->path], b);
    b->table->item[at] = c->item;
    b->table->counts[c->item]++;
    b->left--;
}

/* Claims a slot for each of n claims, in their order, until none is free.
 *
 * A processor cannot guess where a search ends, and a wrong guess costs as much as ten steps. Therefore the paths of
 * many items are advanced together to slots that are free, one step of each path at a time and without a branch on a
 * slot (paths_advance). Then the items claim in their order; an item whose slot was claimed by an item before it goes
 * on alone. If there are few items, or the table is crowded, so that searches are long and items often meet, each item
 * searches alone. The last slots take many steps each, so the last few are listed, and their distances on a path are
 * computed (path_find_last).
 *
 * Keys can be chosen so that all items have the same step: then each item passes the slots of all the others, up to
 * n * size steps in all. So a build stops searching after MOST_STEPS * size steps, seven times what a large table takes
 * otherwise. The slots that are then free, except the last few, are dealt to the claims in their order, the highest
 * slot first: each item has its share, but the table is not Envoy's. */
static void build_claim(struct maglev_build *b, const struct claim *claims, size_t n)
{
    for (size_t many; n > 0 && b->left > b->few && b->steps; claims += many, n -= many) {
        many = TC_MIN(TC_MIN(n, BATCH), b->left - b->few);
        if (b->n >= BATCH_MIN && b->left > b->table->size / CROWDED)
            paths_advance(b, claims, many);
        many = build_claim_many(b, claims, many);
    }
    for (; n > 0 && b->left; claims++, n--)
        build_claim_last(b, claims);
}

/* Appends the claims of a round to the first n claims. Returns the new number of claims. */
static size_t build_round(struct maglev_build *b, uint64_t round, size_t n)
{
    struct claim *claims = b->claims;
    double largest = b->largest;
    for (struct claimant *h = b->hosts; h < b->hosts + b->n; h++) {
        bool does = !((double)round * h->weight < h->target);
        h->target += does ? largest : 0;
        claims[n] = h->claim;
        n += does;
    }
    return n;
}

static void build_in_rounds(struct maglev_build *b)
{
    size_t n = 0;
    for (uint64_t round = 1; b->left;) {
        /* Items of equal weight claim in every round, so the same list serves again: rounding errors are far below a
         * weight. */
        if (!b->even)
            n = 0;
        while (n < BATCH)
            n = build_round(b, round++, n);
        build_claim(b, b->claims, n);
    }
}

/* Returns the first round after `round` in which the host claims a slot; UINT32_MAX if no build gets as far. */
static uint32_t host_next_round(const struct claimant *h, uint32_t round)
{
    double quotient = h->target / h->weight; /* rounding puts it less than one round off: rounds are at most millions */
    if (quotient >= UINT32_MAX - 2.0)
        return UINT32_MAX;
    uint32_t next = (uint32_t)quotient;
    next = TC_MAX(next > 0 ? next - 1 : 0, round + 1);
    while ((double)next * h->weight < h->target)
        next++;
    return next;
}

/* Makes the same claims in the same order as build_in_rounds. Where one weight is far above the mean, most items skip
 * most rounds, so a heap of the rounds in which items claim next replaces the look at each item in each round. An
 * element of the heap has a round in its upper half, and in its lower half the index of the host that claims in this
 * round. */
static void build_by_heap(struct maglev_build *b)
{
    uint64_t *heap = tc_reallocarray(NULL, b->n, sizeof(*heap));
    for (size_t i = 0; i < b->n; i++)
        heap[i] = (uint64_t)1 << 32 | i;
    while (b->left) {
        struct claimant *h = &b->hosts[(uint32_t)heap[0]];
        build_claim(b, &h->claim, 1);
        h->target += b->largest;
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
    struct maglev_build b = {.n = n, .left = n ? size : 0, .steps = (uint64_t)MOST_STEPS * size};
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    b.taken = tc_calloc(size / 64 + 1, sizeof(*b.taken));
    b.paths = tc_reallocarray(NULL, n, sizeof(*b.paths));
    b.hosts = tc_reallocarray(NULL, n, sizeof(*b.hosts));
    b.claims = tc_reallocarray(NULL, n + BATCH, sizeof(*b.claims));
    b.table = tc_ring_alloc_table(b.left, n);
    while (b.few * b.few < size / 4) /* where `few` distances cost as much as size / few steps */
        b.few++;
    build_sort_hosts(&b, items, weights);
    if (b.largest * (double)n > SKEW * sum)
        build_by_heap(&b);
    else
        build_in_rounds(&b);
    tc_ring_count_absent(b.table);
    tc_free(b.last);
    tc_free(b.taken);
    tc_free(b.paths);
    tc_free(b.hosts);
    tc_free(b.claims);
    return b.table;
}
