/* Load reports end to end: what the LRS server is told is what backends and callers counted. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/lrs_kit.h"

#include "base/mem.h"

#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"

#define LRS "lrs_server: {self: {}}"
#define PLAIN "lb_policy: ROUND_ROBIN"
#define REPORTED PLAIN "\n  " LRS
#define INTERVAL_MS 100

struct world {
    struct mesh_kit *k;
    struct lrs_kit *lrs;
    torc_channel *ch;
    struct lrs_seen seen;
};

/* A listener "svc" whose route leads to cluster "c". */
static struct world *open_world(size_t backends)
{
    struct world *w = TC_NEW(struct world);
    w->k = mesh_kit_new(backends);
    w->lrs = lrs_kit_new(w->k, INTERVAL_MS);
    mesh_kit_put_listener(w->k, "svc", "c", NULL);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    lrs_kit_free(w->lrs);
    mesh_kit_free(w->k);
    tc_free(w);
}

static uint64_t told_ended(const struct lrs_cluster *c)
{
    return c->a.success + c->a.error + c->b.success + c->b.error + c->none.success + c->none.error;
}

/* Waits until all that was seen is told of cluster c; the sums of the two localities then. */
static struct lrs_cluster told_all(struct world *w)
{
    const struct lrs_seen *s = &w->seen;
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) + lrs_told_cluster(t, "c")->dropped >=
                         s->ok + s->failed + s->dropped);
    struct lrs_cluster c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.a.success + c.b.success, s->ok);
    assert_int_equal(c.a.error + c.b.error, s->failed);
    assert_int_equal(c.a.issued, c.a.success + c.a.error);
    assert_int_equal(c.b.issued, c.b.success + c.b.error);
    assert_int_equal(c.none.issued, 0);
    assert_int_equal(c.dropped, s->dropped);
    assert_int_equal(c.dropped_lb, s->dropped);
    assert_int_equal(c.dropped_other, 0);
    return c;
}

/* Two localities, ten good and three bad calls to each. */
static void one_report_by_locality(void **state)
{
    (void)state;
    struct world *w = open_world(2);
    lrs_kit_ask(w->lrs, 3600000, NULL); /* longer than the calls take: one report has them all */
    mesh_kit_put_endpoints(w->k, "service", "0/a: 0", NULL);
    mesh_kit_put(w->k, "resources:\n"
                       "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                       "  name: c\n"
                       "  type: EDS\n"
                       "  eds_cluster_config: {eds_config: {ads: {}}, service_name: service}\n"
                       "  " REPORTED "\n");
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    lrs_calls(w->ch, 13, &w->seen); /* 10 good, 3 bad */
    mesh_kit_put_endpoints(w->k, "service", "0/b: 1", NULL);
    mesh_kit_wait_backend(w->k, w->ch, NULL, 1);
    uint64_t at_a = mesh_kit_take(w->k, 0), warm_up = mesh_kit_take(w->k, 1) + at_a - 13;
    w->seen.ok += warm_up;
    lrs_calls(w->ch, 13, &w->seen);
    lrs_kit_ask(w->lrs, INTERVAL_MS, NULL);
    struct lrs_cluster c = told_all(w);
    assert_int_equal(w->seen.ok, 20 + warm_up);
    assert_int_equal(w->seen.failed, 6);
    assert_int_equal(c.a.issued, at_a);
    assert_int_equal(c.a.issued + c.b.issued, 26 + warm_up);
    assert_int_equal(c.a.error, 3);
    assert_int_equal(c.b.error, 3);
    assert_int_equal(c.a.in_progress + c.b.in_progress, 0);
    assert_int_equal(c.reports, 1);
    assert_string_equal(c.service, "service");
    assert_int_equal(lrs_kit_look(w->lrs)->streams_so_far, 1);
    close_world(w);
    TC_CASE(LS01);
}

