/* Limits of messages and of request headers, and deadlines in the past, on real sockets. A request that is too large or
 * too late is not sent, and a response that is too large fails its call. The status says why.
 *
 * Each test has an echo server (kits/backends.h) and a client's runtime of its own. The test's thread drives the
 * client. send_by makes one RPC in one way of sending; most tests try all ways (enum way). Two tests show by the
 * server's count of requests, and by 0 attempts in the result, that requests are not sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;

static int setup(void **state)
{
    (void)state;
    kit = kit_backends_new(1, NULL);
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    kit_backends_free(kit);
    return rc;
}

static torc_channel *open_with(const char *config, const struct torc_channel_options *o)
{
    return kit_backends_channel(kit, rt, o, config);
}

/* The result of an RPC. */
struct outcome {
    bool done; /* the RPC has ended */
    int code;
    uint32_t attempts;
    char message[256]; /* the status text, cut to fit */
};

static void take(struct outcome *o, const torc_result *r)
{
    *o = (struct outcome){.done = true, .code = torc_result_code(r), .attempts = torc_result_attempts(r)};
    snprintf(o->message, sizeof(o->message), "%s", torc_result_text(r));
}

static void on_unary(const torc_result *r, void *arg)
{
    take(arg, r);
}

static void on_done(torc_stream *call, const torc_result *r, void *arg)
{
    (void)call;
    take(arg, r);
}

static void wait_for(const struct outcome *o)
{
    while (!o->done)
        torc_runtime_poll(rt, 100);
}

/* The ways to send a request. LENT: ASYNC with lend_request. */
enum way { UNARY, ASYNC, LENT, START, OPEN, N_WAYS };

/* Makes one RPC with this request, and returns its outcome when it has ended. `given` NULL: the default options.
 * given->lend_request does not count. */
static struct outcome send_by(enum way way, torc_channel *ch, const void *data, size_t size,
                              const struct torc_call_options *given)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_done = on_done};
    torc_result *r;
    struct outcome out = {0};
    torc_stream *call = NULL;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    if (given)
        o = *given;
    o.lend_request = way == LENT;
    switch (way) {
    case UNARY:
        r = torc_unary(ch, "a/b", data, size, &o);
        take(&out, r);
        torc_result_free(r);
        break;
    case START:
        call = torc_stream_start(ch, "a/b", &o, &events, &out, NULL);
        assert_int_equal(torc_stream_send(call, data, size, TORC_SEND_LAST, 0), 0);
        torc_stream_want(call, 1);
        torc_stream_want(call, 1);
        wait_for(&out);
        break;
    case OPEN:
        call = torc_stream_open(ch, "a/b", &o, NULL);
        torc_stream_send(call, data, size, TORC_SEND_LAST, -1);
        r = torc_stream_finish(call);
        take(&out, r);
        torc_result_free(r);
        break;
    default:
        assert_int_equal(torc_unary_async(ch, "a/b", data, size, &o, on_unary, &out, NULL, NULL), 0);
        wait_for(&out);
        break;
    }
    torc_stream_free(call);
    return out;
}

/* Asserts the status code, and that the status text contains `part`. */
static void expect(enum way way, const struct outcome *o, int code, const char *part)
{
    if (o->code != code || !strstr(o->message, part))
        fail_msg("way %d: %d '%s', not %d '%s'", way, o->code, o->message, code, part);
}

#define HEDGED                                                                                                         \
    "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0s\","                  \
    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}"

#if SIZE_MAX > UINT32_MAX /* elsewhere nothing is that large */
/* gRPC's prefix of a message has 32 bits for the length: a message of 5 GiB is rejected. Nothing reads the pages of
 * this message, so they take no memory. */
static void test_beyond_4_gib(void **state)
{
    (void)state;
    size_t size = (size_t)5 << 30;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    static const char *const configs[] = {"{}", HEDGED};
    for (size_t i = 0; i < 2; i++) {
        torc_channel *ch = open_with(configs[i], NULL);
        for (int gzip = 0; gzip < 2; gzip++) {
            for (int way = 0; way < N_WAYS; way++) {
                struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 20000, .gzip = gzip};
                struct outcome out = send_by((enum way)way, ch, data, size, &o);
                expect((enum way)way, &out, TORC_STATUS_RESOURCE_EXHAUSTED,
                       "message to send larger than max (5368709120 vs. 4294967295)");
            }
        }
        torc_channel_free(ch);
    }
    munmap(data, size);
}
#endif

#define LIMITS(request, response)                                                                                      \
    "{\"methodConfig\":[{\"name\":[{}],\"maxRequestMessageBytes\":" request ",\"maxResponseMessageBytes\":" response   \
    "}]}"

