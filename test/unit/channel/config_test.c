/* Service configs, metadata, and options, without a channel or a runtime.
 *
 * Of service configs, what tc_service_config_parse reads and what it refuses. Of metadata, which fields it takes, and
 * its copies. Of options, the defaults of channels and runtimes, and how those of a channel are checked and completed.
 * A test that sets a variable of the environment unsets it at its end. */
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "api/builtin.h"
#include "api/metadata.h"
#include "base/mem.h"
#include "base/options.h"
#include "channel/options.h"
#include "channel/service_config.h"
#include "support/case.h"
#include "support/cmocka.h"

/* Returns a reference to the config, or NULL if `json` is not valid. Asserts that a reason comes exactly with NULL. */
static struct tc_service_config *parse(const char *json)
{
    char *why = NULL;
    struct tc_service_config *c = tc_service_config_parse(tc_builtin_policies(), tc_slice_str(json), &why);
    assert_true((c == NULL) == (why != NULL));
    tc_free(why);
    return c;
}

static void test_methods(void **state)
{
    (void)state;
    struct tc_service_config *c =
        parse("{\"unknown\":1,\"methodConfig\":["
              "{\"name\":[{}],\"timeout\":\"3s\"},"
              "{\"name\":[{\"service\":\"a.B\"},{\"service\":\"a.C\"}],\"timeout\":\"2.5s\",\"waitForReady\":true},"
              "{\"name\":[{\"service\":\"a.B\",\"method\":\"M\"}],\"waitForReady\":false,"
              "\"hedgingPolicy\":{\"maxAttempts\":3},\"maxRequestMessageBytes\":\"10\"}]}");
    assert_non_null(c);
    assert_null(tc_service_config_lb(c));
    const struct tc_method_config *m = tc_service_config_method(c, tc_slice_str("/a.B/M"));
    assert_true(m->timeout_ns == UINT64_MAX);
    assert_int_equal(m->wait_for_ready, 0);
    assert_int_equal(m->max_request_bytes, 10);
    assert_true(m->max_response_bytes == UINT64_MAX);
    m = tc_service_config_method(c, tc_slice_str("/a.B/Other"));
    assert_int_equal(m->timeout_ns, 2500000000);
    assert_int_equal(m->wait_for_ready, 1);
    assert_ptr_equal(m, tc_service_config_method(c, tc_slice_str("/a.C/M")));
    m = tc_service_config_method(c, tc_slice_str("/x/y"));
    assert_int_equal(m->timeout_ns, 3000000000);
    assert_int_equal(m->wait_for_ready, -1);
    tc_service_config_unref(c);
    /* 0 differs from a field that is absent. */
    c = parse("{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"0s\",\"maxRequestMessageBytes\":0,"
              "\"maxResponseMessageBytes\":0}]}");
    m = tc_service_config_method(c, tc_slice_str("/a.B/M"));
    assert_int_equal(m->timeout_ns, 0);
    assert_int_equal(m->max_request_bytes, 0);
    assert_int_equal(m->max_response_bytes, 0);
    tc_service_config_unref(c);
}

static void test_policies(void **state)
{
    (void)state;
    struct tc_service_config *c = parse("{\"loadBalancingPolicy\":\"ROUND_ROBIN\"}");
    assert_string_equal(tc_service_config_lb(c)->factory->name, "round_robin");
    tc_service_config_unref(c);
    /* loadBalancingConfig wins over loadBalancingPolicy, and its first known entry is taken. */
    c = parse("{\"loadBalancingPolicy\":\"round_robin\",\"loadBalancingConfig\":[{\"unheard_of\":{}},"
              "{\"pick_first\":{}}]}");
    assert_string_equal(tc_service_config_lb(c)->factory->name, "pick_first");
    tc_service_config_unref(c);
    c = parse("{}");
    assert_null(tc_service_config_lb(c));
    assert_null(tc_service_config_method(c, tc_slice_str("/a/b")));
    tc_service_config_unref(c);
}

