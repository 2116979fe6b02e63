/* A manual loop: a wake-up lasts one turn, and time never moves back. loop_test.c has the other tests of its time and
 * turns, ration_test.c those of its ration. */
#include "io/loop.h"

#include "support/cmocka.h"

static struct tc_loop *loop; /* of the present test */

static int setup(void **state)
{
    (void)state;
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_loop_free(loop);
    return 0;
}

static void a_wake_lasts_one_turn(void **state)
{
    (void)state;
    tc_loop_wake(loop);
    assert_int_equal(tc_loop_next_ms(loop), 0);
    tc_loop_turn(loop, 0);
    assert_int_equal(tc_loop_next_ms(loop), UINT64_MAX);
}

static void go_ahead(struct tc_task *task)
{
    (void)task;
    tc_loop_set_time(loop, tc_loop_now_ns(loop) + 500 * TC_NS_PER_MS);
}

static void time_never_moves_back(void **state)
{
    (void)state;
    struct tc_task ahead;
    uint64_t begin_ns = tc_loop_now_ns(loop);
    tc_loop_set_time(loop, begin_ns + 400);
    tc_loop_advance(loop, 0);
    assert_int_equal(tc_loop_now_ns(loop), begin_ns + 400);
    tc_loop_advance(loop, 1);
    assert_int_equal(tc_loop_now_ns(loop), begin_ns + 400 + TC_NS_PER_MS);
    tc_task_init(&ahead, go_ahead);
    tc_loop_defer(loop, &ahead);
    tc_loop_advance(loop, 10);
    assert_int_equal(tc_loop_now_ns(loop), begin_ns + 400 + 501 * TC_NS_PER_MS);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_wake_lasts_one_turn),
        T(time_never_moves_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
