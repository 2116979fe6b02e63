/* Servers on several runtimes: how connections spread, limits and health over all runtimes, stops and ends, also at
 * random moments, and lists of runtimes that are refused.
 *
 * `server` runs on the four runtimes of `rts`, whose threads call the handlers. a.B/Where answers with the index of the
 * runtime that has the client's connection, a.B/Hold leaves its call in `held` until the test finishes the call, and
 * a.B/Free frees the server inside the handler. setup makes the runtimes and the server. A test may replace the
 * server by another; most tests start theirs by server_start. teardown expects that the last server's three handlers
 * were released. The test's thread drives the clients. The last test makes runtimes and servers itself, and has
 * channels on three runtimes with threads; sometimes another thread stops a server while the test's thread ends it.
 *
 * TORC_THREAD_ROUNDS: how many servers end at random moments (40 by default). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/health.h>
#include <torc/torc.h>

#include "base/common.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/number.h"

enum { RUNTIMES = 4, CLIENTS = 40, HELD = 64 };

static torc_runtime *rts[RUNTIMES + 1]; /* NULL-terminated; the first is the server's home */
static torc_server *server;
static char *bound;                  /* where the server listens; for torc_free */
static atomic_int releases, stopped; /* handlers that were released; calls of on_stopped or note_thread */

/* A client with a connection and a runtime of its own. The runtime has no thread: it turns only while the test calls a
 * function of the runtime, the channel or the stream. */
struct client {
    torc_runtime *rt;
    torc_channel *ch; /* NULL: the client is not made */
    torc_stream *s;   /* an RPC of a.B/Hold or of the health service; NULL: none */
};
static struct client clients[CLIENTS];

/* Calls of a.B/Hold that the test has not finished. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    torc_server_call *calls[HELD];
    size_t n;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* --- handlers --- */

static pthread_t threads[RUNTIMES]; /* of rts[i] */

/* Answers with the index in `rts` of the runtime on whose thread the handler is called; RUNTIMES if it is none of
 * these threads. */
static void on_where(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    char number = 0;
    while (number < RUNTIMES && !pthread_equal(threads[(int)number], pthread_self()))
        number++;
    torc_server_call_reply(call, &number, 1);
}

static void on_hold(torc_server_call *call, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&held.mutex);
    CHECK(held.n < HELD);
    held.calls[held.n++] = call;
    pthread_cond_broadcast(&held.cond);
    pthread_mutex_unlock(&held.mutex);
}

static void wait_for_held(size_t n)
{
    pthread_mutex_lock(&held.mutex);
    while (held.n < n)
        pthread_cond_wait(&held.cond, &held.mutex);
    pthread_mutex_unlock(&held.mutex);
}

static void finish_held(int code)
{
    pthread_mutex_lock(&held.mutex);
    while (held.n)
        torc_server_call_finish(held.calls[--held.n], code, NULL, NULL);
    pthread_mutex_unlock(&held.mutex);
}

static atomic_int free_replies; /* replies of on_free that were refused, since the server was freed */

static void on_free(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    CHECK(torc_server_stop(server, 0) == TORC_EDEADLK);
    torc_server_free(server);
    atomic_fetch_add(&free_replies, torc_server_call_reply(call, "x", 1) == TORC_ECLOSED);
}

static void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&releases, 1);
}

/* --- set-up --- */

static void note_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    atomic_fetch_add(&stopped, 1);
}

static void runtimes_make(void)
{
    stopped = 0;
    for (int i = 0; i < RUNTIMES; i++) {
        rts[i] = kit_backends_runtime(TORC_RUNTIME_THREAD);
        torc_runtime_post(rts[i], note_thread, &threads[i]);
    }
    while (atomic_load(&stopped) < RUNTIMES)
        sched_yield();
    stopped = releases = free_replies = 0;
}

