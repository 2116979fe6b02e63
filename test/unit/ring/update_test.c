/* Compares updated rings with rings built from nothing. Two tests are about builds alone: the order of many entries of
 * equal hash, and the search in a ring so large that its index is sparse.
 *
 * A struct set has up to ITEMS_MAX items; change() makes the next set from it. A struct many has thousands of items and
 * their ring: begin() remembers the items, a test changes them, and step() updates the ring and compares it. All random
 * numbers have fixed seeds. Tests look inside the ring (ring/ring_internal.h). One thread. */
#include <stdio.h>

#include "support/cmocka.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "ring/ring_internal.h"
#include "ring/update.h"

enum { ITEMS_MAX = 60, KEY_MAX = 48 };

/* Items, whose keys are in `text`. from: what tc_ring_update is passed, indexes in the set before. */
struct set {
    size_t n;
    char text[ITEMS_MAX][KEY_MAX];
    struct tc_ring_item items[ITEMS_MAX];
    uint32_t from[ITEMS_MAX];
};

/* Makes item i: a random key, and a weight from 1 to `range`. */
static void set_key(struct set *s, size_t i, struct tc_rng *rng, uint64_t range)
{
    /* There are few distinct keys, so some are equal, and their hashes, too. */
    int len = snprintf(s->text[i], KEY_MAX, "%.*s%u", (int)tc_rng_below(rng, 36),
                       "2001:db8:0000:0000:0000:0000:0000:", (unsigned)tc_rng_below(rng, 40));
    s->items[i] = (struct tc_ring_item){tc_slice_of(s->text[i], (size_t)len), 1 + tc_rng_below(rng, range)};
    s->from[i] = TC_RING_ADDED;
}

/* Appends item o of `a` to `b`. */
static void keep(struct set *b, const struct set *a, uint32_t o)
{
    memcpy(b->text[b->n], a->text[o], KEY_MAX);
    b->items[b->n] = (struct tc_ring_item){tc_slice_of(b->text[b->n], a->items[o].key.len), a->items[o].weight};
    b->from[b->n++] = o;
}

/* Makes `b` of `a`: adds and removes some items. About half of the calls also change some weights, and half of these
 * the order. */
static void change(struct set *b, const struct set *a, struct tc_rng *rng, uint64_t range)
{
    uint32_t order[ITEMS_MAX];
    uint64_t how = tc_rng_below(rng, 4);
    for (uint32_t i = 0; i < a->n; i++)
        order[i] = i;
    for (uint32_t i = 0; how == 3 && i < a->n; i++) {
        size_t k = tc_rng_below(rng, a->n);
        uint32_t t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    b->n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (tc_rng_below(rng, 20) == 0 && b->n + (a->n - i) < ITEMS_MAX) {
            set_key(b, b->n, rng, range);
            b->n++;
        }
        if (tc_rng_below(rng, 20) == 0)
            continue;
        keep(b, a, order[i]);
        if (how >= 2 && tc_rng_below(rng, 20) == 0)
            b->items[b->n - 1].weight = 1 + tc_rng_below(rng, range);
    }
}

/* Asserts that two rings of n items have the same entries and counts. If they have entries, asserts that 100 hashes
 * find the same entries: 50 are random, 50 are next to the hash of an entry or equal to it. */
static void assert_same(const struct tc_ring *a, const struct tc_ring *b, size_t n, struct tc_rng *rng)
{
    assert_int_equal(tc_ring_size(a), tc_ring_size(b));
    assert_int_equal(tc_ring_absent(a), tc_ring_absent(b));
    for (uint32_t e = 0; e < tc_ring_size(a); e++) {
        assert_true(tc_ring_hash_at(a, e) == tc_ring_hash_at(b, e));
        assert_int_equal(tc_ring_item_at(a, e), tc_ring_item_at(b, e));
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(tc_ring_count_of(a, i), tc_ring_count_of(b, i));
    for (unsigned k = 0; k < 50 && tc_ring_size(a); k++) {
        uint64_t h = tc_rng_u64(rng);
        assert_int_equal(tc_ring_find(a, h), tc_ring_find(b, h));
        h = tc_ring_hash_at(a, (uint32_t)tc_rng_below(rng, tc_ring_size(a))) + tc_rng_below(rng, 3) - 1;
        assert_int_equal(tc_ring_find(a, h), tc_ring_find(b, h));
    }
}

static void updates_give_the_ring_that_a_build_gives(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 11);
    static struct set sets[2];
    for (unsigned round = 0; round < 400; round++) {
        uint64_t range = round % 2 ? 1 : 5, max = 1 + tc_rng_below(&rng, 3000), min = 1 + tc_rng_below(&rng, max);
        struct set *a = &sets[0], *b = &sets[1];
        a->n = 1 + tc_rng_below(&rng, ITEMS_MAX - 5);
        for (size_t i = 0; i < a->n; i++)
            set_key(a, i, &rng, range);
        struct tc_ring *ring = tc_ring_new(a->items, a->n, min, max, max);
        for (unsigned step = 0; step < 8; step++) {
            change(b, a, &rng, range);
            struct tc_ring *next = tc_ring_update(ring, a->items, b->from, b->items, b->n, min, max, max);
            struct tc_ring *anew = tc_ring_new(b->items, b->n, min, max, max);
            assert_same(next, anew, b->n, &rng);
            tc_ring_unref(anew);
            tc_ring_unref(ring);
            ring = next;
            struct set *t = a;
            a = b;
            b = t;
        }
        tc_ring_unref(ring);
    }
}

