/* Fallback between the servers of a list (A71, A95): when the next server is asked, whose values and errors count, and
 * what ends a fallback.
 *
 * kits/xds gives the client over scripted transports; the test is s1, the primary, and s2, the fallback server.
 * s2->open is true while the client has a connection to s2 or tries to get one: unless something else uses s2, this
 * tells whether the client has fallen back. assert_told compares what a watcher has heard since the last time.
 * fallback_again_test.c has the streams on which s1 is asked again beside s2.
 *
 * The fixture makes a client with s1, s2 and the watchers a and b, and frees them with the watches that are left. A
 * test that needs another bootstrap, or a new client for each of its cases, calls tear_down and makes that client. Two
 * tests have a second client, with servers of its own, beside the fixture's. Everything runs on the test's thread, on
 * virtual time, which passes only in tc_loop_advance. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds.h"
#include "xds/client/local_client.h"

#include "base/mem.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

#define TWO "\"xds_servers\": [{\"server_uri\": \"s1\"}, {\"server_uri\": \"s2\"}], \"node\": {\"id\": \"node1\"}"
#define S1_DOWN "xDS channel for server s1: down (node ID:node1)"
#define S2_DOWN "xDS channel for server s2: Another server down (node ID:node1)"

static struct kit_xds k;
static struct fake_xds_server *s1, *s2;
static struct kit_xds_watcher a, b;

static int set_up(void **state)
{
    (void)state;
    kit_xds_init(&k, "{" TWO "}");
    s1 = k.server;
    s2 = fake_xds_server(k.fake, "s2");
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
    return 0;
}

static void watch(const char *name, struct kit_xds_watcher *w)
{
    kit_xds_watch(&k, &kit_xds_eds, name, w);
    tc_loop_drain(k.loop);
}

static void go_down(struct fake_xds_server *s, const char *why)
{
    fake_xds_fail(s, why);
    tc_loop_drain(k.loop);
}

#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)

static void primary_down_at_start(void **state)
{
    TC_CASE(FB01);
    (void)state;
    s1->connected = false;
    watch("a", &a);
    assert_false(s2->open);
    go_down(s1, "down");
    assert_true(s2->open);
    assert_told(&a, "");
    kit_xds_respond(&k, s2, &kit_xds_eds, "1", "n1", "a|fallback", NULL);
    assert_told(&a, "value fallback;");
    assert_int_equal(s1->streams, 1); /* the request that waits gives no version, so the stream stays */
}

static void both_down(void **state)
{
    TC_CASE(FB02);
    TC_CASE(FB09);
    (void)state;
    s1->connected = s2->connected = false;
    watch("a", &a);
    go_down(s1, "down");
    go_down(s2, "Another server down");
    assert_told(&a, "error " S2_DOWN ";");
    watch("b", &b);
    assert_told(&b, "error " S2_DOWN ";");

    /* The primary comes back. */
    fake_xds_connect(s1);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|main", "b|main", NULL);
    assert_told(&a, "value main;");
    assert_told(&b, "value main;");
    assert_false(s2->open);
}

static void all_cached(void **state)
{
    TC_CASE(FB03);
    TC_CASE(FB04);
    TC_CASE(FB05);
    (void)state;
    watch("a", &a);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|main", NULL);
    go_down(s1, "down");
    assert_false(s2->open);
    assert_told(&a, "value main;"); /* no error: s2 was not tried */

    /* A name that is not cached needs the fallback server, which is asked for all names. */
    watch("b", &b);
    assert_told(&b, "");
    assert_told(&a, "");
    assert_string_equal(kit_xds_request(&k, s2), "ClusterLoadAssignment [a,b] \"\" \"\" node");
    kit_xds_respond(&k, s2, &kit_xds_eds, "1", "n1", "a|fallback", "b|fallback", NULL);
    assert_told(&a, "value fallback;");
    assert_told(&b, "value fallback;");

    while (*kit_xds_request(&k, s1)) {
    }
    fake_xds_connect(s1);
    kit_xds_respond(&k, s1, &kit_xds_eds, "2", "n2", "a|main", "b|main", NULL);
    assert_told(&a, "value main;");
    assert_told(&b, "value main;");
    assert_false(s2->open);
    assert_string_equal(kit_xds_request(&k, s1), "ClusterLoadAssignment [a,b] \"2\" \"n2\"");
}

