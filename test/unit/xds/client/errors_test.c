/* Absent resources and failures: A57's timers and connectivity errors, A88's data errors, and the delays between
 * streams.
 *
 * kits/xds gives the client over a scripted transport; the test is the server s1 (k.server). assert_told compares what
 * a watcher has heard since the last time: "value v;", "error TEXT;" (there is no value), "ambient TEXT;" (an error
 * beside a value) or "clear;" (the end of such an error). state_of reads the state of a resource in the cache.
 *
 * A client lives from `start`, which takes the server's features, to `end`, which frees the client with its watches;
 * some tests have several clients, one after another. Everything runs on the test's thread, on virtual time, which
 * passes only in tc_loop_advance. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds.h"

#include "base/log.h"
#include "base/mem.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

#define NO_CONNECTION "xDS channel for server s1: connection refused (node ID:node1)"
#define NO_ANSWER                                                                                                      \
    "xDS channel for server s1: xDS call failed with no responses received; status: UNAVAILABLE: ugh (node ID:node1)"
#define LDS_ABSENT "xDS Listener resource does not exist (node ID:node1)"
#define CDS_DELETED "xDS Cluster resource was deleted by server s1 (node ID:node1)"

static struct kit_xds k;
static struct kit_xds_watcher a, b;

/* Makes the client and the watchers a and b. features: JSON strings, joined by commas. */
static void start(const char *features)
{
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}], \"server_features\": [%s]}], \"node\": {\"id\": \"node1\"}}",
                                  features);
    kit_xds_init(&k, bootstrap);
    tc_free(bootstrap);
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
}

static void end(void)
{
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
}

static void watch(const struct tc_xds_resource_type *type, const char *name, struct kit_xds_watcher *w)
{
    kit_xds_watch(&k, type, name, w);
    tc_loop_drain(k.loop);
}

static enum tc_xds_state seen_state;

static void on_dump(void *arg, const struct tc_xds_dump_entry *e)
{
    if (tc_slice_eq_str(e->name, arg))
        seen_state = e->state;
}

/* Returns the state of the resource, which must be watched. */
static enum tc_xds_state state_of(const char *name)
{
    tc_xds_client_dump(k.client, on_dump, (void *)name);
    return seen_state;
}

#define assert_request(text) assert_string_equal(kit_xds_request(&k, k.server), text)
#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)

/* --- the does-not-exist timer --- */

static void absent_after_15_s(void **state)
{
    TC_CASE(AD12);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    tc_loop_advance(k.loop, 14999);
    assert_told(&a, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&a, "error " LDS_ABSENT ";");
    assert_int_equal(a.last_code, TORC_STATUS_NOT_FOUND);
    assert_int_equal(state_of("a"), TC_XDS_DOES_NOT_EXIST);
    watch(&kit_xds_lds, "a", &b); /* known: no new wait */
    assert_told(&b, "error " LDS_ABSENT ";");
    /* A later arrival recovers. */
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    assert_told(&b, "value x;");
    assert_int_equal(state_of("a"), TC_XDS_ACKED);
    end();
}

static void no_timer_while_disconnected(void **state)
{
    TC_CASE(AD13);
    (void)state;
    start("");
    k.server->connected = false;
    watch(&kit_xds_lds, "a", &a);
    tc_loop_advance(k.loop, 20000);
    assert_told(&a, "");
    fake_xds_fail(k.server, "connection refused");
    tc_loop_advance(k.loop, 20000);
    assert_told(&a, "error " NO_CONNECTION ";");
    assert_int_equal(a.last_code, TORC_STATUS_UNAVAILABLE);
    assert_int_equal(state_of("a"), TC_XDS_REQUESTED);
    /* The timer starts with the connection. */
    fake_xds_connect(k.server);
    tc_loop_advance(k.loop, 14999);
    assert_told(&a, "");
    tc_loop_advance(k.loop, 1);
    assert_int_equal(state_of("a"), TC_XDS_DOES_NOT_EXIST);
    end();
}

