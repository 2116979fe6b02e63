/* The life of a client's connection: settings, limits, GOAWAY, keepalive, floods, ends.
 *
 * kits/h2.h gives the connection and its calls, which count their events, on a manual loop; fakes/h2.h is the server,
 * which answers only what a test has it answer. Events come only while the loop runs (kit_h2_run, tc_loop_advance). The
 * calls of a connection have the streams 1, 3, 5 and so on. A test with `chunk` runs twice: with reads of any size, and
 * byte by byte. One thread. */
#include "base/mem.h"
#include "http2/connection_internal.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS
#define OK_TRAILERS "grpc-status: 0\n"

/* Has the server answer the call of stream `id` with the message "y" and OK. */
static void answer(struct kit_h2 *t, uint32_t id)
{
    fake_h2_headers(t->peer, id, OK, false);
    fake_h2_message(t->peer, id, "y", 1, false);
    fake_h2_headers(t->peer, id, OK_TRAILERS, true);
    kit_h2_run(t);
}

static void ready_after_settings(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init_silent(&t, NULL, chunk);
        assert_int_equal(t.ready, 0);
        const struct fake_h2_frame *f = fake_h2_next(t.peer);
        assert_int_equal(f->type, FAKE_H2_SETTINGS);
        assert_int_equal(f->len, 18);
        assert_memory_equal(f->payload, "\0\2\0\0\0\0\0\4\0\1\0\0\0\6\0\0\x40\0", 18);
        f = fake_h2_next(t.peer);
        assert_int_equal(f->type, FAKE_H2_WINDOW_UPDATE);
        assert_false(tc_h2_conn_has_capacity(t.conn));
        kit_h2_call_init(&call, &t);
        assert_int_equal(kit_h2_open(&call, &kit_h2_request), TORC_EAGAIN);
        fake_h2_start(t.peer);
        kit_h2_run(&t);
        assert_int_equal(t.ready, 1);
        assert_int_equal(t.capacity, 1);
        assert_true(tc_h2_conn_has_capacity(t.conn));
        f = fake_h2_next(t.peer);
        assert_int_equal(f->type, FAKE_H2_SETTINGS);
        assert_int_equal(f->flags, FAKE_H2_ACK);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

static void not_http2(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        kit_h2_init_silent(&t, NULL, chunk);
        fake_h2_bytes(t.peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
        kit_h2_run(&t);
        assert_int_equal(t.ready, 0);
        assert_int_equal(t.closed, 1);
        assert_true(fake_pipe_closed(t.pipe, 0));
        kit_h2_fini(&t);
    }
}

/* A server answers with a TLS alert, in one piece or byte by byte. The first two bytes are enough to recognise TLS, one
 * byte is not. Other bytes are not taken for TLS. */
static void server_speaks_tls(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *why;
    } rows[] = {
        {"\x15\3\1\0\2\2\x28", 7, "the server speaks TLS instead of HTTP/2"},
        {"\x15\3\3\0\2\2\x46", 7, "the server speaks TLS instead of HTTP/2"},
        {"\x15\3", 2, "the server speaks TLS instead of HTTP/2"},
        {"\x15", 1, "connection closed by the server before its HTTP/2 settings (it may want TLS)"},
        {"\3\x15\3", 3, "connection closed by the server before its HTTP/2 settings (it may want TLS)"},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        for (size_t chunk = 0; chunk < 2; chunk++) {
            struct kit_h2 t;
            kit_h2_init_silent(&t, NULL, chunk);
            fake_h2_bytes(t.peer, rows[i].bytes, rows[i].len);
            kit_h2_run(&t);
            fake_pipe_finish(t.pipe, 1);
            kit_h2_run(&t);
            assert_int_equal(t.closed, 1);
            assert_string_equal(t.why, rows[i].why);
            kit_h2_fini(&t);
        }
    }
}

