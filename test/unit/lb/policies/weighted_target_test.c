/* weighted_target on virtual time: shares of picks, aggregated states, and children that come and go.
 *
 * The policy runs in fakes/lb, which the setup of each test makes and the teardown frees. In most tests child "a" has
 * the address A and child "b" the address B, both under round_robin, which keeps them connected. A test sets the states
 * of the addresses, and reads the policy's last report in struct fake_lb. A child that an update no longer lists is
 * kept for RETENTION_MS, the fake's priority_retention_ms. One thread. */
#include "lb/policies/weighted_target.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "lb/endpoint.h"
#include "lb/policies/pick_first.h"
#include "lb/policies/round_robin.h"
#include "lb/ring_hash/policy.h"
#include "ring/ring.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define RETENTION_MS 900000

static int setup(void **state)
{
    *state = fake_lb_new("weighted_target_experimental");
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

/* Returns a config of children a and b with these weights, with one reference. A child of weight 0 is left out. */
static struct tc_lb_config *targets(uint32_t a, uint32_t b)
{
    struct tc_child_config list[2] = {0};
    size_t n = 0;
    if (a)
        list[n++] =
            (struct tc_child_config){.name = tc_rstr_str("a"), .weight = a, .config = tc_round_robin_config_new()};
    if (b)
        list[n++] =
            (struct tc_child_config){.name = tc_rstr_str("b"), .weight = b, .config = tc_round_robin_config_new()};
    struct tc_lb_config *config = tc_child_configs_new(&tc_weighted_target_factory, list, n);
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    return config;
}

/* Updates with endpoints for both children. The weights 100 and 1 of the endpoints must not count. */
static void update(struct fake_lb *f, uint32_t a, uint32_t b)
{
    fake_lb_update(f, fake_lb_endpoint_tree("a", A "*100", "b", B "*1", NULL), targets(a, b), NULL);
}

/* Returns the share, 0 to 1, of A in 20,000 picks with random numbers. Frees what was in the fake's arena, such as
 * addresses of earlier picks. */
static double share_of_a(struct fake_lb *f)
{
    enum { ROUNDS = 20000 };
    unsigned n = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        f->args.random = tc_rng_u64(tc_loop_rng(f->loop));
        n += strcmp(fake_lb_pick(f), A) == 0;
        if (i % 100 == 0)
            tc_arena_reset(&f->arena);
    }
    return (double)n / ROUNDS;
}

static void weights_split_the_picks(void **state)
{
    TC_CASE(WT01);
    struct fake_lb *f = *state;
    update(f, 2, 8);
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_true(share_of_a(f) == 1); /* while b connects */
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    double share = share_of_a(f);
    assert_true(share > 0.18 && share < 0.22);
    /* One random number gives one child. */
    f->args.random = 12345;
    const char *first = fake_lb_pick(f);
    for (unsigned i = 0; i < 20; i++)
        assert_string_equal(fake_lb_pick(f), first);
    update(f, 3, 1);
    share = share_of_a(f);
    assert_true(share > 0.73 && share < 0.77);
}

static void removed_children_are_kept_for_a_while(void **state)
{
    TC_CASE(WT02);
    struct fake_lb *f = *state;
    update(f, 1, 1);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    update(f, 0, 1);
    assert_true(share_of_a(f) == 0);
    assert_int_equal(fake_lb_count(f, A), 1);
    tc_loop_advance(f->loop, RETENTION_MS - 1);
    update(f, 1, 1);
    assert_connects(f, "");
    double share = share_of_a(f);
    assert_true(share > 0.48 && share < 0.52);
    update(f, 0, 1);
    tc_loop_advance(f->loop, RETENTION_MS);
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_string_equal(fake_lb_pick(f), B);
}

static void weights_near_the_limit(void **state)
{
    TC_CASE(WT03);
    struct fake_lb *f = *state;
    update(f, 4294967294u, 4294967295u);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    double share = share_of_a(f);
    assert_true(share > 0.48 && share < 0.52);
    update(f, 2863311530u, 1431655765u);
    share = share_of_a(f);
    assert_true(share > 0.64 && share < 0.69);
}