static void new_stream_times_only_the_never_seen(void **state)
{
    TC_CASE(AD14);
    (void)state;
    start("");
    watch(&kit_xds_eds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    tc_loop_advance(k.loop, 10000);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, 2);
    tc_loop_advance(k.loop, 14999); /* b waits the full time, not the rest of the old one */
    assert_told(&b, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&b, "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);");
    tc_loop_advance(k.loop, 60000);
    assert_told(&a, "");
    end();
}

static void only_the_absent_one_fails(void **state)
{
    TC_CASE(AD15);
    TC_CASE(AD16);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    watch(&kit_xds_lds, "b", &b);
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    assert_told(&b, ""); /* omitted, but never received: no error at once */
    tc_loop_advance(k.loop, 14999);
    assert_told(&b, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&b, "error " LDS_ABSENT ";");
    assert_told(&a, "");
    end();
}

/* The resource may be in the next response, which is not read while a watcher holds the token. */
static void no_absence_while_a_watcher_holds_up_reading(void **state)
{
    (void)state;
    start("");
    a.hold = true;
    watch(&kit_xds_eds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "b|y", NULL);
    tc_loop_advance(k.loop, 20000);
    assert_told(&b, "");
    kit_xds_release(&a);
    tc_loop_drain(k.loop);
    assert_told(&b, "value y;");
    end();
}

static void timer_as_transient_error(void **state)
{
    TC_CASE(AD18);
    (void)state;
    start("\"resource_timer_is_transient_error\"");
    watch(&kit_xds_cds, "a", &a);
    tc_loop_advance(k.loop, 29999);
    assert_told(&a, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&a, "error xDS Cluster resource was not received from server s1 in time (node ID:node1);");
    assert_int_equal(a.last_code, TORC_STATUS_UNAVAILABLE);
    assert_int_equal(state_of("a"), TC_XDS_TIMEOUT);
    end();
}

/* --- data errors --- */

/* Starts a client that gets a Cluster, which a later response omits. Asserts what the watcher and a later one are told.
 * The caller ends the client. */
static void deleted(const char *features, const char *told_a, const char *told_late)
{
    start(features);
    watch(&kit_xds_cds, "a", &a);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", NULL);
    assert_told(&a, told_a);
    assert_int_equal(a.last_code, TORC_STATUS_NOT_FOUND);
    assert_int_equal(state_of("a"), TC_XDS_DOES_NOT_EXIST);
    watch(&kit_xds_cds, "a", &b);
    assert_told(&b, told_late);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "3", "n3", NULL);
    assert_told(&a, ""); /* still deleted: no news */
}

static void deleted_listener_or_cluster(void **state)
{
    TC_CASE(AD17);
    (void)state;
    deleted("", "ambient " CDS_DELETED ";", "value x;ambient " CDS_DELETED ";");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "4", "n4", "a|x", NULL);
    assert_told(&a, "clear;");
    end();
    deleted("\"ignore_resource_deletion\"", "ambient " CDS_DELETED ";", "value x;ambient " CDS_DELETED ";");
    end();
    deleted("\"fail_on_data_errors\"", "error " CDS_DELETED ";", "error " CDS_DELETED ";");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "4", "n4", "a|x", NULL);
    assert_told(&a, "value x;");
    end();
}

/* Only a Listener or a Cluster counts as deleted when a response lacks it. */
static void absence_of_others_means_nothing(void **state)
{
    (void)state;
    start("\"fail_on_data_errors\"");
    watch(&kit_xds_eds, "a", &a);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", NULL);
    assert_told(&a, "value x;");
    end();
}

static void nack_drops_the_value_when_told_to(void **state)
{
    (void)state;
    start("\"fail_on_data_errors\"");
    watch(&kit_xds_eds, "a", &a);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "a|bad", NULL);
    assert_told(&a,
                "value x;error invalid xDS ClusterLoadAssignment resource: field value: is bad; field other: is bad "
                "too (node ID:node1);");
    assert_int_equal(state_of("a"), TC_XDS_NACKED);
    end();
}