static void server_closes_before_settings(void **state)
{
    (void)state;
    struct kit_h2 t;
    kit_h2_init_silent(&t, NULL, 0);
    fake_pipe_finish(t.pipe, 1);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 1);
    assert_string_equal(t.why, "connection closed by the server before its HTTP/2 settings (it may want TLS)");
    kit_h2_fini(&t);
}

static void max_concurrent_streams(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call calls[3], more;
    kit_h2_init(&t, NULL, 0);
    fake_h2_setting(t.peer, 3, 2);
    kit_h2_run(&t);
    kit_h2_unary(&calls[0], &t);
    kit_h2_unary(&calls[1], &t);
    assert_false(tc_h2_conn_has_capacity(t.conn));
    kit_h2_call_init(&more, &t);
    assert_int_equal(kit_h2_open(&more, &kit_h2_request), TORC_EAGAIN);
    assert_int_equal(t.capacity, 0);
    answer(&t, 1);
    assert_int_equal(calls[0].done, 1);
    assert_int_equal(t.capacity, 1);
    kit_h2_unary(&calls[2], &t);
    assert_int_equal(kit_h2_open(&more, &kit_h2_request), TORC_EAGAIN);
    /* A cancelled stream counts until its RST_STREAM was sent. */
    tc_h2_stream_cancel(calls[1].stream, 8);
    calls[1].stream = NULL;
    assert_int_equal(kit_h2_open(&more, &kit_h2_request), TORC_EAGAIN);
    kit_h2_run(&t);
    assert_int_equal(t.capacity, 2);
    assert_true(tc_h2_conn_has_capacity(t.conn));
    /* The server lowers the limit to 0, then raises it. */
    fake_h2_setting(t.peer, 3, 0);
    kit_h2_run(&t);
    assert_int_equal(kit_h2_open(&more, &kit_h2_request), TORC_EAGAIN);
    fake_h2_setting(t.peer, 3, 10);
    kit_h2_run(&t);
    assert_int_equal(t.capacity, 3);
    for (size_t i = 0; i < 3; i++)
        kit_h2_call_fini(&calls[i]);
    kit_h2_call_fini(&more);
    kit_h2_fini(&t);
}

static void goaway_drains(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        struct kit_h2_call calls[3], late;
        kit_h2_init(&t, NULL, chunk);
        for (size_t i = 0; i < 3; i++)
            kit_h2_unary(&calls[i], &t);
        fake_h2_goaway(t.peer, 3, 0, "maintenance");
        kit_h2_run(&t);
        assert_int_equal(t.draining, 1);
        assert_string_equal(t.why, "server sent GOAWAY with NO_ERROR: maintenance");
        assert_int_equal(calls[0].done + calls[1].done, 0);
        assert_int_equal(calls[2].done, 1);
        assert_int_equal(calls[2].code, TORC_STATUS_UNAVAILABLE);
        assert_true(calls[2].unprocessed);
        kit_h2_call_init(&late, &t);
        assert_int_equal(kit_h2_open(&late, &kit_h2_request), TORC_ECLOSED);
        answer(&t, 3);
        assert_int_equal(calls[1].code, 0);
        assert_int_equal(t.closed, 0);
        answer(&t, 1);
        assert_int_equal(calls[0].code, 0);
        assert_int_equal(t.closed, 1);
        assert_string_equal(t.why, "server sent GOAWAY with NO_ERROR: maintenance");
        for (size_t i = 0; i < 3; i++)
            kit_h2_call_fini(&calls[i]);
        kit_h2_call_fini(&late);
        kit_h2_fini(&t);
    }
}

/* At most 256 bytes of the peer's debug text are kept, percent-encoded so that they do no harm in a log. */
static void text_of_a_goaway(void **state)
{
    (void)state;
    static const char before[] = "server sent GOAWAY with NO_ERROR: ";
    for (size_t len = 255; len <= 257; len++) {
        struct kit_h2 t;
        char text[258] = "\n\x1b";
        memset(text + 2, 'x', len - 2);
        text[len] = '\0';
        kit_h2_init(&t, NULL, 0);
        fake_h2_goaway(t.peer, 0, 0, text);
        kit_h2_run(&t);
        assert_memory_equal(t.why, before, sizeof(before) - 1);
        assert_memory_equal(t.why + sizeof(before) - 1, "%0A%1Bxxx", 9);
        /* Two of the bytes become three characters each. */
        assert_int_equal(strlen(t.why), sizeof(before) - 1 + TC_MIN(len, (size_t)256) + 4);
        kit_h2_fini(&t);
    }
}

