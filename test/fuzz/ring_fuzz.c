/* The ring, built and then updated up to STEPS_MAX times, compared with a model: a sorted list and a binary search.
 * After each step the ring has the model's entries, finds the model's entry for hashes of entries and around them, and
 * knows how many entries each item has.
 *
 * The input: size limits, flags, the number of items, the items (weight and key), then changes of the items and the
 * limits. Two sets of items take turns: `now` begins as a copy of `before`, then changes. The keys point into the
 * input; the ring does not keep them. One thread. Read LLVMFuzzerTestOneInput and change first. */
#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "fuzz.h"
#include "ring/ring_internal.h"
#include "ring/update.h"

#define ITEMS_MAX 64u

enum { STEPS_MAX = 12 };

struct entry {
    uint64_t hash;
    uint32_t item;
};

struct model {
    TC_VEC(struct entry) entries;
};

static int by_hash_then_item(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Builds the model's ring as A42 says. */
static void model_build(struct model *m, const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max)
{
    double weights[ITEMS_MAX], sum = 0, least = 1, target = 0, current = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)TC_MAX(items[i].weight, (uint64_t)1);
    for (size_t i = 0; i < n; i++) {
        weights[i] = (double)TC_MAX(items[i].weight, (uint64_t)1) / sum;
        least = fmin(least, weights[i]);
    }
    double scale = fmin(ceil(least * (double)min) / least, (double)max);
    for (size_t i = 0; i < n; i++) {
        target += scale * weights[i];
        for (unsigned k = 0; current < target; k++, current++) {
            struct tc_buf text = {0};
            tc_buf_append_slice(&text, items[i].key);
            tc_buf_printf(&text, "_%u", k);
            *tc_vec_push(&m->entries) = (struct entry){tc_xxh64(text.data, text.len), (uint32_t)i};
            tc_buf_fini(&text);
        }
    }
    if (m->entries.len)
        qsort(m->entries.data, m->entries.len, sizeof(struct entry), by_hash_then_item);
}

static uint32_t model_find(const struct model *m, uint64_t h)
{
    size_t low = 0, high = m->entries.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->entries.data[middle].hash < h)
            low = middle + 1;
        else
            high = middle;
    }
    return low == m->entries.len ? 0 : (uint32_t)low;
}

/* Checks the ring of n items against the model. */
static void check_ring(const struct tc_ring *r, const struct model *m, size_t n)
{
    uint32_t counts[ITEMS_MAX] = {0}, absent = 0;
    TC_FUZZ_CHECK(tc_ring_size(r) == m->entries.len);
    for (uint32_t i = 0; i < m->entries.len; i++) {
        const struct entry *e = &m->entries.data[i];
        TC_FUZZ_CHECK(tc_ring_hash_at(r, i) == e->hash && tc_ring_item_at(r, i) == e->item);
        counts[e->item]++;
        for (uint64_t d = 0; d < 3; d++)
            TC_FUZZ_CHECK(tc_ring_find(r, e->hash + d - 1) == model_find(m, e->hash + d - 1));
    }
    for (uint32_t i = 0; i < n; i++) {
        TC_FUZZ_CHECK(tc_ring_count_of(r, i) == counts[i]);
        absent += counts[i] == 0;
    }
    TC_FUZZ_CHECK(tc_ring_absent(r) == absent);
    for (uint64_t h = 0; m->entries.len && h < 64; h++) {
        uint64_t at = h * 0x0410410410410411u;
        TC_FUZZ_CHECK(tc_ring_find(r, at) == model_find(m, at));
    }
}

struct bounds {
    uint64_t min, max, cap; /* as in tc_ring_new */
};

static struct bounds read_bounds(struct tc_fuzz_input *in)
{
    struct bounds b;
    b.cap = 1 + tc_fuzz_uint(in, 2) % 1024;
    b.max = 1 + tc_fuzz_uint(in, 2) % 2048;
    b.min = 1 + tc_fuzz_uint(in, 2) % b.max;
    return b;
}

