/* Servers of the public API (torc/server.h): both kinds of handlers, answers from any thread, waits, back-pressure,
 * events, deadlines, compression, ends. Each test has a server with five methods on `rt`, and a channel on
 * `client_rt`. Each runtime has a thread, but with setup_caller the test's thread drives `rt`. Handlers and events run
 * on `rt`. A handler answers at once, or leaves the call in `queue`: the test takes it by next_call, and the test or
 * an event finishes it. A test that frees the server or `rt` sets the variable to NULL. expect_end frees the stream. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt, *client_rt;
static torc_server *server;
static torc_channel *ch;
static char *bound;
/* Calls that handlers hand over to the test's thread; n were handed over, and the test has taken `taken` of them. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    torc_server_call *calls[64];
    const torc_message *requests[64];
    size_t n, taken;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
static atomic_int cancels, releases, handlers_released;

static void queue_call(torc_server_call *call, const torc_message *request)
{
    pthread_mutex_lock(&queue.mutex);
    queue.calls[queue.n % 64] = call;
    queue.requests[queue.n++ % 64] = request;
    pthread_cond_signal(&queue.cond);
    pthread_mutex_unlock(&queue.mutex);
}

/* Waits for a call. `request` may be NULL; *request lives until the call is finished, and is NULL for a stream. */
static torc_server_call *next_call(const torc_message **request)
{
    pthread_mutex_lock(&queue.mutex);
    while (queue.taken == queue.n)
        pthread_cond_wait(&queue.cond, &queue.mutex);
    torc_server_call *call = queue.calls[queue.taken % 64];
    if (request)
        *request = queue.requests[queue.taken % 64];
    queue.taken++;
    pthread_mutex_unlock(&queue.mutex);
    return call;
}

static void wait_for(atomic_int *n, int value)
{
    while (atomic_load(n) < value)
        sched_yield();
    assert_int_equal(atomic_load(n), value);
}

/* --- handlers --- */

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* Answers with what the call says of itself. */
static void on_describe(torc_server_call *call, const torc_message *request, void *arg)
{
    const torc_metadata *metadata = torc_server_call_metadata(call);
    const char *value = torc_metadata_find(metadata, "x-in", NULL);
    int64_t left = torc_server_call_time_left(call);
    const char *text = torc_server_call_printf(
        call, "%s|%.*s|%s|%s|%zu|%d|%s", torc_server_call_method(call), (int)torc_message_size(request),
        (const char *)torc_message_data(request), torc_server_call_authority(call), value ? value : "none",
        torc_metadata_count(metadata), left > 0 && left <= 60000,
        strncmp(torc_server_call_peer(call), "127.0.0.1:", 10) ? "?" : "peer");
    torc_metadata *out = torc_metadata_new();
    (void)arg;
    torc_metadata_add_string(out, "x-out", "initial");
    CHECK(torc_server_call_send_headers(call, out) == 0 && torc_server_call_send_headers(call, out) == TORC_ESTATE);
    torc_metadata_free(out);
    CHECK(torc_server_call_send(call, text, strlen(text), 0, 0) == 0);
    torc_metadata *trailers = torc_metadata_new();
    torc_metadata_add(trailers, "x-end-bin", "\0\1", 2);
    CHECK(torc_server_call_finish(call, TORC_STATUS_OK, NULL, trailers) == 0);
    torc_metadata_free(trailers);
}

static void on_fail(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    torc_server_call_finish(call, TORC_STATUS_NOT_FOUND, "no such thing: 100 % \xc3\xa9", NULL);
}

static void on_hand_over(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    queue_call(call, request);
}

static void on_hand_over_stream(torc_server_call *call, void *arg)
{
    (void)arg;
    queue_call(call, NULL);
}

static void on_handler_released(void *arg)
{
    CHECK(arg == &handlers_released);
    atomic_fetch_add(&handlers_released, 1);
}

/* --- set-up --- */

static void add(const char *method, struct torc_handler handler)
{
    handler.size = sizeof(handler);
    handler.release = on_handler_released;
    handler.arg = &handlers_released;
    assert_int_equal(torc_server_add_method(server, method, &handler, NULL), 0);
}
#define ADD(method, ...) add(method, (struct torc_handler){__VA_ARGS__})

