/* The heap: reuse, growth, the bound on kept blocks, trimming, blocks too large to be kept, sizes beyond the limit, and
 * secrets, which are overwritten. */
#include "base/heap.h"

#include <string.h>

#include "support/cmocka.h"

static void reuses_and_trims(void **state)
{
    (void)state;
    struct tc_heap *heap = tc_heap_new();
    void *blocks[100], *first;
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = tc_heap_take_zeroed(3, 40 + i, heap);
        for (size_t k = 0; k < 3 * (40 + i); k++)
            assert_int_equal(((char *)blocks[i])[k], 0);
        memset(blocks[i], 1, 3 * (40 + i));
    }
    first = blocks[99];
    blocks[0] = tc_heap_grow(blocks[0], 100000, heap);
    assert_int_equal(((char *)blocks[0])[119], 1);
    for (size_t i = 0; i < 100; i++)
        tc_heap_give(blocks[i], heap);
    assert_true(tc_heap_kept(heap) > 10000);
    void *again = tc_heap_take(3 * 139, heap);
    assert_ptr_equal(again, first);
    tc_heap_give(again, heap);
    tc_heap_trim(heap, 1024);
    assert_in_range(tc_heap_kept(heap), 0, 1024);
    tc_heap_free(heap);
}

static void secrets_are_overwritten(void **state)
{
    (void)state;
    struct tc_heap *heap = tc_heap_new();
    static const size_t sizes[] = {1, 64, 65, 200, 2048};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i];
        char *block = tc_heap_take(n, heap);
        memset(block, 1, n);
        char *bigger = tc_heap_grow_secret(block, 4 * n + 64, heap);
        assert_int_equal(bigger[n - 1], 1);
        char *again = tc_heap_take(n, heap); /* the block that growing gave back */
        assert_ptr_equal(again, block);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(again[k], 0);
        memset(again, 1, n);
        tc_heap_give_secret(again, heap);
        assert_ptr_equal(tc_heap_take(n, heap), again);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(again[k], 0);
        tc_heap_give(again, heap);
        tc_heap_give_secret(bigger, heap);
    }
    tc_heap_give_secret(NULL, heap);
    tc_heap_free(heap);
}

static void keeps_no_more_than_a_bound(void **state)
{
    (void)state;
    enum { BLOCKS = 2000 };
    static void *blocks[BLOCKS];
    struct tc_heap *heap = tc_heap_new();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = tc_heap_take(2000, heap);
    for (size_t i = 0; i < BLOCKS; i++)
        tc_heap_give(blocks[i], heap);
    assert_in_range(tc_heap_kept(heap), 1000000, 1100000);
    tc_heap_free(heap);
}

static void sizes(void **state)
{
    (void)state;
    struct tc_heap *heap = tc_heap_new();
    assert_null(tc_heap_take(SIZE_MAX, heap));
    assert_null(tc_heap_take_zeroed(SIZE_MAX / 2, 3, heap));
    void *large = tc_heap_take(100000, heap);
    memset(large, 1, 100000);
    assert_ptr_equal(tc_heap_grow(large, 1000, heap), large);
    tc_heap_give(large, heap);
    assert_int_equal(tc_heap_kept(heap), 0); /* large blocks go back to the system */
    tc_heap_give(NULL, heap);
    void *grown = tc_heap_grow(NULL, 10, heap);
    assert_int_equal((uintptr_t)grown % _Alignof(max_align_t), 0);
    tc_heap_give(grown, heap);
    tc_heap_free(heap);
}

/* Small blocks, and blocks too large for the heap's size classes, taken and given back in random order. */
static void sessions(void **state)
{
    (void)state;
    enum { SESSIONS = 40 };
    struct tc_heap *heap = tc_heap_new();
    unsigned char *small[SESSIONS] = {NULL}, *large[SESSIONS] = {NULL};
    uint64_t random = 1;
    for (unsigned i = 0; i < 4000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned at = (unsigned)(random >> 40) % SESSIONS;
        unsigned char **which = random >> 63 ? &small[at] : &large[at];
        size_t size = which == &small[at] ? 1200 : 16451;
        if (*which) {
            for (size_t k = 0; k < size; k += 7)
                assert_int_equal((*which)[k], at);
            tc_heap_give(*which, heap);
            *which = NULL;
            continue;
        }
        *which = size == 1200 ? tc_heap_take_zeroed(1, size, heap) : tc_heap_take(size, heap);
        assert_int_equal((uintptr_t)*which % _Alignof(max_align_t), 0);
        for (size_t k = 0; size == 1200 && k < size; k++)
            assert_int_equal((*which)[k], 0);
        memset(*which, (int)at, size);
    }
    for (unsigned i = 0; i < SESSIONS; i++) {
        tc_heap_give(small[i], heap);
        tc_heap_give(large[i], heap);
    }
    tc_heap_free(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reuses_and_trims),
        cmocka_unit_test(secrets_are_overwritten),
        cmocka_unit_test(keeps_no_more_than_a_bound),
        cmocka_unit_test(sizes),
        cmocka_unit_test(sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
