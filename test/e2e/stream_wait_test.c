/* Streams for threads that wait: time limits, several senders, and streams that one thread finishes or frees while
 * another uses them. Each test runs twice: once `rt` has a thread, and once the threads that wait drive `rt`.
 *
 * Each test has an echo server (kits/backends.h), whose loop has a thread of its own, and the channel `ch` to it on
 * `rt`. test_results_outlive_the_runtime makes its RPCs on a further runtime, with a thread, which it frees.
 * "a.B/Deaf" does not read, and does not answer. Three tests look inside a torc_stream (api/call_object.h) to know
 * that another thread waits: at `receiving` and `end` under the runtime's lock, or at the count of references. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "api/call_object.h"
#include "runtime/blocking.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;
static torc_channel *ch;

/* The handler of a.B/Deaf: the RPC runs until the client ends it. */
static void on_deaf_call(void *arg, struct tc_server_call *call)
{
    (void)arg, (void)call;
}

static void add_deaf(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, "/a.B/Deaf", on_deaf_call, NULL);
}

static int setup(enum torc_runtime_mode mode)
{
    kit = kit_backends_open(mode, &rt, &ch);
    kit_backends_do(kit, add_deaf, 0, NULL);
    return 0;
}

static int setup_thread(void **state)
{
    (void)state;
    return setup(TORC_RUNTIME_THREAD);
}

static int setup_caller(void **state)
{
    (void)state;
    return setup(TORC_RUNTIME_CALLER);
}

static int teardown(void **state)
{
    (void)state;
    return kit_backends_close(kit, rt, ch);
}

/* Finishes the stream, which the caller still frees, and asserts the status code. */
static void expect_code(torc_stream *s, int code)
{
    torc_result *r = torc_stream_finish(s);
    CHECK(torc_result_code(r) == code);
    torc_result_free(r);
}

static void expect_message(torc_stream *s, const char *text)
{
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_message_size(m), strlen(text));
    assert_memory_equal(torc_message_data(m), text, strlen(text));
}

static void test_ping_pong(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    for (int i = 0; i < 200; i++) {
        char text[16];
        snprintf(text, sizeof(text), "m%d", i);
        assert_int_equal(torc_stream_send(s, text, strlen(text), 0, -1), 0);
        expect_message(s, text);
    }
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_half_close(s), 0);
    assert_int_equal(torc_stream_half_close(s), TORC_ESTATE);
    assert_int_equal(torc_stream_send(s, "x", 1, 0, -1), TORC_ESTATE);
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    assert_null(m);
    expect_code(s, TORC_STATUS_OK);
    torc_stream_free(s);
}

/* A receive that times out loses nothing: every message comes once and in order. */
static void test_receive_in_time(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    const torc_message *m = NULL;
    for (int i = 0; i < 20; i++) {
        char text[16];
        snprintf(text, sizeof(text), "m%d", i);
        assert_int_equal(torc_stream_receive(s, 0, &m), TORC_EAGAIN);
        assert_int_equal(torc_stream_receive(s, 1, &m), TORC_ETIMEDOUT);
        assert_int_equal(torc_stream_send(s, text, strlen(text), 0, -1), 0);
        int rc;
        while ((rc = torc_stream_receive(s, i % 2, &m)) == TORC_EAGAIN || rc == TORC_ETIMEDOUT)
            torc_runtime_poll(rt, 10);
        assert_int_equal(rc, 1);
        assert_memory_equal(torc_message_data(m), text, strlen(text));
    }
    expect_code(s, TORC_STATUS_OK);
    torc_stream_free(s);
}

static void test_message_lives_until_the_next(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    const torc_message *m = NULL, *other = NULL;
    assert_int_equal(torc_stream_send(s, "one", 3, 0, -1), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_stream_receive(s, 1, &other), TORC_ETIMEDOUT);
    assert_memory_equal(torc_message_data(m), "one", 3);
    torc_message *kept = torc_message_ref(m);
    assert_int_equal(torc_stream_send(s, "two", 3, TORC_SEND_LAST, -1), 0);
    expect_message(s, "two");
    expect_code(s, TORC_STATUS_OK);
    torc_stream_free(s);
    assert_memory_equal(torc_message_data(kept), "one", 3);
    torc_message_unref(kept);
}

