/* outlier_detection with changing endpoints and connections, and in a tree of policies (kits/outlier).
 *
 * A run of RPCs (kit_outlier_run) fails those to the addresses that it names. The sweep at the end of the interval, by
 * default after 10 s, ejects endpoints; a first ejection lasts 30 s unless the config says otherwise, and ends at the
 * first sweep after that. A sweep counts only RPCs that ended since the sweep before. The fake owns the policy (which
 * rpcs_outlive ends itself) and the loop with virtual time; the policy owns its subchannels. One thread. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/outlier.h"

#define A2 "5.5.5.5:5"

static void several_addresses(void **state)
{
    TC_CASE(OD11);
    struct fake_lb *f = *state;
    kit_outlier_start(f, A "," A2 " " B, HALF ", " RR);
    kit_outlier_run(f, 20, A);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A);
    /* After a lost connection the endpoint's other address is ejected, too. */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, A, "refused");
    fake_lb_set(f, A2, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, A2, TORC_CONNECTIVITY_READY);
    struct kit_outlier_counts counts = kit_outlier_run(f, 20, "");
    assert_int_equal(counts.at[1], 20);
    /* Another order of the same addresses is the same endpoint. */
    kit_outlier_update(f, A2 "," A " " B, HALF ", " RR);
    counts = kit_outlier_run(f, 20, "");
    assert_int_equal(counts.at[1], 20);
    /* An endpoint with other addresses is a new one, without counts. */
    kit_outlier_update(f, A " " B, HALF ", " RR);
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_in_service(f, A);
}

/* Failures of an endpoint with two addresses do not count for the endpoint with one of them. */
static void with_other_addresses(void **state)
{
    TC_CASE(OD11);
    struct fake_lb *f = *state;
    kit_outlier_start(f, A "," A2 " " B, HALF ", " RR);
    kit_outlier_run(f, 20, A);
    kit_outlier_update(f, A " " B, HALF ", " RR);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_in_service(f, A);
}

/* Failures of both addresses count for the one endpoint. */
static void counted_as_one(void **state)
{
    struct fake_lb *f = *state;
    const char *fields = "'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 2, 'requestVolume': 20}, " RR;
    kit_outlier_start(f, A "," A2 " " B, fields);
    kit_outlier_run(f, 20, A);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, A, "refused");
    fake_lb_set(f, A2, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, A2, TORC_CONNECTIVITY_READY);
    kit_outlier_run(f, 20, A2);
    tc_loop_advance(f->loop, 10 * SECOND);
    struct kit_outlier_counts counts = kit_outlier_run(f, 20, "");
    assert_int_equal(counts.at[1], 20);
    assert_int_equal(fake_lb_state(f, A2), TORC_CONNECTIVITY_READY);
}

static void ejected_and_gone(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, KEEN ", " RR);
    kit_outlier_run(f, 40, A);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A);
    /* The endpoint stays ejected when an update removes another endpoint. An endpoint that was removed and is added
     * again counts as new. */
    kit_outlier_update(f, A " " B " " C, KEEN ", " RR);
    assert_ejected(f, A);
    kit_outlier_update(f, B " " C, KEEN ", " RR);
    kit_outlier_update(f, ALL, KEEN ", " RR);
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_in_service(f, A);
}

/* A connection that becomes READY while its endpoint is ejected is not reported as READY. */
static void connects_while_ejected(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, A, "'interval': '1s', 'baseEjectionTime': '5s', " HALF ", " RR);
    kit_outlier_run(f, 10, A);
    tc_loop_advance(f->loop, SECOND);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_non_null(strstr(tc_status_text(&f->status), EJECTED));
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_non_null(strstr(fake_lb_pick_error(f), A));
    assert_non_null(strstr(fake_lb_pick_error(f), EJECTED));
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    assert_connects(f, A " ");
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    tc_loop_advance(f->loop, 6 * SECOND);
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY TF CONNECTING TF READY ");
}

/* A61: a pick_first that is not an endpoint's child ignores ejections. */
static void pick_first_alone(void **state)
{
    TC_CASE(OD12);
    struct fake_lb *f = *state;
    kit_outlier_start(f, A, HALF ", 'childPolicy': [{'pick_first': {}}]");
    for (unsigned i = 0; i < 3; i++) {
        struct kit_outlier_counts counts = kit_outlier_run(f, 50, A);
        assert_int_equal(counts.at[0], 50);
        tc_loop_advance(f->loop, 10 * SECOND);
        assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    }
    assert_connects(f, "");
}

