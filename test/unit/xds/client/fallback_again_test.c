/* After a fallback server has superseded or deleted a value of the first server, or sent an invalid one, the first
 * server is asked again, on a new stream (A71). Such streams must not follow each other without end, nor keep the first
 * server from answering. Also failures and timers around a fallback.
 *
 * kits/xds gives the client over scripted transports; the test is s1, the first server, and s2, the fallback server.
 * Most tests begin alike: s1 sends "a", lose_s1 makes s1 fail, a watch of "b", which is not cached, starts the fallback
 * to s2, and connect_s1 brings s1 back beside s2. s1->streams counts the streams that s1 has got; s2->open is true
 * while the fallback lasts, or while load reports or another authority use s2. fallback_test.c has the plain fallback.
 *
 * Each test begins with `start` or start_again_beside and finishes with `end`, which frees the client with its watches.
 * Everything runs on the test's thread, on virtual time, except the decoding after start_again_beside. */
#include "support/cmocka.h"
#include "support/gate.h"
#include "support/kits/xds.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "xds/client/ads.h"
#include "xds/client/local_client.h"
#include "xds/client/local_internal.h"

/* Members of a bootstrap, with s1 and s2. f1, f2: the features of each, as JSON strings joined by commas. */
#define LIST(f1, f2)                                                                                                   \
    "\"xds_servers\": [{\"server_uri\": \"s1\", \"server_features\": [" f1 "]}, {\"server_uri\": \"s2\", "             \
    "\"server_features\": [" f2 "]}], \"node\": {\"id\": \"node1\"}"
#define DELTA "\"torc.incremental_ads\""

static struct kit_xds k;
static struct fake_xds_server *s1, *s2;
static struct kit_xds_watcher a, b, c;
static struct gate g;

/* Makes the client and the watchers a, b and c. text: a bootstrap, JSON, whose first server is s1. */
static void start(const char *text)
{
    kit_xds_init(&k, text);
    s1 = k.server;
    s2 = fake_xds_server(k.fake, "s2");
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
    kit_xds_watcher_init(&c);
}

static void end(void)
{
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
    kit_xds_watcher_fini(&c);
}

static void watch(const struct tc_xds_resource_type *type, const char *name, struct kit_xds_watcher *w)
{
    kit_xds_watch(&k, type, name, w);
    tc_loop_drain(k.loop);
}

static void lose_s1(void)
{
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "bye");
    s1->connected = false;
    tc_loop_drain(k.loop);
    fake_xds_fail(s1, "refused");
    tc_loop_drain(k.loop);
}

static void forget_requests(struct fake_xds_server *s)
{
    while (*kit_xds_request(&k, s))
        continue;
}

static void connect_s1(void)
{
    fake_xds_connect(s1);
    tc_loop_drain(k.loop);
    forget_requests(s1);
}

#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)

/* s2's answer is read in the turn in which s1's waiting request finds its connection: s1 gets one more stream, no
 * second one. */
static void answer_and_connection_in_one_turn(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    assert_told(&a, "value x;");
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    forget_requests(s1);
    unsigned streams = s1->streams;
    struct kit_xds other;
    kit_xds_init(&other, NULL);
    struct kit_xds undrained = k;
    undrained.loop = other.loop; /* queues the response without running the client's loop */
    kit_xds_respond_delta(&undrained, s2, &kit_xds_cds, "m1", "a|z@9", "b|y@9", NULL);
    fake_xds_connect(s1);
    tc_loop_drain(k.loop);
    kit_xds_fini(&other);
    assert_told(&a, "value z;");
    tc_loop_advance(k.loop, 60000);
    assert_int_equal(s1->streams, streams + 1);
    end();
}

/* s2 sends an invalid "a" in each of its responses, and s1 removes "a" and "b" once: s1 gets one more stream, no second
 * one. */
static void refuses_always(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    kit_xds_told(&a);
    unsigned streams = s1->streams;
    for (int i = 0; i < 10; i++) {
        kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "a|bad@9", NULL);
        tc_loop_advance(k.loop, 1000);
        if (i == 0)
            kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n", "-a", "-b", NULL);
    }
    assert_int_equal(s1->streams, streams + 1);
    end();
}

