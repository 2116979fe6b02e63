/* Load reports: the counts, when they are sent, and their fate when the stream breaks. kits/xds gives the client over a
 * scripted transport, on virtual time; the test is the LRS server. Everything runs on the test's thread.
 *
 * The first cluster in use opens the stream, the Node is the first message, and reports begin after the first `answer`.
 * `load` returns a reference and a use, and `unload` gives up both. `locality` and `endpoint` return a reference.
 * `calls` counts RPCs that succeeded (good), that failed (bad), and that are still under way (open). The watcher `w`
 * keeps the channel open where a test needs the channel without a cluster in use. assert_report compares the oldest
 * message that was not taken yet with a text of kits/xds_lrs.h. */
#include <math.h>
#include <time.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds_lrs.h"

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"

static struct kit_xds k;
static struct kit_xds_watcher w;
static struct tc_rstr *one, *two, *service;

static int set_up(void **state)
{
    (void)state;
    kit_xds_init(&k, NULL);
    kit_xds_watcher_init(&w);
    one = tc_rstr_str("one");
    two = tc_rstr_str("two");
    service = tc_rstr_str("service");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&w);
    tc_rstr_unref(one);
    tc_rstr_unref(two);
    tc_rstr_unref(service);
    return 0;
}

static struct tc_load_cluster *load(struct tc_rstr *cluster, struct tc_rstr *eds)
{
    struct tc_load_cluster *c = tc_xds_client_load(k.client, k.bootstrap->servers[0].key, cluster, eds);
    assert_non_null(c);
    return c;
}

static void unload(struct tc_load_cluster *c)
{
    tc_load_cluster_unuse(c);
    tc_load_cluster_unref(c);
}

static struct tc_load_locality *locality(struct tc_load_cluster *c, const char *zone)
{
    return tc_load_locality_get(c, tc_slice_str(""), tc_slice_str(zone), tc_slice_str(""));
}

static void calls(struct tc_load_locality *l, int good, int bad, int open)
{
    for (int i = 0; i < good + bad + open; i++) {
        tc_load_locality_started(l);
        if (i < good + bad)
            tc_load_locality_finished(l, i < good);
    }
}

static void answer(int64_t seconds, char *name)
{
    kit_xds_lrs_answer(&k, seconds, name);
}

#define assert_report(expected) assert_string_equal(kit_xds_report(&k), expected)

static void counts_by_locality(void **state)
{
    TC_CASE(LS01);
    (void)state;
    struct tc_load_cluster *c = load(one, service);
    struct tc_load_locality *a = locality(c, "a"), *b = locality(c, "b");
    assert_int_equal(k.server->lrs_streams, 0); /* the loop opens the stream */
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 1);
    assert_report("node node1;");
    calls(a, 10, 3, 0);
    tc_loop_advance(k.loop, 60000);
    assert_report(""); /* the server has not answered */
    answer(2, NULL);
    calls(b, 1, 0, 2);
    tc_loop_advance(k.loop, 1999);
    assert_report("");
    tc_loop_advance(k.loop, 1);
    assert_report("one/service 62.000s a:10+3/13~0 b:1+0/3~2;");
    tc_load_locality_finished(b, true);
    tc_load_locality_finished(b, false);
    tc_loop_advance(k.loop, 2000);
    assert_report("one/service 2.000s b:1+1/0~0;"); /* localities without counts are left out */
    tc_loop_advance(k.loop, 2000);
    assert_report("empty");
    tc_load_locality_started(a);
    tc_load_locality_revoked(a);
    tc_loop_advance(k.loop, 2000);
    assert_report("empty");
    assert_int_equal(k.server->lrs_streams, 1);
    tc_load_locality_unref(a);
    tc_load_locality_unref(b);
    unload(c);
}

