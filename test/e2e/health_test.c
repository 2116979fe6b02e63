/* grpc.health.v1 of a server (torc/health.h), asked by a channel on the same runtime over a real socket: Check,
 * Watch and List, torc_health_shutdown, the stop of the server, clients that read slowly or send malformed requests,
 * limits, and misuse.
 *
 * For each test setup makes a runtime with a thread of its own, a started server, its health service and a channel to
 * the server. test_slow_reader has setup_caller instead, and drives the loop itself. teardown frees all of this. Some
 * tests make a second server on the runtime, and free it. The tests write requests and compare responses as bytes of
 * protobuf. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt;
static torc_server *server;
static torc_health *health;
static torc_channel *ch;

static int setup_in(int mode)
{
    char *bound;
    torc_error *error = NULL;
    rt = kit_backends_runtime(mode);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, &error);
    health = torc_health_new(server, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    assert_string_equal(torc_error_text(error), "");
    ch = torc_channel_new(rt, bound, NULL, NULL);
    torc_free(bound);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_in(TORC_RUNTIME_THREAD);
}

static int setup_caller(void **state)
{
    (void)state;
    return setup_in(TORC_RUNTIME_CALLER);
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    torc_server_free(server);
    torc_health_free(health);
    return torc_runtime_free(rt);
}

/* Asks Check about a service. Returns the service's status, or the negative code of an RPC that failed. */
static int check(const char *service)
{
    char request[64];
    int n = snprintf(request, sizeof(request), "\n%c%s", (char)strlen(service), service);
    torc_result *r = torc_unary(ch, "grpc.health.v1.Health/Check", request, *service ? (size_t)n : 0, NULL);
    const torc_message *m = torc_result_response(r);
    int status = -torc_result_code(r);
    if (status == 0 && torc_message_size(m) == 2 && *(const char *)torc_message_data(m) == 8)
        status = ((const char *)torc_message_data(m))[1];
    torc_result_free(r);
    return status;
}

/* Starts a Watch of the service. The caller frees the stream with torc_stream_free. */
static torc_stream *watch(const char *service)
{
    char request[64];
    int n = snprintf(request, sizeof(request), "\n%c%s", (char)strlen(service), service);
    torc_stream *s = torc_stream_open(ch, "grpc.health.v1.Health/Watch", NULL, NULL);
    assert_int_equal(torc_stream_send(s, request, (size_t)n, TORC_SEND_LAST, -1), 0);
    return s;
}

/* Receives the next response, and asserts its status. Not for TORC_HEALTH_UNKNOWN, whose response is empty. */
static void expect_next(torc_stream *s, int status)
{
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_message_size(m), 2);
    assert_int_equal(((const char *)torc_message_data(m))[1], status);
}

static void test_check(void **state)
{
    TC_CASE(HC01);
    (void)state;
    assert_int_equal(check(""), TORC_HEALTH_SERVING);
    assert_int_equal(check("a.B"), -TORC_STATUS_NOT_FOUND);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_NOT_SERVING), 0);
    assert_int_equal(check("a.B"), TORC_HEALTH_NOT_SERVING);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_UNKNOWN), 0);
    assert_int_equal(check("a.B"), TORC_HEALTH_UNKNOWN);
    assert_int_equal(torc_health_set(health, "", TORC_HEALTH_NOT_SERVING), 0);
    assert_int_equal(check(""), TORC_HEALTH_NOT_SERVING);
}

static void test_watch(void **state)
{
    TC_CASE(HC02);
    TC_CASE(HC03);
    (void)state;
    torc_stream *s = watch("a.B");
    expect_next(s, 3); /* SERVICE_UNKNOWN */
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_SERVING), 0);
    expect_next(s, TORC_HEALTH_SERVING);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_SERVING), 0);
    assert_int_equal(torc_health_set(health, "other", TORC_HEALTH_SERVING), 0);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_NOT_SERVING), 0);
    expect_next(s, TORC_HEALTH_NOT_SERVING);
    torc_stream_free(s);
}

static void test_shutdown(void **state)
{
    TC_CASE(HC04);
    (void)state;
    torc_stream *s = watch("a.B");
    expect_next(s, 3);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_SERVING), 0);
    expect_next(s, TORC_HEALTH_SERVING);
    torc_health_shutdown(health);
    expect_next(s, TORC_HEALTH_NOT_SERVING);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_SERVING), TORC_ESTATE);
    assert_int_equal(check("a.B"), TORC_HEALTH_NOT_SERVING);
    assert_int_equal(check(""), TORC_HEALTH_NOT_SERVING);
    torc_stream_free(s);
}