static void all_clusters_and_named_ones(void **state)
{
    (void)state;
    struct world *w = open_world(2);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    mesh_kit_put_endpoints(w->k, "d", "0/b: 1", NULL);
    mesh_kit_put_cluster(w->k, "d", REPORTED);
    mesh_kit_put_routes(w->k, "svc",
                        "{match: {prefix: \"/torc.test\"}, route: {cluster: d}},"
                        "{match: {prefix: \"\"}, route: {cluster: c}}");
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    lrs_calls(w->ch, 40, &w->seen); /* 30 good ones to c, 10 bad ones to d */
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->a.success == 30 && lrs_told_cluster(t, "d")->b.error == 10);
    TC_CASE(LS02);
    /* One that there is not: nothing is said, and nothing is lost. */
    lrs_kit_ask(w->lrs, INTERVAL_MS, "bogus");
    uint64_t empty = lrs_kit_look(w->lrs)->empty, told = lrs_kit_look(w->lrs)->clusters[0].reports;
    LRS_WAIT(w->lrs, t->empty >= empty + 2); /* the client knows by now */
    lrs_calls(w->ch, 40, &w->seen);
    empty = lrs_kit_look(w->lrs)->empty;
    LRS_WAIT(w->lrs, t->empty >= empty + 3);
    assert_int_equal(lrs_kit_look(w->lrs)->clusters[0].reports, told);
    TC_CASE(LS03);
    /* One of the two, then the other. */
    lrs_kit_ask(w->lrs, INTERVAL_MS, "c");
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->a.success == 60);
    assert_int_equal(lrs_told_cluster(lrs_kit_look(w->lrs), "d")->b.error, 10);
    lrs_kit_ask(w->lrs, INTERVAL_MS, "d");
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "d")->b.error == 20);
    assert_int_equal(lrs_told_cluster(lrs_kit_look(w->lrs), "c")->a.success, 60);
    close_world(w);
}

static void route_moves_to_another_cluster(void **state)
{
    (void)state;
    struct world *w = open_world(2);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    lrs_calls(w->ch, 40, &w->seen);
    mesh_kit_put_endpoints(w->k, "d", "0/b: 1", NULL);
    mesh_kit_put_cluster(w->k, "d", REPORTED);
    mesh_kit_put_listener(w->k, "svc", "d", NULL);
    mesh_kit_wait_backend(w->k, w->ch, NULL, 1);
    lrs_calls(w->ch, 40, &w->seen);
    uint64_t at_a = mesh_kit_take(w->k, 0), at_b = mesh_kit_take(w->k, 1);
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) + told_ended(lrs_told_cluster(t, "d")) >= at_a + at_b);
    const struct lrs_told *t = lrs_kit_look(w->lrs);
    assert_int_equal(lrs_told_cluster(t, "c")->a.issued, at_a);
    assert_int_equal(lrs_told_cluster(t, "d")->b.issued, at_b);
    assert_int_equal(lrs_told_cluster(t, "c")->a.error, 10);
    assert_int_equal(lrs_told_cluster(t, "d")->b.error, 10);
    assert_int_equal(lrs_told_cluster(t, "c")->b.issued + lrs_told_cluster(t, "d")->a.issued, 0);
    assert_int_equal(t->streams_so_far, 1);
    close_world(w);
    TC_CASE(LS05);
}

static void breaker_drops_without_a_category(void **state)
{
    (void)state;
    struct world *w = open_world(1);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED "\n  circuit_breakers: {thresholds: [{max_requests: 1}]}");
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    torc_call *held = lrs_hang(w->k, w->ch); /* the one that there may be */
    lrs_calls(w->ch, 20, &w->seen);
    assert_int_equal(w->seen.broken, 20);
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->dropped >= 20);
    struct lrs_cluster c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.dropped, 20);
    assert_int_equal(c.dropped_lb + c.dropped_other, 0);
    assert_int_equal(c.a.issued, 1);
    assert_int_equal(c.a.in_progress, 1);
    lrs_hang_end(held);
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->a.error == 1 && lrs_told_cluster(t, "c")->a.in_progress == 0);
    /* Categories of the assignment, beside it. */
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0",
                           "policy: {drop_overloads: [{category: lb, drop_percentage: {numerator: 100}}]}");
    mesh_kit_wait_failure(w->ch, TORC_STATUS_UNAVAILABLE, "EDS-configured drop: lb");
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->dropped_lb >= 1);
    c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.dropped, 20 + c.dropped_lb);
    assert_int_equal(c.dropped_other, 0);
    close_world(w);
    TC_CASE(LS06);
}

