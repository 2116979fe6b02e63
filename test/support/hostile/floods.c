/* Hostile servers: large numbers of frames that cost the client something and carry nothing.
 *
 * Most rows flood one kind of frame, before an answer or without one. In two rows the server reads nothing, so that the
 * client's answers pile up. The last rows send GOAWAY on every connection, or RST_STREAM for every request. A flood
 * ends the connection or the RPC, with a status that names the cause. The RPCs of `grease` succeed: its frames are few
 * enough for the limits of docs/operations/limits.md.
 *
 * A play has one connection and one thread (hostile_play_fn), and borrows its peer. A flood ends early when the client
 * closes. Numbers of frame types, flags, settings and errors are those of RFC 9113; type 0xfa is unknown. To read
 * first: flood. Functions of hostile/rows.h stand before it. */
#include "support/hostile/rows.h"

#include "base/mem.h"

#define FLOOD 200000

void hostile_answer(struct hostile_peer *p, uint32_t stream)
{
    struct fake_h2 *f = hostile_frames(p);
    fake_h2_headers(f, stream, HOSTILE_OK, false);
    fake_h2_message(f, stream, "x", 1, false);
    fake_h2_headers(f, stream, HOSTILE_TRAILERS, true);
    hostile_flush(p);
}

uint32_t hostile_answer_next(struct hostile_peer *p)
{
    uint32_t id = hostile_await(p, FAKE_H2_HEADERS);
    if (id)
        hostile_answer(p, id);
    return id;
}

void hostile_block(struct hostile_peer *p, uint32_t stream, const struct tc_buf *block, bool end)
{
    fake_h2_frame(hostile_frames(p), FAKE_H2_HEADERS, (uint8_t)(FAKE_H2_END_HEADERS | (end ? FAKE_H2_END_STREAM : 0)),
                  stream, block->data, block->len);
}

/* Sends one frame up to FLOOD times before the answer. */
static void flood(struct hostile_peer *p, uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t len)
{
    uint32_t id = hostile_begin(p);
    for (int i = 0; i < FLOOD && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), type, flags, stream, payload, len);
    hostile_answer(p, id ? id : 1);
    hostile_settle(p);
}

/* Sends one frame up to 20 * FLOOD times while reading nothing. */
static void deaf_flood(struct hostile_peer *p, uint8_t type, const void *payload, size_t len)
{
    if (hostile_begin(p))
        hostile_deafen(p);
    for (int i = 0; i < 20 * FLOOD && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), type, 0, 0, payload, len);
    hostile_flush(p);
}

/* Sends HEADERS without END_HEADERS, then up to FLOOD CONTINUATION frames: with one field each if len is not
 * 0, else empty. */
static void continuations(struct hostile_peer *p, size_t len)
{
    struct tc_buf block = {0};
    uint32_t id = hostile_begin(p);
    fake_h2_hpack(&block, HOSTILE_OK);
    fake_h2_frame(hostile_frames(p), FAKE_H2_HEADERS, 0, id, block.data, block.len);
    tc_buf_clear(&block);
    fake_h2_hpack(&block, "x: y\n");
    for (int i = 0; i < FLOOD && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), FAKE_H2_CONTINUATION, 0, id, block.data, len ? block.len : 0);
    hostile_await_close(p);
    tc_buf_fini(&block);
}

static void continuation_flood(struct hostile_peer *p)
{
    continuations(p, 1);
}

static void empty_continuation_flood(struct hostile_peer *p)
{
    continuations(p, 0);
}

static void settings_flood(struct hostile_peer *p)
{
    flood(p, FAKE_H2_SETTINGS, 0, 0, "\0\5\0\0\x40\0", 6);
}

static void empty_settings_flood(struct hostile_peer *p)
{
    flood(p, FAKE_H2_SETTINGS, 0, 0, "", 0);
}

static void settings_flood_deaf(struct hostile_peer *p)
{
    deaf_flood(p, FAKE_H2_SETTINGS, "\0\5\0\0\x40\0", 6);
}

static void settings_ack_flood(struct hostile_peer *p)
{
    flood(p, FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, "", 0);
}

/* Floods SETTINGS of 2,400 entries each. */
static void settings_of_many(struct hostile_peer *p)
{
    struct tc_buf entries = {0};
    for (int i = 0; i < 2400; i++)
        tc_buf_append(&entries, "\0\5\0\0\x40\0", 6);
    uint32_t id = hostile_begin(p);
    for (int i = 0; i < 1000 && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), FAKE_H2_SETTINGS, 0, 0, entries.data, entries.len);
    hostile_await_close(p);
    tc_buf_fini(&entries);
}

/* Floods SETTINGS that move the window of every stream up and down. */
static void settings_of_windows(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    for (int i = 0; i < FLOOD / 2 && id && hostile_flush_much(p); i++) {
        fake_h2_setting(hostile_frames(p), 4, 0x7fffffff);
        fake_h2_setting(hostile_frames(p), 4, 0);
    }
    hostile_answer(p, id ? id : 1);
    hostile_settle(p);
}

