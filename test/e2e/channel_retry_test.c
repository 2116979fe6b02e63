/* Retries by service config (gRFC A6), on real sockets.
 *
 * Each test has a server (kits/backends.h) and a client's runtime of its own. The server has the method /t/M, which
 * follows `script`: the method refuses the first calls, fails the next ones and answers the others. The method records
 * the attempt number and the messages of each call. The test's thread drives the client, and uses `script` while no
 * call runs on the server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;

/* How the method ends calls, and what it saw. */
static struct {
    int fail, code;       /* the first `fail` calls fail with `code`, unless refused */
    int refuse;           /* the streams of the first `refuse` calls are refused */
    const char *pushback; /* NULL: none */
    bool headers_first;   /* a call that fails sends response headers before */
    int calls;
    char previous[64];  /* grpc-previous-rpc-attempts of each call, "-" for none */
    char requests[128]; /* the messages of each call in brackets */
} script;

/* Appends the text to the string `out`, which has `size` bytes. */
static void note(char *out, size_t size, const char *text, size_t len)
{
    size_t at = strlen(out);
    snprintf(out + at, size - at, "%.*s", (int)len, text);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    note(script.requests, sizeof(script.requests), message->data, message->len);
    tc_rstr_unref(message);
    tc_server_call_read(arg);
}

static void on_half_close(void *arg)
{
    struct tc_server_call *call = arg;
    note(script.requests, sizeof(script.requests), "]", 1);
    if (script.calls <= script.refuse) {
        tc_server_call_reset(call, 7); /* REFUSED_STREAM */
        return;
    }
    if (script.calls > script.fail) {
        tc_server_call_send(call, tc_slice_str("done"));
        tc_server_call_finish(call, TORC_STATUS_OK, "", NULL);
        return;
    }
    struct tc_headers trailers;
    tc_headers_init(&trailers, tc_server_call_arena(call));
    if (script.pushback)
        tc_headers_add(&trailers, tc_slice_str("grpc-retry-pushback-ms"), tc_slice_str(script.pushback));
    if (script.headers_first)
        tc_server_call_send_headers(call, NULL, TC_H2_IDENTITY);
    tc_server_call_finish(call, script.code, "scripted", &trailers);
}

static void on_call(void *arg, struct tc_server_call *call)
{
    (void)arg;
    static const struct tc_server_call_events events = {.on_message = on_message, .on_half_close = on_half_close};
    const struct tc_header *h =
        tc_headers_find(tc_server_call_metadata(call), tc_slice_str("grpc-previous-rpc-attempts"));
    note(script.previous, sizeof(script.previous), h ? h->value.data : "-", h ? h->value.len : 1);
    note(script.requests, sizeof(script.requests), "[", 1);
    script.calls++;
    tc_server_call_set_events(call, &events, call);
    tc_server_call_read(call);
}

static void install(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, "/t/M", on_call, NULL);
}

static int setup(void **state)
{
    (void)state;
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    kit = kit_backends_new(1, NULL);
    kit_backends_do(kit, install, 0, NULL);
    memset(&script, 0, sizeof(script));
    script.code = TORC_STATUS_UNAVAILABLE;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    kit_backends_free(kit);
    return rc;
}

#define POLICY(attempts, backoff)                                                                                      \
    "\"methodConfig\":[{\"name\":[{\"service\":\"t\"}],\"retryPolicy\":{\"maxAttempts\":" attempts                     \
    ",\"initialBackoff\":\"" backoff "\",\"maxBackoff\":\"200s\",\"backoffMultiplier\":2,"                             \
    "\"retryableStatusCodes\":[\"UNAVAILABLE\",\"aborted\",8]}}]"

static torc_channel *open_channel(const char *config)
{
    return kit_backends_channel(kit, rt, NULL, config);
}

/* Makes a unary call with request "m", and returns its attempts. Asserts its status, and that the server saw as many
 * calls: script.calls must be 0 before. */
static unsigned attempts_of(torc_channel *ch, int code)
{
    torc_result *r = torc_unary(ch, "t/M", "m", 1, NULL);
    assert_int_equal(torc_result_code(r), code);
    assert_string_equal(torc_result_text(r), code == TORC_STATUS_OK ? "" : "scripted");
    unsigned attempts = torc_result_attempts(r);
    assert_int_equal(script.calls, attempts);
    torc_result_free(r);
    return attempts;
}

static void test_until_it_succeeds(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("4", "0.005s") "}");
    script.fail = 2;
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 3);
    assert_string_equal(script.previous, "-12");
    assert_string_equal(script.requests, "[m][m][m]");
    torc_channel_free(ch);
}

