/* priority on virtual time: failover, its timer, retention of children, configs, and the log. (many_names only parses
 * configs, and measures CPU time.)
 *
 * Children a, b, c have the endpoints A, B, C and are round_robin policies unless the test says otherwise. A text such
 * as "ab" lists the children from the highest priority on. fake_lb_count tells which children exist: a round_robin has
 * a subchannel at once, a ring_hash from its first pick on. The policy makes a child when all above it fail or take
 * longer than FAILOVER_MS to connect. A listed child that is no longer needed lasts RETENTION_MS. A child that failed
 * tries again when the test sets its endpoint to IDLE. The fake owns the policy and the loop; one thread. */
#include "lb/policies/priority.h"

#include <stdlib.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "lb/policies/pick_first.h"
#include "lb/policies/round_robin.h"
#include "lb/ring_hash/policy.h"
#include "ring/ring.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define FAILOVER_MS 10000   /* of the fake's env */
#define RETENTION_MS 900000 /* of the fake's env */

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

/* Returns one reference. */
typedef struct tc_lb_config *(*make_config_fn)(void);

static struct tc_lb_config *ring_hash(void)
{
    return tc_ring_hash_config_new(TC_RING_DEFAULT_MIN, TC_RING_DEFAULT_MAX, tc_slice_of(NULL, 0));
}

/* Returns a config of at most eight children, all of one policy, as one reference: "ab" is a first, then b.
 * Re-resolution requests of a child with a capital letter, which is named by the small letter, are ignored. */
static struct tc_lb_config *children(const char *names, make_config_fn make)
{
    struct tc_child_config list[8] = {0};
    size_t n = strlen(names);
    for (size_t i = 0; i < n; i++) {
        char name = (char)(names[i] | 0x20);
        list[i] = (struct tc_child_config){
            .name = tc_rstr_new(&name, 1), .config = make(), .ignore_reresolution_requests = names[i] != name};
    }
    struct tc_lb_config *config = tc_child_configs_new(&tc_priority_factory, list, n);
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    return config;
}

/* Updates to these children, which are round_robin policies. */
static void update(struct fake_lb *f, const char *names)
{
    fake_lb_update(f, fake_lb_endpoint_tree("a", A, "b", B, "c", C, NULL), children(names, tc_round_robin_config_new),
                   NULL);
}

static void the_highest_alone(void **state)
{
    TC_CASE(PR01);
    struct fake_lb *f = *state;
    update(f, "ab");
    assert_connects(f, A " ");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    unsigned reports = f->reports;
    update(f, "abc");
    update(f, "ab");
    tc_loop_advance(f->loop, 2 * FAILOVER_MS);
    assert_int_equal(fake_lb_count(f, NULL), 1);
    assert_int_equal(f->reports, reports);
    assert_string_equal(fake_lb_pick(f), A);
}