static void named_clusters_and_all(void **state)
{
    TC_CASE(LS02);
    TC_CASE(LS03);
    TC_CASE(LS05);
    (void)state;
    struct tc_load_cluster *c1 = load(one, NULL), *c2 = load(two, NULL);
    struct tc_load_locality *l1 = locality(c1, "a"), *l2 = locality(c2, "a");
    tc_loop_drain(k.loop);
    assert_report("node node1;");
    calls(l1, 1, 0, 0);
    calls(l2, 2, 0, 0);
    answer(1, (char[]){"bogus"});
    tc_loop_advance(k.loop, 1000);
    assert_report("empty");
    answer(1, (char[]){"two"});
    tc_loop_advance(k.loop, 1000);
    assert_report("two 2.000s a:2+0/2~0;");
    answer(1, NULL); /* counts that were not asked for before are not lost */
    calls(l2, 1, 0, 0);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 3.000s a:1+0/1~0;two 1.000s a:1+0/1~0;");
    tc_load_locality_unref(l1);
    tc_load_locality_unref(l2);
    unload(c1);
    unload(c2);
}

static void restart_keeps_counts(void **state)
{
    TC_CASE(LS04);
    TC_CASE(LS07);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *l = locality(c, "a");
    struct tc_rstr *overload = tc_rstr_str("overload");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    assert_report("node node1;");
    calls(l, 5, 1, 1);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m"), 1, 1.5);
    tc_load_cluster_drop(c, overload, 1);
    k.server->connected = false;
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:5+1/7~1 m=1.5/1 dropped 1 overload=1;"); /* was not handed over */
    calls(l, 1, 0, 0);
    tc_load_cluster_drop(c, overload, 1);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m"), 1, 2);
    fake_xds_lrs_end(k.server, TORC_STATUS_UNAVAILABLE, "restart");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 2); /* at once */
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_report("node node1;");
    tc_loop_advance(k.loop, 5000);
    assert_report("");
    answer(3, NULL);
    tc_loop_advance(k.loop, 3000);
    assert_report("one 9.000s a:6+1/8~1 m=3.5/2 dropped 2 overload=2;");
    tc_load_locality_finished(l, true);
    tc_load_locality_unref(l);
    tc_rstr_unref(overload);
    unload(c);
}

/* A report that waits for the flow-control window when the stream ends was not taken. The next stream has its counts,
 * once. */
static void report_that_the_server_did_not_take(void **state)
{
    TC_CASE(LS07);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *l = locality(c, "a");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    assert_report("node node1;");
    k.server->shut = true;
    calls(l, 5, 1, 0);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:5+1/6~0;");
    tc_loop_advance(k.loop, 1000); /* another report is due */
    fake_xds_lrs_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 2);
    k.server->shut = false;
    fake_xds_connect(k.server);
    answer(1, NULL);
    assert_report("node node1;");
    calls(l, 1, 0, 0);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 3.000s a:6+1/7~0;");
    tc_loop_advance(k.loop, 1000);
    assert_report("empty");
    tc_load_locality_unref(l);
    unload(c);
}

/* The connection ends before the Node was taken, and the transport sends the Node again by itself: reports follow. */
static void node_that_is_sent_again(void **state)
{
    (void)state;
    k.server->shut = k.server->resends = true;
    struct tc_load_cluster *c = load(one, NULL);
    tc_loop_drain(k.loop);
    k.server->shut = k.server->resends = false;
    answer(1, NULL);
    assert_report("node node1;");
    tc_loop_advance(k.loop, 1000);
    assert_report("empty");
    unload(c);
}

static void unhelpful_servers(void **state)
{
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    tc_loop_drain(k.loop);
    fake_xds_lrs_end(k.server, TORC_STATUS_UNIMPLEMENTED, "no LRS here");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 1);
    tc_loop_advance(k.loop, 1200);
    assert_int_equal(k.server->lrs_streams, 2);
    answer(0, NULL); /* an interval of 0, which is refused */
    assert_false(fake_xds_lrs_streaming(k.server));
    tc_loop_advance(k.loop, 1200);
    assert_int_equal(k.server->lrs_streams, 2);
    tc_loop_advance(k.loop, 800);
    assert_int_equal(k.server->lrs_streams, 3);
    fake_xds_lrs_send(k.server, tc_slice_str("\x0a\x7f"));
    tc_loop_drain(k.loop);
    assert_false(fake_xds_lrs_streaming(k.server));
    tc_xds_client_reset_backoff(k.client);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 4);
    /* A server that answers and ends the stream at once is asked again only after a backoff. */
    answer(1, NULL);
    fake_xds_lrs_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 4);
    tc_loop_advance(k.loop, 1200);
    assert_int_equal(k.server->lrs_streams, 5);
    unload(c);
}

