/* Pools of threads and limits of methods (torc/server.h), with a server and a channel on loopback.
 *
 * Each test has its own server, channel, and pool of two threads with room for three calls in the queue. The server and
 * the channel share a runtime with a thread, which calls the handlers for "c.D" and "g.H/Small". For all other methods
 * handlers run on the pool. on_slow waits there for the gate, which a test opens: so the test decides when the pool is
 * full. Callbacks of RPCs count results by status. teardown frees what a test has not freed, and checks that the
 * arguments of all five handlers were released. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt;
static torc_server *server;
static torc_pool *pool;
static torc_channel *ch;

/* on_slow waits until the gate is open. `waiting` is the number of handlers that wait. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting;
    bool open;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static atomic_int results[17], releases; /* ended RPCs by status; released handlers */

static void gate_pass(void)
{
    pthread_mutex_lock(&gate.mutex);
    gate.waiting++;
    pthread_cond_broadcast(&gate.cond);
    while (!gate.open)
        pthread_cond_wait(&gate.cond, &gate.mutex);
    gate.waiting--;
    pthread_mutex_unlock(&gate.mutex);
}

static void gate_wait_for(int n)
{
    pthread_mutex_lock(&gate.mutex);
    while (gate.waiting < n)
        pthread_cond_wait(&gate.cond, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

static void gate_set(bool open)
{
    pthread_mutex_lock(&gate.mutex);
    gate.open = open;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
}

static void on_slow(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    CHECK(torc_pool_free(pool) == TORC_EDEADLK);
    CHECK(torc_server_stop(server, -1) == TORC_EDEADLK); /* it would wait for this call */
    gate_pass();
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* Echoes messages by functions that block, on a thread of the pool. */
static void on_chat(torc_server_call *call, void *arg)
{
    const torc_message *m;
    (void)arg;
    while (torc_server_call_receive(call, -1, &m) == 1)
        torc_server_call_send(call, torc_message_data(m), torc_message_size(m), 0, -1);
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void on_cancel(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* Never answers: the call ends when it is cancelled, for instance by its deadline or a message that is too large. */
static void on_hang(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_set_events(
        call, &(struct torc_server_call_events){TORC_SIZE(torc_server_call_events), .on_cancel = on_cancel}, NULL);
    torc_server_call_want(call, 1);
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void add(const char *method, struct torc_handler h)
{
    h.size = sizeof(h);
    h.release = count;
    h.arg = &releases;
    assert_int_equal(torc_server_add_method(server, method, &h, NULL), 0);
}

static void limit(const char *name, struct torc_method_options o)
{
    o.size = sizeof(o);
    assert_int_equal(torc_server_limit(server, name, &o, NULL), 0);
}

static int setup(void **state)
{
    (void)state;
    char *bound;
    memset(results, 0, sizeof(results));
    releases = 0;
    gate_set(false);
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    pool = torc_pool_new(2, 3, NULL);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, NULL);
    add("a.B/Slow", (struct torc_handler){.unary = on_slow});
    add("a.B/Chat", (struct torc_handler){.stream = on_chat});
    add("c.D/Few", (struct torc_handler){.stream = on_hang});
    add("c.D/Short", (struct torc_handler){.stream = on_hang});
    add("*", (struct torc_handler){.stream = on_hang});
    limit("a.B", (struct torc_method_options){.pool = pool});
    limit("c.D/Few", (struct torc_method_options){.max_calls = 2});
    limit("c.D", (struct torc_method_options){.max_timeout_ms = 20});
    limit("g.H/Small", (struct torc_method_options){.max_receive_message_bytes = 3});
    limit("g.H", (struct torc_method_options){.max_receive_message_bytes = 5, .pool = pool});
    limit("*", (struct torc_method_options){.max_receive_message_bytes = 10, .pool = pool});
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    ch = torc_channel_new(rt, bound, NULL, NULL);
    torc_free(bound);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gate_set(true);
    torc_channel_free(ch);
    torc_server_free(server);
    assert_int_equal(torc_pool_free(pool), 0);
    assert_int_equal(releases, 5);
    return torc_runtime_free(rt);
}

static void on_result(const torc_result *r, void *arg)
{
    (void)arg;
    atomic_fetch_add(&results[torc_result_code(r)], 1);
}

static void ask(const char *method, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(torc_unary_async(ch, method, "x", 1, NULL, on_result, NULL, NULL, NULL), 0);
}

static void wait_results(int code, int n)
{
    while (atomic_load(&results[code]) < n)
        sched_yield();
}

/* A call that an idle thread will take needs no room in the queue, even while that thread still sleeps: of a burst of
 * six calls two run, three wait, and one is refused. */
static void test_burst_for_idle_threads(void **state)
{
    (void)state;
    ask("a.B/Slow", 6);
    wait_results(TORC_STATUS_RESOURCE_EXHAUSTED, 1);
    gate_set(true);
    wait_results(TORC_STATUS_OK, 5);
    assert_int_equal(results[TORC_STATUS_RESOURCE_EXHAUSTED], 1);
}

/* Two calls run and three wait in the queue: further calls are refused. The five are answered. */
static void test_full_queue(void **state)
{
    (void)state;
    ask("a.B/Slow", 2);
    gate_wait_for(2);
    ask("a.B/Slow", 5);
    wait_results(TORC_STATUS_RESOURCE_EXHAUSTED, 2);
    assert_int_equal(results[TORC_STATUS_OK], 0);
    gate_set(true);
    wait_results(TORC_STATUS_OK, 5);
    assert_int_equal(results[TORC_STATUS_RESOURCE_EXHAUSTED], 2);
}

/* The server is freed while handlers run and calls wait. The arguments of handlers are released only after the last
 * handler has returned. */
static void test_free_under_handlers(void **state)
{
    (void)state;
    ask("a.B/Slow", 2);
    gate_wait_for(2);
    ask("a.B/Slow", 3);
    ask("c.D/Few", 1);
    torc_server_free(server);
    server = NULL;
    wait_results(TORC_STATUS_UNAVAILABLE, 6);
    assert_int_equal(releases, 0);
    gate_set(true);
    while (atomic_load(&releases) < 5)
        sched_yield();
}

static void test_waiting_handlers(void **state)
{
    (void)state;
    torc_stream *s[2];
    for (int i = 0; i < 2; i++)
        s[i] = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    for (int i = 0; i < 100; i++) {
        const torc_message *m;
        assert_int_equal(torc_stream_send(s[i % 2], "abc", 3, 0, -1), 0);
        assert_int_equal(torc_stream_receive(s[i % 2], -1, &m), 1);
    }
    for (int i = 0; i < 2; i++) {
        torc_result *r = torc_stream_finish(s[i]);
        assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
        torc_result_free(r);
        torc_stream_free(s[i]);
    }
}

static void test_calls_at_a_time(void **state)
{
    (void)state;
    torc_stream *s[2];
    for (int i = 0; i < 2; i++) {
        s[i] = torc_stream_open(ch, "c.D/Few", NULL, NULL);
        assert_int_equal(torc_stream_send(s[i], "x", 1, 0, -1), 0);
    }
    ask("c.D/Few", 3);
    wait_results(TORC_STATUS_RESOURCE_EXHAUSTED, 3);
    torc_stream_free(s[0]);
    torc_stream_free(s[1]);
}

/* A method without limits of its own has those of its service: the RPC ends after 20 ms, though the client allows a
 * minute. */
static void test_time(void **state)
{
    (void)state;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    torc_result *r = torc_unary(ch, "c.D/Short", NULL, 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_string_equal(torc_result_text(r), "the RPC took longer than the server allows for its method");
    torc_result_free(r);
}

/* An RPC that is reset while it waits for a thread leaves the queue, and the next RPC of the same connection finds the
 * room. */
static void test_reset_in_the_queue(void **state)
{
    (void)state;
    ask("a.B/Slow", 2);
    gate_wait_for(2);
    for (int i = 0; i < 100; i++) {
        torc_stream *s[3] = {0};
        /* Unary RPCs reach the server in the order in which they were started. */
        for (int n = 0; n < 3; n++)
            assert_int_equal(torc_unary_async(ch, "a.B/Slow", "x", 1, NULL, on_result, NULL, &s[n], NULL), 0);
        ask("a.B/Slow", 1); /* is refused, so the three are in the queue */
        wait_results(TORC_STATUS_RESOURCE_EXHAUSTED, i + 1);
        for (int n = 0; n < 3; n++)
            torc_stream_free(s[n]);
    }
    ask("a.B/Slow", 3);
    torc_result *r = torc_unary(ch, "a.B/None", NULL, 0, NULL); /* for the pool, too: refused, since the three wait */
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    gate_set(true);
    while (results[TORC_STATUS_OK] + results[TORC_STATUS_RESOURCE_EXHAUSTED] < 105)
        sched_yield();
    assert_int_equal(results[TORC_STATUS_OK], 5);
}

static void free_the_pool(void *arg)
{
    atomic_store((atomic_int *)arg, torc_pool_free(pool));
}

/* torc_pool_free is refused in a callback of any runtime, also of a runtime that the pool's servers do not use: a
 * handler of the pool may wait for that runtime. */
static void test_freed_in_a_callback(void **state)
{
    (void)state;
    torc_runtime *other = kit_backends_runtime(TORC_RUNTIME_CALLER), *all[] = {rt, other};
    ask("a.B/Slow", 1);
    gate_wait_for(1);
    for (int i = 0; i < 2; i++) {
        atomic_int rc = 0;
        assert_int_equal(torc_runtime_post(all[i], free_the_pool, &rc), 0);
        if (i == 1)
            assert_true(torc_runtime_poll(other, 0) >= 0);
        while (atomic_load(&rc) == 0)
            sched_yield();
        assert_int_equal(rc, TORC_EDEADLK);
    }
    assert_int_equal(torc_runtime_free(other), 0);
}

static void expect_end(const char *method, const char *request, int code, const char *text)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    torc_result *r = torc_unary(ch, method, request, strlen(request), &o);
    assert_int_equal(torc_result_code(r), code);
    assert_string_equal(torc_result_text(r), text);
    torc_result_free(r);
}

/* A server whose pool was freed refuses the RPCs of the pool's methods. */
static void test_freed_under_a_server(void **state)
{
    (void)state;
    assert_int_equal(torc_pool_free(pool), 0);
    pool = NULL;
    expect_end("a.B/Slow", "", TORC_STATUS_RESOURCE_EXHAUSTED, "the pool of the method's threads is full or was freed");
}

static void test_message_size(void **state)
{
    (void)state;
    expect_end("e.F/Any", "12345678901", TORC_STATUS_RESOURCE_EXHAUSTED,
               "received message larger than max (11 vs. 10)");
}

/* Limits of methods and services also hold for methods that the handler of "*" answers. */
static void test_any_method(void **state)
{
    (void)state;
    expect_end("g.H/Small", "1234", TORC_STATUS_RESOURCE_EXHAUSTED, "received message larger than max (4 vs. 3)");
    expect_end("g.H/Other", "123456", TORC_STATUS_RESOURCE_EXHAUSTED, "received message larger than max (6 vs. 5)");
    expect_end("c.D/Other", "", TORC_STATUS_DEADLINE_EXCEEDED,
               "the RPC took longer than the server allows for its method");
    expect_end("g.H/Small/More", "12345678901", TORC_STATUS_RESOURCE_EXHAUSTED,
               "received message larger than max (11 vs. 10)");
}

static void expect(int code, int rc, torc_error **error, const char *part)
{
    assert_int_equal(rc, code);
    if (torc_error_code(*error) != code || !strstr(torc_error_text(*error), part))
        fail_msg("%d \"%s\" is not %d \"%s\"", torc_error_code(*error), torc_error_text(*error), code, part);
    torc_error_clear(error);
}

static void test_misuse(void **state)
{
    (void)state;
    torc_error *e = NULL;
    static const int64_t bad[][2] = {{0, 1}, {-1, 1}, {4097, 1}, {1, 0}, {1, -1}, {1, 1048577}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(torc_pool_new(bad[i][0], bad[i][1], &e));
        expect(TORC_EINVAL, TORC_EINVAL, &e, "must be in");
    }
    assert_int_equal(torc_pool_free(NULL), 0);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    struct torc_method_options m = {TORC_SIZE(torc_method_options), .max_calls = 1};
    torc_server *s = torc_server_new(&o, NULL);
    static const char *const names[] = {NULL, "", "/", "a/", "/a", "//", "a b", "a/b/", "**/"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        expect(TORC_EINVAL, torc_server_limit(s, names[i], &m, &e), &e, "name");
    expect(TORC_EINVAL, torc_server_limit(NULL, "a", &m, &e), &e, "server");
    expect(TORC_EINVAL, torc_server_limit(s, "a", NULL, &e), &e, "options");
    m.max_calls = -2;
    expect(TORC_EINVAL, torc_server_limit(s, "a", &m, &e), &e, "max_calls");
    m.max_calls = -1;
    assert_int_equal(torc_server_limit(s, "a/b", &m, &e), 0);
    expect(TORC_EEXIST, torc_server_limit(s, "/a/b", &m, &e), &e, "/a/b has limits");
    expect(TORC_ESTATE, torc_server_limit(server, "x", &m, &e), &e, "started");
    torc_server_free(s);
}

/* torc_server_start refuses limits whose name is neither a method nor a service of the server: after a typing error the
 * method would have no limits. */
static void test_limits_of_nothing(void **state)
{
    (void)state;
    static const char *const good[] = {"a.B/C", "a.B", "*"}, *const bad[] = {"a.B/c", "a", "a.B/C/D", "a.BB"};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    struct torc_method_options m = {TORC_SIZE(torc_method_options), .max_calls = 1};
    struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_chat};
    torc_error *e = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        torc_server *s = torc_server_new(&o, NULL);
        for (size_t k = 0; k < sizeof(good) / sizeof(good[0]); k++)
            assert_int_equal(torc_server_limit(s, good[k], &m, NULL), 0);
        assert_int_equal(torc_server_limit(s, bad[i], &m, NULL), 0);
        assert_int_equal(torc_server_add_method(s, "a.B/C", &handler, NULL), 0);
        char text[80];
        snprintf(text, sizeof(text), "limits: /%s is neither a method nor a service of the server", bad[i]);
        expect(TORC_ENOTFOUND, torc_server_start(s, &e), &e, text);
        assert_int_equal(torc_server_add_method(s, "*", &handler, NULL), 0); /* any name may be a method now */
        assert_int_equal(torc_server_start(s, NULL), 0);
        torc_server_free(s);
    }
}

/* In a child of a fork a server of the child does not take a pool of the parent: the child has none of its threads. */
static void test_pool_of_the_parent(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct torc_server_options o = {TORC_SIZE(torc_server_options),
                                        .runtime = kit_backends_runtime(TORC_RUNTIME_CALLER)};
        const struct torc_method_options m = {TORC_SIZE(torc_method_options), .pool = pool};
        torc_error *e = NULL;
        torc_server *own = torc_server_new(&o, NULL);
        bool good = own && torc_server_limit(own, "a.B", &m, &e) == TORC_EFORK &&
                    strstr(torc_error_text(e), "options: pool: it belongs to the parent process");
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_burst_for_idle_threads), TEST(test_full_queue),
        TEST(test_free_under_handlers),    TEST(test_waiting_handlers),
        TEST(test_calls_at_a_time),        TEST(test_time),
        TEST(test_reset_in_the_queue),     TEST(test_freed_in_a_callback),
        TEST(test_message_size),           TEST(test_any_method),
        TEST(test_limits_of_nothing),      TEST(test_misuse),
        TEST(test_freed_under_a_server),   TEST(test_pool_of_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