/* A list that has one server twice has no other server when that one is down. */
static void the_same_server_twice(void **state)
{
    (void)state;
    tear_down(NULL);
    kit_xds_init(&k, "{\"xds_servers\": [{\"server_uri\": \"s1\"}, {\"server_uri\": \"s1\"}], "
                     "\"node\": {\"id\": \"node1\"}}");
    s1 = k.server;
    watch("a", &a);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|main", NULL);
    go_down(s1, "down");
    assert_told(&a, "value main;ambient " S1_DOWN ";");
}

static void one_target_falls_back(void **state)
{
    TC_CASE(FB06);
    (void)state;
    struct fake_xds *fake = fake_xds_new(k.loop);
    struct tc_xds_client_opts opts;
    tc_xds_client_opts_init(&opts);
    struct tc_xds_client *other = tc_xds_local_client_new(k.loop, k.bootstrap, fake_xds_factory(fake), &opts);
    tc_xds_client_watch(other, &kit_xds_eds, tc_slice_str("a"), &b.base);
    tc_loop_drain(k.loop);
    kit_xds_respond(&k, fake_xds_server(fake, "s1"), &kit_xds_eds, "1", "n1", "a|main", NULL);
    watch("a", &a);
    go_down(s1, "down");
    go_down(fake_xds_server(fake, "s1"), "down");
    assert_true(s2->open);
    assert_false(fake_xds_server(fake, "s2")->open);
    assert_told(&b, "value main;");
    tc_xds_client_unref(other);
    fake_xds_free(fake);
}

static void primary_drops_after_an_answer(void **state)
{
    TC_CASE(FB07);
    (void)state;
    watch("a", &a);
    watch("b", &b);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|main", NULL);
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_drain(k.loop);
    assert_false(s2->open);
    assert_told(&b, "");
    assert_int_equal(s1->streams, 2);

    /* The next stream ends without an answer: s1 has failed. */
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_drain(k.loop);
    assert_true(s2->open);
    assert_told(&b, "");
}

static void known_absent_is_enough(void **state)
{
    (void)state;
    watch("a", &a);
    tc_loop_advance(k.loop, 15000);
    go_down(s1, "down");
    assert_false(s2->open);
}

static void on_dump(void *arg, const struct tc_xds_dump_entry *e)
{
    *(enum tc_xds_state *)arg = e->state;
}

/* Returns the state of the only resource that is watched. */
static enum tc_xds_state state_now(void)
{
    enum tc_xds_state state = 0;
    tc_xds_client_dump(k.client, on_dump, &state);
    return state;
}

/* A name's timer runs once a connected server was asked. The timer counts for the last such server of the list, and
 * starts again when another server becomes the last. */
static void timer_over_both_servers(void **state)
{
    (void)state;
    s1->connected = false;
    watch("a", &a);
    go_down(s1, "down");
    tc_loop_advance(k.loop, 10000);
    fake_xds_end(s2, TORC_STATUS_UNAVAILABLE, "gone");
    s2->connected = false;
    tc_loop_advance(k.loop, 60000); /* neither server is connected */
    assert_int_equal(state_now(), TC_XDS_REQUESTED);
    fake_xds_connect(s1);
    tc_loop_advance(k.loop, 10000);
    fake_xds_connect(s2);
    tc_loop_advance(k.loop, 14999);
    assert_int_equal(state_now(), TC_XDS_REQUESTED);
    tc_loop_advance(k.loop, 1);
    assert_int_equal(state_now(), TC_XDS_DOES_NOT_EXIST);
}