/* The LRS server is away for a while: the next report has it all, and its interval says how long it was. */
static void a_stream_that_breaks(void **state)
{
    (void)state;
    struct world *w = open_world(2);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0; 0/b: 1", NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    uint64_t began_ns = lrs_now_ns();
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    lrs_calls(w->ch, 40, &w->seen);
    struct lrs_cluster before = told_all(w);
    lrs_kit_hold(w->lrs, true);
    LRS_WAIT(w->lrs, t->streams_so_far >= 2 && t->streams >= 1); /* and says nothing */
    uint64_t away_ns = lrs_now_ns();
    lrs_calls(w->ch, 40, &w->seen);
    while (lrs_now_ns() < away_ns + INTERVAL_MS * UINT64_C(3000000)) /* longer than an interval */
        lrs_calls(w->ch, 4, &w->seen);
    assert_int_equal(told_ended(lrs_told_cluster(lrs_kit_look(w->lrs), "c")), told_ended(&before));
    away_ns = lrs_now_ns() - away_ns;
    lrs_kit_hold(w->lrs, false);
    struct lrs_cluster after = told_all(w);
    assert_true(after.widest_ns >= away_ns);
    assert_true(after.interval_ns <= lrs_now_ns() - began_ns);
    close_world(w);
    TC_CASE(LS04);
    TC_CASE(LS07);
}

static void no_reports_wanted_any_more(void **state)
{
    (void)state;
    struct world *w = open_world(2);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0; 0/b: 1", NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    lrs_calls(w->ch, 20, &w->seen);
    told_all(w);
    /* Changes beside lrs_server, then the same once more: the stream stays. */
    mesh_kit_put_cluster(w->k, "c", REPORTED "\n  circuit_breakers: {thresholds: [{max_requests: 0}]}");
    mesh_kit_wait_failure(w->ch, TORC_STATUS_UNAVAILABLE, "circuit breaker drop");
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    mesh_kit_wait_backend(w->k, w->ch, NULL, 0);
    lrs_calls(w->ch, 20, &w->seen);
    w->seen.ok += mesh_kit_take(w->k, 0) + mesh_kit_take(w->k, 1) - 40; /* those that waited for a change */
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) >= w->seen.ok + w->seen.failed);
    assert_int_equal(lrs_kit_look(w->lrs)->streams, 1);
    assert_int_equal(lrs_kit_look(w->lrs)->streams_so_far, 1);
    /* Removed: what is left is said, and the stream ends. */
    lrs_kit_ask(w->lrs, 3600000, NULL); /* no report of its own accord any more */
    uint64_t reports = lrs_kit_look(w->lrs)->reports;
    lrs_calls(w->ch, 40, &w->seen);
    mesh_kit_put_cluster(w->k, "c", PLAIN);
    LRS_WAIT(w->lrs, t->streams == 0);
    struct lrs_cluster c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_true(lrs_kit_look(w->lrs)->reports > reports);
    assert_int_equal(c.a.success + c.b.success, w->seen.ok);
    assert_int_equal(c.a.error + c.b.error, w->seen.failed);
    lrs_calls(w->ch, 20, &w->seen);
    assert_int_equal(lrs_kit_look(w->lrs)->streams_so_far, 1);
    /* And wanted again. */
    lrs_kit_ask(w->lrs, INTERVAL_MS, NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    LRS_WAIT(w->lrs, t->streams_so_far == 2);
    lrs_calls(w->ch, 4, &w->seen);
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) > told_ended(&c));
    close_world(w);
    TC_CASE(LS08);
}

