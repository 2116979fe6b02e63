/* The life of a client's connection: settings, limits, GOAWAY, keepalive, floods, ends. */
#include "base/mem.h"
#include "http2/internal.h"
#include "support/cmocka.h"
#include "support/h2_client.h"

#define OK TC_H2_OK_HEADERS
#define OK_TRAILERS "grpc-status: 0\n"

static void answer(struct tc_h2_test *t, uint32_t id)
{
    tc_h2_peer_headers(t->peer, id, OK, false);
    tc_h2_peer_message(t->peer, id, "y", 1, false);
    tc_h2_peer_headers(t->peer, id, OK_TRAILERS, true);
    tc_h2_test_run(t);
}

static void ready_after_settings(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init_silent(&t, NULL, chunk);
        assert_int_equal(t.ready, 0);
        const struct tc_h2p_frame *f = tc_h2_peer_next(t.peer);
        assert_int_equal(f->type, TC_H2P_SETTINGS);
        assert_int_equal(f->len, 18);
        assert_memory_equal(f->payload, "\0\2\0\0\0\0\0\4\0\1\0\0\0\6\0\0\x40\0", 18);
        f = tc_h2_peer_next(t.peer);
        assert_int_equal(f->type, TC_H2P_WINDOW_UPDATE);
        assert_false(tc_h2_conn_has_capacity(t.conn));
        tc_h2_test_call_init(&call, &t);
        assert_int_equal(tc_h2_test_open(&call, &tc_h2_test_request), TORC_EAGAIN);
        tc_h2_peer_start(t.peer);
        tc_h2_test_run(&t);
        assert_int_equal(t.ready, 1);
        assert_int_equal(t.capacity, 1);
        assert_true(tc_h2_conn_has_capacity(t.conn));
        f = tc_h2_peer_next(t.peer);
        assert_int_equal(f->type, TC_H2P_SETTINGS);
        assert_int_equal(f->flags, TC_H2P_ACK);
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

static void not_http2(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct tc_h2_test t;
        tc_h2_test_init_silent(&t, NULL, chunk);
        tc_h2_peer_bytes(t.peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
        tc_h2_test_run(&t);
        assert_int_equal(t.ready, 0);
        assert_int_equal(t.closed, 1);
        assert_true(tc_pipe_closed(t.pipe, 0));
        tc_h2_test_fini(&t);
    }
}

static void server_closes_before_settings(void **state)
{
    (void)state;
    struct tc_h2_test t;
    tc_h2_test_init_silent(&t, NULL, 0);
    tc_pipe_finish(t.pipe, 1);
    tc_h2_test_run(&t);
    assert_int_equal(t.closed, 1);
    assert_string_equal(t.why, "connection closed by the server before its HTTP/2 settings");
    tc_h2_test_fini(&t);
}

static void max_concurrent_streams(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call calls[3], more;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_peer_setting(t.peer, 3, 2);
    tc_h2_test_run(&t);
    tc_h2_test_unary(&calls[0], &t);
    tc_h2_test_unary(&calls[1], &t);
    assert_false(tc_h2_conn_has_capacity(t.conn));
    tc_h2_test_call_init(&more, &t);
    assert_int_equal(tc_h2_test_open(&more, &tc_h2_test_request), TORC_EAGAIN);
    assert_int_equal(t.capacity, 0);
    answer(&t, 1);
    assert_int_equal(calls[0].done, 1);
    assert_int_equal(t.capacity, 1);
    tc_h2_test_unary(&calls[2], &t);
    assert_int_equal(tc_h2_test_open(&more, &tc_h2_test_request), TORC_EAGAIN);
    /* A cancelled stream counts until its RST_STREAM was sent. */
    tc_h2_stream_cancel(calls[1].stream, 8);
    calls[1].stream = NULL;
    assert_int_equal(tc_h2_test_open(&more, &tc_h2_test_request), TORC_EAGAIN);
    tc_h2_test_run(&t);
    assert_int_equal(t.capacity, 2);
    assert_true(tc_h2_conn_has_capacity(t.conn));
    /* The server raises it, and lowers it to nothing. */
    tc_h2_peer_setting(t.peer, 3, 0);
    tc_h2_test_run(&t);
    assert_int_equal(tc_h2_test_open(&more, &tc_h2_test_request), TORC_EAGAIN);
    tc_h2_peer_setting(t.peer, 3, 10);
    tc_h2_test_run(&t);
    assert_int_equal(t.capacity, 3);
    for (size_t i = 0; i < 3; i++)
        tc_h2_test_call_fini(&calls[i]);
    tc_h2_test_call_fini(&more);
    tc_h2_test_fini(&t);
}

static void goaway_drains(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct tc_h2_test t;
        struct tc_h2_test_call calls[3], late;
        tc_h2_test_init(&t, NULL, chunk);
        for (size_t i = 0; i < 3; i++)
            tc_h2_test_unary(&calls[i], &t);
        tc_h2_peer_goaway(t.peer, 3, 0, "maintenance");
        tc_h2_test_run(&t);
        assert_int_equal(t.draining, 1);
        assert_string_equal(t.why, "server sent GOAWAY with NO_ERROR: maintenance");
        assert_int_equal(calls[0].done + calls[1].done, 0);
        assert_int_equal(calls[2].done, 1);
        assert_int_equal(calls[2].code, TORC_STATUS_UNAVAILABLE);
        assert_true(calls[2].unprocessed);
        tc_h2_test_call_init(&late, &t);
        assert_int_equal(tc_h2_test_open(&late, &tc_h2_test_request), TORC_ECLOSED);
        answer(&t, 3);
        assert_int_equal(calls[1].code, 0);
        assert_int_equal(t.closed, 0);
        answer(&t, 1);
        assert_int_equal(calls[0].code, 0);
        assert_int_equal(t.closed, 1);
        assert_string_equal(t.why, "server sent GOAWAY with NO_ERROR: maintenance");
        for (size_t i = 0; i < 3; i++)
            tc_h2_test_call_fini(&calls[i]);
        tc_h2_test_call_fini(&late);
        tc_h2_test_fini(&t);
    }
}

