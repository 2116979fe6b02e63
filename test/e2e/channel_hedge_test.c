/* Hedging by service config (gRFC A6), on real sockets.
 *
 * Each test has a server (kits/backends.h) and a client's runtime of its own. The server has the method /t/M, which
 * follows a script: one letter for each call says how the call ends. The script also records the calls, cancellations,
 * attempt numbers and messages that the server saw. The test's thread drives the client, sets the script by plan() and
 * copies the script by seen(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;

/* what[i]: what the server does when the client has half-closed call i. 'h' nothing, 'o' answers, 'i' sends headers and
 * then answers, 'u' fails with UNAVAILABLE, 'x' with INTERNAL, 'r' refuses the stream. 'f' fails with UNAVAILABLE, at
 * the first message instead of the half-close. The last letter also counts for all later calls. Only the servers'
 * thread touches the script. */
struct script {
    const char *what;
    const char *pushback; /* with 'u'; NULL: none */
    int calls, cancelled;
    char previous[64];    /* grpc-previous-rpc-attempts of each call, "-" for none */
    char requests[8][64]; /* the messages of call i, at i % 8; of each message at most 8 bytes */
};
static struct script script;

/* A call on the server, in the call's arena. */
struct served {
    struct tc_server_call *call;
    int number; /* from 0, since plan() */
};

/* Appends at most 8 bytes of the text to the string `out`, which has `size` bytes. */
static void append(char *out, size_t size, struct tc_slice text)
{
    size_t at = strlen(out);
    snprintf(out + at, size - at, "%.*s", (int)TC_MIN(text.len, (size_t)8), text.len > 0 ? text.data : "");
}

/* Returns the script's letter for the call. */
static char what_of(const struct served *s)
{
    size_t last = strlen(script.what) - 1;
    return script.what[TC_MIN((size_t)s->number, last)];
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct served *s = arg;
    append(script.requests[s->number % 8], sizeof(script.requests[0]), tc_rstr_slice(message));
    tc_rstr_unref(message);
    if (what_of(s) == 'f')
        tc_server_call_finish(s->call, TORC_STATUS_UNAVAILABLE, "scripted", NULL);
    else
        tc_server_call_read(s->call);
}

static void on_half_close(void *arg)
{
    const struct served *s = arg;
    struct tc_headers trailers;
    tc_headers_init(&trailers, tc_server_call_arena(s->call));
    switch (what_of(s)) {
    case 'i':
        tc_server_call_send_headers(s->call, NULL, TC_H2_IDENTITY);
        tc_server_call_reply(s->call, tc_slice_str("done"));
        break;
    case 'o':
        tc_server_call_reply(s->call, tc_slice_str("done"));
        break;
    case 'u':
        if (script.pushback)
            tc_headers_add(&trailers, tc_slice_str("grpc-retry-pushback-ms"), tc_slice_str(script.pushback));
        tc_server_call_finish(s->call, TORC_STATUS_UNAVAILABLE, "scripted", &trailers);
        break;
    case 'r':
        tc_server_call_reset(s->call, 7 /* REFUSED_STREAM */);
        break;
    case 'x':
        tc_server_call_finish(s->call, TORC_STATUS_INTERNAL, "scripted", NULL);
        break;
    default:
        break;
    }
}

static void on_end(void *arg, const struct tc_status *why)
{
    script.cancelled += why->code == TORC_STATUS_CANCELLED;
    (void)arg;
}

static void on_call(void *arg, struct tc_server_call *call)
{
    (void)arg;
    static const struct tc_server_call_events events = {
        .on_message = on_message, .on_half_close = on_half_close, .on_end = on_end};
    const struct tc_header *h =
        tc_headers_find(tc_server_call_metadata(call), tc_slice_str("grpc-previous-rpc-attempts"));
    append(script.previous, sizeof(script.previous), h ? h->value : tc_slice_str("-"));
    struct served *s = tc_arena_calloc(tc_server_call_arena(call), 1, sizeof(*s));
    *s = (struct served){call, script.calls++};
    tc_server_call_set_events(call, &events, s);
    tc_server_call_read(call);
}

static void install(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, "/t/M", on_call, NULL);
}

static void set(struct tc_server *server, void *arg)
{
    (void)server;
    script = *(struct script *)arg;
}

