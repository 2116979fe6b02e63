/* EDS end to end: priorities, localities, health, drops, and resources that are refused. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/mem.h"

#define SAMPLE 3500
#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"

struct world {
    struct mesh_kit *k;
    torc_channel *ch;
};

static struct world open_world(size_t backends, const char *endpoints, const char *more)
{
    struct world w;
    w.k = mesh_kit_new(backends);
    mesh_kit_put_endpoints(w.k, "c", endpoints, more);
    mesh_kit_put_cluster(w.k, "c", ROUND_ROBIN);
    mesh_kit_put_listener(w.k, "svc", "c", NULL);
    w.ch = mesh_kit_channel(w.k, "svc", NULL);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    mesh_kit_free(w->k);
}

static void expect(struct world *w, size_t n, double a, double b, double c, double d)
{
    double shares[] = {a, b, c, d};
    mesh_kit_expect_shares(w->k, w->ch, NULL, n, shares, 4);
}

/* --- priorities --- */

static void only_the_first_priority(void **state)
{
    (void)state;
    struct world w = open_world(4, "1/b: 1; 2/c: 2; 3/d: 3; 0/a: 0", NULL);
    expect(&w, 100, 1, 0, 0, 0);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(mesh_kit_connections(w.k, i), 0);
    mesh_kit_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1", NULL);
    expect(&w, 100, 1, 0, 0, 0);
    assert_int_equal(mesh_kit_connections(w.k, 0), 1);
    close_world(&w);
    TC_CASE(PR01);
    TC_CASE(PR19);
}

static void fails_over_and_back(void **state)
{
    (void)state;
    struct world w = open_world(3, "0/a: 0; 1/b: 1; 2/c: 2", NULL);
    mesh_kit_stop(w.k, 0);
    expect(&w, 50, 0, 1, 0, 0);
    mesh_kit_stop(w.k, 1);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 2);
    mesh_kit_start(w.k, 0);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    expect(&w, 50, 1, 0, 0, 0);
    close_world(&w);
    TC_CASE(PR02);
    TC_CASE(PR08);
}

static void all_priorities_fail(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0; 1/b: 1", NULL);
    mesh_kit_stop(w.k, 0);
    mesh_kit_stop(w.k, 1);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, mesh_kit_address(w.k, 1));
    close_world(&w);
    TC_CASE(PR10);
}

/* P0 refused, P1 held: the channel says CONNECTING and RPCs wait. */
static void connecting_during_failover(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0; 1/b: 1", NULL);
    mesh_kit_stop(w.k, 0);
    mesh_kit_hold(w.k, 1);
    struct torc_result r = mesh_kit_call(w.ch, NULL, false, 400);
    assert_int_equal(r.code, TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_fini(&r);
    assert_int_equal(torc_channel_state(w.ch, false), TORC_CONNECTING);
    mesh_kit_start(w.k, 1);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    close_world(&w);
    TC_CASE(PR16);
}

static void locality_moves_between_priorities(void **state)
{
    (void)state;
    struct world w = open_world(3, "0/a: 0; 1/b: 1", NULL);
    expect(&w, 20, 1, 0, 0, 0);
    mesh_kit_put_endpoints(w.k, "c", "0/b: 1; 1/a: 0", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    mesh_kit_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    expect(&w, 100, 1, 0, 0, 0);
    assert_int_equal(mesh_kit_connections(w.k, 0), 1);
    assert_int_equal(mesh_kit_connections(w.k, 1), 1);
    close_world(&w);
    TC_CASE(PR13);
}

static void names_do_not_churn(void **state)
{
    (void)state;
    struct world w = open_world(3, "0/a: 0; 1/c: 2", NULL);
    expect(&w, 20, 1, 0, 0, 0);
    mesh_kit_put_endpoints(w.k, "c", "0/b: 1; 1/a: 0; 2/c: 2", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    mesh_kit_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1; 2/c: 2", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    mesh_kit_put_endpoints(w.k, "c", "0/b: 1; 1/c: 2", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    expect(&w, 100, 0, 1, 0, 0);
    assert_int_equal(mesh_kit_take(w.k, 2), 0);
    close_world(&w);
    TC_CASE(PR17);
}

static void all_removed_and_back(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0; 1/b: 1", NULL);
    expect(&w, 20, 1, 0, 0, 0);
    mesh_kit_put_endpoints(w.k, "c", "", NULL);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE,
                          "no children in weighted_target policy: EDS resource c contains no localities");
    mesh_kit_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    expect(&w, 20, 1, 0, 0, 0);
    close_world(&w);
    TC_CASE(PR18);
    TC_CASE(ED14);
}

static void priority_without_endpoints(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: ; 1/b: 1", NULL);
    expect(&w, 100, 0, 1, 0, 0);
    close_world(&w);
    TC_CASE(PR20);
}

/* --- localities and endpoints --- */

static void empty_localities(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/x: ", NULL);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE,
                          "EDS resource c contains empty localities: [{region=\"r\", zone=\"z\", sub_zone=\"x\"}]");
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "node ID:test-node");
    close_world(&w);
    TC_CASE(ED15);
}

