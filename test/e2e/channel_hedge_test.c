/* Hedging as a service config asks for it (gRFC A6), on real sockets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/backend_kit.h"
#include "support/cmocka.h"

static struct tc_kit *kit;
static torc_runtime *rt;

/* What the server does with call i: 'h' holds it, 'o' answers, 'i' sends its headers and then answers, 'u' fails with
 * UNAVAILABLE, 'x' with INTERNAL; the last letter is for all that follow. The servers' thread's alone while calls run.
 */
struct script {
    const char *what;
    const char *pushback; /* with 'u'; NULL: none */
    int calls, cancelled;
    char previous[64];    /* grpc-previous-rpc-attempts of each call, "-" for none */
    char requests[8][64]; /* the messages of each call */
};
static struct script script;

struct served {
    struct tc_server_call *call;
    int number;
};

static void append(char *out, size_t size, struct tc_slice text)
{
    size_t at = strlen(out);
    snprintf(out + at, size - at, "%.*s", (int)TC_MIN(text.len, (size_t)8), text.len > 0 ? text.data : "");
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct served *s = arg;
    append(script.requests[s->number % 8], sizeof(script.requests[0]), tc_rstr_slice(message));
    tc_rstr_unref(message);
    tc_server_call_read(s->call);
}

static void on_half_close(void *arg)
{
    const struct served *s = arg;
    size_t last = strlen(script.what) - 1;
    char what = script.what[TC_MIN((size_t)s->number, last)];
    struct tc_headers trailers;
    tc_headers_init(&trailers, tc_server_call_arena(s->call));
    switch (what) {
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
    tc_kit_do(kit, set, 0, &s);
}

static struct script seen(void)
{
    struct script s;
    tc_kit_do(kit, get, 0, &s);
    return s;
}

/* The server hears of cancelled attempts a little later. */
static void wait_cancelled(int n)
{
    while (seen().cancelled < n)
        torc_runtime_poll(rt, 5);
    assert_int_equal(seen().cancelled, n);
}

static int setup(void **state)
{
    (void)state;
    rt = tc_kit_runtime(TORC_RUNTIME_CALLER);
    kit = tc_kit_new(1, NULL);
    tc_kit_do(kit, install, 0, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    tc_kit_free(kit);
    return rc;
}

#define POLICY(attempts, delay)                                                                                        \
    "\"methodConfig\":[{\"name\":[{\"service\":\"t\"}],\"hedgingPolicy\":{\"maxAttempts\":" attempts                   \
    ",\"hedgingDelay\":\"" delay "\",\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]"

static torc_channel *open_channel(const char *config, const struct torc_channel_options *given)
{
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    if (given)
        o = *given;
    o.service_config_json = config;
    char *why = NULL;
    torc_channel *ch = torc_channel_new(rt, tc_kit_target(kit), &o, &why);
    if (!ch)
        fail_msg("%s", why);
    return ch;
}

/* Attempts of one unary call with request "m", whose status must be this. */
static unsigned attempts_of(torc_channel *ch, int code)
{
    struct torc_result r;
    assert_int_equal(torc_call_unary(ch, "t/M", "m", 1, NULL, &r), 0);
    assert_int_equal(r.code, code);
    assert_string_equal(r.message, code == TORC_STATUS_OK ? "" : "scripted");
    if (code == TORC_STATUS_OK)
        assert_memory_equal(torc_message_data(r.response), "done", 4);
    assert_non_null(r.peer[0] ? r.peer : NULL);
    unsigned attempts = r.attempts;
    torc_result_fini(&r);
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
    /* The delay would never end: what follows comes at once. */
    torc_channel *ch = open_channel("{" POLICY("4", "100s") "}", NULL);
    plan("uuo", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_OK), 3);
    plan("u", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 4);
    plan("ux", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_INTERNAL), 2);
    torc_channel_free(ch);
    /* A fatal one ends those that run. */
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
    /* 4 tokens: 3 are above the half, 2 are not. */
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 2);
    plan("u", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    /* 1 token; two successes bring 3, so a second attempt may be; 2 and its success, 3. */
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
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.disable_retries = true;
    torc_channel *ch = open_channel("{" POLICY("5", "0s") "}", &o);
    plan("u", NULL);
    assert_int_equal(attempts_of(ch, TORC_STATUS_UNAVAILABLE), 1);
    torc_channel_free(ch);
}