/* service_config.proto: the size after compression counts. The channel's option limits the same size. */
static void test_limit_of_a_compressed_request(void **state)
{
    (void)state;
    size_t size = 100000;
    char *text = malloc(size);
    memset(text, 'a', size);
    struct torc_channel_options channel_options = {
        TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(), .max_send_message_bytes = 1000};
    for (int by_option = 0; by_option < 2; by_option++) {
        torc_channel *ch = open_with(by_option ? "{}" : LIMITS("1000", "200000"), by_option ? &channel_options : NULL);
        for (int way = 0; way < N_WAYS; way++) {
            struct torc_call_options o = {TORC_SIZE(torc_call_options), .gzip = TORC_ON};
            struct outcome out = send_by((enum way)way, ch, text, size, &o);
            expect((enum way)way, &out, TORC_STATUS_OK, "");
            o.gzip = TORC_OFF;
            out = send_by((enum way)way, ch, text, size, &o);
            expect((enum way)way, &out, TORC_STATUS_RESOURCE_EXHAUSTED,
                   "message to send larger than max (100000 vs. 1000)");
        }
        torc_channel_free(ch);
    }
    /* Compressed, these 8 bytes are larger than the limit of 20. */
    torc_channel *ch = open_with(LIMITS("20", "20"), NULL);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .gzip = TORC_ON};
    struct outcome out = send_by(UNARY, ch, "12345678", 8, &o);
    expect(UNARY, &out, TORC_STATUS_RESOURCE_EXHAUSTED, " vs. 20)");
    free(text);
    torc_channel_free(ch);
}

/* The smallest limits: one byte by the options, 0 by the service config. A limit of 0 lets empty messages pass. */
static void test_limits_of_nothing(void **state)
{
    (void)state;
    struct torc_channel_options receive = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    struct torc_channel_options send = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    receive.max_receive_message_bytes = 1;
    send.max_send_message_bytes = 1;
    struct {
        const char *config;
        struct torc_channel_options *options;
        size_t most;
        const char *text;
    } rows[] = {
        {"{}", &receive, 1, "received message larger than max (2 vs. 1)"},
        {"{}", &send, 1, "message to send larger than max (2 vs. 1)"},
        {LIMITS("100", "0"), NULL, 0, "received message larger than max (1 vs. 0)"},
        {LIMITS("0", "100"), NULL, 0, "message to send larger than max (1 vs. 0)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        torc_channel *ch = open_with(rows[i].config, rows[i].options);
        for (int way = 0; way < N_WAYS; way++) {
            struct outcome out = send_by((enum way)way, ch, "xy", rows[i].most, NULL);
            expect((enum way)way, &out, TORC_STATUS_OK, "");
            out = send_by((enum way)way, ch, "xy", rows[i].most + 1, NULL);
            expect((enum way)way, &out, TORC_STATUS_RESOURCE_EXHAUSTED, rows[i].text);
        }
        torc_channel_free(ch);
    }
}

/* The channel's limit of request headers: the status names the option. A channel with a limit that is out of range is
 * not made. */
static void test_request_headers(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .max_request_header_bytes = 2000};
    torc_channel *ch = open_with("{}", &o);
    char value[2001];
    memset(value, 'v', 2000);
    value[2000] = '\0';
    for (int way = 0; way < N_WAYS; way++) {
        struct torc_call_options co = {TORC_SIZE(torc_call_options)};
        torc_metadata *m = torc_metadata_new();
        torc_metadata_add(m, "k", value, 1000);
        co.metadata = m;
        struct outcome out = send_by((enum way)way, ch, "x", 1, &co);
        expect((enum way)way, &out, TORC_STATUS_OK, "");
        torc_metadata_add(m, "l", value, 1000);
        out = send_by((enum way)way, ch, "x", 1, &co);
        expect((enum way)way, &out, TORC_STATUS_RESOURCE_EXHAUSTED,
               "request headers larger than max_request_header_bytes (");
        torc_metadata_free(m);
    }
#if SIZE_MAX > UINT32_MAX
    /* Headers and message are both too large: the number of attempts stays 0. */
    const size_t size = (size_t)UINT32_MAX + 2;
    void *none = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(none, MAP_FAILED);
    torc_metadata *large = torc_metadata_new();
    torc_metadata_add(large, "k", value, 2000);
    struct torc_call_options co = {TORC_SIZE(torc_call_options), .metadata = large};
    torc_result *r = torc_unary(ch, "a/b", none, size, &co);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(torc_result_attempts(r), 0);
    torc_result_free(r);
    torc_metadata_free(large);
    munmap(none, size);
#endif
    torc_channel_free(ch);
    static const int64_t bad[] = {-1, 268435457, INT64_MAX};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        torc_error *error = NULL;
        o.max_request_header_bytes = bad[i];
        assert_null(torc_channel_new(rt, "ipv4:127.0.0.1:1", &o, &error));
        assert_non_null(strstr(torc_error_text(error), "max_request_header_bytes"));
        torc_error_clear(&error);
    }
}

