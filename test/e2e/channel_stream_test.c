/* Streaming over real sockets: both directions, flow control, blocking and asynchronous. All tests share an echo server
 * on a thread of its own (kits/backends.h), a runtime that the test's thread drives, and one channel.
 *
 * A test opens its stream by torc_stream_open and calls the functions that wait, or starts it by torc_stream_start and
 * polls until on_done has come. The events of a started stream run on the test's thread, and are counted in a struct
 * stream of the test. on_deaf_call, a handler that reads nothing, and add_deaf run on the server's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;
static torc_channel *ch;

static int setup(void **state)
{
    (void)state;
    kit = kit_backends_open(TORC_RUNTIME_CALLER, &rt, &ch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return kit_backends_close(kit, rt, ch);
}

static void test_blocking_ping_pong(void **state)
{
    (void)state;
    torc_stream *call = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_non_null(call);
    for (int i = 0; i < 50; i++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "m%d", i);
        assert_int_equal(torc_stream_send(call, text, (size_t)n, 0, -1), 0);
        const torc_message *m = NULL;
        assert_int_equal(torc_stream_receive(call, -1, &m), 1);
        assert_int_equal(torc_message_size(m), n);
        assert_memory_equal(torc_message_data(m), text, (size_t)n);
    }
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_null(torc_result_response(r));
    assert_non_null(torc_result_headers(r));
    torc_result_free(r);
    r = torc_stream_finish(call); /* a second time: the same result */
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(call);
}

static void test_blocking_end_of_stream(void **state)
{
    (void)state;
    torc_stream *call = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_int_equal(torc_stream_send(call, NULL, 5, 0, -1), TORC_EINVAL);
    assert_int_equal(torc_stream_send(call, NULL, 5, 0, 0), TORC_EINVAL);
    assert_int_equal(torc_stream_send(call, "one", 3, 0, -1), 0);
    assert_int_equal(torc_stream_send(call, "two", 3, TORC_SEND_LAST, -1), 0);
    assert_int_equal(torc_stream_send(call, "three", 5, 0, -1), TORC_ESTATE);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    assert_memory_equal(torc_message_data(m), "two", 3);
    assert_int_equal(torc_stream_receive(call, -1, &m), 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 0);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(call);
}

static void test_client_streaming_response(void **state)
{
    (void)state;
    torc_stream *call = torc_stream_open(ch, "a.B/Upload", NULL, NULL);
    assert_int_equal(torc_stream_send(call, "first", 5, 0, -1), 0);
    assert_int_equal(torc_stream_send(call, "second", 6, 0, -1), 0);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    /* The response is the first message that the application has not received. Later messages are dropped. */
    assert_int_equal(torc_message_size(torc_result_response(r)), 5);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(call, -1, &m), 0);
    assert_null(m);
    torc_result_free(r);
    torc_stream_free(call);
}

static void test_blocking_failure(void **state)
{
    (void)state;
    torc_stream *call = torc_stream_open(ch, "torc.test.Backend/Fail", NULL, NULL);
    /* The RPC may end before the send is complete. */
    int rc = torc_stream_send(call, "5", 1, 0, -1);
    assert_true(rc == 0 || rc == TORC_ECLOSED);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(call, -1, &m), 0);
    assert_int_equal(torc_stream_send(call, "x", 1, 0, -1), TORC_ECLOSED);
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_NOT_FOUND);
    torc_result_free(r);
    torc_stream_free(call);
}

static void test_blocking_free_without_finish(void **state)
{
    (void)state;
    torc_stream *call = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_int_equal(torc_stream_send(call, "x", 1, 0, -1), 0);
    torc_stream_free(call);
    while (kit_backends_counts(kit, 0).open_calls > 0)
        torc_runtime_poll(rt, 10);
}

/* A stream that was started. Once a test calls write_next, the stream writes as fast as it may: `to_write` messages of
 * `message_bytes` each. */