/* s1 needs 1.5 s for its first answer on a stream, while s2 sends an invalid "a" once a second. In the end a stream to
 * s1 lasts that long. */
static void slow_first_server(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    unsigned asked_on = s1->streams, begun_ms = 0;
    bool answered = false;
    for (unsigned ms = 0; ms < 60000 && !answered; ms += 500) {
        if (ms % 1000 == 0 && s2->open)
            kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "a|bad@9", NULL);
        tc_loop_advance(k.loop, 500);
        if (s1->streams != asked_on) {
            asked_on = s1->streams;
            begun_ms = ms;
        } else if (ms - begun_ms >= 1500) {
            answered = true;
        }
    }
    assert_true(answered);
    end();
}

/* Another authority uses s1, too. New streams to s1 do not keep the timer of that authority's "c" from running out. */
static void timer_of_another_authority(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) ", \"authorities\": {\"x\": {\"xds_servers\": [{\"server_uri\": \"s1\", "
                                 "\"server_features\": [" DELTA "]}]}}}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    watch(&kit_xds_eds, "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/c", &c);
    for (int i = 0; i < 10; i++) {
        if (s2->open)
            kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "a|bad@9", NULL);
        tc_loop_advance(k.loop, 10000);
    }
    assert_told(&c, "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);");
    end();
}

/* s1 is back and stays silent, since it has only "c", in the version that the request gave. The silence ends the
 * fallback, although s2 sends an invalid "a" every 10 s. */
static void silence_ends_the_fallback(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "c", &c);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", "c|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    for (unsigned seconds = 0; seconds < 60 && s2->open; seconds++) {
        if (seconds % 10 == 0)
            kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "a|bad@9", NULL);
        tc_loop_advance(k.loop, 1000);
    }
    assert_false(s2->open);
    end();
}

/* State of the world. s2 deletes "a", which s1 still has. The next stream to s1 must not give the version of "a": a
 * server need not answer a request that gives the server's newest version. bootstrap: JSON with s1 and s2. */
static void sotw_deleted(const char *bootstrap)
{
    start(bootstrap);
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    lose_s1();
    watch(&kit_xds_eds, "b", &b);
    forget_requests(s1);
    kit_xds_respond(&k, s2, &kit_xds_cds, "9", "m1", NULL);
    fake_xds_connect(s1);
    tc_loop_drain(k.loop);
    tc_loop_advance(k.loop, 2000);
    bool asked = false, with_version = false;
    for (const char *r; *(r = kit_xds_request(&k, s1));) {
        bool of_clusters = strncmp(r, "Cluster [", 9) == 0;
        asked |= of_clusters;
        with_version = of_clusters ? strstr(r, "\"1\"") != NULL : with_version;
    }
    assert_true(asked);
    assert_false(with_version);
    kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n2", "a|x", NULL);
    assert_false(s2->open);
    end();
}

static void sotw_deleted_drop(void **state)
{
    (void)state;
    sotw_deleted("{" LIST("", "\"fail_on_data_errors\"") "}");
}

static void sotw_deleted_keep(void **state)
{
    (void)state;
    sotw_deleted("{" LIST("", "") "}");
}

/* State of the world. s2 sends an invalid "a" after s1's stream has found a connection. A second later a new stream
 * asks s1 without the version of "a". */
static void sotw_refused_late(void **state)
{
    (void)state;
    start("{" LIST("", "") "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", "a|x", NULL);
    lose_s1();
    watch(&kit_xds_eds, "b", &b);
    connect_s1();
    kit_xds_respond(&k, s2, &kit_xds_cds, "9", "m1", "a|bad", NULL);
    tc_loop_advance(k.loop, 1000);
    const char *r = kit_xds_request(&k, s1);
    assert_int_equal(strncmp(r, "Cluster [", 9), 0);
    assert_null(strstr(r, "\"1\""));
    end();
}

