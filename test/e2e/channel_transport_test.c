/* Connections on real sockets: GOAWAY, stream limits, restarts, a channel's states and events, TLS, and the pool
 * that channels share. Each test that connects makes an echo server (kits/backends.h), which has a thread of its own.
 * The channels of all tests are on one runtime, with its pool of connections. The test's thread drives this runtime, so
 * callbacks run on the test's thread. test_the_last_observer_counts starts another thread, to set an observer. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "tls/tls.h"

static torc_runtime *rt;

static int setup(void **state)
{
    (void)state;
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return torc_runtime_free(rt);
}

/* Makes a unary call. Returns its status code, and prints a status that is not OK. */
static int call_code(torc_channel *ch, const char *method)
{
    torc_result *r = torc_unary(ch, method, "x", 1, NULL);
    int code = torc_result_code(r);
    if (code != TORC_STATUS_OK)
        print_message("%s: %s\n", torc_status_code_name(code), torc_result_text(r));
    torc_result_free(r);
    return code;
}

/* Asynchronous calls that have ended, and those of them that ended with OK. */
struct batch {
    int done, ok;
};

static void on_unary(const torc_result *result, void *arg)
{
    struct batch *b = arg;
    b->done++;
    b->ok += torc_result_code(result) == TORC_STATUS_OK;
}

static void test_stream_limit_queues(void **state)
{
    (void)state;
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.http2.limits.max_concurrent_streams = 4;
    struct kit_backends *kit = kit_backends_new(1, &so);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    struct batch b = {0};
    for (int i = 0; i < 200; i++)
        assert_int_equal(torc_unary_async(ch, "a/b", "x", 1, NULL, on_unary, &b, NULL, NULL), 0);
    while (b.done < 200)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(b.ok, 200);
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);

    /* The hanging calls take all 4 streams. The next call waits, and after its deadline the status says for what. */
    torc_stream *hanging[4];
    for (int i = 0; i < 4; i++)
        torc_unary_async(ch, "torc.test.Backend/Hang", "", 0, NULL, on_unary, &b, &hanging[i], NULL);
    while (kit_backends_counts(kit, 0).open_calls < 4)
        torc_runtime_poll(rt, 10);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1000};
    torc_result *r = torc_unary(ch, "a/b", "", 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r), "a free stream on the connection to 127.0.0.1:"));
    assert_int_equal(torc_result_attempts(r), 0);
    torc_result_free(r);
    for (int i = 0; i < 4; i++)
        torc_stream_free(hanging[i]);
    assert_int_equal(call_code(ch, "a/b"), TORC_STATUS_OK);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

static void test_goaway_drains(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    struct batch b = {0};
    /* No call is lost while the server sends GOAWAY repeatedly. */
    int begun = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 50; i++, begun++)
            torc_unary_async(ch, "a/b", "x", 1, NULL, on_unary, &b, NULL, NULL);
        torc_runtime_poll(rt, 0);
        kit_backends_goaway(kit, 0);
        torc_runtime_poll(rt, 0);
    }
    while (b.done < begun)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(b.ok, begun);
    assert_true(kit_backends_counts(kit, 0).connections > 1);

    /* A stream that is open when the GOAWAY comes runs to its end. */
    torc_stream *call = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_send(call, "one", 3, 0, -1), 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    kit_backends_goaway(kit, 0);
    while (torc_channel_state(ch, false) == TORC_CONNECTIVITY_READY)
        torc_runtime_poll(rt, 100);
    /* pick_first is IDLE after the GOAWAY, and so is the channel. The next call connects again. */
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_IDLE);
    assert_int_equal(call_code(ch, "a/b"), TORC_STATUS_OK);
    assert_int_equal(torc_stream_send(call, "two", 3, 0, -1), 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(call);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

static void test_server_restart(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    assert_int_equal(call_code(ch, "a/b"), TORC_STATUS_OK);
    struct batch b = {0};
    torc_unary_async(ch, "torc.test.Backend/Hang", "", 0, NULL, on_unary, &b, NULL, NULL);
    while (kit_backends_counts(kit, 0).open_calls < 1)
        torc_runtime_poll(rt, 10);
    kit_backends_stop(kit, 0);
    while (!b.done)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(b.ok, 0);
    kit_backends_restart(kit, 0);
    assert_int_equal(call_code(ch, "a/b"), TORC_STATUS_OK);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

static void test_channels_share_connections(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    for (int i = 0; i < 5; i++) {
        torc_channel *a = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
        torc_channel *b = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
        assert_int_equal(call_code(a, "a/b"), TORC_STATUS_OK);
        assert_int_equal(call_code(b, "a/b"), TORC_STATUS_OK);
        torc_channel_free(a);
        torc_channel_free(b);
    }
    /* The later channels used the connection that the pool had kept. */
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .keepalive_time_ms = 60000};
    torc_channel *c = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    assert_int_equal(call_code(c, "a/b"), TORC_STATUS_OK);
    assert_int_equal(kit_backends_counts(kit, 0).connections, 2);
    torc_channel_free(c);
    kit_backends_free(kit);
}

/* How many events of each kind came. `ready` counts the events "state" whose detail is READY. */
struct events {
    int connect, connected, failed, closed, ready;
};

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    struct events *e = arg;
    (void)reason;
    e->connect += strcmp(kind, "connect") == 0;
    e->connected += strcmp(kind, "connected") == 0;
    e->failed += strcmp(kind, "connect_failed") == 0;
    e->closed += strcmp(kind, "closed") == 0;
    e->ready += strcmp(kind, "state") == 0 && strcmp(detail, "READY") == 0;
}

