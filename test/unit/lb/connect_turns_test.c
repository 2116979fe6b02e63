/* lb/connect_turns: the policies of a channel share the parts that may begin in one turn of the loop. A struct work
 * plays a policy: do_parts counts its parts. It lives on the test's stack, so a test leaves none in line. */
#include "lb/connect_turns.h"

#include "support/cmocka.h"

struct work {
    struct tc_connect_turn turn;
    uint32_t parts, done; /* parts to do in all, and done so far */
    struct work *next;    /* requested from inside do_parts, borrowed; NULL: none */
    struct tc_connect_turns *q;
};

static bool do_parts(struct tc_connect_turn *t, uint32_t *left)
{
    struct work *w = TC_CONTAINER_OF(t, struct work, turn);
    uint32_t n = TC_MIN(*left, w->parts - w->done);
    *left -= n;
    w->done += n;
    if (w->next)
        tc_connect_turn_request(w->q, &w->next->turn);
    return w->done < w->parts;
}

static struct tc_loop *loop;
static struct tc_connect_turns turns;

static int setup(void **state)
{
    (void)state;
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    tc_connect_turns_init(&turns, loop);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_task_cancel(&turns.end);
    tc_loop_free(loop);
    return 0;
}

static void make(struct work *w, uint32_t parts)
{
    *w = (struct work){.parts = parts, .q = &turns};
    tc_connect_turn_init(&w->turn, do_parts);
}

/* Returns how many parts the n policies of `w` have done together. */
static uint32_t done(const struct work *w, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += w[i].done;
    return sum;
}

/* A turn of the loop does at most TC_CONNECT_TURN_PARTS parts, however many policies wait, and all policies finish. */
static void a_turn_is_shared(void **state)
{
    (void)state;
    enum { N = 40, EACH = 100 };
    struct work w[N];
    for (size_t i = 0; i < N; i++) {
        make(&w[i], EACH);
        tc_connect_turn_request(&turns, &w[i].turn);
    }
    assert_int_equal(done(w, N), TC_CONNECT_TURN_PARTS);
    uint32_t loop_turns = 0;
    for (uint32_t before; (before = done(w, N)) < N * EACH; loop_turns++) {
        assert_true(tc_loop_turn(loop, 0));
        assert_in_range(done(w, N) - before, 1, TC_CONNECT_TURN_PARTS);
    }
    assert_in_range(loop_turns, N * EACH / TC_CONNECT_TURN_PARTS - 1, N * EACH / TC_CONNECT_TURN_PARTS + 1);
    tc_loop_drain(loop);
    assert_int_equal(tc_loop_timeout_ms(loop), -1);
}

/* A policy with few parts does not wait until policies with many parts have finished, since these go to the end of the
 * line after each run. */
static void short_ones_do_not_wait_for_long_ones(void **state)
{
    (void)state;
    struct work w[3];
    make(&w[0], 100000);
    make(&w[1], 100000);
    make(&w[2], 1);
    for (size_t i = 0; i < 3; i++)
        tc_connect_turn_request(&turns, &w[i].turn);
    for (int i = 0; i < 3; i++)
        tc_loop_turn(loop, 0);
    assert_int_equal(w[2].done, 1);
    assert_int_equal(w[0].done + w[1].done + w[2].done, 4 * TC_CONNECT_TURN_PARTS);
    assert_true(w[1].done >= TC_CONNECT_TURN_PARTS);
    /* A policy that is taken out of the line does no more parts. */
    uint32_t before = w[0].done;
    tc_list_remove(&w[0].turn.link);
    tc_loop_drain(loop);
    assert_int_equal(w[0].done, before);
    assert_int_equal(w[1].done, w[1].parts);
}

static void a_turn_requests_another(void **state)
{
    (void)state;
    struct work first, second;
    make(&first, 2 * TC_CONNECT_TURN_PARTS);
    make(&second, 5);
    first.next = &second;
    tc_connect_turn_request(&turns, &first.turn);
    tc_loop_drain(loop);
    assert_int_equal(first.done, first.parts);
    assert_int_equal(second.done, second.parts);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_turn_is_shared),
        TEST(short_ones_do_not_wait_for_long_ones),
        TEST(a_turn_requests_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
