/* torc_server on loopback: counts, the handler of "*", addresses, misuse, pushback of retries, and torc_server_free
 * inside a handler. Calls are tested in e2e/server_test.c.
 *
 * The tests share `server`, which listens on `bound`, and its runtime `rt`, whose thread calls the handlers. Channels
 * use `rt`, too. Tests that need other methods, or that stop or free a server, make a server of their own, on `rt`. But
 * test_counts has runtimes of its own: two for its server, and one for each channel. on_hang alone runs on a pool,
 * since it waits. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt;
static torc_server *server;
static char *bound;
static atomic_int releases;

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

static void on_any(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_server_call_method(call), strlen(torc_server_call_method(call)));
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void on_fail(torc_server_call *call, const torc_message *request, void *arg);

static int setup(void **state)
{
    (void)state;
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    struct torc_handler echo = {TORC_SIZE(torc_handler), .unary = on_echo};
    struct torc_handler any = {TORC_SIZE(torc_handler), .stream = on_any};
    server = torc_server_new(&o, NULL);
    struct torc_handler fail = {TORC_SIZE(torc_handler), .unary = on_fail};
    assert_int_equal(torc_server_add_method(server, "a.B/Echo", &echo, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Fail", &fail, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "*", &any, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_server_free(server);
    torc_free(bound);
    return torc_runtime_free(rt);
}

/* --- counts --- */

static atomic_int hanging; /* on_hang waits while it is 1 */

static void on_hang(torc_server_call *call, void *arg)
{
    (void)arg;
    while (!torc_server_call_cancelled(call) && atomic_load(&hanging))
        sched_yield();
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void await_count(const torc_server *s, int counter, int64_t n)
{
    while (torc_server_count(s, counter) != n)
        sched_yield();
}

static void test_counts(void **state)
{
    (void)state;
    enum { CONNECTIONS = 6 };
    torc_runtime *home = kit_backends_runtime(TORC_RUNTIME_THREAD), *other = kit_backends_runtime(TORC_RUNTIME_THREAD);
    torc_runtime *const more[] = {other, NULL};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = home, .runtimes = more};
    torc_pool *pool = torc_pool_new(1, 1, NULL);
    struct torc_method_options in_pool = {TORC_SIZE(torc_method_options), .pool = pool};
    struct torc_handler hang = {TORC_SIZE(torc_handler), .stream = on_hang};
    torc_server *s = torc_server_new(&o, NULL);
    char *address = NULL;
    for (int counter = 0; counter <= TORC_SERVER_OPEN_CALLS; counter++)
        assert_int_equal(torc_server_count(s, counter), 0);
    assert_int_equal(torc_server_count(s, TORC_SERVER_OPEN_CALLS + 1), TORC_EINVAL);
    assert_int_equal(torc_server_count(s, -1), TORC_EINVAL);
    assert_int_equal(torc_server_count(NULL, 0), TORC_EINVAL);
    assert_int_equal(torc_server_add_method(s, "a.B/Hang", &hang, NULL), 0);
    assert_int_equal(torc_server_limit(s, "a.B/Hang", &in_pool, NULL), 0);
    assert_int_equal(torc_server_listen(s, "127.0.0.1:0", torc_credentials_insecure(), &address, NULL), 0);
    assert_int_equal(torc_server_start(s, NULL), 0);
    atomic_store(&hanging, 1);
    for (int i = 0; i < CONNECTIONS; i++) { /* one after the other, each with an RPC of an unknown method */
        torc_runtime *client = kit_backends_runtime(TORC_RUNTIME_CALLER);
        torc_channel *ch = torc_channel_new(client, address, NULL, NULL);
        torc_result *r = torc_unary(ch, "a.B/None", NULL, 0, NULL);
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNIMPLEMENTED);
        assert_true(torc_server_count(s, TORC_SERVER_OPEN_CONNECTIONS) >= 1);
        torc_result_free(r);
        if (i == 0) {
            torc_stream *stream = torc_stream_open(ch, "a.B/Hang", NULL, NULL);
            assert_int_equal(torc_stream_send(stream, NULL, 0, TORC_SEND_LAST, -1), 0);
            while (torc_server_count(s, TORC_SERVER_OPEN_CALLS) != 1)
                torc_runtime_poll(client, 1);
            atomic_store(&hanging, 0);
            torc_result_free(torc_stream_finish(stream));
            torc_stream_free(stream);
            await_count(s, TORC_SERVER_OPEN_CALLS, 0);
        }
        torc_channel_free(ch);
        torc_runtime_free(client);
    }
    await_count(s, TORC_SERVER_OPEN_CONNECTIONS, 0);
    for (int end = 0; end < 2; end++) {
        assert_int_equal(torc_server_count(s, TORC_SERVER_CONNECTIONS), CONNECTIONS);
        assert_int_equal(torc_server_count(s, TORC_SERVER_CALLS), CONNECTIONS + 1);
        assert_int_equal(torc_server_count(s, TORC_SERVER_FAILED_HANDSHAKES), 0);
        if (end == 0) { /* the counts outlive the runtimes */
            torc_runtime_free(home);
            torc_runtime_free(other);
        }
    }
    torc_server_free(s);
    assert_int_equal(torc_pool_free(pool), 0);
    torc_free(address);
}

