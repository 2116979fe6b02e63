/* Flow control and back-pressure of a client's connection (kits/h2) in both directions, and callbacks that end streams.
 *
 * fakes/h2 is the server. The windows that the server grants have HTTP/2's default of 65,535 bytes until a test opens
 * them further. The client grants WINDOW bytes to a stream at first, unless a test sets another size, and
 * TC_H2_MAX_WINDOW bytes to the connection. Bandwidth pings are on in window_grows_with_bandwidth and in
 * small_windows_open_again alone.
 *
 * A message that a test sends is borrowed until on_written, or until the test cancels the call. One thread: callbacks
 * come from the loop alone, which kit_h2_run and tc_loop_advance run. */
#include "base/mem.h"
#include "http2/connection_internal.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS
#define OK_TRAILERS "grpc-status: 0\n"
#define WINDOW 65536u

/* The window of a stream that nobody reads does not open again; another stream's data flows on. */
static void stalled_stream_blocks_nobody(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call stalled, busy;
    char *data = tc_calloc(1, 16000);
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&stalled, &t, false);
    kit_h2_open_reading(&busy, &t, true);
    tc_h2_stream_read(busy.stream);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_headers(t.peer, 3, OK, false);
    for (int i = 0; i < 4; i++)
        fake_h2_message(t.peer, 1, data, 16000, false);
    kit_h2_run(&t);
    assert_int_equal(kit_h2_increments(t.peer, 1), 0);
    size_t opened = 0;
    for (int i = 0; i < 400; i++) {
        fake_h2_message(t.peer, 3, data, 16000, false);
        kit_h2_run(&t);
        opened += kit_h2_increments(t.peer, 3);
    }
    assert_int_equal(busy.messages, 400);
    assert_in_range(opened, 400 * 16005 - WINDOW, 400 * 16005);
    assert_int_equal(t.closed, 0);
    assert_int_equal(stalled.messages, 0);
    /* Once the stalled stream is read, it goes on. */
    for (unsigned i = 0; i < 4; i++) {
        tc_h2_stream_read(stalled.stream);
        kit_h2_run(&t);
        assert_int_equal(stalled.messages, i + 1);
    }
    assert_in_range(kit_h2_increments(t.peer, 1), 4 * 16005 - WINDOW / 2, 4 * 16005);
    tc_free(data);
    kit_h2_call_fini(&stalled);
    kit_h2_call_fini(&busy);
    kit_h2_fini(&t);
}

/* The server sends more than the window allows: the call ends with INTERNAL. */
static void window_is_enforced(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    char *data = tc_calloc(1, WINDOW + 1);
    data[1] = 1; /* the beginning of a message of 16 MiB */
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&call, &t, false);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_data(t.peer, 1, data, WINDOW + 1, false);
    kit_h2_run(&t);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, TORC_STATUS_INTERNAL);
    tc_free(data);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* A message that was asked for and is larger than the window: the window opens again for the message's bytes. */
static void large_message_received(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    size_t len = 1000000, at = 0, window = WINDOW;
    char *data = tc_calloc(1, len + 5);
    data[2] = (char)(len >> 16), data[3] = (char)(len >> 8), data[4] = (char)len;
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&call, &t, true);
    tc_h2_stream_read(call.stream);
    fake_h2_headers(t.peer, 1, OK, false);
    while (at < len + 5) {
        size_t n = TC_MIN(len + 5 - at, window);
        assert_true(n > 0);
        fake_h2_data(t.peer, 1, data + at, n, false);
        kit_h2_run(&t);
        at += n;
        window = window - n + kit_h2_increments(t.peer, 1);
    }
    assert_int_equal(call.messages, 1);
    assert_int_equal(call.last.len, len);
    tc_free(data);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* nghttp2 is told of consumed bytes in batches. However small the window is, no batch waits for bytes that cannot
 * come. */