/* The server does not read: flow control stops the sender, whose waits time out. */
static void test_send_in_time(void **state)
{
    (void)state;
    static char payload[65536];
    torc_stream *s = torc_stream_open(ch, "a.B/Deaf", NULL, NULL);
    int n = 0, rc;
    while ((rc = torc_stream_send(s, payload, sizeof(payload), 0, 50)) == 0 && n < 1000)
        n++;
    assert_int_equal(rc, TORC_ETIMEDOUT);
    assert_in_range(n, 1, 300);
    assert_int_equal(torc_stream_send(s, payload, 1, 0, 0), TORC_EAGAIN);
    assert_int_equal(torc_stream_send(s, payload, 1, 0, 1), TORC_ETIMEDOUT);
    torc_stream_cancel(s);
    assert_int_equal(torc_stream_send(s, payload, 1, 0, -1), TORC_ECLOSED);
    expect_code(s, TORC_STATUS_CANCELLED);
    torc_stream_free(s);
}

struct sender {
    pthread_t thread;
    torc_stream *s;
    int n, sent, rc;
};

static void *send_many(void *arg)
{
    struct sender *a = arg;
    for (int i = 0; i < a->n && a->rc == 0; i++) {
        a->rc = torc_stream_send(a->s, "message", 7, 0, -1);
        a->sent += a->rc == 0;
    }
    return NULL;
}

static void test_two_senders_and_a_receiver(void **state)
{
    (void)state;
    enum { N = 2000 };
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    struct sender senders[2] = {{.s = s, .n = N}, {.s = s, .n = N}};
    for (int i = 0; i < 2; i++)
        pthread_create(&senders[i].thread, NULL, send_many, &senders[i]);
    for (int i = 0; i < 2 * N; i++)
        expect_message(s, "message");
    for (int i = 0; i < 2; i++) {
        pthread_join(senders[i].thread, NULL);
        assert_int_equal(senders[i].sent, N);
    }
    expect_code(s, TORC_STATUS_OK);
    torc_stream_free(s);
}

/* One thread sends the last message while another sends: the other is refused, and neither waits for ever. */
static void test_a_last_message_beside_another_sender(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
        struct sender a = {.s = s, .n = 1000000};
        pthread_create(&a.thread, NULL, send_many, &a);
        for (int i = 0; i < round; i++)
            expect_message(s, "message");
        const torc_message *m;
        int n = round, rc;
        /* The other sender may take all the room until the windows are full. Then this thread must receive what a
         * window holds, some thousand messages, before the server reads again. */
        while ((rc = torc_stream_send(s, "message", 7, TORC_SEND_LAST, 100)) == TORC_ETIMEDOUT)
            for (int i = 0; i < 10000 && torc_stream_receive(s, 1, &m) == 1; i++)
                n++;
        assert_int_equal(rc, 0);
        while ((rc = torc_stream_receive(s, -1, &m)) == 1)
            n++;
        assert_int_equal(rc, 0);
        pthread_join(a.thread, NULL);
        assert_true(a.rc == TORC_ESTATE || a.rc == TORC_ECLOSED);
        assert_int_equal(n, a.sent + 1);
        expect_code(s, TORC_STATUS_OK);
        torc_stream_free(s);
    }
}

static void test_headers_before_the_end(void **state)
{
    (void)state;
    const torc_metadata *headers = NULL;
    const char *peer = NULL;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_int_equal(torc_stream_peer(s, -1, &peer), 0);
    assert_int_equal(torc_stream_headers(s, -1, &headers), 0);
    assert_string_equal(torc_metadata_find(headers, "x-backend", NULL), "b0");
    assert_int_equal(torc_stream_headers(s, 0, &headers), 0);
    torc_result *result = torc_stream_finish(s);
    assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
    assert_int_equal(torc_stream_headers(s, 0, &headers), 0);
    assert_int_equal(torc_stream_peer(s, 0, &peer), 0);
    assert_string_equal(peer, torc_result_peer(result));
    assert_true(*peer);
    torc_result_free(result);
    torc_stream_free(s);

    s = torc_stream_open(ch, "a.B/Deaf", NULL, NULL);
    assert_int_equal(torc_stream_headers(s, 20, &headers), TORC_ETIMEDOUT);
    assert_int_equal(torc_stream_peer(s, 0, &peer), TORC_EAGAIN);
    torc_stream_cancel(s);
    assert_int_equal(torc_stream_headers(s, -1, &headers), TORC_ECLOSED);
    assert_int_equal(torc_stream_peer(s, -1, &peer), TORC_ECLOSED);
    torc_stream_free(s);
}