static void without_targets_it_fails(void **state)
{
    TC_CASE(WT04);
    struct fake_lb *f = *state;
    update(f, 0, 0);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(fake_lb_pick_error(f), "no children in weighted_target policy");
    fake_lb_update(f, fake_lb_endpoints(""), targets(0, 0), "EDS resource n contains no localities");
    fake_lb_pick(f);
    assert_string_equal(fake_lb_pick_error(f),
                        "no children in weighted_target policy: EDS resource n contains no localities");
    update(f, 1, 0);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
}

static void a_deactivated_child_may_change(void **state)
{
    TC_CASE(WT05);
    struct fake_lb *f = *state;
    update(f, 1, 1);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    update(f, 0, 1);
    unsigned reports = f->reports;
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set_failed(f, A, "down");
    assert_int_equal(f->reports, reports);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), B);
    update(f, 0, 0);
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
}

static void states_are_joined(void **state)
{
    struct fake_lb *f = *state;
    update(f, 1, 1);
    fake_lb_set_failed(f, A, "a is down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, B, "b is down");
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_non_null(strstr(fake_lb_pick_error(f), "is down"));
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    for (unsigned i = 0; i < 20; i++) {
        f->args.random += UINT64_MAX / 20;
        assert_string_equal(fake_lb_pick(f), A);
    }
}

/* The connection of one child ends, as by a routine GOAWAY. While another child is READY no pick reaches the IDLE
 * child, so the policy wakes the child. */
static void idle_children_are_woken(void **state)
{
    struct fake_lb *f = *state;
    struct tc_child_config list[2] = {
        {.name = tc_rstr_str("a"), .weight = 1, .config = tc_pick_first_config_new(false)},
        {.name = tc_rstr_str("b"), .weight = 1, .config = tc_pick_first_config_new(false)},
    };
    struct tc_lb_config *config = tc_child_configs_new(&tc_weighted_target_factory, list, 2);
    for (size_t i = 0; i < TC_ARRAY_LEN(list); i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    fake_lb_update(f, fake_lb_endpoint_tree("a", A, "b", B, NULL), config, NULL);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_connects(f, A " ");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    double share = share_of_a(f);
    assert_true(share > 0.48 && share < 0.52);
}

/* The policy wakes an IDLE ring_hash child, which connects an endpoint before the first pick. */
static void idle_rings_are_woken(void **state)
{
    struct fake_lb *f = *state;
    struct tc_child_config target = {.name = tc_rstr_str("a"),
                                     .weight = 1,
                                     .config = tc_ring_hash_config_new(1, TC_RING_DEFAULT_MAX, tc_slice_of(NULL, 0))};
    struct tc_lb_config *config = tc_child_configs_new(&tc_weighted_target_factory, &target, 1);
    tc_rstr_unref(target.name);
    tc_lb_config_unref(target.config);
    f->args.has_hash = true;
    fake_lb_update(f, fake_lb_endpoint_tree("a", A, NULL), config, NULL);
    assert_connects(f, A " ");
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick(f), A);
}

/* Thousands of children report together: the policy publishes a few pickers, not one for each report. While all
 * children are READY, the picks split evenly between the two addresses that the children share. */
static void many_children_in_one_turn(void **state)
{
    struct fake_lb *f = *state;
    enum { N = 3000 };
    struct tc_endpoints_child *children = tc_calloc(N, sizeof(*children));
    struct tc_child_config *list = tc_calloc(N, sizeof(*list));
    for (unsigned i = 0; i < N; i++) {
        children[i] = (struct tc_endpoints_child){tc_rstr_printf("child-%u", i), fake_lb_endpoints(i % 2 ? A : B)};
        list[i] = (struct tc_child_config){
            .name = tc_rstr_ref(children[i].name), .weight = 1, .config = tc_round_robin_config_new()};
    }
    struct tc_lb_config *config = tc_child_configs_new(&tc_weighted_target_factory, list, N);
    for (unsigned i = 0; i < N; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    tc_free(list);
    fake_lb_update(f, tc_endpoints_take_children(children, N), config, NULL);
    assert_int_equal(f->subchannels.len, N);
    static const struct {
        enum torc_connectivity to, joined;
        unsigned reports; /* at most */
    } steps[] = {
        {TORC_CONNECTIVITY_READY, TORC_CONNECTIVITY_READY, 2},     /* the first child, and all others */
        {TORC_CONNECTIVITY_IDLE, TORC_CONNECTIVITY_CONNECTING, 2}, /* they connect again */
        {TORC_CONNECTIVITY_READY, TORC_CONNECTIVITY_READY, 2},
    };
    for (size_t s = 0; s < TC_ARRAY_LEN(steps); s++) {
        unsigned before = f->reports;
        for (size_t i = 0; i < N; i++)
            fake_lb_queue_at(f, i, steps[s].to);
        tc_loop_drain(f->loop);
        assert_int_equal(f->state, steps[s].joined);
        assert_in_range(f->reports - before, 1, steps[s].reports);
        double share = steps[s].to == TORC_CONNECTIVITY_READY ? share_of_a(f) : 0.5;
        assert_true(share > 0.47 && share < 0.53); /* the picker draws from children of both addresses */
    }
    fake_lb_queue_at(f, 0, TORC_CONNECTIVITY_IDLE); /* the policy is shut down before it is told of this */
}

static void config_from_json(void **state)
{
    struct fake_lb *f = *state;
    char *why;
    struct tc_lb_config *config =
        fake_lb_config(f, "weighted_target",
                       "{'targets': {'a': {'weight': 1, 'childPolicy': [{'round_robin': {}}]},"
                       " 'b': {'weight': 3, 'childPolicy': [{'pick_first': {}}]}}}",
                       NULL);
    struct tc_lb_config *same = fake_lb_config(f, "weighted_target_experimental",
                                               "{'targets': {'a': {'weight': 1, 'childPolicy': [{'round_robin': {}}]},"
                                               " 'b': {'weight': 3, 'childPolicy': [{'pick_first': {}}]}}}",
                                               NULL);
    assert_true(tc_lb_config_eq(config, same));
    tc_lb_config_unref(same);
    fake_lb_update(f, fake_lb_endpoint_tree("a", A, "b", B, NULL), config, NULL);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    double share = share_of_a(f);
    assert_true(share > 0.23 && share < 0.27);
    assert_null(
        fake_lb_config(f, "weighted_target", "{'targets': {'a': {'weight': 0, 'childPolicy': [{'nope': {}}]}}}", &why));
    assert_string_equal(
        why, "field [1].weighted_target.targets[\"a\"].weight: must be a whole number from 1 to 4294967295; field "
             "[1].weighted_target.targets[\"a\"].childPolicy: no supported LB policy in the list: nope");
    tc_free(why);
    assert_null(fake_lb_config(f, "weighted_target",
                               "{'targets': {'a\\\\].weight: x': {'weight': 0, 'childPolicy': [{'round_robin': {}}]}}}",
                               &why));
    assert_string_equal(
        why,
        "field [1].weighted_target.targets[\"a\\\\].weight: x\"].weight: must be a whole number from 1 to 4294967295");
    tc_free(why);
    assert_null(fake_lb_config(f, "weighted_target", "{}", &why));
    assert_string_equal(why, "field [1].weighted_target.targets: must be given");
    tc_free(why);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(weights_split_the_picks),
        TEST(removed_children_are_kept_for_a_while),
        TEST(weights_near_the_limit),
        TEST(without_targets_it_fails),
        TEST(a_deactivated_child_may_change),
        TEST(states_are_joined),
        TEST(idle_children_are_woken),
        TEST(idle_rings_are_woken),
        TEST(config_from_json),
        TEST(many_children_in_one_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