/* --- any method, addresses --- */

static void test_any_method(void **state)
{
    (void)state;
    torc_channel *ch = torc_channel_new(rt, bound, NULL, NULL);
    torc_result *r = torc_unary(ch, "what.Ever/Method", "x", 1, NULL);
    assert_int_equal(torc_message_size(torc_result_response(r)), 17);
    assert_memory_equal(torc_message_data(torc_result_response(r)), "/what.Ever/Method", 17);
    torc_result_free(r);
    torc_channel_free(ch);
}

static void expect_on(const char *address)
{
    torc_error *error = NULL;
    torc_channel *other = torc_channel_new(rt, address, NULL, &error);
    torc_result *r = torc_unary(other, "a.B/Echo", "hi", 2, NULL);
    assert_string_equal(torc_error_text(torc_result_error(r)), "");
    torc_result_free(r);
    torc_channel_free(other);
}

static void test_addresses(void **state)
{
    (void)state;
    torc_error *error = NULL;
    char *address = NULL, text[128];
    assert_int_equal(torc_server_listen(server, "[::1]:0", torc_credentials_insecure(), &address, NULL), 0);
    expect_on(address);
    torc_free(address);
    snprintf(text, sizeof(text), "unix-abstract:torc-server-%d", (int)getpid());
    assert_int_equal(torc_server_listen(server, text, torc_credentials_insecure(), &address, NULL), 0);
    assert_string_equal(address, text);
    expect_on(address);
    torc_free(address);
    /* A socket that the test listens on. */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "torc-fd-%d", (int)getpid());
    assert_int_equal(
        bind(fd, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)), 0);
    snprintf(text, sizeof(text), "fd:%d", fd);
    assert_int_equal(torc_server_listen(server, text, torc_credentials_insecure(), NULL, &error), TORC_EIO);
    assert_non_null(strstr(torc_error_text(error), "not a stream socket that listens"));
    torc_error_clear(&error);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(torc_server_listen(server, text, torc_credentials_insecure(), &address, NULL), 0);
    expect_on(address);
    torc_free(address);
    assert_int_equal(torc_server_listen(server, bound, torc_credentials_insecure(), NULL, &error), TORC_EIO);
    assert_non_null(strstr(torc_error_text(error), "in use"));
    torc_error_clear(&error);
}

/* --- misuse --- */

static void expect_refused(int code, int rc, torc_error **error, const char *part)
{
    assert_int_equal(rc, code);
    assert_int_equal(torc_error_code(*error), code);
    if (!strstr(torc_error_text(*error), part))
        fail_msg("\"%s\" does not contain \"%s\"", torc_error_text(*error), part);
    torc_error_clear(error);
}

