/* EDS end to end, over real sockets (kits/mesh.h): priorities, localities, drops, and rejected resources. Most tests
 * assert each backend's share of the calls; a share of 0 or 1 must be exact.
 *
 * Each test makes a mesh whose cluster "c" is round_robin, and a channel to the listener "svc", which leads to "c".
 * absence_is_not_a_deletion adds a second cluster, and makes its RPCs on a second channel with another bootstrap. The
 * test's thread puts other endpoints, stops and starts backends, and makes RPCs. The client runs on the thread of the
 * mesh's runtime. */
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/mem.h"

#define SAMPLE 3500
#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"

/* endpoints: of the cluster "c", in the form of kit_mesh_put_endpoints. more: further fields of the assignment, which
 * is then put a second time, with these fields; or NULL. */
static struct kit_mesh_world open_world(size_t backends, const char *endpoints, const char *more)
{
    struct kit_mesh_world w = kit_mesh_world_open(backends, endpoints, ROUND_ROBIN, NULL);
    if (more)
        kit_mesh_put_endpoints(w.k, "c", endpoints, more);
    return w;
}

/* Asserts the shares of backends 0 to 3 of n calls (kit_mesh_expect_shares). Shares of backends that the mesh does not
 * have are ignored. */
static void expect(struct kit_mesh_world *w, size_t n, double a, double b, double c, double d)
{
    double shares[] = {a, b, c, d};
    kit_mesh_expect_shares(w->k, w->ch, NULL, n, shares, 4);
}

/* --- priorities --- */

static void only_the_first_priority(void **state)
{
    TC_CASE(PR01);
    TC_CASE(PR19);
    (void)state;
    struct kit_mesh_world w = open_world(4, "1/b: 1; 2/c: 2; 3/d: 3; 0/a: 0", NULL);
    expect(&w, 100, 1, 0, 0, 0);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(kit_mesh_connections(w.k, i), 0);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1", NULL);
    expect(&w, 100, 1, 0, 0, 0);
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);
    kit_mesh_world_close(&w);
}

static void fails_over_and_back(void **state)
{
    TC_CASE(PR02);
    TC_CASE(PR08);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0; 1/b: 1; 2/c: 2", NULL);
    kit_mesh_stop(w.k, 0);
    expect(&w, 50, 0, 1, 0, 0);
    kit_mesh_stop(w.k, 1);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 2);
    kit_mesh_start(w.k, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    expect(&w, 50, 1, 0, 0, 0);
    kit_mesh_world_close(&w);
}

static void all_priorities_fail(void **state)
{
    TC_CASE(PR10);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0; 1/b: 1", NULL);
    kit_mesh_stop(w.k, 0);
    kit_mesh_stop(w.k, 1);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, kit_mesh_address(w.k, 1));
    kit_mesh_world_close(&w);
}

/* Priority 0 refuses connections, priority 1 leaves them unanswered: the channel reports CONNECTING and RPCs wait. */
static void connecting_during_failover(void **state)
{
    TC_CASE(PR16);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0; 1/b: 1", NULL);
    kit_mesh_stop(w.k, 0);
    kit_mesh_hold(w.k, 1);
    torc_result *r = kit_mesh_call(w.ch, NULL, false, 400);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    assert_int_equal(torc_channel_state(w.ch, false), TORC_CONNECTIVITY_CONNECTING);
    kit_mesh_start(w.k, 1);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_world_close(&w);
}

static void locality_moves_between_priorities(void **state)
{
    TC_CASE(PR13);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0; 1/b: 1", NULL);
    expect(&w, 20, 1, 0, 0, 0);
    kit_mesh_put_endpoints(w.k, "c", "0/b: 1; 1/a: 0", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    expect(&w, 100, 1, 0, 0, 0);
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);
    assert_int_equal(kit_mesh_connections(w.k, 1), 1);
    kit_mesh_world_close(&w);
}

static void names_do_not_churn(void **state)
{
    TC_CASE(PR17);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0; 1/c: 2", NULL);
    expect(&w, 20, 1, 0, 0, 0);
    kit_mesh_put_endpoints(w.k, "c", "0/b: 1; 1/a: 0; 2/c: 2", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1; 2/c: 2", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_put_endpoints(w.k, "c", "0/b: 1; 1/c: 2", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    expect(&w, 100, 0, 1, 0, 0);
    assert_int_equal(kit_mesh_take(w.k, 2), 0);
    kit_mesh_world_close(&w);
}

static void all_removed_and_back(void **state)
{
    TC_CASE(ED14);
    TC_CASE(PR18);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0; 1/b: 1", NULL);
    expect(&w, 20, 1, 0, 0, 0);
    kit_mesh_put_endpoints(w.k, "c", "", NULL);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE,
                          "no children in weighted_target policy: EDS resource c contains no localities");
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0; 1/b: 1", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    expect(&w, 20, 1, 0, 0, 0);
    kit_mesh_world_close(&w);
}

