/* The estimate of a path's bandwidth-delay product (tc_h2_bdp) without a connection: when the next PING may go out, and
 * when the window doubles. flow_test.c has a connection that uses the estimate. */
#include "http2/bdp.h"

#include "support/cmocka.h"

enum { WINDOW = 65536 };

static uint64_t after_ms(uint64_t ms)
{
    return ms * TC_NS_PER_MS;
}

/* Queues a PING at `at_ms`; `bytes` bytes come until its answer 10 ms later. Returns whether the window grew. */
static bool measure(struct tc_h2_bdp *b, uint64_t bytes, uint64_t at_ms)
{
    tc_h2_bdp_start(b, 0, after_ms(at_ms));
    b->bytes = bytes;
    return tc_h2_bdp_on_ack(b, after_ms(at_ms + 10));
}

static void filled_windows_double(void **state)
{
    (void)state;
    struct tc_h2_bdp b;
    tc_h2_bdp_init(&b, WINDOW, false);
    assert_false(measure(&b, WINDOW / 2, 0));
    assert_int_equal(b.window_bytes, WINDOW);
    assert_true(measure(&b, WINDOW, 1000));
    assert_int_equal(b.window_bytes, 2 * WINDOW);
    assert_int_equal(b.not_before_ms, 1020); /* a round trip after the answer */
    /* No growth without a bandwidth above that of the last growth. */
    b.window_bytes = WINDOW;
    assert_false(measure(&b, WINDOW, 2000));
    for (uint64_t bytes = WINDOW; b.window_bytes < TC_H2_MAX_WINDOW; bytes *= 2)
        assert_true(measure(&b, 2 * bytes, 3000));
    measure(&b, 1 << 30, 4000);
    assert_int_equal(b.window_bytes, TC_H2_MAX_WINDOW);
}

static void pings_become_rarer(void **state)
{
    (void)state;
    struct tc_h2_bdp b;
    tc_h2_bdp_init(&b, WINDOW, false);
    uint64_t at_ms = 0, last_ms = 0;
    for (int i = 0; i < 10; i++) {
        assert_false(measure(&b, 2000, at_ms));
        assert_in_range(b.not_before_ms - at_ms - 10, last_ms, 10000);
        last_ms = b.not_before_ms - at_ms - 10;
        at_ms = b.not_before_ms;
    }
    assert_int_equal(last_ms, 10000);
}

static void an_answer_without_a_ping_counts_nothing(void **state)
{
    (void)state;
    struct tc_h2_bdp b;
    tc_h2_bdp_init(&b, 0, false);
    assert_int_equal(b.window_bytes, 1);
    b.bytes = 1000;
    assert_false(tc_h2_bdp_on_ack(&b, 1));
    assert_int_equal(b.window_bytes, 1);
}

/* A PING that is out at a squeeze stays out: no other PING goes out before its answer. The bytes that came before the
 * squeeze do not count. */
static void a_squeeze_keeps_the_ping_that_is_out(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    struct tc_h2_bdp b;
    tc_h2_bdp_init(&b, WINDOW, false);
    tc_h2_bdp_start(&b, WINDOW, tc_loop_now_ns(loop));
    tc_h2_bdp_squeeze(&b, WINDOW);
    assert_true(b.off);
    b.off = false;
    assert_false(tc_h2_bdp_on_data(&b, 2000, loop));
    assert_false(tc_h2_bdp_on_ack(&b, tc_loop_now_ns(loop)));
    assert_int_equal(b.window_bytes, WINDOW);
    tc_loop_advance(loop, 1000);
    assert_true(tc_h2_bdp_on_data(&b, 2000, loop));
    tc_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filled_windows_double),
        cmocka_unit_test(pings_become_rarer),
        cmocka_unit_test(an_answer_without_a_ping_counts_nothing),
        cmocka_unit_test(a_squeeze_keeps_the_ping_that_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
