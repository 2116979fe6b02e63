/* round_robin on virtual time: turns, states and health of endpoints, updates, and long lists.
 *
 * The policy connects to all endpoints of a list, and picks the READY ones in turn. The policy's state is that of the
 * best endpoint: READY, CONNECTING, TRANSIENT_FAILURE. States and long lists are the work of lb/policies/petiole.h,
 * health is that of each endpoint's pick_first: what is tested of them here holds for least_request and
 * weighted_round_robin as well.
 *
 * A test sets the states that servers would cause (fake_lb_set). The tests of long lists update with begin_update,
 * which does not run the loop, so that they can act before all endpoints began to connect. The fake owns the policy,
 * which owns its subchannels. One thread. */
#include "lb/policies/round_robin.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define D "4.4.4.4:4"

static int setup(void **state)
{
    *state = fake_lb_new("round_robin");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static bool update(struct fake_lb *f, const char *endpoints)
{
    return fake_lb_update(f, fake_lb_endpoints(endpoints), fake_lb_config(f, "round_robin", "{}", NULL), NULL);
}

/* Makes `picks` picks. Sets counts[0] to counts[3] to how many of the picks went to A, B, C and D. */
static void count(struct fake_lb *f, unsigned picks, unsigned *counts)
{
    static const char *const all[] = {A, B, C, D};
    memset(counts, 0, 4 * sizeof(*counts));
    for (unsigned i = 0; i < picks; i++) {
        const char *at = fake_lb_pick(f);
        for (size_t k = 0; k < 4; k++)
            counts[k] += strcmp(at, all[k]) == 0;
    }
}

static void each_in_turn(void **state)
{
    TC_CASE(RR01);
    struct fake_lb *f = *state;
    unsigned counts[4];
    update(f, A " " B " " C " " A);
    assert_connects(f, A " " B " " C " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, C, TORC_CONNECTIVITY_READY);
    count(f, 300, counts);
    assert_int_equal(counts[0], 100);
    assert_int_equal(counts[1], 100);
    assert_int_equal(counts[2], 100);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

static void failing_ones_are_skipped(void **state)
{
    TC_CASE(RR02);
    struct fake_lb *f = *state;
    unsigned counts[4];
    update(f, A " " B " " C);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set_failed(f, B, "refused");
    fake_lb_set(f, C, TORC_CONNECTIVITY_READY);
    count(f, 100, counts);
    assert_int_equal(counts[0], 50);
    assert_int_equal(counts[2], 50);
    fake_lb_take_connects(f);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE); /* lost: connected again at once */
    assert_connects(f, A " ");
    assert_int_equal(f->reresolutions, 2);
    count(f, 10, counts);
    assert_int_equal(counts[2], 10);
    fake_lb_set_failed(f, A, "refused");
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, C, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, C, "gone");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f), "connections to all backends failing; last error: " C ": gone");
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
}

static void updates_fail_nothing(void **state)
{
    TC_CASE(RR03);
    struct fake_lb *f = *state;
    unsigned counts[4];
    update(f, A " " B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, B " " C " " D);
    assert_connects(f, C " " D " ");
    count(f, 10, counts);
    assert_int_equal(counts[1], 10);
    fake_lb_set(f, C, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, D, TORC_CONNECTIVITY_READY);
    count(f, 30, counts);
    assert_int_equal(counts[1], 10);
    assert_int_equal(counts[3], 10);
    update(f, A);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);

    /* The start is random. */
    unsigned first[3] = {0};
    for (unsigned i = 0; i < 300; i++) {
        struct fake_lb *g = fake_lb_new("round_robin");
        tc_rng_init_seed(tc_loop_rng(g->loop), i);
        update(g, A " " B " " C);
        fake_lb_set(g, A, TORC_CONNECTIVITY_READY);
        fake_lb_set(g, B, TORC_CONNECTIVITY_READY);
        fake_lb_set(g, C, TORC_CONNECTIVITY_READY);
        first[fake_lb_pick(g)[0] - '1']++;
        fake_lb_free(g);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(first[i], 60, 140);
}

static void an_equal_update_keeps_the_turn(void **state)
{
    TC_CASE(ED19);
    struct fake_lb *f = *state;
    char order[4][16];
    update(f, A " " B " " C " " D);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, C, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, D, TORC_CONNECTIVITY_READY);
    for (unsigned i = 0; i < 4; i++)
        snprintf(order[i], sizeof(order[i]), "%s", fake_lb_pick(f));
    for (unsigned i = 0; i < 40; i++) {
        update(f, A " " B " " C " " D);
        assert_string_equal(fake_lb_pick(f), order[i % 4]);
    }
    struct tc_picker *before = f->picker;
    update(f, A " " B " " C " " D);
    assert_ptr_equal(f->picker, before);
}

static void empty_and_errors(void **state)
{
    struct fake_lb *f = *state;
    assert_false(fake_lb_update(f, fake_lb_endpoints(""), tc_round_robin_config_new(), "why"));
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "empty address list: why");
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no such host");
    fake_lb_update_error(f, &error, tc_round_robin_config_new());
    fake_lb_pick(f);
    assert_string_equal(fake_lb_pick_error(f), "no such host");
    update(f, A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_update_error(f, &error, tc_round_robin_config_new());
    assert_string_equal(fake_lb_pick(f), A);
    tc_status_fini(&error);
}

/* Makes n endpoints 10.0.X.Y:1, numbered 250 * X + Y from `from` on. Returns one reference. */
static struct tc_endpoints *numbered(unsigned from, unsigned n)
{
    struct tc_buf b = {0};
    for (unsigned i = from; i < from + n; i++)
        tc_buf_printf(&b, "10.0.%u.%u:1 ", i / 250, i % 250);
    struct tc_endpoints *list = fake_lb_endpoints(tc_buf_cstr(&b));
    tc_buf_fini(&b);
    return list;
}

