/* weighted_round_robin on virtual time: weights from trailers and out of band, periods, updates, and what outlives the
 * policy. round_robin_test.c tests the connectivity states, which are the same for both policies.
 *
 * The policy runs in fakes/lb, which the setup of each test makes and the teardown frees. An RPC is a pick that is
 * followed by `finish`, which gives the trailers to the trackers of the pick; out of band, send_oob calls the watch of
 * an address. Weights change the picks at the next scheduler, mostly after a weightUpdatePeriod (default 1,000 ms), so
 * most tests report, run the clock, and assert the shares of A, B and C. One thread. */
#include "lb/weighted_round_robin/policy.h"

#include "lb/orca.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"
#include "support/kits/orca.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define WRR "weighted_round_robin"
#define NO_BLACKOUT "'blackoutPeriod': '0s'"

static const char *const all[] = {A, B, C};

static int setup(void **state)
{
    *state = fake_lb_new(WRR);
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static void update(struct fake_lb *f, const char *endpoints, const char *config)
{
    assert_true(fake_lb_update(f, fake_lb_endpoints(endpoints), fake_lb_config(f, WRR, config, NULL), NULL));
}

static void ready(struct fake_lb *f, const char *addr)
{
    fake_lb_set(f, addr, TORC_CONNECTIVITY_READY);
}

/* Advances the clock, and runs what became due. */
static void run(struct fake_lb *f, uint64_t ms)
{
    tc_loop_advance(f->loop, ms);
    tc_loop_drain(f->loop);
}

/* Ends the RPC of the last pick, whose trailers have `copies` of the report (NULL: none). */
static void finish(struct fake_lb *f, const struct kit_orca *report, unsigned copies)
{
    struct tc_status ok = {0};
    struct tc_headers trailers;
    struct tc_buf bytes = {0};
    tc_headers_init(&trailers, &f->arena);
    for (unsigned i = 0; report && i < copies; i++)
        tc_headers_add(&trailers, tc_slice_str("endpoint-load-metrics-bin"), kit_orca_pack(report, &bytes));
    for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, &ok, &trailers);
    }
    f->pick.trackers = NULL;
    tc_buf_fini(&bytes);
}

/* Makes picks whose RPCs end without a report. counts[k] becomes the number of picks of all[k]. */
static void count(struct fake_lb *f, unsigned picks, unsigned counts[3])
{
    memset(counts, 0, 3 * sizeof(*counts));
    for (unsigned i = 0; i < picks; i++) {
        const char *at = fake_lb_pick(f);
        for (size_t k = 0; k < 3; k++)
            counts[k] += strcmp(at, all[k]) == 0;
        finish(f, NULL, 0);
    }
}

/* Makes RPCs until each endpoint of `all` had one, at most 1,000 (with fewer endpoints exactly 1,000). An RPC on all[k]
 * ends with reports[k]; a QPS of 0: without a report. */
static void report_all(struct fake_lb *f, const struct kit_orca reports[3])
{
    for (unsigned left = 7, i = 0; left && i < 1000; i++) {
        const char *at = fake_lb_pick(f);
        for (size_t k = 0; k < 3; k++)
            if (strcmp(at, all[k]) == 0) {
                finish(f, reports[k].qps > 0 ? &reports[k] : NULL, 1);
                left &= ~(1u << k);
            }
    }
}

/* Asserts that A, B and C get a, b and c of each a + b + c picks, within 1 %. */
static void assert_shares(struct fake_lb *f, unsigned a, unsigned b, unsigned c)
{
    unsigned counts[3], round = a + b + c;
    count(f, 100 * round, counts);
    assert_in_range(counts[0], 100 * a - a, 100 * a + a);
    assert_in_range(counts[1], 100 * b - b, 100 * b + b);
    assert_in_range(counts[2], 100 * c - c, 100 * c + c);
}

static void three_ready(struct fake_lb *f, const char *config)
{
    update(f, A " " B " " C, config);
    for (size_t i = 0; i < 3; i++)
        ready(f, all[i]);
}

static void shares_follow_reports(void **state)
{
    TC_CASE(WR07);
    struct fake_lb *f = *state;
    three_ready(f, "{" NO_BLACKOUT "}");
    assert_shares(f, 1, 1, 1);
    report_all(f, (struct kit_orca[]){{.app = .9, .qps = 100}, {.app = .3, .qps = 100}, {.qps = 0}});
    assert_shares(f, 1, 1, 1); /* until weightUpdatePeriod is over */
    run(f, 1000);
    assert_shares(f, 1, 3, 2); /* the third weight is the mean */
    report_all(f, (struct kit_orca[]){{.qps = 0}, {.qps = 0}, {.app = .3, .qps = 100}});
    run(f, 1000);
    assert_shares(f, 1, 3, 3);
}