static void runtimes_free(void)
{
    for (int i = 0; i < RUNTIMES; i++)
        assert_int_equal(torc_runtime_free(rts[i]), 0);
}

static void add(const char *method, struct torc_handler handler)
{
    handler.size = sizeof(handler);
    handler.release = on_release;
    assert_int_equal(torc_server_add_method(server, method, &handler, NULL), 0);
}

/* Makes the server on `rts`, with these options otherwise, and adds its methods. It does not listen yet. */
static void server_make(struct torc_server_options o)
{
    torc_error *error = NULL;
    o.size = sizeof(o);
    o.runtime = rts[0];
    o.runtimes = rts + 1;
    server = torc_server_new(&o, &error);
    assert_non_null(server);
    add("a.B/Where", (struct torc_handler){.unary = on_where});
    add("a.B/Hold", (struct torc_handler){.stream = on_hold});
    add("a.B/Free", (struct torc_handler){.unary = on_free});
}

static void server_start(const char *address)
{
    torc_error *error = NULL;
    torc_free(bound);
    assert_int_equal(torc_server_listen(server, address, torc_credentials_insecure(), &bound, &error), 0);
    assert_int_equal(torc_server_start(server, &error), 0);
}

static int setup(void **state)
{
    (void)state;
    runtimes_make();
    server_make((struct torc_server_options){0});
    return 0;
}

static void clients_free(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        torc_stream_free(clients[i].s);
        torc_channel_free(clients[i].ch);
        torc_runtime_free(clients[i].rt);
        clients[i] = (struct client){0};
    }
}

static int teardown(void **state)
{
    (void)state;
    clients_free();
    torc_server_free(server);
    finish_held(TORC_STATUS_OK);
    assert_int_equal(releases, 3);
    runtimes_free();
    torc_free(bound);
    bound = NULL;
    return 0;
}

static void client_make(struct client *c)
{
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    c->rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    c->ch = torc_channel_new(c->rt, bound, &o, NULL);
    assert_non_null(c->ch);
}

/* Returns the index of the runtime that has the client's connection, or -1 if the RPC fails. Makes the client if it is
 * not made. */
static int client_where(struct client *c)
{
    if (!c->ch)
        client_make(c);
    torc_result *r = torc_unary(c->ch, "a.B/Where", NULL, 0, NULL);
    int where = torc_result_code(r) == TORC_STATUS_OK ? *(const char *)torc_message_data(torc_result_response(r)) : -1;
    torc_result_free(r);
    return where;
}

/* Begins a call of a.B/Hold. Makes the client if it is not made. */
static void client_hold(struct client *c)
{
    if (!c->ch)
        client_make(c);
    c->s = torc_stream_open(c->ch, "a.B/Hold", NULL, NULL);
    assert_non_null(c->s);
    torc_runtime_poll(c->rt, 0);
}

/* Begins a call of a.B/Hold on each of the first n clients, and turns their loops until `held` has n calls. */
static void clients_hold(int n)
{
    for (int i = 0; i < n; i++) {
        assert_true(client_where(&clients[i]) >= 0);
        client_hold(&clients[i]);
    }
    bool all = false;
    while (!all) {
        for (int i = 0; i < n; i++)
            torc_runtime_poll(clients[i].rt, 0);
        pthread_mutex_lock(&held.mutex);
        all = held.n >= (size_t)n;
        pthread_mutex_unlock(&held.mutex);
    }
}

static void client_expect_end(struct client *c, int code)
{
    torc_result *r = torc_stream_finish(c->s);
    assert_int_equal(torc_result_code(r), code);
    torc_result_free(r);
}

/* --- connections --- */

static void test_spread(void **state)
{
    (void)state;
    int counts[RUNTIMES] = {0};
    server_start("127.0.0.1:0");
    for (int i = 0; i < CLIENTS; i++) {
        int where = client_where(&clients[i]);
        assert_in_range(where, 0, RUNTIMES - 1);
        counts[where]++;
    }
    for (int i = 0; i < RUNTIMES; i++)
        assert_in_range(counts[i], CLIENTS / RUNTIMES * 8 / 10, CLIENTS / RUNTIMES * 12 / 10);
    assert_int_equal(client_where(&clients[0]), client_where(&clients[0]));
}