static void test_most_attempts(void **state)
{
    (void)state;
    script.fail = 100;
    torc_channel *ch = open_channel("{" POLICY("3", "0.001s") "}");
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 3);
    torc_channel_free(ch);
    /* maxAttempts above five counts as five. */
    script.calls = 0;
    ch = open_channel("{" POLICY("50", "0.001s") "}");
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 5);
    torc_channel_free(ch);
}

static void test_what_is_retried(void **state)
{
    (void)state;
    static const struct {
        int code;
        unsigned attempts;
    } cases[] = {{TORC_STATUS_UNAVAILABLE, 2},
                 {TORC_STATUS_ABORTED, 2},
                 {TORC_STATUS_RESOURCE_EXHAUSTED, 2},
                 {TORC_STATUS_INTERNAL, 1},
                 {TORC_STATUS_PERMISSION_DENIED, 1}};
    torc_channel *ch = open_channel("{" POLICY("2", "0.001s") "}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        script.calls = 0;
        script.fail = 100;
        script.code = cases[i].code;
        assert_int_equal(attempts_of(ch, cases[i].code), cases[i].attempts);
    }
    /* Once response headers have come, the call is committed. */
    script.calls = 0;
    script.code = TORC_STATUS_UNAVAILABLE;
    script.headers_first = true;
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
}

static void test_pushback(void **state)
{
    (void)state;
    static const struct {
        const char *pushback;
        unsigned attempts;
    } cases[] = {{"0", 3}, {"25", 3}, {"-1", 1}, {"soon", 1}, {"", 1}, {"99999999999", 1}};
    /* A backoff of 100 s would outlast the test: pushback replaces it. */
    torc_channel *ch = open_channel("{" POLICY("3", "100s") "}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        script.calls = 0;
        script.fail = 100;
        script.pushback = cases[i].pushback;
        assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), cases[i].attempts);
    }
    torc_channel_free(ch);
}

static void test_throttling(void **state)
{
    (void)state;
    torc_channel *ch =
        open_channel("{\"retryThrottling\":{\"maxTokens\":4,\"tokenRatio\":0.5}," POLICY("5", "0.001s") "}");
    script.fail = 100;
    /* 4 tokens: 3 is above half, 2 is not. */
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 2);
    script.calls = 0;
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    /* 1 token; five successes make 3.5. A failure leaves 2.5, and is retried. */
    script.fail = 0;
    for (int i = 0; i < 5; i++) {
        script.calls = 0;
        assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 1);
    }
    script.calls = 0;
    script.fail = 1;
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 2);
    /* The retry succeeded: 3 tokens. Another success makes 3.5. INTERNAL is not retried and takes no token. So the next
     * UNAVAILABLE leaves 2.5 and is retried, which makes 3. The last UNAVAILABLE leaves 2, and is not retried. */
    script.calls = script.fail = 0;
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 1);
    script.calls = 0;
    script.fail = 100;
    script.code = TORC_STATUS_INTERNAL;
    assert_int_equal(attempts_of(ch, TORC_STATUS_INTERNAL), 1);
    script.calls = 0;
    script.fail = 1;
    script.code = TORC_STATUS_UNAVAILABLE;
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 2);
    script.calls = 0;
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
}

/* Each retry sends all messages of a stream again. */
static void test_streamed_request(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("4", "0.005s") "}");
    script.fail = 2;
    torc_stream *call = torc_stream_open(ch, "t/M", NULL, NULL);
    assert_int_equal(torc_stream_send(call, "a", 1, 0, -1), 0);
    assert_int_equal(torc_stream_send(call, "b", 1, 0, -1), 0);
    assert_int_equal(torc_stream_send(call, "c", 1, TORC_SEND_LAST, -1), 0);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    assert_memory_equal(torc_message_data(m), "done", 4);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_int_equal(torc_result_attempts(r), 3);
    assert_string_equal(script.requests, "[abc][abc][abc]");
    torc_result_free(r);
    torc_stream_free(call);
    torc_channel_free(ch);
}

/* A request beyond the buffer limit (256 KiB) is not retried. */
static void test_large_request(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("4", "0.005s") "}");
    size_t len = 300000;
    char *data = calloc(1, len);
    script.fail = 100;
    torc_result *r = torc_unary(ch, "t/M", data, len, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 1);
    torc_result_free(r);
    free(data);
    torc_channel_free(ch);
}

static void count(const torc_result *r, void *arg)
{
    (void)r;
    ++*(int *)arg;
}

static void expect_ok(const torc_result *r, void *arg)
{
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    ++*(int *)arg;
}