static void graceful_goaway(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call calls[2];
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&calls[0], &t);
    kit_h2_unary(&calls[1], &t);
    fake_h2_goaway(t.peer, 0x7fffffff, 0, "");
    kit_h2_run(&t);
    assert_int_equal(t.draining, 1);
    assert_int_equal(calls[0].done + calls[1].done, 0);
    fake_h2_goaway(t.peer, 1, 0, "");
    kit_h2_run(&t);
    assert_int_equal(t.draining, 1);
    assert_true(calls[1].unprocessed);
    assert_false(calls[1].unsent);
    answer(&t, 1);
    assert_int_equal(calls[0].code, 0);
    assert_int_equal(t.closed, 1);
    kit_h2_call_fini(&calls[0]);
    kit_h2_call_fini(&calls[1]);
    kit_h2_fini(&t);
}

/* A GOAWAY comes before the socket has taken the requests: the calls count as unprocessed. */
static void goaway_before_the_request_leaves(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    fake_pipe_set_capacity(t.pipe, 0);
    kit_h2_unary(&call, &t);
    struct kit_h2_call second;
    kit_h2_unary(&second, &t);
    fake_h2_goaway(t.peer, 0, 0, "");
    kit_h2_run(&t);
    fake_pipe_set_capacity(t.pipe, SIZE_MAX);
    fake_h2_next(t.peer);
    kit_h2_run(&t);
    assert_int_equal(second.done, 1);
    assert_true(second.unprocessed);
    assert_true(call.unprocessed);
    kit_h2_call_fini(&call);
    kit_h2_call_fini(&second);
    kit_h2_fini(&t);
}

static void too_many_pings(void **state)
{
    (void)state;
    struct kit_h2 t;
    kit_h2_init(&t, NULL, 0);
    fake_h2_goaway(t.peer, 0, 11, "too_many_pings");
    kit_h2_run(&t);
    assert_int_equal(t.draining, 1);
    assert_true(t.too_many_pings);
    assert_int_equal(t.closed, 1);
    assert_string_equal(t.why, "server sent GOAWAY with ENHANCE_YOUR_CALM: too_many_pings");
    kit_h2_fini(&t);
}

static void own_drain(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    tc_h2_conn_drain(t.conn, "bye");
    assert_false(tc_h2_conn_has_capacity(t.conn));
    kit_h2_run(&t);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(f);
    assert_string_equal(f->payload + 8, "bye");
    assert_int_equal(t.draining, 1);
    assert_int_equal(t.closed, 0);
    answer(&t, 1);
    assert_int_equal(call.code, 0);
    assert_int_equal(t.closed, 1);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void own_drain_when_idle(void **state)
{
    (void)state;
    struct kit_h2 t;
    kit_h2_init(&t, NULL, 0);
    tc_h2_conn_drain(t.conn, NULL);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 1);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_GOAWAY, 0));
    kit_h2_fini(&t);
}

/* A frame comes while only part of the GOAWAY is written: the connection still ends only after the rest is written. */
static void own_drain_in_parts(void **state)
{
    (void)state;
    struct kit_h2 t;
    kit_h2_init(&t, NULL, 0);
    while (fake_h2_next(t.peer)) {
    }
    fake_pipe_set_capacity(t.pipe, 10);
    tc_h2_conn_drain(t.conn, "bye");
    kit_h2_run(&t);
    fake_h2_window(t.peer, 0, 1);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 0);
    fake_pipe_set_capacity(t.pipe, SIZE_MAX);
    kit_h2_run(&t);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(f);
    assert_string_equal(f->payload + 8, "bye");
    assert_int_equal(t.closed, 1);
    kit_h2_fini(&t);
}