/* A function that fails leaves its output as it was. */
static void test_outputs_of_failures(void **state)
{
    (void)state;
    const torc_message *const other_message = (const torc_message *)&kit, *m = other_message;
    const torc_metadata *const other_headers = (const torc_metadata *)&kit, *headers = other_headers;
    enum torc_connectivity now = TORC_CONNECTIVITY_SHUTDOWN;
    torc_stream *s = torc_stream_open(ch, "a.B/Deaf", NULL, NULL);
    assert_int_equal(torc_stream_receive(s, 0, &m), TORC_EAGAIN);
    assert_int_equal(torc_stream_receive(s, 1, &m), TORC_ETIMEDOUT);
    assert_int_equal(torc_stream_headers(s, 0, &headers), TORC_EAGAIN);
    assert_int_equal(torc_stream_headers(s, 1, &headers), TORC_ETIMEDOUT);
    torc_stream_cancel(s);
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    assert_int_equal(torc_stream_headers(s, -1, &headers), TORC_ECLOSED);
    torc_stream_free(s);
    assert_int_equal(torc_channel_connect(ch, -1), 0);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 0, &now), TORC_ETIMEDOUT);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 1, &now), TORC_ETIMEDOUT);
    assert_ptr_equal(m, other_message);
    assert_ptr_equal(headers, other_headers);
    assert_int_equal(now, TORC_CONNECTIVITY_SHUTDOWN);
}

static void test_messages_ahead(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_int_equal(torc_stream_want(s, 0), 0);
    assert_int_equal(torc_stream_want(s, UINT32_MAX), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(torc_stream_send(s, "m", 1, 0, -1), 0);
    for (int i = 0; i < 100; i++)
        expect_message(s, "m");
    expect_code(s, TORC_STATUS_OK);
    torc_stream_free(s);
}

static void test_finish_drops_and_repeats(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    for (int i = 0; i < 50; i++)
        assert_int_equal(torc_stream_send(s, i ? "other" : "first", 5, 0, -1), 0);
    torc_result *a = torc_stream_finish(s), *b = torc_stream_finish(s);
    assert_ptr_equal(a, b);
    assert_int_equal(torc_result_code(a), TORC_STATUS_OK);
    assert_null(torc_result_error(a));
    assert_int_equal(torc_message_size(torc_result_response(a)), 5);
    assert_memory_equal(torc_message_data(torc_result_response(a)), "first", 5);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    assert_int_equal(torc_stream_send(s, "x", 1, 0, -1), TORC_ECLOSED);
    assert_int_equal(torc_stream_half_close(s), TORC_ECLOSED);
    torc_result_free(a);
    torc_stream_free(s);
    assert_int_equal(torc_result_attempts(b), 1);
    torc_result_free(b);
}

static void *receive_nothing(void *arg)
{
    const torc_message *m = NULL;
    CHECK(torc_stream_receive(arg, -1, &m) == 0);
    CHECK(!m);
    return NULL;
}

/* Sends until the stream is half-closed. The server does not read, so the thread soon waits for room. */
static void *send_without_end(void *arg)
{
    static const char message[65536];
    int rc;
    while ((rc = torc_stream_send(arg, message, sizeof(message), 0, -1)) == 0) {
    }
    CHECK(rc == TORC_ESTATE);
    return NULL;
}

static void *finish_cancelled(void *arg)
{
    expect_code(arg, TORC_STATUS_CANCELLED);
    return NULL;
}

/* Threads that wait for a message, and for room, return when another thread begins to finish the stream, though the RPC
 * runs on. */
static void test_finish_ends_other_waits(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Deaf", NULL, NULL);
    pthread_t receiver, sender, finisher;
    assert_int_equal(pthread_create(&receiver, NULL, receive_nothing, s), 0);
    for (bool receives = false; !receives; sched_yield()) {
        tc_runtime_lock(rt);
        receives = s->receiving;
        tc_runtime_unlock(rt);
    }
    assert_int_equal(pthread_create(&sender, NULL, send_without_end, s), 0);
    assert_int_equal(pthread_create(&finisher, NULL, finish_cancelled, s), 0);
    assert_int_equal(pthread_join(receiver, NULL), 0); /* while the server does not answer */
    assert_int_equal(pthread_join(sender, NULL), 0);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, 0, &m), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    torc_stream_cancel(s);
    assert_int_equal(pthread_join(finisher, NULL), 0);
    torc_stream_free(s);
}

/* A thread finishes the stream while another waits for a message. The receiver, which may drive the loop, returns at
 * whatever moment of the loop's turn the finish begins. */
static void test_finish_while_a_receiver_drives(void **state)
{
    (void)state;
    struct torc_call_options soon = {TORC_SIZE(torc_call_options), .timeout_ms = 5};
    for (int i = 0; i < 100; i++) {
        torc_stream *s = torc_stream_open(ch, "a.B/Deaf", &soon, NULL);
        pthread_t receiver;
        assert_int_equal(pthread_create(&receiver, NULL, receive_nothing, s), 0);
        for (bool receives = false; !receives; sched_yield()) {
            tc_runtime_lock(rt);
            receives = s->receiving || s->end;
            tc_runtime_unlock(rt);
        }
        expect_code(s, TORC_STATUS_DEADLINE_EXCEEDED);
        assert_int_equal(pthread_join(receiver, NULL), 0);
        torc_stream_free(s);
    }
}