static void on_state(torc_channel *ch, enum torc_connectivity state, const char *text, void *arg)
{
    (void)ch, (void)text;
    *(enum torc_connectivity *)arg = state;
}

static void test_states_and_events(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    struct events e = {0};
    enum torc_connectivity seen = TORC_CONNECTIVITY_IDLE, now = TORC_CONNECTIVITY_IDLE;
    assert_int_equal(torc_channel_observe(ch, on_event, &e), 0);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_IDLE);
    assert_int_equal(torc_channel_watch_state(ch, TORC_CONNECTIVITY_IDLE, on_state, &seen), 0);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, 20, &now), TORC_ETIMEDOUT);
    assert_int_equal(seen, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_READY);
    assert_int_equal(seen, TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_CONNECTING, 1000, &now), 0);
    assert_int_equal(now, TORC_CONNECTIVITY_READY);
    kit_backends_stop(kit, 0);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 60000, &now), 0);
    assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(torc_channel_connect(ch, 1000), TORC_ETIMEDOUT);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(e.connected, 1);
    assert_int_equal(e.closed, 1);
    assert_int_equal(e.ready, 1);
    assert_true(e.failed >= 1 && e.connect >= 2);
    assert_int_equal(torc_channel_watch_state(ch, TORC_CONNECTIVITY_TRANSIENT_FAILURE, on_state, &seen), 0);
    torc_runtime_poll(rt, 0);
    torc_channel_free(ch);
    while (torc_runtime_poll(rt, 0) > 0)
        ;
    assert_int_equal(seen, TORC_CONNECTIVITY_SHUTDOWN);
    kit_backends_free(kit);
}

/* A CA, certificates of it for the server and a client, and another CA. */
struct pki {
    struct kit_cert ca, server, client, stranger;
};

static struct pki make_pki(void)
{
    struct pki p;
    p.ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    p.server = kit_cert_make(
        &(struct kit_cert_opts){.common_name = "s", .sans = "DNS:backend.test,IP:127.0.0.1", .issuer = &p.ca});
    p.client = kit_cert_make(&(struct kit_cert_opts){.common_name = "c", .sans = "DNS:client.test", .issuer = &p.ca});
    p.stranger = kit_cert_make(&(struct kit_cert_opts){.common_name = "other", .ca = true});
    return p;
}

static void fini_pki(struct pki *p)
{
    kit_cert_fini(&p->ca);
    kit_cert_fini(&p->server);
    kit_cert_fini(&p->client);
    kit_cert_fini(&p->stranger);
}

/* Makes one call over TLS on a channel of its own. Returns the status code. client NULL: no client certificate.
 * authority NULL: the target's. text: NULL, or gets the status text, which the caller frees with free. */
static int tls_call(struct kit_backends *kit, const char *roots, const struct kit_cert *client, const char *authority,
                    char **text)
{
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = roots};
    if (client) {
        t.certificate_pem = client->cert_pem;
        t.private_key_pem = client->key_pem;
    }
    torc_credentials *creds = torc_credentials_tls(&t, NULL);
    assert_non_null(creds);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = creds, .authority = authority};
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    assert_non_null(ch);
    torc_credentials_unref(creds);
    torc_result *r = torc_unary(ch, "a/b", "tls", 3, NULL);
    int code = torc_result_code(r);
    if (text)
        *text = strdup(torc_result_text(r));
    torc_result_free(r);
    torc_channel_free(ch);
    return code;
}