/* Of a text that the peer chose 256 bytes are kept, and none of them can do harm in a log. */
static void text_of_a_goaway(void **state)
{
    (void)state;
    static const char before[] = "server sent GOAWAY with NO_ERROR: ";
    for (size_t len = 255; len <= 257; len++) {
        struct tc_h2_test t;
        char text[258] = "\n\x1b";
        memset(text + 2, 'x', len - 2);
        text[len] = '\0';
        tc_h2_test_init(&t, NULL, 0);
        tc_h2_peer_goaway(t.peer, 0, 0, text);
        tc_h2_test_run(&t);
        assert_memory_equal(t.why, before, sizeof(before) - 1);
        assert_memory_equal(t.why + sizeof(before) - 1, "%0A%1Bxxx", 9);
        /* Two of the bytes are written as three. */
        assert_int_equal(strlen(t.why), sizeof(before) - 1 + TC_MIN(len, (size_t)256) + 4);
        tc_h2_test_fini(&t);
    }
}

static void graceful_goaway(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call calls[2];
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_unary(&calls[0], &t);
    tc_h2_test_unary(&calls[1], &t);
    tc_h2_peer_goaway(t.peer, 0x7fffffff, 0, "");
    tc_h2_test_run(&t);
    assert_int_equal(t.draining, 1);
    assert_int_equal(calls[0].done + calls[1].done, 0);
    tc_h2_peer_goaway(t.peer, 1, 0, "");
    tc_h2_test_run(&t);
    assert_int_equal(t.draining, 1);
    assert_true(calls[1].unprocessed);
    assert_false(calls[1].unsent);
    answer(&t, 1);
    assert_int_equal(calls[0].code, 0);
    assert_int_equal(t.closed, 1);
    tc_h2_test_call_fini(&calls[0]);
    tc_h2_test_call_fini(&calls[1]);
    tc_h2_test_fini(&t);
}

/* A call that was opened and never left is not lost with the GOAWAY that overtakes it. */
static void goaway_before_the_request_leaves(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    tc_h2_test_init(&t, NULL, 0);
    tc_pipe_set_capacity(t.pipe, 0);
    tc_h2_test_unary(&call, &t);
    struct tc_h2_test_call second;
    tc_h2_test_unary(&second, &t);
    tc_h2_peer_goaway(t.peer, 0, 0, "");
    tc_h2_test_run(&t);
    tc_pipe_set_capacity(t.pipe, SIZE_MAX);
    tc_h2_peer_next(t.peer);
    tc_h2_test_run(&t);
    assert_int_equal(second.done, 1);
    assert_true(second.unprocessed);
    assert_true(call.unprocessed);
    tc_h2_test_call_fini(&call);
    tc_h2_test_call_fini(&second);
    tc_h2_test_fini(&t);
}

