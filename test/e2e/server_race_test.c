/* Servers that end at random moments while threads answer their calls: the server is stopped or freed, or its runtime
 * is freed. Some RPCs are cancelled, run out of time or are not read. Each RPC must end, and the events of each call
 * must be released once. The release frees the events' argument, so that a sanitizer sees an event that comes later.
 *
 * A round has a server on a runtime with a thread, RPCS RPCs from a channel on another such runtime, and WORKERS
 * threads. Handlers answer some streams at once and put all other calls into `queue`. A worker takes a call from there,
 * and owns the call until it has answered in one of six ways. The test's thread ends the server, waits for the
 * results of all RPCs, and then ends the workers.
 *
 * TORC_THREAD_ROUNDS: how many rounds (100 by default). The second test stops ten times as many servers, each while
 * another thread adds a service. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/number.h"

enum { WORKERS = 3, RPCS = 12, CALLS = 64 };

/* Calls on their way from handlers to workers. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    torc_server_call *calls[CALLS];
    size_t n;
    bool closed;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static atomic_uint seed;
static atomic_int events_set, released, results, handler_releases; /* in the round */

/* Returns a number from 0 to n - 1. Any thread. */
static unsigned chance(unsigned n)
{
    unsigned x = atomic_fetch_add(&seed, 2654435761u);
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    return x % n;
}

/* The queue has room: a round makes fewer RPCs. The queue is open: a round closes the queue after the server's end. */
static void hand_over(torc_server_call *call)
{
    pthread_mutex_lock(&queue.mutex);
    CHECK(!queue.closed && queue.n < CALLS);
    queue.calls[queue.n++] = call;
    pthread_cond_signal(&queue.cond);
    pthread_mutex_unlock(&queue.mutex);
}

static void on_unary(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    hand_over(call);
}

static void on_stream(torc_server_call *call, void *arg)
{
    (void)arg;
    if (chance(8) == 0)
        torc_server_call_reply(call, "at once", 7);
    else
        hand_over(call);
}

static void on_message(torc_server_call *call, const torc_message *m, void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    if (torc_server_call_send(call, torc_message_data(m), torc_message_size(m), 0, 0) == 0)
        torc_server_call_want(call, 1);
}

static void on_event(torc_server_call *call, void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    torc_server_call_cancelled(call);
}

static void on_release(void *arg)
{
    free(arg);
    atomic_fetch_add(&released, 1);
}

static void listen_to(torc_server_call *call)
{
    static const struct torc_server_call_events events = {
        TORC_SIZE(torc_server_call_events),
        .on_message = on_message,
        .on_half_close = on_event,
        .on_writable = on_event,
        .on_cancel = on_event,
        .release = on_release,
    };
    atomic_int *arg = calloc(1, sizeof(*arg));
    if (torc_server_call_set_events(call, &events, arg) == 0)
        atomic_fetch_add(&events_set, 1);
    else
        free(arg);
    torc_server_call_want(call, 1 + chance(40));
}

static void work_on(torc_server_call *call)
{
    static char block[20000];
    const torc_message *m;
    switch (chance(6)) {
    case 0:
        torc_server_call_reply(call, "done", 4);
        return;
    case 1:
        listen_to(call);
        for (unsigned i = chance(200); i; i--)
            sched_yield();
        break;
    case 2:
        while (torc_server_call_send(call, block, sizeof(block), 0, 1) == 0) {
        }
        break;
    case 3:
        while (torc_server_call_receive(call, (int64_t)chance(3), &m) == 1)
            if (torc_server_call_send(call, torc_message_data(m), torc_message_size(m), 0, -1) != 0)
                break;
        break;
    case 4:
        listen_to(call);
        while (torc_server_call_send(call, block, sizeof(block), 0, 0) == 0) {
        }
        break;
    default:
        torc_server_call_send_headers(call, NULL);
        torc_server_call_printf(call, "%s", torc_server_call_peer(call));
    }
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void *worker(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&queue.mutex);
        while (!queue.n && !queue.closed)
            pthread_cond_wait(&queue.cond, &queue.mutex);
        torc_server_call *call = queue.n ? queue.calls[--queue.n] : NULL;
        pthread_mutex_unlock(&queue.mutex);
        if (!call)
            return arg;
        work_on(call);
    }
}

/* --- clients --- */

static void on_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    atomic_fetch_add(&results, 1);
}

static void on_done(torc_stream *s, const torc_result *result, void *arg)
{
    (void)s;
    on_result(result, arg);
}

