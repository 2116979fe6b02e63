/* Windows that open for the message that is wanted. */
#include "base/mem.h"
#include "http2/internal.h"
#include "support/cmocka.h"
#include "support/h2_client.h"

#define OK TC_H2_OK_HEADERS
#define WINDOW 65536u

static void put_prefix(char *data, size_t len)
{
    for (int i = 0; i < 4; i++)
        data[4 - i] = (char)(len >> (8 * i));
}

/* What a stream's window is opened by when the first 16,000 bytes of a message of that length came. */
static size_t opened_for(size_t len, bool wanted)
{
    struct tc_h2_opts opts;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    static char first[16000];
    put_prefix(first, len);
    tc_h2_opts_init(&opts, false);
    opts.limits.max_receive_message_bytes = 64u << 20;
    tc_h2_test_init(&t, &opts, 0);
    tc_h2_test_open_reading(&call, &t, true);
    if (wanted)
        tc_h2_stream_read(call.stream);
    tc_h2_peer_headers(t.peer, 1, OK, false);
    tc_h2_peer_data(t.peer, 1, first, sizeof(first), false);
    tc_h2_test_run(&t);
    size_t opened = tc_h2_test_increments(t.peer, 1);
    assert_int_equal(call.done, 0);
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
    return opened;
}

/* Who asked for a message gets it in one go, however small the window was; within limits, and if nobody asked, not. */
static void window_opens_for_a_message(void **state)
{
    (void)state;
    assert_int_equal(opened_for(WINDOW - 5, true), 0);
    assert_int_equal(opened_for(WINDOW, true), 5);
    assert_int_equal(opened_for(1000000, true), 1000005 - WINDOW);
    assert_int_equal(opened_for(40u << 20, true), TC_H2_MAX_WINDOW - (WINDOW - 16000));
    assert_int_equal(opened_for(1000000, false), 0);
}

/* The next one of the same size needs no more window; nor does one that waited until it was asked for. */
static void window_stays_open_for_messages(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    size_t len = 1000000;
    char *data = tc_calloc(1, len + 5);
    put_prefix(data, len);
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_open_reading(&call, &t, false);
    tc_h2_peer_headers(t.peer, 1, OK, false);
    size_t window = WINDOW;
    for (unsigned i = 1; i <= 3; i++) {
        size_t at = TC_MIN(window, len + 5);
        tc_h2_peer_data(t.peer, 1, data, at, false);
        tc_h2_test_run(&t);
        window -= at;
        assert_int_equal(tc_h2_test_increments(t.peer, 1), 0);
        tc_h2_stream_read(call.stream);
        tc_h2_test_run(&t);
        window += tc_h2_test_increments(t.peer, 1);
        assert_true(window >= len + 5 - at);
        tc_h2_peer_data(t.peer, 1, data + at, len + 5 - at, false);
        tc_h2_test_run(&t);
        window = window + tc_h2_test_increments(t.peer, 1) - (len + 5 - at);
        assert_int_equal(call.messages, i);
        assert_in_range(window, 0, len + 5);
    }
    assert_int_equal(call.done, 0);
    tc_free(data);
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
}

static void begin_message(struct tc_h2_test *t, uint32_t id, size_t len)
{
    char first[1000] = {0};
    put_prefix(first, len);
    tc_h2_peer_headers(t->peer, id, OK, false);
    tc_h2_peer_data(t->peer, id, first, sizeof(first), false);
    tc_h2_test_run(t);
}

/* Of one message at a time: the next that begins when it is whole, or its stream is gone, is the next. */
static void window_opens_for_one_stream(void **state)
{
    (void)state;
    enum { LEN = 100000, STREAMS = 5 };
    struct tc_h2_test t;
    struct tc_h2_test_call calls[STREAMS];
    static const char rest[LEN + 5 - 1000];
    tc_h2_test_init(&t, NULL, 0);
    for (size_t i = 0; i < STREAMS; i++) {
        tc_h2_test_open_reading(&calls[i], &t, true);
        tc_h2_stream_read(calls[i].stream);
    }
    begin_message(&t, 1, LEN);
    assert_int_equal(tc_h2_test_increments(t.peer, 1), LEN + 5 - WINDOW);
    begin_message(&t, 3, LEN);
    assert_int_equal(tc_h2_test_increments(t.peer, 3), 0);
    tc_h2_peer_data(t.peer, 1, rest, sizeof(rest), false);
    tc_h2_test_run(&t);
    assert_int_equal(calls[0].messages, 1);
    begin_message(&t, 5, LEN);
    assert_int_equal(tc_h2_test_increments(t.peer, 5), LEN + 5 - WINDOW);
    begin_message(&t, 7, LEN);
    assert_int_equal(tc_h2_test_increments(t.peer, 7), 0);
    tc_h2_stream_cancel(calls[2].stream, NGHTTP2_CANCEL);
    calls[2].stream = NULL;
    tc_h2_test_run(&t);
    begin_message(&t, 9, LEN);
    assert_int_equal(tc_h2_test_increments(t.peer, 9), LEN + 5 - WINDOW);
    for (size_t i = 0; i < STREAMS; i++)
        tc_h2_test_call_fini(&calls[i]);
    tc_h2_test_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_opens_for_a_message),
        cmocka_unit_test(window_stays_open_for_messages),
        cmocka_unit_test(window_opens_for_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