enum { MANY_MAX = 4200 };

/* Thousands of items, and a ring that is updated step by step. `before` are the items that `ring` was built of. `text`
 * has the keys that add() made, each a new one. The test drops `ring`, one reference. */
struct many {
    size_t n, used; /* items now; keys so far */
    struct tc_ring_item items[MANY_MAX], before[MANY_MAX];
    uint32_t from[MANY_MAX];
    char text[2 * MANY_MAX][KEY_MAX];
    uint64_t min, max;
    struct tc_ring *ring;
    struct tc_rng rng;
};

/* Puts an item at index `at`, before the one that is there. `from`: as in tc_ring_update. */
static void insert(struct many *m, size_t at, struct tc_ring_item item, uint32_t from)
{
    assert_true(m->n < MANY_MAX);
    memmove(m->items + at + 1, m->items + at, (m->n - at) * sizeof(*m->items));
    memmove(m->from + at + 1, m->from + at, (m->n - at) * sizeof(*m->from));
    m->items[at] = item;
    m->from[at] = from;
    m->n++;
}

static void drop(struct many *m, size_t at)
{
    m->n--;
    memmove(m->items + at, m->items + at + 1, (m->n - at) * sizeof(*m->items));
    memmove(m->from + at, m->from + at + 1, (m->n - at) * sizeof(*m->from));
}

/* Inserts n items with new keys, of weight 1, at random places. */
static void add(struct many *m, size_t n)
{
    for (; n; n--, m->used++) {
        assert_true(m->used < TC_ARRAY_LEN(m->text));
        char *text = m->text[m->used];
        int len = snprintf(text, KEY_MAX, "10.0.%u.%u:%u", (unsigned)m->used >> 8, (unsigned)m->used & 255,
                           1000 + (unsigned)m->used);
        insert(m, tc_rng_below(&m->rng, m->n + 1), (struct tc_ring_item){tc_slice_of(text, (size_t)len), 1},
               TC_RING_ADDED);
    }
}

/* Removes n random items. */
static void take_away(struct many *m, size_t n)
{
    while (n--)
        drop(m, tc_rng_below(&m->rng, m->n));
}

/* Remembers the present items; changes until the next step() are relative to them. */
static void begin(struct many *m)
{
    memcpy(m->before, m->items, m->n * sizeof(*m->items));
    for (uint32_t i = 0; i < m->n; i++)
        m->from[i] = i;
}

/* Makes n items and their ring, with `size` as its minimum and maximum. */
static void many_init(struct many *m, size_t n, uint64_t size)
{
    memset(m, 0, sizeof(*m));
    tc_rng_init_seed(&m->rng, 14);
    m->min = m->max = size;
    add(m, n);
    m->ring = tc_ring_new(m->items, m->n, size, size, size);
    begin(m);
}

/* Updates the ring to the present items, and compares it with a build. */
static void step(struct many *m)
{
    struct tc_ring *next =
        tc_ring_update(m->ring, m->before, m->from, m->items, m->n, m->min, m->max, TC_RING_SIZE_MAX);
    struct tc_ring *anew = tc_ring_new(m->items, m->n, m->min, m->max, TC_RING_SIZE_MAX);
    assert_same(next, anew, m->n, &m->rng);
    tc_ring_unref(anew);
    tc_ring_unref(m->ring);
    m->ring = next;
    begin(m);
}

/* At a ring's maximum the shares of many items move by an entry when an item is added, removed, or moved. */
static void thousands_of_entries_come_and_go(void **state)
{
    (void)state;
    static struct many m;
    many_init(&m, 3000, 20000);
    for (unsigned round = 0; round < 24; round++) {
        size_t at = tc_rng_below(&m.rng, m.n - 1);
        struct tc_ring_item item = m.items[at];
        uint32_t from = m.from[at];
        if (round % 4 == 0)
            add(&m, 1 + round % 3);
        else if (round % 4 == 1)
            take_away(&m, 1 + round % 3);
        else if (round % 4 == 2) { /* one item goes to another place */
            drop(&m, at);
            insert(&m, tc_rng_below(&m.rng, m.n + 1), item, from);
        } else { /* one item is added, and one at each end removed */
            drop(&m, 0);
            add(&m, 1);
            drop(&m, m.n - 1);
        }
        step(&m);
    }
    tc_ring_unref(m.ring);
}