static void small_windows_open_again(void **state)
{
    (void)state;
    static const uint32_t windows[] = {1, 2, 15, 16, 17, 64, 1000};
    static const char data[37];
    for (size_t w = 0; w < TC_ARRAY_LEN(windows); w++) {
        struct tc_h2_opts opts;
        struct kit_h2 t;
        struct kit_h2_call call;
        tc_h2_opts_init(&opts, false);
        opts.limits.initial_window_bytes = windows[w];
        kit_h2_init(&t, &opts, 0);
        kit_h2_open_reading(&call, &t, true);
        tc_h2_stream_read(call.stream);
        fake_h2_headers(t.peer, 1, OK, false);
        static const char prefix[5] = {0, 0, 0, 0, sizeof(data)};
        size_t window = windows[w];
        for (size_t at = 0; at < 100 * (sizeof(prefix) + sizeof(data));) {
            size_t in = at % (sizeof(prefix) + sizeof(data)), end = in < 5 ? 5 : sizeof(prefix) + sizeof(data);
            size_t n = TC_MIN(end - in, window);
            assert_true(n > 0); /* otherwise the window stays shut for ever */
            fake_h2_data(t.peer, 1, in < 5 ? prefix + in : data + in - 5, n, false);
            kit_h2_run(&t);
            window = window - n + kit_h2_increments(t.peer, 1);
            at += n;
        }
        assert_int_equal(call.messages, 100);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* The server sends twice what the connection's window holds. */
static void connection_window_opens_again(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    const size_t size = 16000, count = 2 * TC_H2_MAX_WINDOW / size;
    char *data = tc_calloc(1, size);
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&call, &t, true);
    tc_h2_stream_read(call.stream);
    kit_h2_increments(t.peer, 0);
    fake_h2_headers(t.peer, 1, OK, false);
    size_t opened = 0;
    for (size_t i = 0; i < count; i++) {
        fake_h2_message(t.peer, 1, data, size, false);
        kit_h2_run(&t);
        opened += kit_h2_increments(t.peer, 0);
    }
    assert_int_equal(call.messages, count);
    assert_in_range(opened, count * (size + 5) - TC_H2_MAX_WINDOW, count * (size + 5));
    tc_free(data);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* Messages wait until they are asked for, and the end waits behind them. */
static void reads_by_demand(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, chunk);
        kit_h2_open_reading(&call, &t, false);
        fake_h2_headers(t.peer, 1, OK, false);
        for (int i = 0; i < 3; i++)
            fake_h2_message(t.peer, 1, "abc", (size_t)i, false);
        fake_h2_headers(t.peer, 1, OK_TRAILERS, true);
        kit_h2_run(&t);
        assert_int_equal(call.headers, 1);
        assert_int_equal(call.messages, 0);
        assert_int_equal(call.done, 0);
        tc_h2_stream_read(call.stream);
        assert_int_equal(call.messages, 0);
        kit_h2_run(&t);
        assert_int_equal(call.messages, 1);
        tc_h2_stream_read(call.stream);
        tc_h2_stream_read(call.stream);
        kit_h2_run(&t);
        assert_int_equal(call.messages, 3);
        assert_int_equal(call.last.len, 2);
        assert_int_equal(call.done, 1);
        assert_int_equal(call.code, 0);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* A message stays within the peer's windows; on_written comes once all of it was sent. */
static void sends_within_the_window(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    size_t len = 200000;
    char *data = tc_malloc(len);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i * 7 % 251);
    kit_h2_init(&t, NULL, 0);
    kit_h2_call_init(&call, &t);
    assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of(data, len), false, true), 0);
    struct tc_buf got = {0};
    const struct fake_h2_frame *f;
    uint8_t last_flags = 0;
    for (int rounds = 0; rounds < 100 && call.written == 0; rounds++) {
        kit_h2_run(&t);
        size_t before = got.len;
        while ((f = fake_h2_next(t.peer)))
            if (f->type == FAKE_H2_DATA) {
                assert_in_range(f->len, 0, 16384);
                tc_buf_append(&got, f->payload, f->len);
                last_flags = f->flags;
            }
        assert_in_range(got.len - before, 0, 65535);
        if (!call.written) {
            assert_true(got.len < len + 5);
            fake_h2_window(t.peer, 0, (uint32_t)(got.len - before));
            fake_h2_window(t.peer, 1, (uint32_t)(got.len - before));
        }
    }
    assert_int_equal(call.written, 1);
    assert_int_equal(last_flags, FAKE_H2_END_STREAM);
    assert_int_equal(got.len, len + 5);
    assert_memory_equal(got.data + 5, data, len);
    tc_buf_fini(&got);
    tc_free(data);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* A socket that takes a few bytes at a time, or none: the same bytes arrive, and the message may be freed after
 * on_written. */