struct stream {
    torc_stream *call;
    size_t message_bytes;
    /* Messages written, to write in all, and received; calls of on_headers and on_done; the status code. */
    int written, to_write, received, headers, done, code;
    bool greedy; /* each message requests the next one */
    size_t received_bytes;
};

static char payload[65536];

/* Writes a message, which torc_stream_send must take at once. The last message half-closes. */
static void write_next(struct stream *s)
{
    s->written++;
    assert_int_equal(
        torc_stream_send(s->call, payload, s->message_bytes, s->written == s->to_write ? TORC_SEND_LAST : 0, 0), 0);
    /* A second message is not taken; on_writable follows TORC_EAGAIN. */
    assert_int_equal(torc_stream_send(s->call, payload, 1, 0, 0),
                     s->written == s->to_write ? TORC_ESTATE : TORC_EAGAIN);
}

static void on_headers(torc_stream *call, const torc_metadata *headers, void *arg)
{
    struct stream *s = arg;
    assert_ptr_equal(call, s->call);
    assert_string_equal(torc_metadata_find(headers, "x-backend", NULL), "b0");
    s->headers++;
}

static void on_message(torc_stream *call, const torc_message *message, void *arg)
{
    struct stream *s = arg;
    s->received++;
    s->received_bytes += torc_message_size(message);
    if (s->greedy)
        torc_stream_want(call, 1);
}

static void on_writable(torc_stream *call, void *arg)
{
    struct stream *s = arg;
    (void)call;
    if (s->written < s->to_write)
        write_next(s);
}

static void on_done(torc_stream *call, const torc_result *result, void *arg)
{
    struct stream *s = arg;
    (void)call;
    s->done++;
    s->code = torc_result_code(result);
}

static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_headers = on_headers,
                                                 .on_message = on_message, .on_writable = on_writable,
                                                 .on_done = on_done};

static void test_async_stream(void **state)
{
    (void)state;
    struct stream s = {.message_bytes = 10000, .to_write = 300, .greedy = true};
    s.call = torc_stream_start(ch, "a.B/Chat", NULL, &events, &s, NULL);
    assert_non_null(s.call);
    write_next(&s);
    torc_stream_want(s.call, 1);
    while (!s.done)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(s.code, TORC_STATUS_OK);
    assert_int_equal(s.headers, 1);
    assert_int_equal(s.received, 300);
    assert_int_equal(s.received_bytes, 3000000);
    assert_int_equal(torc_stream_send(s.call, "", 0, 0, 0), TORC_ECLOSED);
    assert_int_equal(torc_stream_want(s.call, 1), TORC_ECLOSED);
    torc_stream_free(s.call);
}

/* Drives the loop until *counter has stayed the same for 20 turns in a row, each of which waits 20 ms at most. */
static void run_until_quiet(const int *counter)
{
    int before = -1;
    for (int quiet = 0; quiet < 20;) {
        torc_runtime_poll(rt, 20);
        quiet = *counter == before ? quiet + 1 : 0;
        before = *counter;
    }
}

static void on_deaf_call(void *arg, struct tc_server_call *call)
{
    (void)arg, (void)call;
}

static void add_deaf(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, "/a.B/Deaf", on_deaf_call, NULL);
}

