/* Health checks of a channel (A17), on real sockets.
 *
 * A test's setup starts two servers of Torc, "0" and "1": with torc_health, without a health service, or with a
 * stand-in for it (on_watch). Which server answers shows which endpoints are healthy: assert_first_gets counts the
 * calls that server 0 answers. The servers share one runtime, the channels another; each runtime has a thread. Handlers
 * run on the servers' thread, on_event and on_start on the channels' thread. The test's thread makes the calls and
 * waits for them.
 *
 * The hostile servers, which send any bytes, run in a process of their own (support/hostile/server.h). main starts that
 * process before the first test, while the program has one thread. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "support/case.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/hostile/rows.h"
#include "support/kits/backends.h"

enum { SERVERS = 2, BATCH = 60 };

struct server {
    torc_server *server;
    torc_health *health; /* NULL without torc_health */
    char name[2];        /* on_call answers with it */
    char bound[32];      /* "127.0.0.1:PORT" */
};

static torc_runtime *rt, *client_rt;
static struct server servers[SERVERS];
static char target[128];                 /* "ipv4:" and the addresses of both servers */
static atomic_int connected, asked;      /* "connected" events of a channel; Watch calls that on_watch answered */
static torc_resolver_listener *listener; /* a reference that on_start takes, and the test gives up */

static void on_call(torc_server_call *call, const torc_message *request, void *arg)
{
    const struct server *s = arg;
    (void)request;
    torc_server_call_reply(call, s->name, 1);
}

/* Stands in for the health service: counts the Watch calls, answers NOT_SERVING and ends the stream. */
static void on_watch(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    asked++;
    torc_server_call_reply(call, "\x08\x02", 2);
}

enum service { NONE, TORCS, COUNTING }; /* the servers' health service: none, torc_health, on_watch */

static void start(enum service service)
{
    size_t len = (size_t)snprintf(target, sizeof(target), "ipv4:");
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    for (int i = 0; i < SERVERS; i++) {
        struct server *s = &servers[i];
        struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
        struct torc_handler h = {TORC_SIZE(torc_handler), .unary = on_call, .arg = s};
        char *bound = NULL;
        *s = (struct server){.server = torc_server_new(&o, NULL), .name = {(char)('0' + i), '\0'}};
        assert_int_equal(torc_server_add_method(s->server, "a.B/C", &h, NULL), 0);
        if (service == TORCS)
            s->health = torc_health_new(s->server, NULL);
        h.unary = on_watch;
        if (service == COUNTING)
            assert_int_equal(torc_server_add_method(s->server, "grpc.health.v1.Health/Watch", &h, NULL), 0);
        assert_int_equal(torc_server_listen(s->server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
        assert_int_equal(torc_server_start(s->server, NULL), 0);
        snprintf(s->bound, sizeof(s->bound), "%s", bound);
        len += (size_t)snprintf(target + len, sizeof(target) - len, "%s%s", i ? "," : "", bound);
        torc_free(bound);
    }
}

static int setup(void **state)
{
    (void)state;
    start(TORCS);
    return 0;
}

static int setup_without_service(void **state)
{
    (void)state;
    start(NONE);
    return 0;
}

static int setup_counting(void **state)
{
    (void)state;
    start(COUNTING);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        torc_server_free(servers[i].server);
        torc_health_free(servers[i].health);
    }
    assert_int_equal(torc_runtime_free(client_rt), 0);
    return torc_runtime_free(rt);
}

static void set_health(int i, const char *service, int status)
{
    assert_int_equal(torc_health_set(servers[i].health, service, status), 0);
}

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    (void)detail, (void)reason, (void)arg;
    connected += strcmp(kind, "connected") == 0;
}

static torc_channel *open_configured(const char *to, const char *config, int64_t health_checks)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = config, .health_checks = health_checks};
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(client_rt, to, &o, &error);
    assert_string_equal(torc_error_text(error), "");
    connected = 0;
    torc_channel_observe(ch, on_event, NULL);
    return ch;
}

static torc_channel *open_channel_to(const char *to, const char *policy, const char *service, int64_t health_checks)
{
    char config[512], check[128] = "";
    if (service)
        snprintf(check, sizeof(check), ", \"healthCheckConfig\": {\"serviceName\": \"%s\"}", service);
    snprintf(config, sizeof(config), "{\"loadBalancingConfig\": [{%s}]%s}", policy, check);
    return open_configured(to, config, health_checks);
}

