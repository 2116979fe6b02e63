#include "lb/priority.h"

#include <stdlib.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fake_lb.h"

#include "base/mem.h"
#include "lb/pick_first.h"
#include "lb/ring.h"
#include "lb/ring_hash.h"
#include "lb/round_robin.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define FAILOVER_MS 10000
#define RETENTION_MS 900000

static int setup(void **state)
{
    *state = fake_lb_new("priority_experimental");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

typedef struct tc_lb_config *(*make_config_fn)(void);

static struct tc_lb_config *ring_hash(void)
{
    return tc_ring_hash_config_new(TC_RING_DEFAULT_MIN, TC_RING_DEFAULT_MAX, tc_slice_of(NULL, 0));
}

/* Children by letters ("ab"), all of one policy; a capital letter ignores requests for re-resolution. */
static struct tc_lb_config *children(const char *names, make_config_fn make)
{
    struct tc_priority_child list[8] = {0};
    size_t n = strlen(names);
    for (size_t i = 0; i < n; i++) {
        char name = (char)(names[i] | 0x20);
        list[i] = (struct tc_priority_child){tc_rstr_new(&name, 1), make(), names[i] != name};
    }
    struct tc_lb_config *config = tc_priority_config_new(list, n);
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    return config;
}

/* Child a has endpoint A, b has B, c has C. */
static void update(struct fake_lb *f, const char *names)
{
    fake_update(f, fake_endpoint_tree("a", A, "b", B, "c", C, NULL), children(names, tc_round_robin_config_new), NULL);
}

static void the_highest_alone(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    assert_connects(f, A " ");
    fake_set(f, A, TORC_READY);
    assert_string_equal(fake_pick(f), A);
    unsigned reports = f->reports;
    update(f, "abc");
    update(f, "ab");
    tc_loop_advance(f->loop, 2 * FAILOVER_MS);
    assert_int_equal(fake_count(f, NULL), 1);
    assert_int_equal(f->reports, reports);
    assert_string_equal(fake_pick(f), A);
    TC_CASE(PR01);
}

static void the_next_when_it_fails(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_set_failed(f, A, "down");
    assert_connects(f, A " " B " ");
    assert_int_equal(f->state, TORC_CONNECTING);
    assert_string_equal(fake_pick(f), "QUEUE");
    TC_CASE(PR16);
    fake_set(f, B, TORC_READY);
    assert_string_equal(fake_pick(f), B);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
    TC_CASE(PR02);
}

static void the_failover_timer(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    tc_loop_advance(f->loop, FAILOVER_MS - 1);
    assert_connects(f, A " ");
    tc_loop_advance(f->loop, 1);
    assert_connects(f, B " ");
    fake_set(f, B, TORC_READY);
    assert_string_equal(fake_pick(f), B);
    fake_set(f, A, TORC_READY);
    assert_string_equal(fake_pick(f), A);
    TC_CASE(PR03);
}

static void connecting_again_does_not_restart_it(void **state)
{
    struct fake_lb *f = *state;
    /* Two endpoints: the policy reports CONNECTING anew as they change. */
    fake_update(f, fake_endpoint_tree("a", A " " C, "b", B, NULL), children("ab", tc_round_robin_config_new), NULL);
    tc_loop_advance(f->loop, FAILOVER_MS - 1000);
    fake_set_failed(f, A, "down");
    fake_update(f, fake_endpoint_tree("a", C, "b", B, NULL), children("ab", tc_round_robin_config_new), NULL);
    assert_int_equal(fake_count(f, B), 0);
    tc_loop_advance(f->loop, 1000);
    assert_int_equal(fake_count(f, B), 1);
    TC_CASE(PR04);
}

static void the_timer_restarts_after_ready_only(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_set(f, A, TORC_READY);
    tc_loop_advance(f->loop, 3 * FAILOVER_MS);
    fake_set(f, A, TORC_IDLE); /* round_robin connects again: READY -> CONNECTING */
    assert_int_equal(f->state, TORC_CONNECTING);
    assert_string_equal(fake_pick(f), "QUEUE");
    assert_int_equal(fake_count(f, B), 0);
    TC_CASE(PR06);
    tc_loop_advance(f->loop, FAILOVER_MS - 1);
    assert_int_equal(fake_count(f, B), 0);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(fake_count(f, B), 1);
    fake_set(f, B, TORC_READY);
    /* Failed more recently than READY: no new wait when it connects again. */
    fake_set_failed(f, A, "down");
    fake_update(f, fake_endpoint_tree("a", A " " C, "b", B, NULL), children("ab", tc_round_robin_config_new), NULL);
    assert_string_equal(fake_pick(f), B);
    TC_CASE(PR05);
}

static void an_idle_child_is_chosen(void **state)
{
    struct fake_lb *f = *state;
    f->args.has_hash = true;
    fake_update(f, fake_endpoint_tree("a", A, "b", B, NULL), children("ab", ring_hash), NULL);
    assert_int_equal(f->state, TORC_IDLE);
    assert_int_equal(fake_count(f, NULL), 0);
    fake_pick(f);
    fake_set_failed(f, A, "down");
    assert_int_equal(f->state, TORC_IDLE); /* b's */
    fake_pick(f);
    fake_set(f, B, TORC_READY);
    fake_set(f, A, TORC_IDLE);
    fake_set(f, A, TORC_READY);
    assert_string_equal(fake_pick(f), A);
    fake_set(f, A, TORC_IDLE); /* ring_hash goes idle: still the first */
    assert_int_equal(f->state, TORC_IDLE);
    assert_string_equal(fake_pick(f), "QUEUE");
    assert_int_equal(fake_state(f, A), TORC_CONNECTING);
    tc_loop_advance(f->loop, RETENTION_MS);
    assert_int_equal(fake_count(f, B), 1); /* reactivated when a's wait was over */
    TC_CASE(PR07);
}

static void lower_children_are_kept_for_a_while(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_set_failed(f, A, "down");
    fake_set(f, B, TORC_READY);
    fake_set(f, A, TORC_IDLE);
    fake_set(f, A, TORC_READY);
    assert_string_equal(fake_pick(f), A);
    tc_loop_advance(f->loop, RETENTION_MS - 1);
    assert_int_equal(fake_count(f, B), 1);
    /* Used again in time: the same connection, and the wait begins anew. */
    fake_set(f, A, TORC_IDLE);
    fake_set_failed(f, A, "down");
    fake_take_connects(f);
    assert_string_equal(fake_pick(f), B);
    assert_connects(f, "");
    tc_loop_advance(f->loop, 2 * RETENTION_MS);
    assert_int_equal(fake_count(f, B), 1);
    fake_set(f, A, TORC_IDLE);
    fake_set(f, A, TORC_READY);
    tc_loop_advance(f->loop, RETENTION_MS);
    assert_int_equal(fake_count(f, B), 0);
    /* A115: what leaves the config ends at once. */
    fake_set(f, A, TORC_IDLE);
    fake_set_failed(f, A, "down");
    fake_set(f, B, TORC_READY);
    update(f, "a");
    assert_int_equal(fake_count(f, B), 0);
    TC_CASE(PR08);
}

static void the_switch_keeps_removed_children(void **state)
{
    struct fake_lb *f = *state;
    setenv("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE", "true", 1);
    update(f, "ab");
    fake_set(f, A, TORC_READY);
    fake_take_connects(f);
    update(f, "b");
    assert_int_equal(fake_count(f, A), 1);
    fake_set(f, B, TORC_READY);
    fake_take_connects(f);
    update(f, "ab");
    assert_connects(f, "");
    assert_string_equal(fake_pick(f), A);
    update(f, "b");
    tc_loop_advance(f->loop, RETENTION_MS);
    assert_int_equal(fake_count(f, A), 0);
    unsetenv("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE");
}

static void a_reactivated_connecting_child_serves(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    tc_loop_advance(f->loop, FAILOVER_MS); /* both connect; b's timer runs */
    fake_set(f, A, TORC_READY);            /* b is deactivated while it connects */
    tc_loop_advance(f->loop, FAILOVER_MS); /* b's timer is over */
    fake_set(f, A, TORC_IDLE);
    fake_set_failed(f, A, "down");
    assert_int_equal(f->state, TORC_CONNECTING);
    assert_string_equal(fake_pick(f), "QUEUE");
    fake_set(f, B, TORC_READY);
    assert_string_equal(fake_pick(f), B);
    TC_CASE(PR09);
}

static void all_failing_is_the_last_ones_failure(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_set_failed(f, A, "a is down");
    fake_set_failed(f, B, "b is down");
    assert_int_equal(f->state, TORC_TRANSIENT_FAILURE);
    assert_string_equal(fake_pick(f), "FAIL");
    assert_string_equal(fake_pick_error(f), "connections to all backends failing; last error: " B ": b is down");
    assert_string_equal(tc_status_text(&f->status), fake_pick_error(f));
    TC_CASE(PR10);
}

static void all_connecting_is_the_first(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    tc_loop_advance(f->loop, 2 * FAILOVER_MS);
    assert_int_equal(fake_state(f, A), TORC_CONNECTING);
    assert_int_equal(fake_state(f, B), TORC_CONNECTING);
    assert_int_equal(f->state, TORC_CONNECTING);
    assert_string_equal(fake_pick(f), "QUEUE");
    fake_set_failed(f, B, "down");
    assert_int_equal(f->state, TORC_CONNECTING); /* a may still come */
    TC_CASE(PR11);
}

static void an_empty_list_fails(void **state)
{
    struct fake_lb *f = *state;
    update(f, "");
    assert_int_equal(f->state, TORC_TRANSIENT_FAILURE);
    assert_string_equal(fake_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_pick_error(f), "priority policy has empty priority list");
    TC_CASE(PR12);
    update(f, "a");
    fake_set(f, A, TORC_READY);
    assert_string_equal(fake_pick(f), A);
    update(f, "");
    assert_string_equal(fake_pick(f), "FAIL");
    assert_int_equal(fake_count(f, NULL), 0);
    update(f, "a");
    fake_set(f, A, TORC_READY);
    assert_string_equal(fake_pick(f), A);
    TC_CASE(PR18);
}

static void a_child_may_change_its_priority(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_set_failed(f, A, "down");
    fake_set(f, B, TORC_READY);
    fake_take_connects(f);
    update(f, "ba");
    assert_string_equal(fake_pick(f), B);
    update(f, "bc");
    assert_string_equal(fake_pick(f), B);
    assert_connects(f, "");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
    TC_CASE(PR13);
}

static void no_choice_while_updating(void **state)
{
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_set_failed(f, A, "down");
    fake_set(f, B, TORC_READY);
    unsigned reports = f->reports;
    /* Both children report from inside the update: one choice comes of it. */
    fake_update(f, fake_endpoint_tree("a", "", "b", "", NULL), children("ab", tc_round_robin_config_new), "none");
    assert_int_equal(f->reports, reports + 1);
    assert_int_equal(f->state, TORC_TRANSIENT_FAILURE);
    fake_pick(f);
    assert_string_equal(fake_pick_error(f), "empty address list: none");
    TC_CASE(PR14);
}

static void requests_for_reresolution(void **state)
{
    struct fake_lb *f = *state;
    update(f, "Ab");
    fake_set_failed(f, A, "down");
    assert_int_equal(f->reresolutions, 0);
    fake_set_failed(f, B, "down");
    assert_int_equal(f->reresolutions, 1);
    TC_CASE(PR15);
}

static void a_priority_without_endpoints(void **state)
{
    struct fake_lb *f = *state;
    fake_update(f, fake_endpoint_tree("b", B, NULL), children("ab", tc_round_robin_config_new), NULL);
    fake_set(f, B, TORC_READY);
    assert_string_equal(fake_pick(f), B);
    assert_int_equal(fake_count(f, NULL), 1);
    TC_CASE(PR20);
}

static void the_order_of_priorities_counts(void **state)
{
    struct fake_lb *f = *state;
    struct tc_lb_config *config = fake_config(
        f, "priority",
        "{'children': {'b': {'config': [{'round_robin': {}}]}, 'c': {'config': [{'x': {}}, {'pick_first': {}}]},"
        " 'a': {'config': [{'round_robin': {}}], 'ignoreReresolutionRequests': true}, 'unused': {}},"
        " 'priorities': ['c', 'a', 'b']}",
        NULL);
    assert_non_null(config);
    fake_update(f, fake_endpoint_tree("a", A, "b", B, "c", C, NULL), config, NULL);
    fake_set(f, C, TORC_READY);
    for (unsigned i = 0; i < 10; i++)
        assert_string_equal(fake_pick(f), C);
    assert_int_equal(fake_count(f, NULL), 1);
    TC_CASE(PR19);
}

static void stuck_in_failure(void **state)
{
    /* Several endpoints of the first priority fail; when one of them comes back, traffic does, without an update. */
    struct fake_lb *f = *state;
    f->args.has_hash = true;
    fake_update(f, fake_endpoint_tree("a", A " " C " 4.4.4.4:4", "b", B, NULL), children("ab", ring_hash), NULL);
    fake_pick(f);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const all[] = {A, C, "4.4.4.4:4"};
        for (unsigned k = 0; k < 3; k++)
            if (fake_state(f, all[k]) == TORC_CONNECTING)
                fake_set_failed(f, all[k], "down");
    }
    fake_pick(f);
    fake_set(f, B, TORC_READY);
    assert_string_equal(fake_pick(f), B);
    TC_CASE(RH34);
    fake_set(f, C, TORC_IDLE);
    fake_set(f, C, TORC_READY);
    assert_string_equal(fake_pick(f), C);
    TC_CASE(RH19);
}