static void limits_of_a_server(void **state)
{
    (void)state;
    const uint64_t day_ms = UINT64_C(86400000);
    struct tc_load_cluster *c = load(one, NULL);
    tc_loop_drain(k.loop);
    answer(INT64_C(400) * 86400, NULL); /* counts as a day */
    assert_report("node node1;");
    tc_load_cluster_drop(c, NULL, 1);
    tc_loop_advance(k.loop, day_ms - 1);
    assert_report("");
    tc_loop_advance(k.loop, 1);
    assert_report("one 86400.000s dropped 1;");
    /* An interval of 1 ns counts as 100 ms. */
    fake_xds_lrs_send(k.server, tc_slice_of("\x0a\x03one\x12\x02\x10\x01", 9));
    tc_loop_drain(k.loop);
    tc_load_cluster_drop(c, NULL, 1);
    tc_loop_advance(k.loop, 99);
    assert_report("");
    tc_loop_advance(k.loop, 1);
    assert_report("one 0.100s dropped 1;");
    /* 65,536 names (field 1) and an interval of 1 s (field 2) are accepted; with one more name the stream ends. */
    for (size_t n = 65536; n <= 65537; n++) {
        struct tc_buf b = {0};
        for (size_t i = 0; i < n; i++)
            tc_buf_append(&b,
                          "\x0a\x08"
                          "a-length",
                          10);
        tc_buf_append(&b, "\x12\x02\x08\x01", 4);
        fake_xds_lrs_send(k.server, tc_buf_slice(&b));
        tc_loop_drain(k.loop);
        assert_int_equal(fake_xds_lrs_streaming(k.server), n == 65536);
        tc_buf_fini(&b);
    }
    unload(c);
}

/* The server asks for 65,535 names, some of them twice. The client has clusters of two of the names, and 3,998 clusters
 * that the server does not ask for. */
static void thousands_of_names(void **state)
{
    (void)state;
    enum { N = 4000, NAMES = 65535, REPORTS = 10 };
    static struct tc_load_cluster *clusters[N];
    for (unsigned i = 0; i < N; i++) {
        struct tc_rstr *name = tc_rstr_printf("c%07u", i);
        clusters[i] = load(name, NULL);
        tc_rstr_unref(name);
    }
    tc_loop_drain(k.loop);
    assert_report("node node1;");
    struct tc_buf b = {0};
    for (unsigned i = 0; i < NAMES; i++)
        tc_buf_printf(&b, "\x0a\x08%c%07u", i == 1234 || i == NAMES - 1 ? 'c' : 'a', i % 64000);
    tc_buf_append(&b, "\x12\x02\x08\x01", 4); /* each second */
    fake_xds_lrs_send(k.server, tc_buf_slice(&b));
    tc_buf_fini(&b);
    tc_loop_drain(k.loop);
    clock_t before = clock();
    for (unsigned i = 1; i <= REPORTS; i++) {
        tc_load_cluster_drop(clusters[1534], NULL, 1);
        tc_load_cluster_drop(clusters[1234], NULL, 1);
        if (i == 1)
            tc_load_cluster_drop(clusters[77], NULL, 1); /* nobody asks for it */
        tc_loop_advance(k.loop, 1000);
        assert_report("c0001234 1.000s dropped 1;c0001534 1.000s dropped 1;");
    }
    /* Comparing every name with every cluster would be 2.6e9 comparisons, and take many seconds. */
    assert_true(clock() - before < CLOCKS_PER_SEC);
    for (unsigned i = 0; i < N; i++)
        unload(clusters[i]);
}

static void drops(void **state)
{
    TC_CASE(LS06);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_rstr *lb = tc_rstr_str("lb"), *throttle = tc_rstr_str("throttle");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    assert_report("node node1;");
    tc_load_cluster_drop(c, lb, 1);
    tc_load_cluster_drop(c, throttle, 1);
    tc_load_cluster_drop(c, lb, 1);
    tc_load_cluster_drop(c, NULL, 1);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s dropped 4 lb=2 throttle=1;");
    tc_load_cluster_drop(c, NULL, 1);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s dropped 1;");
    tc_rstr_unref(lb);
    tc_rstr_unref(throttle);
    unload(c);
}