static void errors_are_a_penalty(void **state)
{
    TC_CASE(WR08);
    struct fake_lb *f = *state;
    const struct kit_orca reports[] = {
        {.app = .1, .qps = 100, .eps = 50}, {.app = .1, .qps = 100, .eps = 20}, {.app = .1, .qps = 100, .eps = 10}};
    three_ready(f, "{" NO_BLACKOUT "}");
    report_all(f, reports);
    run(f, 1000);
    assert_shares(f, 1, 2, 3);
    update(f, A " " B " " C, "{" NO_BLACKOUT ", 'errorUtilizationPenalty': 0}");
    report_all(f, reports);
    run(f, 1000);
    assert_shares(f, 1, 1, 1);
}

/* An update makes a new scheduler at once, and the weightUpdatePeriod of the update counts from then on. */
static void a_shorter_period_counts_at_once(void **state)
{
    struct fake_lb *f = *state;
    three_ready(f, "{" NO_BLACKOUT ", 'weightUpdatePeriod': '3600s'}");
    report_all(f, (struct kit_orca[]){{.app = .9, .qps = 1}, {.app = .3, .qps = 1}, {.app = .3, .qps = 1}});
    run(f, 10000);
    assert_shares(f, 1, 1, 1);
    update(f, A " " B " " C, "{" NO_BLACKOUT ", 'weightUpdatePeriod': '1s'}");
    assert_shares(f, 1, 3, 3);
    report_all(f, (struct kit_orca[]){{.app = .3, .qps = 1}, {.app = .3, .qps = 1}, {.app = .3, .qps = 1}});
    run(f, 1000);
    assert_shares(f, 1, 1, 1);
}

static void weights_expire(void **state)
{
    TC_CASE(WR09);
    TC_CASE(PD05);
    struct fake_lb *f = *state;
    const struct kit_orca reports[] = {{.app = .9, .qps = 1}, {.app = .3, .qps = 1}, {.app = .3, .qps = 1}};
    three_ready(f, "{'blackoutPeriod': '1s', 'weightExpirationPeriod': '2s', 'weightUpdatePeriod': '0.5s'}");
    report_all(f, reports);
    run(f, 500);
    assert_shares(f, 1, 1, 1);
    run(f, 500);
    assert_shares(f, 1, 3, 3);
    run(f, 1000);
    assert_shares(f, 1, 1, 1);
    report_all(f, reports);
    run(f, 500);
    assert_shares(f, 1, 1, 1);
    run(f, 500);
    assert_shares(f, 1, 3, 3);
}

