/* The load reporting server, over real streams: what clients report, and what they are told.
 *
 * The server and the client's calls are on one loop, on the test's thread (kits/server.h). `report` returns when the
 * report is written, perhaps before the server has taken it in: KIT_SERVER_UNTIL and expect_told wait for that.
 * on_report counts the reports and appends each to `seen`. Nobody reports by a timer: the intervals are only told. The
 * service is freed after the server. */
#include <string.h>

#include "base/mem.h"
#include "controlplane/lrs.h"
#include "proto/pack.h"
#include "support/cmocka.h"
#include "support/kits/server.h"

#define METHOD "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"

typedef Envoy__Service__LoadStats__V3__LoadStatsResponse load_response;

struct fixture {
    struct kit_server kit;
    struct tc_lrs *lrs;
    struct tc_buf seen; /* reports in words: "stream[!] node cluster=dropped ...", "!": the first of its stream */
    unsigned reports;
};

static void on_report(void *arg, const struct tc_lrs_report *r)
{
    struct fixture *f = arg;
    f->reports++;
    tc_buf_printf(&f->seen, "%s%u%s %.*s", f->seen.len ? "; " : "", (unsigned)r->stream, r->first ? "!" : "",
                  (int)r->node_id.len, r->node_id.data);
    for (size_t i = 0; i < r->request->n_cluster_stats; i++)
        tc_buf_printf(&f->seen, " %s=%u", r->request->cluster_stats[i]->cluster_name,
                      (unsigned)r->request->cluster_stats[i]->total_dropped_requests);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    kit_server_init(&f->kit);
    f->lrs = tc_lrs_new(f->kit.server);
    tc_lrs_observe(f->lrs, on_report, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kit_server_fini(&f->kit);
    tc_lrs_free(f->lrs);
    tc_buf_fini(&f->seen);
    tc_free(f);
    return 0;
}

/* Sends a report, without a node if node_id is NULL, and without clusters if `cluster` is NULL. */
static void report(struct kit_server_call *c, const char *node_id, const char *cluster, uint64_t dropped)
{
    Envoy__Service__LoadStats__V3__LoadStatsRequest r = ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_REQUEST__INIT;
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    Envoy__Config__Endpoint__V3__ClusterStats stats = ENVOY__CONFIG__ENDPOINT__V3__CLUSTER_STATS__INIT, *list = &stats;
    struct tc_buf out = {0};
    if (node_id) {
        node.id = (char *)(uintptr_t)node_id;
        r.node = &node;
    }
    if (cluster) {
        stats.cluster_name = (char *)(uintptr_t)cluster;
        stats.total_dropped_requests = dropped;
        r.n_cluster_stats = 1;
        r.cluster_stats = &list;
    }
    tc_pack(&r.base, &out);
    kit_server_send(c, tc_buf_slice(&out), false);
    tc_buf_fini(&out);
}

/* Waits for n responses. Asserts the last one in words: "all=1 granular=0 2.500 a,b". */
static void expect_told(struct kit_server_call *c, size_t n, const char *text)
{
    KIT_SERVER_UNTIL(c->kit, c->messages.len >= n || c->done);
    assert_int_equal(c->messages.len, n);
    const struct tc_rstr *bytes = c->messages.data[n - 1];
    load_response *r =
        envoy__service__load_stats__v3__load_stats_response__unpack(NULL, bytes->len, (const uint8_t *)bytes->data);
    struct tc_buf b = {0};
    assert_non_null(r);
    tc_buf_printf(&b, "all=%d granular=%d %d.%03d ", r->send_all_clusters, r->report_endpoint_granularity,
                  (int)r->load_reporting_interval->seconds, r->load_reporting_interval->nanos / 1000000);
    for (size_t i = 0; i < r->n_clusters; i++)
        tc_buf_printf(&b, "%s%s", i ? "," : "", r->clusters[i]);
    assert_string_equal(tc_buf_cstr(&b), text);
    tc_buf_fini(&b);
    envoy__service__load_stats__v3__load_stats_response__free_unpacked(r, NULL);
}

static void test_first_is_answered_and_reports_are_handed_on(void **state)
{
    struct fixture *f = *state;
    struct kit_server_call c;
    kit_server_open(&f->kit, &c, METHOD);
    report(&c, "n1", NULL, 0);
    expect_told(&c, 1, "all=1 granular=0 10.000 ");
    report(&c, NULL, "orders", 3);
    report(&c, NULL, "users", 4);
    KIT_SERVER_UNTIL(&f->kit, f->reports == 3);
    assert_string_equal(tc_buf_cstr(&f->seen), "1! n1; 1 n1 orders=3; 1 n1 users=4");
    assert_int_equal(c.messages.len, 1);
    assert_int_equal(tc_lrs_streams(f->lrs), 1);
    kit_server_close(&c);
    KIT_SERVER_UNTIL(&f->kit, tc_lrs_streams(f->lrs) == 0);
}

static void test_changes_are_told(void **state)
{
    static const char *const clusters[] = {"a", "b"};
    static const struct tc_lrs_config named = {.interval_ms = 2500, .clusters = clusters, .n_clusters = 2};
    static const struct tc_lrs_config all = {
        .interval_ms = 1000, .send_all_clusters = true, .endpoint_granularity = true};
    struct fixture *f = *state;
    struct kit_server_call c;
    tc_lrs_set(f->lrs, &named);
    kit_server_open(&f->kit, &c, METHOD);
    report(&c, "n1", NULL, 0);
    expect_told(&c, 1, "all=0 granular=0 2.500 a,b");
    tc_lrs_set(f->lrs, &all);
    expect_told(&c, 2, "all=1 granular=1 1.000 ");
    kit_server_close(&c);
}

static void test_mute_then_answered(void **state)
{
    static const struct tc_lrs_config soon = {.interval_ms = 100, .send_all_clusters = true};
    static const struct tc_lrs_config later = {.interval_ms = 5000, .send_all_clusters = true};
    struct fixture *f = *state;
    struct kit_server_call c;
    tc_lrs_set_mute(f->lrs, true);
    kit_server_open(&f->kit, &c, METHOD);
    report(&c, "n1", NULL, 0);
    KIT_SERVER_UNTIL(&f->kit, f->reports == 1);
    tc_lrs_set(f->lrs, &soon);
    report(&c, NULL, "x", 1);
    KIT_SERVER_UNTIL(&f->kit, f->reports == 2);
    assert_int_equal(c.messages.len, 0);
    tc_lrs_set_mute(f->lrs, false);
    expect_told(&c, 1, "all=1 granular=0 0.100 ");
    /* A change is sent once the server is no longer mute, and only then. */
    tc_lrs_set_mute(f->lrs, true);
    tc_lrs_set(f->lrs, &later);
    report(&c, NULL, "x", 1);
    KIT_SERVER_UNTIL(&f->kit, f->reports == 3);
    assert_int_equal(c.messages.len, 1);
    tc_lrs_set_mute(f->lrs, false);
    expect_told(&c, 2, "all=1 granular=0 5.000 ");
    tc_lrs_set_mute(f->lrs, false);
    report(&c, NULL, "x", 1);
    KIT_SERVER_UNTIL(&f->kit, f->reports == 4);
    assert_int_equal(c.messages.len, 2);
    kit_server_close(&c);
}

static void test_streams_end_and_come_again(void **state)
{
    struct fixture *f = *state;
    struct kit_server_call c, d;
    kit_server_open(&f->kit, &c, METHOD);
    report(&c, "n1", NULL, 0);
    expect_told(&c, 1, "all=1 granular=0 10.000 ");
    tc_lrs_end_streams(f->lrs, TORC_STATUS_UNAVAILABLE, "restarting");
    KIT_SERVER_UNTIL(&f->kit, c.done);
    assert_int_equal(c.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&c.status), "restarting");
    kit_server_open(&f->kit, &d, METHOD);
    report(&d, "n1", "orders", 9);
    expect_told(&d, 1, "all=1 granular=0 10.000 ");
    tc_lrs_send(f->lrs, tc_slice_str("\x08"));
    KIT_SERVER_UNTIL(&f->kit, d.messages.len == 2);
    assert_int_equal(tc_lrs_streams_so_far(f->lrs), 2);
    assert_string_equal(tc_buf_cstr(&f->seen), "1! n1; 2! n1 orders=9");
    kit_server_close(&c);
    kit_server_close(&d);
}

static void test_malformed(void **state)
{
    struct fixture *f = *state;
    struct kit_server_call c;
    kit_server_open(&f->kit, &c, METHOD);
    kit_server_send(&c, tc_slice_str("\xff\xff\xff"), false);
    KIT_SERVER_UNTIL(&f->kit, c.done);
    assert_int_equal(c.status.code, TORC_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tc_status_text(&c.status), "malformed LoadStatsRequest"));
    assert_int_equal(f->reports, 0);
    kit_server_close(&c);
}

static void test_half_close(void **state)
{
    struct fixture *f = *state;
    struct kit_server_call c;
    kit_server_open(&f->kit, &c, METHOD);
    report(&c, "n1", NULL, 0);
    tc_call_send_end(c.call);
    KIT_SERVER_UNTIL(&f->kit, c.done);
    assert_int_equal(c.status.code, TORC_STATUS_OK);
    kit_server_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_is_answered_and_reports_are_handed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mute_then_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_streams_end_and_come_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half_close, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
