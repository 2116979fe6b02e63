/* Rings that a process shares: when two have one id, how long a ring lives, and threads that share rings.
 *
 * The cache belongs to the process. Each test drops all references that it has taken, so the cache is empty between
 * tests. threads_share_rings runs get_and_drop on four threads; all else runs on the test's thread. */
#include "ring/cache.h"

#include <pthread.h>
#include <stdio.h>

#include "support/cmocka.h"

static const struct tc_ring_item items[] = {{{"a", 1}, 1}, {{"bb", 2}, 3}, {{"c", 1}, 0}};

static struct tc_ring_id id_of(const struct tc_ring_item *of, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    return tc_ring_id(of, n, min, max, cap);
}

static bool same(struct tc_ring_id a, struct tc_ring_id b)
{
    return a.low == b.low && a.high == b.high;
}

static void an_id_tells_rings_apart(void **state)
{
    (void)state;
    struct tc_ring_id id = id_of(items, 3, 100, 200, 300);
    assert_true(same(id, id_of(items, 3, 100, 200, 300)));
    /* Sizes count after clamping, and a weight of 0 as 1. */
    assert_true(same(id, id_of(items, 3, 100, 200, 4000)));
    assert_true(same(id_of(items, 3, 100, 5000, 200), id));
    struct tc_ring_item one[] = {items[0], items[1], {items[2].key, 1}};
    assert_true(same(id, id_of(one, 3, 100, 200, 300)));
    assert_false(same(id, id_of(items, 2, 100, 200, 300)));
    assert_false(same(id, id_of(items, 3, 101, 200, 300)));
    assert_false(same(id, id_of(items, 3, 100, 201, 300)));
    struct tc_ring_item other[] = {items[1], items[0], items[2]};
    assert_false(same(id, id_of(other, 3, 100, 200, 300)));
    struct tc_ring_item heavier[] = {items[0], {items[1].key, 4}, items[2]};
    assert_false(same(id, id_of(heavier, 3, 100, 200, 300)));
    /* The same bytes, divided into keys in another way, give another ring. */
    struct tc_ring_item cut[] = {{{"ab", 2}, 1}, {{"b", 1}, 3}, items[2]};
    assert_false(same(id, id_of(cut, 3, 100, 200, 300)));
}

static void a_ring_lives_while_it_is_held(void **state)
{
    (void)state;
    struct tc_ring_id id = id_of(items, 3, 100, 200, 300);
    assert_null(tc_ring_cache_find(&id));
    struct tc_ring *r = tc_ring_cache_add(&id, tc_ring_new(items, 3, 100, 200, 300));
    struct tc_ring *again = tc_ring_cache_find(&id);
    assert_ptr_equal(r, again);
    /* As if two threads built the ring at the same time: the first one stays. */
    struct tc_ring *late = tc_ring_cache_add(&id, tc_ring_new(items, 3, 100, 200, 300));
    assert_ptr_equal(r, late);
    tc_ring_unref(r);
    tc_ring_unref(late);
    r = tc_ring_cache_find(&id);
    assert_ptr_equal(r, again);
    tc_ring_unref(r);
    tc_ring_unref(again);
    assert_null(tc_ring_cache_find(&id));
}

enum { THREADS = 4, ROUNDS = 3000, KINDS = 3 };

/* A thread's work: takes and releases rings of KINDS sizes in turn. *arg, an unsigned, is the kind to begin with; each
 * ring of a wrong size adds one to it. */
static void *get_and_drop(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t size = 10 + (i + seed) % KINDS;
        struct tc_ring_id id = id_of(items, 3, size, size, 300);
        struct tc_ring *r = tc_ring_cache_find(&id);
        if (!r)
            r = tc_ring_cache_add(&id, tc_ring_new(items, 3, size, size, 300));
        if (tc_ring_size(r) != size)
            (*(unsigned *)arg)++;
        tc_ring_unref(r);
    }
    return NULL;
}

static void threads_share_rings(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = 2 * i;
        assert_int_equal(pthread_create(&threads[i], NULL, get_and_drop, &seeds[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(seeds[i], 2 * i);
    }
    for (uint64_t size = 10; size < 10 + KINDS; size++) {
        struct tc_ring_id id = id_of(items, 3, size, size, 300);
        assert_null(tc_ring_cache_find(&id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_tells_rings_apart),
        cmocka_unit_test(a_ring_lives_while_it_is_held),
        cmocka_unit_test(threads_share_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
