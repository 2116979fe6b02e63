/* Servers (torc/server.h) on two runtimes, one of which ends; callbacks of the second runtime that use the server
 * before the server's part on that runtime was made; and the limit of unsent bytes that both share.
 *
 * Each test has a server on the runtimes `home`, the first one, and more[0], the second one. Handlers run on the
 * threads of these runtimes; in one test the test's thread drives `home`. The channels are on other runtimes and use
 * real sockets. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *home, *more[2]; /* NULL-terminated */
static torc_server *server;
static char *bound; /* the server's address; freed with torc_free */
/* begun: calls of on_slow. goes_on: the on_slow or the callback that waits may go on. done: an on_slow has replied.
 * ended: RPCs that have ended. */
static atomic_int begun, goes_on, done, ended;

/* Counts the calls. The first one waits for `goes_on`, and then so long that a torc_server_free that fails to wait for
 * the handler returns first. */
static void on_slow(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    int first = atomic_fetch_add(&begun, 1);
    while (first == 0 && !atomic_load(&goes_on))
        sched_yield();
    for (int i = 0; first == 0 && i < 30000; i++)
        sched_yield();
    torc_server_call_reply(call, NULL, 0);
    atomic_store(&done, 1);
}

static void on_big(torc_server_call *call, const torc_message *request, void *arg)
{
    static const char big[3 << 20];
    (void)request, (void)arg;
    torc_server_call_reply(call, big, sizeof(big));
}

/* Makes the runtimes, each with a thread, and the server, with these options and these runtimes. The server listens and
 * is not started. */
static void server_make(struct torc_server_options o)
{
    torc_error *error = NULL;
    const struct torc_handler slow = {TORC_SIZE(torc_handler), .unary = on_slow},
                              big = {TORC_SIZE(torc_handler), .unary = on_big};
    home = kit_backends_runtime(TORC_RUNTIME_THREAD);
    more[0] = kit_backends_runtime(TORC_RUNTIME_THREAD);
    o.size = sizeof(o);
    o.runtime = home;
    o.runtimes = more;
    server = torc_server_new(&o, &error);
    torc_server_add_method(server, "a.B/Slow", &slow, &error);
    torc_server_add_method(server, "a.B/Big", &big, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    assert_null(error);
}

/* Frees what server_make made. more[0] may be NULL. */
static void server_end(void)
{
    torc_server_free(server);
    torc_runtime_free(home);
    torc_runtime_free(more[0]);
    torc_free(bound);
}

static void on_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    atomic_fetch_add(&ended, 1);
}

/* Stores the status code in the int at `arg`, and counts the end. */
static void on_code(const torc_result *result, void *arg)
{
    *(int *)arg = torc_result_code(result);
    atomic_fetch_add(&ended, 1);
}

static void on_nothing(void *arg)
{
    (void)arg;
}

static void *free_runtime(void *rt)
{
    CHECK(torc_runtime_free(rt) == 0);
    return NULL;
}

/* A handler runs on a runtime of the server while another thread frees that runtime. A torc_server_free at that moment
 * waits for the handler. */
static void test_free_beside_the_end_of_a_runtime(void **state)
{
    (void)state;
    for (int at = 0; at < 2; at++) { /* `home` gets the first connection */
        torc_runtime *clients[2];    /* each with a connection of its own */
        torc_channel *ch[2];
        torc_stream *s;
        pthread_t freer;
        server_make((struct torc_server_options){0});
        torc_server_start(server, NULL);
        begun = 1; /* the first call is not slow */
        for (int i = 0; i <= at; i++) {
            clients[i] = kit_backends_runtime(TORC_RUNTIME_THREAD);
            ch[i] = torc_channel_new(clients[i], bound, NULL, NULL);
            torc_result_free(torc_unary(ch[i], "a.B/Slow", NULL, 0, NULL));
        }
        begun = goes_on = done = ended = 0;
        assert_int_equal(torc_unary_async(ch[at], "a.B/Slow", NULL, 0, NULL, on_result, NULL, &s, NULL), 0);
        while (!atomic_load(&begun))
            sched_yield();
        torc_runtime *rt = at ? more[0] : home;
        pthread_create(&freer, NULL, free_runtime, rt);
        while (torc_runtime_post(rt, on_nothing, NULL) == 0)
            sched_yield();
        atomic_store(&goes_on, 1);
        torc_server_free(server);
        assert_int_equal(atomic_load(&done), 1);
        pthread_join(freer, NULL);
        torc_stream_free(s);
        for (int i = 0; i <= at; i++) {
            torc_channel_free(ch[i]);
            torc_runtime_free(clients[i]);
        }
        torc_runtime_free(at ? home : more[0]);
        torc_free(bound);
    }
}

/* Returns how many free descriptors torc_server_listen needs. The server then has a further address. */
static int descriptors_for_listening(void)
{
    struct rlimit all, few;
    int fds[64], n = 0, need = -1, rc = TORC_EIO;
    getrlimit(RLIMIT_NOFILE, &all);
    few = (struct rlimit){.rlim_cur = 60, .rlim_max = all.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    while (n < 60 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
        n++;
    for (; rc != 0; need++) {
        rc = torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), NULL, NULL);
        assert_true(n > 0);
        close(fds[--n]);
    }
    while (n > 0)
        close(fds[--n]);
    setrlimit(RLIMIT_NOFILE, &all);
    return need;
}