/* When the server stops, a watcher is sent NOT_SERVING first. */
static void test_stop(void **state)
{
    (void)state;
    torc_stream *s = watch("");
    expect_next(s, TORC_HEALTH_SERVING);
    assert_int_equal(torc_server_stop_async(server, -1, free, NULL), 0);
    expect_next(s, TORC_HEALTH_NOT_SERVING);
    torc_stream_free(s);
    assert_int_equal(torc_server_stop(server, -1), 0);
}

/* Asks List. Returns the status code of the RPC, and in *size the size of the response. Asserts that the first service
 * of a response is "", and SERVING. */
static int listed(size_t *size)
{
    torc_result *r = torc_unary(ch, "grpc.health.v1.Health/List", NULL, 0, NULL);
    int code = torc_result_code(r);
    *size = torc_message_size(torc_result_response(r));
    if (code == TORC_STATUS_OK)
        assert_memory_equal(torc_message_data(torc_result_response(r)), "\n\6\n\0\22\2\10\1", 8); /* "": SERVING */
    torc_result_free(r);
    return code;
}

static void test_list(void **state)
{
    TC_CASE(HC05);
    (void)state;
    size_t size;
    char name[16];
    for (int i = 1; i < 100; i++) {
        snprintf(name, sizeof(name), "a.B%03d", i);
        assert_int_equal(torc_health_set(health, name, TORC_HEALTH_SERVING), 0);
    }
    assert_int_equal(listed(&size), TORC_STATUS_OK);
    assert_int_equal(size, 8 + 99 * 14);
    assert_int_equal(torc_health_set(health, "one more", TORC_HEALTH_SERVING), 0);
    assert_int_equal(listed(&size), TORC_STATUS_RESOURCE_EXHAUSTED);
}

/* A client that reads late gets the status that was queued for it already, then only the newest. The test drives the
 * loop, which does not run between the changes. */
static void test_slow_reader(void **state)
{
    TC_CASE(HC06);
    (void)state;
    torc_stream *s = watch("a.B");
    expect_next(s, 3);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(torc_health_set(health, "a.B", i % 2 ? TORC_HEALTH_SERVING : TORC_HEALTH_NOT_SERVING), 0);
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_UNKNOWN), 0);
    expect_next(s, TORC_HEALTH_NOT_SERVING);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_message_size(m), 0); /* UNKNOWN */
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_SERVING), 0);
    expect_next(s, TORC_HEALTH_SERVING);
    torc_stream_free(s);
}

/* Bytes that cannot be parsed as a HealthCheckRequest, and names that are not UTF-8, are INTERNAL. Unknown fields are
 * skipped. */
static void test_malformed_request(void **state)
{
    TC_CASE(HC07);
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        int code;
    } rows[] = {
        {"\xff\xff\xff", 3, TORC_STATUS_INTERNAL},  /* a tag cut short */
        {"\n", 1, TORC_STATUS_INTERNAL},            /* no length */
        {"\n\5a.B", 5, TORC_STATUS_INTERNAL},       /* a string cut short */
        {"\n\1a\x10", 4, TORC_STATUS_INTERNAL},     /* a number without a value behind the name */
        {"\n\2\xc3\x28", 4, TORC_STATUS_INTERNAL},  /* not UTF-8 */
        {"\x12\1a", 3, TORC_STATUS_OK},             /* a field of later versions: the service is "" */
        {"\n\1x\n\3a.B\x10\1", 10, TORC_STATUS_OK}, /* the last name counts */
    };
    static const char *const methods[] = {"grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch"};
    assert_int_equal(torc_health_set(health, "a.B", TORC_HEALTH_SERVING), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) * 2; i++) {
        const char *method = methods[i % 2];
        if (i % 2 && rows[i / 2].code == TORC_STATUS_OK)
            continue; /* the watch does not end */
        torc_result *r = torc_unary(ch, method, rows[i / 2].bytes, rows[i / 2].size, NULL);
        if (torc_result_code(r) != rows[i / 2].code)
            fail_msg("row %zu, %s: %d %s", i / 2, method, torc_result_code(r), torc_error_text(torc_result_error(r)));
        torc_result_free(r);
    }
}

/* A HealthListRequest has no fields: unknown fields are skipped, malformed bytes are an error. */
static void test_malformed_list_request(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        int code;
    } rows[] = {
        {"\xff\xff\xff", 3, TORC_STATUS_INTERNAL}, {"\n\5a.B", 5, TORC_STATUS_INTERNAL}, {"\n\1a", 3, TORC_STATUS_OK}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        torc_result *r = torc_unary(ch, "grpc.health.v1.Health/List", rows[i].bytes, rows[i].size, NULL);
        assert_int_equal(torc_result_code(r), rows[i].code);
        torc_result_free(r);
    }
}