/* s1 sends its own "a" and "b" before its stream is replaced: the stream stays. */
static void s1_answers_in_time(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_eds, "c", &c);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    kit_xds_respond_delta(&k, s1, &kit_xds_eds, "n2", "c|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    tc_loop_advance(k.loop, 900);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m1", "a|z@9", "b|y@9", NULL);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n3", "a|x@2", "b|x@2", NULL);
    assert_false(s2->open);
    unsigned streams = s1->streams;
    tc_loop_advance(k.loop, 2000);
    assert_int_equal(s1->streams, streams);
    end();
}

/* s1 removes "a" while s2's value is in use, so the removal does not count. Then "b" from s1 ends the fallback, and s1
 * is asked for "a" again. */
static void deletion_that_was_not_heard(void **state)
{
    (void)state;
    start("{" LIST(DELTA ", \"fail_on_data_errors\"", DELTA) "}");
    s1->connected = false;
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    fake_xds_fail(s1, "refused");
    tc_loop_drain(k.loop);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m1", "a|z@9", NULL);
    assert_told(&a, "value z;");
    connect_s1();
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "-a", NULL);
    kit_xds_respond_delta(&k, s1, &kit_xds_eds, "n2", "b|y@1", NULL);
    assert_false(s2->open);
    unsigned streams = s1->streams;
    tc_loop_advance(k.loop, 60000);
    bool again = false;
    for (const char *r; *(r = kit_xds_request(&k, s1));)
        again |= strstr(r, "+[a") != NULL;
    assert_true(again);
    kit_xds_told(&a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n3", "-a", NULL);
    assert_non_null(strstr(kit_xds_told(&a), "error "));
    tc_loop_advance(k.loop, 60000);
    assert_int_equal(s1->streams, streams + 1);
    end();
}

/* s1 has "a" in the version that the request gave, and removes "b": its silence after that ends the fallback. */
static void only_a_removal(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    s2->connected = false;
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    assert_true(s2->open);
    connect_s1();
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n2", "-b", NULL);
    tc_loop_advance(k.loop, 60000);
    assert_false(s2->open);
    end();
}

/* Both servers delete "a", s2 in each response: s1 gets one more stream, no second one. */
static void deleted_by_both(void **state)
{
    (void)state;
    start("{" LIST(DELTA, "") "}"); /* s2: state of the world */
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    kit_xds_told(&a);
    unsigned streams = s1->streams;
    for (int i = 0; i < 5; i++) {
        kit_xds_respond(&k, s2, &kit_xds_cds, "9", "m", i % 2 ? "b|1" : "b|2", NULL);
        tc_loop_advance(k.loop, 1000);
        kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n", "-a", "-b", NULL);
    }
    assert_int_equal(s1->streams, streams + 1);
    end();
}

/* --- while a stream is to be replaced --- */

/* Starts a client that gets "a" from s1, falls back to s2 for "b", and connects s1 again. The background thread decodes
 * all resources; the gate is open. */
static void start_again_beside(void)
{
    struct tc_xds_client_opts opts;
    start("{" LIST(DELTA, DELTA) "}");
    tc_xds_client_opts_init(&opts);
    opts.decode_thread_bytes = 1;
    tc_xds_client_unref(k.client);
    k.client = tc_xds_local_client_new(k.loop, k.bootstrap, fake_xds_factory(k.fake), &opts);
    watch(&kit_xds_cds, "a", &a);
    gate_close(&g);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    gate_open(&g);
    tc_loop_drain(k.loop);
    assert_told(&a, "value x;");
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
}

static void the_client_ends(void **state)
{
    (void)state;
    start_again_beside();
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "-a", NULL);
    end();
}

static void the_stream_ends(void **state)
{
    (void)state;
    start_again_beside();
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "-a", NULL);
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 10000);
    assert_true(s1->open);
    end();
}

static void the_authority_ends(void **state)
{
    (void)state;
    start_again_beside();
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "-a", NULL);
    kit_xds_unwatch(&k, &a);
    kit_xds_unwatch(&k, &b);
    tc_loop_advance(k.loop, 10000);
    assert_false(s1->open);
    end();
}

