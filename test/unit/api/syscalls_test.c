/* The system calls of RPCs: all RPCs of a loop turn share few writes, and threads hardly ever wake the loop.
 * test_threads_take_turns counts nothing: its threads drive one loop in turn, and all their RPCs are served.
 *
 * The program is linked so that Torc's calls of send, sendmsg, uv_async_send and uv_run go through the functions of
 * this file, which count them. The test's threads drive the client's loop (TORC_RUNTIME_CALLER), except in
 * test_posts_batch, where the runtime's thread does. The backend has a thread of its own. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <uv.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
int __real_uv_async_send(uv_async_t *async);
int __real_uv_run(uv_loop_t *loop, uv_run_mode mode);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_uv_async_send(uv_async_t *async);
int __wrap_uv_run(uv_loop_t *loop, uv_run_mode mode);

/* `writes` counts calls of send and sendmsg, `turns` those of uv_run, `looks` those of uv_run that do not wait for
 * events, `wakeups` those of uv_async_send. All but `wakeups` are counted by thread, because the backend's loop turns
 * in this process, too. */
static _Thread_local unsigned writes, turns, looks;
static atomic_uint wakeups;

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
    writes++;
    return __real_send(fd, data, len, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    writes++;
    return __real_sendmsg(fd, m, flags);
}

int __wrap_uv_async_send(uv_async_t *async)
{
    atomic_fetch_add(&wakeups, 1);
    return __real_uv_async_send(async);
}

int __wrap_uv_run(uv_loop_t *loop, uv_run_mode mode)
{
    turns++;
    looks += mode == UV_RUN_NOWAIT;
    return __real_uv_run(loop, mode);
}

struct client {
    torc_runtime *rt;
    torc_channel *ch;
    atomic_uint done; /* RPCs that `begin` started, and that ended with OK */
};

static void open_client(struct client *c, enum torc_runtime_mode mode)
{
    c->rt = kit_backends_runtime(mode);
    c->ch = torc_channel_new(c->rt, kit_backends_target(kit_backends_one), NULL, NULL);
    assert_non_null(c->ch);
    atomic_init(&c->done, 0);
}

static void close_client(struct client *c)
{
    torc_channel_free(c->ch);
    assert_int_equal(torc_runtime_free(c->rt), 0);
}

/* block, begin, ping_pong and finish run on any thread, so they assert by CHECK. */
static void block(struct client *c)
{
    torc_result *r = torc_unary(c->ch, "test.Echo/Echo", "hello", 5, NULL);
    CHECK(torc_result_code(r) == TORC_STATUS_OK);
    torc_result_free(r);
}

static void on_unary(const torc_result *r, void *arg)
{
    struct client *c = arg;
    if (torc_result_code(r) == TORC_STATUS_OK)
        atomic_fetch_add(&c->done, 1);
}

static void begin(struct client *c)
{
    CHECK(torc_unary_async(c->ch, "test.Echo/Echo", "hello", 5, NULL, on_unary, c, NULL, NULL) == 0);
}

enum { CALLS = 500 };

/* A thread that drives the loop itself wakes nobody and writes about once for each call. It looks for events before it
 * writes only if its last look is more than a millisecond old (io/loop_turn.c). */
static void test_blocking(void **state)
{
    (void)state;
    struct client c;
    open_client(&c, TORC_RUNTIME_CALLER);
    block(&c);
    unsigned woken = atomic_load(&wakeups), before = writes, looked = looks;
    for (unsigned i = 0; i < CALLS; i++)
        block(&c);
    print_message("%d blocking calls: %u wake-ups, %u writes, %u looks for events before\n", CALLS,
                  atomic_load(&wakeups) - woken, writes - before, looks - looked);
    assert_in_range(looks - looked, 0, CALLS / 4);
    assert_int_equal(atomic_load(&wakeups) - woken, 0);
    assert_in_range(writes - before, CALLS,
                    CALLS + CALLS / 10); /* now and then a SETTINGS or WINDOW_UPDATE is a write of its own */
    close_client(&c);
}

static void ping_pong(torc_stream *call, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const torc_message *m;
        CHECK(torc_stream_send(call, "hello", 5, 0, -1) == 0);
        CHECK(torc_stream_receive(call, -1, &m) == 1);
        CHECK(torc_message_size(m) == 5);
    }
}