/* The server listens with a socket for each runtime that has not ended: connections to the socket of an ended runtime
 * would be reset. */
static void test_reuse_port_after_an_end(void **state)
{
    (void)state;
    server_make((struct torc_server_options){.listen_mode = TORC_LISTEN_REUSE_PORT});
    int before = descriptors_for_listening();
    assert_int_equal(torc_runtime_free(more[0]), 0);
    assert_int_equal(descriptors_for_listening(), before - 1);
    more[0] = NULL;
    server_end();
}

/* --- inside a turn in which the part of the server is still to be made --- */

/* inside: the callback is in the turn. returned: the callback is done. releases: calls of on_release. */
static atomic_int inside, returned, releases;

static void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&releases, 1);
}

/* Holds the turn of more[0] until `goes_on`, so that what the server posts meanwhile waits. */
static void turn_hold(void)
{
    atomic_store(&inside, 1);
    while (!atomic_load(&goes_on))
        sched_yield();
}

static void free_in_the_turn(void *arg)
{
    (void)arg;
    turn_hold();
    torc_server_free(server);
    atomic_store(&returned, 1);
}

static void start_in_the_turn(void *arg)
{
    (void)arg;
    turn_hold();
    CHECK(torc_server_start(server, NULL) == 0);
    atomic_store(&returned, 1);
}

static void on_passed(void *arg)
{
    atomic_store((atomic_int *)arg, 1);
}

/* Waits until the runtime has done what was posted to it before. */
static void runtime_pass(torc_runtime *rt)
{
    atomic_int passed = 0;
    assert_int_equal(torc_runtime_post(rt, on_passed, &passed), 0);
    while (!atomic_load(&passed))
        sched_yield();
}

/* Makes `server` while `fn` is inside a turn of the second runtime, and lets `fn` go on. Returns when `fn` is done.
 * `mode`: of the first runtime; the second one has a thread. */
static void server_make_beside(void (*fn)(void *arg), enum torc_runtime_mode mode)
{
    const struct torc_handler slow = {TORC_SIZE(torc_handler), .unary = on_slow, .release = on_release};
    torc_error *error = NULL;
    inside = goes_on = returned = releases = 0;
    home = kit_backends_runtime(mode);
    more[0] = kit_backends_runtime(TORC_RUNTIME_THREAD);
    assert_int_equal(torc_runtime_post(more[0], fn, NULL), 0);
    while (!atomic_load(&inside))
        sched_yield();
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = home, .runtimes = more};
    server = torc_server_new(&o, &error);
    torc_server_add_method(server, "a.B/Slow", &slow, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    assert_null(error);
    atomic_store(&goes_on, 1);
    while (!atomic_load(&returned))
        sched_yield();
}

/* A callback frees the server before the runtime of the callback has made its part: the part ends all the same. */
static void test_free_before_the_part_is_made(void **state)
{
    (void)state;
    server_make_beside(free_in_the_turn, TORC_RUNTIME_THREAD);
    runtime_pass(home);
    runtime_pass(more[0]);
    assert_int_equal(releases, 1);
    torc_runtime_free(home);
    torc_runtime_free(more[0]);
    torc_free(bound);
}

/* A callback of the second runtime starts the server before this runtime has made its part: the part serves. The first
 * runtime has no thread, so torc_server_start drives its loop inside the callback. */
static void test_start_before_the_part_is_made(void **state)
{
    (void)state;
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 20000};
    torc_runtime *clients[2]; /* each with a connection of its own; the second connection is on more[0] */
    torc_channel *ch[2];
    server_make_beside(start_in_the_turn, TORC_RUNTIME_CALLER);
    begun = 1; /* no call is slow */
    for (int i = 0; i < 2; i++) {
        clients[i] = kit_backends_runtime(TORC_RUNTIME_THREAD);
        ch[i] = torc_channel_new(clients[i], bound, NULL, NULL);
        int code = -1;
        ended = 0;
        assert_int_equal(torc_unary_async(ch[i], "a.B/Slow", NULL, 0, &o, on_code, &code, NULL, NULL), 0);
        while (!atomic_load(&ended))
            torc_runtime_poll(home, 1);
        assert_int_equal(code, TORC_STATUS_OK);
    }
    for (int i = 0; i < 2; i++) {
        torc_channel_free(ch[i]);
        torc_runtime_free(clients[i]);
    }
    server_end();
}

/* --- limits --- */

/* unsent_bytes limits the runtimes together: one may hold more than its half. */
static void test_unsent_bytes(void **state)
{
    (void)state;
    torc_runtime *client = kit_backends_runtime(TORC_RUNTIME_CALLER);
    server_make((struct torc_server_options){.unsent_bytes = 4 << 20});
    torc_server_start(server, NULL);
    torc_channel *ch = torc_channel_new(client, bound, NULL, NULL);
    torc_result *r = torc_unary(ch, "a.B/Big", NULL, 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_channel_free(ch);
    torc_runtime_free(client);
    server_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_beside_the_end_of_a_runtime),
        cmocka_unit_test(test_reuse_port_after_an_end),
        cmocka_unit_test(test_free_before_the_part_is_made),
        cmocka_unit_test(test_start_before_the_part_is_made),
        cmocka_unit_test(test_unsent_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