/* A stalled connection delays a report, and the report has the real interval. */
static void intervals_are_measured(void **state)
{
    TC_CASE(LS07);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *l = locality(c, "a");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    answer(1, NULL); /* an equal answer changes nothing */
    assert_report("node node1;");
    calls(l, 1, 0, 0);
    k.server->connected = false;
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/1~0;");
    calls(l, 1, 0, 0);
    tc_loop_advance(k.loop, 2500);
    assert_report("");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_report("one 2.500s a:1+0/1~0;");
    calls(l, 1, 0, 0);
    tc_loop_advance(k.loop, 500);
    assert_report("one 0.500s a:1+0/1~0;");
    calls(l, 1, 0, 0);
    answer(3, NULL);
    tc_loop_advance(k.loop, 2999);
    assert_report("");
    tc_loop_advance(k.loop, 1);
    assert_report("one 3.000s a:1+0/1~0;");
    tc_load_locality_unref(l);
    unload(c);
}

static void ends_with_its_last_user(void **state)
{
    TC_CASE(LS08);
    (void)state;
    kit_xds_watch(&k, &kit_xds_cds, "x", &w); /* so that the channel stays */
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *l = locality(c, "a");
    tc_loop_drain(k.loop);
    answer(10, NULL);
    assert_report("node node1;");
    /* Another user takes over within the turn: the stream stays. */
    struct tc_load_cluster *again = load(one, NULL);
    assert_ptr_equal(again, c);
    unload(c);
    tc_loop_drain(k.loop);
    unload(again);
    again = load(one, NULL);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 1);
    assert_true(fake_xds_lrs_streaming(k.server));
    /* The counts are reported before the stream closes. */
    calls(l, 2, 0, 1);
    tc_loop_advance(k.loop, 100);
    unload(again);
    tc_loop_drain(k.loop);
    assert_report("one 0.100s a:2+0/3~1;");
    assert_report("");
    assert_int_equal(k.server->half_closed, 1);
    tc_loop_advance(k.loop, 1000);
    assert_true(fake_xds_lrs_streaming(k.server)); /* the server has to end the stream */
    fake_xds_lrs_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    assert_false(fake_xds_lrs_streaming(k.server));
    assert_true(k.server->open);
    tc_load_locality_finished(l, true); /* after the last report */
    tc_loop_advance(k.loop, 100000);
    assert_int_equal(k.server->lrs_streams, 1);
    /* Wanted again. */
    c = load(one, NULL);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 2);
    kit_xds_unwatch(&k, &w);
    tc_loop_drain(k.loop);
    assert_true(k.server->open); /* for the reports alone */
    assert_false(fake_xds_streaming(k.server));
    unload(c);
    tc_loop_drain(k.loop);
    assert_false(k.server->open);
    tc_load_locality_unref(l);
}

/* After the client's half-close a stream stays until the server ends it, 5 s at most. Another stream follows if loads
 * are wanted again. */
static void streams_that_linger(void **state)
{
    (void)state;
    kit_xds_watch(&k, &kit_xds_cds, "x", &w);
    struct tc_load_cluster *c = load(one, NULL);
    tc_loop_drain(k.loop);
    answer(10, NULL);
    tc_loop_advance(k.loop, 5000);
    unload(c);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->half_closed, 1);
    /* Wanted again meanwhile. */
    c = load(one, NULL);
    answer(1, NULL); /* which changes nothing */
    tc_loop_advance(k.loop, 2000);
    assert_report("node node1;");
    assert_report("");
    assert_int_equal(k.server->lrs_streams, 1);
    fake_xds_lrs_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 2);
    assert_report("node node1;");
    /* A server that does not end the stream. */
    answer(10, NULL);
    unload(c);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->half_closed, 2);
    tc_loop_advance(k.loop, 4999);
    assert_true(fake_xds_lrs_streaming(k.server));
    tc_loop_advance(k.loop, 1);
    assert_false(fake_xds_lrs_streaming(k.server));
    assert_int_equal(k.server->lrs_streams, 2);
    /* A stream on which the server never answered is cancelled at once. */
    c = load(one, NULL);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->lrs_streams, 3);
    unload(c);
    tc_loop_drain(k.loop);
    assert_false(fake_xds_lrs_streaming(k.server));
    assert_int_equal(k.server->half_closed, 2);
    kit_xds_unwatch(&k, &w);
}