static void test_misuse(void **state)
{
    (void)state;
    torc_error *e = NULL;
    struct torc_handler none = {TORC_SIZE(torc_handler)}, both = none, good = none, unary = none;
    both.unary = unary.unary = on_echo;
    both.stream = good.stream = on_any;
    assert_null(torc_server_new(&(struct torc_server_options){0}, &e));
    expect_refused(TORC_EINVAL, TORC_EINVAL, &e, "size is 0");
    assert_null(
        torc_server_new(&(struct torc_server_options){TORC_SIZE(torc_server_options), .send_buffer_bytes = -1}, &e));
    expect_refused(TORC_EINVAL, TORC_EINVAL, &e, "send_buffer_bytes");
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    torc_server *s = torc_server_new(&o, &e);
    expect_refused(TORC_EINVAL, torc_server_add_method(NULL, "a/b", &good, &e), &e, "server");
    static const char *const malformed[] = {NULL, "", "/", "a", "/a", "a/", "//a", "a b/c", "a/\x7f", "**"};
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        expect_refused(TORC_EINVAL, torc_server_add_method(s, malformed[i], &good, &e), &e, "method");
    expect_refused(TORC_EINVAL, torc_server_add_method(s, "noslash", &good, &e), &e, "method: \"noslash\" must be");
    expect_refused(TORC_EINVAL, torc_server_add_method(s, NULL, &good, &e), &e, "method: it is NULL");
    expect_refused(TORC_EINVAL, torc_server_add_method(s, "a/b", NULL, &e), &e, "handler");
    expect_refused(TORC_EINVAL, torc_server_add_method(s, "a/b", &none, &e), &e, "exactly one");
    expect_refused(TORC_EINVAL, torc_server_add_method(s, "a/b", &both, &e), &e, "exactly one");
    expect_refused(TORC_EINVAL, torc_server_add_method(s, "*", &unary, &e), &e, "stream must be set");
    assert_int_equal(torc_server_add_method(s, "a/b", &good, &e), 0);
    expect_refused(TORC_EEXIST, torc_server_add_method(s, "/a/b", &unary, &e), &e, "/a/b has a handler");
    static const char *const bad[] = {
        NULL, "", "localhost:80", "127.0.0.1", "fd:", "fd:x", "fd:-1", "unix:", "unix-abstract:"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_refused(TORC_EINVAL, torc_server_listen(s, bad[i], torc_credentials_insecure(), NULL, &e), &e,
                       "address");
    expect_refused(TORC_EIO, torc_server_listen(s, "fd:999999", torc_credentials_insecure(), NULL, &e), &e,
                   "fd:999999");
    expect_refused(TORC_EINVAL, torc_server_listen(s, "127.0.0.1:0", NULL, NULL, &e), &e, "credentials");
    expect_refused(TORC_EINVAL, torc_server_listen(NULL, "127.0.0.1:0", torc_credentials_insecure(), NULL, &e), &e,
                   "server");
    assert_int_equal(torc_server_start(s, &e), 0);
    expect_refused(TORC_ESTATE, torc_server_start(s, &e), &e, "started");
    expect_refused(TORC_ESTATE, torc_server_add_method(s, "a/c", &good, &e), &e, "started");
    expect_refused(TORC_EINVAL, torc_server_start(NULL, &e), &e, "server");
    assert_int_equal(torc_server_stop(s, -2), TORC_EINVAL);
    assert_int_equal(torc_server_stop(NULL, 0), TORC_EINVAL);
    assert_int_equal(torc_server_stop_async(s, 0, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_server_stop(s, 0), 0);
    expect_refused(TORC_ESTATE, torc_server_start(s, &e), &e, "stopped");
    /* A server that was stopped and never started. */
    torc_server *never = torc_server_new(&o, NULL);
    const struct torc_method_options limits = {TORC_SIZE(torc_method_options)};
    assert_int_equal(torc_server_stop(never, 0), 0);
    expect_refused(TORC_ESTATE, torc_server_add_method(never, "a/c", &good, &e), &e, "started or stopped");
    expect_refused(TORC_ESTATE, torc_server_limit(never, "a", &limits, &e), &e, "started or stopped");
    torc_server_free(never);
    /* A chain with an error does nothing. */
    e = torc_error_new(TORC_ELIMIT, TORC_LAYER_API, "before");
    assert_null(torc_server_new(NULL, &e));
    assert_int_equal(torc_server_add_method(s, "q/q", &good, &e), TORC_ELIMIT);
    assert_int_equal(torc_server_listen(s, "127.0.0.1:0", torc_credentials_insecure(), NULL, &e), TORC_ELIMIT);
    assert_int_equal(torc_server_start(s, &e), TORC_ELIMIT);
    torc_error_clear(&e);
    torc_server_free(s);
    torc_server_free(NULL);
    const torc_message *m;
    assert_int_equal(torc_server_call_receive(NULL, 0, &m), TORC_EINVAL);
    assert_int_equal(torc_server_call_send(NULL, "", 0, 0, 0), TORC_EINVAL);
    assert_int_equal(torc_server_call_want(NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_server_call_send_headers(NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_reply(NULL, "", 0), TORC_EINVAL);
    assert_int_equal(torc_server_call_finish(NULL, 0, NULL, NULL), TORC_EINVAL);
    const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events)};
    assert_int_equal(torc_server_call_set_events(NULL, &events, NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_cancelled(NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_time_left(NULL), -1);
    assert_null(torc_server_call_method(NULL));
    assert_null(torc_server_call_metadata(NULL));
    assert_null(torc_server_call_peer(NULL));
    assert_null(torc_server_call_authority(NULL));
    assert_null(torc_server_call_arena(NULL));
    assert_null(torc_server_call_printf(NULL, "%d", 1));
}

/* --- retries --- */

static atomic_int attempts;

/* The answer to the first attempt asks for a retry at once, the answer to the second for none. */
static void on_fail(torc_server_call *call, const torc_message *request, void *arg)
{
    torc_metadata *trailers = torc_metadata_new();
    (void)request, (void)arg;
    const char *ms = atomic_fetch_add(&attempts, 1) ? "-1" : "0";
    CHECK(torc_metadata_add_string(trailers, "grpc-retry-pushback-ms", ms) == 0);
    CHECK(torc_server_call_finish(call, TORC_STATUS_UNAVAILABLE, "later", trailers) == 0);
    torc_metadata_free(trailers);
}

/* grpc-retry-pushback-ms decides when the client retries; without it the client would wait 800 s to 1200 s. */
static void test_pushback(void **state)
{
    (void)state;
    struct torc_channel_options o = {
        TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
        .service_config_json =
            "{\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"1000s\","
            "\"maxBackoff\":\"1000s\",\"backoffMultiplier\":1,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}}]}"};
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    torc_channel *ch = torc_channel_new(rt, bound, &o, NULL);
    torc_result *r = torc_unary(ch, "a.B/Fail", NULL, 0, &call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_result_attempts(r), 2);
    torc_result_free(r);
    torc_channel_free(ch);
}

/* --- the end --- */

static torc_server *freed_inside;

static void on_free_inside(torc_server_call *call, void *arg)
{
    (void)arg;
    CHECK(torc_server_stop(freed_inside, 0) == TORC_EDEADLK);
    torc_server_free(freed_inside);
    CHECK(torc_server_call_cancelled(call) == 1);
    CHECK(torc_server_call_send(call, "x", 1, 0, 0) == TORC_ECLOSED);
    CHECK(torc_server_call_reply(call, "x", 1) == TORC_ECLOSED);
}

static void test_free_inside_a_handler(void **state)
{
    (void)state;
    char *address = NULL;
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    struct torc_handler h = {TORC_SIZE(torc_handler), .stream = on_free_inside, .release = count, .arg = &releases};
    freed_inside = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(freed_inside, "*", &h, NULL), 0);
    assert_int_equal(torc_server_listen(freed_inside, "[::1]:0", torc_credentials_insecure(), &address, NULL), 0);
    assert_int_equal(torc_server_start(freed_inside, NULL), 0);
    torc_channel *other = torc_channel_new(rt, address, NULL, NULL);
    torc_result *r = torc_unary(other, "x.Y/Z", NULL, 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    torc_channel_free(other);
    torc_free(address);
    while (releases < 1)
        sched_yield();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_method), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_addresses),  cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_pushback),   cmocka_unit_test(test_free_inside_a_handler),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