static void test_invalid(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{\"loadBalancingConfig\":[{\"unheard_of\":{}}]}",
        "{\"loadBalancingConfig\":{}}",
        "{\"loadBalancingPolicy\":\"unheard_of\"}",
        "{\"methodConfig\":{}}",
        "{\"methodConfig\":[1]}",
        "{\"methodConfig\":[{\"name\":[{\"method\":\"m\"}]}]}",
        "{\"methodConfig\":[{\"name\":[{\"service\":\"s\"}]},{\"name\":[{\"service\":\"s\"}]}]}",
        "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"3\"}]}",
        "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"3ms\"}]}",
        "{\"methodConfig\":[{\"name\":[{}],\"waitForReady\":\"yes\"}]}",
        "{\"methodConfig\":[{\"name\":[{}],\"maxRequestMessageBytes\":-1}]}",
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        assert_null(parse(bad[i]));
}

#define RETRY(fields) "{\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{" fields "}}]}"
#define BACKOFF "\"initialBackoff\":\"0.1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":1.5,"

static void test_retries(void **state)
{
    (void)state;
    struct tc_service_config *c =
        parse("{\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1237},\"methodConfig\":[{\"name\":[{}],"
              "\"hedgingPolicy\":null,"
              "\"retryPolicy\":{\"maxAttempts\":4," BACKOFF "\"retryableStatusCodes\":[\"unavailable\",10]}}]}");
    const struct tc_retry_policy *p = &tc_service_config_method(c, tc_slice_str("/a/b"))->retry;
    assert_int_equal(p->max_attempts, 4);
    assert_int_equal(p->backoff.initial_ms, 100);
    assert_int_equal(p->backoff.max_ms, 1000);
    assert_true(p->backoff.multiplier == 1.5 && p->backoff.jitter == 0.2);
    assert_int_equal(p->codes, 1u << TORC_STATUS_UNAVAILABLE | 1u << TORC_STATUS_ABORTED);
    const struct tc_retry_throttle *settings = tc_service_config_throttle(c);
    assert_int_equal(settings->max, 10000);
    assert_int_equal(settings->ratio, 123);
    /* Equal settings leave the tokens as they are. */
    struct tc_retry_throttle t = {0};
    tc_retry_throttle_update(&t, settings);
    assert_int_equal(t.tokens, 10000);
    t.tokens = 77;
    tc_retry_throttle_update(&t, settings);
    assert_int_equal(t.tokens, 77);
    tc_service_config_unref(c);
    c = parse(RETRY("\"maxAttempts\":9," BACKOFF "\"retryableStatusCodes\":[14]"));
    assert_int_equal(tc_service_config_method(c, tc_slice_str("/a/b"))->retry.max_attempts, 5);
    assert_int_equal(tc_service_config_throttle(c)->max, 0);
    tc_service_config_unref(c);
}

static void test_bad_retries(void **state)
{
    (void)state;
    static const char *const bad[] = {
        RETRY(""),
        RETRY("\"maxAttempts\":3"),
        RETRY("\"maxAttempts\":1," BACKOFF "\"retryableStatusCodes\":[14]"),
        RETRY("\"maxAttempts\":-1," BACKOFF "\"retryableStatusCodes\":[14]"),
        RETRY("\"maxAttempts\":3," BACKOFF "\"retryableStatusCodes\":[]"),
        RETRY("\"maxAttempts\":3," BACKOFF "\"retryableStatusCodes\":[17]"),
        RETRY("\"maxAttempts\":3," BACKOFF "\"retryableStatusCodes\":[\"WHATEVER\"]"),
        RETRY("\"maxAttempts\":3," BACKOFF "\"retryableStatusCodes\":14"),
        RETRY("\"maxAttempts\":null," BACKOFF "\"retryableStatusCodes\":[14]"),
        RETRY("\"maxAttempts\":3," BACKOFF "\"retryableStatusCodes\":null"),
        RETRY("\"maxAttempts\":3,\"initialBackoff\":null,\"maxBackoff\":\"1s\",\"backoffMultiplier\":2,"
              "\"retryableStatusCodes\":[14]"),
        "{\"retryThrottling\":{\"maxTokens\":null,\"tokenRatio\":1}}",
        RETRY("\"maxAttempts\":3,\"initialBackoff\":\"0s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":2,"
              "\"retryableStatusCodes\":[14]"),
        RETRY("\"maxAttempts\":3,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1\",\"backoffMultiplier\":2,"
              "\"retryableStatusCodes\":[14]"),
        RETRY("\"maxAttempts\":3,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":0,"
              "\"retryableStatusCodes\":[14]"),
        "{\"retryThrottling\":{}}",
        "{\"retryThrottling\":{\"maxTokens\":0,\"tokenRatio\":1}}",
        "{\"retryThrottling\":{\"maxTokens\":1001,\"tokenRatio\":1}}",
        "{\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0}}",
        "{\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":\"x\"}}",
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        assert_null(parse(bad[i]));
}

/* Asserts the whole error of a service config. */
static void expect_error(const char *text, const char *error)
{
    char *why = NULL;
    assert_null(tc_service_config_parse(tc_builtin_policies(), tc_slice_str(text), &why));
    assert_string_equal(why, error);
    tc_free(why);
}

/* One error for each field, with the range of a number. */
static void test_texts_of_bad_retries(void **state)
{
    (void)state;
    expect_error(RETRY("\"maxAttempts\":-1," BACKOFF "\"retryableStatusCodes\":[14]"),
                 "service config: field methodConfig[0].retryPolicy.maxAttempts: must be a whole number from 2 to "
                 "4294967295");
    expect_error(RETRY("\"maxAttempts\":3,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":null,"
                       "\"retryableStatusCodes\":[14]"),
                 "service config: field methodConfig[0].retryPolicy: backoffMultiplier is missing");
    expect_error(
        "{\"retryThrottling\":{\"maxTokens\":-1,\"tokenRatio\":null}}",
        "service config: field retryThrottling: tokenRatio is missing; field retryThrottling.maxTokens: must be a "
        "whole number from 1 to 1000");
    expect_error("{\"retryThrottling\":{\"maxTokens\":1001,\"tokenRatio\":1}}",
                 "service config: field retryThrottling.maxTokens: must be a whole number from 1 to 1000");
}

#define HEDGE(fields) "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{" fields "}}]}"

static void test_hedging(void **state)
{
    (void)state;
    struct tc_service_config *c = parse(HEDGE(
        "\"maxAttempts\":7,\"hedgingDelay\":\"0.25s\",\"nonFatalStatusCodes\":[\"unavailable\",10,\"INTERNAL\"]"));
    const struct tc_retry_policy *p = &tc_service_config_method(c, tc_slice_str("/a/b"))->retry;
    assert_true(p->hedging);
    assert_int_equal(p->max_attempts, 5);
    assert_int_equal(p->hedging_delay_ns, 250000000);
    assert_int_equal(p->codes, 1u << TORC_STATUS_UNAVAILABLE | 1u << TORC_STATUS_ABORTED | 1u << TORC_STATUS_INTERNAL);
    tc_service_config_unref(c);
    c = parse(HEDGE("\"maxAttempts\":2"));
    p = &tc_service_config_method(c, tc_slice_str("/a/b"))->retry;
    assert_int_equal(p->hedging_delay_ns, 0);
    assert_int_equal(p->codes, 0);
    tc_service_config_unref(c);
    static const char *const bad[] = {
        HEDGE(""),
        HEDGE("\"maxAttempts\":1"),
        HEDGE("\"maxAttempts\":\"x\""),
        HEDGE("\"maxAttempts\":2,\"hedgingDelay\":1"),
        HEDGE("\"maxAttempts\":2,\"nonFatalStatusCodes\":[\"NONE\"]"),
        HEDGE("\"maxAttempts\":2},\"retryPolicy\":{\"maxAttempts\":3," BACKOFF "\"retryableStatusCodes\":[14]"),
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        assert_null(parse(bad[i]));
}

static void test_metadata_rules(void **state)
{
    (void)state;
    torc_metadata *m = torc_metadata_new();
    static const char *const refused[] = {"",           "a b",  ":path",       "grpc-timeout", "Grpc-X",
                                          "te",         "TE",   "user-agent",  "h\xc3\xa4",    "a=b",
                                          "connection", "host", "content-type"};
    for (size_t i = 0; i < TC_ARRAY_LEN(refused); i++)
        assert_int_equal(torc_metadata_add_string(m, refused[i], "v"), TORC_EINVAL);
    assert_int_equal(torc_metadata_add_string(m, "k", "line\nbreak"), TORC_EINVAL);
    assert_int_equal(torc_metadata_add(m, "k", "nul\0", 4), TORC_EINVAL);
    assert_int_equal(torc_metadata_add_string(m, "k", "a\tb"), TORC_EINVAL);
    assert_int_equal(torc_metadata_add_string(m, "k", "\xc3\xa4"), TORC_EINVAL);
    static const char *const times[] = {"", "-", "soon", "1.5", " 1", "--1", "2147483648", "-2147483649"};
    for (size_t i = 0; i < TC_ARRAY_LEN(times); i++)
        assert_int_equal(torc_metadata_add_string(m, "grpc-retry-pushback-ms", times[i]), TORC_EINVAL);
    assert_int_equal(torc_metadata_count(m), 0);
    torc_metadata *pushbacks = torc_metadata_new();
    static const char *const allowed[] = {"0", "-1", "2147483647", "-2147483648"};
    for (size_t i = 0; i < TC_ARRAY_LEN(allowed); i++)
        assert_int_equal(torc_metadata_add_string(pushbacks, "grpc-retry-pushback-ms", allowed[i]), 0);
    torc_metadata_free(pushbacks);
    assert_int_equal(torc_metadata_add_string(m, "K-1_x.y", "one"), 0);
    assert_int_equal(torc_metadata_add(m, "raw-bin", "\0\xff", 2), 0);
    assert_int_equal(torc_metadata_add_string(m, "k-1_x.y", ""), 0);
    const char *name;
    const void *value;
    size_t len;
    assert_int_equal(torc_metadata_at(m, 1, &name, &value, &len), 0);
    assert_string_equal(name, "raw-bin");
    assert_int_equal(len, 2);
    assert_memory_equal(value, "\0\xff", 2);
    assert_int_equal(torc_metadata_at(m, 3, &name, &value, &len), TORC_ENOTFOUND);
    assert_string_equal(torc_metadata_find(m, "k-1_x.y", &len), "one");
    assert_null(torc_metadata_find(m, "absent", NULL));
    assert_null(torc_metadata_find(NULL, "absent", NULL));

    /* Copies of a header list, in one block and in an arena, have the fields of the metadata. */
    struct tc_arena arena;
    tc_arena_init(&arena, 0, 0);
    struct tc_headers h;
    tc_headers_init(&h, &arena);
    assert_int_equal(tc_metadata_to_headers(m, &h), 0);
    const torc_metadata *copy, *second, *inside = tc_metadata_in_arena(&arena, &h);
    void *block = tc_metadata_copy_behind(NULL, 16, &h, &h, &copy, &second);
    for (size_t i = 0; i < 3; i++) {
        const char *n2;
        const void *v2;
        size_t l2;
        torc_metadata_at(m, i, &name, &value, &len);
        const torc_metadata *const copies[] = {copy, second, inside};
        for (size_t j = 0; j < TC_ARRAY_LEN(copies); j++) {
            assert_int_equal(torc_metadata_at(copies[j], i, &n2, &v2, &l2), 0);
            assert_string_equal(name, n2);
            assert_int_equal(len, l2);
            assert_memory_equal(value, v2, len + 1);
        }
    }
    /* Borrowed metadata takes no fields. torc_metadata_free, which no caller may use on it, leaves it as it is. */
    torc_metadata *const lent[] = {(torc_metadata *)(uintptr_t)copy, (torc_metadata *)(uintptr_t)inside};
    for (size_t i = 0; i < TC_ARRAY_LEN(lent); i++) {
        assert_int_equal(torc_metadata_add_string(lent[i], "k", "v"), TORC_EINVAL);
        torc_metadata_free(lent[i]);
        assert_int_equal(torc_metadata_count(lent[i]), 3);
    }
    tc_blocks_give(block);
    /* Headers or trailers are missing (NULL) or empty. */
    struct tc_headers nothing;
    tc_headers_init(&nothing, &arena);
    block = tc_metadata_copy_behind(NULL, 16, NULL, &h, &copy, &second);
    assert_null(copy);
    assert_int_equal(torc_metadata_count(second), 3);
    tc_blocks_give(block);
    block = tc_metadata_copy_behind(NULL, 16, &h, &nothing, &copy, &second);
    assert_int_equal(torc_metadata_count(copy), 3);
    assert_int_equal(torc_metadata_count(second), 0);
    assert_non_null(second);
    tc_blocks_give(block);
    block = tc_metadata_copy_behind(NULL, 16, &nothing, NULL, &copy, &second);
    assert_non_null(copy);
    assert_null(second);
    tc_blocks_give(block);
    tc_arena_fini(&arena);
    torc_metadata_free(m);
    torc_metadata_free(NULL);
}

/* Some defaults of options, among them limits of docs/operations/limits.md. */
static void test_defaults(void **state)
{
    (void)state;
    struct torc_channel_options o;
    struct torc_runtime_options r;
    assert_true(tc_channel_options_complete(&o, NULL, NULL));
    assert_true(tc_options_complete(TC_OPTIONS_RUNTIME, &r, NULL, NULL));
    assert_int_equal(o.max_receive_message_bytes, 4 << 20);
    assert_int_equal(o.max_header_list_bytes, 16384);
    assert_int_equal(o.max_request_header_bytes, 1 << 20);
    assert_int_equal(o.connect_timeout_ms, 20000);
    assert_int_equal(o.backoff_initial_ms, 1000);
    assert_int_equal(o.backoff_max_ms, 120000);
    assert_true(o.backoff_multiplier > 1.59 && o.backoff_multiplier < 1.61);
    assert_ptr_equal(o.credentials, torc_credentials_insecure());
    assert_int_equal(o.keepalive_time_ms, 0);
    assert_int_equal(o.retry_buffer_bytes, 256 << 10);
    assert_int_equal(o.channel_retry_buffer_bytes, 16 << 20);
    assert_int_equal(o.dns_min_interval_ms, 30000);
    assert_int_equal(o.xds_resource_timeout_ms, 15000);
    assert_int_equal(r.max_idle_connections, 1000);
    assert_int_equal(r.idle_connection_ms, 30000);
    assert_int_equal(r.csds_answer_bytes, 32 << 20);
}

static void test_options(void **state)
{
    (void)state;
    struct torc_channel_options out;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .keepalive_time_ms = 1};
    unsetenv("GRPC_RING_HASH_CAP");
    assert_true(tc_channel_options_complete(&out, &o, NULL));
    assert_int_equal(out.keepalive_time_ms, 10000);
    assert_int_equal(out.ring_size_cap, 4096);
    setenv("GRPC_RING_HASH_CAP", "100", 1);
    assert_true(tc_channel_options_complete(&out, NULL, NULL));
    assert_int_equal(out.ring_size_cap, 100);
    setenv("GRPC_RING_HASH_CAP", "8388609", 1);
    assert_true(tc_channel_options_complete(&out, NULL, NULL));
    assert_int_equal(out.ring_size_cap, 4096);
    unsetenv("GRPC_RING_HASH_CAP");
    /* A shorter struct, as of an older header: later fields have their defaults. */
    o.size = offsetof(struct torc_channel_options, authority);
    o.connect_timeout_ms = 1;
    assert_true(tc_channel_options_complete(&out, &o, NULL));
    assert_int_equal(out.connect_timeout_ms, 20000);
    o = (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .backoff_multiplier = 0.5};
    torc_error *error = NULL;
    assert_false(tc_channel_options_complete(&out, &o, &error));
    assert_non_null(strstr(torc_error_text(error), "backoff_multiplier"));
    torc_error_clear(&error);
}

static void test_authorities(void **state)
{
    static const char *const good[] = {"host", "host:80", "1.2.3.4:65535", "[::1]", "[::1]:80", "::1", "fe80::1"};
    static const char *const bad[] = {"",    "a b",    "a/b",     "host:", "host:x", "host:65536",
                                      ":80", "[::1]x", "[::1]:x", "[]:80", "[::1"};
    struct torc_channel_options out;
    torc_error *error = NULL;
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        o.authority = good[i];
        assert_true(tc_channel_options_complete(&out, &o, NULL));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o.authority = bad[i];
        assert_false(tc_channel_options_complete(&out, &o, &error));
        char *quoted = tc_asprintf("authority: \"%s\" must be host[:port]", bad[i]);
        assert_non_null(strstr(torc_error_text(error), quoted));
        tc_free(quoted);
        torc_error_clear(&error);
    }
}

static void test_health_checks(void **state)
{
    static const struct {
        const char *json, *service; /* NULL: not set */
    } rows[] = {
        {"{}", NULL},
        {"{\"healthCheckConfig\":{}}", NULL},
        {"{\"healthCheckConfig\":{\"serviceName\":\"\"}}", ""},
        {"{\"healthCheckConfig\":{\"serviceName\":\"shop.Orders\",\"later\":1}}", "shop.Orders"},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_service_config *c = parse(rows[i].json);
        assert_non_null(c);
        const struct tc_rstr *service = tc_service_config_health(c);
        if (rows[i].service)
            assert_string_equal(service->data, rows[i].service);
        else
            assert_null(service);
        tc_service_config_unref(c);
    }
    assert_null(parse("{\"healthCheckConfig\":\"s\"}"));
    assert_null(parse("{\"healthCheckConfig\":{\"serviceName\":1}}"));
}

static void test_connection_scaling(void **state)
{
    TC_CASE(CS09);
    static const char variable[] = "GRPC_EXPERIMENTAL_MAX_CONCURRENT_STREAMS_CONNECTION_SCALING";
    static const struct {
        const char *value; /* of the variable; NULL: not set */
        const char *scaling;
        uint32_t max; /* 0: refused */
    } rows[] = {
        {NULL, "{}", 1},
        {NULL, "{\"later\":1}", 1},
        {NULL, "{\"maxConnectionsPerSubchannel\":1}", 1},
        {"true", "{\"maxConnectionsPerSubchannel\":4294967295}", UINT32_MAX},
        {NULL, "{\"maxConnectionsPerSubchannel\":0}", 0},
        {NULL, "{\"maxConnectionsPerSubchannel\":-1}", 0},
        {NULL, "{\"maxConnectionsPerSubchannel\":4294967296}", 0},
        {NULL, "{\"maxConnectionsPerSubchannel\":1.5}", 0},
        {NULL, "{\"maxConnectionsPerSubchannel\":\"many\"}", 0},
        {NULL, "[]", 0},
        {"False", "{\"maxConnectionsPerSubchannel\":2}", 1},
        {"false", "{\"maxConnectionsPerSubchannel\":0}", 1},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char *json = tc_asprintf("{\"connectionScaling\":%s}", rows[i].scaling);
        if (rows[i].value)
            setenv(variable, rows[i].value, 1);
        struct tc_service_config *c = parse(json);
        if ((c ? tc_service_config_max_connections(c) : 0) != rows[i].max)
            fail_msg("%s", json);
        if (c)
            tc_service_config_unref(c);
        unsetenv(variable);
        tc_free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_metadata_rules),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_bad_retries),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_hedging),
        cmocka_unit_test(test_authorities),
        cmocka_unit_test(test_health_checks),
        cmocka_unit_test(test_connection_scaling),
        cmocka_unit_test(test_texts_of_bad_retries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