static void sends_through_a_slow_socket(void **state)
{
    (void)state;
    const size_t chunks[] = {1, 7, 1000};
    for (size_t i = 0; i < TC_ARRAY_LEN(chunks); i++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        size_t len = 30000;
        char *data = tc_malloc(len);
        memset(data, 'd', len);
        kit_h2_init(&t, NULL, 0);
        fake_pipe_set_write_chunk(t.pipe, chunks[i]);
        fake_pipe_set_capacity(t.pipe, 500);
        kit_h2_call_init(&call, &t);
        assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
        assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of(data, len), false, true), 0);
        struct tc_buf got = {0};
        bool ended = false;
        for (int rounds = 0; rounds < 1000 && !ended; rounds++) {
            kit_h2_run(&t);
            if (call.written && data) {
                tc_free(data);
                data = NULL;
            }
            const struct fake_h2_frame *f;
            while ((f = fake_h2_next(t.peer)))
                if (f->type == FAKE_H2_DATA) {
                    tc_buf_append(&got, f->payload, f->len);
                    ended = ended || (f->flags & FAKE_H2_END_STREAM);
                }
        }
        assert_true(ended);
        assert_int_equal(got.len, len + 5);
        for (size_t j = 5; j < got.len; j++)
            assert_int_equal(got.data[j], 'd');
        tc_buf_fini(&got);
        tc_free(data);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

static void at_the_end(struct kit_h2_call *call, const char *event)
{
    if (strcmp(event, "written") == 0)
        assert_true(tc_h2_client_stream_finished(call->stream));
}

/* The server ends the call while our message waits for the window: on_written comes at once, though the end waits for
 * a message that nobody has asked for. The writer can tell that the call has ended. */
static void written_when_the_response_ends(void **state)
{
    (void)state;
    enum { END_ONLY, END_AND_RESET, CONNECTION_LOST, CLOSED_BY_OWNER, N_WAYS };
    for (int way = END_ONLY; way < N_WAYS; way++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        size_t len = 100000;
        char *data = tc_calloc(1, len);
        kit_h2_init(&t, NULL, 0);
        kit_h2_call_init(&call, &t);
        call.hook = at_the_end;
        assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
        assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of(data, len), false, true), 0);
        kit_h2_run(&t);
        assert_int_equal(call.written, 0);
        fake_h2_headers(t.peer, 1, OK, false);
        fake_h2_message(t.peer, 1, "enough", 6, false);
        fake_h2_headers(t.peer, 1, OK_TRAILERS, true);
        if (way == END_AND_RESET)
            fake_h2_rst(t.peer, 1, 0);
        kit_h2_run(&t);
        assert_int_equal(call.written, 1);
        assert_int_equal(call.done, 0);
        if (way == CONNECTION_LOST)
            fake_pipe_finish(t.pipe, 1);
        else if (way == CLOSED_BY_OWNER)
            kit_h2_close(&t);
        memset(data, 0xee, len);
        tc_free(data);
        if (way == END_ONLY) {
            const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1);
            assert_non_null(f);
            assert_int_equal(kit_h2_u32(f->payload), 0);
            /* The rest of the message is not sent, even when both windows open. */
            fake_h2_window(t.peer, 0, 1000000);
            fake_h2_window(t.peer, 1, 1000000);
            kit_h2_run(&t);
            assert_int_equal(fake_h2_count(t.peer, FAKE_H2_DATA, 0), 0);
        }
        assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of("x", 1), false, false), TORC_ESTATE);
        tc_h2_stream_read(call.stream);
        kit_h2_run(&t);
        assert_int_equal(call.messages, 1);
        assert_int_equal(call.done, 1);
        assert_int_equal(call.code, 0);
        assert_int_equal(call.written, 1);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* A call is cancelled while its message is half sent: the message, which is freed then, is not touched again
 * (AddressSanitizer would see it), and the next call works. */
static void cancelled_while_sending(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call, other;
    size_t len = 100000;
    char *data = tc_calloc(1, len);
    kit_h2_init(&t, NULL, 0);
    kit_h2_call_init(&call, &t);
    assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of(data, len), false, true), 0);
    kit_h2_run(&t);
    assert_int_equal(call.written, 0);
    kit_h2_call_fini(&call);
    tc_free(data);
    fake_h2_window(t.peer, 0, 1000000);
    fake_h2_window(t.peer, 1, 1000000);
    kit_h2_run(&t);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1);
    assert_non_null(f);
    assert_int_equal(kit_h2_u32(f->payload), 8);
    kit_h2_unary(&other, &t);
    fake_h2_headers(t.peer, 3, OK "grpc-status: 0\n", true);
    kit_h2_run(&t);
    assert_int_equal(other.code, 0);
    kit_h2_call_fini(&other);
    kit_h2_fini(&t);
}