/* A stream's messages go to all attempts, also those that were written before an attempt began. */
static void test_stream(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("3", "0.01s") "}", NULL);
    plan("hhi", NULL);
    torc_call *call = torc_call_open(ch, "t/M", NULL, NULL);
    assert_int_equal(torc_call_send(call, "a", 1, false), 0);
    assert_int_equal(torc_call_send(call, "b", 1, false), 0);
    while (seen().calls < 3)
        torc_runtime_poll(rt, 5);
    assert_int_equal(torc_call_send(call, "c", 1, true), 0);
    torc_message *m = NULL;
    assert_int_equal(torc_call_receive(call, &m), 1);
    assert_memory_equal(torc_message_data(m), "done", 4);
    torc_message_unref(m);
    struct torc_result r;
    assert_int_equal(torc_call_finish(call, &r), 0);
    assert_int_equal(r.code, TORC_STATUS_OK);
    assert_int_equal(r.attempts, 3);
    torc_result_fini(&r);
    torc_call_free(call);
    wait_cancelled(2);
    struct script s = seen();
    for (int i = 0; i < 3; i++)
        assert_memory_equal(s.requests[i], "abc", TC_MIN(strlen(s.requests[i]), (size_t)3));
    assert_string_equal(s.requests[2], "abc");
    torc_channel_free(ch);
}

/* Beyond what may be kept the call is one attempt's, and a message is kept until then only. */
static void test_buffer_limit(void **state)
{
    (void)state;
    struct torc_channel_options o;
    for (int of_channel = 0; of_channel < 2; of_channel++) {
        torc_channel_options_init(&o);
        if (of_channel)
            o.channel_retry_buffer_bytes = 10;
        else
            o.retry_buffer_bytes = 10;
        torc_channel *ch = open_channel("{" POLICY("3", "0s") "}", &o);
        plan("u", NULL);
        torc_call *call = torc_call_open(ch, "t/M", NULL, NULL);
        assert_int_equal(torc_call_send(call, "12345678", 8, false), 0);
        while (seen().calls < 3)
            torc_runtime_poll(rt, 5);
        assert_int_equal(torc_call_send(call, "90123456", 8, false), 0);
        wait_cancelled(2);
        assert_int_equal(torc_call_send(call, "x", 1, true), 0);
        struct torc_result r;
        assert_int_equal(torc_call_finish(call, &r), 0);
        assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
        assert_int_equal(r.attempts, 3);
        torc_result_fini(&r);
        torc_call_free(call);
        torc_channel_free(ch);
    }
}

static void count(const struct torc_result *r, void *arg)
{
    (void)r;
    ++*(int *)arg;
}

static void test_ends_from_outside(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("3", "0s") "}", NULL);
    assert_int_equal(torc_channel_connect(ch, 30000), 0);
    plan("h", NULL);
    struct torc_call_options o;
    torc_call_options_init(&o);
    o.timeout_ms = 300;
    struct torc_result r;
    assert_int_equal(torc_call_unary(ch, "t/M", "m", 1, &o, &r), 0);
    assert_int_equal(r.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(r.attempts, 3);
    torc_result_fini(&r);
    while (tc_kit_counts(kit, 0).open_calls > 0)
        torc_runtime_poll(rt, 5);

    /* Cancelled; and the channel ended. */
    plan("h", NULL);
    int done = 0;
    torc_call *call = NULL;
    assert_int_equal(torc_call_unary_async(ch, "t/M", "m", 1, NULL, count, &done, &call), 0);
    assert_int_equal(torc_call_unary_async(ch, "t/M", "m", 1, NULL, count, &done, NULL), 0);
    while (seen().calls < 6)
        torc_runtime_poll(rt, 5);
    torc_call_cancel(call);
    while (done < 1)
        torc_runtime_poll(rt, 5);
    torc_call_free(call);
    torc_channel_free(ch);
    while (done < 2)
        torc_runtime_poll(rt, 5);
    wait_cancelled(6);
}

/* No endpoint is there: attempts fail before they are sent, and the last tells. */
static void test_no_endpoint(void **state)
{
    (void)state;
    torc_channel *ch = open_channel("{" POLICY("3", "0.01s") "}", NULL);
    tc_kit_stop(kit, 0);
    struct torc_result r;
    assert_int_equal(torc_call_unary(ch, "t/M", "m", 1, NULL, &r), 0);
    assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
    assert_int_equal(r.attempts, 0);
    assert_non_null(strstr(r.message, tc_kit_address(kit, 0)));
    torc_result_fini(&r);
    torc_channel_free(ch);
    tc_kit_restart(kit, 0);
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
        cmocka_unit_test_setup_teardown(test_ends_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_endpoint, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