static void too_many_pings(void **state)
{
    (void)state;
    struct tc_h2_test t;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_peer_goaway(t.peer, 0, 11, "too_many_pings");
    tc_h2_test_run(&t);
    assert_int_equal(t.draining, 1);
    assert_true(t.too_many_pings);
    assert_int_equal(t.closed, 1);
    assert_string_equal(t.why, "server sent GOAWAY with ENHANCE_YOUR_CALM: too_many_pings");
    tc_h2_test_fini(&t);
}

static void own_drain(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_unary(&call, &t);
    tc_h2_conn_drain(t.conn, "bye");
    assert_false(tc_h2_conn_has_capacity(t.conn));
    tc_h2_test_run(&t);
    const struct tc_h2p_frame *f = tc_h2_peer_expect(t.peer, TC_H2P_GOAWAY, 0);
    assert_non_null(f);
    assert_string_equal(f->payload + 8, "bye");
    assert_int_equal(t.draining, 1);
    assert_int_equal(t.closed, 0);
    answer(&t, 1);
    assert_int_equal(call.code, 0);
    assert_int_equal(t.closed, 1);
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
}

static void own_drain_when_idle(void **state)
{
    (void)state;
    struct tc_h2_test t;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_conn_drain(t.conn, NULL);
    tc_h2_test_run(&t);
    assert_int_equal(t.closed, 1);
    assert_non_null(tc_h2_peer_expect(t.peer, TC_H2P_GOAWAY, 0));
    tc_h2_test_fini(&t);
}

static void connection_lost(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call sent, unsent;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_unary(&sent, &t);
    tc_h2_test_call_init(&unsent, &t);
    assert_int_equal(tc_h2_test_open(&unsent, &tc_h2_test_request), 0);
    tc_pipe_fail(t.pipe, 0, TORC_ECLOSED, "read from peer failed: Connection reset by peer", true);
    tc_h2_test_run(&t);
    assert_int_equal(sent.done, 1);
    assert_int_equal(sent.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(sent.text, "read from peer failed: Connection reset by peer");
    assert_false(sent.unprocessed);
    assert_int_equal(unsent.done, 1);
    assert_true(unsent.unprocessed);
    assert_true(unsent.unsent);
    assert_int_equal(t.closed, 1);
    tc_h2_test_call_fini(&sent);
    tc_h2_test_call_fini(&unsent);
    tc_h2_test_fini(&t);
}

/* All of a response is there and its connection is not: the call is told what it was. */
static void response_outlives_the_connection(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_unary(&call, &t);
    call.auto_read = false;
    answer(&t, 1);
    tc_h2_test_call_fini(&call);
    /* One read is wanted by the helper; two messages come. */
    tc_h2_test_unary(&call, &t);
    call.auto_read = false;
    tc_h2_peer_headers(t.peer, 3, OK, false);
    tc_h2_peer_message(t.peer, 3, "one", 3, false);
    tc_h2_peer_message(t.peer, 3, "two", 3, false);
    tc_h2_peer_headers(t.peer, 3, OK_TRAILERS, true);
    tc_pipe_finish(t.pipe, 1);
    tc_h2_test_run(&t);
    assert_int_equal(t.closed, 1);
    assert_int_equal(call.messages, 1);
    assert_int_equal(call.done, 0);
    tc_h2_test_close(&t);
    tc_h2_test_run(&t);
    tc_h2_stream_read(call.stream);
    tc_h2_test_run(&t);
    assert_int_equal(call.messages, 2);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, 0);
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
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
    struct tc_h2_test t;
    tc_h2_test_init(&t, &opts, 0);
    for (int i = 0; i < 5; i++) {
        tc_loop_advance(t.loop, 9999);
        assert_null(tc_h2_peer_expect(t.peer, TC_H2P_PING, 0));
        tc_loop_advance(t.loop, 1);
        const struct tc_h2p_frame *f = tc_h2_peer_expect(t.peer, TC_H2P_PING, 0);
        assert_non_null(f);
        char data[8];
        memcpy(data, f->payload, 8);
        tc_h2_peer_ping(t.peer, data, true);
        tc_h2_test_run(&t);
        /* The wait for the answer ends with it; the next ping is one period after it. */
        tc_loop_advance(t.loop, 0);
    }
    assert_int_equal(t.closed, 0);
    tc_h2_test_fini(&t);
}