struct set {
    size_t n;
    struct tc_ring_item items[ITEMS_MAX];
    uint32_t from[ITEMS_MAX]; /* the item's index in the previous set, or TC_RING_ADDED */
};

/* Checks the ring of a set against a model that is built for it. */
static void check(const struct tc_ring *r, const struct set *s, struct bounds b)
{
    struct model m = {0};
    if (s->n)
        model_build(&m, s->items, s->n, TC_MIN(b.min, b.cap), TC_MIN(b.max, b.cap));
    check_ring(r, &m, s->n);
    tc_vec_fini(&m.entries);
}

static struct tc_ring_item read_item(struct tc_fuzz_input *in, size_t weight_bytes)
{
    uint64_t weight = tc_fuzz_uint(in, weight_bytes);
    return (struct tc_ring_item){tc_fuzz_short(in), weight};
}

static void insert(struct set *s, size_t at, struct tc_ring_item item, uint32_t from)
{
    memmove(s->items + at + 1, s->items + at, (s->n - at) * sizeof(*s->items));
    memmove(s->from + at + 1, s->from + at, (s->n - at) * sizeof(*s->from));
    s->items[at] = item;
    s->from[at] = from;
    s->n++;
}

static void drop(struct set *s, size_t at)
{
    s->n--;
    memmove(s->items + at, s->items + at + 1, (s->n - at) * sizeof(*s->items));
    memmove(s->from + at, s->from + at + 1, (s->n - at) * sizeof(*s->from));
}

/* Makes one change for the next ring, or none. Returns false if no further change follows. */
static bool change(struct set *s, struct bounds *b, struct tc_fuzz_input *in, size_t weight_bytes)
{
    uint8_t how = tc_fuzz_u8(in) % 8;
    size_t at = tc_fuzz_u8(in);
    if (how < 2 && s->n < ITEMS_MAX)
        insert(s, at % (s->n + 1), read_item(in, weight_bytes), TC_RING_ADDED);
    else if (how == 2 && s->n)
        drop(s, at % s->n);
    else if (how == 3 && s->n)
        s->items[at % s->n].weight = tc_fuzz_uint(in, weight_bytes);
    else if (how == 4 && s->n) { /* moves an item */
        struct tc_ring_item item = s->items[at % s->n];
        uint32_t from = s->from[at % s->n];
        drop(s, at % s->n);
        insert(s, tc_fuzz_u8(in) % (s->n + 1), item, from);
    } else if (how == 5)
        *b = read_bounds(in);
    else if (how == 6)
        s->n = at % (s->n + 1);
    else
        return false;
    return in->len > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct set sets[2] = {{0}};
    struct set *now = &sets[0], *before = &sets[1], *other;
    struct bounds b = read_bounds(&in);
    uint8_t flags = tc_fuzz_u8(&in);
    /* Weights have at most five bytes: a double holds the sum of 64 of them exactly. */
    size_t weight_bytes = 1 + (size_t)flags % 5, n = 1 + (size_t)tc_fuzz_u8(&in) % ITEMS_MAX;
    while (in.len && now->n < n)
        insert(now, now->n, read_item(&in, flags & 0x40 ? 0 : weight_bytes), TC_RING_ADDED);
    struct tc_ring *r = tc_ring_new(now->items, now->n, b.min, b.max, b.cap);
    check(r, now, b);
    for (unsigned step = 0; in.len && step < STEPS_MAX; step++) {
        other = now, now = before, before = other;
        *now = *before;
        for (uint32_t i = 0; i < now->n; i++)
            now->from[i] = i;
        while (change(now, &b, &in, weight_bytes))
            ;
        struct tc_ring *next = tc_ring_update(r, before->items, now->from, now->items, now->n, b.min, b.max, b.cap);
        check(next, now, b);
        tc_ring_unref(r);
        r = next;
    }
    tc_ring_unref(r);
    return 0;
}
