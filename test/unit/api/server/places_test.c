/* A call counts towards max_calls of its method and max_concurrent_streams of its connection until it is finished, also
 * when its RPC has been cancelled. Each test has a server and a channel on loopback. Both share a runtime, whose thread
 * calls the handlers; the test's threads finish the calls. */
#include <pthread.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt;
static torc_server *server;
static torc_channel *ch;

/* Calls that the application has not finished. Handlers add to them on the loop's thread. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    torc_server_call *calls[8];
    int n;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void on_hold(torc_server_call *call, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&held.mutex);
    held.calls[held.n++] = call;
    pthread_cond_broadcast(&held.cond);
    pthread_mutex_unlock(&held.mutex);
}

static void finish_held(void)
{
    pthread_mutex_lock(&held.mutex);
    while (held.n)
        torc_server_call_finish(held.calls[--held.n], TORC_STATUS_OK, NULL, NULL);
    pthread_mutex_unlock(&held.mutex);
}

static int setup(void **state)
{
    (void)state;
    char *bound;
    const struct torc_handler hold = {TORC_SIZE(torc_handler), .stream = on_hold};
    const struct torc_method_options one = {TORC_SIZE(torc_method_options), .max_calls = 1};
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt, .max_concurrent_streams = 2};
    server = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(server, "a.B/One", &hold, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Any", &hold, NULL), 0);
    assert_int_equal(torc_server_limit(server, "a.B/One", &one, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    ch = torc_channel_new(rt, bound, NULL, NULL);
    torc_free(bound);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    torc_server_free(server);
    finish_held();
    return torc_runtime_free(rt);
}

/* Starts an RPC, and cancels it when its handler has been called. The call stays in `held`. */
static void hold_and_cancel(const char *method)
{
    int before = held.n;
    torc_stream *s = torc_stream_open(ch, method, NULL, NULL);
    assert_int_equal(torc_stream_send(s, "x", 1, 0, -1), 0);
    pthread_mutex_lock(&held.mutex);
    while (held.n == before)
        pthread_cond_wait(&held.cond, &held.mutex);
    pthread_mutex_unlock(&held.mutex);
    torc_stream_free(s);
}

/* Makes an RPC and returns its status. The RPC reaches the server after the RST_STREAM of the cancelled RPCs. */
static int ask(const char *method)
{
    const struct torc_call_options soon = {TORC_SIZE(torc_call_options), .timeout_ms = 2000};
    torc_result *r = torc_unary(ch, method, "x", 1, &soon);
    int code = torc_result_code(r);
    torc_result_free(r);
    return code;
}

static void test_of_a_method(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        hold_and_cancel("a.B/One");
        assert_int_equal(ask("a.B/One"), TORC_STATUS_RESOURCE_EXHAUSTED);
        finish_held();
    }
}

static void test_of_a_connection(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        hold_and_cancel("a.B/Any");
        hold_and_cancel("a.B/Any");
        assert_int_equal(ask("a.B/Any"), TORC_STATUS_UNAVAILABLE); /* REFUSED_STREAM, also for its transparent retry */
        finish_held();
    }
}

/* Finishes the next call that comes to a handler. */
static void *finish_next(void *arg)
{
    pthread_mutex_lock(&held.mutex);
    while (!held.n)
        pthread_cond_wait(&held.cond, &held.mutex);
    pthread_mutex_unlock(&held.mutex);
    finish_held();
    return arg;
}

/* Ten RPCs, one after the other, all run under max_calls 1: a finished call no longer counts when its client has the
 * answer. */
static void test_answered_calls(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, finish_next, NULL), 0);
        assert_int_equal(ask("a.B/One"), TORC_STATUS_INTERNAL); /* an answer without a message */
        pthread_join(thread, NULL);
    }
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_of_a_method), T(test_of_a_connection), T(test_answered_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
