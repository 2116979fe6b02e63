/* Memory that is kept for reuse is poisoned while it is free, and unpoisoned when it is handed out. Arenas and blocks
 * unpoison exactly the bytes that were asked for. */
#include "base/poison.h"

#include "base/arena.h"
#include "base/blocks.h"
#include "base/heap.h"
#include "support/cmocka.h"

/* Without AddressSanitizer nothing is poisoned, and the test is skipped. */
#define NEED_ASAN()                                                                                                    \
    if (!TC_POISONS)                                                                                                   \
    skip()

static void assert_usable(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_false(tc_is_poisoned(at + i));
}

static void assert_poisoned(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_true(tc_is_poisoned(at + i));
}

static void arenas(void **state)
{
    (void)state;
    NEED_ASAN();
    for (size_t budget = 0; budget <= 100000; budget += 100000) {
        struct tc_arena a;
        tc_arena_init(&a, 256, budget);
        char *first = tc_arena_alloc(&a, 10), *second = tc_arena_alloc(&a, 33);
        assert_ptr_equal(second, first + 16);
        assert_usable(first, 10);
        assert_poisoned(first + 10, 6);
        assert_usable(second, 33);
        assert_poisoned(second + 33, 256 - 16 - 33);
        tc_arena_reset(&a);
        assert_poisoned(first, 256);
        assert_ptr_equal(tc_arena_alloc(&a, 5), first);
        assert_usable(first, 5);
        assert_poisoned(first + 5, 251);
        tc_arena_fini(&a);
    }
}

static void blocks(void **state)
{
    (void)state;
    NEED_ASAN();
    static const size_t sizes[] = {1, 100, 2048, TC_BLOCKS_LARGE};
    struct tc_blocks *b = tc_blocks_new();
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        char *block = tc_blocks_try_take(b, sizes[i]);
        assert_usable(block, sizes[i]);
        if (i < 2)
            assert_poisoned(block + sizes[i], 128 - sizes[i]);
        tc_blocks_give(block);
        assert_poisoned(block, sizes[i]);
        assert_ptr_equal(tc_blocks_try_take(b, sizes[i]), block);
        assert_usable(block, sizes[i]);
        tc_blocks_give(block);
    }
    tc_blocks_end(b);
}

static void heaps(void **state)
{
    (void)state;
    NEED_ASAN();
    struct tc_heap *heap = tc_heap_new();
    char *block = tc_heap_take(64, heap);
    assert_usable(block, 64);
    tc_heap_give(block, heap);
    assert_poisoned(block, 64);
    assert_ptr_equal(tc_heap_take_zeroed(8, 8, heap), block);
    assert_usable(block, 64);
    tc_heap_give_secret(block, heap);
    assert_poisoned(block, 64);
    tc_heap_free(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas),
        cmocka_unit_test(blocks),
        cmocka_unit_test(heaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
