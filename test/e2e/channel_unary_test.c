/* Unary calls over real sockets: results, texts of failures, limits, the service config, asynchronous calls, lent
 * requests, torc_explain.
 *
 * All tests share three echo servers, "b0" to "b2", on a thread of their own (kits/backends.h), and one runtime. A test
 * that stops a server starts it again. The test's thread drives the runtime, so callbacks run on the test's thread,
 * inside blocking calls and torc_runtime_poll. test_echo_own_thread and test_echo_default_runtime use a runtime with a
 * thread of its own instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;

static int setup(void **state)
{
    (void)state;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    kit = kit_backends_new(3, NULL);
    rt = torc_runtime_new(&o, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    kit_backends_free(kit);
    return rc;
}

/* Makes a channel to server i alone. `options` may be NULL. */
static torc_channel *open_one(size_t i, const struct torc_channel_options *options)
{
    char target[64];
    snprintf(target, sizeof(target), "ipv4:%s", kit_backends_address(kit, i));
    torc_channel *ch = torc_channel_new(rt, target, options, NULL);
    assert_non_null(ch);
    return ch;
}

/* Makes 100 calls on a channel of this runtime (NULL: the default one), and asserts their results. */
static void echo(torc_runtime *runtime)
{
    char target[64];
    snprintf(target, sizeof(target), "ipv4:%s", kit_backends_address(kit, 0));
    torc_channel *ch = torc_channel_new(runtime, target, NULL, NULL);
    assert_non_null(ch);
    assert_string_equal(torc_channel_target(ch), target);
    for (int i = 0; i < 100; i++) {
        torc_result *r = torc_unary(ch, i % 2 ? "test.Echo/Echo" : "/test.Echo/Echo", "hello", 5, NULL);
        assert_string_equal(torc_result_text(r), "");
        assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
        assert_int_equal(torc_message_size(torc_result_response(r)), 5);
        assert_memory_equal(torc_message_data(torc_result_response(r)), "hello", 5);
        assert_string_equal(torc_result_peer(r), kit_backends_address(kit, 0));
        assert_int_equal(torc_result_attempts(r), 1);
        assert_string_equal(torc_metadata_find(torc_result_headers(r), "x-backend", NULL), "b0");
        torc_result_free(r);
    }
    torc_channel_free(ch);
}

static void test_echo_own_thread(void **state)
{
    (void)state;
    torc_runtime *own = torc_runtime_new(NULL, NULL);
    echo(own);
    assert_int_equal(torc_runtime_free(own), 0);
}

static void test_echo_caller(void **state)
{
    (void)state;
    echo(rt);
}

static void test_echo_default_runtime(void **state)
{
    (void)state;
    echo(NULL);
    assert_ptr_equal(torc_runtime_default(), torc_runtime_default());
}

static void test_refused_arguments(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    torc_result *r;
    static const char *const bad[] = {"", "/", "NoSlash", "/a/", "a b/c", "//c", NULL};
    for (size_t i = 0; bad[i]; i++) {
        r = torc_unary(ch, bad[i], "", 0, NULL);
        assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
        torc_result_free(r);
    }
    r = torc_unary(ch, NULL, "", 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    assert_int_equal(torc_unary_async(ch, "a/b", "", 0, NULL, NULL, NULL, NULL, NULL), TORC_EINVAL);
    torc_channel_free(ch);

    torc_error *error = NULL;
    assert_null(torc_channel_new(rt, "ipv4:nonsense", NULL, &error));
    assert_non_null(strstr(torc_error_text(error), "nonsense"));
    torc_error_clear(&error);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"nothing\":{}}]}"};
    assert_null(torc_channel_new(rt, "ipv4:127.0.0.1:1", &o, &error));
    assert_non_null(strstr(torc_error_text(error), "loadBalancingConfig"));
    torc_error_clear(&error);
}

static void test_failed_status(void **state)
{
    (void)state;
    torc_channel *ch = open_one(1, NULL);
    torc_result *r = torc_unary(ch, "torc.test.Backend/Fail", "7", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_PERMISSION_DENIED);
    assert_null(torc_result_response(r));
    assert_string_equal(torc_result_peer(r), kit_backends_address(kit, 1));
    torc_result_free(r);
    torc_channel_free(ch);
}

