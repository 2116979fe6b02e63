/* Compares 100,000 rings with a naive construction (struct model), entry by entry: a ring is built of a random set, and
 * then updated four times, each time to a changed set. Keys (up to 199 bytes, some equal), weights, sizes and caps are
 * random, with a fixed seed. Also tests the sort alone, against qsort. The entries of a ring are ordered by hash and
 * then by item, and so are those of a model. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "ring/ring_internal.h"
#include "ring/sort.h"
#include "ring/update.h"

enum { ROUNDS = 100000, STEPS = 4, ITEMS_MAX = 30, KEY_MAX = 210, ENTRIES_MAX = 400 };

struct entry {
    uint64_t hash;
    uint32_t item;
};

/* The ring as it should be: n entries, in order. */
struct model {
    uint32_t n;
    struct entry entries[ENTRIES_MAX + 1];
};

/* Items, whose keys are in `text` and end with a NUL. from: what tc_ring_update is passed, indexes in the set
 * before. */
struct set {
    size_t n;
    char text[ITEMS_MAX][KEY_MAX];
    struct tc_ring_item items[ITEMS_MAX];
    uint32_t from[ITEMS_MAX];
};

struct sizes {
    uint64_t min, max, cap;
};

static int by_hash_then_item(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Makes the ring of `s` as A42 says. */
static void model_build(struct model *m, const struct set *s, struct sizes z)
{
    double sum = 0, least = HUGE_VAL;
    uint64_t max = TC_MIN(z.max, z.cap), min = TC_MIN(z.min, max);
    m->n = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += (double)s->items[i].weight;
    for (size_t i = 0; i < s->n; i++)
        least = fmin(least, (double)s->items[i].weight / sum);
    double scale = fmin(ceil(least * (double)min) / least, (double)max);
    double target = 0, current = 0;
    for (size_t i = 0; i < s->n; i++) {
        target += scale * ((double)s->items[i].weight / sum);
        for (unsigned k = 0; current < target; k++, current++) {
            char text[KEY_MAX + 16];
            int len = snprintf(text, sizeof(text), "%s_%u", s->text[i], k);
            assert_true(m->n <= ENTRIES_MAX);
            m->entries[m->n++] = (struct entry){tc_xxh64(text, (size_t)len), (uint32_t)i};
        }
    }
    qsort(m->entries, m->n, sizeof(struct entry), by_hash_then_item);
}

static uint32_t model_find(const struct model *m, uint64_t h)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->entries[i].hash >= h)
            return i;
    return 0;
}

/* Asserts that the ring of n items equals the model, and finds the same entries for six hashes: three are random, three
 * are next to the hash of an entry or equal to it. */
static void check(const struct tc_ring *r, const struct model *m, size_t n, struct tc_rng *rng)
{
    uint32_t counts[ITEMS_MAX] = {0}, absent = 0;
    bool same = tc_ring_size(r) == m->n;
    for (uint32_t i = 0; same && i < m->n; i++) {
        same = tc_ring_hash_at(r, i) == m->entries[i].hash && tc_ring_item_at(r, i) == m->entries[i].item;
        counts[m->entries[i].item]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        same = same && tc_ring_count_of(r, i) == counts[i];
        absent += counts[i] == 0;
    }
    same = same && tc_ring_absent(r) == absent;
    for (unsigned k = 0; same && k < 6; k++) {
        uint64_t h = tc_rng_u64(rng);
        if (k % 2)
            h = m->entries[tc_rng_below(rng, m->n)].hash + tc_rng_below(rng, 3) - 1;
        same = tc_ring_find(r, h) == model_find(m, h);
    }
    assert_true(same);
}

/* Appends an item with a random key and a weight from 1 to `range`. */
static void set_key(struct set *s, struct tc_rng *rng, uint64_t range)
{
    char *key = s->text[s->n];
    size_t len = tc_rng_below(rng, 40) == 0 ? tc_rng_below(rng, 200) : 1 + tc_rng_below(rng, 8);
    for (size_t i = 0; i < len; i++)
        key[i] = (char)('!' + tc_rng_below(rng, 90));
    key[len] = 0;
    if (s->n > 0 && tc_rng_below(rng, 20) == 0) /* a key that the set has already */
        memcpy(key, s->text[tc_rng_below(rng, s->n)], KEY_MAX);
    s->items[s->n] = (struct tc_ring_item){tc_slice_str(key), 1 + tc_rng_below(rng, range)};
    s->from[s->n++] = TC_RING_ADDED;
}

/* Makes `b` of `a`: removes some items, adds some, changes some weights, and now and then rotates the order. */
static void change(struct set *b, const struct set *a, struct tc_rng *rng, uint64_t range)
{
    size_t turn = tc_rng_below(rng, 4) == 0 ? tc_rng_below(rng, a->n) : 0;
    b->n = 0;
    for (size_t k = 0; k < a->n; k++) {
        uint32_t o = (uint32_t)((k + turn) % a->n);
        if (b->n + (a->n - k) < ITEMS_MAX && tc_rng_below(rng, 12) == 0)
            set_key(b, rng, range);
        if (tc_rng_below(rng, 12) == 0 && (b->n || k + 1 < a->n))
            continue;
        memcpy(b->text[b->n], a->text[o], KEY_MAX);
        b->items[b->n] = (struct tc_ring_item){tc_slice_of(b->text[b->n], a->items[o].key.len), a->items[o].weight};
        if (tc_rng_below(rng, 20) == 0)
            b->items[b->n].weight = 1 + tc_rng_below(rng, range);
        b->from[b->n++] = o;
    }
    if (b->n == 0)
        set_key(b, rng, range);
}