static void test_write_back_pressure(void **state)
{
    (void)state;
    kit_backends_do(kit, add_deaf, 0, NULL);
    /* The server does not read: writing stops long before 100 MB. */
    struct stream s = {.message_bytes = sizeof(payload), .to_write = 1600};
    s.call = torc_stream_start(ch, "a.B/Deaf", NULL, &events, &s, NULL);
    write_next(&s);
    run_until_quiet(&s.written);
    assert_in_range(s.written, 1, 300);

    /* Another call on the same connection is not blocked by the unread stream. */
    torc_result *r = torc_unary(ch, "a.B/Unary", "x", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_cancel(s.call);
    while (!s.done)
        torc_runtime_poll(rt, 1000);
    torc_stream_free(s.call);
}

static void test_read_back_pressure(void **state)
{
    (void)state;
    struct stream s = {.message_bytes = sizeof(payload), .to_write = 200};
    s.call = torc_stream_start(ch, "a.B/Chat", NULL, &events, &s, NULL);
    write_next(&s);
    run_until_quiet(&s.written);
    assert_int_equal(s.received, 0);

    /* torc_stream_want(call, 1) lets one message come. */
    torc_stream_want(s.call, 1);
    torc_stream_want(s.call, 1);
    while (s.received < 2)
        torc_runtime_poll(rt, 100);
    run_until_quiet(&s.received);
    assert_int_equal(s.received, 2);

    /* Once all messages are read, the stream ends. */
    s.greedy = true;
    torc_stream_want(s.call, 1);
    while (!s.done)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(s.code, TORC_STATUS_OK);
    assert_int_equal(s.received, 200);
    torc_stream_free(s.call);
}

static void test_cancel_mid_stream(void **state)
{
    (void)state;
    struct stream s = {.message_bytes = 100, .to_write = 1000000, .greedy = true};
    s.call = torc_stream_start(ch, "a.B/Chat", NULL, &events, &s, NULL);
    write_next(&s);
    torc_stream_want(s.call, 1);
    while (s.received < 10)
        torc_runtime_poll(rt, 1000);
    torc_stream_cancel(s.call);
    while (!s.done)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(s.code, TORC_STATUS_CANCELLED);
    assert_int_equal(s.done, 1);
    torc_stream_free(s.call);
}

static void test_server_streaming_half_close(void **state)
{
    (void)state;
    struct stream s = {.message_bytes = 10, .to_write = 1, .greedy = true};
    s.call = torc_stream_start(ch, "a.B/List", NULL, &events, &s, NULL);
    torc_stream_want(s.call, 1);
    assert_int_equal(torc_stream_send(s.call, payload, 10, 0, 0), 0);
    s.written = 1;
    assert_int_equal(torc_stream_half_close(s.call), 0);
    assert_int_equal(torc_stream_half_close(s.call), TORC_ESTATE);
    while (!s.done)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(s.code, TORC_STATUS_OK);
    assert_int_equal(s.received, 1);
    torc_stream_free(s.call);
}

static void on_done_start_another(torc_stream *call, const torc_result *result, void *arg)
{
    struct stream *s = arg;
    (void)result;
    torc_stream_free(call);
    s->done++;
    torc_result *r;
    /* A blocking function is rejected inside a callback. */
    r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_EDEADLK);
    torc_result_free(r);
    assert_int_equal(torc_runtime_poll(rt, 0), TORC_EDEADLK);
    assert_int_equal(torc_runtime_free(rt), TORC_EDEADLK);
    /* Opening a stream does not wait. */
    torc_stream *other = torc_stream_open(ch, "a.B/List", NULL, NULL);
    assert_non_null(other);
    torc_stream_free(other);
    assert_int_equal(torc_channel_connect(ch, 0), TORC_EDEADLK);
}

static void test_blocking_refused_in_callback(void **state)
{
    (void)state;
    static const struct torc_stream_events ending = {TORC_SIZE(torc_stream_events), .on_done = on_done_start_another};
    struct stream s = {0};
    torc_stream *call = torc_stream_start(ch, "a.B/List", NULL, &ending, &s, NULL);
    torc_stream_half_close(call);
    while (!s.done)
        torc_runtime_poll(rt, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking_ping_pong),
        cmocka_unit_test(test_blocking_end_of_stream),
        cmocka_unit_test(test_client_streaming_response),
        cmocka_unit_test(test_blocking_failure),
        cmocka_unit_test(test_blocking_free_without_finish),
        cmocka_unit_test(test_async_stream),
        cmocka_unit_test(test_write_back_pressure),
        cmocka_unit_test(test_read_back_pressure),
        cmocka_unit_test(test_cancel_mid_stream),
        cmocka_unit_test(test_server_streaming_half_close),
        cmocka_unit_test(test_blocking_refused_in_callback),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