static void make_server(struct torc_server_options options, enum torc_runtime_mode mode)
{
    torc_error *error = NULL;
    rt = kit_backends_runtime(mode);
    client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    options.size = sizeof(options);
    options.runtime = rt;
    queue.n = queue.taken = 0;
    cancels = releases = handlers_released = 0;
    server = torc_server_new(&options, &error);
    ADD("a.B/Echo", .unary = on_echo);
    ADD("/a.B/Describe", .unary = on_describe);
    ADD("a.B/Fail", .unary = on_fail);
    ADD("a.B/Later", .unary = on_hand_over);
    ADD("a.B/Chat", .stream = on_hand_over_stream);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error), 0);
    assert_int_equal(torc_server_start(server, &error), 0);
    ch = torc_channel_new(client_rt, bound, NULL, &error);
    assert_non_null(ch);
}

static int setup(void **state)
{
    (void)state;
    make_server((struct torc_server_options){0}, TORC_RUNTIME_THREAD);
    return 0;
}

static int setup_gzip(void **state)
{
    (void)state;
    make_server((struct torc_server_options){.gzip = TORC_ON, .max_send_message_bytes = 100000}, TORC_RUNTIME_THREAD);
    return 0;
}

static int setup_caller(void **state)
{
    (void)state;
    make_server((struct torc_server_options){0}, TORC_RUNTIME_CALLER);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_server_free(server);
    if (server)
        assert_int_equal(atomic_load(&handlers_released), 5);
    server = NULL;
    torc_channel_free(ch);
    torc_free(bound);
    assert_int_equal(torc_runtime_free(client_rt), 0);
    return torc_runtime_free(rt);
}

static torc_result *ask(const char *method, const char *request, const struct torc_call_options *options)
{
    return torc_unary(ch, method, request, strlen(request), options);
}

static void expect(const char *method, const char *request, int code, const char *text)
{
    torc_result *r = ask(method, request, NULL);
    assert_string_equal(torc_status_code_name(torc_result_code(r)), torc_status_code_name(code));
    if (code == TORC_STATUS_OK) {
        assert_int_equal(torc_message_size(torc_result_response(r)), strlen(text));
        assert_memory_equal(torc_message_data(torc_result_response(r)), text, strlen(text));
    } else {
        assert_string_equal(torc_result_text(r), text);
    }
    torc_result_free(r);
}

static void expect_end(torc_stream *s, int code)
{
    torc_result *r = torc_stream_finish(s);
    CHECK(torc_result_code(r) == code);
    torc_result_free(r);
    torc_stream_free(s);
}

/* --- unary --- */

static void test_unary(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        expect("a.B/Echo", "hello", TORC_STATUS_OK, "hello");
    expect("a.B/Echo", "", TORC_STATUS_OK, "");
    expect("a.B/Fail", "x", TORC_STATUS_NOT_FOUND, "no such thing: 100 % \xc3\xa9");
    expect("a.B/None", "x", TORC_STATUS_UNIMPLEMENTED, "unknown method /a.B/None");
}

static void test_what_a_call_says(void **state)
{
    (void)state;
    torc_metadata *in = torc_metadata_new();
    torc_metadata_add_string(in, "x-in", "v");
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = in, .timeout_ms = 60000};
    torc_result *r = ask("a.B/Describe", "req", &o);
    char expected[256];
    int n = snprintf(expected, sizeof(expected), "/a.B/Describe|req|%s|v|2|1|peer", bound);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_int_equal(torc_message_size(torc_result_response(r)), n);
    assert_memory_equal(torc_message_data(torc_result_response(r)), expected, (size_t)n);
    assert_string_equal(torc_metadata_find(torc_result_headers(r), "x-out", NULL), "initial");
    size_t len = 0;
    assert_memory_equal(torc_metadata_find(torc_result_trailers(r), "x-end-bin", &len), "\0\1", 2);
    assert_int_equal(len, 2);
    torc_result_free(r);
    torc_metadata_free(in);
}

static void count_result(const torc_result *result, void *arg)
{
    if (torc_result_code(result) == TORC_STATUS_OK)
        atomic_fetch_add((atomic_int *)arg, 1);
}