static void priority_without_endpoints(void **state)
{
    TC_CASE(PR20);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: ; 1/b: 1", NULL);
    expect(&w, 100, 0, 1, 0, 0);
    kit_mesh_world_close(&w);
}

/* --- localities and endpoints --- */

static void empty_localities(void **state)
{
    TC_CASE(ED15);
    (void)state;
    struct kit_mesh_world w = open_world(1, "0/x: ", NULL);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE,
                          "EDS resource c contains empty localities: [{region=\"r\", zone=\"z\", sub_zone=\"x\"}]");
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "node ID:test-node");
    kit_mesh_world_close(&w);
}

static void locality_weights(void **state)
{
    TC_CASE(WT01);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a=2: 0*8; 0/b=8: 1*2", NULL);
    expect(&w, SAMPLE, 0.2, 0.8, 0, 0);
    kit_mesh_world_close(&w);
}

static void greatest_locality_weights(void **state)
{
    TC_CASE(ED07);
    TC_CASE(WT03);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a=1431655765: 0; 0/b=2863311530: 1", NULL);
    expect(&w, SAMPLE, 1.0 / 3, 2.0 / 3, 0, 0);
    kit_mesh_world_close(&w);
}

/* Makes one RPC. Returns which of the three backends got it. */
static size_t next_of_three(struct kit_mesh_world *w)
{
    size_t at = 3;
    kit_mesh_calls(w->ch, NULL, 1);
    for (size_t i = 0; i < 3; i++)
        if (kit_mesh_take(w->k, i))
            at = i;
    assert_in_range(at, 0, 2);
    return at;
}

static void round_robin_is_even(void **state)
{
    TC_CASE(ED19);
    TC_CASE(RR01);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0, 1, 2", NULL);
    /* All three are connected first. */
    for (size_t i = 0; i < 3; i++)
        kit_mesh_wait_backend(w.k, w.ch, NULL, i);
    for (size_t i = 0; i < 3; i++)
        kit_mesh_take(w.k, i);
    kit_mesh_calls(w.ch, NULL, 300);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kit_mesh_take(w.k, i), 100);
    /* The same content in other bytes changes nothing: each call reaches the backend whose turn it is. */
    size_t order[3];
    for (size_t i = 0; i < 3; i++)
        order[i] = next_of_three(&w);
    assert_true(order[0] != order[1] && order[1] != order[2] && order[0] != order[2]);
    for (int round = 0; round < 5; round++) {
        char accepted[64]; /* the request that accepts this round's version; version 1 is open_world's */
        snprintf(accepted, sizeof(accepted), "ClusterLoadAssignment %d c\n", round + 2);
        kit_mesh_put_endpoints(w.k, "c", "0/a: 0, 1, 2", round % 2 ? NULL : "policy: {}");
        kit_mesh_wait_request(w.k, accepted);
        assert_int_equal(next_of_three(&w), order[round % 3]);
    }
    kit_mesh_world_close(&w);
}

static void replaced_localities_fail_nothing(void **state)
{
    TC_CASE(ED21);
    (void)state;
    struct kit_mesh_world w = open_world(4, "0/a: 0; 0/b: 1", NULL);
    kit_mesh_calls(w.ch, NULL, 20);
    kit_mesh_put_endpoints(w.k, "c", "0/c: 2; 0/d: 3", NULL);
    kit_mesh_calls(w.ch, NULL, 200);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 2);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 3);
    expect(&w, SAMPLE, 0, 0, 0.5, 0.5);
    kit_mesh_world_close(&w);
}

static void churning_localities(void **state)
{
    TC_CASE(ED20);
    (void)state;
    struct kit_mesh_world w = open_world(4, "0/a=2: 0; 0/b=3: 1; 0/c=4: 2", NULL);
    for (size_t i = 0; i < 3; i++)
        kit_mesh_wait_backend(w.k, w.ch, NULL, i);
    expect(&w, 3000, 2.0 / 9, 3.0 / 9, 4.0 / 9, 0);
    kit_mesh_put_endpoints(w.k, "c", "0/b=3: 1; 0/c=2: 2; 0/d=6: 3", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 3);
    expect(&w, 3000, 0, 3.0 / 11, 2.0 / 11, 6.0 / 11);
    kit_mesh_world_close(&w);
}

