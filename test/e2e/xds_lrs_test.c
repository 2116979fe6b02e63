/* Load reports end to end, over real sockets (kits/mesh.h, kits/lrs.h): the sums at the LRS server equal the counts of
 * backends and callers.
 *
 * Each test has a mesh, an LRS server and one channel of its own (struct world). Backend 0 is in locality "a", backend
 * 1 in locality "b"; the backend of a DNS cluster is in the empty locality. Most tests make calls, keep the outcomes in
 * `seen`, wait until the reports have them all, and compare the sums by locality and kind of drop. The server asks for
 * a report every INTERVAL_MS until a test asks for another interval. The test's thread makes the calls. The servers'
 * thread adds up the reports, and kit_lrs_look copies the sums. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/lrs.h"

#include "base/mem.h"

#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"

#define LRS "lrs_server: {self: {}}"
#define PLAIN "lb_policy: ROUND_ROBIN"
#define REPORTED PLAIN "\n  " LRS
#define INTERVAL_MS 100

struct world {
    struct kit_mesh *k;
    struct kit_lrs *lrs;
    torc_channel *ch; /* to "svc"; NULL until the test opens it */
    struct kit_lrs_seen seen;
};

/* Makes a mesh with a listener "svc" whose route leads to cluster "c". The test puts the cluster and opens the channel.
 * close_world frees the world and the channel. */
static struct world *open_world(size_t backends)
{
    struct world *w = TC_NEW(struct world);
    w->k = kit_mesh_new(backends);
    w->lrs = kit_lrs_new(w->k, INTERVAL_MS);
    kit_mesh_put_listener(w->k, "svc", "c", NULL);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    kit_lrs_free(w->lrs);
    kit_mesh_free(w->k);
    tc_free(w);
}

/* Returns how many RPCs of the cluster have ended, as the reports say. */
static uint64_t told_ended(const struct kit_lrs_cluster *c)
{
    return c->a.success + c->a.error + c->b.success + c->b.error + c->none.success + c->none.error;
}

/* Waits until everything in `seen` was reported for cluster "c", asserts that nothing else was, and returns the sums.
 * `seen` must have no calls that the circuit breaker dropped. */
static struct kit_lrs_cluster told_all(struct world *w)
{
    const struct kit_lrs_seen *s = &w->seen;
    KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) + kit_lrs_told_cluster(t, "c")->dropped >=
                             s->ok + s->failed + s->dropped);
    struct kit_lrs_cluster c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
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

/* Two localities one after the other, with ten good and three bad calls to each, and the calls that wait for the
 * second. */
static void one_report_by_locality(void **state)
{
    TC_CASE(LS01);
    (void)state;
    struct world *w = open_world(2);
    kit_lrs_ask(w->lrs, 3600000, NULL); /* longer than the calls take: one report has them all */
    kit_mesh_put_endpoints(w->k, "service", "0/a: 0", NULL);
    kit_mesh_put(w->k, "resources:\n"
                       "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                       "  name: c\n"
                       "  type: EDS\n"
                       "  eds_cluster_config: {eds_config: {ads: {}}, service_name: service}\n"
                       "  " REPORTED "\n");
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 13, &w->seen); /* 10 good, 3 bad */
    kit_mesh_put_endpoints(w->k, "service", "0/b: 1", NULL);
    kit_mesh_wait_backend(w->k, w->ch, NULL, 1);
    uint64_t at_a = kit_mesh_take(w->k, 0), warm_up = kit_mesh_take(w->k, 1) + at_a - 13;
    w->seen.ok += warm_up;
    kit_lrs_calls(w->ch, 13, &w->seen);
    kit_lrs_ask(w->lrs, INTERVAL_MS, NULL);
    struct kit_lrs_cluster c = told_all(w);
    assert_int_equal(w->seen.ok, 20 + warm_up);
    assert_int_equal(w->seen.failed, 6);
    assert_int_equal(c.a.issued, at_a);
    assert_int_equal(c.a.issued + c.b.issued, 26 + warm_up);
    assert_int_equal(c.a.error, 3);
    assert_int_equal(c.b.error, 3);
    assert_int_equal(c.a.in_progress + c.b.in_progress, 0);
    assert_int_equal(c.reports, 1);
    assert_string_equal(c.service, "service");
    assert_int_equal(kit_lrs_look(w->lrs)->streams_so_far, 1);
    close_world(w);
}