static void the_next_when_it_fails(void **state)
{
    TC_CASE(PR02);
    TC_CASE(PR16);
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_lb_set_failed(f, A, "down");
    assert_connects(f, A " " B " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

static void the_failover_timer(void **state)
{
    TC_CASE(PR03);
    struct fake_lb *f = *state;
    update(f, "ab");
    tc_loop_advance(f->loop, FAILOVER_MS - 1);
    assert_connects(f, A " ");
    tc_loop_advance(f->loop, 1);
    assert_connects(f, B " ");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
}

static void connecting_again_does_not_restart_it(void **state)
{
    TC_CASE(PR04);
    struct fake_lb *f = *state;
    /* a is a ring_hash of two endpoints: when the first endpoint fails, a connects to the second and reports CONNECTING
     * with another picker. */
    fake_lb_update(f, fake_lb_endpoint_tree("a", A " " C, "b", B, NULL), children("ab", ring_hash), NULL);
    assert_string_equal(fake_lb_pick_hash(f, 1), "QUEUE");
    const char *first = fake_lb_count(f, A) ? A : C;
    tc_loop_advance(f->loop, FAILOVER_MS - 1000);
    unsigned reports = f->reports;
    fake_lb_set_failed(f, first, "down");
    assert_true(f->reports > reports);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    tc_loop_advance(f->loop, 999);
    assert_string_equal(fake_lb_pick_hash(f, 1), "QUEUE");
    assert_int_equal(fake_lb_count(f, B), 0);
    tc_loop_advance(f->loop, 1);
    assert_string_equal(fake_lb_pick_hash(f, 1), "QUEUE");
    assert_int_equal(fake_lb_count(f, B), 1); /* b was IDLE until this pick */
}

static void the_timer_restarts_after_ready_only(void **state)
{
    TC_CASE(PR05);
    TC_CASE(PR06);
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    tc_loop_advance(f->loop, 3 * FAILOVER_MS);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE); /* round_robin connects again: READY -> CONNECTING */
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    assert_int_equal(fake_lb_count(f, B), 0);
    tc_loop_advance(f->loop, FAILOVER_MS - 1);
    assert_int_equal(fake_lb_count(f, B), 0);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(fake_lb_count(f, B), 1);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    /* Child a has failed since it was READY: its failover timer does not start when it connects again. */
    fake_lb_set_failed(f, A, "down");
    fake_lb_update(f, fake_lb_endpoint_tree("a", A " " C, "b", B, NULL), children("ab", tc_round_robin_config_new),
                   NULL);
    assert_string_equal(fake_lb_pick(f), B);
}

static void an_idle_child_is_chosen(void **state)
{
    TC_CASE(PR07);
    struct fake_lb *f = *state;
    f->args.has_hash = true;
    fake_lb_update(f, fake_lb_endpoint_tree("a", A, "b", B, NULL), children("ab", ring_hash), NULL);
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    fake_lb_pick(f);
    fake_lb_set_failed(f, A, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE); /* b's state */
    fake_lb_pick(f);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE); /* child a is IDLE, and still chosen */
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    assert_int_equal(fake_lb_state(f, A), TORC_CONNECTIVITY_CONNECTING);
    tc_loop_advance(f->loop, RETENTION_MS);
    assert_int_equal(fake_lb_count(f, B), 1); /* reactivated at the end of a's failover time */
}

static void lower_children_are_kept_for_a_while(void **state)
{
    TC_CASE(PR08);
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_lb_set_failed(f, A, "down");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    tc_loop_advance(f->loop, RETENTION_MS - 1);
    assert_int_equal(fake_lb_count(f, B), 1);
    /* b is reactivated in time: b has the same connection, and the next retention of b runs its full time. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "down");
    fake_lb_take_connects(f);
    assert_string_equal(fake_lb_pick(f), B);
    assert_connects(f, "");
    tc_loop_advance(f->loop, 2 * RETENTION_MS);
    assert_int_equal(fake_lb_count(f, B), 1);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    tc_loop_advance(f->loop, RETENTION_MS - 1);
    assert_int_equal(fake_lb_count(f, B), 1);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(fake_lb_count(f, B), 0);
    /* A115: a child that leaves the config ends at once. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "down");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    update(f, "a");
    assert_int_equal(fake_lb_count(f, B), 0);
}

static void the_switch_keeps_removed_children(void **state)
{
    struct fake_lb *f = *state;
    setenv("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE", "true", 1);
    update(f, "ab");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, "b");
    assert_int_equal(fake_lb_count(f, A), 1);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, "ab");
    assert_connects(f, "");
    assert_string_equal(fake_lb_pick(f), A);
    update(f, "b");
    tc_loop_advance(f->loop, RETENTION_MS);
    assert_int_equal(fake_lb_count(f, A), 0);
    unsetenv("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE");
}

static void a_reactivated_connecting_child_serves(void **state)
{
    TC_CASE(PR09);
    struct fake_lb *f = *state;
    update(f, "ab");
    tc_loop_advance(f->loop, FAILOVER_MS);      /* both connect; b's timer runs */
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY); /* b is deactivated while it connects */
    tc_loop_advance(f->loop, FAILOVER_MS);      /* b's timer is over */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
}