/* Sends a response of version 7 that has an error with this code for the name, and no resource. */
static void send_error(int code, const char *name)
{
    Envoy__Service__Discovery__V3__DiscoveryResponse m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Envoy__Service__Discovery__V3__ResourceError error = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE_ERROR__INIT;
    Envoy__Service__Discovery__V3__ResourceError *errors[] = {&error};
    Envoy__Service__Discovery__V3__ResourceName resource_name = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE_NAME__INIT;
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    uint8_t bytes[512];
    resource_name.name = (char *)name;
    status.code = code;
    status.message = "no";
    error.resource_name = &resource_name;
    error.error_detail = &status;
    m.type_url = (char *)kit_xds_eds.type_url;
    m.version_info = "7";
    m.nonce = "n7";
    m.resource_errors = errors;
    m.n_resource_errors = 1;
    size_t len = envoy__service__discovery__v3__discovery_response__pack(&m, bytes);
    fake_xds_send(k.server, tc_slice_of(bytes, len));
    tc_loop_drain(k.loop);
}

/* xRFC TP3: a response may have an error of a resource instead of the resource. */
static void errors_of_the_server(void **state)
{
    (void)state;
    static const char denied[] =
        "xDS server s1 has no ClusterLoadAssignment resource: PERMISSION_DENIED: no (node ID:node1);";
    char text[256];
    start("\"fail_on_data_errors\"");
    watch(&kit_xds_eds, "a", &a);
    send_error(TORC_STATUS_PERMISSION_DENIED, "a");
    snprintf(text, sizeof(text), "error %s", denied);
    assert_told(&a, text);
    assert_int_equal(state_of("a"), TC_XDS_RECEIVED_ERROR);
    tc_loop_advance(k.loop, 20000); /* the timer is off */
    assert_told(&a, "");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "8", "n8", "a|x", NULL);
    assert_told(&a, "value x;");
    send_error(TORC_STATUS_INTERNAL, "a"); /* transient: the value stays in any case */
    assert_told(&a, "ambient xDS server s1 has no ClusterLoadAssignment resource: INTERNAL: no (node ID:node1);");
    send_error(TORC_STATUS_PERMISSION_DENIED, "a");
    assert_told(&a, text);
    send_error(TORC_STATUS_OK, "a");
    send_error(TORC_STATUS_NOT_FOUND, "not watched");
    assert_told(&a, "");
    end();
}

/* --- the stream and the connection --- */

static void stream_ends_without_an_answer(void **state)
{
    TC_CASE(AD19);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "ugh");
    tc_loop_drain(k.loop);
    assert_told(&a, "error " NO_ANSWER ";");
    assert_int_equal(a.last_code, TORC_STATUS_UNAVAILABLE);
    tc_loop_advance(k.loop, 1200);
    assert_int_equal(k.server->streams, 2);
    fake_xds_end(k.server, TORC_STATUS_RESOURCE_EXHAUSTED, "full");
    tc_loop_drain(k.loop);
    assert_told(&a, "error xDS channel for server s1: xDS call failed with no responses received; status: "
                    "RESOURCE_EXHAUSTED: full (node ID:node1);");
    assert_int_equal(a.last_code, TORC_STATUS_UNAVAILABLE); /* whatever the stream's code */
    end();
}

static void stream_ends_after_an_answer(void **state)
{
    TC_CASE(AD20);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    assert_request("Listener [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    assert_request("Listener [a] \"1\" \"n1\"");
    assert_told(&a, "value x;");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, 2);
    assert_told(&a, "");
    assert_request("Listener [a] \"1\" \"\" node");

    /* If the server ends each stream after an answer, a stream opens at most once a second. */
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 999);
    assert_int_equal(k.server->streams, 2);
    tc_loop_advance(k.loop, 1);
    assert_int_equal(k.server->streams, 3);
    assert_told(&a, "");
    end();
}

/* Ends the stream without an answer. Returns the time until the next stream, in ms; 200000 if none opens by then. */
static uint64_t wait_ms(void)
{
    unsigned streams = k.server->streams;
    uint64_t ms = 0;
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "ugh");
    tc_loop_drain(k.loop);
    for (; k.server->streams == streams && ms < 200000; ms++)
        tc_loop_advance(k.loop, 1);
    return ms;
}

