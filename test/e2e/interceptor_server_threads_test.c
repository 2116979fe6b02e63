/* A server's interceptor delays RPCs, and other threads resume them in changing order, while RPCs run, are cancelled,
 * reach their deadlines, or end with their server. Whatever happens, on_end comes once for each on_start. For the
 * thread sanitizer. TORC_THREAD_ROUNDS: how many servers, one after another (30 by default).
 *
 * In a round, hooks run on the loop's thread of the server and put their delays into `crowd`; RESUMERS threads take the
 * delays out and resume the RPCs. Handlers run on the loop's thread or on a pool. The test's thread starts and cancels
 * unary RPCs, another thread runs one stream. The results of the unary RPCs come on the loop's thread of the client.
 * The test's thread frees the server at a random moment, and then channel, pool and runtimes. The resumers end last: a
 * delay may outlive its server and the runtime. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

#include "base/common.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/number.h"

enum { RPCS = 60, RESUMERS = 2, MESSAGES = 4, MAX_PENDING = RPCS * 16 };

/* The delays that no thread has taken; under the mutex. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    torc_pending *pending[MAX_PENDING];
    size_t n;
    bool over; /* no more delays come */
} crowd = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Of this round: calls of on_start, on_end and release; unary RPCs that have ended at the client. */
static atomic_int starts, ends, releases, results;
static unsigned turn; /* calls of crowd_hook so far; used on the server's loop thread only */

/* Delays two hooks of three. */
static int crowd_hook(torc_rpc *rpc)
{
    if (turn++ % 3 == 0)
        return 0;
    torc_pending *p = torc_rpc_suspend(rpc);
    pthread_mutex_lock(&crowd.mutex);
    CHECK(crowd.n < MAX_PENDING);
    crowd.pending[crowd.n++] = p;
    pthread_cond_broadcast(&crowd.changed);
    pthread_mutex_unlock(&crowd.mutex);
    return TORC_PENDING;
}

/* The state is 0 at first, 1 after on_start, and 2 after on_end. */
static int on_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)arg;
    CHECK(*(int *)state == 0);
    *(int *)state = 1;
    atomic_fetch_add(&starts, 1);
    return crowd_hook(rpc);
}

static int on_message(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)sent, (void)message, (void)state, (void)arg;
    return crowd_hook(rpc);
}

static int on_status(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)code, (void)state, (void)arg;
    return crowd_hook(rpc);
}

static void on_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)rpc, (void)code, (void)arg;
    CHECK(*(int *)state == 1);
    *(int *)state = 2;
    atomic_fetch_add(&ends, 1);
}

static void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&releases, 1);
}

/* A resumer's thread: resumes delays until none is left and no more come. */
static void *crowd_resume(void *arg)
{
    unsigned i = 0;
    (void)arg;
    pthread_mutex_lock(&crowd.mutex);
    while (crowd.n || !crowd.over) {
        if (!crowd.n) {
            pthread_cond_wait(&crowd.changed, &crowd.mutex);
            continue;
        }
        size_t at = i++ % 2 ? crowd.n - 1 : crowd.n / 2;
        torc_pending *p = crowd.pending[at];
        crowd.pending[at] = crowd.pending[--crowd.n];
        pthread_mutex_unlock(&crowd.mutex);
        torc_pending_add_metadata(p, "x-added", "y", 1);
        if (i % 5 == 0)
            torc_pending_set_message(p, torc_message_new("longer than before", 18));
        torc_rpc_resume(p, i % 17 ? 0 : TORC_STATUS_ABORTED, NULL);
        pthread_mutex_lock(&crowd.mutex);
    }
    pthread_mutex_unlock(&crowd.mutex);
    return NULL;
}