/* s1's connection fails, but its stream stays. When the fallback begins, the timer starts again, with the time that
 * s2's features ask for (A88). */
static void timer_of_the_server_in_use(void **state)
{
    (void)state;
    for (int patient = 0; patient < 2; patient++) { /* which server has the feature */
        tear_down(NULL);
        static const char feature[] = "\"resource_timer_is_transient_error\"";
        char *text = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"s1\", \"server_features\": [%s]}, "
                                 "{\"server_uri\": \"s2\", \"server_features\": [%s]}], \"node\": {\"id\": "
                                 "\"node1\"}}",
                                 patient == 0 ? feature : "", patient == 1 ? feature : "");
        kit_xds_init(&k, text);
        tc_free(text);
        s1 = k.server;
        s2 = fake_xds_server(k.fake, "s2");
        watch("a", &a);
        tc_loop_advance(k.loop, 10000);
        go_down(s1, "down");
        assert_true(s2->open);
        tc_loop_advance(k.loop, patient ? 29999 : 14999);
        assert_told(&a, "");
        tc_loop_advance(k.loop, 1);
        assert_told(&a, patient ? "error xDS ClusterLoadAssignment resource was not received from server s2 in time "
                                  "(node ID:node1);"
                                : "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);");
    }
}

/* s1 serves again, and the fallback ends: the timer of a name that neither server has sent starts again. */
static void timer_when_fallback_ends(void **state)
{
    (void)state;
    s1->connected = false;
    watch("a", &a);
    watch("b", &b);
    go_down(s1, "down");
    tc_loop_advance(k.loop, 10000);
    fake_xds_connect(s1);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "b|main", NULL);
    assert_false(s2->open);
    tc_loop_advance(k.loop, 14999);
    assert_told(&a, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&a, "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);");
}

static void bad_address_first(void **state)
{
    TC_CASE(FB08);
    (void)state;
    watch("a", &a);
    go_down(s1, "cannot parse target"); /* a transport reports an unusable URI in this way */
    kit_xds_respond(&k, s2, &kit_xds_eds, "1", "n1", "a|good", NULL);
    assert_told(&a, "value good;");
    watch("b", &b);
    go_down(s2, "cannot parse target");
    assert_told(&b, "error xDS channel for server s2: cannot parse target (node ID:node1);");
}

static void reachability_only(void **state)
{
    (void)state;
    tear_down(NULL);
    kit_xds_init(&k, "{" TWO ", \"authorities\": {\"x\": {\"fallback_on_reachability_only\": true}}}");
    s1 = k.server;
    s2 = fake_xds_server(k.fake, "s2");
    static const char name[] = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/a";
    watch(name, &a);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/a|main",
                    NULL);
    assert_told(&a, "value main;");
    go_down(s1, "down");
    assert_true(s2->open);
    assert_told(&a, "");
}

/* s1 answers again, without resources: it can be reached, so no watcher gets an error when s2 fails (A71). */
static void an_empty_primary_is_reachable(void **state)
{
    (void)state;
    watch("a", &a);
    go_down(s1, "down");
    kit_xds_respond(&k, s2, &kit_xds_eds, "1", "n1", "a|fallback", NULL);
    assert_told(&a, "value fallback;");
    fake_xds_connect(s1);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", NULL);
    watch("b", &b);
    go_down(s2, "Another server down");
    assert_told(&a, "");
    assert_told(&b, "");
    tc_loop_advance(k.loop, 15000); /* both servers were asked for b */
    assert_told(&b, "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);");
    assert_told(&a, "");
    /* When s1 is down too, no server can be reached. */
    go_down(s1, "down");
    assert_told(&a, "ambient " S2_DOWN ";");
    assert_told(&b, "error " S2_DOWN ";");
    /* One reachable server is enough. */
    fake_xds_connect(s1);
    kit_xds_respond(&k, s1, &kit_xds_eds, "2", "n2", NULL);
    assert_told(&a, "clear;");
}

