/* memory_limit_bytes: while the runtime holds more than the limit, new calls fail with a status that names both
 * numbers. The limit is soft: the call that crosses it still goes.
 *
 * The runtime holds the bytes of calls, of HTTP/2 connections, and of messages until the application frees them. Each
 * test makes a runtime without a thread and one channel to the backend, and the test's thread drives the loop. The
 * backend is real, with a thread of its own. All tests but the last cross the limit by one kind of these bytes, and see
 * calls succeed again after the bytes were freed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "base/blocks.h"
#include "base/clock.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

#define LIMIT 2500000u
#define KEPT_MAX 400
/* Each call counts for CALL_BYTES at least. The server allows more than CALLS streams at a time; CALLS_LIMIT allows
 * fewer calls. */
#define CALLS 80
#define CALLS_LIMIT 200000u
#define CALL_BYTES 4096u
/* More than the HTTP/2 session of one connection takes. */
#define SESSION_BYTES 100000u

static torc_runtime *rt;
static torc_channel *ch;
static uint64_t limit_now;
static unsigned long long held_then; /* held bytes in the text of the last refusal */

static void open_world(int64_t limit)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER,
                                     .memory_limit_bytes = limit};
    limit_now = (uint64_t)limit;
    rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
}

static void close_world(void)
{
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* Makes a call and returns its code. With `kept`, the caller gets a reference to the response, NULL after a failure.
 * Checks the text of a refusal, and stores its number of held bytes in held_then. */
static int call(const void *request, size_t size, torc_message **kept)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000};
    torc_result *r = torc_unary(ch, "a/b", request, size, &o);
    if (torc_result_code(r) == TORC_STATUS_RESOURCE_EXHAUSTED) {
        unsigned long long limit;
        assert_int_equal(sscanf(torc_result_text(r),
                                "the runtime holds %llu bytes, more than memory_limit_bytes (%llu)", &held_then,
                                &limit),
                         2);
        assert_int_equal(limit, limit_now);
        assert_true(held_then > limit);
    }
    if (kept)
        *kept = torc_result_code(r) == TORC_STATUS_OK ? torc_message_ref(torc_result_response(r)) : NULL;
    int code = torc_result_code(r);
    torc_result_free(r);
    return code;
}

/* Keeps responses of `size` bytes, each of which counts for about `each` bytes, until a call is refused. Calls succeed
 * again once a response is freed. */
static void keep_messages(const char *request, size_t size, size_t each)
{
    static torc_message *kept[KEPT_MAX];
    unsigned n = 0;
    while (n < KEPT_MAX && call(request, size, &kept[n]) == TORC_STATUS_OK)
        n++;
    assert_in_range(n, (LIMIT - SESSION_BYTES) / each + 1, LIMIT / each + 1);
    assert_in_range(held_then, n * each, n * each + SESSION_BYTES);
    assert_int_equal(call("x", 1, NULL), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_message_unref(kept[--n]);
    assert_int_equal(call("x", 1, NULL), TORC_STATUS_OK);
    while (n)
        torc_message_unref(kept[--n]);
    assert_int_equal(call("x", 1, NULL), TORC_STATUS_OK);
}

static void kept_messages_count(void **state)
{
    static char large[600000];
    (void)state;
    open_world(LIMIT);
    for (int round = 0; round < 3; round++) {
        keep_messages(large, sizeof(large), TC_BLOCKS_LARGE); /* in a reused block, all bytes of which count */
        keep_messages(large, 200000, 200000 + 64);            /* from the system: the bytes and at most 64 more */
        keep_messages(large, 66000, 66000 + 64);
        keep_messages(large, 10000, 10000 + 64);
    }
    close_world();
}

static unsigned ended, refused;

static void on_unary(const torc_result *result, void *arg)
{
    (void)arg;
    ended++;
    refused += torc_result_code(result) == TORC_STATUS_RESOURCE_EXHAUSTED;
}

/* Starts CALLS calls that hang, without waiting for their ends. The caller frees the handles in `calls`. */
static void start_calls(torc_stream *calls[CALLS])
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000};
    ended = refused = 0;
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(torc_unary_async(ch, "torc.test.Backend/Hang", "x", 1, &o, on_unary, NULL, &calls[i], NULL),
                         0);
    /* Calls begin in the order in which they were started: after this call the others have begun or were refused. */
    call("x", 1, NULL);
}