static void test_answers_of_another_thread(void **state)
{
    (void)state;
    static atomic_int ok;
    ok = 0;
    for (int i = 0; i < 50; i++)
        assert_int_equal(torc_unary_async(ch, "a.B/Later", "abc", 3, NULL, count_result, &ok, NULL, NULL), 0);
    for (int i = 0; i < 50; i++) {
        const torc_message *request, *none = NULL;
        torc_server_call *call = next_call(&request);
        assert_memory_equal(torc_message_data(request), "abc", 3);
        assert_int_equal(torc_server_call_cancelled(call), 0);
        assert_int_equal(torc_server_call_time_left(call), 0);
        assert_int_equal(torc_server_call_receive(call, -1, &none), 0);
        assert_int_equal(torc_server_call_reply(call, "xyz", 3), 0);
    }
    wait_for(&ok, 50);
}

/* --- streams --- */

/* Echoes on the calling thread until the client half-closes, and then finishes the call. */
static void echo_stream(torc_server_call *call)
{
    const torc_message *m = NULL;
    int rc;
    while ((rc = torc_server_call_receive(call, -1, &m)) == 1)
        if (torc_server_call_send(call, torc_message_data(m), torc_message_size(m), 0, -1) != 0)
            break;
    torc_server_call_finish(call, TORC_STATUS_OK, "", NULL);
}

static void *client_ping_pong(void *arg)
{
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    for (int i = 0; i < 200; i++) {
        const torc_message *m = NULL;
        char text[16];
        int n = snprintf(text, sizeof(text), "m%d", i);
        CHECK(torc_stream_send(s, text, (size_t)n, 0, -1) == 0);
        CHECK(torc_stream_receive(s, -1, &m) == 1);
        CHECK(torc_message_size(m) == (size_t)n && memcmp(torc_message_data(m), text, (size_t)n) == 0);
    }
    expect_end(s, TORC_STATUS_OK);
    return arg;
}

static void test_ping_pong(void **state)
{
    (void)state;
    pthread_t client;
    pthread_create(&client, NULL, client_ping_pong, NULL);
    echo_stream(next_call(NULL));
    pthread_join(client, NULL);
}

static void test_limits_of_waits(void **state)
{
    (void)state;
    const torc_message *m = NULL;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_call_receive(call, 0, &m), TORC_EAGAIN);
    assert_int_equal(torc_server_call_receive(call, 1, &m), TORC_ETIMEDOUT);
    assert_int_equal(torc_server_call_receive(call, -2, &m), TORC_EINVAL);
    assert_int_equal(torc_server_call_receive(call, -1, NULL), TORC_EINVAL);
    assert_null(m);
    assert_int_equal(torc_stream_send(s, "one", 3, TORC_SEND_LAST, -1), 0);
    assert_int_equal(torc_server_call_receive(call, -1, &m), 1);
    assert_memory_equal(torc_message_data(m), "one", 3);
    assert_int_equal(torc_server_call_receive(call, -1, &m), 0);
    assert_int_equal(torc_server_call_receive(call, 0, &m), 0);
    assert_int_equal(torc_server_call_send(call, NULL, 1, 0, 0), TORC_EINVAL);
    assert_int_equal(torc_server_call_send(call, "x", 1, TORC_SEND_LAST, 0), TORC_EINVAL);
    assert_int_equal(torc_server_call_send(call, "x", 1, TORC_SEND_COMPRESS | TORC_SEND_PLAIN, 0), TORC_EINVAL);
    assert_int_equal(torc_server_call_send(call, "x", 1, TORC_SEND_COMPRESS, 0), TORC_ESTATE);
    assert_int_equal(
        torc_server_call_set_events(call, &(struct torc_server_call_events){TORC_SIZE(torc_server_call_events)}, NULL),
        TORC_ESTATE);
    assert_int_equal(torc_server_call_finish(call, 17, "", NULL), TORC_EINVAL);
    expect_end(s, TORC_STATUS_UNKNOWN);
}

