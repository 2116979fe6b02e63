/* The windows of a client's streams (kits/h2): a message that the call has asked for opens its stream's window.
 * fakes/h2 is the server and sees the increments of WINDOW_UPDATE frames. */
#include "base/mem.h"
#include "http2/connection_internal.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS
#define WINDOW 65536u

/* Writes the length of a message into its prefix, data[1] to data[4]. The flag byte, data[0], stays as it is. */
static void put_prefix(char *data, size_t len)
{
    for (int i = 0; i < 4; i++)
        data[4 - i] = (char)(len >> (8 * i));
}

/* Returns by how many bytes a stream's window was opened once the first 16,000 bytes of a message of `len` bytes, with
 * its prefix, had come. wanted: the message was asked for before it came. */
static size_t opened_for(size_t len, bool wanted)
{
    struct tc_h2_opts opts;
    struct kit_h2 t;
    struct kit_h2_call call;
    static char first[16000];
    put_prefix(first, len);
    tc_h2_opts_init(&opts, false);
    opts.limits.max_receive_message_bytes = 64u << 20;
    kit_h2_init(&t, &opts, 0);
    kit_h2_open_reading(&call, &t, true);
    if (wanted)
        tc_h2_stream_read(call.stream);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_data(t.peer, 1, first, sizeof(first), false);
    kit_h2_run(&t);
    size_t opened = kit_h2_increments(t.peer, 1);
    assert_int_equal(call.done, 0);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
    return opened;
}

/* The window opens for the whole of a message that was asked for, up to a limit, and not for a message that nobody
 * asked for. */
static void window_opens_for_a_message(void **state)
{
    (void)state;
    assert_int_equal(opened_for(WINDOW - 5, true), 0);
    assert_int_equal(opened_for(WINDOW, true), 5);
    assert_int_equal(opened_for(1000000, true), 1000005 - WINDOW);
    assert_int_equal(opened_for(40u << 20, true), TC_H2_MAX_WINDOW - (WINDOW - 16000));
    assert_int_equal(opened_for(1000000, false), 0);
}

/* A message opens the window when the message is asked for, not before. Messages of the same size do not open the
 * window further and further. */
static void window_stays_open_for_messages(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    size_t len = 1000000;
    char *data = tc_calloc(1, len + 5);
    put_prefix(data, len);
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&call, &t, false);
    fake_h2_headers(t.peer, 1, OK, false);
    size_t window = WINDOW;
    for (unsigned i = 1; i <= 3; i++) {
        size_t at = TC_MIN(window, len + 5);
        fake_h2_data(t.peer, 1, data, at, false);
        kit_h2_run(&t);
        window -= at;
        assert_int_equal(kit_h2_increments(t.peer, 1), 0);
        tc_h2_stream_read(call.stream);
        kit_h2_run(&t);
        window += kit_h2_increments(t.peer, 1);
        assert_true(window >= len + 5 - at);
        fake_h2_data(t.peer, 1, data + at, len + 5 - at, false);
        kit_h2_run(&t);
        window = window + kit_h2_increments(t.peer, 1) - (len + 5 - at);
        assert_int_equal(call.messages, i);
        assert_in_range(window, 0, len + 5);
    }
    assert_int_equal(call.done, 0);
    tc_free(data);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* Sends the response's headers and the first 1,000 bytes, with the prefix, of a message of `len` bytes. */
static void begin_message(struct kit_h2 *t, uint32_t id, size_t len)
{
    char first[1000] = {0};
    put_prefix(first, len);
    fake_h2_headers(t->peer, id, OK, false);
    fake_h2_data(t->peer, id, first, sizeof(first), false);
    kit_h2_run(t);
}

/* Only one stream of a connection at a time has its window opened for a message. Once that message is complete, or that
 * stream has ended, a message that begins on another stream opens the window of its own stream. */
static void window_opens_for_one_stream(void **state)
{
    (void)state;
    enum { LEN = 100000, STREAMS = 5 };
    struct kit_h2 t;
    struct kit_h2_call calls[STREAMS];
    static const char rest[LEN + 5 - 1000];
    kit_h2_init(&t, NULL, 0);
    for (size_t i = 0; i < STREAMS; i++) {
        kit_h2_open_reading(&calls[i], &t, true);
        tc_h2_stream_read(calls[i].stream);
    }
    begin_message(&t, 1, LEN);
    assert_int_equal(kit_h2_increments(t.peer, 1), LEN + 5 - WINDOW);
    begin_message(&t, 3, LEN);
    assert_int_equal(kit_h2_increments(t.peer, 3), 0);
    fake_h2_data(t.peer, 1, rest, sizeof(rest), false);
    kit_h2_run(&t);
    assert_int_equal(calls[0].messages, 1);
    begin_message(&t, 5, LEN);
    assert_int_equal(kit_h2_increments(t.peer, 5), LEN + 5 - WINDOW);
    begin_message(&t, 7, LEN);
    assert_int_equal(kit_h2_increments(t.peer, 7), 0);
    tc_h2_stream_cancel(calls[2].stream, NGHTTP2_CANCEL);
    calls[2].stream = NULL;
    kit_h2_run(&t);
    begin_message(&t, 9, LEN);
    assert_int_equal(kit_h2_increments(t.peer, 9), LEN + 5 - WINDOW);
    for (size_t i = 0; i < STREAMS; i++)
        kit_h2_call_fini(&calls[i]);
    kit_h2_fini(&t);
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