/* The stream is not replaced while another thread decodes a response: the response may have the values. */
static void a_response_is_being_decoded(void **state)
{
    (void)state;
    start_again_beside();
    unsigned streams = s1->streams;
    gate_close(&g);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n", "a|x@2", "b|y@2", NULL);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "-a", NULL);
    tc_loop_advance(k.loop, 3000);
    assert_int_equal(s1->streams, streams);
    gate_open(&g);
    tc_loop_drain(k.loop);
    assert_told(&b, "value y;");
    tc_loop_advance(k.loop, 3000);
    assert_int_equal(s1->streams, streams);
    end();
}

/* s1's stream ends while its last response is being decoded. What s2 sends meanwhile does not replace that stream. */
static void the_stream_ends_while_a_response_is_being_decoded(void **state)
{
    (void)state;
    start_again_beside();
    gate_close(&g);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n", "a|x@2", "b|y@2", NULL);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "-a", NULL);
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 1000);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "-a", NULL);
    tc_loop_advance(k.loop, 1000);
    gate_open(&g);
    tc_loop_advance(k.loop, 1000);
    assert_false(s2->open);
    end();
}

/* --- after a fallback, and beside other users of a server --- */

/* State of the world: s1 sends its values again. An ordinary end of its stream later is not a failure. */
static void an_ordinary_end_after_a_fallback(void **state)
{
    (void)state;
    start("{" LIST("", "") "}");
    watch(&kit_xds_eds, "a", &a);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|x", NULL);
    lose_s1();
    watch(&kit_xds_eds, "b", &b);
    connect_s1();
    kit_xds_respond(&k, s2, &kit_xds_eds, "9", "m1", "a|z", "b|z", NULL);
    kit_xds_respond(&k, s1, &kit_xds_eds, "2", "n2", "a|x", "b|x", NULL);
    assert_false(s2->open);
    tc_loop_advance(k.loop, 2000);
    kit_xds_told(&a);
    forget_requests(s1);
    tc_loop_advance(k.loop, 1800000);
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "max age");
    tc_loop_drain(k.loop);
    watch(&kit_xds_eds, "c", &c);
    assert_false(s2->open);
    end();
}

/* State of the world: s1's last "a" was invalid, and version 1 stays in use. While s1's request with version 1 waits,
 * an invalid "a" from s2 drops the value. s1 gets a request without the version. */
static void a_refused_value_that_is_dropped(void **state)
{
    (void)state;
    start("{" LIST("", "\"fail_on_data_errors\"") "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", "a|x", NULL);
    kit_xds_respond(&k, s1, &kit_xds_cds, "2", "n2", "a|bad", NULL);
    lose_s1();
    watch(&kit_xds_eds, "b", &b);
    tc_loop_advance(k.loop, 3000);
    forget_requests(s1);
    kit_xds_respond(&k, s2, &kit_xds_cds, "9", "m1", "a|bad", NULL);
    fake_xds_connect(s1);
    tc_loop_drain(k.loop);
    bool asked = false;
    for (const char *r; *(r = kit_xds_request(&k, s1));)
        asked |= strncmp(r, "Cluster [", 9) == 0 && strstr(r, "\"1\"") == NULL;
    assert_true(asked);
    end();
}

/* State of the world: "b" is still s2's value when the fallback ends, so s1's stream is replaced. s1 need not answer on
 * the new stream, and an ordinary end of that stream does not count as a failure. `twice`: s2 supersedes "a" before the
 * new stream's first request has left, and one more stream replaces the new one. */