static void all_clusters_and_named_ones(void **state)
{
    TC_CASE(LS02);
    TC_CASE(LS03);
    (void)state;
    struct world *w = open_world(2);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    kit_mesh_put_endpoints(w->k, "d", "0/b: 1", NULL);
    kit_mesh_put_cluster(w->k, "d", REPORTED);
    kit_mesh_put_routes(w->k, "svc",
                        "{match: {prefix: \"/torc.test\"}, route: {cluster: d}},"
                        "{match: {prefix: \"\"}, route: {cluster: c}}");
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 40, &w->seen); /* 30 successful calls to c, 10 failed ones to d */
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->a.success == 30 && kit_lrs_told_cluster(t, "d")->b.error == 10);
    /* An unknown cluster: nothing is reported, and nothing is lost. */
    kit_lrs_ask(w->lrs, INTERVAL_MS, "bogus");
    uint64_t empty = kit_lrs_look(w->lrs)->empty;
    uint64_t of_c = kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->reports;
    uint64_t of_d = kit_lrs_told_cluster(kit_lrs_look(w->lrs), "d")->reports;
    KIT_LRS_WAIT(w->lrs, t->empty >= empty + 2); /* the client knows by now */
    kit_lrs_calls(w->ch, 40, &w->seen);
    empty = kit_lrs_look(w->lrs)->empty;
    KIT_LRS_WAIT(w->lrs, t->empty >= empty + 3);
    assert_int_equal(kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->reports, of_c);
    assert_int_equal(kit_lrs_told_cluster(kit_lrs_look(w->lrs), "d")->reports, of_d);
    /* The server asks for one of the two clusters, then for the other. */
    kit_lrs_ask(w->lrs, INTERVAL_MS, "c");
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->a.success == 60);
    assert_int_equal(kit_lrs_told_cluster(kit_lrs_look(w->lrs), "d")->b.error, 10);
    kit_lrs_ask(w->lrs, INTERVAL_MS, "d");
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "d")->b.error == 20);
    assert_int_equal(kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->a.success, 60);
    close_world(w);
}

/* The server asks for counts by endpoint, and later no longer does. */
static void by_endpoint(void **state)
{
    TC_CASE(LS11);
    (void)state;
    struct world *w = open_world(2);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 8, &w->seen);
    struct kit_lrs_cluster c = told_all(w);
    assert_int_equal(c.a.endpoint_reports, 0);
    kit_lrs_ask_endpoints(w->lrs, true);
    while (c.a.endpoint_reports == 0) {
        kit_lrs_calls(w->ch, 4, &w->seen);
        c = told_all(w);
    }
    struct kit_lrs_cluster before = c;
    kit_lrs_calls(w->ch, 40, &w->seen);
    c = told_all(w);
    assert_int_equal(c.a.endpoint_success - before.a.endpoint_success, 30);
    assert_int_equal(c.a.endpoint_error - before.a.endpoint_error, 10);
    assert_int_equal(c.a.endpoint_issued - before.a.endpoint_issued, 40);
    assert_int_equal(c.a.port, kit_lrs_backend_port(w->lrs, 0));
    kit_lrs_ask_endpoints(w->lrs, false);
    uint64_t reports;
    do {
        reports = c.a.endpoint_reports;
        kit_lrs_calls(w->ch, 4, &w->seen);
        c = told_all(w);
    } while (c.a.endpoint_reports != reports);
    close_world(w);
}

static void route_moves_to_another_cluster(void **state)
{
    TC_CASE(LS05);
    (void)state;
    struct world *w = open_world(2);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 40, &w->seen);
    kit_mesh_put_endpoints(w->k, "d", "0/b: 1", NULL);
    kit_mesh_put_cluster(w->k, "d", REPORTED);
    kit_mesh_put_listener(w->k, "svc", "d", NULL);
    kit_mesh_wait_backend(w->k, w->ch, NULL, 1);
    kit_lrs_calls(w->ch, 40, &w->seen);
    uint64_t at_a = kit_mesh_take(w->k, 0), at_b = kit_mesh_take(w->k, 1);
    KIT_LRS_WAIT(w->lrs,
                 told_ended(kit_lrs_told_cluster(t, "c")) + told_ended(kit_lrs_told_cluster(t, "d")) >= at_a + at_b);
    const struct kit_lrs_told *t = kit_lrs_look(w->lrs);
    assert_int_equal(kit_lrs_told_cluster(t, "c")->a.issued, at_a);
    assert_int_equal(kit_lrs_told_cluster(t, "d")->b.issued, at_b);
    assert_int_equal(kit_lrs_told_cluster(t, "c")->a.error, 10);
    assert_int_equal(kit_lrs_told_cluster(t, "d")->b.error, 10);
    assert_int_equal(kit_lrs_told_cluster(t, "c")->b.issued + kit_lrs_told_cluster(t, "d")->a.issued, 0);
    assert_int_equal(t->streams_so_far, 1);
    close_world(w);
}