static void keepalive_unanswered(void **state)
{
    (void)state;
    struct tc_h2_opts opts = keepalive_opts(false);
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    tc_h2_test_init(&t, &opts, 0);
    /* Nothing runs: no ping, and no ping at once when a call comes after a long pause. */
    tc_loop_advance(t.loop, 100000);
    tc_h2_test_unary(&call, &t);
    assert_null(tc_h2_peer_expect(t.peer, TC_H2P_PING, 0));
    tc_loop_advance(t.loop, 10000);
    assert_non_null(tc_h2_peer_expect(t.peer, TC_H2P_PING, 0));
    tc_loop_advance(t.loop, 1999);
    assert_int_equal(t.closed, 0);
    tc_loop_advance(t.loop, 1);
    assert_int_equal(t.closed, 1);
    assert_string_equal(t.why, "keepalive ping timeout");
    assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(call.text, "keepalive ping timeout");
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
}

static void keepalive_satisfied_by_traffic(void **state)
{
    (void)state;
    struct tc_h2_opts opts = keepalive_opts(true);
    struct tc_h2_test t;
    tc_h2_test_init(&t, &opts, 0);
    for (int i = 0; i < 4; i++) {
        tc_loop_advance(t.loop, 9000);
        tc_h2_peer_window(t.peer, 0, 1);
        tc_h2_test_run(&t);
    }
    assert_null(tc_h2_peer_expect(t.peer, TC_H2P_PING, 0));
    tc_loop_advance(t.loop, 10000);
    assert_non_null(tc_h2_peer_expect(t.peer, TC_H2P_PING, 0));
    tc_h2_test_fini(&t);
}

static void pings_are_answered(void **state)
{
    (void)state;
    struct tc_h2_test t;
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_peer_hold(t.peer, true);
    for (int i = 0; i < 1000; i++)
        tc_h2_peer_ping(t.peer, "abcdefgh", false);
    tc_h2_peer_hold(t.peer, false);
    tc_h2_test_run(&t);
    assert_int_equal(t.closed, 0);
    assert_int_equal(tc_h2_peer_count(t.peer, TC_H2P_PING, 0), 1000);
    tc_h2_test_fini(&t);
}

/* A peer that floods and does not read: ended, and little memory taken. */
static void flood(void **state)
{
    (void)state;
    for (int settings = 0; settings < 2; settings++) {
        struct tc_h2_test t;
        tc_h2_test_init(&t, NULL, 0);
        tc_pipe_set_capacity(t.pipe, 0);
        for (int i = 0; i < 200000 && !t.closed; i++) {
            if (settings)
                tc_h2_peer_setting(t.peer, 5, 16384);
            else
                tc_h2_peer_ping(t.peer, "abcdefgh", false);
            if (i % 100 == 99)
                tc_h2_test_run(&t);
        }
        tc_h2_test_run(&t);
        assert_int_equal(t.closed, 1);
        tc_h2_test_fini(&t);
    }
}

static void continuation_flood(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    struct tc_buf block = {0};
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_unary(&call, &t);
    tc_h2_peer_hpack(&block, OK);
    tc_h2_peer_frame(t.peer, TC_H2P_HEADERS, 0, 1, block.data, block.len);
    tc_buf_clear(&block);
    tc_h2_peer_hpack(&block, "x: y\n");
    for (int i = 0; i < 100; i++)
        tc_h2_peer_frame(t.peer, TC_H2P_CONTINUATION, 0, 1, block.data, block.len);
    tc_h2_test_run(&t);
    assert_int_equal(t.closed, 1);
    assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
    tc_buf_fini(&block);
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
}