/* A flag says whether a message is compressed. The echo comes back whole either way. Flags that contradict one another,
 * or the RPC's options, are refused. */
static void test_compression_of_a_message(void **state)
{
    (void)state;
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .gzip = TORC_ON};
    static char text[4000];
    memset(text, 'a', sizeof(text) - 1);
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", &options, NULL);
    const unsigned flags[] = {0, TORC_SEND_PLAIN, TORC_SEND_COMPRESS};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(torc_stream_send(s, text, strlen(text), flags[i], -1), 0);
        expect_message(s, text);
    }
    assert_int_equal(torc_stream_send(s, "x", 1, TORC_SEND_PLAIN | TORC_SEND_COMPRESS, -1), TORC_EINVAL);
    expect_code(s, TORC_STATUS_OK);
    torc_stream_free(s);
    s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_int_equal(torc_stream_send(s, "x", 1, TORC_SEND_COMPRESS, -1), TORC_ESTATE);
    assert_int_equal(torc_stream_send(s, "x", 1, TORC_SEND_PLAIN, -1), 0);
    expect_message(s, "x");
    torc_stream_free(s);
}

static void *want_one(void *arg)
{
    CHECK(torc_stream_want(arg, 1) == TORC_ECLOSED);
    return NULL;
}

/* One thread frees the stream of an RPC that is over while another waits for the runtime's lock inside
 * torc_stream_want: that function holds the stream until it returns. */
static void test_freed_while_another_thread_is_inside(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    pthread_t thread;
    expect_code(s, TORC_STATUS_OK);
    while (atomic_load(&s->zeroed.n) > 1) { /* the loop still holds the stream */
        torc_runtime_poll(rt, 1);
        sched_yield();
    }
    tc_runtime_lock(rt);
    assert_int_equal(pthread_create(&thread, NULL, want_one, s), 0);
    while (atomic_load(&s->zeroed.n) == 1)
        sched_yield(); /* never ends if the function does not hold the stream: the test's time limit says so */
    torc_stream_free(s);
    tc_runtime_unlock(rt);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A result needs neither its runtime nor its channel. */
static void test_results_outlive_the_runtime(void **state)
{
    (void)state;
    torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_THREAD);
    torc_channel *c = torc_channel_new(own, kit_backends_target(kit), NULL, NULL);
    torc_result *r = torc_unary(c, "a.B/Echo", "hello", 5, NULL);
    torc_result *failed = torc_unary(c, "torc.test.Backend/Fail", "7", 1, NULL);
    torc_stream *s = torc_stream_open(c, "a.B/Chat", NULL, NULL);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_send(s, "x", 1, 0, -1), 0);
    torc_channel_free(c);
    assert_int_equal(torc_runtime_free(own), 0);
    assert_memory_equal(torc_message_data(torc_result_response(r)), "hello", 5);
    assert_string_equal(torc_metadata_find(torc_result_headers(r), "x-backend", NULL), "b0");
    assert_string_equal(torc_result_peer(r), kit_backends_address(kit, 0));
    assert_int_equal(torc_error_status(torc_result_error(failed)), TORC_STATUS_PERMISSION_DENIED);
    torc_result *again = torc_result_ref(r);
    torc_result_free(r);
    assert_int_equal(torc_result_code(again), TORC_STATUS_OK);
    torc_result_free(again);
    torc_result_free(failed);
    /* The stream's handle stays valid, too. */
    assert_int_equal(torc_stream_send(s, "x", 1, 0, -1), TORC_ECLOSED);
    assert_true(torc_stream_receive(s, -1, &m) >= 0);
    expect_code(s, TORC_STATUS_CANCELLED);
    assert_int_equal(torc_stream_close(s), 0);
}

#define IN_BOTH(test)                                                                                                  \
    {#test " thread", test, setup_thread, teardown, NULL},                                                             \
    {                                                                                                                  \
#test " caller", test, setup_caller, teardown, NULL                                                            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_ping_pong),
        IN_BOTH(test_receive_in_time),
        IN_BOTH(test_message_lives_until_the_next),
        IN_BOTH(test_send_in_time),
        IN_BOTH(test_two_senders_and_a_receiver),
        IN_BOTH(test_a_last_message_beside_another_sender),
        IN_BOTH(test_headers_before_the_end),
        IN_BOTH(test_outputs_of_failures),
        IN_BOTH(test_messages_ahead),
        IN_BOTH(test_finish_drops_and_repeats),
        IN_BOTH(test_finish_ends_other_waits),
        IN_BOTH(test_finish_while_a_receiver_drives),
        IN_BOTH(test_compression_of_a_message),
        IN_BOTH(test_freed_while_another_thread_is_inside),
        IN_BOTH(test_results_outlive_the_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