static torc_channel *open_channel(const char *policy, const char *service)
{
    return open_channel_to(target, policy, service, 0);
}

/* Makes a call. Returns the first byte of the response ('0' or '1', the name of a server of Torc; 'x' from a hostile
 * server), or minus the status code. Stores the text of the status in `text` unless it is NULL. */
static int call(torc_channel *ch, const struct torc_call_options *o, char *text, size_t size)
{
    torc_result *r = torc_unary(ch, "a.B/C", "", 0, o);
    int got = torc_result_code(r)                          ? -torc_result_code(r)
              : torc_message_size(torc_result_response(r)) ? *(const char *)torc_message_data(torc_result_response(r))
                                                           : 0;
    if (text)
        snprintf(text, size, "%s", torc_result_text(r));
    torc_result_free(r);
    return got;
}

/* Makes BATCH calls, none of which may fail. Returns how many of them server 0 answered. */
static int batch(torc_channel *ch)
{
    int first = 0;
    for (int i = 0; i < BATCH; i++) {
        char text[512];
        int got = call(ch, NULL, text, sizeof(text));
        if (got < 0)
            fail_msg("a call failed: %s", text);
        first += got == '0';
    }
    return first;
}

/* Makes batches until server 0 answers from `least` to `most` calls of one batch. Fails the test after 20 s. */
static void assert_first_gets(torc_channel *ch, int least, int most)
{
    uint64_t end = tc_system_clock.monotonic_ns(NULL) + 20 * TC_NS_PER_S;
    int first = 0;
    do
        first = batch(ch);
    while ((first < least || first > most) && tc_system_clock.monotonic_ns(NULL) < end);
    assert_in_range(first, least, most);
}

/* Makes calls until one fails with a text that contains `part`, and asserts that its code is UNAVAILABLE. Fails the
 * test after 20 s. */
static void assert_fails(torc_channel *ch, const char *part)
{
    static const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 10000,
                                               .wait_for_ready = TORC_OFF};
    uint64_t end = tc_system_clock.monotonic_ns(NULL) + 20 * TC_NS_PER_S;
    char text[512] = "";
    int got;
    do
        got = call(ch, &o, text, sizeof(text));
    while ((got >= 0 || !strstr(text, part)) && tc_system_clock.monotonic_ns(NULL) < end);
    if (got != -TORC_STATUS_UNAVAILABLE || !strstr(text, part))
        fail_msg("%d %s", got, text);
}

static const char *const policies[] = {
    "\"round_robin\": {}",
    "\"weighted_round_robin\": {}",
    "\"least_request_experimental\": {}",
    "\"ring_hash_experimental\": {\"requestHashHeader\": \"x-key\"}",
    "\"maglev\": {\"requestHashHeader\": \"x-key\"}",
    "\"outlier_detection_experimental\": {\"successRateEjection\": {}, \"childPolicy\": [{\"round_robin\": {}}]}",
};

/* A server that says NOT_SERVING gets no calls. Once it says SERVING it gets calls again, over the same connection. No
 * call fails. */
static void calls_follow_the_health(void **state)
{
    TC_CASE(CH01);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        set_health(0, "orders", TORC_HEALTH_SERVING);
        set_health(1, "orders", TORC_HEALTH_SERVING);
        torc_channel *ch = open_channel(policies[i], "orders");
        for (int round = 0; round < 3; round++) {
            set_health(0, "orders", TORC_HEALTH_NOT_SERVING);
            assert_first_gets(ch, 0, 0);
            set_health(0, "orders", TORC_HEALTH_SERVING);
            assert_first_gets(ch, 1, BATCH - 1);
            set_health(1, "orders", TORC_HEALTH_NOT_SERVING);
            assert_first_gets(ch, BATCH, BATCH);
            set_health(1, "orders", TORC_HEALTH_SERVING);
            assert_first_gets(ch, 1, BATCH - 1);
        }
        assert_int_equal(connected, i ? 0 : SERVERS); /* later channels use the kept connections */
        torc_channel_free(ch);
    }
}

static void all_unhealthy(void **state)
{
    TC_CASE(CH02);
    (void)state;
    struct torc_call_options wait = {TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON};
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        set_health(0, "", TORC_HEALTH_NOT_SERVING);
        set_health(1, "", TORC_HEALTH_UNKNOWN);
        torc_channel *ch = open_channel(policies[i], "");
        assert_fails(ch, "health check of \"\": the server says ");
        assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        wait.timeout_ms = 50;
        assert_int_equal(call(ch, &wait, NULL, 0), -TORC_STATUS_DEADLINE_EXCEEDED);
        wait.timeout_ms = 20000;
        set_health(1, "", TORC_HEALTH_SERVING);
        assert_int_equal(call(ch, &wait, NULL, 0), '1');
        torc_channel_free(ch);
    }
}