static void locality_goes_while_an_rpc_is_pending(void **state)
{
    (void)state;
    struct world *w = open_world(2);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    torc_call *held = lrs_hang(w->k, w->ch);
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->a.in_progress == 1);
    mesh_kit_put_endpoints(w->k, "c", "0/b: 1", NULL);
    mesh_kit_wait_backend(w->k, w->ch, NULL, 1);
    uint64_t reports = lrs_kit_look(w->lrs)->reports, before_b = mesh_kit_take(w->k, 0) - 1;
    LRS_WAIT(w->lrs, t->reports >= reports + 3);
    struct lrs_cluster c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.a.in_progress, 1);
    assert_int_equal(c.a.issued, 1 + before_b);
    assert_int_equal(c.a.success, before_b);
    assert_int_equal(c.a.error, 0);
    lrs_hang_end(held);
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->a.error >= 1);
    assert_int_equal(lrs_told_cluster(lrs_kit_look(w->lrs), "c")->a.error, 1);
    reports = lrs_kit_look(w->lrs)->reports;
    LRS_WAIT(w->lrs, t->reports >= reports + 2);
    c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.a.in_progress, 0);
    assert_int_equal(c.a.issued, 1 + before_b);
    assert_int_equal(c.b.success, mesh_kit_take(w->k, 1));
    close_world(w);
    TC_CASE(LS09);
}

static void put_dns(struct world *w, const char *more)
{
    mesh_kit_put(w->k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: c\n"
                 "  type: LOGICAL_DNS\n"
                 "  " LRS "\n"
                 "%s"
                 "  load_assignment:\n"
                 "    endpoints:\n"
                 "    - lb_endpoints:\n"
                 "      - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
                 more, strchr(mesh_kit_address(w->k, 0), ':') + 1);
}

static void dns_is_told_under_the_empty_locality(void **state)
{
    (void)state;
    struct world *w = open_world(1);
    put_dns(w, "");
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    lrs_calls(w->ch, 20, &w->seen);
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) >= 20);
    struct lrs_cluster c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.none.issued, 20);
    assert_int_equal(c.none.success, 15);
    assert_int_equal(c.none.error, 5);
    assert_int_equal(c.a.issued + c.b.issued, 0);
    assert_string_equal(c.service, "");
    put_dns(w, "  circuit_breakers: {thresholds: [{max_requests: 0}]}\n");
    mesh_kit_wait_failure(w->ch, TORC_STATUS_UNAVAILABLE, "circuit breaker drop");
    lrs_calls(w->ch, 20, &w->seen);
    assert_int_equal(w->seen.broken, 20);
    LRS_WAIT(w->lrs, lrs_told_cluster(t, "c")->dropped >= 21);
    c = *lrs_told_cluster(lrs_kit_look(w->lrs), "c");
    assert_int_equal(c.dropped, 21);
    assert_int_equal(c.dropped_lb + c.dropped_other, 0);
    assert_int_equal(c.none.issued, mesh_kit_take(w->k, 0)); /* those before the limit came among them */
    close_world(w);
    TC_CASE(DN03);
}

/* --- metrics of backends --- */

static void call_with_load(torc_channel *ch, double foo)
{
    Xds__Data__Orca__V3__OrcaLoadReport report = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__INIT;
    Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry entries[2];
    Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry *map[2] = {&entries[0], &entries[1]};
    uint8_t bytes[128];
    struct torc_call_options o;
    struct torc_result r;
    for (size_t i = 0; i < 2; i++) {
        xds__data__orca__v3__orca_load_report__named_metrics_entry__init(&entries[i]);
        entries[i].key = i ? "bar" : "foo";
        entries[i].value = i ? 100 : foo;
    }
    report.cpu_utilization = 0.5;
    report.mem_utilization = 0.25;
    report.named_metrics = map;
    report.n_named_metrics = 2;
    size_t n = xds__data__orca__v3__orca_load_report__pack(&report, bytes);
    torc_call_options_init(&o);
    torc_metadata *md = torc_metadata_new();
    assert_int_equal(torc_metadata_add(md, "x-load-metrics-bin", bytes, n), 0);
    o.metadata = md;
    assert_int_equal(torc_call_unary(ch, "/test.Service/Method", "hello", 5, &o, &r), 0);
    assert_int_equal(r.code, TORC_STATUS_OK);
    torc_result_fini(&r);
    torc_metadata_free(md);
}