/* If the returning primary lacks a resource, or sends an invalid one, the value of the fallback server stays (A71).
 * features: of s1, JSON strings joined by commas; `incremental` says whether they ask for incremental ADS. */
static void bad_answers_of_the_primary(const char *features, bool incremental)
{
    tear_down(NULL);
    char *text = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"s1\", \"server_features\": [%s]}, {\"server_uri\": "
                             "\"s2\", \"server_features\": [\"fail_on_data_errors\"]}], \"node\": {\"id\": \"node1\"}}",
                             features);
    kit_xds_init(&k, text);
    tc_free(text);
    s1 = k.server;
    s2 = fake_xds_server(k.fake, "s2");
    s1->connected = false;
    kit_xds_watch(&k, &kit_xds_cds, "a", &a);
    kit_xds_watch(&k, &kit_xds_cds, "b", &b);
    tc_loop_drain(k.loop);
    go_down(s1, "down");
    kit_xds_respond(&k, s2, &kit_xds_cds, "1", "n1", "a|fallback", "b|fallback", NULL);
    assert_told(&a, "value fallback;");
    assert_told(&b, "value fallback;");
    fake_xds_connect(s1);
    tc_loop_drain(k.loop);
    if (incremental) {
        kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n1", "-a", "b|bad@1", NULL);
        kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n2", "!a", NULL);
    } else {
        kit_xds_respond(&k, s1, &kit_xds_cds, "1", "n1", NULL); /* neither resource */
        kit_xds_respond(&k, s1, &kit_xds_cds, "2", "n2", "a|bad", NULL);
    }
    assert_told(&a, "");
    assert_told(&b, "");
    assert_true(s2->open);
    /* s2's responses still count. */
    kit_xds_respond(&k, s2, &kit_xds_cds, "2", "n2", "a|new", NULL);
    assert_told(&a, "value new;");
    assert_told(&b, "error xDS Cluster resource was deleted by server s2 (node ID:node1);");
    /* A valid resource of s1 ends the fallback; from then on only s1's responses count. */
    if (incremental)
        kit_xds_respond_delta(&k, s1, &kit_xds_cds, "n3", "b|main@2", "-a", NULL);
    else
        kit_xds_respond(&k, s1, &kit_xds_cds, "3", "n3", "b|main", NULL);
    assert_false(s2->open);
    assert_told(&a, "error xDS Cluster resource was deleted by server s1 (node ID:node1);");
    assert_told(&b, "value main;");
}

static void bad_answers_of_the_primary_sotw(void **state)
{
    (void)state;
    bad_answers_of_the_primary("\"fail_on_data_errors\"", false);
}

static void bad_answers_of_the_primary_delta(void **state)
{
    (void)state;
    bad_answers_of_the_primary("\"fail_on_data_errors\", \"torc.incremental_ads\"", true);
}

/* Sends a response of s1 that has an error with this code instead of the resource (xRFC TP3). */
static void respond_error(int code, const char *name)
{
    Envoy__Service__Discovery__V3__DiscoveryResponse m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Envoy__Service__Discovery__V3__ResourceError error = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE_ERROR__INIT;
    Envoy__Service__Discovery__V3__ResourceError *errors[] = {&error};
    Envoy__Service__Discovery__V3__ResourceName resource_name = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE_NAME__INIT;
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    uint8_t bytes[512];
    resource_name.name = (char *)(uintptr_t)name;
    status.code = code;
    status.message = "no";
    error.resource_name = &resource_name;
    error.error_detail = &status;
    m.type_url = (char *)(uintptr_t)kit_xds_eds.type_url;
    m.version_info = "1";
    m.nonce = "n1";
    m.resource_errors = errors;
    m.n_resource_errors = 1;
    assert_true(envoy__service__discovery__v3__discovery_response__get_packed_size(&m) <= sizeof(bytes));
    size_t len = envoy__service__discovery__v3__discovery_response__pack(&m, bytes);
    fake_xds_send(s1, tc_slice_of(bytes, len));
    tc_loop_drain(k.loop);
}