/* As items are added and removed, the mean number of entries of an item passes several whole numbers. */
static void shares_pass_whole_numbers(void **state)
{
    (void)state;
    static struct many m;
    many_init(&m, 3200, 20000);
    for (unsigned k = 0; k < 25; k++) {
        add(&m, 40);
        step(&m);
    }
    for (unsigned k = 0; k < 54; k++) {
        take_away(&m, 40);
        step(&m);
    }
    tc_ring_unref(m.ring);
}

static void weights_bounds_and_ties_change(void **state)
{
    (void)state;
    static struct many m;
    many_init(&m, 3000, 20000);
    for (unsigned k = 0; k < 6; k++) {
        m.items[tc_rng_below(&m.rng, m.n)].weight = 1 + k * k;
        step(&m);
    }
    m.max = 40000; /* the maximum no longer decides the size */
    step(&m);
    assert_true(m.ring->size > 20000);
    m.max = 20000;
    step(&m);
    add(&m, 1);
    step(&m);
    /* Two items of one key. */
    m.items[100] = m.items[200];
    m.from[100] = TC_RING_ADDED;
    step(&m);
    assert_true(m.ring->ties);
    add(&m, 1);
    step(&m);
    drop(&m, 200);
    step(&m);
    take_away(&m, 900); /* more than a quarter of the entries changes: the ring is built from nothing */
    step(&m);
    assert_false(m.ring->ties);
    /* All items are removed, then others added. */
    m.n = 0;
    step(&m);
    assert_int_equal(m.ring->size, 0);
    add(&m, 3000);
    step(&m);
    tc_ring_unref(m.ring);
}

/* 1,500 items have one key, so more entries have one hash than the sort's group has room for. */
static void many_equal_hashes_stay_in_order(void **state)
{
    (void)state;
    static struct many m;
    many_init(&m, 3000, 20000);
    for (size_t i = 1500; i < m.n; i++)
        m.items[i].key = m.items[1500].key;
    struct tc_ring *r = tc_ring_new(m.items, m.n, 20000, 20000, 20000);
    assert_true(r->ties);
    for (uint32_t e = 1; e < r->size; e++) {
        assert_true(r->hash[e - 1] <= r->hash[e]);
        assert_true(r->hash[e - 1] < r->hash[e] || r->item[e - 1] <= r->item[e]);
    }
    tc_ring_unref(r);
    tc_ring_unref(m.ring);
}

/* An item that is removed has another key in old_items than in the ring: its entries cannot be found, and the ring is
 * built from nothing. */
static void items_of_another_ring_do_no_harm(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 12);
    static struct set a, b;
    for (a.n = 0; a.n < 50; a.n++)
        set_key(&a, a.n, &rng, 1);
    struct tc_ring *ring = tc_ring_new(a.items, a.n, 1000, 1000, 4096);
    b.n = 0;
    for (uint32_t i = 0; i < 49; i++)
        keep(&b, &a, i);
    a.items[49].key = tc_slice_str("a key that the ring was not built of");
    struct tc_ring *next = tc_ring_update(ring, a.items, b.from, b.items, b.n, 1000, 1000, 4096);
    struct tc_ring *anew = tc_ring_new(b.items, b.n, 1000, 1000, 4096);
    assert_same(next, anew, b.n, &rng);
    tc_ring_unref(next);
    tc_ring_unref(anew);
    tc_ring_unref(ring);
}

static void a_large_ring_is_searched_right(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 13);
    struct tc_ring_item items[] = {{tc_slice_str("a"), 1}, {tc_slice_str("b"), 2}, {tc_slice_str("c"), 3}};
    struct tc_ring *r = tc_ring_new(items, 3, 600000, 600000, TC_RING_SIZE_MAX);
    uint32_t size = tc_ring_size(r);
    assert_int_equal(size, 600000);
    for (uint32_t e = 0; e < size; e++) {
        uint64_t h = tc_ring_hash_at(r, e);
        if (e > 0)
            assert_true(h > tc_ring_hash_at(r, e - 1));
        assert_int_equal(tc_ring_find(r, h), e);
        assert_int_equal(tc_ring_find(r, h + 1), (e + 1) % size);
    }
    for (uint32_t k = 0; k < 1000; k++) {
        char text[32];
        uint32_t i = (uint32_t)tc_rng_below(&rng, 99999);
        int len = snprintf(text, sizeof(text), "a_%u", i);
        assert_int_equal(tc_ring_item_at(r, tc_ring_find(r, tc_xxh64(text, (size_t)len))), 0);
    }
    tc_ring_unref(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_give_the_ring_that_a_build_gives),
        cmocka_unit_test(thousands_of_entries_come_and_go),
        cmocka_unit_test(shares_pass_whole_numbers),
        cmocka_unit_test(weights_bounds_and_ties_change),
        cmocka_unit_test(many_equal_hashes_stay_in_order),
        cmocka_unit_test(items_of_another_ring_do_no_harm),
        cmocka_unit_test(a_large_ring_is_searched_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