static void breaker_drops_without_a_category(void **state)
{
    TC_CASE(LS06);
    (void)state;
    struct world *w = open_world(1);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED "\n  circuit_breakers: {thresholds: [{max_requests: 1}]}");
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    torc_stream *held = kit_lrs_hang(w->k, w->ch); /* the only call that may be open */
    kit_lrs_calls(w->ch, 20, &w->seen);
    assert_int_equal(w->seen.broken, 20);
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->dropped >= 20);
    struct kit_lrs_cluster c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_int_equal(c.dropped, 20);
    assert_int_equal(c.dropped_lb + c.dropped_other, 0);
    assert_int_equal(c.a.issued, 1);
    assert_int_equal(c.a.in_progress, 1);
    kit_lrs_hang_end(held);
    KIT_LRS_WAIT(w->lrs,
                 kit_lrs_told_cluster(t, "c")->a.error == 1 && kit_lrs_told_cluster(t, "c")->a.in_progress == 0);
    /* Now the assignment drops all RPCs in the category "lb", and the circuit breaker drops none. */
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0",
                           "policy: {drop_overloads: [{category: lb, drop_percentage: {numerator: 100}}]}");
    kit_mesh_wait_failure(w->ch, TORC_STATUS_UNAVAILABLE, "EDS-configured drop: lb");
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->dropped_lb >= 1);
    c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_int_equal(c.dropped, 20 + c.dropped_lb);
    assert_int_equal(c.dropped_other, 0);
    close_world(w);
}

/* The LRS server ends the stream, and stays silent on the next one for a while. After that everything is reported, and
 * the interval of one report covers the outage. */
static void a_stream_that_breaks(void **state)
{
    TC_CASE(LS04);
    TC_CASE(LS07);
    (void)state;
    struct world *w = open_world(2);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0; 0/b: 1", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    uint64_t began_ns = kit_lrs_now_ns();
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 40, &w->seen);
    struct kit_lrs_cluster before = told_all(w);
    kit_lrs_hold(w->lrs, true);
    KIT_LRS_WAIT(w->lrs, t->streams_so_far >= 2 && t->streams >= 1); /* a new stream, still unanswered */
    uint64_t away_ns = kit_lrs_now_ns();
    kit_lrs_calls(w->ch, 40, &w->seen);
    while (kit_lrs_now_ns() < away_ns + INTERVAL_MS * UINT64_C(3000000)) /* three intervals */
        kit_lrs_calls(w->ch, 4, &w->seen);
    assert_int_equal(told_ended(kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")), told_ended(&before));
    away_ns = kit_lrs_now_ns() - away_ns;
    kit_lrs_hold(w->lrs, false);
    struct kit_lrs_cluster after = told_all(w);
    assert_true(after.widest_ns >= away_ns);
    assert_true(after.interval_ns <= kit_lrs_now_ns() - began_ns);
    close_world(w);
}

static void reports_no_longer_wanted(void **state)
{
    TC_CASE(LS08);
    (void)state;
    struct world *w = open_world(2);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0; 0/b: 1", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 20, &w->seen);
    told_all(w);
    /* A field of the cluster changes and changes back: the stream stays. */
    kit_mesh_put_cluster(w->k, "c", REPORTED "\n  circuit_breakers: {thresholds: [{max_requests: 0}]}");
    kit_mesh_wait_failure(w->ch, TORC_STATUS_UNAVAILABLE, "circuit breaker drop");
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    kit_mesh_wait_backend(w->k, w->ch, NULL, 0);
    kit_lrs_calls(w->ch, 20, &w->seen);
    w->seen.ok += kit_mesh_take(w->k, 0) + kit_mesh_take(w->k, 1) - 40; /* calls of the two waits */
    KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) >= w->seen.ok + w->seen.failed);
    assert_int_equal(kit_lrs_look(w->lrs)->streams, 1);
    assert_int_equal(kit_lrs_look(w->lrs)->streams_so_far, 1);
    /* The cluster's lrs_server is removed: the remaining counts are reported, and the stream ends. */
    kit_lrs_ask(w->lrs, 3600000, NULL); /* the next scheduled report is an hour away */
    uint64_t reports = kit_lrs_look(w->lrs)->reports;
    kit_lrs_calls(w->ch, 40, &w->seen);
    kit_mesh_put_cluster(w->k, "c", PLAIN);
    KIT_LRS_WAIT(w->lrs, t->streams == 0);
    struct kit_lrs_cluster c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_true(kit_lrs_look(w->lrs)->reports > reports);
    assert_int_equal(c.a.success + c.b.success, w->seen.ok);
    assert_int_equal(c.a.error + c.b.error, w->seen.failed);
    kit_lrs_calls(w->ch, 20, &w->seen);
    assert_int_equal(kit_lrs_look(w->lrs)->streams_so_far, 1);
    /* lrs_server is set again. */
    kit_lrs_ask(w->lrs, INTERVAL_MS, NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    KIT_LRS_WAIT(w->lrs, t->streams_so_far == 2);
    kit_lrs_calls(w->ch, 4, &w->seen);
    KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) > told_ended(&c));
    close_world(w);
}