static void test_metadata_both_ways(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    torc_metadata *md = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(md, "X-Key", "v1"), 0);
    assert_int_equal(torc_metadata_add_string(md, "x-key", "v2"), 0);
    assert_int_equal(torc_metadata_add(md, "x-raw-bin", "\x00\xff\x01", 3), 0);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = md};
    torc_result *r = torc_unary(ch, "torc.test.Backend/Headers", "", 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    char seen[2048]; /* the request's headers as the backend saw them */
    snprintf(seen, sizeof(seen), "%.*s", (int)torc_message_size(torc_result_response(r)),
             (const char *)torc_message_data(torc_result_response(r)));
    assert_non_null(strstr(seen, "x-key: v1\nx-key: v2\nx-raw-bin: AP8B\n"));
    assert_string_equal(torc_metadata_find(torc_result_headers(r), "x-backend", NULL), "b0");
    torc_result_free(r);
    torc_metadata_free(md);
    torc_channel_free(ch);
}

static void test_deadline_names_what_it_waited_for(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 500};
    torc_result *r = torc_unary(ch, "torc.test.Backend/Hang", "", 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    /* Either of two texts is right: if the machine stalls, the deadline may pass before the request is sent. */
    if (strcmp(torc_result_text(r), "deadline exceeded after 0.500 s, before the request was sent") != 0)
        assert_non_null(strstr(torc_result_text(r),
                               "deadline exceeded after 0.500 s while waiting for the response of 127.0.0.1:"));
    torc_result_free(r);
    torc_channel_free(ch);

    /* Nothing listens on the port: the status of the call that waited says why. */
    kit_backends_stop(kit, 2);
    ch = open_one(2, NULL);
    o.wait_for_ready = true;
    o.timeout_ms = 1000;
    r = torc_unary(ch, "a/b", "", 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r), "a connected endpoint of ipv4:127.0.0.1:"));
    assert_non_null(strstr(torc_result_text(r), "Connection refused"));
    assert_int_equal(torc_result_attempts(r), 0);
    assert_string_equal(torc_result_peer(r), "");
    torc_result_free(r);
    torc_channel_free(ch);
    kit_backends_restart(kit, 2);
}

static void test_unreachable_fails_at_once(void **state)
{
    (void)state;
    kit_backends_stop(kit, 2);
    torc_channel *ch = open_one(2, NULL);
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), kit_backends_address(kit, 2)));
    assert_non_null(strstr(torc_result_text(r), "Connection refused"));
    torc_result_free(r);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_TRANSIENT_FAILURE);

    /* The server comes back. torc_channel_reset_backoff ends the backoff, and a call that waits for ready succeeds. */
    kit_backends_restart(kit, 2);
    torc_channel_reset_backoff(ch);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON};
    r = torc_unary(ch, "a/b", "x", 1, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_channel_free(ch);
}

static void test_message_limits(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .max_receive_message_bytes = 1000, .max_send_message_bytes = 2000};
    torc_channel *ch = open_one(0, &o);
    char *big = calloc(1, 3000);
    torc_result *r = torc_unary(ch, "a/b", big, 1000, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    r = torc_unary(ch, "a/b", big, 1001, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    r = torc_unary(ch, "a/b", big, 2001, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(torc_result_text(r), "2001 vs. 2000"));
    torc_result_free(r);
    struct torc_call_options co = {TORC_SIZE(torc_call_options), .max_receive_message_bytes = -1};
    r = torc_unary(ch, "a/b", big, 1500, &co);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_int_equal(torc_message_size(torc_result_response(r)), 1500);
    torc_result_free(r);
    free(big);
    torc_channel_free(ch);
}

static void test_gzip(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .gzip = TORC_ON};
    torc_channel *ch = open_one(0, &o);
    size_t size = 200000;
    char *text = calloc(1, size);
    memset(text, 'a', size);
    torc_result *r = torc_unary(ch, "a/b", text, size, NULL);
    assert_string_equal(torc_result_text(r), "");
    assert_int_equal(torc_message_size(torc_result_response(r)), size);
    assert_memory_equal(torc_message_data(torc_result_response(r)), text, size);
    torc_result_free(r);
    free(text);
    torc_channel_free(ch);
}