static void connection_lost(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call sent, unsent;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&sent, &t);
    kit_h2_call_init(&unsent, &t);
    assert_int_equal(kit_h2_open(&unsent, &kit_h2_request), 0);
    assert_int_equal(tc_h2_stream_send(unsent.stream, tc_slice_str("hello"), false, true), 0);
    fake_pipe_fail(t.pipe, 0, TORC_ECLOSED, "read from peer failed: Connection reset by peer", true);
    kit_h2_run(&t);
    assert_int_equal(sent.done, 1);
    assert_int_equal(sent.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(sent.text, "read from peer failed: Connection reset by peer");
    assert_false(sent.unprocessed);
    assert_int_equal(unsent.done, 1);
    assert_true(unsent.unprocessed);
    assert_true(unsent.unsent);
    assert_int_equal(unsent.written, 0); /* another attempt may write the message */
    assert_int_equal(t.closed, 1);
    kit_h2_call_fini(&sent);
    kit_h2_call_fini(&unsent);
    kit_h2_fini(&t);
}

/* The connection ends after the whole response has come: the call gets the response's status. */
static void response_outlives_the_connection(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    call.auto_read = false;
    answer(&t, 1);
    kit_h2_call_fini(&call);
    /* kit_h2_unary asks for one message; the server sends two. */
    kit_h2_unary(&call, &t);
    call.auto_read = false;
    fake_h2_headers(t.peer, 3, OK, false);
    fake_h2_message(t.peer, 3, "one", 3, false);
    fake_h2_message(t.peer, 3, "two", 3, false);
    fake_h2_headers(t.peer, 3, OK_TRAILERS, true);
    fake_pipe_finish(t.pipe, 1);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 1);
    assert_int_equal(call.messages, 1);
    assert_int_equal(call.done, 0);
    kit_h2_close(&t);
    kit_h2_run(&t);
    tc_h2_stream_read(call.stream);
    kit_h2_run(&t);
    assert_int_equal(call.messages, 2);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, 0);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static struct tc_h2_opts keepalive_opts(bool without_calls)
{
    struct tc_h2_opts opts;
    tc_h2_opts_init(&opts, false);
    opts.no_bdp = true;
    opts.keepalive.time_ms = 10000;
    opts.keepalive.timeout_ms = 2000;
    opts.keepalive.without_calls = without_calls;
    return opts;
}

static void keepalive_answered(void **state)
{
    (void)state;
    struct tc_h2_opts opts = keepalive_opts(true);
    struct kit_h2 t;
    kit_h2_init(&t, &opts, 0);
    for (int i = 0; i < 5; i++) {
        tc_loop_advance(t.loop, 9999);
        assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
        tc_loop_advance(t.loop, 1);
        const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_PING, 0);
        assert_non_null(f);
        char data[8];
        memcpy(data, f->payload, 8);
        fake_h2_ping(t.peer, data, true);
        kit_h2_run(&t);
        /* The answer ends the wait; the next PING is one period after the answer. */
        tc_loop_advance(t.loop, 0);
    }
    assert_int_equal(t.closed, 0);
    kit_h2_fini(&t);
}

static void keepalive_unanswered(void **state)
{
    (void)state;
    struct tc_h2_opts opts = keepalive_opts(false);
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, &opts, 0);
    /* No PING is sent while no call runs. When a call comes after a pause of time_ms or more, the PING follows the
     * call's HEADERS at once (A8). */
    tc_loop_advance(t.loop, 100000);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    kit_h2_unary(&call, &t);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_HEADERS, 1));
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    tc_loop_advance(t.loop, 1999);
    assert_int_equal(t.closed, 0);
    tc_loop_advance(t.loop, 1);
    assert_int_equal(t.closed, 1);
    assert_string_equal(t.why, "keepalive ping timeout");
    assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(call.text, "keepalive ping timeout");
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* The keepalive time goes on while no call runs. If a call comes after a pause shorter than time_ms, the PING is due
 * time_ms after the last byte. */