/* A sender stops when the window of a client that does not read and the server's 64 KiB are full. Nothing is lost. */
static void test_back_pressure(void **state)
{
    (void)state;
    static char block[10000];
    enum { MANY = 400 };
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    int sent = 0, rc;
    while ((rc = torc_server_call_send(call, block, sizeof(block), 0, 20)) == 0)
        sent++;
    assert_int_equal(rc, TORC_ETIMEDOUT);
    assert_in_range(sent, 7, MANY - 1);
    for (int i = 0; i < MANY; i++) {
        const torc_message *m = NULL;
        while (sent < MANY && torc_server_call_send(call, block, sizeof(block), 0, 0) == 0)
            sent++;
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        assert_int_equal(torc_message_size(m), sizeof(block));
        if (i == MANY - 1)
            assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), 0);
    }
    assert_int_equal(sent, MANY);
    expect_end(s, TORC_STATUS_OK);
}

/* --- events --- */

struct pusher {
    int left; /* messages that push has yet to send */
    atomic_int received, half_closed;
};

static void push(torc_server_call *call, struct pusher *p)
{
    static char block[30000];
    for (; p->left; p->left--) {
        int rc = torc_server_call_send(call, block, sizeof(block), 0, 0);
        if (rc == TORC_EAGAIN)
            return;
        CHECK(rc == 0);
    }
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void on_pushed_message(torc_server_call *call, const torc_message *m, void *arg)
{
    struct pusher *p = arg;
    CHECK(torc_message_size(m) == 2);
    CHECK(torc_server_call_receive(call, -1, &m) == TORC_EDEADLK);
    CHECK(torc_server_call_receive(call, 0, &m) == TORC_ESTATE);
    atomic_fetch_add(&p->received, 1);
    torc_server_call_want(call, 1);
}

static void on_pushed_half_close(torc_server_call *call, void *arg)
{
    struct pusher *p = arg;
    atomic_fetch_add(&p->half_closed, 1);
    push(call, p);
}

static void on_writable(torc_server_call *call, void *arg)
{
    push(call, arg);
}

static void on_cancel(torc_server_call *call, void *arg)
{
    const torc_message *m;
    (void)arg;
    CHECK(torc_server_call_cancelled(call) == 1);
    CHECK(torc_server_call_want(call, 1) == TORC_ECANCELED);
    CHECK(torc_server_call_receive(call, 0, &m) == TORC_ECANCELED);
    CHECK(torc_server_call_send(call, "x", 1, 0, 0) == TORC_ECANCELED);
    CHECK(torc_server_call_send_headers(call, NULL) == TORC_ECANCELED);
    atomic_fetch_add(&cancels, 1);
}

static void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&releases, 1);
}

static const struct torc_server_call_events events = {
    TORC_SIZE(torc_server_call_events), .on_message = on_pushed_message, .on_half_close = on_pushed_half_close,
    .on_writable = on_writable,         .on_cancel = on_cancel,          .release = on_release,
};

static void test_events(void **state)
{
    (void)state;
    static struct pusher p;
    p.left = 100;
    p.received = p.half_closed = 0;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_call_set_events(call, &events, &p), 0);
    assert_int_equal(torc_server_call_set_events(call, &events, &p), TORC_ESTATE);
    assert_int_equal(torc_server_call_want(call, 1), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(torc_stream_send(s, "ab", 2, i == 19 ? TORC_SEND_LAST : 0, -1), 0);
    for (int i = 0; i < 100; i++) {
        const torc_message *m = NULL;
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    }
    expect_end(s, TORC_STATUS_OK);
    wait_for(&releases, 1);
    assert_int_equal(p.received, 20);
    assert_int_equal(p.half_closed, 1);
    assert_int_equal(cancels, 0);
}

static void test_cancelled_by_the_client(void **state)
{
    (void)state;
    static struct pusher p;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_call_set_events(call, &events, &p), 0);
    torc_stream_free(s);
    wait_for(&cancels, 1);
    assert_int_equal(releases, 0);
    assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), TORC_ECANCELED);
    wait_for(&releases, 1);
    assert_int_equal(cancels, 1);
}

/* The deadline ends the RPC on both sides. The server's deadline is later: it counts from the request's arrival. */
static void test_deadline(void **state)
{
    (void)state;
    const torc_message *m;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30};
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", &o, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_call_receive(call, -1, &m), TORC_ECANCELED);
    while (torc_server_call_time_left(call) != -1)
        sched_yield();
    assert_int_equal(torc_server_call_reply(call, "late", 4), TORC_ECANCELED);
    expect_end(s, TORC_STATUS_DEADLINE_EXCEEDED);
}