static void get(struct tc_server *server, void *arg)
{
    (void)server;
    *(struct script *)arg = script;
}

static void plan(const char *what, const char *pushback)
{
    struct script s = {.what = what, .pushback = pushback};
    kit_backends_do(kit, set, 0, &s);
}

static struct script seen(void)
{
    struct script s;
    kit_backends_do(kit, get, 0, &s);
    return s;
}

/* Waits until the server has seen n cancelled attempts, and asserts that it has not seen more. The server learns of a
 * cancellation a moment after the client has cancelled the attempt. */
static void wait_cancelled(int n)
{
    while (seen().cancelled < n)
        torc_runtime_poll(rt, 5);
    assert_int_equal(seen().cancelled, n);
}

/* Makes an RPC without hedging on the connection that all attempts use. When the RPC is over, the server has seen the
 * attempts that were sent before it. */
static void pass_by(torc_channel *ch)
{
    torc_result *r = torc_unary(ch, "unhedged/M", "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
}

static int setup(void **state)
{
    (void)state;
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    kit = kit_backends_new(1, NULL);
    kit_backends_do(kit, install, 0, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    kit_backends_free(kit);
    return rc;
}

#define POLICY(attempts, delay)                                                                                        \
    "\"methodConfig\":[{\"name\":[{\"service\":\"t\"}],\"hedgingPolicy\":{\"maxAttempts\":" attempts                   \
    ",\"hedgingDelay\":\"" delay "\",\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]"

static torc_channel *open_channel(const char *config, const struct torc_channel_options *given)
{
    return kit_backends_channel(kit, rt, given, config);
}

/* Makes a unary call with request "m", asserts its status, and returns its attempts. */
static unsigned attempts_of(torc_channel *ch, int code)
{
    torc_result *r = torc_unary(ch, "t/M", "m", 1, NULL);
    assert_int_equal(torc_result_code(r), code);
    assert_string_equal(torc_result_text(r), code == TORC_STATUS_OK ? "" : "scripted");
    if (code == TORC_STATUS_OK)
        assert_memory_equal(torc_message_data(torc_result_response(r)), "done", 4);
    assert_string_not_equal(torc_result_peer(r), "");
    unsigned attempts = torc_result_attempts(r);
    torc_result_free(r);
    return attempts;
}

static void test_first_answer_wins(void **state)
{
    (void)state;
    static const char *const delays[] = {"{" POLICY("3", "0s") "}", "{" POLICY("3", "0.01s") "}"};
    for (size_t i = 0; i < 2; i++) {
        torc_channel *ch = open_channel(delays[i], NULL);
        plan("hho", NULL);
        assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 3);
        wait_cancelled(2);
        struct script s = seen();
        assert_string_equal(s.previous, "-12");
        assert_string_equal(s.requests[0], "m");
        assert_string_equal(s.requests[2], "m");
        torc_channel_free(ch);
    }
}

static void test_one_attempt_is_enough(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("5", "100s") "}", NULL);
    plan("o", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 1);
    plan("i", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 1);
    torc_channel_free(ch);
}

static void test_failures(void **state)
{
    (void)state;
    /* A non-fatal failure ends the delay of 100 s: the next attempt starts at once. */
    torc_channel *ch = open_channel("{" POLICY("4", "100s") "}", NULL);
    plan("uuo", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 3);
    plan("u", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 4);
    plan("ux", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_INTERNAL), 2);
    torc_channel_free(ch);
    /* A fatal status ends the other attempts. */
    ch = open_channel("{" POLICY("3", "0s") "}", NULL);
    plan("hhx", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_INTERNAL), 3);
    wait_cancelled(2);
    torc_channel_free(ch);
}

static void test_pushback(void **state)
{
    (void)state;
    static const struct {
        const char *pushback;
        unsigned attempts;
    } cases[] = {{"0", 3}, {"15", 3}, {"-1", 1}, {"soon", 1}};
    torc_channel *ch = open_channel("{" POLICY("3", "100s") "}", NULL);
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        plan("u", cases[i].pushback);
        assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), cases[i].attempts);
    }
    torc_channel_free(ch);
}