static void calls_under_way_count(void **state)
{
    torc_stream *calls[CALLS];
    (void)state;
    open_world(CALLS_LIMIT);
    for (int round = 0; round < 3; round++) {
        start_calls(calls);
        /* Each counts for CALL_BYTES and for its stream. The call that crosses the limit is not refused. */
        assert_in_range(CALLS - ended, (CALLS_LIMIT - SESSION_BYTES) / (2 * CALL_BYTES), CALLS_LIMIT / CALL_BYTES + 1);
        assert_int_equal(refused, ended);
        for (int i = 0; i < CALLS; i++)
            torc_stream_cancel(calls[i]);
        while (ended < CALLS)
            torc_runtime_poll(rt, -1);
        for (int i = 0; i < CALLS; i++)
            torc_stream_free(calls[i]);
        assert_int_equal(call("x", 1, NULL), TORC_STATUS_OK);
    }
    close_world();
}

/* Messages that have come count before the application asks for them. */
static void unread_messages_count(void **state)
{
    enum { STREAMS = 8, WINDOW = 65535, UNREAD_LIMIT = 300000, PIECE = 10000, WAIT_MS = 30000 };
    /* Streams alone stay below the limit. */
    _Static_assert(STREAMS * 2 * CALL_BYTES + SESSION_BYTES < UNREAD_LIMIT, "streams count for too much");
    _Static_assert(STREAMS * (WINDOW - PIECE) > UNREAD_LIMIT, "windows hold too little");
    static char piece[PIECE];
    torc_stream *streams[STREAMS];
    (void)state;
    open_world(UNREAD_LIMIT);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 2 * WAIT_MS};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = torc_stream_open(ch, "torc.test.Backend/Repeat", &o, NULL);
            assert_non_null(streams[i]);
        }
        /* All streams are open before the first message goes: later the limit could refuse a stream. */
        for (int i = 0; i < STREAMS; i++)
            assert_int_equal(torc_stream_send(streams[i], piece, sizeof(piece), 0, -1), 0);
        uint64_t end = tc_system_clock.monotonic_ns(NULL) + WAIT_MS * TC_NS_PER_MS;
        while (call("x", 1, NULL) == TORC_STATUS_OK)
            assert_true(tc_system_clock.monotonic_ns(NULL) < end);
        for (int i = 0; i < STREAMS; i++) {
            torc_stream_cancel(streams[i]);
            torc_stream_free(streams[i]);
        }
        assert_int_equal(call("x", 1, NULL), TORC_STATUS_OK);
    }
    close_world();
}

/* The last message that a stream received counts until the next message replaces it. */
static void the_last_message_of_a_stream_counts(void **state)
{
    static char large[LIMIT + 100000];
    (void)state;
    open_world(LIMIT);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000};
    torc_stream *stream = torc_stream_open(ch, "a/b", &o, NULL);
    assert_non_null(stream);
    for (int round = 0; round < 2; round++) {
        const torc_message *echo = NULL;
        assert_int_equal(torc_stream_send(stream, large, sizeof(large), 0, -1), 0);
        assert_int_equal(torc_stream_receive(stream, -1, &echo), 1);
        assert_int_equal(call("x", 1, NULL), TORC_STATUS_RESOURCE_EXHAUSTED);
        assert_int_equal(torc_stream_send(stream, "x", 1, 0, -1), 0);
        assert_int_equal(torc_stream_receive(stream, -1, &echo), 1);
        assert_int_equal(call("x", 1, NULL), TORC_STATUS_OK);
    }
    torc_stream_cancel(stream);
    torc_stream_free(stream);
    close_world();
}

/* The stream's message is larger than the limit by more than the server's first window (64 KiB) takes: more than the
 * limit is still held when the first unary call starts. The server answers with a few bytes once it has received the
 * message. */
static void requests_count_until_they_are_written(void **state)
{
    static char large[LIMIT + 100000];
    (void)state;
    open_world(LIMIT);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000};
    torc_stream *stream = torc_stream_open(ch, "torc.test.Backend/Count", &o, NULL);
    const torc_message *count = NULL;
    assert_non_null(stream);
    assert_int_equal(torc_stream_send(stream, large, sizeof(large), 0, 0), 0);
    assert_int_equal(call("x", 1, NULL), TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(torc_stream_receive(stream, -1, &count), 1);
    assert_int_equal(call("x", 1, NULL), TORC_STATUS_OK);
    torc_stream_cancel(stream);
    torc_stream_free(stream);
    close_world();
}

static void without_a_limit_none_is_refused(void **state)
{
    torc_stream *calls[CALLS];
    (void)state;
    open_world(0);
    start_calls(calls);
    assert_int_equal(ended, 0);
    for (int i = 0; i < CALLS; i++)
        torc_stream_free(calls[i]);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_messages_count),
        cmocka_unit_test(calls_under_way_count),
        cmocka_unit_test(unread_messages_count),
        cmocka_unit_test(the_last_message_of_a_stream_counts),
        cmocka_unit_test(requests_count_until_they_are_written),
        cmocka_unit_test(without_a_limit_none_is_refused),
    };
    return cmocka_run_group_tests(tests, kit_backends_one_setup, kit_backends_one_teardown);
}