/* Updates the policy without running the loop: tasks wait, and so do endpoints that may not begin in this turn.
 * Takes ownership of `list`. */
static void begin_update(struct fake_lb *f, struct tc_endpoints *list)
{
    struct tc_lb_config *config = tc_round_robin_config_new();
    struct tc_status status =
        f->policy->ops->update(f->policy, &(struct tc_lb_update){.endpoints = list, .config = config});
    assert_true(tc_status_ok(&status));
    tc_endpoints_unref(list);
    tc_lb_config_unref(config);
}

enum { AT_ONCE = 128, MANY = 3 * AT_ONCE }; /* AT_ONCE is TC_CONNECT_TURN_PARTS */

/* Each turn of the loop begins to connect AT_ONCE endpoints of a long list. */
static void many_are_connected_in_turns(void **state)
{
    struct fake_lb *f = *state;
    begin_update(f, numbered(0, MANY));
    assert_int_equal(fake_lb_count(f, NULL), AT_ONCE);
    for (unsigned n = 2; n * AT_ONCE <= MANY; n++) {
        assert_true(tc_loop_turn(f->loop, 0));
        assert_int_equal(fake_lb_count(f, NULL), n * AT_ONCE);
    }
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    tc_loop_drain(f->loop);
    assert_int_equal(fake_lb_count(f, NULL), MANY);
    for (unsigned i = 0; i < MANY; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    for (unsigned i = 0; i < 2 * MANY; i++)
        assert_string_not_equal(fake_lb_pick(f), "QUEUE");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

/* The first endpoints are READY, or fail, before the last ones begin to connect. */
static void some_are_used_before_the_last_begin(void **state)
{
    struct fake_lb *f = *state;
    begin_update(f, numbered(0, MANY));
    for (unsigned i = 0; i < AT_ONCE; i++)
        fake_lb_queue_at(f, i, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_true(tc_loop_turn(f->loop, 0));
    assert_int_equal(fake_lb_state(f, "10.0.0.0:1"), TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING); /* not failing: other endpoints were not tried yet */
    fake_lb_queue_at(f, 0, TORC_CONNECTIVITY_READY);
    fake_lb_queue_at(f, AT_ONCE, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(fake_lb_count(f, NULL), 2 * AT_ONCE);
    assert_true(tc_loop_turn(f->loop, 0));
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), "10.0.0.0:1");
    assert_string_equal(fake_lb_pick(f), "10.0.0.0:1");
}

/* A new list comes while endpoints of the old list still wait to begin: an endpoint of both lists has one
 * subchannel. */
static void an_update_overtakes_another(void **state)
{
    struct fake_lb *f = *state;
    begin_update(f, numbered(0, MANY));
    begin_update(f, numbered(AT_ONCE / 2, MANY));          /* half of the AT_ONCE that began have left */
    assert_int_equal(fake_lb_count(f, NULL), AT_ONCE / 2); /* the rest begins in later turns */
    tc_loop_drain(f->loop);
    assert_int_equal(fake_lb_count(f, NULL), MANY);
    assert_int_equal(fake_lb_count(f, "10.0.0.0:1"), 0);
    assert_int_equal(fake_lb_count(f, "10.0.1.0:1"), 1);
    /* A short list, an empty list and the end of the policy each come while endpoints wait to begin. */
    begin_update(f, numbered(MANY, MANY));
    begin_update(f, numbered(0, 2));
    tc_loop_drain(f->loop);
    assert_int_equal(fake_lb_count(f, NULL), 2);
    begin_update(f, numbered(0, MANY));
    fake_lb_update(f, fake_lb_endpoints(""), tc_round_robin_config_new(), NULL);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    begin_update(f, numbered(0, MANY));
    f->policy->ops->reset_backoff(f->policy);
}

static void unhealthy_ones_are_skipped(void **state)
{
    TC_CASE(CH10);
    struct fake_lb *f = *state;
    unsigned counts[4];
    f->health = TC_HEALTH_PENDING;
    update(f, A " " B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set_health(f, A, TORC_STATUS_UNAVAILABLE, "not serving");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_health(f, B, TORC_STATUS_OK, "");
    assert_string_equal(fake_lb_pick(f), B);
    fake_lb_set_health(f, A, TORC_STATUS_OK, "");
    count(f, 100, counts);
    assert_true(counts[0] == 50 && counts[1] == 50);
    fake_lb_set_health(f, A, TORC_STATUS_UNAVAILABLE, "not serving");
    fake_lb_set_health(f, B, TORC_STATUS_UNAVAILABLE, "gone fishing");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_non_null(strstr(fake_lb_pick_error(f), B ": gone fishing"));
    /* The health becomes unknown, as when another service is to be checked: TRANSIENT_FAILURE stays. */
    fake_lb_set_health(f, A, TC_HEALTH_PENDING, "");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    fake_lb_set_health(f, A, TORC_STATUS_OK, "");
    assert_string_equal(fake_lb_pick(f), A);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY TF READY ");
    assert_connects(f, A " " B " ");
    /* A62: TRANSIENT_FAILURE sticks, also while the health of a new connection is not known. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "refused");
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    fake_lb_set_health(f, A, TORC_STATUS_OK, "");
    assert_string_equal(fake_lb_pick(f), A);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_in_turn),
        TEST(failing_ones_are_skipped),
        TEST(unhealthy_ones_are_skipped),
        TEST(updates_fail_nothing),
        TEST(an_equal_update_keeps_the_turn),
        TEST(empty_and_errors),
        TEST(many_are_connected_in_turns),
        TEST(some_are_used_before_the_last_begin),
        TEST(an_update_overtakes_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