static struct sizes random_sizes(struct tc_rng *rng)
{
    struct sizes z;
    z.max = 1 + tc_rng_below(rng, tc_rng_below(rng, 50) == 0 ? ENTRIES_MAX : 40);
    z.min = 1 + tc_rng_below(rng, z.max);
    if (tc_rng_below(rng, 3) == 0)
        z.min = z.max; /* at the maximum, where one more item moves the shares of all */
    z.cap = tc_rng_below(rng, 3) == 0 ? 1 + tc_rng_below(rng, z.max) : TC_RING_DEFAULT_CAP;
    return z;
}

static void rings_match_the_model(void **state)
{
    (void)state;
    struct tc_rng rng;
    static struct set sets[2];
    static struct model m;
    unsigned rings = 0;
    tc_rng_init_seed(&rng, 42);
    while (rings < ROUNDS) {
        struct set *a = &sets[0], *b = &sets[1], *t;
        uint64_t range = tc_rng_below(&rng, 3) == 0 ? 1 : 1 + tc_rng_below(&rng, 100);
        size_t n = 1 + tc_rng_below(&rng, tc_rng_below(&rng, 20) == 0 ? ITEMS_MAX : 8);
        struct sizes z = random_sizes(&rng);
        for (a->n = 0; a->n < n;)
            set_key(a, &rng, range);
        struct tc_ring *r = tc_ring_new(a->items, a->n, z.min, z.max, z.cap);
        for (unsigned step = 0;; step++) {
            model_build(&m, a, z);
            check(r, &m, a->n, &rng);
            rings++;
            if (step == STEPS)
                break;
            change(b, a, &rng, range);
            if (tc_rng_below(&rng, 16) == 0)
                z = random_sizes(&rng);
            struct tc_ring *next = tc_ring_update(r, a->items, b->from, b->items, b->n, z.min, z.max, z.cap);
            tc_ring_unref(r);
            r = next;
            t = a, a = b, b = t;
        }
        tc_ring_unref(r);
    }
}

/* Adds n hashes to the sort, those of up to three items at a time. No item has more than seven hashes. */
static void sort_add_all(struct tc_ring_sort *sort, const uint64_t *hash, const uint32_t *item, size_t n)
{
    for (size_t i = 0; i < n;) {
        struct tc_ring_part parts[3] = {{.n = 0}};
        uint32_t most, k = 0;
        uint64_t *room = tc_ring_sort_room(sort, &most);
        for (size_t p = 0; p < TC_ARRAY_LEN(parts) && i < n; p++) {
            parts[p].item = item[i];
            for (uint32_t of = item[i]; i < n && item[i] == of; parts[p].n++)
                room[k++] = hash[i++];
        }
        assert_true(k <= most);
        tc_ring_sort_add(sort, parts, TC_ARRAY_LEN(parts));
    }
}

/* Returns hash i of n. Shape 0 is uniform, 1 has 16 hashes, and 2 has zeros in the upper 40 bits. */
static uint64_t shaped(unsigned shape, size_t i, size_t n, struct tc_rng *rng)
{
    uint64_t h = tc_rng_u64(rng);
    switch (shape) {
    case 0:
        return h;
    case 1:
        return h & 0xf;
    case 2:
        return h >> 40;
    case 3: /* uniform for a while */
        return i < n / 2 ? h : h >> 8;
    default: /* uniform, but some differ from others in the last bits only, or not at all */
        return h % 7 ? h : (h >> 51 << 51) + (h & 3);
    }
}

/* All shapes of hashes, in sizes for each way of sorting. */
static void sort_is_stable_and_complete(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 7);
    static const size_t sizes[] = {0, 1, 2, 3, 1000, 8192, 8193, 20000, 150000};
    for (size_t s = 0; s < TC_ARRAY_LEN(sizes); s++) {
        for (unsigned shape = 0; shape < 5; shape++) {
            size_t n = sizes[s];
            uint64_t *hash = tc_calloc(n + 1, sizeof(*hash)), *out_hash = tc_calloc(n + 1, sizeof(*out_hash));
            uint32_t *item = tc_calloc(n + 1, sizeof(*item)), *out_item = tc_calloc(n + 1, sizeof(*out_item));
            uint32_t index[256 + 1];
            unsigned bits = n < 1000 ? 2 : 8;
            struct entry *model = tc_calloc(n + 1, sizeof(*model));
            for (size_t i = 0; i < n; i++) {
                hash[i] = shaped(shape, i, n, &rng);
                item[i] = i ? item[i - 1] + (i % 7 == 0 || tc_rng_below(&rng, 3) == 0) : 0;
                model[i] = (struct entry){hash[i], item[i]};
            }
            if (n)
                qsort(model, n, sizeof(*model), by_hash_then_item);
            struct tc_ring_sort sort;
            tc_ring_sort_init(&sort, (uint32_t)n);
            sort_add_all(&sort, hash, item, n);
            bool indexed = tc_ring_sort_finish(&sort, out_hash, out_item, index, bits);
            for (size_t i = 0; i < n; i++) {
                assert_true(out_hash[i] == model[i].hash);
                assert_int_equal(out_item[i], model[i].item);
            }
            assert_true(indexed || n < 2 || shape != 0);
            for (uint64_t b = 0; indexed && b < 1u << bits; b++) {
                assert_true(index[b] == 0 || model[index[b] - 1].hash >> (64 - bits) < b);
                assert_true(index[b] == n || model[index[b]].hash >> (64 - bits) >= b);
            }
            tc_free(hash), tc_free(out_hash), tc_free(item), tc_free(out_item), tc_free(model);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_match_the_model),
        cmocka_unit_test(sort_is_stable_and_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