static void test_ends_during_backoff(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("4", "100s") "}");
    script.fail = 100;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 2000};
    torc_result *r = torc_unary(ch, "t/M", "m", 1, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r), "while waiting for another attempt (the last: UNAVAILABLE: scripted)"));
    assert_int_equal(torc_result_attempts(r), 1);
    torc_result_free(r);

    /* During backoff one call is cancelled, and the other ends with the channel. */
    int done = 0;
    torc_stream *call = NULL;
    size_t before = (size_t)kit_backends_counts(kit, 0).requests;
    assert_int_equal(torc_unary_async(ch, "t/M", "m", 1, NULL, count, &done, &call, NULL), 0);
    assert_int_equal(torc_unary_async(ch, "t/M", "m", 1, NULL, count, &done, NULL, NULL), 0);
    while (kit_backends_counts(kit, 0).requests < before + 2 || kit_backends_counts(kit, 0).open_calls > 0)
        torc_runtime_poll(rt, 10);
    torc_stream_cancel(call);
    while (done < 1)
        torc_runtime_poll(rt, 10);
    assert_int_equal(done, 1);
    torc_stream_free(call);
    torc_channel_free(ch);
    while (done < 2)
        torc_runtime_poll(rt, 10);
    assert_int_equal(script.calls, 3);
}

/* A6: a refused stream is first retried transparently, once. Then the policy decides. */
static void test_transparent(void **state)
{
    (void)state;
    torc_channel *plain = open_channel("{}");
    script.refuse = 1;
    assert_int_equal(attempts_of(plain, TORC_STATUS_OK), 2);
    assert_string_equal(script.previous, "--");
    assert_string_equal(script.requests, "[m][m]");
    torc_result *r;
    script.calls = 0;
    script.refuse = 2;
    r = torc_unary(plain, "t/M", "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 2);
    torc_result_free(r);
    torc_channel_free(plain);

    script.calls = 0;
    script.previous[0] = '\0';
    torc_channel *ch = open_channel("{" POLICY("2", "0.001s") "}");
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 3);
    assert_string_equal(script.previous, "--1");
    torc_channel_free(ch);
}

/* A pick that fails is retried, too. */
static void test_no_endpoint(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("5", "0.3s") "}");
    kit_backends_stop(kit, 0);
    int done = 0;
    assert_int_equal(torc_unary_async(ch, "t/M", "m", 1, NULL, expect_ok, &done, NULL, NULL), 0);
    while (torc_channel_state(ch, false) != TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        torc_runtime_poll(rt, 10);
    kit_backends_restart(kit, 0);
    kit_backends_do(kit, install, 0, NULL);
    torc_channel_reset_backoff(ch);
    while (done < 1)
        torc_runtime_poll(rt, 10);
    assert_string_equal(script.requests, "[m]");
    torc_channel_free(ch);
}

/* The buffer limits of a call and of a channel's calls together. */
static void test_buffer_limits(void **state)
{
    (void)state;
    torc_result *r;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = "{" POLICY("3", "0.001s") "}", .retry_buffer_bytes = 3};
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    script.fail = 100;
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 3);
    r = torc_unary(ch, "t/M", "four", 4, NULL);
    assert_int_equal(torc_result_attempts(r), 1);
    torc_result_free(r);
    torc_channel_free(ch);

    o = (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .service_config_json = "{" POLICY("3", "100s") "}",
                                      .channel_retry_buffer_bytes = 4};
    ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    int done = 0;
    size_t before = (size_t)kit_backends_counts(kit, 0).requests;
    assert_int_equal(torc_unary_async(ch, "t/M", "abc", 3, NULL, count, &done, NULL, NULL), 0);
    while (kit_backends_counts(kit, 0).requests < before + 1 || kit_backends_counts(kit, 0).open_calls > 0)
        torc_runtime_poll(rt, 10);
    /* The first call waits for its next attempt and keeps three bytes. The three bytes of the second one do not fit. */
    r = torc_unary(ch, "t/M", "abc", 3, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 1);
    torc_result_free(r);
    assert_int_equal(done, 0);
    torc_channel_free(ch);
    while (done < 1)
        torc_runtime_poll(rt, 10);
}

static void test_disabled(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = "{" POLICY("4", "0.005s") "}", .retries = TORC_OFF};
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    script.fail = 100;
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_until_it_succeeds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_most_attempts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_retried, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pushback, setup, teardown),
        cmocka_unit_test_setup_teardown(test_throttling, setup, teardown),
        cmocka_unit_test_setup_teardown(test_streamed_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends_during_backoff, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_endpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_transparent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_buffer_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disabled, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