/* Stores the handles of the RPCs in streams[0] to streams[RPCS - 1]; the caller frees them. */
static void start_rpcs(torc_channel *ch, torc_stream **streams)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_done = on_done};
    for (int i = 0; i < RPCS; i++) {
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = chance(3) ? 0 : 1 + chance(5)};
        streams[i] = NULL;
        if (chance(2)) {
            torc_unary_async(ch, "a.B/Unary", "request", 7, &o, on_result, NULL, &streams[i], NULL);
            continue;
        }
        streams[i] = torc_stream_start(ch, "a.B/Stream", &o, &events, NULL, NULL);
        torc_stream_want(streams[i], chance(30));
        torc_stream_send(streams[i], "message", 7, chance(2) ? TORC_SEND_LAST : 0, 0);
    }
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Returns a server that runs; the caller frees the server, and *bound with torc_free. */
static torc_server *make_server(torc_runtime *rt, char **bound)
{
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt, .send_buffer_bytes = 30000};
    struct torc_handler unary = {TORC_SIZE(torc_handler), .unary = on_unary, .release = count,
                                 .arg = &handler_releases};
    struct torc_handler stream = {TORC_SIZE(torc_handler), .stream = on_stream, .release = count,
                                  .arg = &handler_releases};
    torc_server *server = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(server, "a.B/Unary", &unary, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Stream", &stream, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    return server;
}

/* Frees the server. Before that `how` 1 stops the server, 2 begins a stop whose callback must come, and 3 frees the
 * runtime and sets *rt to NULL. */
static void end(torc_server *server, torc_runtime **rt, unsigned how)
{
    static atomic_int stops;
    stops = 0;
    if (how == 1)
        assert_int_equal(torc_server_stop(server, (int64_t)chance(4)), 0);
    if (how == 2)
        assert_int_equal(torc_server_stop_async(server, (int64_t)chance(4), count, &stops), 0);
    if (how == 3) {
        assert_int_equal(torc_runtime_free(*rt), 0);
        *rt = NULL;
    }
    torc_server_free(server);
    assert_int_equal(stops, how == 2);
}

static void one_round(torc_runtime *client_rt)
{
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    pthread_t workers[WORKERS];
    torc_stream *streams[RPCS];
    char *bound = NULL;
    events_set = released = results = handler_releases = 0;
    queue.closed = false;
    torc_server *server = make_server(rt, &bound);
    torc_channel *ch = torc_channel_new(client_rt, bound, NULL, NULL);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, worker, NULL), 0);
    start_rpcs(ch, streams);
    for (unsigned i = chance(2000); i; i--)
        sched_yield();
    for (int i = 0; i < RPCS; i++)
        if (chance(4) == 0)
            torc_stream_cancel(streams[i]);
    end(server, &rt, chance(4));
    assert_int_equal(handler_releases, 2);
    for (int i = 0; i < RPCS; i++)
        torc_stream_free(streams[i]);
    torc_channel_free(ch);
    while (results < RPCS)
        sched_yield();
    pthread_mutex_lock(&queue.mutex);
    queue.closed = true;
    pthread_cond_broadcast(&queue.cond);
    pthread_mutex_unlock(&queue.mutex);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(queue.n, 0);
    assert_int_equal(results, RPCS);
    assert_int_equal(released, events_set);
    torc_free(bound);
}

static void test_ends_at_any_moment(void **state)
{
    (void)state;
    torc_runtime *client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    for (uint64_t n = tc_env_number("TORC_THREAD_ROUNDS", 100); n > 0; n--)
        one_round(client_rt);
    assert_int_equal(torc_runtime_free(client_rt), 0);
}

static void *add_health(void *arg)
{
    return torc_health_new(arg, NULL);
}

/* A service that is added while the server stops hears of the stop, or is refused. */
static void test_service_while_server_stops(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    for (uint64_t n = 10 * tc_env_number("TORC_THREAD_ROUNDS", 100); n > 0; n--) {
        torc_server *server = torc_server_new(&o, NULL);
        pthread_t thread;
        void *health;
        assert_int_equal(pthread_create(&thread, NULL, add_health, server), 0);
        for (unsigned i = chance(40); i; i--)
            sched_yield();
        assert_int_equal(torc_server_stop(server, 0), 0);
        pthread_join(thread, &health);
        if (health)
            assert_int_equal(torc_health_set(health, "", TORC_HEALTH_SERVING), TORC_ESTATE);
        torc_health_free(health);
        torc_server_free(server);
    }
    assert_int_equal(torc_runtime_free(rt), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends_at_any_moment),
                                       cmocka_unit_test(test_service_while_server_stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