#define POLICY(text)                                                                                                   \
    "{\"methodConfig\":[{\"name\":[{}]," text "}],\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}"

/* Asserts that an RPC that the server fails still gets all its attempts: the rejected requests took no throttling
 * tokens. */
static void expect_all_attempts(torc_channel *ch)
{
    torc_result *r = torc_unary(ch, "torc.test.Backend/Fail", "14", 2, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 3);
    torc_result_free(r);
}

/* A request rejected by a limit on this side does not count as an attempt; retry and hedging do not repeat it. */
static void test_refused_is_not_tried_again(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "{}",
        POLICY("\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"3600s\",\"maxBackoff\":\"3600s\","
               "\"backoffMultiplier\":1,\"retryableStatusCodes\":[\"RESOURCE_EXHAUSTED\"]}"),
        POLICY("\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0s\","
               "\"nonFatalStatusCodes\":[\"RESOURCE_EXHAUSTED\",\"UNAVAILABLE\"]}"),
        POLICY("\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"3600s\","
               "\"nonFatalStatusCodes\":[\"RESOURCE_EXHAUSTED\",\"UNAVAILABLE\"]}"),
    };
    char value[3001];
    memset(value, 'v', 3000);
    value[3000] = '\0';
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add(m, "k", value, 3000);
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                         .max_request_header_bytes = 2000, .max_send_message_bytes = 2000};
        torc_channel *ch = open_with(configs[i], &o);
        assert_int_equal(torc_channel_connect(ch, 60000), 0);
        uint64_t before = kit_backends_counts(kit, 0).requests;
        for (int way = 0; way < N_WAYS; way++) {
            struct torc_call_options co = {TORC_SIZE(torc_call_options)};
            co.timeout_ms = 60000; /* less than the 3600 s of the policies */
            struct outcome message = send_by((enum way)way, ch, value, 3000, &co);
            expect((enum way)way, &message, TORC_STATUS_RESOURCE_EXHAUSTED, "message to send larger than max (3000");
            co.metadata = m;
            struct outcome headers = send_by((enum way)way, ch, "x", 1, &co);
            expect((enum way)way, &headers, TORC_STATUS_RESOURCE_EXHAUSTED, "request headers larger than ");
            if (headers.attempts != 0 || message.attempts != 0)
                fail_msg("config %zu, way %d: %u attempts for headers, %u for a message", i, way, headers.attempts,
                         message.attempts);
        }
        assert_int_equal(kit_backends_counts(kit, 0).requests, before);
        if (i >= 2)
            expect_all_attempts(ch);
        torc_channel_free(ch);
    }
    torc_metadata_free(m);
}

/* A call whose deadline has passed is not sent, whether the channel is connected or not. */
static void test_deadlines_that_have_passed(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "{}",
        HEDGED,
        "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"0s\"}]}",
        "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"0s\",\"waitForReady\":true}]}",
        ("{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"0s\",\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":"
         "\"0s\",\"nonFatalStatusCodes\":[\"DEADLINE_EXCEEDED\"]}}]}"),
    };
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        for (int connected = 0; connected < 2; connected++) {
            torc_channel *ch = open_with(configs[i], NULL);
            if (connected)
                assert_int_equal(torc_channel_connect(ch, 60000), 0);
            uint64_t before = kit_backends_counts(kit, 0).requests;
            for (int way = 0; way < N_WAYS; way++) {
                struct torc_call_options o = {TORC_SIZE(torc_call_options)};
                if (i < 2)
                    o.timeout_ms = -1;
                struct outcome out = send_by((enum way)way, ch, "x", 1, &o);
                expect((enum way)way, &out, TORC_STATUS_DEADLINE_EXCEEDED, "deadline exceeded after 0.000 s, before");
                assert_int_equal(out.attempts, 0);
            }
            /* After the late calls, a call with time left succeeds. A config with a timeout of 0 s leaves no time. */
            struct torc_call_options o = {TORC_SIZE(torc_call_options)};
            if (i < 2) {
                struct outcome out = send_by(UNARY, ch, "x", 1, &o);
                expect(UNARY, &out, TORC_STATUS_OK, "");
            }
            assert_in_range(kit_backends_counts(kit, 0).requests - before, i < 2, i < 2 ? 3 : 0);
            torc_channel_free(ch);
        }
    }
}

/* torc_explain of a call whose deadline has passed shows the failure that the call would have. */
static void test_explained_deadline(void **state)
{
    (void)state;
    torc_channel *ch = open_with("{}", NULL);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = -1};
    torc_result *r = torc_explain(ch, "a/b", &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_explain(r), "\"outcome\":\"fail\""));
    torc_result_free(r);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if SIZE_MAX > UINT32_MAX
        cmocka_unit_test_setup_teardown(test_beyond_4_gib, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_limit_of_a_compressed_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_request_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_is_not_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadlines_that_have_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_explained_deadline, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