/* Only NOT_FOUND says that the resource does not exist, so that no fallback is needed for it. */
static void errors_of_the_primary(void **state)
{
    static const struct {
        int code;
        bool falls_back;
    } cases[] = {
        {TORC_STATUS_NOT_FOUND, false},
        {TORC_STATUS_PERMISSION_DENIED, true},
        {TORC_STATUS_UNAVAILABLE, true},
        {TORC_STATUS_INTERNAL, true},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        tear_down(state);
        set_up(state);
        watch("a", &a);
        respond_error(cases[i].code, "a");
        assert_int_equal(state_now(), TC_XDS_RECEIVED_ERROR);
        assert_false(s2->open);
        go_down(s1, "down");
        assert_int_equal(s2->open, cases[i].falls_back);
    }
}

/* The error leaves the resource in use, so no fallback is needed. */
static void an_error_beside_a_value(void **state)
{
    (void)state;
    watch("a", &a);
    kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|main", NULL);
    respond_error(TORC_STATUS_UNAVAILABLE, "a");
    go_down(s1, "down");
    assert_false(s2->open);
}

/* Replaces the client by a new one, with incremental ADS or state of the world for s1, and gets "a" from s1. */
static void with_a_cached(bool incremental)
{
    tear_down(NULL);
    char *text = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"s1\", \"server_features\": [%s]}, "
                             "{\"server_uri\": \"s2\"}], \"node\": {\"id\": \"node1\"}}",
                             incremental ? "\"torc.incremental_ads\"" : "");
    kit_xds_init(&k, text);
    tc_free(text);
    s1 = k.server;
    s2 = fake_xds_server(k.fake, "s2");
    watch("a", &a);
    if (incremental)
        kit_xds_respond_delta(&k, s1, &kit_xds_eds, "n1", "a|main@1", NULL);
    else
        kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n1", "a|main", NULL);
}

/* The connection to s1 is lost and comes back, and s1 is silent: only s1 is asked for a new name. */
static void a_blip(void **state)
{
    (void)state;
    for (int incremental = 0; incremental < 2; incremental++) {
        with_a_cached(incremental);
        fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
        s1->connected = false;
        tc_loop_drain(k.loop);
        go_down(s1, "down");
        fake_xds_connect(s1);
        tc_loop_drain(k.loop);
        watch("b", &b);
        assert_false(s2->open);
    }
}

/* A stream of s1 ends without a response: s1 counts as reachable when the next stream has lasted 1 s. */
static void a_stream_that_lasts(void **state)
{
    (void)state;
    for (int incremental = 0; incremental < 2; incremental++)
        for (int steady = 0; steady < 2; steady++) {
            with_a_cached(incremental);
            for (unsigned streams = 1; streams < 3; streams++) {
                assert_int_equal(s1->streams, streams);
                fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
                tc_loop_drain(k.loop);
            }
            assert_false(s2->open);
            for (unsigned ms = 0; s1->streams < 3 && ms < 2000; ms++)
                tc_loop_advance(k.loop, 1);
            assert_int_equal(s1->streams, 3);
            tc_loop_advance(k.loop, steady ? 1000 : 990);
            watch("b", &b);
            assert_int_equal(s2->open, !steady);
        }
}

/* A server that finds its newest version in the first request of a stream sends nothing. So the request must not have a
 * version of which the client no longer holds all resources: here the fallback server's "a" took the place of one. */