static void test_method_config(void **state)
{
    (void)state;
    struct torc_channel_options o = {
        TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
        .service_config_json = "{\"methodConfig\":[{\"name\":[{\"service\":\"torc.test.Backend\",\"method\":\"Hang\"}],"
                               "\"timeout\":\"0.05s\"},{\"name\":[{\"service\":\"small\"}],"
                               "\"maxRequestMessageBytes\":3,\"maxResponseMessageBytes\":\"2\"}]}"};
    torc_channel *ch = open_one(0, &o);
    torc_result *r = torc_unary(ch, "torc.test.Backend/Hang", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    r = torc_unary(ch, "small/x", "1234", 4, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    r = torc_unary(ch, "small/x", "123", 3, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    r = torc_unary(ch, "small/x", "12", 2, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_channel_free(ch);
}

/* Returns which of the three backends answers a call. */
static size_t call_backend(torc_channel *ch)
{
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    size_t at = 0;
    while (at < 3 && strcmp(torc_result_peer(r), kit_backends_address(kit, at)) != 0)
        at++;
    torc_result_free(r);
    assert_in_range(at, 0, 2);
    return at;
}

static void test_round_robin(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}"};
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    assert_non_null(ch);
    /* Calls go to connected backends, so the first calls may miss some. */
    bool reached[3] = {false};
    for (int i = 0; i < 100000 && !(reached[0] && reached[1] && reached[2]); i++)
        reached[call_backend(ch)] = true;
    assert_true(reached[0] && reached[1] && reached[2]);
    int seen[3] = {0};
    for (int i = 0; i < 300; i++)
        seen[call_backend(ch)]++;
    for (int k = 0; k < 3; k++)
        assert_int_equal(seen[k], 100);
    torc_channel_free(ch);
}

/* Asynchronous calls: how many ended, and how. */
struct batch {
    int done, ok, cancelled; /* ok: with a response of 3 bytes */
    torc_stream *calls[64];
};

static void on_unary(const torc_result *result, void *arg)
{
    struct batch *b = arg;
    b->done++;
    b->ok += torc_result_code(result) == TORC_STATUS_OK && torc_message_size(torc_result_response(result)) == 3;
    b->cancelled += torc_result_code(result) == TORC_STATUS_CANCELLED;
}

static void test_async_batch(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    struct batch b = {0};
    for (int i = 0; i < 500; i++)
        assert_int_equal(torc_unary_async(ch, "a/b", "abc", 3, NULL, on_unary, &b, NULL, NULL), 0);
    assert_int_equal(b.done, 0);
    while (b.done < 500)
        assert_true(torc_runtime_poll(rt, 1000) >= 0);
    /* The server's MAX_CONCURRENT_STREAMS is 100: the other calls waited. */
    assert_int_equal(b.ok, 500);
    torc_channel_free(ch);
}

static void test_async_cancel_and_free(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    struct batch b = {0};
    for (int i = 0; i < 10; i++)
        assert_int_equal(torc_unary_async(ch, "torc.test.Backend/Hang", "", 0, NULL, on_unary, &b, &b.calls[i], NULL),
                         0);
    while (kit_backends_counts(kit, 0).open_calls < 10)
        torc_runtime_poll(rt, 10);
    for (int i = 0; i < 5; i++)
        torc_stream_cancel(b.calls[i]);
    for (int i = 5; i < 10; i++) /* cancels the call, whose callback runs later */
        torc_stream_free(b.calls[i]);
    while (kit_backends_counts(kit, 0).open_calls > 0)
        torc_runtime_poll(rt, 10);
    assert_int_equal(b.done, 10);
    assert_int_equal(b.cancelled, 10);
    for (int i = 0; i < 5; i++)
        torc_stream_free(b.calls[i]);
    torc_channel_free(ch);
}

static void test_channel_free_cancels(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    struct batch b = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(torc_unary_async(ch, "torc.test.Backend/Hang", "", 0, NULL, on_unary, &b, NULL, NULL), 0);
    while (kit_backends_counts(kit, 0).open_calls < 3)
        torc_runtime_poll(rt, 10);
    torc_channel_free(ch);
    while (b.done < 3)
        torc_runtime_poll(rt, 100);
    assert_int_equal(b.cancelled, 3);
}

/* A lent request, which the callback of its call frees, and the call's outcome. */
struct lent {
    char *bytes;
    size_t size;
    int code;  /* -1: the call has not ended */
    bool same; /* the response equals the request */
};

#define LENT_BYTES ((size_t)1 << 20)

/* Starts a call with a lent request. `call`: NULL, or gets the handle, which the caller frees. */
static void lend(torc_channel *ch, const char *method, struct lent *l, torc_result_fn fn, torc_stream **call)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .lend_request = TORC_ON};
    *l = (struct lent){.bytes = malloc(LENT_BYTES), .size = LENT_BYTES, .code = -1};
    for (size_t i = 0; i < l->size; i++)
        l->bytes[i] = (char)(i * 2654435761u >> 13);
    assert_int_equal(torc_unary_async(ch, method, l->bytes, l->size, &o, fn, l, call, NULL), 0);
}

static void on_lent(const torc_result *result, void *arg)
{
    struct lent *l = arg;
    l->code = torc_result_code(result);
    l->same = torc_message_size(torc_result_response(result)) == l->size &&
              memcmp(torc_message_data(torc_result_response(result)), l->bytes, l->size) == 0;
    free(l->bytes);
    l->bytes = NULL;
}

static void test_lent_request(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    struct lent echoed[4], hung[3];
    torc_stream *calls[3];
    for (int i = 0; i < 4; i++)
        lend(ch, "a/b", &echoed[i], on_lent, NULL);
    for (int i = 0; i < 4; i++) {
        while (echoed[i].code < 0)
            torc_runtime_poll(rt, 100);
        assert_int_equal(echoed[i].code, TORC_STATUS_OK);
        assert_true(echoed[i].same);
    }
    /* Of three calls one is cancelled, the handle of one is freed, and one ends with the channel. Each gets its
     * callback, which frees the request. */
    for (int i = 0; i < 3; i++)
        lend(ch, "torc.test.Backend/Hang", &hung[i], on_lent, &calls[i]);
    while (kit_backends_counts(kit, 0).open_calls < 3)
        torc_runtime_poll(rt, 10);
    torc_stream_cancel(calls[0]);
    torc_stream_free(calls[1]);
    assert_non_null(hung[1].bytes); /* the callback runs later, not in torc_stream_free */
    while (hung[0].code < 0 || hung[1].code < 0)
        torc_runtime_poll(rt, 100);
    torc_channel_free(ch);
    while (hung[2].code < 0)
        torc_runtime_poll(rt, 100);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hung[i].code, TORC_STATUS_CANCELLED);
    torc_stream_free(calls[0]);
    torc_stream_free(calls[2]);
}