static void all_failing_is_the_last_ones_failure(void **state)
{
    TC_CASE(PR10);
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_lb_set_failed(f, A, "a is down");
    fake_lb_set_failed(f, B, "b is down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "connections to all backends failing; last error: " B ": b is down");
    assert_string_equal(tc_status_text(&f->status), fake_lb_pick_error(f));
}

static void all_connecting_is_the_first(void **state)
{
    TC_CASE(PR11);
    struct fake_lb *f = *state;
    update(f, "ab");
    tc_loop_advance(f->loop, 2 * FAILOVER_MS);
    assert_int_equal(fake_lb_state(f, A), TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(fake_lb_state(f, B), TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set_failed(f, B, "down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING); /* a may still connect */
}

static void an_empty_list_fails(void **state)
{
    TC_CASE(PR12);
    TC_CASE(PR18);
    struct fake_lb *f = *state;
    update(f, "");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f), "priority policy has empty priority list");
    update(f, "a");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
    update(f, "");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(fake_lb_count(f, NULL), 0);
    update(f, "a");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
}

static void a_child_may_change_its_priority(void **state)
{
    TC_CASE(PR13);
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_lb_set_failed(f, A, "down");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, "ba");
    assert_string_equal(fake_lb_pick(f), B);
    update(f, "bc");
    assert_string_equal(fake_lb_pick(f), B);
    assert_connects(f, "");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

static void no_choice_while_updating(void **state)
{
    TC_CASE(PR14);
    struct fake_lb *f = *state;
    update(f, "ab");
    fake_lb_set_failed(f, A, "down");
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    unsigned reports = f->reports;
    /* Both children report from inside the update: one choice follows. */
    fake_lb_update(f, fake_lb_endpoint_tree("a", "", "b", "", NULL), children("ab", tc_round_robin_config_new), "none");
    assert_int_equal(f->reports, reports + 1);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    fake_lb_pick(f);
    assert_string_equal(fake_lb_pick_error(f), "empty address list: none");
}

static void requests_for_reresolution(void **state)
{
    TC_CASE(PR15);
    struct fake_lb *f = *state;
    update(f, "Ab");
    fake_lb_set_failed(f, A, "down");
    assert_int_equal(f->reresolutions, 0);
    fake_lb_set_failed(f, B, "down");
    assert_int_equal(f->reresolutions, 1);
}

static void a_priority_without_endpoints(void **state)
{
    TC_CASE(PR20);
    struct fake_lb *f = *state;
    fake_lb_update(f, fake_lb_endpoint_tree("b", B, NULL), children("ab", tc_round_robin_config_new), NULL);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    assert_int_equal(fake_lb_count(f, NULL), 1);
}

static void the_order_of_priorities_counts(void **state)
{
    TC_CASE(PR19);
    struct fake_lb *f = *state;
    struct tc_lb_config *config = fake_lb_config(
        f, "priority",
        "{'children': {'b': {'config': [{'round_robin': {}}]}, 'c': {'config': [{'x': {}}, {'pick_first': {}}]},"
        " 'a': {'config': [{'round_robin': {}}], 'ignoreReresolutionRequests': true}, 'unused': {}},"
        " 'priorities': ['c', 'a', 'b']}",
        NULL);
    assert_non_null(config);
    fake_lb_update(f, fake_lb_endpoint_tree("a", A, "b", B, "c", C, NULL), config, NULL);
    fake_lb_set(f, C, TORC_CONNECTIVITY_READY);
    for (unsigned i = 0; i < 10; i++)
        assert_string_equal(fake_lb_pick(f), C);
    assert_int_equal(fake_lb_count(f, NULL), 1);
}

static void traffic_returns_without_an_update(void **state)
{
    TC_CASE(RH19);
    TC_CASE(RH34);
    /* All endpoints of the first priority fail. When one of them is READY again, traffic returns without an update. */
    struct fake_lb *f = *state;
    f->args.has_hash = true;
    fake_lb_update(f, fake_lb_endpoint_tree("a", A " " C " 4.4.4.4:4", "b", B, NULL), children("ab", ring_hash), NULL);
    fake_lb_pick(f);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const all[] = {A, C, "4.4.4.4:4"};
        for (unsigned k = 0; k < 3; k++)
            if (fake_lb_state(f, all[k]) == TORC_CONNECTIVITY_CONNECTING)
                fake_lb_set_failed(f, all[k], "down");
    }
    fake_lb_pick(f);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    fake_lb_set(f, C, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, C, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), C);
}