/* A runtime that has lost its connections gets the next ones. */
static void test_fewest_first(void **state)
{
    (void)state;
    server_start("127.0.0.1:0");
    for (int i = 0; i < 2 * RUNTIMES; i++)
        assert_int_equal(client_where(&clients[i]), i % RUNTIMES);
    for (int i = 2; i < 2 * RUNTIMES; i += RUNTIMES) {
        torc_channel_free(clients[i].ch);
        torc_runtime_free(clients[i].rt);
        clients[i] = (struct client){0};
    }
    /* Until the server has seen the ends, connections may go elsewhere. */
    int where = -1;
    while (where != 2) {
        where = client_where(&clients[2]);
        if (where == 2)
            break;
        torc_channel_free(clients[2].ch);
        torc_runtime_free(clients[2].rt);
        clients[2] = (struct client){0};
    }
    assert_int_equal(client_where(&clients[6]), 2);
}

static void test_reuse_port(void **state)
{
    (void)state;
    int counts[RUNTIMES] = {0};
    torc_server_free(server);
    releases = 0;
    server_make((struct torc_server_options){.listen_mode = TORC_LISTEN_REUSE_PORT});
    server_start("127.0.0.1:0");
    for (int i = 0; i < CLIENTS; i++) {
        int where = client_where(&clients[i]);
        assert_in_range(where, 0, RUNTIMES - 1);
        counts[where]++;
    }
    int used = 0;
    for (int i = 0; i < RUNTIMES; i++)
        used += counts[i] > 0;
    assert_true(used > 1); /* the system chooses; all 40 on one: less than 1 in 4 to the 39th */
    char *again = NULL;
    torc_error *error = NULL;
    assert_int_equal(torc_server_listen(server, "192.0.2.1:1", torc_credentials_insecure(), &again, &error), TORC_EIO);
    assert_non_null(strstr(torc_error_text(error), "failed to listen on 192.0.2.1:1"));
    torc_error_free(error);
    assert_null(again);
}

/* Runtimes share the socket of a Unix address also with TORC_LISTEN_REUSE_PORT, so connections spread evenly. */
static void test_unix(void **state)
{
    (void)state;
    int counts[RUNTIMES] = {0};
    char path[64];
    torc_server_free(server);
    releases = 0;
    server_make((struct torc_server_options){.listen_mode = TORC_LISTEN_REUSE_PORT});
    snprintf(path, sizeof(path), "unix-abstract:torc-runtimes-%d", (int)getpid());
    server_start(path);
    for (int i = 0; i < CLIENTS; i++) {
        int where = client_where(&clients[i]);
        assert_in_range(where, 0, RUNTIMES - 1);
        counts[where]++;
    }
    for (int i = 0; i < RUNTIMES; i++)
        assert_int_equal(counts[i], CLIENTS / RUNTIMES);
}

/* --- over all runtimes --- */

static void test_replies_of_other_threads(void **state)
{
    (void)state;
    server_start("127.0.0.1:0");
    clients_hold(2 * RUNTIMES);
    finish_held(TORC_STATUS_ABORTED);
    for (int i = 0; i < 2 * RUNTIMES; i++)
        client_expect_end(&clients[i], TORC_STATUS_ABORTED);
}

