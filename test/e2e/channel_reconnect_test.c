/* Servers that end their connections: how often one caller connects, over plaintext and TLS. A connection that ends
 * before the server's SETTINGS is a failed attempt: the next attempt waits for the backoff. Other connections that end
 * soon and without an answer may follow each other: after more than 32 of them in a row the next attempt waits for the
 * backoff. A server that answers may end each connection: no backoff follows.
 *
 * Each row of `rows` is a server, whose `play` runs for each connection, on a thread of the servers' process
 * (support/hostile/server.h). call_it calls one server, with a channel and a runtime of its own, which the test's
 * thread drives, and asserts how many connections the server has accepted. */
#include <stdio.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "support/cmocka.h"
#include "support/hostile/server.h"
#include "support/kits/backends.h"

#define OK_HEADERS ":status: 200\ncontent-type: application/grpc\n"
#define CALLING_MS 1500 /* how long each server is called at least */
/* At most 33 connections follow each other without backoff, then one after about a second of backoff. If the machine
 * stalls, a connection may last for a second, and the count begins again: hence the factor. Without backoff there are
 * hundreds. */
#define CONNECTIONS_MAX (3 * 36)
/* The fewest connections to a server that answers. With backoff there would be at most 40 within ANSWERED_MS_MAX. */
#define ANSWERED_MIN 46
#define ANSWERED_MS_MAX 40000

static void closes_at_once(struct hostile_peer *p)
{
    (void)hostile_flush(p);
}

static void goes_away_at_once(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    fake_h2_goaway(hostile_frames(p), 0, 0, "");
    (void)hostile_flush(p);
    hostile_await_close(p);
}

static void closes_after_settings(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    (void)hostile_flush(p);
}

static void takes_and_closes(struct hostile_peer *p)
{
    (void)hostile_begin(p);
}

static void takes_and_resets(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    hostile_abort(p);
}

static void takes_and_goes_away(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_goaway(hostile_frames(p), id, 0, "");
    (void)hostile_flush(p);
}

static void headers_and_closes(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, OK_HEADERS, false);
    (void)hostile_flush(p);
}

/* Answers one request on each connection, and sends GOAWAY before the answer. */
static void goes_away_and_answers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    if (!id)
        return;
    fake_h2_goaway(hostile_frames(p), id, 0, "");
    (void)hostile_flush(p);
    hostile_settle(p);
    fake_h2_headers(hostile_frames(p), id, OK_HEADERS, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    fake_h2_headers(hostile_frames(p), id, "grpc-status: 0\n", true);
    (void)hostile_flush(p);
    hostile_await_close(p);
}

static void answers_and_goes_away(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    if (!id)
        return;
    fake_h2_headers(hostile_frames(p), id, OK_HEADERS, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    fake_h2_headers(hostile_frames(p), id, "grpc-status: 0\n", true);
    fake_h2_goaway(hostile_frames(p), id, 0, "");
    (void)hostile_flush(p);
    hostile_await_close(p);
}

static const struct {
    const char *name;
    hostile_play_fn *play;
    bool answers; /* every call must succeed */
} rows[] = {
    {"accepts and closes", closes_at_once, false},
    {"GOAWAY at once", goes_away_at_once, false},
    {"closes after SETTINGS", closes_after_settings, false},
    {"takes a request and closes", takes_and_closes, false},
    {"takes a request and resets", takes_and_resets, false},
    {"takes a request, GOAWAY, closes", takes_and_goes_away, false},
    {"headers, closes", headers_and_closes, false},
    {"GOAWAY, then the answer", goes_away_and_answers, true},
    {"the answer, then GOAWAY", answers_and_goes_away, true},
};

/* Makes one call after another to server i for CALLING_MS. A server that answers gets at least ANSWERED_MIN calls,
 * unless these take longer than ANSWERED_MS_MAX. Asserts how many connections the calls took. `creds` is borrowed;
 * NULL: plaintext. */
static void call_it(struct hostile *servers, size_t i, torc_credentials *creds)
{
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    char target[64];
    snprintf(target, sizeof(target), "ipv4:%s", hostile_address(servers, i));
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (creds)
        o.credentials = creds;
    torc_channel *ch = torc_channel_new(rt, target, &o, NULL);
    unsigned calls = 0, failed = 0;
    uint64_t began_ns = tc_system_clock.monotonic_ns(NULL), passed_ms = 0;
    while (passed_ms < CALLING_MS || (rows[i].answers && calls < ANSWERED_MIN && passed_ms < ANSWERED_MS_MAX)) {
        torc_result *r;
        struct torc_call_options co = {TORC_SIZE(torc_call_options), .wait_for_ready = !rows[i].answers,
                                       .timeout_ms = rows[i].answers ? 20000 : (int64_t)(CALLING_MS)};
        r = torc_unary(ch, "a/b", "x", 1, &co);
        calls++;
        failed += torc_result_code(r) != TORC_STATUS_OK;
        if (rows[i].answers && torc_result_code(r) != TORC_STATUS_OK)
            fail_msg("%s: call %u: %d %s", rows[i].name, calls, torc_result_code(r), torc_result_text(r));
        torc_result_free(r);
        passed_ms = (tc_system_clock.monotonic_ns(NULL) - began_ns) / TC_NS_PER_MS;
    }
    unsigned connections = hostile_connections(servers, i);
    printf("%s%s: %u calls, %u failed, %u connections in %llu ms\n", creds ? "TLS, " : "", rows[i].name, calls, failed,
           connections, (unsigned long long)passed_ms);
    if (!rows[i].answers)
        assert_in_range(connections, 1, CONNECTIONS_MAX);
    else
        assert_in_range(connections, ANSWERED_MIN, calls + 1);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void call_all(bool tls)
{
    hostile_play_fn *plays[sizeof(rows) / sizeof(rows[0])];
    struct kit_cert root = {0}, cert = {0};
    torc_credentials *creds = NULL;
    const size_t n = sizeof(rows) / sizeof(rows[0]);
    for (size_t i = 0; i < n; i++)
        plays[i] = rows[i].play;
    if (tls) {
        root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
        cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "ends", .sans = "IP:127.0.0.1", .issuer = &root});
        struct torc_tls_options o = {TORC_SIZE(torc_tls_options), .roots_pem = root.cert_pem};
        creds = torc_credentials_tls(&o, NULL);
        assert_non_null(creds);
    }
    struct hostile *servers = hostile_new(plays, n, tls ? &cert : NULL);
    for (size_t i = 0; i < n; i++)
        call_it(servers, i, creds);
    hostile_free(servers);
    torc_credentials_unref(creds);
    kit_cert_fini(&cert);
    kit_cert_fini(&root);
}

static void over_plaintext(void **state)
{
    (void)state;
    call_all(false);
}

static void over_tls(void **state)
{
    (void)state;
    call_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_plaintext),
        cmocka_unit_test(over_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
