/* Blocks: reuse, the bounds on free blocks, blocks given back by other threads and after tc_blocks_end, the count of
 * lent bytes, and blocks that change their size. Each test has a struct tc_blocks of its own, and the test's thread is
 * the taker. Only in other_threads_give_back are there other threads. */
#include "base/blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/sanitizer.h"

static void a_block_is_used_again(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 127, 128, 129, 1000, TC_BLOCKS_LARGEST, TC_BLOCKS_LARGE_OVER + 1, TC_BLOCKS_LARGE};
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        struct tc_blocks *b = tc_blocks_new();
        char *first = tc_blocks_try_take(b, sizes[i]);
        assert_int_equal((uintptr_t)first % _Alignof(max_align_t), 0);
        memset(first, 'x', sizes[i]);
        tc_blocks_give(first);
        char *second = tc_blocks_try_take(b, sizes[i]);
        assert_ptr_equal(first, second);
        char *other = tc_blocks_try_take(b, sizes[i]);
        assert_ptr_not_equal(other, second);
        tc_blocks_give(second);
        tc_blocks_give(other);
        tc_blocks_end(b);
    }
}

/* Blocks of sizes that are not reused, and blocks taken without a tc_blocks (NULL), come from the system: they can be
 * given back after tc_blocks_end. */
static void blocks_of_the_system(void **state)
{
    (void)state;
    static const size_t sizes[] = {TC_BLOCKS_LARGEST + 1, TC_BLOCKS_LARGE_OVER, TC_BLOCKS_LARGE + 1};
    struct tc_blocks *b = tc_blocks_new();
    char *taken[3], *alone = tc_blocks_try_take(NULL, 10);
    for (size_t i = 0; i < 3; i++) {
        taken[i] = tc_blocks_try_take(b, sizes[i]);
        memset(taken[i], 'x', sizes[i]);
    }
    memset(alone, 'x', 10);
    tc_blocks_end(b);
    for (size_t i = 0; i < 3; i++)
        tc_blocks_give(taken[i]);
    tc_blocks_give(alone);
    tc_blocks_end(NULL);
}

/* Of ten large blocks that are given back, four are kept for reuse. */
static void few_large_ones_are_kept(void **state)
{
    (void)state;
    struct tc_blocks *b = tc_blocks_new();
    char *lent[10];
    for (unsigned i = 0; i < 10; i++) {
        lent[i] = tc_blocks_try_take(b, TC_BLOCKS_LARGE);
        memcpy(lent[i], "kept", 5);
    }
    for (unsigned i = 0; i < 10; i++)
        tc_blocks_give(lent[i]);
    for (unsigned i = 0; i < 4; i++) {
        lent[i] = tc_blocks_try_take(b, TC_BLOCKS_LARGE_OVER + 1);
        assert_memory_equal(lent[i], "kept", 5);
    }
    assert_false(tc_blocks_keeps(b, TC_BLOCKS_LARGE));
    for (unsigned i = 0; i < 4; i++)
        tc_blocks_give(lent[i]);
    tc_blocks_end(b);
}

/* tc_blocks_keeps is true after a block of a reused size was given back, until it is taken again. It is never true for
 * other sizes. */
static void what_lies_ready(void **state)
{
    (void)state;
    static const size_t reused[] = {1, TC_BLOCKS_LARGEST, TC_BLOCKS_LARGE_OVER + 1, TC_BLOCKS_LARGE};
    static const size_t others[] = {TC_BLOCKS_LARGEST + 1, TC_BLOCKS_LARGE_OVER, TC_BLOCKS_LARGE + 1};
    struct tc_blocks *b = tc_blocks_new();
    for (size_t i = 0; i < TC_ARRAY_LEN(reused); i++) {
        struct tc_blocks *fresh = tc_blocks_new();
        assert_true(tc_blocks_reuses(reused[i]));
        assert_false(tc_blocks_keeps(fresh, reused[i]));
        assert_false(tc_blocks_keeps(NULL, reused[i]));
        char *block = tc_blocks_try_take(fresh, reused[i]);
        assert_false(tc_blocks_keeps(fresh, reused[i]));
        tc_blocks_give(block);
        assert_true(tc_blocks_keeps(fresh, reused[i]));
        assert_ptr_equal(tc_blocks_try_take(fresh, reused[i]), block);
        assert_false(tc_blocks_keeps(fresh, reused[i]));
        tc_blocks_give(block);
        tc_blocks_end(fresh);
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(others); i++) {
        assert_false(tc_blocks_reuses(others[i]));
        tc_blocks_give(tc_blocks_try_take(b, others[i]));
        assert_false(tc_blocks_keeps(b, others[i]));
    }
    tc_blocks_end(b);
}

enum { MANY = 5000 };

/* Of 5000 small blocks that are given back at once, 1024 are kept for reuse. */
static void what_is_kept_is_bounded(void **state)
{
    (void)state;
    static char *lent[MANY];
    struct tc_blocks *b = tc_blocks_new();
    unsigned kept = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            kept += tc_blocks_keeps(b, 100);
            lent[i] = tc_blocks_try_take(b, 100);
            if (round == 1 && i < 100)
                assert_memory_equal(lent[i], "kept", 5);
            memcpy(lent[i], round ? "new" : "kept", round ? 4 : 5);
        }
        for (unsigned i = 0; i < MANY; i++)
            tc_blocks_give(lent[i]);
    }
    assert_int_equal(kept, 1024);
    tc_blocks_end(b);
}