static void an_ordinary_end_of_the_stream_after_a_fallback(void **state)
{
    (void)state;
    for (unsigned twice = 0; twice < 2; twice++) {
        start("{" LIST("", "") "}");
        watch(&kit_xds_cds, "a", &a);
        kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", "a|x", NULL);
        lose_s1();
        watch(&kit_xds_eds, "b", &b);
        connect_s1();
        kit_xds_respond(&k, s2, &kit_xds_eds, "9", "m1", "b|z", NULL);
        kit_xds_respond(&k, s1, &kit_xds_cds, "2", "n2", "a|x", NULL);
        assert_false(s2->open);
        unsigned streams = s1->streams;
        s1->connected = !twice;
        tc_loop_advance(k.loop, 2000);
        if (twice) {
            fake_xds_fail(s1, "refused");
            watch(&kit_xds_cds, "c", &c);
            kit_xds_respond(&k, s2, &kit_xds_cds, "9", "m2", "a|z", "c|z", NULL);
            connect_s1();
        }
        assert_int_equal(s1->streams, streams + 1 + twice);
        tc_loop_advance(k.loop, twice ? 0 : 1800000);
        fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "max age");
        tc_loop_drain(k.loop);
        assert_int_equal(s1->streams, streams + 2 + twice); /* at once, not after a backoff */
        if (!twice)                                         /* else s2 is still in use */
            watch(&kit_xds_eds, "c", &c);
        assert_int_equal(s2->open, twice);
        end();
    }
}

/* Another authority that uses s1 gets an update every 10 s. s1's silence about "b", which s1 lacks, still ends the
 * fallback. */
static void silence_beside_another_authority(void **state)
{
    static const char name[] = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/c";
    char value[128];
    (void)state;
    start("{" LIST(DELTA, DELTA) ", \"authorities\": {\"x\": {\"xds_servers\": [{\"server_uri\": \"s1\", "
                                 "\"server_features\": [" DELTA "]}]}}}");
    s2->connected = false;
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_eds, name, &c);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    connect_s1();
    for (unsigned seconds = 0; seconds < 60 && s2->open; seconds++) {
        snprintf(value, sizeof(value), "%s|%u@%u", name, seconds, seconds);
        if (seconds % 10 == 0)
            kit_xds_respond_delta(&k, s1, &kit_xds_eds, "n", value, NULL);
        tc_loop_advance(k.loop, 1000);
    }
    assert_false(s2->open);
    end();
}

/* s2's channel stays for load reports after a fallback in which its ADS stream failed. That failure does not count in
 * the next fallback. */
static void an_old_failure_of_a_channel_that_stayed(void **state)
{
    (void)state;
    start("{" LIST("", "") "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", "a|x", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    struct tc_rstr *cluster = tc_rstr_str("a");
    struct tc_load_cluster *load = tc_xds_client_load(k.client, k.bootstrap->servers[1].key, cluster, NULL);
    tc_loop_drain(k.loop);
    fake_xds_end(s2, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    assert_non_null(strstr(kit_xds_told(&a), "s2"));
    connect_s1();
    kit_xds_respond(&k, s1, &kit_xds_cds, "2", "n2", "a|x", "b|x", NULL);
    kit_xds_told(&a);
    s2->connected = false;
    lose_s1();
    watch(&kit_xds_cds, "c", &c);
    assert_true(s2->open);
    assert_told(&c, "");
    tc_load_cluster_unuse(load);
    tc_load_cluster_unref(load);
    tc_rstr_unref(cluster);
    end();
}

/* s2's channel stays for load reports after a fallback. Its connection fails once, and is back at once, while nothing
 * else uses the channel: the next fallback finds s2 without a failure. */
static void a_failure_while_only_loads_are_reported(void **state)
{
    (void)state;
    start("{" LIST("", "") "}");
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", "a|x", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    struct tc_rstr *cluster = tc_rstr_str("a");
    struct tc_load_cluster *load = tc_xds_client_load(k.client, k.bootstrap->servers[1].key, cluster, NULL);
    tc_loop_drain(k.loop);
    kit_xds_respond(&k, s2, &kit_xds_cds, "9", "m1", "a|z", "b|z", NULL);
    connect_s1();
    kit_xds_respond(&k, s1, &kit_xds_cds, "2", "n2", "a|x", "b|x", NULL);
    fake_xds_fail(s2, "restarts");
    fake_xds_connect(s2);
    tc_loop_drain(k.loop);
    kit_xds_told(&a);
    assert_int_equal(s2->backoff_resets, 0);
    lose_s1();
    watch(&kit_xds_cds, "c", &c);
    assert_int_equal(s2->backoff_resets, 1); /* so that a failure that lasts is reported soon */
    assert_told(&a, "");
    assert_told(&c, "");
    tc_load_cluster_unuse(load);
    tc_load_cluster_unref(load);
    tc_rstr_unref(cluster);
    end();
}

/* s2 sends an invalid "a" again and again, while the first request to s1 cannot be written in full: s1 gets one more
 * stream, whose request no longer gives the version of "a". Then s2 sends "c", good and invalid in turn, which costs
 * one more stream in all. */
static void refused_again_while_a_request_waits(void **state)
{
    (void)state;
    start("{" LIST(DELTA, DELTA) "}");
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "c", &c);
    kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "a|x@1", "c|x@1", NULL);
    lose_s1();
    watch(&kit_xds_cds, "b", &b);
    s1->shut = true;
    fake_xds_connect(s1);
    tc_loop_advance(k.loop, 5000);
    unsigned streams = s1->streams;
    for (int i = 0; i < 100; i++) {
        kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", "a|bad@9", NULL);
        tc_loop_advance(k.loop, 45);
    }
    assert_int_equal(s1->streams, streams + 1);
    for (int i = 0; i < 20; i++) {
        kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m", i % 2 ? "c|bad@9" : "c|z@8", NULL);
        tc_loop_advance(k.loop, 45);
    }
    assert_int_equal(s1->streams, streams + 2);
    end();
}

