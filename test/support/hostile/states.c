/* Hostile servers: closing or falling silent in each state, extreme settings, malformed frames, other protocols.
 *
 * The first rows walk through the states of a connection and of an RPC (before SETTINGS, after headers, within a
 * message, before trailers, ...) and fall silent, close, reset or drip bytes there. The others send settings that the
 * client must bear or refuse, bytes of other protocols, or frames that must end the connection; the last but one sends
 * frames without content that are allowed. hostile/rows.h has the meaning of a row; hostile/client.c makes the RPC.
 *
 * A play runs once for each connection, on a thread of that connection in the servers' process (hostile_play_fn); `p`
 * is borrowed until the play returns. A play closes its connection by returning. Numbers of frame types and settings
 * are those of RFC 9113, except types 0x0a (ALTSVC, RFC 7838), 0x10 (PRIORITY_UPDATE, RFC 9218) and 0xfa (unknown). */
#include <poll.h>

#include "support/hostile/rows.h"

#include "base/mem.h"

static void closes_at_once(struct hostile_peer *p)
{
    (void)p;
}

static void resets_at_once(struct hostile_peer *p)
{
    hostile_abort(p);
}

static void says_nothing(struct hostile_peer *p)
{
    hostile_await_close(p);
}

static void closes_after_settings(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
}

static void closes_after_the_request(struct hostile_peer *p)
{
    (void)hostile_begin(p);
}

static void resets_after_the_request(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    hostile_abort(p);
}

static void closes_after_headers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
}

static void closes_in_a_frame(struct hostile_peer *p)
{
    if (hostile_begin(p))
        fake_h2_bytes(hostile_frames(p), "\0\1\0\1\4\0\0\0\1\0\1x", 12);
}

static void closes_in_a_message(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_data(hostile_frames(p), id, "\0\0\0\1\0half", 9, false);
}

static void closes_before_trailers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
}

static void closes_after_the_answer(struct hostile_peer *p)
{
    hostile_answer(p, hostile_begin(p));
}

static void only_settings(struct hostile_peer *p)
{
    if (hostile_begin(p))
        (void)hostile_await(p, FAKE_H2_RST_STREAM);
}

static void only_headers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    (void)hostile_await(p, FAKE_H2_RST_STREAM);
}

/* Sends the response's headers byte by byte, too slowly for the deadline. */
static void drips(struct hostile_peer *p)
{
    struct tc_buf block = {0}, frame = {0};
    uint32_t id = hostile_begin(p);
    fake_h2_hpack(&block, HOSTILE_OK);
    const char head[9] = {0, 0, (char)block.len, 1, 4, 0, 0, 0, (char)id};
    tc_buf_append(&frame, head, 9);
    tc_buf_append_slice(&frame, tc_buf_slice(&block));
    for (size_t i = 0; i < frame.len; i++) {
        fake_h2_bytes(hostile_frames(p), frame.data + i, 1);
        if (!hostile_flush(p))
            break;
        (void)poll(NULL, 0, 10);
    }
    (void)hostile_await(p, FAKE_H2_RST_STREAM);
    tc_buf_fini(&block);
    tc_buf_fini(&frame);
}

static void no_streams(struct hostile_peer *p)
{
    fake_h2_setting(hostile_frames(p), 3, 0);
    hostile_await_close(p);
}

static void no_window(struct hostile_peer *p)
{
    fake_h2_setting(hostile_frames(p), 4, 0);
    if (hostile_await(p, FAKE_H2_HEADERS))
        (void)hostile_await(p, FAKE_H2_RST_STREAM);
}

static void takes_no_headers(struct hostile_peer *p)
{
    fake_h2_setting(hostile_frames(p), 6, 1);
    hostile_settle(p);
}

/* Allows the client's encoder a table of 4 GiB, and answers two RPCs. */
static void largest_table(struct hostile_peer *p)
{
    fake_h2_setting(hostile_frames(p), 1, 0xffffffff);
    hostile_answer_next(p);
    hostile_answer_next(p);
    hostile_settle(p);
}

static void frames_of_2_bytes(struct hostile_peer *p)
{
    fake_h2_setting(hostile_frames(p), 5, 2);
    hostile_await_close(p);
}

/* Sends these bytes first of all, and waits until the client closes. */
static void speak(struct hostile_peer *p, const char *text, size_t len)
{
    fake_h2_bytes(hostile_frames(p), text, len);
    hostile_await_close(p);
}

static void http1(struct hostile_peer *p)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    speak(p, text, sizeof(text) - 1);
}