static void no_health_service(void **state)
{
    TC_CASE(CH03);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        torc_channel *ch = open_channel(policies[i], "orders");
        assert_first_gets(ch, 1, BATCH - 1);
        torc_channel_free(ch);
    }
}

static void unknown_service(void **state)
{
    TC_CASE(CH04);
    (void)state;
    torc_channel *ch = open_channel(policies[0], "nobody.Knows");
    assert_fails(ch, "health check of \"nobody.Knows\": the server says SERVICE_UNKNOWN");
    set_health(1, "nobody.Knows", TORC_HEALTH_SERVING);
    assert_int_equal(
        call(ch, &(struct torc_call_options){TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON}, NULL, 0), '1');
    torc_channel_free(ch);
}

/* No server is asked by a channel with pick_first, with health_checks off, or without healthCheckConfig. */
static void not_asked(void **state)
{
    TC_CASE(CH05);
    (void)state;
    asked = 0;
    torc_channel *ch = open_channel("\"pick_first\": {}", "orders");
    assert_int_equal(batch(ch), BATCH);
    torc_channel_free(ch);
    ch = open_channel_to(target, policies[0], "orders", TORC_OFF);
    assert_first_gets(ch, 1, BATCH - 1);
    torc_channel_free(ch);
    ch = open_channel(policies[0], NULL);
    assert_first_gets(ch, 1, BATCH - 1);
    torc_channel_free(ch);
    assert_int_equal(asked, 0);
    ch = open_channel(policies[0], "orders");
    assert_fails(ch, "health check of \"orders\": ");
    assert_true(asked > 0);
    torc_channel_free(ch);
}

/* round_robin asks, whichever field of the service config names it, and wherever healthCheckConfig stands. pick_first
 * does not ask. Without serviceName round_robin does not ask, either. */
static void by_any_service_config(void **state)
{
    TC_CASE(PD11);
    static const struct {
        const char *config;
        bool asked; /* checks run */
    } rows[] = {
        {"{\"healthCheckConfig\": {\"serviceName\": \"orders\"}}", false}, /* pick_first */
        {"{\"healthCheckConfig\": {\"serviceName\": \"orders\"}, \"loadBalancingPolicy\": \"pick_first\"}", false},
        {"{\"healthCheckConfig\": {\"serviceName\": \"orders\"}, \"loadBalancingPolicy\": \"round_robin\"}", true},
        {"{\"loadBalancingPolicy\": \"round_robin\", \"healthCheckConfig\": {\"serviceName\": \"orders\"}}", true},
        {"{\"loadBalancingConfig\": [{\"round_robin\": {}}], \"healthCheckConfig\": {\"serviceName\": \"orders\"}}",
         true},
        {"{\"loadBalancingPolicy\": \"round_robin\", \"healthCheckConfig\": {}}", false},
    };
    (void)state;
    set_health(0, "orders", TORC_HEALTH_NOT_SERVING);
    set_health(1, "orders", TORC_HEALTH_SERVING);
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        torc_channel *ch = open_configured(target, rows[i].config, 0);
        assert_first_gets(ch, rows[i].asked ? 0 : 1, rows[i].asked ? 0 : BATCH);
        torc_channel_free(ch);
    }
}

/* --- a service config that changes --- */

/* Reports both servers, under round_robin with checks of `service` (NULL: none). Calls wait for ready: after a change
 * of `service` all endpoints may be unhealthy for a moment, until the servers have answered. Any thread. */
static void report(const char *service)
{
    char config[256];
    const char *addresses[SERVERS];
    struct torc_endpoint endpoints[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
        addresses[i] = servers[i].bound;
        endpoints[i] = (struct torc_endpoint){TORC_SIZE(torc_endpoint), .addresses = &addresses[i], .n_addresses = 1};
    }
    snprintf(config, sizeof(config),
             "{\"loadBalancingConfig\": [{\"round_robin\": {}}], "
             "\"methodConfig\": [{\"name\": [{}], \"waitForReady\": true}]%s%s%s}",
             service ? ", \"healthCheckConfig\": {\"serviceName\": \"" : "", service ? service : "",
             service ? "\"}" : "");
    CHECK(torc_resolver_report(listener, endpoints, SERVERS, config) == 0);
}