static void assert_metric(const struct lrs_locality *l, const char *name, uint64_t requests, double total)
{
    assert_int_equal(lrs_metric(l, name)->requests, requests);
    assert_true(lrs_metric(l, name)->total == total);
}

static void metrics_that_are_listed(void **state)
{
    (void)state;
    struct world *w = open_world(1);
    mesh_kit_put_endpoints(w->k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(w->k, "c",
                         REPORTED "\n  lrs_report_endpoint_metrics: [cpu_utilization, named_metrics.foo, "
                                  "named_metrics.foo, unheard_of]");
    w->ch = mesh_kit_channel(w->k, "svc", NULL);
    for (int i = 1; i <= 4; i++)
        call_with_load(w->ch, i);
    lrs_calls(w->ch, 4, &w->seen); /* without a report of their own */
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) >= 8);
    struct lrs_locality a = lrs_told_cluster(lrs_kit_look(w->lrs), "c")->a;
    assert_metric(&a, "cpu", 4, 2.0);
    assert_metric(&a, "named_metrics.foo", 4, 10.0);
    assert_int_equal(a.n_metrics, 2);
    /* All names; not cpu_utilization any more. */
    mesh_kit_put_cluster(w->k, "c", REPORTED "\n  lrs_report_endpoint_metrics: [named_metrics.*, mem_utilization]");
    for (bool told = false; !told; told = lrs_metric(&a, "mem")->requests > 0) {
        call_with_load(w->ch, 1);
        a = lrs_told_cluster(lrs_kit_look(w->lrs), "c")->a;
    }
    uint64_t calls = mesh_kit_take(w->k, 0);
    LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) >= calls);
    a = lrs_told_cluster(lrs_kit_look(w->lrs), "c")->a;
    uint64_t late = lrs_metric(&a, "mem")->requests; /* those after the change */
    assert_metric(&a, "mem", late, (double)late * 0.25);
    assert_metric(&a, "named_metrics.bar", late, (double)late * 100);
    assert_metric(&a, "named_metrics.foo", calls - 4, 10.0 + (double)(calls - 8));
    assert_metric(&a, "cpu", calls - 4 - late, (double)(calls - 4 - late) / 2);
    /* Nothing is listed, nothing is told. */
    mesh_kit_put_cluster(w->k, "c", REPORTED);
    uint64_t before;
    do {
        before = lrs_metric(&a, "mem")->requests;
        call_with_load(w->ch, 1);
        calls += mesh_kit_take(w->k, 0);
        LRS_WAIT(w->lrs, told_ended(lrs_told_cluster(t, "c")) >= calls);
        a = lrs_told_cluster(lrs_kit_look(w->lrs), "c")->a;
    } while (lrs_metric(&a, "mem")->requests != before);
    close_world(w);
    TC_CASE(LS10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_report_by_locality),
        cmocka_unit_test(all_clusters_and_named_ones),
        cmocka_unit_test(route_moves_to_another_cluster),
        cmocka_unit_test(breaker_drops_without_a_category),
        cmocka_unit_test(a_stream_that_breaks),
        cmocka_unit_test(no_reports_wanted_any_more),
        cmocka_unit_test(locality_goes_while_an_rpc_is_pending),
        cmocka_unit_test(dns_is_told_under_the_empty_locality),
        cmocka_unit_test(metrics_that_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