/* A75: endpoints of all priorities count together for max_ejection_percent. */
static void below_priority(void **state)
{
    struct fake_lb *f = *state;
    const char *json = "{" HALF ", 'childPolicy': [{'priority': {'priorities': ['p', 'q'], 'children': "
                       "{'p': {'config': [{'round_robin': {}}]}, 'q': {'config': [{'round_robin': {}}]}}}}]}";
    assert_true(fake_lb_update(f, fake_lb_endpoint_tree("p", A, "q", B, NULL),
                               fake_lb_config(f, "outlier_detection", json, NULL), NULL));
    fake_lb_set(f, A, TORC_CONNECTIVITY_READY);
    assert_int_equal(kit_outlier_run(f, 10, A).at[0], 10);
    /* One endpoint may be ejected whatever max_ejection_percent is: A. So priority p fails, and q is used. RPCs to B,
     * q's endpoint, then fail, too, but B is not ejected: half of the endpoints are ejected already, more than the 10 %
     * of max_ejection_percent. */
    tc_loop_advance(f->loop, 10 * SECOND);
    fake_lb_set(f, B, TORC_CONNECTIVITY_READY);
    assert_int_equal(kit_outlier_run(f, 10, B).at[1], 10);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_int_equal(kit_outlier_run(f, 10, "").at[1], 10);
    tc_loop_advance(f->loop, 30 * SECOND);
    assert_int_equal(kit_outlier_run(f, 10, "").at[0], 10);
}

/* outlier_detection below outlier_detection: each RPC has a tracker of each policy, and each policy ejects by its
 * own times. */
static void nested(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(
        f, A " " B, HALF ", 'childPolicy': [{'outlier_detection_experimental': {" HALF ", 'interval': '3s', " RR "}}]");
    kit_outlier_run(f, 20, A);
    fake_lb_pick(f);
    unsigned trackers = 0;
    for (struct tc_call_tracker *t = f->pick.trackers; t; t = t->next)
        trackers++;
    assert_int_equal(trackers, 2);
    kit_outlier_finish(f->pick.trackers, TORC_STATUS_OK);
    tc_loop_advance(f->loop, 3 * SECOND); /* the inner policy ejects A */
    assert_int_equal(kit_outlier_run(f, 10, "").at[1], 10);
    tc_loop_advance(f->loop, 7 * SECOND); /* the outer policy ejects A, too */
    assert_int_equal(kit_outlier_run(f, 10, "").at[1], 10);
    tc_loop_advance(f->loop, 26 * SECOND); /* 36 s: the inner policy's ejection is over; the outer's lasts */
    assert_int_equal(kit_outlier_run(f, 10, "").at[1], 10);
    tc_loop_advance(f->loop, 14 * SECOND);
    assert_in_service(f, A);
}

/* RPCs may outlive their subchannel, their endpoint and the policy. */
static void rpcs_outlive(void **state)
{
    struct fake_lb *f = *state;
    struct tc_call_tracker *t[3];
    kit_outlier_start(f, A " " B, HALF ", " RR);
    for (unsigned i = 0; i < 3; i++) {
        fake_lb_pick(f);
        t[i] = f->pick.trackers;
        assert_non_null(t[i]);
    }
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    kit_outlier_finish(t[0], TORC_STATUS_UNAVAILABLE);
    kit_outlier_update(f, C, HALF ", " RR);
    kit_outlier_finish(t[1], TORC_STATUS_UNAVAILABLE);
    f->policy->ops->shutdown(f->policy);
    f->policy = NULL;
    tc_loop_drain(f->loop);
    kit_outlier_finish(t[2], TORC_STATUS_UNAVAILABLE);
}

/* Makes n picks that lead to no RPC. */
static void pick_without_rpc(struct fake_lb *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        fake_lb_pick(f);
        assert_non_null(f->pick.trackers);
        for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
            next = t->next;
            t->on_done(t, NULL, NULL);
        }
    }
}

/* A pick that leads to no RPC counts neither as a failure nor as a success. */
static void picks_without_rpc(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, A " " B, HALF ", " RR);
    pick_without_rpc(f, 20);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_in_service(f, A);
    assert_in_service(f, B);
    tc_loop_advance(f->loop, 10 * SECOND); /* the next interval begins without the RPCs of these assertions */
    kit_outlier_run(f, 2, A);
    pick_without_rpc(f, 20);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A);
    assert_in_service(f, B);
}

static void no_endpoints(void **state)
{
    struct fake_lb *f = *state;
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no such name");
    fake_lb_update_error(f, &error, fake_lb_config(f, "outlier_detection", "{" KEEN ", " RR "}", NULL));
    assert_string_equal(tc_status_text(&f->status), "no such name");
    tc_loop_advance(f->loop, 20 * SECOND);
    kit_outlier_start(f, ALL, KEEN ", " RR);
    kit_outlier_run(f, 40, A);
    fake_lb_update_error(f, &error, fake_lb_config(f, "outlier_detection", "{" KEEN ", " RR "}", NULL));
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A);
    tc_status_fini(&error);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        OUTLIER_TEST(several_addresses),      OUTLIER_TEST(with_other_addresses),
        OUTLIER_TEST(counted_as_one),         OUTLIER_TEST(ejected_and_gone),
        OUTLIER_TEST(connects_while_ejected), OUTLIER_TEST(pick_first_alone),
        OUTLIER_TEST(below_priority),         OUTLIER_TEST(nested),
        OUTLIER_TEST(rpcs_outlive),           OUTLIER_TEST(picks_without_rpc),
        OUTLIER_TEST(no_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