static void a_version_that_is_not_held(void **state)
{
    (void)state;
    watch("a", &a);
    kit_xds_respond(&k, s1, &kit_xds_eds, "7", "n1", "a|main", NULL);
    while (*kit_xds_request(&k, s1)) {
    }
    go_down(s1, "down");
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    s1->connected = false;
    watch("b", &b);
    kit_xds_respond(&k, s2, &kit_xds_eds, "1", "m1", "a|fallback", "b|fallback", NULL);
    while (*kit_xds_request(&k, s1)) {
    }
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    fake_xds_connect(s1);
    tc_loop_advance(k.loop, 2000);
    assert_string_equal(kit_xds_request(&k, s1), "ClusterLoadAssignment [a,b] \"\" \"\" node");
    kit_xds_respond(&k, s1, &kit_xds_eds, "7", "n2", "a|main", "b|main", NULL);
    assert_false(s2->open);
    fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    while (*kit_xds_request(&k, s1)) {
    }
    tc_loop_advance(k.loop, 1000);
    assert_string_equal(kit_xds_request(&k, s1), "ClusterLoadAssignment [a,b] \"7\" \"\" node");
}

/* The first request of s1's next stream has the version of "a", and waits for a connection. Meanwhile the fallback
 * server sends "a", valid or not. So a new stream replaces that one, and the new stream's request does not have the
 * version. */
static void a_version_given_up_while_the_request_waits(void **state)
{
    (void)state;
    static const char *const answers[] = {"a|fallback", "a|bad"};
    for (int incremental = 0; incremental < 2; incremental++)
        for (size_t i = 0; i < TC_ARRAY_LEN(answers); i++) {
            with_a_cached(incremental);
            while (*kit_xds_request(&k, s1)) {
            }
            fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
            s1->connected = false;
            tc_loop_drain(k.loop);
            tc_loop_advance(k.loop, 1000);
            const char *held = incremental ? "ClusterLoadAssignment +[a] -[] {a=1} \"\" node"
                                           : "ClusterLoadAssignment [a] \"1\" \"\" node";
            assert_string_equal(kit_xds_request(&k, s1), held);
            go_down(s1, "down");
            watch("b", &b);
            unsigned streams = s1->streams;
            kit_xds_respond(&k, s2, &kit_xds_eds, "9", "m1", answers[i], "b|fallback", NULL);
            fake_xds_connect(s1);
            tc_loop_drain(k.loop);
            assert_int_equal(s1->streams, streams + 1);
            const char *now = incremental ? "ClusterLoadAssignment +[a,b] -[] {} \"\" node"
                                          : "ClusterLoadAssignment [a,b] \"\" \"\" node";
            assert_string_equal(kit_xds_request(&k, s1), now);
            if (incremental)
                kit_xds_respond_delta(&k, s1, &kit_xds_eds, "n2", "a|main@1", NULL);
            else
                kit_xds_respond(&k, s1, &kit_xds_eds, "1", "n2", "a|main", NULL);
            assert_false(s2->open);
        }
}