static void tls_alert(struct hostile_peer *p)
{
    speak(p, "\x15\x03\x01\0\2\2\x28", 7);
}

static void noise_without_end(struct hostile_peer *p)
{
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 1000000 && hostile_flush_much(p); i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        fake_h2_bytes(hostile_frames(p), &seed, sizeof(seed));
    }
}

static void largest_frame(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    (void)id;
    fake_h2_bytes(hostile_frames(p), "\xff\xff\xff\0\0\0\0\0\1", 9);
    hostile_await_close(p);
}

static void push_promise(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    fake_h2_frame(hostile_frames(p), 5, FAKE_H2_END_HEADERS, 1, "\0\0\0\2\x84", 5);
    hostile_await_close(p);
}

static void stream_of_its_own(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    fake_h2_headers(hostile_frames(p), 2, HOSTILE_OK, false);
    hostile_await_close(p);
}

static void data_before_headers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_data(hostile_frames(p), id, "x", 1, false);
    hostile_await_close(p);
}

static void data_of_no_stream(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    fake_h2_data(hostile_frames(p), 0, "x", 1, false);
    hostile_await_close(p);
}

/* Sends a frame of length 0, flagged END_HEADERS, after the first request. */
static void of_no_length(struct hostile_peer *p, uint8_t type, uint32_t stream)
{
    (void)hostile_begin(p);
    fake_h2_frame(hostile_frames(p), type, FAKE_H2_END_HEADERS, stream, "", 0);
    hostile_await_close(p);
}

static void empty_priority(struct hostile_peer *p)
{
    of_no_length(p, 2, 1);
}

static void empty_reset(struct hostile_peer *p)
{
    of_no_length(p, FAKE_H2_RST_STREAM, 1);
}

static void empty_push_promise(struct hostile_peer *p)
{
    of_no_length(p, 5, 1);
}

static void empty_ping(struct hostile_peer *p)
{
    of_no_length(p, FAKE_H2_PING, 0);
}

static void empty_goaway(struct hostile_peer *p)
{
    of_no_length(p, FAKE_H2_GOAWAY, 0);
}

static void empty_window_update(struct hostile_peer *p)
{
    of_no_length(p, FAKE_H2_WINDOW_UPDATE, 0);
}

static void continuation_of_nothing(struct hostile_peer *p)
{
    of_no_length(p, FAKE_H2_CONTINUATION, 1);
}

/* Sends a frame without content of each kind that may be empty, before and within a good answer. */
static void empty_frames_that_are_allowed(struct hostile_peer *p)
{
    for (uint32_t id = hostile_begin(p); id; id = hostile_await(p, FAKE_H2_HEADERS)) {
        struct tc_buf block = {0};
        fake_h2_frame(hostile_frames(p), FAKE_H2_SETTINGS, 0, 0, "", 0);
        fake_h2_hpack(&block, HOSTILE_OK);
        fake_h2_frame(hostile_frames(p), FAKE_H2_HEADERS, 0, id, "", 0);
        fake_h2_frame(hostile_frames(p), FAKE_H2_CONTINUATION, 0, id, "", 0);
        fake_h2_frame(hostile_frames(p), FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, id, block.data, block.len);
        fake_h2_data(hostile_frames(p), id, "", 0, false);
        fake_h2_frame(hostile_frames(p), 0xfa, 0, id, "", 0);
        fake_h2_message(hostile_frames(p), id, "x", 1, false);
        fake_h2_data(hostile_frames(p), id, "", 0, false);
        fake_h2_headers(hostile_frames(p), id, HOSTILE_TRAILERS, true);
        tc_buf_fini(&block);
    }
}

/* Sends malformed frames after the frame that ends the connection (a PING of 3 bytes): the client must survive them. */
static void malformed_behind_the_end(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    fake_h2_frame(hostile_frames(p), FAKE_H2_PING, 0, 0, "abc", 3);
    for (int i = 0; i < 100; i++) {
        fake_h2_frame(hostile_frames(p), FAKE_H2_SETTINGS, 0, 0, "abc", 3);
        fake_h2_frame(hostile_frames(p), 0x0a, 0, 0, "\xff\xff", 2);
        fake_h2_frame(hostile_frames(p), FAKE_H2_GOAWAY, 0, 1, "", 0);
        fake_h2_frame(hostile_frames(p), 0x10, 0, 0, "x", 1);
    }
    hostile_await_close(p);
}