static void keepalive_counts_the_pause(void **state)
{
    (void)state;
    struct tc_h2_opts opts = keepalive_opts(false);
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, &opts, 0);
    tc_loop_advance(t.loop, 9000);
    fake_h2_window(t.peer, 0, 1);
    kit_h2_run(&t);
    tc_loop_advance(t.loop, 4000);
    kit_h2_unary(&call, &t);
    tc_loop_advance(t.loop, 5999);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    tc_loop_advance(t.loop, 1);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void keepalive_satisfied_by_traffic(void **state)
{
    (void)state;
    struct tc_h2_opts opts = keepalive_opts(true);
    struct kit_h2 t;
    kit_h2_init(&t, &opts, 0);
    for (int i = 0; i < 4; i++) {
        tc_loop_advance(t.loop, 9000);
        fake_h2_window(t.peer, 0, 1);
        kit_h2_run(&t);
    }
    assert_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    tc_loop_advance(t.loop, 10000);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_PING, 0));
    kit_h2_fini(&t);
}

static void pings_are_answered(void **state)
{
    (void)state;
    struct kit_h2 t;
    kit_h2_init(&t, NULL, 0);
    fake_h2_hold(t.peer, true);
    for (int i = 0; i < 1000; i++)
        fake_h2_ping(t.peer, "abcdefgh", false);
    fake_h2_hold(t.peer, false);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 0);
    assert_int_equal(fake_h2_count(t.peer, FAKE_H2_PING, 0), 1000);
    kit_h2_fini(&t);
}

/* A peer sends PINGs or SETTINGS and does not read the answers: the connection ends after at most 200,000 frames. */
static void peer_that_does_not_read(void **state)
{
    (void)state;
    for (int settings = 0; settings < 2; settings++) {
        struct kit_h2 t;
        kit_h2_init(&t, NULL, 0);
        fake_pipe_set_capacity(t.pipe, 0);
        for (int i = 0; i < 200000 && !t.closed; i++) {
            if (settings)
                fake_h2_setting(t.peer, 5, 16384);
            else
                fake_h2_ping(t.peer, "abcdefgh", false);
            if (i % 100 == 99)
                kit_h2_run(&t);
        }
        kit_h2_run(&t);
        assert_int_equal(t.closed, 1);
        kit_h2_fini(&t);
    }
}

static void continuation_flood(void **state)
{
    (void)state;
    if (!TC_HAS_MAX_CONTINUATIONS)
        skip();
    struct kit_h2 t;
    struct kit_h2_call call;
    struct tc_buf block = {0};
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    fake_h2_hpack(&block, OK);
    fake_h2_frame(t.peer, FAKE_H2_HEADERS, 0, 1, block.data, block.len);
    tc_buf_clear(&block);
    fake_h2_hpack(&block, "x: y\n");
    for (int i = 0; i < 100; i++)
        fake_h2_frame(t.peer, FAKE_H2_CONTINUATION, 0, 1, block.data, block.len);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 1);
    assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
    tc_buf_fini(&block);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* Each of these frames ends the connection with a GOAWAY, and the call on it with UNAVAILABLE. */