/* --- handlers --- */

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* On the pool: echoes each message. */
static void on_stream(torc_server_call *call, void *arg)
{
    const torc_message *m;
    (void)arg;
    while (torc_server_call_receive(call, -1, &m) == 1)
        if (torc_server_call_send(call, torc_message_data(m), torc_message_size(m), 0, -1) != 0)
            break;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* Returns a started server, and its address in *bound, which the caller frees with torc_free. Does not take the pool or
 * the runtime over. */
static torc_server *server_new(torc_runtime *rt, torc_pool *pool, char **bound)
{
    static const struct torc_interceptor crowded = {
        TORC_SIZE(torc_interceptor), .state_size = sizeof(int), .on_start = on_start, .on_message = on_message,
        .on_status = on_status,      .on_end = on_end,          .release = on_release};
    const struct torc_interceptor *const list[] = {&crowded, NULL};
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt, .interceptors = list};
    const struct torc_handler echo = {TORC_SIZE(torc_handler), .unary = on_echo},
                              stream = {TORC_SIZE(torc_handler), .stream = on_stream};
    const struct torc_method_options pooled = {TORC_SIZE(torc_method_options), .pool = pool};
    torc_server *server = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(server, "a.B/Echo", &echo, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Pooled", &echo, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "a.B/Stream", &stream, NULL), 0);
    assert_int_equal(torc_server_limit(server, "a.B/Pooled", &pooled, NULL), 0);
    assert_int_equal(torc_server_limit(server, "a.B/Stream", &pooled, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    return server;
}

/* --- rounds --- */

static void on_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    atomic_fetch_add(&results, 1);
}

/* A client's thread: one stream of MESSAGES messages, to its end. arg: the channel. */
static void *stream_through(void *arg)
{
    const torc_message *m;
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 20000};
    torc_stream *s = torc_stream_open(arg, "a.B/Stream", &o, NULL);
    for (int i = 0; s && i < MESSAGES; i++)
        torc_stream_send(s, "m", 1, i == MESSAGES - 1 ? TORC_SEND_LAST : 0, -1);
    while (s && torc_stream_receive(s, -1, &m) == 1)
        ;
    torc_stream_free(s);
    return NULL;
}

/* Starts RPCS unary RPCs and cancels some. Stores their handles in `streams`, which the caller frees. */
static void run_clients(torc_channel *ch, torc_stream **streams, unsigned *seed)
{
    for (int i = 0; i < RPCS; i++) {
        const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = i % 5 ? 20000 : 1 + i % 4};
        assert_int_equal(
            torc_unary_async(ch, i % 2 ? "a.B/Echo" : "a.B/Pooled", "m", 1, &o, on_result, NULL, &streams[i], NULL), 0);
        if (i >= 8 && rand_r(seed) % 4 == 0)
            torc_stream_cancel(streams[i - 8]);
    }
}

static void one_round(unsigned seed)
{
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_THREAD),
                 *client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    torc_pool *pool = torc_pool_new(2, 1000, NULL);
    const struct torc_channel_options co = {TORC_SIZE(torc_channel_options),
                                            .credentials = torc_credentials_insecure()};
    torc_stream *streams[RPCS];
    pthread_t resumers[RESUMERS], streaming;
    char *bound, target[64];
    starts = ends = releases = results = 0;
    crowd.over = false;
    torc_server *server = server_new(rt, pool, &bound);
    snprintf(target, sizeof(target), "ipv4:%s", bound);
    torc_free(bound);
    torc_channel *ch = torc_channel_new(client_rt, target, &co, NULL);
    for (size_t i = 0; i < RESUMERS; i++)
        assert_int_equal(pthread_create(&resumers[i], NULL, crowd_resume, NULL), 0);
    assert_int_equal(pthread_create(&streaming, NULL, stream_through, ch), 0);
    run_clients(ch, streams, &seed);
    int until = rand_r(&seed) % (RPCS + 1);
    while (atomic_load(&results) < until)
        sched_yield();
    if (rand_r(&seed) % 2)
        assert_int_equal(torc_server_stop(server, rand_r(&seed) % 3 - 1), 0);
    torc_server_free(server);
    assert_int_equal(atomic_load(&starts), atomic_load(&ends));
    pthread_join(streaming, NULL);
    for (int i = 0; i < RPCS; i++)
        torc_stream_free(streams[i]);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(client_rt), 0);
    assert_int_equal(torc_pool_free(pool), 0);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(atomic_load(&releases), 1);
    pthread_mutex_lock(&crowd.mutex);
    crowd.over = true;
    pthread_cond_broadcast(&crowd.changed);
    pthread_mutex_unlock(&crowd.mutex);
    for (size_t i = 0; i < RESUMERS; i++)
        pthread_join(resumers[i], NULL);
}

static void test_rounds(void **state)
{
    (void)state;
    for (uint64_t n = tc_env_number("TORC_THREAD_ROUNDS", 30); n > 0; n--)
        one_round((unsigned)n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