static void config_faults(void **state)
{
    struct fake_lb *f = *state;
    char *why;
    assert_null(fake_config(f, "priority",
                            "{'children': {'a': {'config': [{'nope': {}}]}, 'b': {'config': [{'pick_first': {}}]}, "
                            "'c': {'config': []}}, 'priorities': ['b', 'z', 'b']}",
                            &why));
    assert_string_equal(why, "field [1].priority.priorities[1]: no child of that name; "
                             "field [1].priority.priorities[2]: names a child twice");
    tc_free(why);
    assert_null(
        fake_config(f, "priority", "{'children': {'a': {'config': [{'nope': {}}]}}, 'priorities': ['a']}", &why));
    assert_string_equal(why, "field [1].priority.children[\"a\"].config: no supported LB policy in the list: nope");
    tc_free(why);
    assert_null(fake_config(f, "priority", "{'children': {}, 'priorities': ['a']}", &why));
    tc_free(why);
    assert_null(fake_config(f, "priority", "{}", &why));
    tc_free(why);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_highest_alone),
        TEST(the_next_when_it_fails),
        TEST(the_failover_timer),
        TEST(connecting_again_does_not_restart_it),
        TEST(the_timer_restarts_after_ready_only),
        TEST(an_idle_child_is_chosen),
        TEST(lower_children_are_kept_for_a_while),
        TEST(the_switch_keeps_removed_children),
        TEST(a_reactivated_connecting_child_serves),
        TEST(all_failing_is_the_last_ones_failure),
        TEST(all_connecting_is_the_first),
        TEST(an_empty_list_fails),
        TEST(a_child_may_change_its_priority),
        TEST(no_choice_while_updating),
        TEST(requests_for_reresolution),
        TEST(a_priority_without_endpoints),
        TEST(the_order_of_priorities_counts),
        TEST(stuck_in_failure),
        TEST(config_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