static void ping_flood(struct hostile_peer *p)
{
    flood(p, FAKE_H2_PING, 0, 0, "abcdefgh", 8);
}

static void ping_flood_deaf(struct hostile_peer *p)
{
    deaf_flood(p, FAKE_H2_PING, "abcdefgh", 8);
}

static void ping_ack_flood(struct hostile_peer *p)
{
    flood(p, FAKE_H2_PING, FAKE_H2_ACK, 0, "abcdefgh", 8);
}

/* Floods RST_STREAM of an ended stream, while another RPC runs. */
static void rst_flood(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_rst(hostile_frames(p), id, 2);
    (void)hostile_await(p, FAKE_H2_HEADERS);
    for (int i = 0; i < FLOOD && id && hostile_flush_much(p); i++)
        fake_h2_rst(hostile_frames(p), id, 2);
    hostile_await_close(p);
}

static void window_update_flood(struct hostile_peer *p)
{
    flood(p, FAKE_H2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
}

static void window_update_flood_of_stream(struct hostile_peer *p)
{
    flood(p, FAKE_H2_WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4);
}

static void window_beyond_the_end(struct hostile_peer *p)
{
    flood(p, FAKE_H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
}

static void stream_window_beyond_the_end(struct hostile_peer *p)
{
    flood(p, FAKE_H2_WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff", 4);
}

static void window_by_nothing(struct hostile_peer *p)
{
    flood(p, FAKE_H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4);
}

static void priority_flood(struct hostile_peer *p)
{
    flood(p, 2, 0, 1, "\0\0\0\0\x10", 5);
}

/* Floods PRIORITY for streams that never open: a client might remember each. */
static void priority_flood_of_streams(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    for (uint32_t i = 0; i < FLOOD && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), 2, 0, 3 + 2 * i, "\0\0\0\0\x10", 5);
    hostile_answer(p, id ? id : 1);
    hostile_settle(p);
}

static void unknown_frames(struct hostile_peer *p)
{
    flood(p, 0xfa, 0xff, 1, "abcdefgh", 8);
}

static void empty_unknown_frames(struct hostile_peer *p)
{
    flood(p, 0xfa, 0xff, 1, "", 0);
}

/* Floods frames of an unknown type with 16 KiB each. */
static void large_unknown_frames(struct hostile_peer *p)
{
    static const char payload[16384];
    flood(p, 0xfa, 0, 0, payload, sizeof(payload));
}

/* Sends one frame of each type that RFC 9113 does not define (10 to 255) before each answer. */
static void grease(struct hostile_peer *p)
{
    for (uint32_t id = hostile_begin(p); id; id = hostile_await(p, FAKE_H2_HEADERS)) {
        for (unsigned type = 10; type < 256; type++)
            fake_h2_frame(hostile_frames(p), (uint8_t)type, 0xff, type % 2 ? id : 0, "grease", type % 7);
        hostile_answer(p, id);
    }
}

static void empty_data_flood(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    for (int i = 0; i < FLOOD && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), FAKE_H2_DATA, 0, id, "", 0);
    hostile_await_close(p);
}

/* Announces a message of 64 KiB, then sends up to 60,000 DATA frames. Every 500th frame has a byte of the message. The
 * others are empty or, with `padded`, have a padding length of 0 and nothing else. */
static void data_that_carries_little(struct hostile_peer *p, bool padded)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_data(hostile_frames(p), id, "\0\0\1\0\0", 5, false);
    for (int i = 0; i < 60000 && id && hostile_flush_much(p); i++) {
        bool little = i % 500 == 499;
        fake_h2_frame(hostile_frames(p), FAKE_H2_DATA, padded && !little ? 8 : 0, id, little ? "x" : "",
                      little || padded ? 1 : 0);
    }
    hostile_await_close(p);
}

static void paddings_and_a_byte(struct hostile_peer *p)
{
    data_that_carries_little(p, true);
}

static void empty_data_and_a_byte(struct hostile_peer *p)
{
    data_that_carries_little(p, false);
}

/* Floods DATA with 255 bytes of padding alone. */
static void padding_flood(struct hostile_peer *p)
{
    char padding[256] = {(char)255};
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    for (int i = 0; i < FLOOD / 4 && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), FAKE_H2_DATA, 8, id, padding, sizeof(padding));
    hostile_settle(p);
}

static void informational_flood(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    for (int i = 0; i < FLOOD / 10 && id && hostile_flush_much(p); i++)
        fake_h2_headers(hostile_frames(p), id, ":status: 103\nx: y\n", false);
    hostile_settle(p);
}

static void goaway_flood(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    for (int i = 0; i < FLOOD && id && hostile_flush_much(p); i++)
        fake_h2_goaway(hostile_frames(p), 0x7fffffff, 0, "again");
    hostile_answer(p, id ? id : 1);
    hostile_await_close(p);
}

/* Sends GOAWAY on each connection as soon as a request comes. The last stream ID is 0: the request counts as unseen. */
static void goaway_storm(struct hostile_peer *p)
{
    if (hostile_begin(p))
        fake_h2_goaway(hostile_frames(p), 0, 0, "elsewhere");
    hostile_await_close(p);
}