/* Asserts that the time is the expected one, with 20 % of jitter. */
static void assert_near(uint64_t ms, double expected_ms)
{
    assert_in_range(ms, (uint64_t)(expected_ms * 0.8), (uint64_t)(expected_ms * 1.2) + 1);
}

/* Answers the stream, and ends the stream with OK after lived_ms, as a server does that keeps one stream for all its
 * clients. Returns the time until the next stream, in ms; 200000 if none opens by then. */
static uint64_t wait_taken_ms(uint64_t lived_ms)
{
    unsigned streams = k.server->streams;
    uint64_t ms = 0;
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    tc_loop_advance(k.loop, lived_ms);
    assert_int_equal(k.server->streams, streams);
    fake_xds_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    for (; k.server->streams == streams && ms < 200000; ms++)
        tc_loop_advance(k.loop, 1);
    return ms;
}

static void taken_away(void **state)
{
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    for (double expected_ms = 1000; expected_ms < 100000; expected_ms *= 1.6)
        assert_near(wait_taken_ms(500), TC_MIN(expected_ms, 30000));
    assert_near(wait_taken_ms(59999), 30000);
    assert_told(&a, "value x;"); /* no watcher is told of these ends */
    /* After a stream that lasted a minute the next one starts at once. */
    assert_int_equal(wait_taken_ms(60000), 0);
    assert_near(wait_taken_ms(2000), 1000);
    assert_near(wait_taken_ms(2000), 1600);
    /* After a status other than OK the next stream starts at once. */
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    tc_loop_advance(k.loop, 2000);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    unsigned streams = k.server->streams;
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, streams + 1);
    assert_near(wait_taken_ms(2000), 1000);
    end();
}

static unsigned warnings;

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)arg;
    warnings += level == TORC_LOG_WARN && strcmp(module, "xds") == 0 &&
                strstr(message, "it may keep one stream for several clients, as istio-agent does") != NULL;
}

/* A server ends streams with OK on which it had answered. The log warns at the second such end in a row, not at the
 * third. The first is not worth a warning: a control plane that restarts causes one. */
static void taken_away_is_logged(void **state)
{
    (void)state;
    torc_log_set_sink(on_line, NULL);
    assert_int_equal(torc_log_set_levels("xds=warn"), 0);
    start("");
    watch(&kit_xds_lds, "a", &a);
    wait_taken_ms(500);
    assert_int_equal(warnings, 0);
    wait_taken_ms(500);
    assert_int_equal(warnings, 1);
    wait_taken_ms(500);
    assert_int_equal(warnings, 1);
    end();
    torc_log_set_sink(NULL, NULL);
    torc_log_set_levels("none");
}

static void closed_without_an_answer(void **state)
{
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    fake_xds_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    assert_told(&a, "error xDS channel for server s1: the server closed the stream with OK before it sent a response "
                    "(node ID:node1);");
    end();
}

static void backoff(void **state)
{
    TC_CASE(AD21);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    double expected_ms = 1000;
    for (int i = 0; i < 13; i++) {
        assert_near(wait_ms(), expected_ms);
        expected_ms = TC_MIN(expected_ms * 1.6, 120000);
    }
    assert_true(expected_ms == 120000);
    /* A first response resets the backoff. */
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 1);
    assert_near(wait_ms(), 1000);
    assert_near(wait_ms(), 1600);
    /* tc_xds_client_reset_backoff resets the backoff, and opens the next stream without a wait. */
    unsigned streams = k.server->streams;
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "ugh");
    tc_loop_drain(k.loop);
    tc_xds_client_reset_backoff(k.client);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, streams + 1);
    assert_int_equal(k.server->backoff_resets, 1);
    assert_near(wait_ms(), 1000);
    end();
}