static void loads_outlive_the_client(void **state)
{
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *l = locality(c, "a");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    calls(l, 0, 0, 1);
    tc_xds_client_unref(k.client);
    k.client = NULL;
    assert_false(k.server->open);
    tc_load_locality_finished(l, true);
    tc_load_cluster_drop(c, NULL, 1);
    tc_load_locality_unref(locality(c, "b"));
    tc_load_locality_unref(l);
    unload(c);
}

/* A cluster out of use is reported until the RPCs of its locality are over, and the locality's last counts are reported
 * after its last reference is gone. */
static void until_the_last_rpc(void **state)
{
    TC_CASE(LS09);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL), *other = load(two, NULL);
    struct tc_load_locality *l = locality(c, "a");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    assert_report("node node1;");
    calls(l, 0, 0, 1);
    unload(c);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:0+0/1~1;");
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:0+0/0~1;");
    tc_load_locality_finished(l, true);
    tc_load_locality_unref(l);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/0~0;");
    tc_loop_advance(k.loop, 1000);
    assert_report("empty");
    c = load(one, NULL);
    calls(l = locality(c, "a"), 1, 0, 0);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/1~0;"); /* the cluster is in use again */
    tc_load_locality_unref(l);
    unload(c);
    unload(other);
}

static void metrics(void **state)
{
    TC_CASE(LS10);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *l = locality(c, "a");
    tc_loop_drain(k.loop);
    answer(1, NULL);
    assert_report("node node1;");
    calls(l, 2, 0, 0);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m1"), 1, 1);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m2"), 1, 2);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m2"), 1, 3);
    tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m3"), 1, (double)NAN);
    tc_load_locality_metric(l, TC_LOAD_CPU, tc_slice_str(""), 1, 0.25);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:2+0/2~0 m1=1/1 m2=5/2 cpu=0.25/1;");
    calls(l, 1, 0, 0);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/1~0;");
    for (int i = 0; i < 1000; i++) { /* names that a backend makes up */
        char name[8];
        struct tc_slice text = tc_slice_of(name, (size_t)snprintf(name, sizeof(name), "%d", i));
        tc_load_locality_metric(l, TC_LOAD_NAMED, text, 1, 1);
    }
    assert_int_equal(l->metrics.len, 256);
    tc_load_locality_unref(l);
    unload(c);
}

/* --- by endpoint --- */

static struct tc_load_locality *endpoint(struct tc_load_cluster *c, struct tc_load_locality *l, const char *address)
{
    return tc_load_endpoint_get(c, l, tc_slice_str(address));
}