/* A client cannot make each watch hold a large request. */
static void test_large_request(void **state)
{
    (void)state;
    char request[5000] = {0};
    torc_result *r = torc_unary(ch, "grpc.health.v1.Health/Watch", request, sizeof(request), NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
}

static void on_own(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    torc_server_call_reply(call, NULL, 0);
}

/* Limits of the application hold for the service, also the limits of "*" and limits that are set after torc_health_new.
 * Where they leave the size of a request unset, the service's own limit stays. */
static void test_limits(void **state)
{
    (void)state;
    const struct torc_method_options all = {TORC_SIZE(torc_method_options), .max_timeout_ms = 10},
                                     check = {TORC_SIZE(torc_method_options), .max_receive_message_bytes = 3};
    char request[5000] = {0}, *bound;
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    torc_server *other = torc_server_new(&o, NULL);
    torc_health *h = torc_health_new(other, NULL);
    assert_int_equal(torc_server_limit(other, "*", &all, NULL), 0);
    assert_int_equal(torc_server_limit(other, "grpc.health.v1.Health/Check", &check, NULL), 0);
    torc_server_listen(other, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL);
    assert_int_equal(torc_server_start(other, NULL), 0);
    torc_channel *to = torc_channel_new(rt, bound, NULL, NULL);
    static const struct {
        const char *method;
        size_t size;
        int code;
    } rows[] = {{"Watch", 0, TORC_STATUS_DEADLINE_EXCEEDED},
                {"Watch", 5000, TORC_STATUS_RESOURCE_EXHAUSTED},
                {"Check", 4, TORC_STATUS_RESOURCE_EXHAUSTED}};
    for (size_t i = 0; i < 3; i++) {
        char method[64];
        snprintf(method, sizeof(method), "grpc.health.v1.Health/%s", rows[i].method);
        torc_stream *s = torc_stream_open(to, method, NULL, NULL);
        torc_stream_send(s, request, rows[i].size, TORC_SEND_LAST, -1);
        torc_result *r = torc_stream_finish(s);
        assert_int_equal(torc_result_code(r), rows[i].code);
        torc_result_free(r);
        torc_stream_free(s);
    }
    torc_channel_free(to);
    torc_server_free(other);
    torc_health_free(h);
    torc_free(bound);
}

/* If torc_health_new fails, it adds no method to the server. */
static void test_all_or_nothing(void **state)
{
    (void)state;
    const struct torc_handler own = {TORC_SIZE(torc_handler), .unary = on_own};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    torc_server *other = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(other, "grpc.health.v1.Health/Watch", &own, NULL), 0);
    assert_null(torc_health_new(other, NULL));
    assert_int_equal(torc_server_add_method(other, "grpc.health.v1.Health/Check", &own, NULL), 0);
    torc_server_free(other);
}

static void test_misuse(void **state)
{
    (void)state;
    torc_error *e = NULL;
    char long_name[1100];
    memset(long_name, 'a', sizeof(long_name));
    long_name[1025] = '\0';
    assert_int_equal(torc_health_set(NULL, "", 1), TORC_EINVAL);
    assert_int_equal(torc_health_set(health, NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_health_set(health, "", 3), TORC_EINVAL);
    assert_int_equal(torc_health_set(health, "", -1), TORC_EINVAL);
    assert_int_equal(torc_health_set(health, "\xff", 1), TORC_EINVAL);
    assert_int_equal(torc_health_set(health, long_name, 1), TORC_EINVAL);
    long_name[1024] = '\0';
    assert_int_equal(torc_health_set(health, long_name, 1), 0);
    torc_health_shutdown(NULL);
    torc_health_free(NULL);
    assert_null(torc_health_new(NULL, &e));
    assert_int_equal(torc_error_code(e), TORC_EINVAL);
    torc_error_clear(&e);
    assert_null(torc_health_new(server, &e));
    assert_int_equal(torc_error_code(e), TORC_ESTATE); /* the server was started */
    torc_error_clear(&e);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    torc_server *other = torc_server_new(&o, NULL);
    torc_health *first = torc_health_new(other, NULL);
    assert_non_null(first);
    assert_null(torc_health_new(other, &e));
    assert_int_equal(torc_error_code(e), TORC_EEXIST);
    torc_error_clear(&e);
    torc_server_free(other);
    assert_int_equal(torc_health_set(first, "", TORC_HEALTH_NOT_SERVING), 0);
    torc_health_free(first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_check),
        TEST(test_watch),
        TEST(test_shutdown),
        TEST(test_stop),
        TEST(test_list),
        cmocka_unit_test_setup_teardown(test_slow_reader, setup_caller, teardown),
        TEST(test_malformed_request),
        TEST(test_malformed_list_request),
        TEST(test_large_request),
        TEST(test_limits),
        TEST(test_all_or_nothing),
        TEST(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