static void test_limits(void **state)
{
    (void)state;
    const struct torc_method_options two = {TORC_SIZE(torc_method_options), .max_calls = 2};
    assert_int_equal(torc_server_limit(server, "a.B/Hold", &two, NULL), 0);
    server_start("127.0.0.1:0");
    clients_hold(2);
    for (int round = 0; round < 2; round++) {
        assert_true(client_where(&clients[2]) >= 0);
        client_hold(&clients[2]);
        client_expect_end(&clients[2], TORC_STATUS_RESOURCE_EXHAUSTED);
        torc_stream_free(clients[2].s);
    }
    finish_held(TORC_STATUS_OK);
    client_expect_end(&clients[0], TORC_STATUS_OK);
    client_expect_end(&clients[1], TORC_STATUS_OK);
    client_hold(&clients[2]);
    wait_for_held(1);
    finish_held(TORC_STATUS_OK);
    client_expect_end(&clients[2], TORC_STATUS_OK);
}

/* A reply above a runtime's even part of unsent_bytes is sent while all runtimes together are below the limit. */
static void test_a_large_reply(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20, REPLY = LIMIT / 2 };
    const torc_message *m;
    char *zeros = calloc(1, REPLY);
    torc_server_free(server);
    releases = 0;
    server_make((struct torc_server_options){.unsent_bytes = LIMIT});
    server_start("127.0.0.1:0");
    clients_hold(1);
    assert_int_equal(torc_server_call_reply(held.calls[--held.n], zeros, REPLY), 0);
    assert_int_equal(torc_stream_receive(clients[0].s, -1, &m), 1);
    assert_int_equal(torc_message_size(m), REPLY);
    client_expect_end(&clients[0], TORC_STATUS_OK);
    free(zeros);
}

/* max_connections, 3, is below the number of runtimes: three connections are served. A fourth is closed, since each of
 * the three has an RPC. */
static void test_max_connections(void **state)
{
    (void)state;
    torc_server_free(server);
    releases = 0;
    server_make((struct torc_server_options){.max_connections = 3});
    server_start("127.0.0.1:0");
    clients_hold(3);
    assert_int_equal(client_where(&clients[3]), -1);
    finish_held(TORC_STATUS_OK);
}

static void test_health(void **state)
{
    (void)state;
    const torc_message *m;
    torc_error *error = NULL;
    torc_health *health = torc_health_new(server, &error);
    server_start("127.0.0.1:0");
    for (int i = 0; i < RUNTIMES; i++) {
        assert_true(client_where(&clients[i]) >= 0);
        clients[i].s = torc_stream_open(clients[i].ch, "grpc.health.v1.Health/Watch", NULL, NULL);
        assert_int_equal(torc_stream_send(clients[i].s, NULL, 0, TORC_SEND_LAST, -1), 0);
        assert_int_equal(torc_stream_receive(clients[i].s, -1, &m), 1);
        assert_memory_equal(torc_message_data(m), "\x08\x01", 2);
    }
    assert_int_equal(torc_health_set(health, "", TORC_HEALTH_NOT_SERVING), 0);
    for (int i = 0; i < RUNTIMES; i++) {
        assert_int_equal(torc_stream_receive(clients[i].s, -1, &m), 1);
        assert_memory_equal(torc_message_data(m), "\x08\x02", 2);
    }
    torc_health_free(health);
}

/* --- stops and ends --- */

static void on_stopped(void *arg)
{
    (void)arg;
    atomic_fetch_add(&stopped, 1);
}

static void test_stop_waits_for_all(void **state)
{
    (void)state;
    server_start("127.0.0.1:0");
    clients_hold(RUNTIMES);
    assert_int_equal(torc_server_stop_async(server, -1, on_stopped, NULL), 0);
    for (size_t left = RUNTIMES; left > 0; left--) {
        assert_int_equal(atomic_load(&stopped), 0);
        pthread_mutex_lock(&held.mutex);
        torc_server_call *call = held.calls[--held.n];
        pthread_mutex_unlock(&held.mutex);
        assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), 0);
    }
    for (int i = 0; i < RUNTIMES; i++)
        client_expect_end(&clients[i], TORC_STATUS_OK);
    clients_free();
    assert_int_equal(torc_server_stop(server, -1), 0);
    while (!atomic_load(&stopped))
        sched_yield();
    assert_int_equal(torc_server_stop(server, 0), 0);
    assert_int_equal(atomic_load(&stopped), 1);
}