/* Equal entries of the bootstrap are one server: a channel points to the first of them, whichever authority makes the
 * channel. So the server of a value still equals the channel's by pointer when the channel is made again. */
static void equal_entries_are_one_server(void **state)
{
    (void)state;
    start("{" LIST("", "") ", \"authorities\": {\"other\": {\"xds_servers\": [{\"server_uri\": \"s2\"}]}}}");
    watch(&kit_xds_cds, "xdstp://other/envoy.config.cluster.v3.Cluster/c", &c);
    const struct tc_xds_local_client *client = TC_CONTAINER_OF(k.client, struct tc_xds_local_client, base);
    const struct tc_xds_channel *channel = TC_CONTAINER_OF(client->channels.next, struct tc_xds_channel, link);
    assert_string_equal(tc_rstr_cstr(channel->server->uri), "s2");
    assert_ptr_equal(channel->server, &k.bootstrap->servers[1]);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_and_connection_in_one_turn),
        cmocka_unit_test(refuses_always),
        cmocka_unit_test(slow_first_server),
        cmocka_unit_test(timer_of_another_authority),
        cmocka_unit_test(silence_ends_the_fallback),
        cmocka_unit_test(sotw_deleted_drop),
        cmocka_unit_test(sotw_deleted_keep),
        cmocka_unit_test(sotw_refused_late),
        cmocka_unit_test(s1_answers_in_time),
        cmocka_unit_test(deletion_that_was_not_heard),
        cmocka_unit_test(only_a_removal),
        cmocka_unit_test(deleted_by_both),
        cmocka_unit_test(an_ordinary_end_after_a_fallback),
        cmocka_unit_test(a_refused_value_that_is_dropped),
        cmocka_unit_test(an_ordinary_end_of_the_stream_after_a_fallback),
        cmocka_unit_test(silence_beside_another_authority),
        cmocka_unit_test(an_old_failure_of_a_channel_that_stayed),
        cmocka_unit_test(a_failure_while_only_loads_are_reported),
        cmocka_unit_test(refused_again_while_a_request_waits),
        cmocka_unit_test(equal_entries_are_one_server),
        cmocka_unit_test(the_client_ends),
        cmocka_unit_test(the_stream_ends),
        cmocka_unit_test(the_authority_ends),
        cmocka_unit_test(a_response_is_being_decoded),
        cmocka_unit_test(the_stream_ends_while_a_response_is_being_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