#define LOST "UNAVAILABLE connection closed by the server"
#define NOT_CONNECTED "UNAVAILABLE last error: failed to connect to 127.0.0.1"

static const struct hostile_row rows[] = {
    {"closes at once", closes_at_once, NOT_CONNECTED, NULL, 0, NULL},
    {"resets at once", resets_at_once, NOT_CONNECTED, NULL, 0, NULL},
    {"accepts and says nothing", says_nothing,
     "UNAVAILABLE timed out after 300 ms, waiting for the server's HTTP/2 settings", NULL, HOSTILE_DIALS, NULL},
    {"closes after SETTINGS", closes_after_settings, "UNAVAILABLE Connection reset by peer", "UNAVAILABLE closed", 0,
     NULL},
    {"closes after the request", closes_after_the_request, LOST, NULL, 0, NULL},
    {"resets after the request", resets_after_the_request, "UNAVAILABLE Connection reset by peer", LOST, 0, NULL},
    {"closes after headers", closes_after_headers, LOST, NULL, 0, NULL},
    {"closes in a frame", closes_in_a_frame, LOST, NULL, 0, NULL},
    {"closes in a message", closes_in_a_message, LOST, NULL, 0, NULL},
    {"closes before trailers", closes_before_trailers, LOST, NULL, 0, NULL},
    {"closes after the answer", closes_after_the_answer, "OK", NULL, 0, NULL},
    {"says nothing after SETTINGS", only_settings, "DEADLINE_EXCEEDED while waiting for the response", NULL,
     HOSTILE_SHORT, NULL},
    {"says nothing after headers", only_headers, "DEADLINE_EXCEEDED while waiting for the end of the response",
     "DEADLINE_EXCEEDED while waiting for the response", HOSTILE_SHORT, NULL},
    {"sends a byte at a time", drips, "DEADLINE_EXCEEDED while waiting for the response", NULL, HOSTILE_SHORT, NULL},
    {"allows no stream", no_streams, "DEADLINE_EXCEEDED waiting for a free stream", NULL, HOSTILE_SHORT, NULL},
    {"allows no window", no_window, "DEADLINE_EXCEEDED while waiting for the response", NULL, HOSTILE_SHORT, NULL},
    {"allows a header list of a byte", takes_no_headers,
     "RESOURCE_EXHAUSTED request headers larger than the server takes (", NULL, 0, NULL},
    {"asks for a table of 4 GiB", largest_table, "OK", NULL, HOSTILE_NEXT, NULL},
    {"asks for frames of 2 bytes", frames_of_2_bytes, "UNAVAILABLE invalid SETTINGS_MAX_FRAME_SIZE", NULL, 0, NULL},
    {"speaks HTTP/1.1", http1, "UNAVAILABLE SETTINGS expected", NULL, 0, NULL},
    {"sends a TLS alert", tls_alert, "UNAVAILABLE the server speaks TLS instead of HTTP/2", NULL, 0, NULL},
    {"noise without end", noise_without_end, "UNAVAILABLE SETTINGS expected", NULL, 0, NULL},
    {"a frame of 16 MiB", largest_frame, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"PUSH_PROMISE", push_promise, "UNAVAILABLE PROTOCOL_ERROR", NULL, 0, NULL},
    {"a stream of its own", stream_of_its_own, "UNAVAILABLE PROTOCOL_ERROR", NULL, 0, NULL},
    {"DATA before headers", data_before_headers, "UNAVAILABLE PROTOCOL_ERROR", NULL, 0, NULL},
    {"DATA of no stream", data_of_no_stream, "UNAVAILABLE PROTOCOL_ERROR", NULL, 0, NULL},
    {"PRIORITY without content", empty_priority, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"RST_STREAM without content", empty_reset, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"PUSH_PROMISE without content", empty_push_promise, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"PING without content", empty_ping, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"GOAWAY without content", empty_goaway, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"WINDOW_UPDATE without content", empty_window_update, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
    {"CONTINUATION of nothing", continuation_of_nothing, "UNAVAILABLE CONTINUATION: unexpected", NULL, 0, NULL},
    {"frames without content that are allowed", empty_frames_that_are_allowed, "OK", NULL, HOSTILE_NEXT, NULL},
    {"malformed frames behind the end", malformed_behind_the_end, "UNAVAILABLE FRAME_SIZE_ERROR", NULL, 0, NULL},
};

struct hostile_rows hostile_state_rows(void)
{
    return (struct hostile_rows){rows, TC_ARRAY_LEN(rows)};
}