static void reconnect_asks_for_all(void **state)
{
    TC_CASE(AD22);
    (void)state;
    start("");
    watch(&kit_xds_lds, "l", &a);
    watch(&kit_xds_eds, "e", &b);
    kit_xds_respond(&k, k.server, &kit_xds_lds, "5", "n1", "l|x", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "6", "n2", "e|bad", NULL);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    while (*kit_xds_request(&k, k.server)) {
        if (strstr(k.text, "node") && strstr(k.text, "\"5\""))
            break;
    }
    assert_string_equal(k.text, "Listener [l] \"5\" \"\" node");
    assert_request("ClusterLoadAssignment [e] \"\" \"\""); /* nothing was accepted yet; no node again */
    assert_request("");
    end();
}

static void cached_value_while_down(void **state)
{
    TC_CASE(AD23);
    TC_CASE(AD24);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    fake_xds_fail(k.server, "connection refused");
    tc_loop_drain(k.loop);
    assert_told(&a, "value x;ambient " NO_CONNECTION ";"); /* the value stays in use */
    watch(&kit_xds_lds, "a", &b);
    assert_told(&b, "value x;ambient " NO_CONNECTION ";");
    tc_loop_advance(k.loop, 600000);
    assert_told(&a, "");
    assert_int_equal(state_of("a"), TC_XDS_ACKED);
    fake_xds_fail(k.server, "connection refused"); /* an equal error is not reported again */
    tc_loop_drain(k.loop);
    assert_told(&a, "");

    /* The connection ends the error: a server that has nothing new need not answer. */
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_told(&a, "clear;");
    assert_told(&b, "clear;");
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    assert_told(&a, "");
    end();
}

/* A response that is too large breaks a stream that had answered before: the error is reported, and the next stream
 * waits for the backoff, which responses do not reset. */
static void too_large_a_response(void **state)
{
    TC_CASE(AD29);
    (void)state;
    start("");
    watch(&kit_xds_lds, "a", &a);
    for (int i = 0; i < 3; i++) {
        kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
        kit_xds_told(&a);
        unsigned streams = k.server->streams;
        uint64_t ms = 0;
        fake_xds_break(k.server, TORC_STATUS_RESOURCE_EXHAUSTED, "message of 70000000 bytes");
        tc_loop_drain(k.loop);
        assert_told(&a, "ambient xDS channel for server s1: xDS call failed; status: RESOURCE_EXHAUSTED: message of "
                        "70000000 bytes (node ID:node1);");
        for (; k.server->streams == streams && ms < 10000; ms++)
            tc_loop_advance(k.loop, 1);
        assert_near(ms, i == 0 ? 1000 : i == 1 ? 1600 : 2560);
    }
    end();
    /* RESOURCE_EXHAUSTED of the server itself is not such an error: the server had answered (A57). */
    start("");
    watch(&kit_xds_lds, "a", &a);
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n1", "a|x", NULL);
    kit_xds_told(&a);
    fake_xds_end(k.server, TORC_STATUS_RESOURCE_EXHAUSTED, "quota");
    tc_loop_drain(k.loop);
    assert_told(&a, "");
    assert_int_equal(k.server->streams, 2);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_after_15_s),
        cmocka_unit_test(no_timer_while_disconnected),
        cmocka_unit_test(new_stream_times_only_the_never_seen),
        cmocka_unit_test(only_the_absent_one_fails),
        cmocka_unit_test(no_absence_while_a_watcher_holds_up_reading),
        cmocka_unit_test(timer_as_transient_error),
        cmocka_unit_test(deleted_listener_or_cluster),
        cmocka_unit_test(absence_of_others_means_nothing),
        cmocka_unit_test(nack_drops_the_value_when_told_to),
        cmocka_unit_test(errors_of_the_server),
        cmocka_unit_test(stream_ends_without_an_answer),
        cmocka_unit_test(stream_ends_after_an_answer),
        cmocka_unit_test(taken_away),
        cmocka_unit_test(taken_away_is_logged),
        cmocka_unit_test(closed_without_an_answer),
        cmocka_unit_test(backoff),
        cmocka_unit_test(reconnect_asks_for_all),
        cmocka_unit_test(cached_value_while_down),
        cmocka_unit_test(too_large_a_response),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