static void cancelled_before_it_left(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_call_init(&call, &t);
    assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of("x", 1), false, true), 0);
    kit_h2_call_fini(&call);
    kit_h2_run(&t);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_HEADERS, 0));
    assert_true(tc_h2_conn_has_capacity(t.conn));
    assert_int_equal(tc_h2_conn_open_streams(t.conn), 0);
    kit_h2_fini(&t);
}

static void many_calls_one_write(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call calls[64];
    kit_h2_init(&t, NULL, 0);
    size_t writes = fake_pipe_writes(t.pipe, 0);
    for (size_t i = 0; i < TC_ARRAY_LEN(calls); i++) {
        kit_h2_call_init(&calls[i], &t);
        assert_int_equal(kit_h2_open(&calls[i], &kit_h2_request), 0);
        assert_int_equal(tc_h2_stream_send(calls[i].stream, tc_slice_of("hello", 5), false, true), 0);
    }
    kit_h2_run(&t);
    assert_int_equal(fake_pipe_writes(t.pipe, 0), writes + 1);
    for (size_t i = 0; i < TC_ARRAY_LEN(calls); i++)
        kit_h2_call_fini(&calls[i]);
    kit_h2_run(&t);
    assert_int_equal(fake_pipe_writes(t.pipe, 0), writes + 2);
    kit_h2_fini(&t);
}

static void window_grows_with_bandwidth(void **state)
{
    (void)state;
    struct tc_h2_opts opts;
    tc_h2_opts_init(&opts, false);
    struct kit_h2 t;
    struct kit_h2_call call;
    char *data = tc_calloc(1, 16000);
    kit_h2_init(&t, &opts, 0);
    kit_h2_open_reading(&call, &t, true);
    tc_h2_stream_read(call.stream);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_message(t.peer, 1, data, 10, false);
    kit_h2_run(&t);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    fake_h2_message(t.peer, 1, data, 16000, false);
    kit_h2_run(&t);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_PING, 0);
    assert_non_null(f);
    char ping[8];
    memcpy(ping, f->payload, 8);
    for (int i = 0; i < 3; i++)
        fake_h2_message(t.peer, 1, data, 16000, false);
    tc_loop_advance(t.loop, 50);
    fake_h2_ping(t.peer, ping, true);
    kit_h2_run(&t);
    f = fake_h2_expect(t.peer, FAKE_H2_SETTINGS, 0);
    assert_non_null(f);
    assert_memory_equal(f->payload, "\0\4\0\2\0\0", 6);
    fake_h2_frame(t.peer, FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, NULL, 0);
    /* Bytes of the next round trip were sent into the smaller window: they are not measured. */
    tc_loop_advance(t.loop, 49);
    fake_h2_message(t.peer, 1, data, 16000, false);
    kit_h2_run(&t);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    tc_loop_advance(t.loop, 1);
    fake_h2_message(t.peer, 1, data, 16000, false);
    kit_h2_run(&t);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    /* This round trip brought little data, so the next PING waits for longer. */
    fake_h2_ping(t.peer, ping, true);
    kit_h2_run(&t);
    tc_loop_advance(t.loop, 150);
    fake_h2_message(t.peer, 1, data, 16000, false);
    kit_h2_run(&t);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    tc_loop_advance(t.loop, 60);
    fake_h2_message(t.peer, 1, data, 16000, false);
    kit_h2_run(&t);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    tc_free(data);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* The `action` that a callback does when `event` first comes. */
static struct {
    const char *event;
    int action; /* 0: cancel the event's call, 1: cancel `other`, 2: close, 3: drain, 4: open another call */
    struct kit_h2_call *other;
    unsigned fired; /* how often `action` was done */
} plan;

static struct kit_h2_call opened; /* the call of action 4 */