static void locality_goes_while_an_rpc_is_pending(void **state)
{
    TC_CASE(LS09);
    (void)state;
    struct world *w = open_world(2);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    torc_stream *held = kit_lrs_hang(w->k, w->ch);
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->a.in_progress == 1);
    kit_mesh_put_endpoints(w->k, "c", "0/b: 1", NULL);
    kit_mesh_wait_backend(w->k, w->ch, NULL, 1);
    uint64_t reports = kit_lrs_look(w->lrs)->reports, before_b = kit_mesh_take(w->k, 0) - 1;
    KIT_LRS_WAIT(w->lrs, t->reports >= reports + 3);
    struct kit_lrs_cluster c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_int_equal(c.a.in_progress, 1);
    assert_int_equal(c.a.issued, 1 + before_b);
    assert_int_equal(c.a.success, before_b);
    assert_int_equal(c.a.error, 0);
    kit_lrs_hang_end(held);
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->a.error >= 1);
    assert_int_equal(kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->a.error, 1);
    reports = kit_lrs_look(w->lrs)->reports;
    KIT_LRS_WAIT(w->lrs, t->reports >= reports + 2);
    c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_int_equal(c.a.in_progress, 0);
    assert_int_equal(c.a.issued, 1 + before_b);
    assert_int_equal(c.b.success, kit_mesh_take(w->k, 1));
    close_world(w);
}

/* Puts "c" as a LOGICAL_DNS cluster at backend 0. `more`: further fields, as complete lines of YAML, or "". */
static void put_dns(struct world *w, const char *more)
{
    kit_mesh_put(w->k,
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
                 more, strchr(kit_mesh_address(w->k, 0), ':') + 1);
}

static void dns_is_told_under_the_empty_locality(void **state)
{
    TC_CASE(DN03);
    (void)state;
    struct world *w = open_world(1);
    put_dns(w, "");
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    kit_lrs_calls(w->ch, 20, &w->seen);
    KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) >= 20);
    struct kit_lrs_cluster c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_int_equal(c.none.issued, 20);
    assert_int_equal(c.none.success, 15);
    assert_int_equal(c.none.error, 5);
    assert_int_equal(c.a.issued + c.b.issued, 0);
    assert_string_equal(c.service, "");
    put_dns(w, "  circuit_breakers: {thresholds: [{max_requests: 0}]}\n");
    kit_mesh_wait_failure(w->ch, TORC_STATUS_UNAVAILABLE, "circuit breaker drop");
    kit_lrs_calls(w->ch, 20, &w->seen);
    assert_int_equal(w->seen.broken, 20);
    KIT_LRS_WAIT(w->lrs, kit_lrs_told_cluster(t, "c")->dropped >= 21);
    c = *kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c");
    assert_int_equal(c.dropped, 21);
    assert_int_equal(c.dropped_lb + c.dropped_other, 0);
    assert_int_equal(c.none.issued, kit_mesh_take(w->k, 0)); /* calls before the limit are included */
    close_world(w);
}