static void finish(torc_stream *call)
{
    torc_result *r = torc_stream_finish(call);
    CHECK(torc_result_code(r) == TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(call);
}

/* A message that a stream sends takes about one write. Neither sending nor receiving a message wakes a thread. */
static void test_blocking_stream(void **state)
{
    (void)state;
    struct client c;
    open_client(&c, TORC_RUNTIME_CALLER);
    torc_stream *call = torc_stream_open(c.ch, "test.Echo/Echo", NULL, NULL);
    assert_non_null(call);
    ping_pong(call, 2);
    unsigned woken = atomic_load(&wakeups), before = writes;
    ping_pong(call, CALLS);
    print_message("%d messages there and back: %u wake-ups, %u writes\n", CALLS, atomic_load(&wakeups) - woken,
                  writes - before);
    assert_int_equal(atomic_load(&wakeups) - woken, 0);
    assert_in_range(writes - before, CALLS, CALLS + CALLS / 10);
    finish(call);
    assert_in_range(atomic_load(&wakeups) - woken, 0, 1); /* by torc_stream_free */
    close_client(&c);
}

/* Calls that begin in one loop turn share the turn's writes. The server takes 100 streams at a time, so the requests of
 * the other calls go out in later turns. */
static void test_one_write_a_turn(void **state)
{
    (void)state;
    struct client c;
    open_client(&c, TORC_RUNTIME_CALLER);
    block(&c);
    unsigned wrote = writes, turned = turns;
    for (unsigned i = 0; i < CALLS; i++)
        begin(&c);
    torc_runtime_poll(c.rt, 0);
    unsigned first = writes - wrote;
    while (atomic_load(&c.done) < CALLS)
        torc_runtime_poll(c.rt, 1000);
    print_message("%d calls at once: %u writes in their turn, %u in %u turns\n", CALLS, first, writes - wrote,
                  turns - turned);
    assert_in_range(first, 1, 3); /* of the 100 requests that the server takes at a time */
    unsigned limit = turns - turned + 2;
    assert_in_range(writes - wrote, 1, limit < CALLS ? limit : CALLS - 1); /* fewer than one a call in any case */
    close_client(&c);
}

enum { THREADS = 4 };

static void *begin_many(void *arg)
{
    for (unsigned i = 0; i < CALLS; i++)
        begin(arg);
    return NULL;
}

static void stand_still(void *arg)
{
    pthread_mutex_lock(arg);
    pthread_mutex_unlock(arg);
}

/* While a loop runs a callback, it is woken at most once, however many calls other threads begin. */
static void test_posts_batch(void **state)
{
    (void)state;
    struct client c;
    pthread_t threads[THREADS];
    pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
    open_client(&c, TORC_RUNTIME_THREAD);
    block(&c);
    pthread_mutex_lock(&busy);
    assert_int_equal(torc_runtime_post(c.rt, stand_still, &busy), 0);
    unsigned woken = atomic_load(&wakeups);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, begin_many, &c), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    print_message("%d calls of %d threads: %u wake-ups\n", THREADS * CALLS, THREADS, atomic_load(&wakeups) - woken);
    assert_in_range(atomic_load(&wakeups) - woken, 0, 1);
    pthread_mutex_unlock(&busy);
    for (unsigned i = 0; atomic_load(&c.done) < THREADS * CALLS; i++)
        block(&c);
    close_client(&c);
}

static void *block_many(void *arg)
{
    for (unsigned i = 0; i < CALLS; i++)
        block(arg);
    return NULL;
}

static void *stream_many(void *arg)
{
    struct client *c = arg;
    for (unsigned i = 0; i < CALLS / 20; i++) {
        torc_stream *call = torc_stream_open(c->ch, "test.Echo/Echo", NULL, NULL);
        CHECK(call);
        ping_pong(call, 20);
        finish(call);
    }
    return NULL;
}

/* Two threads make unary calls and two use streams, on a runtime without a thread of its own. All are served, whichever
 * of them drives the loop. */
static void test_threads_take_turns(void **state)
{
    (void)state;
    struct client c;
    pthread_t threads[THREADS];
    open_client(&c, TORC_RUNTIME_CALLER);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? stream_many : block_many, &c), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    close_client(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking),           cmocka_unit_test(test_blocking_stream),
        cmocka_unit_test(test_one_write_a_turn),   cmocka_unit_test(test_posts_batch),
        cmocka_unit_test(test_threads_take_turns),
    };
    return cmocka_run_group_tests(tests, kit_backends_one_setup, kit_backends_one_teardown);
}