static void *on_start(const char *rest, torc_resolver_listener *l, void *arg)
{
    (void)rest, (void)arg;
    torc_resolver_listener_ref(l);
    listener = l;
    report(NULL);
    return NULL;
}

static void the_name_changes(void **state)
{
    TC_CASE(CH06);
    (void)state;
    static const struct torc_resolver_factory factory = {TORC_SIZE(torc_resolver_factory), .scheme = "changing",
                                                         .start = on_start};
    static const struct torc_resolver_factory *const factories[] = {&factory, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = factories};
    set_health(0, "a", TORC_HEALTH_NOT_SERVING);
    set_health(1, "a", TORC_HEALTH_SERVING);
    set_health(0, "b", TORC_HEALTH_SERVING);
    set_health(1, "b", TORC_HEALTH_NOT_SERVING);
    torc_channel *ch = torc_channel_new(client_rt, "changing:x", &o, NULL);
    connected = 0;
    torc_channel_observe(ch, on_event, NULL);
    assert_first_gets(ch, 1, BATCH - 1);
    for (int round = 0; round < 2; round++) {
        report("a");
        assert_first_gets(ch, 0, 0);
        report("b");
        assert_first_gets(ch, BATCH, BATCH);
        report(NULL);
        assert_first_gets(ch, 1, BATCH - 1);
    }
    assert_int_equal(connected, SERVERS);
    report("nobody.Knows");
    assert_fails(ch, "SERVICE_UNKNOWN");
    torc_channel_free(ch);
    torc_resolver_listener_unref(listener);
}

/* A server that stops gracefully does not wait for its clients to be done with their checks: the clients end the checks
 * when the GOAWAY comes. */
static void a_server_stops(void **state)
{
    TC_CASE(CH07);
    (void)state;
    set_health(0, "orders", TORC_HEALTH_SERVING);
    set_health(1, "orders", TORC_HEALTH_SERVING);
    torc_channel *ch = open_channel(policies[0], "orders");
    assert_first_gets(ch, 1, BATCH - 1);
    uint64_t began = tc_system_clock.monotonic_ns(NULL);
    assert_int_equal(torc_server_stop(servers[0].server, 60000), 0);
    assert_first_gets(ch, 0, 0);
    assert_true(tc_system_clock.monotonic_ns(NULL) - began < 20 * TC_NS_PER_S);
    torc_channel_free(ch);
}

/* --- servers that send any bytes --- */

#define STATUS(n) "\x08" n

static void send_headers(struct hostile_peer *p, uint32_t stream)
{
    fake_h2_headers(hostile_frames(p), stream, HOSTILE_OK, false);
}

static void send_health(struct hostile_peer *p, uint32_t stream, const char *message, size_t len)
{
    fake_h2_message(hostile_frames(p), stream, message, len, false);
    hostile_flush(p);
}

static void malformed(struct hostile_peer *p)
{
    uint32_t watch = hostile_begin(p);
    send_headers(p, watch);
    send_health(p, watch, "\x08", 1);
    hostile_await_close(p);
}

static void too_long(struct hostile_peer *p)
{
    static char large[1025] = STATUS("\1");
    uint32_t watch = hostile_begin(p);
    send_headers(p, watch);
    send_health(p, watch, large, sizeof(large));
    hostile_await_close(p);
}

static void endless(struct hostile_peer *p)
{
    uint32_t watch = hostile_begin(p);
    send_headers(p, watch);
    fake_h2_data(hostile_frames(p), watch, "\0\0\0\1\0" STATUS("\1"), 7, false); /* 256 bytes are announced */
    hostile_flush(p);
    hostile_await_close(p);
}

static void silent(struct hostile_peer *p)
{
    hostile_begin(p);
    hostile_await_close(p);
}

static void ends_at_once(struct hostile_peer *p)
{
    for (uint32_t watch = hostile_begin(p); watch; watch = hostile_await(p, FAKE_H2_HEADERS)) {
        send_headers(p, watch);
        fake_h2_headers(hostile_frames(p), watch, HOSTILE_TRAILERS, true);
        hostile_flush(p);
    }
}

static void flood(struct hostile_peer *p)
{
    uint32_t watch = hostile_begin(p);
    send_headers(p, watch);
    while (hostile_flush_much(p) && hostile_is_heard(p))
        fake_h2_message(hostile_frames(p), watch, STATUS("\2"), 2, false);
}