static void protocol_errors(void **state)
{
    (void)state;
    const struct {
        uint8_t type, flags;
        uint32_t stream;
        const char *payload;
        size_t len;
    } bad[] = {
        {FAKE_H2_DATA, 0, 0, "x", 1},                                     /* DATA on stream 0 */
        {FAKE_H2_DATA, 0, 9, "x", 1},                                     /* DATA on an idle stream */
        {FAKE_H2_DATA, 0, 1, "x", 1},                                     /* DATA before the headers */
        {FAKE_H2_HEADERS, FAKE_H2_END_HEADERS, 1, "\xff\xff\xff\xff", 4}, /* not HPACK */
        {FAKE_H2_HEADERS, FAKE_H2_END_HEADERS, 2, "\x88", 1},             /* a stream that a server may not open */
        {FAKE_H2_SETTINGS, 0, 0, "abc", 3},                               /* not a multiple of 6 */
        {FAKE_H2_SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff", 6},              /* window too large */
        {FAKE_H2_PING, 0, 0, "abc", 3},                                   /* not 8 bytes */
        {FAKE_H2_RST_STREAM, 0, 0, "\0\0\0\0", 4},                        /* reset of stream 0 */
        {FAKE_H2_RST_STREAM, 0, 7, "\0\0\0\0", 4},                        /* reset of an idle stream */
        {FAKE_H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4},                     /* an increment of 0 */
        {FAKE_H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4},             /* the window exceeds 2^31-1 */
        {FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, 1, "", 0},            /* without HEADERS before it */
        {5, FAKE_H2_END_HEADERS, 1, "\0\0\0\2\x84", 5},                   /* PUSH_PROMISE: push is off */
        {FAKE_H2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0", 8},                    /* GOAWAY on a stream */
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        for (size_t chunk = 0; chunk < 2; chunk++) {
            struct kit_h2 t;
            struct kit_h2_call call;
            kit_h2_init(&t, NULL, chunk);
            kit_h2_unary(&call, &t);
            fake_h2_frame(t.peer, bad[i].type, bad[i].flags, bad[i].stream, bad[i].payload, bad[i].len);
            kit_h2_run(&t);
            if (t.closed != 1 || call.done != 1 || call.code != TORC_STATUS_UNAVAILABLE)
                fail_msg("row %zu: closed %u, done %u, code %d", i, t.closed, call.done, call.code);
            assert_non_null(fake_h2_expect(t.peer, FAKE_H2_GOAWAY, 0));
            kit_h2_call_fini(&call);
            kit_h2_fini(&t);
        }
    }
}

static void idle_connection_is_small(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    for (uint32_t i = 0; i < 50; i++) {
        kit_h2_unary(&call, &t);
        answer(&t, 1 + 2 * i);
        assert_int_equal(call.code, 0);
        kit_h2_call_fini(&call);
    }
    assert_int_equal(tc_h2_conn_open_streams(t.conn), 0);
    assert_int_equal(t.closed, 0);
    /* An idle connection keeps little beside nghttp2's own part, once it has been idle for a second. */
    assert_true(tc_heap_kept(tc_loop_heap(t.loop)) > 0);
    tc_loop_advance(t.loop, 1001);
    size_t own = sizeof(*t.conn) + t.conn->scratch.cap + t.conn->write.unsent.cap;
    if (own > 2048)
        fail_msg("an idle connection keeps %zu bytes", own);
    /* Then the heap of the loop, which all its connections share, keeps at most 64 KiB. */
    assert_in_range(tc_heap_kept(tc_loop_heap(t.loop)), 0, 65536);
    kit_h2_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_after_settings),
        cmocka_unit_test(not_http2),
        cmocka_unit_test(server_speaks_tls),
        cmocka_unit_test(server_closes_before_settings),
        cmocka_unit_test(max_concurrent_streams),
        cmocka_unit_test(goaway_drains),
        cmocka_unit_test(text_of_a_goaway),
        cmocka_unit_test(graceful_goaway),
        cmocka_unit_test(goaway_before_the_request_leaves),
        cmocka_unit_test(too_many_pings),
        cmocka_unit_test(own_drain),
        cmocka_unit_test(own_drain_when_idle),
        cmocka_unit_test(own_drain_in_parts),
        cmocka_unit_test(connection_lost),
        cmocka_unit_test(response_outlives_the_connection),
        cmocka_unit_test(keepalive_answered),
        cmocka_unit_test(keepalive_unanswered),
        cmocka_unit_test(keepalive_counts_the_pause),
        cmocka_unit_test(keepalive_satisfied_by_traffic),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(peer_that_does_not_read),
        cmocka_unit_test(continuation_flood),
        cmocka_unit_test(protocol_errors),
        cmocka_unit_test(idle_connection_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