static void a_new_connection_begins_a_blackout(void **state)
{
    TC_CASE(WR10);
    struct fake_lb *f = *state;
    const char *config = "{'blackoutPeriod': '1s'}";
    const struct kit_orca reports[] = {{.app = .9, .qps = 1}, {.app = .3, .qps = 1}, {.app = .3, .qps = 1}};
    three_ready(f, config);
    report_all(f, reports);
    run(f, 1000);
    assert_shares(f, 1, 3, 3);
    update(f, A " " B " " C, config);
    assert_shares(f, 1, 3, 3);
    update(f, C " " A " " B, config);
    assert_shares(f, 1, 3, 3);
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    ready(f, A);
    assert_shares(f, 1, 1, 1); /* A counts as the mean of the others */
    report_all(f, reports);
    run(f, 1000);
    assert_shares(f, 1, 3, 3);
    update(f, A " " B " " C, "{" NO_BLACKOUT "}"); /* no blackout, so the weight counts at once */
    fake_lb_set(f, A, TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    ready(f, A);
    assert_shares(f, 1, 3, 3);
}

/* Brings a report out of band from the address, which must be watched. */
static void send_oob(struct fake_lb *f, const char *addr, const struct kit_orca *report)
{
    struct tc_buf bytes = {0};
    struct tc_side_watch *w = fake_lb_side_watch(f, addr);
    assert_non_null(w);
    assert_ptr_equal(w->kind, &tc_orca_reports);
    w->on_message(w, kit_orca_pack(report, &bytes));
    tc_buf_fini(&bytes);
}

static unsigned side_watches(const struct fake_lb *f)
{
    unsigned n = 0;
    for (const struct tc_link *it = f->side_watches.next; it != &f->side_watches; it = it->next)
        n++;
    return n;
}

static void out_of_band_then_per_call(void **state)
{
    TC_CASE(WR12);
    struct fake_lb *f = *state;
    struct kit_orca low = {.cpu = .1, .qps = 10}, high = {.cpu = 1, .qps = 10};
    update(f, A " " B, "{" NO_BLACKOUT ", 'enableOobLoadReport': true, 'oobReportingPeriod': '5s'}");
    assert_int_equal(side_watches(f), 0);
    ready(f, A);
    ready(f, B);
    assert_int_equal(side_watches(f), 2);
    assert_int_equal(TC_CONTAINER_OF(fake_lb_side_watch(f, A), struct tc_orca_watch, side)->interval_ms, 5000);
    send_oob(f, A, &high);
    send_oob(f, B, &low);
    run(f, 1000);
    assert_shares(f, 1, 10, 0);
    /* Trailers do not count: the RPC has no tracker. */
    fake_lb_pick(f);
    assert_null(f->pick.trackers);
    update(f, A " " B, "{" NO_BLACKOUT ", 'enableOobLoadReport': true, 'oobReportingPeriod': '7s'}");
    assert_int_equal(side_watches(f), 2);
    assert_int_equal(TC_CONTAINER_OF(fake_lb_side_watch(f, B), struct tc_orca_watch, side)->interval_ms, 7000);
    fake_lb_set(f, B, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(side_watches(f), 1);
    fake_lb_set(f, B, TORC_CONNECTIVITY_CONNECTING);
    ready(f, B);
    assert_int_equal(side_watches(f), 2);
    update(f, A " " B, "{" NO_BLACKOUT "}");
    assert_int_equal(side_watches(f), 0);
    report_all(f, (struct kit_orca[]){low, high, {.qps = 0}});
    run(f, 1000);
    assert_shares(f, 10, 1, 0);
    update(f, A " " B, "{" NO_BLACKOUT ", 'enableOobLoadReport': true}");
    assert_int_equal(side_watches(f), 2);
    update(f, A, "{" NO_BLACKOUT ", 'enableOobLoadReport': true}");
    assert_int_equal(side_watches(f), 1);
}

static void shared_and_repeated_addresses(void **state)
{
    TC_CASE(WR14);
    struct fake_lb *f = *state;
    update(f, A "," B " " B " " B " " C, "{" NO_BLACKOUT "}");
    assert_int_equal(fake_lb_count(f, B), 1); /* the second endpoint's; the first endpoint tries A */
    for (size_t i = 0; i < 3; i++)
        ready(f, all[i]);
    report_all(f, (struct kit_orca[]){{.app = .9, .qps = 1}, {.app = .3, .qps = 1}, {.app = .3, .qps = 1}});
    run(f, 1000);
    assert_shares(f, 1, 3, 3);
}

static void reports_that_do_not_count(void **state)
{
    struct fake_lb *f = *state;
    struct kit_orca high = {.app = 1, .qps = 1}, low = {.app = .1, .qps = 1};
    update(f, A " " B, "{" NO_BLACKOUT "}");
    ready(f, A);
    ready(f, B);
    report_all(f, (struct kit_orca[]){high, high, {.qps = 0}});
    while (strcmp(fake_lb_pick(f), A) != 0)
        finish(f, NULL, 0);
    finish(f, &low, 2); /* ignored: the trailers have it twice */
    run(f, 1000);
    assert_shares(f, 1, 1, 0);
    for (unsigned i = 0; i < 10; i++) { /* a dry pick gives the endpoint that the next pick takes */
        f->args.dry = true;
        const char *dry = fake_lb_pick(f);
        assert_null(f->pick.trackers);
        f->args.dry = false;
        assert_string_equal(fake_lb_pick(f), dry);
        finish(f, NULL, 0);
    }
}

/* The tracker of an RPC outlives the endpoint and the policy; a picker that was replaced answers QUEUE. */
static void what_outlives_the_policy(void **state)
{
    struct fake_lb *f = *state;
    struct kit_orca report = {.app = 1, .qps = 1};
    update(f, A " " B, "{}");
    ready(f, A);
    ready(f, B);
    fake_lb_pick(f);
    struct tc_call_tracker *first = f->pick.trackers;
    fake_lb_pick(f);
    struct tc_call_tracker *second = f->pick.trackers;
    struct tc_picker *picker = tc_picker_ref(f->picker);
    update(f, C, "{}");
    assert_int_equal(tc_picker_pick(picker, &f->args, &f->pick), TC_PICK_QUEUE);
    f->pick.trackers = first;
    finish(f, &report, 1);
    assert_false(fake_lb_update(f, fake_lb_endpoints(""), fake_lb_config(f, WRR, "{}", NULL), NULL));
    f->policy->ops->shutdown(f->policy);
    run(f, 1);
    f->policy = NULL;
    assert_int_equal(tc_picker_pick(picker, &f->args, &f->pick), TC_PICK_QUEUE);
    tc_picker_unref(picker);
    f->pick.trackers = second;
    finish(f, &report, 1);
}

/* The present picker passes over an endpoint that is lost in this turn of the loop. */
static void a_lost_endpoint_is_passed_over(void **state)
{
    struct fake_lb *f = *state;
    three_ready(f, "{" NO_BLACKOUT "}");
    report_all(f, (struct kit_orca[]){{.app = .1, .qps = 1}, {.app = 1, .qps = 1}, {.app = 1, .qps = 1}});
    run(f, 1000);
    assert_shares(f, 10, 1, 1);
    struct tc_subchannel *lost = (struct tc_subchannel *)f->subchannels.data[0];
    lost->on_state(lost->arg, TORC_CONNECTIVITY_IDLE, &(struct tc_status){0});
    for (unsigned i = 0; i < 24; i++) { /* the loop does not turn, so no new picker comes */
        assert_int_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_COMPLETE);
        assert_ptr_not_equal(f->pick.subchannel, lost);
        finish(f, NULL, 0);
    }
    tc_loop_drain(f->loop);
    assert_shares(f, 0, 1, 1);
}

static void many_endpoints(void **state)
{
    struct fake_lb *f = *state;
    struct tc_buf list = {0};
    enum { MANY = 5000 };
    for (unsigned i = 0; i < MANY; i++)
        tc_buf_printf(&list, "10.0.%u.%u:1 ", i / 250, i % 250);
    update(f, tc_buf_cstr(&list), "{" NO_BLACKOUT "}");
    while (f->subchannels.len < MANY)
        run(f, 1);
    for (size_t i = 0; i < MANY; i++)
        fake_lb_set_at(f, i, TORC_CONNECTIVITY_READY);
    struct kit_orca report = {.app = .5, .qps = 10};
    for (unsigned i = 0; i < 3 * MANY; i++) {
        fake_lb_pick(f);
        report.qps = 1 + i % 7;
        finish(f, &report, 1);
        if (i % 1000 == 0)
            run(f, 1000);
    }
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    /* A lost endpoint gets no pick from then on. When it is READY again it gets picks within 100 ms: with many
     * endpoints not every change makes a scheduler. */
    fake_lb_set(f, "10.0.0.7:1", TORC_CONNECTIVITY_IDLE);
    fake_lb_set(f, "10.0.0.7:1", TORC_CONNECTIVITY_CONNECTING);
    for (unsigned i = 0; i < 3 * MANY; i++) {
        assert_string_not_equal(fake_lb_pick(f), "10.0.0.7:1");
        finish(f, NULL, 0);
    }
    ready(f, "10.0.0.7:1");
    run(f, 100);
    while (strcmp(fake_lb_pick(f), "10.0.0.7:1") != 0)
        finish(f, NULL, 0);
    finish(f, NULL, 0);
    /* Another list takes effect at once, although each endpoint has another place in it. */
    tc_buf_clear(&list);
    for (unsigned i = 300; i > 0; i--)
        tc_buf_printf(&list, "10.0.%u.%u:1 ", 18 + i / 250, i % 250);
    update(f, tc_buf_cstr(&list), "{" NO_BLACKOUT "}");
    for (unsigned i = 0; i < 600; i++) {
        const char *at = fake_lb_pick(f);
        assert_true(strncmp(at, "10.0.18.", 8) == 0 || strncmp(at, "10.0.19.", 8) == 0);
        finish(f, NULL, 0);
    }
    update(f, A, "{}");
    tc_buf_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shares_follow_reports, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_are_a_penalty, setup, teardown),
        cmocka_unit_test_setup_teardown(a_shorter_period_counts_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_connection_begins_a_blackout, setup, teardown),
        cmocka_unit_test_setup_teardown(out_of_band_then_per_call, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_and_repeated_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_that_do_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(what_outlives_the_policy, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_endpoint_is_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(many_endpoints, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