static void test_explain(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .explain = TORC_ON};
    torc_result *r = torc_unary(ch, "a/b", "", 0, &o);
    assert_non_null(strstr(torc_result_explain(r), kit_backends_address(kit, 0)));
    assert_non_null(strstr(torc_result_explain(r), "\"walked\""));
    torc_result_free(r);
    torc_channel_free(ch);
}

/* torc_channel_describe does not wake an idle channel. After a call, torc_explain names the endpoint and sends
 * nothing. */
static void test_explain_without_sending(void **state)
{
    (void)state;
    torc_channel *ch = open_one(0, NULL);
    torc_result *r;
    char *json = NULL;
    assert_int_equal(torc_channel_describe(ch, NULL), TORC_EINVAL);
    assert_int_equal(torc_channel_describe(ch, &json), 0);
    assert_null(strstr(json, "policy")); /* idle: the channel has not resolved anything */
    torc_free(json);
    r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    uint64_t sent = kit_backends_counts(kit, 0).requests;
    r = torc_explain(ch, "a/b", NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_null(torc_result_response(r));
    assert_int_equal(torc_result_attempts(r), 0);
    assert_string_equal(torc_result_peer(r), "");
    assert_non_null(strstr(torc_result_explain(r), "\"outcome\":\"send\""));
    assert_non_null(strstr(torc_result_explain(r), kit_backends_address(kit, 0)));
    assert_non_null(strstr(torc_result_explain(r), "\"channel\":{\"target\""));
    torc_result_free(r);
    assert_int_equal(kit_backends_counts(kit, 0).requests, sent);
    assert_int_equal(torc_channel_describe(ch, &json), 0);
    assert_non_null(strstr(json, "\"selected\":true"));
    torc_free(json);
    r = torc_explain(ch, "", NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EINVAL);
    torc_result_free(r);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo_own_thread),
        cmocka_unit_test(test_echo_caller),
        cmocka_unit_test(test_echo_default_runtime),
        cmocka_unit_test(test_refused_arguments),
        cmocka_unit_test(test_failed_status),
        cmocka_unit_test(test_metadata_both_ways),
        cmocka_unit_test(test_deadline_names_what_it_waited_for),
        cmocka_unit_test(test_unreachable_fails_at_once),
        cmocka_unit_test(test_message_limits),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_method_config),
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_async_batch),
        cmocka_unit_test(test_async_cancel_and_free),
        cmocka_unit_test(test_channel_free_cancels),
        cmocka_unit_test(test_lent_request),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_explain_without_sending),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