static void test_throttling(void **state)
{
    (void)state;
    torc_channel *ch =
        open_channel("{\"retryThrottling\":{\"maxTokens\":4,\"tokenRatio\":1}," POLICY("5", "100s") "}", NULL);
    plan("u", NULL);
    /* 4 tokens: 3 is above half, 2 is not. */
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 2);
    plan("u", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    /* 1 token; two successes make 3. A failure leaves 2: no second attempt, even if the server pushes back by 5 ms. */
    for (int i = 0; i < 2; i++) {
        plan("o", NULL);
        assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 1);
    }
    plan("u", "5");
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
}

static void test_disabled(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .retries = TORC_OFF};
    torc_channel *ch = open_channel("{" POLICY("5", "0s") "}", &o);
    plan("u", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
}

/* The attempt that is answered sends all messages of the stream, including messages that were written before the
 * attempt began. Each other attempt sends the messages in the same order, but perhaps not all of them. */
static void test_stream(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("3", "0.01s") "}", NULL);
    plan("hhi", NULL);
    torc_stream *call = torc_stream_open(ch, "t/M", NULL, NULL);
    assert_int_equal(torc_stream_send(call, "a", 1, 0, -1), 0);
    assert_int_equal(torc_stream_send(call, "b", 1, 0, -1), 0);
    while (seen().calls < 3)
        torc_runtime_poll(rt, 5);
    assert_int_equal(torc_stream_send(call, "c", 1, TORC_SEND_LAST, -1), 0);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    assert_memory_equal(torc_message_data(m), "done", 4);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_int_equal(torc_result_attempts(r), 3);
    torc_result_free(r);
    torc_stream_free(call);
    wait_cancelled(2);
    struct script s = seen();
    for (int i = 0; i < 3; i++)
        assert_memory_equal(s.requests[i], "abc", TC_MIN(strlen(s.requests[i]), (size_t)3));
    assert_string_equal(s.requests[2], "abc");
    torc_channel_free(ch);
}

/* Beyond the buffer limit of a call, or of a channel's calls together, the call commits to one attempt: the others are
 * cancelled, and the call ends as this attempt ends. */
static void test_buffer_limit(void **state)
{
    (void)state;
    struct torc_channel_options o;
    for (int of_channel = 0; of_channel < 2; of_channel++) {
        o = (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
        if (of_channel)
            o.channel_retry_buffer_bytes = 10;
        else
            o.retry_buffer_bytes = 10;
        torc_channel *ch = open_channel("{" POLICY("3", "0s") "}", &o);
        plan("u", NULL);
        torc_stream *call = torc_stream_open(ch, "t/M", NULL, NULL);
        assert_int_equal(torc_stream_send(call, "12345678", 8, 0, -1), 0);
        while (seen().calls < 3)
            torc_runtime_poll(rt, 5);
        assert_int_equal(torc_stream_send(call, "90123456", 8, 0, -1), 0);
        wait_cancelled(2);
        assert_int_equal(torc_stream_send(call, "x", 1, TORC_SEND_LAST, -1), 0);
        torc_result *r = torc_stream_finish(call);
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
        assert_int_equal(torc_result_attempts(r), 3);
        torc_result_free(r);
        torc_stream_free(call);
        torc_channel_free(ch);
    }
}

/* A call that commits before it has made all its attempts makes no further attempt after the delay. A second RPC, which
 * begins after the commit, serves as the clock: its second attempt starts after the same delay. */
static void test_no_attempt_follows_after_the_delay(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .retry_buffer_bytes = 10};
    torc_channel *ch = open_channel("{" POLICY("5", "0.01s") "}", &o);
    struct script s;
    plan("h", NULL);
    torc_stream *call = torc_stream_open(ch, "t/M", NULL, NULL);
    assert_int_equal(torc_stream_send(call, "12345678", 8, 0, -1), 0);
    while (seen().calls < 2)
        torc_runtime_poll(rt, 5);
    assert_int_equal(torc_stream_send(call, "90123456", 8, 0, -1), 0);
    while (s = seen(), s.cancelled < s.calls - 1)
        torc_runtime_poll(rt, 5);
    pass_by(ch);
    assert_int_equal(seen().calls, s.calls);
    plan("ho", NULL);
    unsigned attempts = attempts_of(ch, TORC_STATUS_OK); /* more than two on a slow machine */
    pass_by(ch);
    s = seen();
    assert_in_range(s.calls, 2, attempts); /* the server does not see an attempt that is cancelled before it is sent */
    assert_memory_equal(s.previous, "-1234", strlen(s.previous));
    torc_stream_cancel(call);
    torc_result_free(torc_stream_finish(call));
    torc_stream_free(call);
    torc_channel_free(ch);
}

