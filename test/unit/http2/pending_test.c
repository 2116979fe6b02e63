/* Received bytes that wait to be decoded (tc_h2_pending): in order, in a block of memory that counts as lent and is
 * given back when no byte waits. */
#include "http2/pending.h"

#include <string.h>

#include "support/cmocka.h"

static void check(const struct tc_h2_pending *p, const char *want)
{
    struct tc_slice bytes = tc_h2_pending_bytes(p);
    assert_int_equal(bytes.len, strlen(want));
    if (bytes.len)
        assert_memory_equal(bytes.data, want, bytes.len);
}

static void bytes_wait_in_order(void **state)
{
    (void)state;
    struct tc_blocks *blocks = tc_blocks_new();
    struct tc_h2_pending p = {.blocks = blocks};
    check(&p, "");
    tc_h2_pending_skip(&p, 0);
    assert_true(tc_h2_pending_add(&p, "abc", 3));
    assert_true(tc_h2_pending_add(&p, "defg", 4));
    check(&p, "abcdefg");
    tc_h2_pending_skip(&p, 5);
    check(&p, "fg");
    assert_true(tc_h2_pending_add(&p, "hi", 2));
    check(&p, "fghi");
    tc_h2_pending_skip(&p, 1);
    tc_h2_pending_cut(&p, 2);
    check(&p, "gh");
    tc_h2_pending_skip(&p, 2);
    check(&p, "");
    assert_null(p.data);
    assert_true(tc_h2_pending_add(&p, "x", 1));
    tc_h2_pending_cut(&p, 0);
    assert_null(p.data);
    tc_blocks_end(blocks);
}

/* While bytes only come, the memory is at most twice their number. While bytes come and go, it is at most four times
 * the most that waited. */
static void what_waits_is_counted(void **state)
{
    (void)state;
    enum { PIECE = 1000, MOST = 50 };
    static const char piece[PIECE];
    struct tc_blocks *blocks = tc_blocks_new();
    struct tc_h2_pending p = {.blocks = blocks};
    for (int round = 0; round < 3; round++) {
        for (size_t n = 1; n <= MOST; n++) {
            assert_true(tc_h2_pending_add(&p, piece, PIECE));
            assert_in_range(tc_blocks_lent(blocks), n * PIECE, 2 * n * PIECE);
        }
        for (size_t n = 0; n < 4 * MOST; n++) {
            tc_h2_pending_skip(&p, PIECE);
            assert_true(tc_h2_pending_add(&p, piece, PIECE));
            assert_in_range(tc_blocks_lent(blocks), MOST * PIECE, 4 * MOST * PIECE);
        }
        tc_h2_pending_skip(&p, (size_t)MOST * PIECE);
        assert_int_equal(tc_blocks_lent(blocks), 0);
    }
    tc_blocks_end(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_wait_in_order),
        cmocka_unit_test(what_waits_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