static void goaway_before_requests(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    fake_h2_goaway(hostile_frames(p), 0, 0, "elsewhere");
    hostile_await_close(p);
}

/* Resets the stream of every request with this error code. */
static void reset_each(struct hostile_peer *p, uint32_t code)
{
    fake_h2_start(hostile_frames(p));
    for (uint32_t id; (id = hostile_await(p, FAKE_H2_HEADERS));)
        fake_h2_rst(hostile_frames(p), id, code);
}

static void reset_every_stream(struct hostile_peer *p)
{
    reset_each(p, 2);
}

static void refuse_every_stream(struct hostile_peer *p)
{
    reset_each(p, 7);
}

#define FLOODED "UNAVAILABLE Flooding was detected"
#define TOO_MANY "UNAVAILABLE too many frames that carry nothing"

static const struct hostile_row rows[] = {
    {"CONTINUATION flood", continuation_flood, "UNAVAILABLE Too many CONTINUATION frames", NULL, 0, NULL},
    {"CONTINUATION flood without content", empty_continuation_flood, "UNAVAILABLE Too many CONTINUATION frames", NULL,
     0, NULL},
    {"SETTINGS flood", settings_flood, FLOODED, TOO_MANY, 0, NULL},
    {"SETTINGS flood without content", empty_settings_flood, FLOODED, TOO_MANY, 0, NULL},
    {"SETTINGS flood of a peer that does not read", settings_flood_deaf, FLOODED, "UNAVAILABLE does not read", 0, NULL},
    {"acknowledgements of SETTINGS that nobody sent", settings_ack_flood, "UNAVAILABLE SETTINGS: unexpected ACK", NULL,
     0, NULL},
    {"SETTINGS of 2,400 entries", settings_of_many, "UNAVAILABLE too many setting entries", NULL, 0, NULL},
    {"SETTINGS that move all windows", settings_of_windows, FLOODED, TOO_MANY, 0, NULL},
    {"PING flood", ping_flood, FLOODED, TOO_MANY, 0, NULL},
    {"PING flood of a peer that does not read", ping_flood_deaf, FLOODED, "UNAVAILABLE does not read", 0, NULL},
    {"answers to PINGs that nobody sent", ping_ack_flood, TOO_MANY, NULL, 0, NULL},
    {"RST_STREAM flood", rst_flood, "INTERNAL stream reset", NULL, 0, TOO_MANY},
    {"WINDOW_UPDATE flood", window_update_flood, TOO_MANY, NULL, 0, NULL},
    {"WINDOW_UPDATE flood of a stream", window_update_flood_of_stream, TOO_MANY, NULL, 0, NULL},
    {"a window beyond 2^31-1", window_beyond_the_end, "UNAVAILABLE FLOW_CONTROL_ERROR", NULL, 0, NULL},
    {"a stream's window beyond 2^31-1", stream_window_beyond_the_end, "INTERNAL FLOW_CONTROL_ERROR", NULL, 0, NULL},
    {"WINDOW_UPDATE by nothing", window_by_nothing, "UNAVAILABLE PROTOCOL_ERROR", NULL, 0, NULL},
    {"PRIORITY flood", priority_flood, TOO_MANY, NULL, 0, NULL},
    {"PRIORITY of 200,000 streams", priority_flood_of_streams, TOO_MANY, NULL, 0, NULL},
    {"frames of an unknown type", unknown_frames, TOO_MANY, NULL, 0, NULL},
    {"frames of an unknown type without content", empty_unknown_frames, TOO_MANY, NULL, 0, NULL},
    {"frames of an unknown type of 16 KiB", large_unknown_frames, TOO_MANY, NULL, 0, NULL},
    {"some frames of all unknown types", grease, "OK", NULL, HOSTILE_NEXT, NULL},
    {"DATA flood without content", empty_data_flood, "UNAVAILABLE too many empty frames", NULL, 0, NULL},
    {"empty DATA and a byte now and then", empty_data_and_a_byte, TOO_MANY, NULL, 0, NULL},
    {"DATA of padding and a byte now and then", paddings_and_a_byte, TOO_MANY, NULL, 0, NULL},
    {"DATA flood of padding", padding_flood, "INTERNAL FLOW_CONTROL_ERROR", "UNAVAILABLE too many empty frames", 0,
     NULL},
    {"informational responses", informational_flood, "INTERNAL too many informational responses", NULL, 0, NULL},
    {"GOAWAY flood", goaway_flood, TOO_MANY, NULL, 0, NULL},
    {"GOAWAY on each connection", goaway_storm, "UNAVAILABLE GOAWAY", NULL, 0, NULL},
    {"GOAWAY before any request", goaway_before_requests, "UNAVAILABLE GOAWAY", NULL, 0, NULL},
    {"every stream reset", reset_every_stream, "INTERNAL stream reset", NULL, HOSTILE_MANY, NULL},
    {"every stream refused", refuse_every_stream, "UNAVAILABLE stream reset", NULL, HOSTILE_MANY, NULL},
};

struct hostile_rows hostile_flood_rows(void)
{
    return (struct hostile_rows){rows, TC_ARRAY_LEN(rows)};
}