static void test_compression(void **state)
{
    (void)state;
    static char zeros[100001];
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    const torc_message *m = NULL;
    for (unsigned flags = 0; flags <= TORC_SEND_PLAIN; flags += 2) {
        assert_int_equal(torc_server_call_send(call, zeros, 90000, flags, -1), 0);
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        assert_int_equal(torc_message_size(m), 90000);
    }
    /* 100,001 bytes exceed max_send_message_bytes, unless they are compressed. */
    assert_int_equal(torc_server_call_send(call, zeros, sizeof(zeros), 0, -1), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_server_call_send(call, zeros, sizeof(zeros), TORC_SEND_PLAIN, -1), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    expect_end(s, TORC_STATUS_RESOURCE_EXHAUSTED);
    while (!torc_server_call_cancelled(call))
        sched_yield();
    assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), TORC_ECANCELED);
}

/* --- ends --- */

static void *stop_gracefully(void *arg)
{
    *(int *)arg = torc_server_stop(server, -1);
    return NULL;
}

static void test_stop_waits(void **state)
{
    (void)state;
    pthread_t stopper;
    int rc = -1;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    pthread_create(&stopper, NULL, stop_gracefully, &rc);
    torc_error *error = NULL;
    do { /* until the stop has begun */
        torc_error_clear(&error);
        torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), NULL, &error);
    } while (!error);
    assert_int_equal(torc_error_code(error), TORC_ESTATE);
    torc_error_clear(&error);
    assert_int_equal(torc_server_call_send(call, "still here", 10, 0, -1), 0);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), 0);
    expect_end(s, TORC_STATUS_OK);
    pthread_join(stopper, NULL);
    assert_int_equal(rc, 0);
    torc_result *r = ask("a.B/Echo", "x", NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    assert_int_equal(torc_server_stop(server, 0), 0); /* has stopped already */
}

static void test_grace_ends(void **state)
{
    (void)state;
    const torc_message *m;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_stop(server, *state ? 0 : 20), 0); /* only test_no_grace has a state */
    assert_int_equal(torc_server_call_receive(call, -1, &m), TORC_ECANCELED);
    assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), TORC_ECANCELED);
    expect_end(s, TORC_STATUS_UNAVAILABLE);
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void test_stop_async(void **state)
{
    (void)state;
    static atomic_int stopped;
    stopped = 0;
    assert_int_equal(torc_server_stop_async(server, -1, count, &stopped), 0);
    assert_int_equal(torc_server_stop_async(server, 0, count, &stopped), 0);
    wait_for(&stopped, 2);
    assert_int_equal(torc_server_stop_async(server, 0, count, &stopped), 0);
    wait_for(&stopped, 3);
}

/* Calls that are not finished outlive the server, then the runtime. */
static void test_handles_outlive_the_server(void **state)
{
    (void)state;
    static struct pusher p;
    torc_stream *s[2];
    torc_server_call *call[2];
    const torc_message *m;
    for (int i = 0; i < 2; i++) {
        s[i] = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
        call[i] = next_call(NULL);
        assert_int_equal(
            torc_server_call_set_events(
                call[i], &(struct torc_server_call_events){TORC_SIZE(torc_server_call_events), .release = on_release},
                &p),
            0);
    }
    torc_server_free(server);
    assert_int_equal(atomic_load(&handlers_released), 5);
    server = NULL;
    for (int i = 0; i < 2; i++)
        expect_end(s[i], TORC_STATUS_UNAVAILABLE);
    assert_int_equal(torc_server_call_send(call[0], "x", 1, 0, -1), TORC_ECLOSED);
    assert_int_equal(torc_server_call_receive(call[0], -1, &m), TORC_ECLOSED);
    assert_int_equal(torc_server_call_finish(call[0], TORC_STATUS_OK, NULL, NULL), TORC_ECLOSED);
    wait_for(&releases, 1);
    assert_int_equal(torc_runtime_free(rt), 0);
    rt = NULL;
    assert_int_equal(torc_server_call_want(call[1], 1), TORC_ECLOSED);
    assert_int_equal(torc_server_call_cancelled(call[1]), 1);
    assert_string_equal(torc_server_call_method(call[1]), "/a.B/Chat");
    assert_int_equal(torc_server_call_reply(call[1], "x", 1), TORC_ECLOSED);
    assert_int_equal(releases, 2);
}