/* A call commits to its second attempt, which the failure of the first attempt has started. When the second attempt
 * fails too, no third attempt follows, although the policy allows four. The delay of 100 s does not end. */
static void test_no_attempt_follows_a_failure(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .retry_buffer_bytes = 10};
    torc_channel *ch = open_channel("{" POLICY("4", "100s") "}", &o);
    plan("fu", NULL);
    torc_stream *call = torc_stream_open(ch, "t/M", NULL, NULL);
    assert_int_equal(torc_stream_send(call, "12345678", 8, 0, -1), 0);
    while (seen().calls < 2)
        torc_runtime_poll(rt, 5);
    assert_int_equal(torc_stream_send(call, "90123456", 8, TORC_SEND_LAST, -1), 0);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 2);
    torc_result_free(r);
    torc_stream_free(call);
    pass_by(ch);
    struct script s = seen();
    assert_int_equal(s.calls, 2);
    assert_string_equal(s.requests[1], "1234567890123456");
    torc_channel_free(ch);
}

static void count(const torc_result *r, void *arg)
{
    (void)r;
    ++*(int *)arg;
}

static void test_ends_from_outside(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("3", "0s") "}", NULL);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    plan("h", NULL);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1000};
    torc_result *r = torc_unary(ch, "t/M", "m", 1, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(torc_result_attempts(r), 3);
    torc_result_free(r);
    /* The server sees the three cancellations before the next plan(), so wait_cancelled(6) does not count them. */
    pass_by(ch);
    while (kit_backends_counts(kit, 0).open_calls > 0)
        torc_runtime_poll(rt, 5);

    /* One call is cancelled, the other ends with the channel. */
    plan("h", NULL);
    int done = 0;
    torc_stream *call = NULL;
    assert_int_equal(torc_unary_async(ch, "t/M", "m", 1, NULL, count, &done, &call, NULL), 0);
    assert_int_equal(torc_unary_async(ch, "t/M", "m", 1, NULL, count, &done, NULL, NULL), 0);
    while (seen().calls < 6)
        torc_runtime_poll(rt, 5);
    torc_stream_cancel(call);
    while (done < 1)
        torc_runtime_poll(rt, 5);
    torc_stream_free(call);
    torc_channel_free(ch);
    while (done < 2)
        torc_runtime_poll(rt, 5);
    wait_cancelled(6);
}

/* A6, transparent retry: a stream that the server has refused is sent again, once for the RPC and not once for each
 * attempt. */
static void test_transparent(void **state)
{
    (void)state;
    static const char *const delays[] = {"{" POLICY("5", "0s") "}", "{" POLICY("5", "0.01s") "}",
                                         "{" POLICY("5", "100s") "}"};
    for (size_t i = 0; i < 3; i++) {
        torc_channel *ch = open_channel(delays[i], NULL);
        plan("r", NULL);
        torc_result *r = torc_unary(ch, "t/M", "m", 1, NULL);
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
        assert_int_equal(torc_result_attempts(r), 6);
        torc_result_free(r);
        assert_int_equal(seen().calls, 6);
        plan("rhhho", NULL);
        if (i < 2) {
            r = torc_unary(ch, "t/M", "m", 1, NULL);
            assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
            torc_result_free(r);
            pass_by(ch); /* a sixth attempt may be on its way */
            assert_in_range(seen().calls, 5, 6);
        }
        torc_channel_free(ch);
    }
}

/* While the one endpoint refuses connections, attempts fail before they are sent, and the call ends as the attempt that
 * failed last. */
static void test_no_endpoint(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("3", "0.01s") "}", NULL);
    kit_backends_stop(kit, 0);
    torc_result *r = torc_unary(ch, "t/M", "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 0);
    assert_non_null(strstr(torc_result_text(r), kit_backends_address(kit, 0)));
    torc_result_free(r);
    torc_channel_free(ch);
    kit_backends_restart(kit, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_answer_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_attempt_is_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pushback, setup, teardown),
        cmocka_unit_test_setup_teardown(test_throttling, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disabled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_buffer_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_attempt_follows_after_the_delay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_attempt_follows_a_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_transparent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_endpoint, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