/* What must end the connection: the frame that does it, and its reason. */
static void protocol_errors(void **state)
{
    (void)state;
    const struct {
        uint8_t type, flags;
        uint32_t stream;
        const char *payload;
        size_t len;
    } bad[] = {
        {TC_H2P_DATA, 0, 0, "x", 1},                                    /* DATA on stream 0 */
        {TC_H2P_DATA, 0, 9, "x", 1},                                    /* on an idle one */
        {TC_H2P_DATA, 0, 1, "x", 1},                                    /* before the headers */
        {TC_H2P_HEADERS, TC_H2P_END_HEADERS, 1, "\xff\xff\xff\xff", 4}, /* no HPACK */
        {TC_H2P_HEADERS, TC_H2P_END_HEADERS, 2, "\x88", 1},             /* a stream that a server may not open */
        {TC_H2P_SETTINGS, 0, 0, "abc", 3},                              /* no multiple of 6 */
        {TC_H2P_SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff", 6},             /* window too large */
        {TC_H2P_PING, 0, 0, "abc", 3},                                  /* not 8 bytes */
        {TC_H2P_RST_STREAM, 0, 0, "\0\0\0\0", 4},                       /* of stream 0 */
        {TC_H2P_RST_STREAM, 0, 7, "\0\0\0\0", 4},                       /* of an idle one */
        {TC_H2P_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4},                    /* by nothing */
        {TC_H2P_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4},            /* beyond 2^31-1 */
        {TC_H2P_CONTINUATION, TC_H2P_END_HEADERS, 1, "", 0},            /* of nothing */
        {5, TC_H2P_END_HEADERS, 1, "\0\0\0\2\x84", 5},                  /* PUSH_PROMISE, which we refused */
        {TC_H2P_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0", 8},                   /* on a stream */
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        for (size_t chunk = 0; chunk < 2; chunk++) {
            struct tc_h2_test t;
            struct tc_h2_test_call call;
            tc_h2_test_init(&t, NULL, chunk);
            tc_h2_test_unary(&call, &t);
            tc_h2_peer_frame(t.peer, bad[i].type, bad[i].flags, bad[i].stream, bad[i].payload, bad[i].len);
            tc_h2_test_run(&t);
            if (t.closed != 1 || call.done != 1 || call.code != TORC_STATUS_UNAVAILABLE)
                fail_msg("row %zu: closed %u, done %u, code %d", i, t.closed, call.done, call.code);
            assert_non_null(tc_h2_peer_expect(t.peer, TC_H2P_GOAWAY, 0));
            tc_h2_test_call_fini(&call);
            tc_h2_test_fini(&t);
        }
    }
}

static void idle_connection_is_small(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    tc_h2_test_init(&t, NULL, 0);
    for (uint32_t i = 0; i < 50; i++) {
        tc_h2_test_unary(&call, &t);
        answer(&t, 1 + 2 * i);
        assert_int_equal(call.code, 0);
        tc_h2_test_call_fini(&call);
    }
    assert_int_equal(tc_h2_conn_open_streams(t.conn), 0);
    assert_int_equal(t.closed, 0);
    /* What an idle connection keeps beside nghttp2's own part, once it has been idle for a second. */
    assert_true(tc_heap_kept(tc_loop_heap(t.loop)) > 1024);
    tc_loop_advance(t.loop, 1001);
    size_t own = sizeof(*t.conn) + t.conn->scratch.cap + t.conn->left.cap;
    if (own > 2048)
        fail_msg("an idle connection keeps %zu bytes", own);
    /* And what all of a loop keep together. */
    assert_in_range(tc_heap_kept(tc_loop_heap(t.loop)), 0, 65536);
    tc_h2_test_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_after_settings),
        cmocka_unit_test(not_http2),
        cmocka_unit_test(server_closes_before_settings),
        cmocka_unit_test(max_concurrent_streams),
        cmocka_unit_test(goaway_drains),
        cmocka_unit_test(text_of_a_goaway),
        cmocka_unit_test(graceful_goaway),
        cmocka_unit_test(goaway_before_the_request_leaves),
        cmocka_unit_test(too_many_pings),
        cmocka_unit_test(own_drain),
        cmocka_unit_test(own_drain_when_idle),
        cmocka_unit_test(connection_lost),
        cmocka_unit_test(response_outlives_the_connection),
        cmocka_unit_test(keepalive_answered),
        cmocka_unit_test(keepalive_unanswered),
        cmocka_unit_test(keepalive_satisfied_by_traffic),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(flood),
        cmocka_unit_test(continuation_flood),
        cmocka_unit_test(protocol_errors),
        cmocka_unit_test(idle_connection_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