static void test_stop_with_grace(void **state)
{
    (void)state;
    for (int64_t grace_ms = 0; grace_ms <= 20; grace_ms += 20) {
        server_start("127.0.0.1:0");
        clients_hold(RUNTIMES);
        assert_int_equal(torc_server_stop(server, grace_ms), 0);
        for (int i = 0; i < RUNTIMES; i++)
            client_expect_end(&clients[i], TORC_STATUS_UNAVAILABLE);
        finish_held(TORC_STATUS_OK);
        clients_free();
        torc_server_free(server);
        releases = 0;
        server_make((struct torc_server_options){0});
    }
}

static void test_free_in_a_handler(void **state)
{
    (void)state;
    for (int at = 0; at < RUNTIMES; at++) {
        server_start("127.0.0.1:0");
        int free_at = -1;
        for (int i = 0; i < RUNTIMES; i++)
            if (client_where(&clients[i]) == at)
                free_at = i;
        assert_in_range(free_at, 0, RUNTIMES - 1);
        torc_result_free(torc_unary(clients[free_at].ch, "a.B/Free", NULL, 0, NULL));
        while (atomic_load(&releases) < 3)
            sched_yield();
        assert_int_equal(free_replies, at + 1);
        clients_free();
        releases = 0;
        server_make((struct torc_server_options){0});
    }
}

/* A runtime that is freed ends its connections. The RPCs of the other runtimes go on, and these get the new
 * connections. */
static void test_end_of_another_runtime(void **state)
{
    (void)state;
    server_start("127.0.0.1:0");
    clients_hold(RUNTIMES);
    assert_int_equal(torc_runtime_free(rts[2]), 0);
    client_expect_end(&clients[2], TORC_STATUS_UNAVAILABLE);
    finish_held(TORC_STATUS_OK);
    for (int i = 0; i < RUNTIMES; i++)
        if (i != 2)
            client_expect_end(&clients[i], TORC_STATUS_OK);
    for (int i = RUNTIMES; i < 3 * RUNTIMES; i++) {
        int where = client_where(&clients[i]);
        assert_in_range(where, 0, RUNTIMES - 1);
        assert_int_not_equal(where, 2);
    }
    assert_int_equal(torc_server_stop(server, 0), 0);
    rts[2] = kit_backends_runtime(TORC_RUNTIME_THREAD);
}

static void test_end_of_the_first_runtime(void **state)
{
    (void)state;
    server_start("127.0.0.1:0");
    clients_hold(RUNTIMES);
    assert_int_equal(torc_server_stop_async(server, -1, on_stopped, NULL), 0);
    assert_int_equal(torc_runtime_free(rts[0]), 0);
    assert_int_equal(atomic_load(&stopped), 1);
    for (int i = 0; i < RUNTIMES; i++)
        client_expect_end(&clients[i], TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_server_stop(server, 0), TORC_ECLOSED);
    rts[0] = kit_backends_runtime(TORC_RUNTIME_THREAD);
}

static void test_malformed(void **state)
{
    (void)state;
    torc_runtime *driven = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_runtime *const lists[][3] = {{rts[1], driven}, {rts[1], rts[1]}, {rts[1], rts[0]}};
    static const char *const texts[] = {"options: runtimes[1]: it has no thread",
                                        "options: runtimes[1]: it is in the list twice",
                                        "options: runtimes[1]: it is the server's first runtime"};
    for (size_t i = 0; i < TC_ARRAY_LEN(lists); i++) {
        torc_error *error = NULL;
        const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rts[0], .runtimes = lists[i]};
        assert_null(torc_server_new(&o, &error));
        assert_int_equal(torc_error_code(error), TORC_EINVAL);
        assert_string_equal(torc_error_text(error), texts[i]);
        torc_error_free(error);
    }
    torc_runtime_free(driven);
}