/* The server has fail_on_data_errors (A88), so a deletion would fail the RPCs. */
static void absence_is_not_a_deletion(void **state)
{
    TC_CASE(ED22);
    (void)state;
    struct kit_mesh_world w = open_world(3, "0/a: 0", NULL);
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}], \"server_features\": [\"xds_v3\", \"fail_on_data_errors\"]}], "
                                  "\"node\": {\"id\": \"test-node\"}}",
                                  kit_mesh_control_plane(w.k));
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = bootstrap};
    kit_mesh_put_endpoints(w.k, "other", "0/a: 1", NULL);
    kit_mesh_put_cluster(w.k, "other", ROUND_ROBIN);
    kit_mesh_put_routes(w.k, "svc",
                        "{match: {prefix: \"\", headers: [{name: to, string_match: {exact: other}}]}, "
                        "route: {cluster: other}}, {match: {prefix: \"\"}, route: {cluster: c}}");
    torc_channel *ch = kit_mesh_channel(w.k, "svc", &o);
    kit_mesh_wait_backend(w.k, ch, "to: other", 1);
    kit_mesh_wait_backend(w.k, ch, NULL, 0);
    /* The responses from now on have the other cluster's assignment alone. */
    kit_mesh_remove(w.k, "ClusterLoadAssignment", "c");
    kit_mesh_put_endpoints(w.k, "other", "0/a: 2", NULL);
    kit_mesh_wait_backend(w.k, ch, "to: other", 2);
    kit_mesh_take(w.k, 0);
    kit_mesh_calls(ch, NULL, 50);
    assert_int_equal(kit_mesh_take(w.k, 0), 50);
    torc_channel_free(ch);
    tc_free(bootstrap);
    kit_mesh_world_close(&w);
}

/* --- drops --- */

/* Makes n calls, every second one with wait-for-ready. Returns how many failed; each of these must be UNAVAILABLE with
 * a status text that contains `text`. */
static size_t count_drops(struct kit_mesh_world *w, size_t n, const char *text)
{
    size_t drops = 0;
    for (size_t i = 0; i < n; i++) {
        torc_result *r = kit_mesh_call(w->ch, NULL, i % 2, 60000);
        if (torc_result_code(r) != TORC_STATUS_OK) {
            assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
            if (!strstr(torc_result_text(r), text))
                fail_msg("\"%s\" does not contain \"%s\"", torc_result_text(r), text);
            drops++;
        }
        torc_result_free(r);
    }
    return drops;
}

static void drops_add_up(void **state)
{
    TC_CASE(DP01);
    TC_CASE(DP02);
    TC_CASE(DP04);
    (void)state;
    struct kit_mesh_world w =
        open_world(1, "0/a: 0",
                   "policy: {drop_overloads: ["
                   "{category: lb, drop_percentage: {numerator: 100000, denominator: MILLION}}, "
                   "{category: throttle, drop_percentage: {numerator: 20, denominator: HUNDRED}}]}");
    double share = (double)count_drops(&w, SAMPLE, "EDS-configured drop: ") / SAMPLE;
    if (share < 0.23 || share > 0.33)
        fail_msg("%.3f of the calls were dropped", share);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0",
                           "policy: {drop_overloads: [{category: some, drop_percentage: {numerator: 1000, "
                           "denominator: TEN_THOUSAND}}]}");
    size_t until_new = 0;
    while (until_new < 10000) {
        torc_result *r = kit_mesh_call(w.ch, NULL, false, 60000);
        bool is_new = torc_result_code(r) != TORC_STATUS_OK && strstr(torc_result_text(r), "drop: some");
        torc_result_free(r);
        until_new++;
        if (is_new)
            break;
    }
    share = (double)count_drops(&w, SAMPLE, "EDS-configured drop: some (node ID:test-node)") / SAMPLE;
    if (share < 0.05 || share > 0.15)
        fail_msg("%.3f of the calls were dropped", share);
    kit_mesh_world_close(&w);
}

static void drops_all_even_without_endpoints(void **state)
{
    TC_CASE(DP03);
    TC_CASE(ED11);
    (void)state;
    struct kit_mesh_world w = open_world(1, "",
                                         "policy: {drop_overloads: [{category: all, drop_percentage: {numerator: 150, "
                                         "denominator: HUNDRED}}]}");
    assert_int_equal(count_drops(&w, 1000, "EDS-configured drop: all"), 1000);
    assert_int_equal(torc_channel_state(w.ch, false), TORC_CONNECTIVITY_READY);
    kit_mesh_world_close(&w);
}

/* --- resources that are refused --- */

static void sparse_priority_is_refused(void **state)
{
    TC_CASE(ED01);
    (void)state;
    struct kit_mesh_world w = open_world(2, "0/a: 0", NULL);
    expect(&w, 10, 1, 0, 0, 0);
    kit_mesh_put_endpoints(w.k, "c", "1/a: 1", NULL);
    kit_mesh_wait_request(w.k, "NACK 3 ");
    expect(&w, 50, 1, 0, 0, 0);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_world_close(&w);
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
        cmocka_unit_test(absence_is_not_a_deletion),
        cmocka_unit_test(drops_add_up),
        cmocka_unit_test(drops_all_even_without_endpoints),
        cmocka_unit_test(sparse_priority_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