/* The runtime is freed before its server and the server's calls. */
static void test_runtime_ends(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(atomic_load(&handlers_released), 5);
    rt = NULL;
    assert_int_equal(torc_server_stop(server, -1), TORC_ECLOSED);
    assert_int_equal(torc_server_start(server, NULL), TORC_ECLOSED);
    torc_server_free(server);
    server = NULL;
    assert_int_equal(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL), TORC_ECLOSED);
    expect_end(s, TORC_STATUS_UNAVAILABLE);
}

/* Finishes the call and then uses its handle: each later function is refused. */
static void on_finished_elsewhere(torc_server_call *call, const torc_message *m, void *arg)
{
    (void)arg, (void)m;
    CHECK(torc_server_call_finish(call, TORC_STATUS_ABORTED, "first", NULL) == 0);
    CHECK(torc_server_call_finish(call, TORC_STATUS_OK, "second", NULL) == TORC_ESTATE);
    CHECK(torc_server_call_want(call, 1) == TORC_ESTATE && torc_server_call_reply(call, "x", 1) == TORC_ESTATE);
    CHECK(torc_server_call_send(call, "x", 1, 0, 0) == TORC_ESTATE);
}

static void test_finished_twice(void **state)
{
    (void)state;
    struct torc_server_call_events e = {TORC_SIZE(torc_server_call_events), .on_message = on_finished_elsewhere,
                                        .release = on_release};
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_call_set_events(call, &(struct torc_server_call_events){0}, NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_set_events(call, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_set_events(call, &e, NULL), 0);
    assert_int_equal(torc_server_call_want(call, 1), 0);
    assert_int_equal(torc_stream_send(s, "x", 1, 0, -1), 0);
    wait_for(&releases, 1);
    expect_end(s, TORC_STATUS_ABORTED);
}

static void *client_unary(void *arg)
{
    torc_result *r = ask("a.B/Later", "hi", NULL);
    CHECK(torc_result_code(r) == TORC_STATUS_OK && torc_message_size(torc_result_response(r)) == 2);
    torc_result_free(r);
    return arg;
}

/* The application drives the loop: by torc_runtime_poll, and inside blocking functions of the server. */
static void test_caller_drives(void **state)
{
    (void)state;
    pthread_t client;
    pthread_create(&client, NULL, client_unary, NULL);
    while (queue.n == 0)
        assert_true(torc_runtime_poll(rt, -1) >= 0);
    torc_server_call *call = next_call(NULL);
    assert_int_equal(torc_server_call_reply(call, "hi", 2), 0);
    assert_int_equal(torc_server_stop(server, -1), 0);
    pthread_join(client, NULL);
}

static void test_caller_streams(void **state)
{
    (void)state;
    pthread_t client;
    pthread_create(&client, NULL, client_ping_pong, NULL);
    while (queue.n == 0)
        assert_true(torc_runtime_poll(rt, -1) >= 0);
    echo_stream(next_call(NULL));
    assert_int_equal(torc_server_stop(server, -1), 0);
    pthread_join(client, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unary),
        TEST(test_what_a_call_says),
        TEST(test_answers_of_another_thread),
        TEST(test_ping_pong),
        TEST(test_limits_of_waits),
        TEST(test_back_pressure),
        TEST(test_events),
        TEST(test_cancelled_by_the_client),
        TEST(test_deadline),
        cmocka_unit_test_setup_teardown(test_compression, setup_gzip, teardown),
        TEST(test_stop_waits),
        TEST(test_grace_ends),
        {"test_no_grace", test_grace_ends, setup, teardown, &server},
        TEST(test_stop_async),
        TEST(test_handles_outlive_the_server),
        TEST(test_runtime_ends),
        TEST(test_finished_twice),
        cmocka_unit_test_setup_teardown(test_caller_drives, setup_caller, teardown),
        cmocka_unit_test_setup_teardown(test_caller_streams, setup_caller, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