static void counts_by_endpoint(void **state)
{
    TC_CASE(LS11);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *a = locality(c, "a");
    tc_loop_drain(k.loop);
    assert_report("node node1;");
    assert_false(c->by_endpoint);
    k.lrs_endpoints = true;
    answer(1, NULL);
    struct tc_load_cluster *later = load(two, NULL);
    assert_true(c->by_endpoint && later->by_endpoint);
    unload(later);
    calls(a, 0, 0, 1); /* counted for the locality alone */
    struct tc_load_locality *v4 = endpoint(c, a, "10.0.0.1:80"), *v6 = endpoint(c, a, "[2001:db8::1]:443");
    struct tc_load_locality *path = endpoint(c, a, "unix:/run/x"), *name = endpoint(c, a, "unix-abstract:x");
    struct tc_load_locality *silent = endpoint(c, a, "10.0.0.9:9");
    calls(v4, 2, 1, 1);
    calls(v6, 0, 1, 0);
    calls(path, 1, 0, 0);
    calls(name, 1, 0, 0);
    tc_load_locality_started(silent);
    tc_load_locality_revoked(silent);
    tc_load_locality_metric(v4, TC_LOAD_NAMED, tc_slice_str("m"), 1, 2);
    tc_load_locality_metric(v6, TC_LOAD_NAMED, tc_slice_str("m"), 1, 3);
    tc_load_locality_metric(v6, TC_LOAD_NAMED, tc_slice_str("m"), 1, INFINITY);
    tc_load_locality_metric(v6, TC_LOAD_CPU, tc_slice_of(NULL, 0), 1, 0.5); /* by locality alone */
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:4+2/8~2 m=5/2 cpu=0.5/1 [10.0.0.1:80 2+1/4~1 m=2/1] [2001:db8::1:443 0+1/1~0 m=3/1] "
                  "[/run/x 1+0/1~0] [@x 1+0/1~0];");
    /* An endpoint without counts is left out; RPCs under way are reported again. */
    tc_load_locality_unref(v6);
    tc_load_locality_unref(path);
    tc_load_locality_unref(name);
    tc_load_locality_unref(silent);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:0+0/0~2 [10.0.0.1:80 0+0/0~1];");
    /* The counts of a report that is lost with its stream are in the next one. */
    calls(v4, 1, 0, 0);
    k.server->connected = false;
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/1~2 [10.0.0.1:80 1+0/1~1];"); /* was not handed over */
    fake_xds_lrs_end(k.server, TORC_STATUS_UNAVAILABLE, "");
    tc_loop_drain(k.loop);
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_report("node node1;");
    answer(1, NULL);
    tc_load_locality_finished(v4, false);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 2.000s a:1+1/1~1 [10.0.0.1:80 1+1/1~0];");
    tc_load_locality_unref(v4);
    tc_load_locality_finished(a, true);
    tc_load_locality_unref(a);
    unload(c);
}

/* An endpoint without references is reported once more, and then freed. */
static void endpoints_that_go(void **state)
{
    TC_CASE(LS12);
    (void)state;
    struct tc_load_cluster *c = load(one, NULL);
    struct tc_load_locality *a = locality(c, "a");
    tc_loop_drain(k.loop);
    assert_report("node node1;");
    k.lrs_endpoints = true;
    answer(1, NULL);
    for (int i = 0; i < 3; i++) {
        struct tc_load_locality *e = endpoint(c, a, i ? "10.0.0.2:80" : "10.0.0.1:80");
        calls(e, 1, 0, 0);
        tc_load_locality_unref(e);
    }
    assert_int_equal(c->n_endpoints, 2);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:3+0/3~0 [10.0.0.1:80 1+0/1~0] [10.0.0.2:80 2+0/2~0];");
    assert_int_equal(c->n_endpoints, 0);
    tc_loop_advance(k.loop, 1000);
    assert_report("empty");
    /* While the server does not ask for endpoints, reports have localities alone, even for RPCs counted by endpoint. */
    struct tc_load_locality *e = endpoint(c, a, "10.0.0.3:80");
    calls(e, 1, 0, 1);
    k.lrs_endpoints = false;
    answer(1, NULL);
    assert_false(c->by_endpoint);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/2~1;");
    k.lrs_endpoints = true;
    answer(1, NULL);
    tc_load_locality_finished(e, true);
    tc_loop_advance(k.loop, 1000);
    assert_report("one 1.000s a:1+0/0~0 [10.0.0.3:80 1+0/0~0];");
    tc_load_locality_unref(e);
    tc_load_locality_unref(a);
    unload(c);
}

static void servers_by_key(void **state)
{
    (void)state;
    struct tc_rstr *key = tc_rstr_str("another");
    assert_null(tc_xds_client_load(k.client, key, one, NULL));
    tc_rstr_unref(key);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_by_locality),      TEST(named_clusters_and_all),
        TEST(restart_keeps_counts),    TEST(report_that_the_server_did_not_take),
        TEST(node_that_is_sent_again), TEST(unhelpful_servers),
        TEST(limits_of_a_server),      TEST(drops),
        TEST(intervals_are_measured),  TEST(ends_with_its_last_user),
        TEST(streams_that_linger),     TEST(loads_outlive_the_client),
        TEST(until_the_last_rpc),      TEST(metrics),
        TEST(servers_by_key),          TEST(thousands_of_names),
        TEST(counts_by_endpoint),      TEST(endpoints_that_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