static void locality_weights(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a=2: 0*8; 0/b=8: 1*2", NULL);
    expect(&w, SAMPLE, 0.2, 0.8, 0, 0);
    close_world(&w);
    TC_CASE(WT01);
}

static void greatest_locality_weights(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a=1431655765: 0; 0/b=2863311530: 1", NULL);
    expect(&w, SAMPLE, 1.0 / 3, 2.0 / 3, 0, 0);
    close_world(&w);
    TC_CASE(ED07);
    TC_CASE(WT03);
}

static void round_robin_is_even(void **state)
{
    (void)state;
    struct world w = open_world(3, "0/a: 0, 1, 2", NULL);
    /* All three connected first. */
    for (size_t i = 0; i < 3; i++)
        mesh_kit_wait_backend(w.k, w.ch, NULL, i);
    for (size_t i = 0; i < 3; i++)
        mesh_kit_take(w.k, i);
    mesh_kit_calls(w.ch, NULL, 300);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mesh_kit_take(w.k, i), 100);
    /* Other bytes that say the same change nothing: the turn goes on where it was. */
    for (int round = 0; round < 5; round++) {
        tc_free(mesh_kit_requests(w.k));
        mesh_kit_put_endpoints(w.k, "c", "0/a: 0, 1, 2", round % 2 ? NULL : "policy: {}");
        mesh_kit_wait_request(w.k, "ClusterLoadAssignment ");
        mesh_kit_calls(w.ch, NULL, 3);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(mesh_kit_take(w.k, i), 1);
    }
    close_world(&w);
    TC_CASE(RR01);
    TC_CASE(ED19);
}

static void replaced_localities_fail_nothing(void **state)
{
    (void)state;
    struct world w = open_world(4, "0/a: 0; 0/b: 1", NULL);
    mesh_kit_calls(w.ch, NULL, 20);
    mesh_kit_put_endpoints(w.k, "c", "0/c: 2; 0/d: 3", NULL);
    mesh_kit_calls(w.ch, NULL, 200);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 2);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 3);
    expect(&w, SAMPLE, 0, 0, 0.5, 0.5);
    close_world(&w);
    TC_CASE(ED21);
}

static void churning_localities(void **state)
{
    (void)state;
    struct world w = open_world(4, "0/a=2: 0; 0/b=3: 1; 0/c=4: 2", NULL);
    for (size_t i = 0; i < 3; i++)
        mesh_kit_wait_backend(w.k, w.ch, NULL, i);
    expect(&w, 3000, 2.0 / 9, 3.0 / 9, 4.0 / 9, 0);
    mesh_kit_put_endpoints(w.k, "c", "0/b=3: 1; 0/c=2: 2; 0/d=6: 3", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 3);
    expect(&w, 3000, 0, 3.0 / 11, 2.0 / 11, 6.0 / 11);
    close_world(&w);
    TC_CASE(ED20);
}