static void a_version_whose_resource_was_dropped(void **state)
{
    (void)state;
    struct kit_xds own;
    kit_xds_init(&own, "{\"xds_servers\": [{\"server_uri\": \"s1\", \"server_features\": [\"fail_on_data_errors\"]}],"
                       " \"node\": {\"id\": \"node1\"}}");
    kit_xds_watch(&own, &kit_xds_eds, "a", &a);
    tc_loop_drain(own.loop);
    kit_xds_respond(&own, own.server, &kit_xds_eds, "1", "n1", "a|good", NULL);
    kit_xds_respond(&own, own.server, &kit_xds_eds, "2", "n2", "a|bad", NULL);
    while (*kit_xds_request(&own, own.server)) {
    }
    fake_xds_end(own.server, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_advance(own.loop, 1000);
    assert_string_equal(kit_xds_request(&own, own.server), "ClusterLoadAssignment [a] \"\" \"\" node");
    kit_xds_fini(&own);
}

/* s2 is also the server of authority x, so its stream stays when the fallback ends. The fallback begins again before s2
 * has read a request without "a", or (`crossed`) after a response of s2 crossed that request. In both cases s2 first
 * gets a request without "a": otherwise s2 would see no change, and not send "a" again. */
static void fallback_to_a_shared_server_begins_again(void **state)
{
    (void)state;
#define OF_X "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/"
    static struct kit_xds_watcher x, y;
    for (int crossed = 0; crossed < 2; crossed++) {
        tear_down(NULL);
        kit_xds_init(&k, "{" TWO ", \"authorities\": {\"x\": {\"xds_servers\": [{\"server_uri\": \"s2\"}]}}}");
        s1 = k.server;
        s2 = fake_xds_server(k.fake, "s2");
        kit_xds_watcher_init(&x);
        kit_xds_watcher_init(&y);
        watch(OF_X "1", &x);
        watch("a", &a);
        go_down(s1, "down");
        kit_xds_respond(&k, s2, &kit_xds_eds, "1", "n1", "a|fallback", OF_X "1|x", NULL);
        assert_told(&a, "value fallback;");
        while (*kit_xds_request(&k, s2)) {
        }
        s2->connected = false;
        if (!crossed)
            watch(OF_X "2", &y); /* its request, which has "a", is on its way */
        fake_xds_connect(s1);
        kit_xds_respond(&k, s1, &kit_xds_eds, "1", "m1", "a|main", NULL);
        assert_told(&a, "value main;");
        if (crossed) {
            assert_string_equal(kit_xds_request(&k, s2), "ClusterLoadAssignment [" OF_X "1] \"1\" \"n1\"");
            kit_xds_respond(&k, s2, &kit_xds_eds, "2", "n2", "a|crossed", OF_X "1|x", NULL);
            assert_told(&a, "");
        } else {
            assert_string_equal(kit_xds_request(&k, s2), "ClusterLoadAssignment [a," OF_X "1," OF_X "2] \"1\" \"n1\"");
        }
        go_down(s1, "down");
        watch("b", &b);
        fake_xds_connect(s2);
        tc_loop_drain(k.loop);
        static const char *const without[] = {"ClusterLoadAssignment [b," OF_X "1," OF_X "2] \"1\" \"n1\"",
                                              "ClusterLoadAssignment [" OF_X "1] \"2\" \"n2\""};
        static const char *const with[] = {"ClusterLoadAssignment [a,b," OF_X "1," OF_X "2] \"1\" \"n1\"",
                                           "ClusterLoadAssignment [a,b," OF_X "1] \"2\" \"n2\""};
        assert_string_equal(kit_xds_request(&k, s2), without[crossed]);
        assert_string_equal(kit_xds_request(&k, s2), with[crossed]);
        assert_string_equal(kit_xds_request(&k, s2), "");
        kit_xds_respond(&k, s2, &kit_xds_eds, "3", "n3", "a|again", NULL);
        assert_told(&a, "value again;");
        kit_xds_unwatch(&k, &x);
        if (!crossed)
            kit_xds_unwatch(&k, &y);
        kit_xds_watcher_fini(&x);
        kit_xds_watcher_fini(&y);
    }
#undef OF_X
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(primary_down_at_start),
        TEST(both_down),
        TEST(all_cached),
        TEST(the_same_server_twice),
        TEST(one_target_falls_back),
        TEST(primary_drops_after_an_answer),
        TEST(known_absent_is_enough),
        TEST(timer_over_both_servers),
        TEST(timer_of_the_server_in_use),
        TEST(timer_when_fallback_ends),
        TEST(bad_address_first),
        TEST(reachability_only),
        TEST(an_empty_primary_is_reachable),
        TEST(bad_answers_of_the_primary_sotw),
        TEST(bad_answers_of_the_primary_delta),
        TEST(errors_of_the_primary),
        TEST(an_error_beside_a_value),
        TEST(a_blip),
        TEST(a_stream_that_lasts),
        TEST(a_version_that_is_not_held),
        TEST(a_version_given_up_while_the_request_waits),
        TEST(a_version_whose_resource_was_dropped),
        TEST(fallback_to_a_shared_server_begins_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