/* Does what the plan says. `call` is the call of the event; NULL: an event of the connection. */
static void act(struct kit_h2 *t, struct kit_h2_call *call)
{
    plan.fired++;
    switch (plan.action) {
    case 0:
        if (call && call->stream) {
            tc_h2_stream_cancel(call->stream, 8);
            call->stream = NULL;
        }
        break;
    case 1:
        if (plan.other->stream)
            tc_h2_stream_cancel(plan.other->stream, 8);
        plan.other->stream = NULL;
        break;
    case 2:
        kit_h2_close(t);
        break;
    case 3:
        tc_h2_conn_drain(t->conn, "enough");
        break;
    default:
        kit_h2_call_fini(&opened);
        kit_h2_call_init(&opened, t);
        if (kit_h2_open(&opened, &kit_h2_request) == 0)
            tc_h2_stream_send(opened.stream, tc_slice_of("x", 1), false, true);
    }
}

static void on_call_event(struct kit_h2_call *call, const char *event)
{
    if (strcmp(event, plan.event) == 0 && !plan.fired)
        act(call->t, call);
}

static void on_conn_event(struct kit_h2 *t, const char *event)
{
    if (strcmp(event, plan.event) == 0 && !plan.fired)
        act(t, NULL);
}

/* Plays two calls, whole responses to both, a GOAWAY and the end of the bytes, with the action inside of the event's
 * callback. Asserts that each call and the connection end at most once. */
static void run_plan(const char *event, int action, size_t chunk)
{
    struct kit_h2 t;
    struct kit_h2_call a, b;
    memset(&plan, 0, sizeof(plan));
    plan.event = event;
    plan.action = action;
    plan.other = &b;
    kit_h2_init_silent(&t, NULL, chunk);
    t.hook = on_conn_event;
    fake_h2_start(t.peer);
    kit_h2_run(&t);
    kit_h2_call_init(&a, &t);
    kit_h2_call_init(&b, &t);
    kit_h2_call_init(&opened, &t);
    struct kit_h2_call *calls[] = {&a, &b};
    for (size_t i = 0; i < 2 && t.conn; i++) {
        calls[i]->hook = on_call_event;
        calls[i]->auto_read = true;
        if (kit_h2_open(calls[i], &kit_h2_request))
            continue;
        tc_h2_stream_send(calls[i]->stream, tc_slice_of("hi", 2), false, true);
        tc_h2_stream_read(calls[i]->stream);
    }
    kit_h2_run(&t);
    if (t.conn) {
        fake_h2_hold(t.peer, true);
        for (uint32_t id = 1; id <= 3; id += 2) {
            fake_h2_headers(t.peer, id, OK, false);
            fake_h2_message(t.peer, id, "one", 3, false);
            fake_h2_message(t.peer, id, "two", 3, false);
            fake_h2_headers(t.peer, id, OK_TRAILERS, true);
        }
        fake_h2_goaway(t.peer, 0x7fffffff, 0, "x");
        fake_h2_hold(t.peer, false);
        fake_pipe_finish(t.pipe, 1);
    }
    kit_h2_run(&t);
    if (plan.fired != 1)
        fail_msg("%s, action %d: fired %u", event, action, plan.fired);
    assert_in_range(a.done, 0, 1);
    assert_in_range(b.done, 0, 1);
    assert_in_range(t.closed, 0, 1);
    kit_h2_call_fini(&a);
    kit_h2_call_fini(&b);
    kit_h2_call_fini(&opened);
    kit_h2_fini(&t);
}

static void ends_inside_callbacks(void **state)
{
    (void)state;
    const char *const call_events[] = {"headers", "message", "written", "done"};
    const char *const conn_events[] = {"ready", "draining", "closed"};
    for (size_t chunk = 0; chunk < 2; chunk++) {
        for (size_t i = 0; i < TC_ARRAY_LEN(call_events); i++)
            for (int action = 0; action < 5; action++)
                run_plan(call_events[i], action, chunk);
        for (size_t i = 0; i < TC_ARRAY_LEN(conn_events); i++)
            for (int action = 2; action < 4; action++)
                run_plan(conn_events[i], action, chunk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_windows_open_again),     cmocka_unit_test(connection_window_opens_again),
        cmocka_unit_test(stalled_stream_blocks_nobody), cmocka_unit_test(window_is_enforced),
        cmocka_unit_test(large_message_received),       cmocka_unit_test(reads_by_demand),

        cmocka_unit_test(sends_within_the_window),      cmocka_unit_test(sends_through_a_slow_socket),
        cmocka_unit_test(cancelled_while_sending),      cmocka_unit_test(written_when_the_response_ends),
        cmocka_unit_test(cancelled_before_it_left),     cmocka_unit_test(many_calls_one_write),
        cmocka_unit_test(window_grows_with_bandwidth),  cmocka_unit_test(ends_inside_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