static void blocks_outlive_their_owner(void **state)
{
    (void)state;
    struct tc_blocks *b = tc_blocks_new();
    char *kept = tc_blocks_try_take(b, 10), *lent[3];
    for (unsigned i = 0; i < 3; i++)
        lent[i] = tc_blocks_try_take(b, 100u << i);
    tc_blocks_give(kept);
    tc_blocks_end(b);
    for (unsigned i = 0; i < 3; i++) {
        memset(lent[i], 'x', 100u << i);
        tc_blocks_give(lent[i]);
    }
}

/* One thread takes blocks, writes to them and puts them into slots. If the slot of a block is full, that thread gives
 * the block back. Two other threads read the blocks of the slots and give them back, the last blocks perhaps after
 * tc_blocks_end. */
enum { ROUNDS = 20000, SLOTS = 64 };

static _Atomic(char *) slots[SLOTS];
static atomic_bool over; /* no more blocks come */

/* `arg` is an unsigned: the thread counts in it the blocks that it read "full" in. */
static void *give_back(void *arg)
{
    unsigned at = 0, *given = arg;
    for (;;) {
        bool last = atomic_load(&over);
        bool any = false;
        for (unsigned i = 0; i < SLOTS; i++) {
            char *block = atomic_exchange(&slots[at++ % SLOTS], NULL);
            if (!block)
                continue;
            any = true;
            *given += strcmp(block, "full") == 0;
            tc_blocks_give(block);
        }
        if (last && !any)
            return NULL;
    }
}

static void other_threads_give_back(void **state)
{
    (void)state;
    struct tc_blocks *b = tc_blocks_new();
    pthread_t threads[2];
    unsigned given[2] = {0, 0}, refused = 0;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, give_back, &given[i]), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *block = tc_blocks_try_take(b, 64 + i % 300), *none = NULL;
        memcpy(block, "full", 5);
        if (!atomic_compare_exchange_strong(&slots[i % SLOTS], &none, block)) {
            refused++;
            tc_blocks_give(block);
        }
    }
    tc_blocks_end(b);
    atomic_store(&over, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(given[0] + given[1] + refused, ROUNDS);
}

static void what_is_lent_is_counted(void **state)
{
    (void)state;
    struct tc_blocks *b = tc_blocks_new();
    assert_int_equal(tc_blocks_lent(b), 0);
    char *small = tc_blocks_try_take(b, 100), *middle = tc_blocks_try_take(b, 5000),
         *large = tc_blocks_try_take(b, 1000000);
    assert_int_equal(tc_blocks_lent(b), 128 + 5000 + TC_BLOCKS_LARGE);
    tc_blocks_give(large);
    tc_blocks_give(small);
    assert_int_equal(tc_blocks_lent(b), 5000);
    small = tc_blocks_try_take(b, 1); /* used again */
    assert_int_equal(tc_blocks_lent(b), 128 + 5000);
    tc_blocks_give(small);
    tc_blocks_give(middle);
    assert_int_equal(tc_blocks_lent(b), 0);
    tc_blocks_end(b);
}

/* AddressSanitizer and ThreadSanitizer end the process for a size that no system gives. */
static const bool sanitizers_allow_it = !SANITIZER_ADDRESS && !SANITIZER_THREAD;

/* A block that changes its size keeps its bytes, also when the system does not give the new size. tc_blocks_lent counts
 * the present size. */
static void a_block_changes_its_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 3000, 100000, 2000000, 100, 7};
    struct tc_blocks *b = tc_blocks_new(), *homes[] = {b, NULL};
    for (size_t h = 0; h < TC_ARRAY_LEN(homes); h++) {
        char *block = NULL;
        for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
            block = tc_blocks_try_resize(homes[h], block, sizes[i]);
            assert_non_null(block);
            if (i == 0)
                memcpy(block, "bytes", 6);
            assert_string_equal(block, "bytes");
            assert_int_equal(tc_blocks_lent(b), homes[h] ? sizes[i] : 0);
        }
        if (sanitizers_allow_it)
            assert_null(tc_blocks_try_resize(homes[h], block, SIZE_MAX / 2));
        assert_string_equal(block, "bytes");
        assert_int_equal(tc_blocks_lent(b), homes[h] ? 7 : 0);
        if (homes[h]) { /* the block outlives its owner */
            tc_blocks_end(b);
            b = tc_blocks_new();
        }
        tc_blocks_give(block);
    }
    tc_blocks_end(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_used_again),
        cmocka_unit_test(blocks_of_the_system),
        cmocka_unit_test(few_large_ones_are_kept),
        cmocka_unit_test(what_is_kept_is_bounded),
        cmocka_unit_test(blocks_outlive_their_owner),
        cmocka_unit_test(other_threads_give_back),
        cmocka_unit_test(what_lies_ready),
        cmocka_unit_test(what_is_lent_is_counted),
        cmocka_unit_test(a_block_changes_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