static void config_faults(void **state)
{
    struct fake_lb *f = *state;
    char *why;
    assert_null(fake_lb_config(f, "priority",
                               "{'children': {'a': {'config': [{'nope': {}}]}, 'b': {'config': [{'pick_first': {}}]}, "
                               "'c': {'config': []}}, 'priorities': ['b', 'z', 'b']}",
                               &why));
    assert_string_equal(why, "field [1].priority.priorities[1]: no child of that name; "
                             "field [1].priority.priorities[2]: names a child twice");
    tc_free(why);
    assert_null(
        fake_lb_config(f, "priority", "{'children': {'a': {'config': [{'nope': {}}]}}, 'priorities': ['a']}", &why));
    assert_string_equal(why, "field [1].priority.children[\"a\"].config: no supported LB policy in the list: nope");
    tc_free(why);
    assert_null(fake_lb_config(f, "priority", "{'children': {}, 'priorities': ['a']}", &why));
    assert_string_equal(why, "field [1].priority.priorities: more names than children");
    tc_free(why);
    assert_null(fake_lb_config(f, "priority", "{}", &why));
    assert_string_equal(why, "field [1].priority.children: must be given");
    tc_free(why);
}

/* Returns the thread's CPU time, in ns, of parsing a config of n children, {MEMBER: {NAME: CHILD, ...}, LIST: [NAME,
 * ...]}; list NULL: without LIST. */
static uint64_t parse_ns(struct fake_lb *f, const char *policy, const char *member, const char *child, unsigned n,
                         const char *list)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b, "{'%s': {", member);
    for (unsigned i = 0; i < n; i++)
        tc_buf_printf(&b, "%s'%x': %s", i ? "," : "", i, child);
    tc_buf_append_str(&b, "}");
    if (list)
        tc_buf_printf(&b, ", '%s': [", list);
    for (unsigned i = 0; list && i < n; i++)
        tc_buf_printf(&b, "%s'%x'", i ? "," : "", i);
    tc_buf_append_str(&b, list ? "]}" : "}");
    uint64_t began = tc_thread_cpu_ns();
    struct tc_lb_config *config = fake_lb_config(f, policy, tc_buf_cstr(&b), NULL);
    uint64_t took = tc_thread_cpu_ns() - began;
    assert_non_null(config);
    tc_lb_config_unref(config);
    tc_buf_fini(&b);
    return took;
}

/* A control plane may send 20,000 names. Parsing them costs about as much as parsing 20,000 targets of weighted_target;
 * comparing each name with all others would cost 18 times as much. FACTOR leaves room for noise. */
static void many_names(void **state)
{
    enum { NAMES = 20000, FACTOR = 6 };
    struct fake_lb *f = *state;
    uint64_t targets = parse_ns(f, "weighted_target_experimental", "targets",
                                "{'weight': 1, 'childPolicy': [{'pick_first': {}}]}", NAMES, NULL);
    uint64_t priorities = parse_ns(f, "priority", "children", "{'config': [{'pick_first': {}}]}", NAMES, "priorities");
    assert_true(priorities < FACTOR * targets);
}

/* A log sink. arg: the struct tc_buf to append the line to. */
static void on_log(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level;
    tc_buf_printf(arg, "%s %s\n", module, message);
}

/* The log shows which priority serves, and why it took over from another one. */
static void changes_are_logged(void **state)
{
    struct fake_lb *f = *state;
    struct tc_buf logged = {0};
    torc_log_set_sink(on_log, &logged);
    assert_int_equal(torc_log_set_levels("lb=info"), 0);
    update(f, "abc");
    fake_lb_set_failed(f, A, "no route");
    tc_loop_advance(f->loop, FAILOVER_MS);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    torc_log_set_sink(NULL, NULL);
    torc_log_set_levels("none");
    assert_string_equal(tc_buf_cstr(&logged),
                        "lb fake:///target: priority 1 of 3 chosen, a\n"
                        "lb fake:///target: priority 2 of 3 chosen, b: a failed: connections to all backends failing; "
                        "last error: " A ": no route\n"
                        "lb fake:///target: priority 3 of 3 chosen, c: b takes too long to connect\n"
                        "lb fake:///target: priority 1 of 3 chosen, a: it is READY\n");
    tc_buf_fini(&logged);
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
        TEST(traffic_returns_without_an_update),
        TEST(config_faults),
        TEST(many_names),
        TEST(changes_are_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