/* Sends GOAWAY once the connection's Watch has come. */
static void goes_away(struct hostile_peer *p)
{
    uint32_t watch = hostile_begin(p);
    send_headers(p, watch);
    fake_h2_goaway(hostile_frames(p), watch, 0, "");
    hostile_flush(p);
    hostile_await_close(p);
}

/* Allows one stream at a time once the Watch is open, and answers the requests that follow. */
static void fewer_streams(struct hostile_peer *p)
{
    uint32_t watch = hostile_begin(p);
    fake_h2_setting(hostile_frames(p), 3, 1);
    send_headers(p, watch);
    send_health(p, watch, STATUS("\1"), 2);
    for (uint32_t stream; (stream = hostile_await(p, FAKE_H2_HEADERS));)
        hostile_answer(p, stream);
}

/* Allows one stream at a time, and answers whatever comes. */
static void one_stream(struct hostile_peer *p)
{
    fake_h2_setting(hostile_frames(p), 3, 1);
    for (uint32_t stream = hostile_begin(p); stream; stream = hostile_await(p, FAKE_H2_HEADERS))
        hostile_answer(p, stream);
}

static const struct {
    const char *name;
    hostile_play_fn *play;
    const char *text; /* the text of a failed call to this server alone contains it; NULL: the call succeeds */
} hostile_rows[] = {
    {"malformed", malformed, "health check of \"orders\": the server's answer is malformed"},
    {"too long", too_long, "health check of \"orders\": the stream ended: received message larger than max"},
    {"endless", endless, "waits for the answer to its health check"},
    {"silent", silent, "waits for the answer to its health check"},
    {"ends at once", ends_at_once, "health check of \"orders\": the stream ended: OK"},
    {"flood", flood, "health check of \"orders\": the server says NOT_SERVING"},
    {"goes away", goes_away, ""},
    {"one stream", one_stream, NULL},
    {"fewer streams", fewer_streams, NULL},
};

static struct hostile *hostile;

/* On a channel to a row's server alone a call fails with the row's text, at the latest by its deadline, or succeeds if
 * the text is NULL. On a channel to that server and a good one, for rows whose text is not NULL, the good server gets
 * all calls, and no call fails. */
static void hostile_servers(void **state)
{
    TC_CASE(CH08);
    (void)state;
    set_health(0, "orders", TORC_HEALTH_SERVING);
    for (size_t i = 0; i < TC_ARRAY_LEN(hostile_rows); i++) {
        char to[128], text[512];
        snprintf(to, sizeof(to), "ipv4:%s", hostile_address(hostile, i));
        torc_channel *ch = open_channel_to(to, policies[0], "orders", 0);
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1500};
        int got = call(ch, &o, text, sizeof(text));
        if (hostile_rows[i].text ? got >= 0 || !strstr(text, hostile_rows[i].text) : got < 0)
            fail_msg("%s: %d %s", hostile_rows[i].name, got, text);
        torc_channel_free(ch);
        if (!hostile_rows[i].text)
            continue;
        snprintf(to, sizeof(to), "ipv4:%s,%s", hostile_address(hostile, i), servers[0].bound);
        ch = open_channel_to(to, policies[0], "orders", 0);
        uint64_t began = tc_system_clock.monotonic_ns(NULL);
        for (int k = 0; k < 200; k++)
            if (call(ch, NULL, text, sizeof(text)) != '0')
                fail_msg("%s, beside a good server: %s", hostile_rows[i].name, text);
        assert_true(tc_system_clock.monotonic_ns(NULL) - began < 10 * TC_NS_PER_S);
        torc_channel_free(ch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile_servers, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_follow_the_health, setup, teardown),
        cmocka_unit_test_setup_teardown(all_unhealthy, setup, teardown),
        cmocka_unit_test_setup_teardown(no_health_service, setup_without_service, teardown),
        cmocka_unit_test_setup_teardown(unknown_service, setup, teardown),
        cmocka_unit_test_setup_teardown(not_asked, setup_counting, teardown),
        cmocka_unit_test_setup_teardown(by_any_service_config, setup, teardown),
        cmocka_unit_test_setup_teardown(the_name_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_stops, setup, teardown),
    };
    hostile_play_fn *plays[TC_ARRAY_LEN(hostile_rows)];
    for (size_t i = 0; i < TC_ARRAY_LEN(hostile_rows); i++)
        plays[i] = hostile_rows[i].play;
    hostile = hostile_new(plays, TC_ARRAY_LEN(plays), NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hostile_free(hostile);
    return failed;
}