/* --- metrics of backends --- */

/* Makes a call for which the backend reports this load: CPU 0.5, memory 0.25, and the named metrics "foo" (as given)
 * and "bar" (100). */
static void call_with_load(torc_channel *ch, double foo)
{
    Xds__Data__Orca__V3__OrcaLoadReport report = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__INIT;
    Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry entries[2];
    Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry *map[2] = {&entries[0], &entries[1]};
    uint8_t bytes[128];
    torc_result *r;
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
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = torc_metadata_new();
    assert_int_equal(torc_metadata_add(md, "x-load-metrics-bin", bytes, n), 0);
    o.metadata = md;
    r = torc_unary(ch, "/test.Service/Method", "hello", 5, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_metadata_free(md);
}

static void assert_metric(const struct kit_lrs_locality *l, const char *name, uint64_t requests, double total)
{
    assert_int_equal(kit_lrs_metric(l, name)->requests, requests);
    assert_true(kit_lrs_metric(l, name)->total == total);
}

static void metrics_that_are_listed(void **state)
{
    TC_CASE(LS10);
    (void)state;
    struct world *w = open_world(1);
    kit_mesh_put_endpoints(w->k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w->k, "c",
                         REPORTED "\n  lrs_report_endpoint_metrics: [cpu_utilization, named_metrics.foo, "
                                  "named_metrics.foo, unheard_of]");
    w->ch = kit_mesh_channel(w->k, "svc", NULL);
    for (int i = 1; i <= 4; i++)
        call_with_load(w->ch, i);
    kit_lrs_calls(w->ch, 4, &w->seen); /* calls without a load report of the backend */
    KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) >= 8);
    struct kit_lrs_locality a = kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->a;
    assert_metric(&a, "cpu", 4, 2.0);
    assert_metric(&a, "named_metrics.foo", 4, 10.0);
    assert_int_equal(a.n_metrics, 2);
    /* All named metrics and mem_utilization, no longer cpu_utilization. */
    kit_mesh_put_cluster(w->k, "c", REPORTED "\n  lrs_report_endpoint_metrics: [named_metrics.*, mem_utilization]");
    for (bool told = false; !told; told = kit_lrs_metric(&a, "mem")->requests > 0) {
        call_with_load(w->ch, 1);
        a = kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->a;
    }
    uint64_t calls = kit_mesh_take(w->k, 0);
    KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) >= calls);
    a = kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->a;
    uint64_t late = kit_lrs_metric(&a, "mem")->requests; /* calls after the change */
    assert_metric(&a, "mem", late, (double)late * 0.25);
    assert_metric(&a, "named_metrics.bar", late, (double)late * 100);
    assert_metric(&a, "named_metrics.foo", calls - 4, 10.0 + (double)(calls - 8));
    assert_metric(&a, "cpu", calls - 4 - late, (double)(calls - 4 - late) / 2);
    /* No metric is listed, none is reported. */
    kit_mesh_put_cluster(w->k, "c", REPORTED);
    uint64_t before;
    do {
        before = kit_lrs_metric(&a, "mem")->requests;
        call_with_load(w->ch, 1);
        calls += kit_mesh_take(w->k, 0);
        KIT_LRS_WAIT(w->lrs, told_ended(kit_lrs_told_cluster(t, "c")) >= calls);
        a = kit_lrs_told_cluster(kit_lrs_look(w->lrs), "c")->a;
    } while (kit_lrs_metric(&a, "mem")->requests != before);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_report_by_locality),
        cmocka_unit_test(all_clusters_and_named_ones),
        cmocka_unit_test(by_endpoint),
        cmocka_unit_test(route_moves_to_another_cluster),
        cmocka_unit_test(breaker_drops_without_a_category),
        cmocka_unit_test(a_stream_that_breaks),
        cmocka_unit_test(reports_no_longer_wanted),
        cmocka_unit_test(locality_goes_while_an_rpc_is_pending),
        cmocka_unit_test(dns_is_told_under_the_empty_locality),
        cmocka_unit_test(metrics_that_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