/* A channel that was freed stays in SHUTDOWN, so a wait for another state ends at once. The stream keeps the handle
 * valid. */
static void test_no_state_follows_shutdown(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    torc_stream *s = torc_stream_open(ch, "torc.test.Backend/Hang", NULL, NULL);
    enum torc_connectivity now = TORC_CONNECTIVITY_IDLE;
    torc_channel_free(ch);
    while (torc_channel_state(ch, false) != TORC_CONNECTIVITY_SHUTDOWN)
        torc_runtime_poll(rt, -1);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_SHUTDOWN, 60000, &now), TORC_ECLOSED);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_SHUTDOWN, 0, &now), TORC_ECLOSED);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_SHUTDOWN, -1, NULL), TORC_ECLOSED);
    assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, -1, &now), 0);
    assert_int_equal(now, TORC_CONNECTIVITY_SHUTDOWN);
    assert_int_equal(torc_channel_connect(ch, -1), TORC_ECLOSED);
    torc_stream_free(s);
    kit_backends_free(kit);
}

/* Two observers of one channel: `later` is set after `first`. */
struct observers {
    torc_channel *ch;
    struct events first, later;
};

static void *observe_first(void *arg)
{
    struct observers *o = arg;
    CHECK(torc_channel_observe(o->ch, on_event, &o->first) == 0);
    return NULL;
}

static void observe_twice(void *arg)
{
    struct observers *o = arg;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, observe_first, o), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(torc_channel_observe(o->ch, on_event, &o->later), 0);
}

/* The observer that was set last counts, also if a callback of the loop sets it while the observer that another thread
 * has set is still on its way to the loop. */
static void test_the_last_observer_counts(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    struct observers o = {.ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL)};
    assert_int_equal(torc_runtime_post(rt, observe_twice, &o), 0);
    assert_int_equal(torc_channel_connect(o.ch, 60000), 0);
    torc_runtime_poll(rt, 0);
    assert_int_equal(o.first.ready, 0);
    assert_int_equal(o.later.ready, 1);
    torc_channel_free(o.ch);
    while (torc_runtime_poll(rt, 0) > 0)
        ;
    kit_backends_free(kit);
}

static void test_tls(void **state)
{
    (void)state;
    struct pki p = make_pki();
    struct tc_status error = {0};
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                      .verify = TC_TLS_VERIFY_FULL,
                                                      .roots_pem = kit_cert_pem(&p.ca),
                                                      .certificate_pem = kit_cert_pem(&p.server),
                                                      .private_key_pem = kit_cert_key(&p.server)},
                                &error);
    assert_non_null(so.tls);
    struct kit_backends *kit = kit_backends_new(1, &so);
    char *text = NULL;
    assert_int_equal(tls_call(kit, p.ca.cert_pem, &p.client, NULL, NULL), TORC_STATUS_OK);
    assert_int_equal(tls_call(kit, p.ca.cert_pem, &p.client, "backend.test:443", NULL), TORC_STATUS_OK);

    assert_int_equal(tls_call(kit, p.ca.cert_pem, &p.client, "elsewhere.test", &text), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(text, "elsewhere.test"));
    free(text);
    assert_int_equal(tls_call(kit, p.stranger.cert_pem, &p.client, NULL, &text), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(text, "failed to connect to 127.0.0.1:"));
    free(text);
    assert_int_equal(tls_call(kit, p.ca.cert_pem, NULL, NULL, NULL), TORC_STATUS_UNAVAILABLE);

    /* A call on a plaintext channel to a TLS port fails, and does not hang. */
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    assert_int_equal(call_code(ch, "a/b"), TORC_STATUS_UNAVAILABLE);
    torc_channel_free(ch);
    kit_backends_free(kit);
    tc_tls_context_unref(so.tls);
    fini_pki(&p);
}

static void test_bad_tls_options(void **state)
{
    (void)state;
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = "no certificate"};
    torc_error *error = NULL;
    assert_null(torc_credentials_tls(&t, &error));
    assert_non_null(error);
    torc_error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_limit_queues),      cmocka_unit_test(test_goaway_drains),
        cmocka_unit_test(test_server_restart),           cmocka_unit_test(test_channels_share_connections),
        cmocka_unit_test(test_states_and_events),        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_bad_tls_options),          cmocka_unit_test(test_no_state_follows_shutdown),
        cmocka_unit_test(test_the_last_observer_counts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