/* The list is not read beyond its 256th element. */
static void test_too_many(void **state)
{
    (void)state;
    torc_runtime *list[256];
    torc_error *error = NULL;
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rts[0], .runtimes = list};
    for (size_t i = 0; i < TC_ARRAY_LEN(list); i++)
        list[i] = rts[1];
    assert_null(torc_server_new(&o, &error));
    assert_string_equal(torc_error_text(error), "options: runtimes: are more than 255");
    torc_error_free(error);
}

/* --- ends at random moments --- */

static unsigned seed;

static unsigned chance(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

static atomic_int results;

static void on_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    atomic_fetch_add(&results, 1);
}

static void *stop_soon(void *arg)
{
    torc_server_stop(arg, 0);
    return NULL;
}

static void end_somehow(void)
{
    pthread_t stopper;
    unsigned how = chance(5);
    bool stops = chance(2);
    if (stops)
        assert_int_equal(pthread_create(&stopper, NULL, stop_soon, server), 0);
    if (how < RUNTIMES) { /* a runtime ends before the server is freed */
        assert_int_equal(torc_runtime_free(rts[how]), 0);
        rts[how] = NULL;
    }
    if (stops)
        pthread_join(stopper, NULL);
    torc_server_free(server);
}

static void one_round(torc_runtime *const *client_rts)
{
    enum { CHANNELS = 6, RPCS = 60 };
    torc_channel *chs[CHANNELS];
    torc_stream *streams[RPCS];
    runtimes_make();
    results = 0;
    server_make((struct torc_server_options){.listen_mode = (int64_t)chance(2)});
    server_start("127.0.0.1:0");
    for (int i = 0; i < CHANNELS; i++)
        chs[i] = torc_channel_new(client_rts[i % 3], bound, NULL, NULL);
    for (int i = 0; i < RPCS; i++)
        assert_int_equal(torc_unary_async(chs[i % CHANNELS], i % 4 ? "a.B/Where" : "a.B/Hold", "m", 1, NULL, on_result,
                                          NULL, &streams[i], NULL),
                         0);
    for (unsigned i = chance(3000); i; i--)
        sched_yield();
    if (chance(2))
        finish_held(TORC_STATUS_OK);
    end_somehow();
    for (int i = 0; i < RPCS; i++)
        torc_stream_free(streams[i]);
    for (int i = 0; i < CHANNELS; i++)
        torc_channel_free(chs[i]);
    while (atomic_load(&results) < RPCS)
        sched_yield();
    finish_held(TORC_STATUS_OK);
    for (int i = 0; i < RUNTIMES; i++)
        if (rts[i])
            assert_int_equal(torc_runtime_free(rts[i]), 0);
    assert_int_equal(releases, 3);
}

static void test_ends_at_any_moment(void **state)
{
    (void)state;
    torc_runtime *client_rts[3];
    for (int i = 0; i < 3; i++)
        client_rts[i] = kit_backends_runtime(TORC_RUNTIME_THREAD);
    for (uint64_t n = tc_env_number("TORC_THREAD_ROUNDS", 40); n > 0; n--) {
        seed = (unsigned)n;
        one_round(client_rts);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(torc_runtime_free(client_rts[i]), 0);
    torc_free(bound);
    bound = NULL;
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_spread),
        T(test_fewest_first),
        T(test_reuse_port),
        T(test_unix),
        T(test_replies_of_other_threads),
        T(test_limits),
        T(test_a_large_reply),
        T(test_max_connections),
        T(test_health),
        T(test_stop_waits_for_all),
        T(test_stop_with_grace),
        T(test_free_in_a_handler),
        T(test_end_of_another_runtime),
        T(test_end_of_the_first_runtime),
        T(test_malformed),
        T(test_too_many),
        cmocka_unit_test(test_ends_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