static void absence_is_no_deletion(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0", NULL);
    expect(&w, 10, 1, 0, 0, 0);
    mesh_kit_remove(w.k, "ClusterLoadAssignment", "c");
    mesh_kit_put_endpoints(w.k, "other", "0/a: 0", NULL);
    expect(&w, 50, 1, 0, 0, 0);
    close_world(&w);
    TC_CASE(ED22);
}

/* --- drops --- */

static size_t count_drops(struct world *w, size_t n, const char *text)
{
    size_t drops = 0;
    for (size_t i = 0; i < n; i++) {
        struct torc_result r = mesh_kit_call(w->ch, NULL, i % 2, 10000);
        if (r.code != TORC_STATUS_OK) {
            assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
            if (!strstr(r.message, text))
                fail_msg("\"%s\" does not contain \"%s\"", r.message, text);
            drops++;
        }
        torc_result_fini(&r);
    }
    return drops;
}

static void drops_add_up(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0",
                                "policy: {drop_overloads: ["
                                "{category: lb, drop_percentage: {numerator: 100000, denominator: MILLION}}, "
                                "{category: throttle, drop_percentage: {numerator: 20, denominator: HUNDRED}}]}");
    double share = (double)count_drops(&w, SAMPLE, "EDS-configured drop: ") / SAMPLE;
    if (share < 0.23 || share > 0.33)
        fail_msg("%.3f of the calls were dropped", share);
    mesh_kit_put_endpoints(w.k, "c", "0/a: 0",
                           "policy: {drop_overloads: [{category: some, drop_percentage: {numerator: 1000, "
                           "denominator: TEN_THOUSAND}}]}");
    size_t until_new = 0;
    while (until_new < 10000) {
        struct torc_result r = mesh_kit_call(w.ch, NULL, false, 10000);
        bool is_new = r.code != TORC_STATUS_OK && strstr(r.message, "drop: some");
        torc_result_fini(&r);
        until_new++;
        if (is_new)
            break;
    }
    share = (double)count_drops(&w, SAMPLE, "EDS-configured drop: some (node ID:test-node)") / SAMPLE;
    if (share < 0.05 || share > 0.15)
        fail_msg("%.3f of the calls were dropped", share);
    close_world(&w);
    TC_CASE(DP01);
    TC_CASE(DP02);
    TC_CASE(DP04);
}

static void drops_all_even_without_endpoints(void **state)
{
    (void)state;
    struct world w = open_world(1, "",
                                "policy: {drop_overloads: [{category: all, drop_percentage: {numerator: 150, "
                                "denominator: HUNDRED}}]}");
    assert_int_equal(count_drops(&w, 1000, "EDS-configured drop: all"), 1000);
    assert_int_equal(torc_channel_state(w.ch, false), TORC_READY);
    close_world(&w);
    TC_CASE(DP03);
    TC_CASE(ED11);
}

/* --- what is refused --- */

static void sparse_priority_is_refused(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0", NULL);
    expect(&w, 10, 1, 0, 0, 0);
    mesh_kit_put_endpoints(w.k, "c", "1/a: 1", NULL);
    mesh_kit_wait_request(w.k, "NACK 3 ");
    expect(&w, 50, 1, 0, 0, 0);
    mesh_kit_put_endpoints(w.k, "c", "0/a: 1", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    close_world(&w);
    TC_CASE(ED01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_first_priority),
        cmocka_unit_test(fails_over_and_back),
        cmocka_unit_test(all_priorities_fail),
        cmocka_unit_test(connecting_during_failover),
        cmocka_unit_test(locality_moves_between_priorities),
        cmocka_unit_test(names_do_not_churn),
        cmocka_unit_test(all_removed_and_back),
        cmocka_unit_test(priority_without_endpoints),
        cmocka_unit_test(empty_localities),
        cmocka_unit_test(locality_weights),
        cmocka_unit_test(greatest_locality_weights),
        cmocka_unit_test(round_robin_is_even),
        cmocka_unit_test(replaced_localities_fail_nothing),
        cmocka_unit_test(churning_localities),
        cmocka_unit_test(absence_is_no_deletion),
        cmocka_unit_test(drops_add_up),
        cmocka_unit_test(drops_all_even_without_endpoints),
        cmocka_unit_test(sparse_priority_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
