/* Glitches at a client (kits/h2): which frames of its server (fakes/h2) count, and how many are allowed; frames after
 * the end of a stream; how much a turn of the loop reads and inflates. parts_of_frames_are_paid has a glitch rate and
 * no connection.
 *
 * A client allows 10,000 glitches a second, and two seconds' worth at once. The clock stands still unless a test
 * advances it. DATA and RST_STREAM that the client sends give credit (http2/glitches.c), which count_from_now takes
 * back. Streams are numbered 1, 3, ... as their calls were opened. One thread. */
#include "base/mem.h"
#include "http2/connection_internal.h"
#include "http2/framing.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS
#define OK_TRAILERS "grpc-status: 0\n"
#define TOO_MANY "too many frames that carry nothing"
#define PADDED 8
#define MANY_BYTES                                                                                                     \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* 1,001 empty DATA frames in a row end the connection: without content, with a padding of no bytes, or with seven
 * bytes of padding alone. */
static void empty_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, i % 2);
        kit_h2_unary(&call, &t);
        fake_h2_headers(t.peer, 1, OK, false);
        fake_h2_hold(t.peer, true);
        for (int k = 0; k < 1001; k++)
            fake_h2_frame(t.peer, FAKE_H2_DATA, i < 2 ? 0 : PADDED, 1, i < 4 ? "" : "\7\0\0\0\0\0\0",
                          i < 2   ? 0
                          : i < 4 ? 1
                                  : 8);
        fake_h2_hold(t.peer, false);
        kit_h2_run(&t);
        assert_int_equal(t.closed, 1);
        assert_non_null(strstr(t.why, "too many empty frames"));
        assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* A byte of a message ends a row of empty frames. The empty frames still count as glitches. */
static void empty_frames_within_a_message(void **state)
{
    (void)state;
    for (int padded = 0; padded < 2; padded++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        fake_h2_headers(t.peer, 1, OK, false);
        fake_h2_data(t.peer, 1, "\0\0\0\4\0", 5, false);
        int bytes = 0;
        for (; bytes < 100 && !t.closed; bytes++) {
            fake_h2_hold(t.peer, true);
            for (int i = 0; i < 999; i++)
                fake_h2_frame(t.peer, FAKE_H2_DATA, padded ? PADDED : 0, 1, "", padded ? 1 : 0);
            fake_h2_data(t.peer, 1, "x", 1, false);
            fake_h2_hold(t.peer, false);
            kit_h2_run(&t);
        }
        assert_in_range(bytes, 9, 21);
        assert_non_null(strstr(t.why, TOO_MANY));
        assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* Sends `n` equal frames in one piece, and runs the loop. */
static void put_frames(struct kit_h2 *t, int n, uint8_t type, uint32_t stream, const void *payload, size_t len)
{
    fake_h2_hold(t->peer, true);
    for (int i = 0; i < n; i++)
        fake_h2_frame(t->peer, type, 0, stream, payload, len);
    fake_h2_hold(t->peer, false);
    kit_h2_run(t);
}

/* More than 20,000 glitches at once end the connection; over some seconds, about 10,000 a second do not. */
static void glitches_end_the_connection(void **state)
{
    (void)state;
    static const struct {
        uint8_t type;
        const char *payload;
        size_t len;
    } kinds[] = {{FAKE_H2_WINDOW_UPDATE, "\0\0\0\1", 4},
                 {2, "\0\0\0\0\x10", 5},
                 {0xfa, "grease", 6},
                 {0x0a, "", 0},
                 {0x0c, "", 0},
                 {0x10, "", 0}};
    for (size_t k = 0; k < TC_ARRAY_LEN(kinds); k++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        for (int i = 0; i < 5; i++) {
            tc_loop_advance(t.loop, 1000);
            put_frames(&t, 10100, kinds[k].type, 1, kinds[k].payload, kinds[k].len);
            assert_int_equal(t.closed, 0);
        }
        put_frames(&t, 9000, kinds[k].type, 1, kinds[k].payload, kinds[k].len);
        assert_int_equal(t.closed, 0);
        put_frames(&t, 1000, kinds[k].type, 1, kinds[k].payload, kinds[k].len);
        assert_int_equal(t.closed, 1);
        assert_non_null(strstr(t.why, "too many frames that carry nothing"));
        assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* 8 MiB from one peer are read in several turns of the loop. */
static void much_is_read_in_turns(void **state)
{
    (void)state;
    static const char head[] = {0, 0x40, 0, (char)0xfa, 0, 0, 0, 0, 0}, payload[16384];
    struct kit_h2 t;
    kit_h2_init(&t, NULL, 0);
    for (int i = 0; i < 512; i++) {
        fake_pipe_put(t.pipe, 1, head, sizeof(head));
        fake_pipe_put(t.pipe, 1, payload, sizeof(payload));
    }
    size_t before = fake_pipe_unread(t.pipe, 0).len;
    int turns = 0;
    for (size_t left = before; left > 0; turns++) {
        assert_true(tc_loop_turn(t.loop, 0));
        left = fake_pipe_unread(t.pipe, 0).len;
    }
    assert_true(before > 8 << 20);
    assert_in_range(turns, 8, 20);
    kit_h2_fini(&t);
}

/* Two calls read messages of 1 MiB, each compressed to about a KiB. All messages come at once: a turn of the loop
 * delivers at most four of them. */
static void much_is_inflated_in_turns(void **state)
{
    (void)state;
    enum { MESSAGES = 24, BYTES = 1 << 20 };
    struct kit_h2 t;
    struct kit_h2_call calls[2];
    struct tc_buf b = {0};
    char *zeros = tc_calloc(1, BYTES);
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(zeros, BYTES));
    uint8_t prefix[5];
    tc_h2_prefix(prefix, true, packed->len);
    tc_buf_append(&b, prefix, 5);
    tc_buf_append(&b, packed->data, packed->len);
    kit_h2_init(&t, NULL, 0);
    for (int i = 0; i < 2; i++) {
        kit_h2_unary(&calls[i], &t);
        calls[i].auto_read = true;
    }
    fake_h2_hold(t.peer, true);
    for (uint32_t id = 1; id <= 3; id += 2) {
        fake_h2_headers(t.peer, id, OK "grpc-encoding: gzip\n", false);
        for (int k = 0; k < MESSAGES; k++)
            fake_h2_data(t.peer, id, b.data, b.len, false);
        fake_h2_headers(t.peer, id, OK_TRAILERS, true);
    }
    fake_h2_hold(t.peer, false);
    unsigned before = 0, most = 0, turns = 0;
    for (; !calls[0].done || !calls[1].done; turns++) {
        assert_true(turns < 1000);
        tc_loop_turn(t.loop, 0);
        unsigned now = calls[0].messages + calls[1].messages;
        most = TC_MAX(most, now - before);
        before = now;
    }
    assert_int_equal(before, 2 * MESSAGES);
    assert_in_range(most, 1, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i].code, TORC_STATUS_OK);
        assert_int_equal(calls[i].last.len, BYTES);
        kit_h2_call_fini(&calls[i]);
    }
    kit_h2_fini(&t);
    tc_rstr_unref(packed);
    tc_buf_fini(&b);
    tc_free(zeros);
}

/* RFC 9113 5.5: frames of unknown types are ignored, on stream 0 and before, between and behind the frames of a
 * response. */
static void unknown_types_are_ignored(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, chunk);
        kit_h2_unary(&call, &t);
        for (unsigned type = 10; type < 256; type++)
            fake_h2_frame(t.peer, (uint8_t)type, 0xff, type % 2, "grease", type % 7);
        fake_h2_headers(t.peer, 1, OK, false);
        fake_h2_frame(t.peer, 0xfa, 0xff, 1, "grease", 6);
        fake_h2_message(t.peer, 1, "y", 1, false);
        fake_h2_frame(t.peer, 0xfb, 0, 1, "", 0);
        fake_h2_headers(t.peer, 1, OK_TRAILERS, true);
        fake_h2_frame(t.peer, 0xfc, 1, 1, "grease", 6);
        kit_h2_run(&t);
        assert_int_equal(call.code, TORC_STATUS_OK);
        assert_int_equal(t.closed, 0);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* Sets what the connection has counted so far to one second's worth: 10,000 more glitches are allowed at once. */
static void count_from_now(struct kit_h2 *t)
{
    t->conn->glitches.rate->frames = t->conn->opts.limits.max_glitches;
    t->conn->glitches.rate->at_ms = tc_loop_now_ms(t->loop);
}

/* The frames' content counts as well, by the KiB. */
static void large_glitches(void **state)
{
    (void)state;
    static const char payload[16384] = {0x7f, (char)0xff, (char)0xff, (char)0xff};
    static const struct {
        uint8_t type;
        size_t len;
        int n; /* one more frame is too many */
    } kinds[] = {{0xfa, 16384, 588}, {0xfa, 1024, 5000}, {0xfa, 1023, 10000}, {FAKE_H2_GOAWAY, 16384, 588}};
    for (size_t k = 0; k < TC_ARRAY_LEN(kinds); k++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        count_from_now(&t);
        put_frames(&t, kinds[k].n, kinds[k].type, 0, payload, kinds[k].len);
        assert_int_equal(t.closed, 0);
        put_frames(&t, 1, kinds[k].type, 0, payload, kinds[k].len);
        assert_int_equal(t.closed, 1);
        assert_non_null(strstr(t.why, TOO_MANY));
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

static void put_answer(struct kit_h2 *t, uint32_t id)
{
    fake_h2_headers(t->peer, id, OK, false);
    fake_h2_message(t->peer, id, "y", 1, false);
    fake_h2_headers(t->peer, id, OK_TRAILERS, true);
}

/* Sends frames on a stream after its end. kind 0: DATA; 1: empty DATA with END_STREAM; 2: HEADERS; 3: RST_STREAM,
 * WINDOW_UPDATE and PRIORITY. */
static void put_late(struct kit_h2 *t, int kind, uint32_t id)
{
    switch (kind) {
    case 0:
        fake_h2_data(t->peer, id, "more", 4, false);
        break;
    case 1:
        fake_h2_data(t->peer, id, "", 0, true);
        break;
    case 2:
        fake_h2_headers(t->peer, id, OK_TRAILERS, true);
        break;
    default:
        fake_h2_rst(t->peer, id, 0);
        fake_h2_window(t->peer, id, 1);
        fake_h2_frame(t->peer, 2, 0, id, "\0\0\0\0\x10", 5);
        break;
    }
}

/* RFC 9113 5.1: DATA and HEADERS after END_STREAM end the connection and the calls on it. The response before them
 * counts, even if the same read brings it. RST_STREAM, WINDOW_UPDATE and PRIORITY may come after the end. */
static void frames_after_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        int kind = i % 4;
        bool at_once = i & 4;
        struct kit_h2 t;
        struct kit_h2_call call, other;
        kit_h2_init(&t, NULL, i & 8 ? 1 : 0);
        kit_h2_unary(&call, &t);
        kit_h2_unary(&other, &t);
        fake_h2_hold(t.peer, at_once);
        put_answer(&t, 1);
        kit_h2_run(&t);
        assert_int_equal(call.done, at_once ? 0 : 1);
        put_late(&t, kind, 1);
        fake_h2_hold(t.peer, false);
        kit_h2_run(&t);
        assert_int_equal(call.code, TORC_STATUS_OK);
        assert_int_equal(call.messages, 1);
        assert_int_equal(t.closed, kind < 3);
        assert_int_equal(other.done, kind < 3);
        if (kind < 3) {
            const char *text = kind < 2 ? "STREAM_CLOSED: DATA after the end of its stream"
                                        : "STREAM_CLOSED: HEADERS after the end of its stream";
            assert_non_null(strstr(t.why, text));
            assert_int_equal(other.code, TORC_STATUS_UNAVAILABLE);
            assert_non_null(strstr(other.text, text));
            const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_GOAWAY, 0);
            assert_non_null(f);
            assert_memory_equal(f->payload + 4, "\0\0\0\5", 4);
        }
        kit_h2_call_fini(&call);
        kit_h2_call_fini(&other);
        kit_h2_fini(&t);
    }
}

/* CONTINUATION frames may follow HEADERS with END_STREAM: they belong to the same block. */
static void the_end_may_have_continuations(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    struct tc_buf block = {0};
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_message(t.peer, 1, "y", 1, false);
    fake_h2_hpack(&block, OK_TRAILERS);
    fake_h2_frame(t.peer, FAKE_H2_HEADERS, FAKE_H2_END_STREAM, 1, block.data, block.len - 3);
    fake_h2_frame(t.peer, FAKE_H2_CONTINUATION, 0, 1, "", 0);
    fake_h2_frame(t.peer, FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, 1, block.data + block.len - 3, 3);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 0);
    assert_int_equal(call.code, TORC_STATUS_OK);
    tc_buf_fini(&block);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* Sends late frames of stream 1. kind 0: as many empty messages as the window allows, and the end; 1: twice as many
 * messages; 2: 30,000 trailers; 3: 6,000 header blocks in pieces; 4: the rest of a message of 4 MiB that was asked for,
 * in small frames, and the end. */
static void put_late_messages(struct kit_h2 *t, int kind)
{
    for (int i = 0; kind < 2 && i < (kind + 1) * 64 * 1024 / 5; i++)
        fake_h2_message(t->peer, 1, "", 0, false);
    for (int i = 0; kind == 2 && i < 30000; i++)
        fake_h2_headers(t->peer, 1, OK_TRAILERS, false);
    for (int i = 0; kind == 3 && i < 6000; i++) {
        fake_h2_frame(t->peer, FAKE_H2_HEADERS, 0, 1, "", 0);
        for (int k = 0; k < 6; k++)
            fake_h2_frame(t->peer, FAKE_H2_CONTINUATION, k == 5 ? FAKE_H2_END_HEADERS : 0, 1, "", 0);
    }
    static const char rest[128];
    for (int i = 0; kind == 4 && i < (4 << 20) / 128; i++)
        fake_h2_data(t->peer, 1, rest, sizeof(rest), false);
    if (kind == 0 || kind == 4)
        fake_h2_headers(t->peer, 1, OK_TRAILERS, true);
}

/* On a stream that we reset the server may still send the end, and as many bytes as the window allows, frame heads
 * included. Frames beyond these bytes are glitches: a window full of empty messages (kind 0) and the rest of a large
 * message (4) stay within the 10,000 that count_from_now leaves; kinds 1 to 3 exceed them, which ends the
 * connection. */
static void late_frames_of_what_we_reset(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        struct kit_h2 t;
        bool tolerated = k == 0 || k == 4;
        struct kit_h2_call call, other;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        kit_h2_unary(&other, &t);
        fake_h2_headers(t.peer, 1, OK, false);
        if (k == 4)
            fake_h2_data(t.peer, 1, "\0\0\x40\0\0", 5, false);
        kit_h2_run(&t);
        tc_h2_stream_cancel(call.stream, 8);
        call.stream = NULL;
        kit_h2_run(&t);
        assert_non_null(fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1));
        count_from_now(&t);
        fake_h2_hold(t.peer, true);
        put_late_messages(&t, k);
        put_answer(&t, 3);
        fake_h2_hold(t.peer, false);
        kit_h2_run(&t);
        assert_int_equal(other.code, tolerated ? TORC_STATUS_OK : TORC_STATUS_UNAVAILABLE);
        assert_int_equal(t.closed, !tolerated);
        if (!tolerated)
            assert_non_null(strstr(t.why, TOO_MANY));
        kit_h2_call_fini(&other);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* Sends a header block on stream `id`: the fields of OK, a field `x` with a value of `len` bytes, which enters the
 * compression table, then `references` to that field, a byte each. `len` is at most 4,000, so that the table takes the
 * field. */
static void put_bomb(struct kit_h2 *t, uint32_t id, size_t len, size_t references)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, OK);
    tc_buf_append(&block, "\x40\1x", 3);
    if (len < 127)
        tc_buf_append_char(&block, (char)len);
    else
        tc_buf_printf(&block, "\x7f%c%c", (int)((len - 127) % 128 + 128), (int)((len - 127) / 128));
    memset(tc_buf_reserve(&block, len), 'v', len);
    block.len += len;
    memset(tc_buf_reserve(&block, references), 0x80 | 62, references);
    block.len += references;
    for (size_t at = 0; at < block.len; at += 16000) {
        bool last = block.len - at <= 16000;
        fake_h2_frame(t->peer, at ? FAKE_H2_CONTINUATION : FAKE_H2_HEADERS, last ? FAKE_H2_END_HEADERS : 0, id,
                      block.data + at, last ? block.len - at : 16000);
    }
    tc_buf_fini(&block);
}

#define TOO_MANY_FIELDS "too many header fields beyond the limit"

/* Header fields beyond the limit are decoded, to keep the connection's compression state, and dropped. Once the dropped
 * fields of a block cost more than about 2,500 times 2 KiB, the connection ends. A field costs its bytes and 256
 * more. */
static void fields_beyond_the_limit(void **state)
{
    (void)state;
    static const struct {
        size_t len, references;
        bool alive;
    } blocks[] = {{3200, 1450, true}, {3200, 1500, false}, {0, 19000, true}, {0, 21000, false}, {3200, 48000, false}};
    for (size_t i = 0; i < TC_ARRAY_LEN(blocks); i++) {
        struct kit_h2 t;
        struct kit_h2_call call, other;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        kit_h2_unary(&other, &t);
        fake_h2_hold(t.peer, true);
        put_bomb(&t, 1, blocks[i].len, blocks[i].references);
        put_answer(&t, 3);
        fake_h2_hold(t.peer, false);
        kit_h2_run(&t);
        assert_int_equal(call.code, TORC_STATUS_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(call.text, "received headers larger than max ("));
        assert_int_equal(other.code, blocks[i].alive ? TORC_STATUS_OK : TORC_STATUS_UNAVAILABLE);
        assert_int_equal(t.closed, !blocks[i].alive);
        if (t.closed)
            assert_non_null(strstr(other.text, TOO_MANY_FIELDS));
        kit_h2_call_fini(&call);
        kit_h2_call_fini(&other);
        kit_h2_fini(&t);
    }
}

/* Each of these blocks alone may be decoded to its end, but the client allows only four a second. After count_from_now
 * the fifth block ends the connection if no time passes between them. */
static void fields_of_many_blocks(void **state)
{
    (void)state;
    for (unsigned wait_ms = 0; wait_ms <= 300; wait_ms += 300) {
        struct kit_h2 t;
        kit_h2_init(&t, NULL, 0);
        count_from_now(&t);
        unsigned n = 0;
        for (; n < 20 && !t.closed; n++) {
            struct kit_h2_call call;
            kit_h2_unary(&call, &t);
            put_bomb(&t, 2 * n + 1, 3200, 1450);
            kit_h2_run(&t);
            assert_int_equal(call.code, TORC_STATUS_RESOURCE_EXHAUSTED);
            kit_h2_call_fini(&call);
            tc_loop_advance(t.loop, wait_ms);
        }
        assert_int_equal(n, wait_ms ? 20 : 5);
        if (!wait_ms)
            assert_non_null(strstr(t.why, TOO_MANY_FIELDS));
        kit_h2_fini(&t);
    }
}

/* The glitches that ended a connection also count for the next connection with the same glitch rate, until about two
 * seconds have passed. */
static void next_connection_pays(void **state)
{
    (void)state;
    for (unsigned wait_ms = 10; wait_ms <= 2000; wait_ms += 1990) {
        struct kit_h2 first, next;
        struct kit_h2_call call;
        struct tc_h2_opts opts;
        tc_h2_opts_init(&opts, false);
        opts.no_bdp = true;
        opts.glitch_rate = tc_h2_glitch_rate_new();
        kit_h2_init(&first, &opts, 0);
        put_frames(&first, 20001, 0xfa, 0, "grease", 6);
        assert_int_equal(first.closed, 1);
        kit_h2_fini(&first);
        kit_h2_init_silent(&next, &opts, 0);
        tc_h2_glitch_rate_unref(opts.glitch_rate);
        tc_loop_advance(next.loop, wait_ms);
        fake_h2_start(next.peer);
        kit_h2_run(&next);
        assert_int_equal(next.ready, 1);
        kit_h2_unary(&call, &next);
        put_bomb(&next, 1, 3200, 1000);
        kit_h2_run(&next);
        assert_int_equal(call.code, TORC_STATUS_RESOURCE_EXHAUSTED);
        assert_int_equal(next.closed, wait_ms == 10);
        kit_h2_call_fini(&call);
        kit_h2_fini(&next);
    }
}

/* Nothing counts against a server whose HEADERS come in two pieces, wherever between the frame's head and the fields
 * the first piece ends. Nor do the two DATA frames of a cancelled call count, which nghttp2 skips afterwards. */
static void headers_in_pieces(void **state)
{
    static const uint8_t flags[] = {0x20, 0x08, 0x28}; /* PRIORITY, PADDED */
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(flags); i++) {
        size_t before = flags[i] == 0x08 ? 1 : flags[i] == 0x20 ? 5 : 6;
        for (size_t first = 9; first <= 9 + before; first++) {
            struct kit_h2 t;
            struct kit_h2_call call, other;
            struct tc_buf frame = {0};
            kit_h2_init(&t, NULL, 0);
            kit_h2_unary(&call, &t);
            kit_h2_unary(&other, &t);
            kit_h2_call_fini(&other);
            kit_h2_run(&t);
            count_from_now(&t);
            tc_buf_append(&frame, "\0\0\0\1\0\0\0\0\1\0\0\0\0\0\0", 9 + before);
            fake_h2_hpack(&frame, OK "long: " MANY_BYTES "\n");
            frame.data[1] = (char)((frame.len - 9) >> 8);
            frame.data[2] = (char)(frame.len - 9);
            frame.data[4] = (char)(flags[i] | 4);
            int64_t counted = t.conn->glitches.rate->frames;
            fake_h2_bytes(t.peer, frame.data, first);
            kit_h2_run(&t);
            fake_h2_bytes(t.peer, frame.data + first, frame.len - first);
            kit_h2_run(&t);
            for (int k = 0; k < 2; k++)
                fake_h2_data(t.peer, 3, "0123456789", 10, false);
            fake_h2_message(t.peer, 1, "", 0, false);
            fake_h2_headers(t.peer, 1, OK_TRAILERS, true);
            kit_h2_run(&t);
            assert_int_equal(call.code, TORC_STATUS_OK);
            assert_int_equal(t.closed, 0);
            assert_int_equal(t.conn->glitches.hidden, 0);
            assert_in_range(t.conn->glitches.rate->frames, 0, counted);
            tc_buf_fini(&frame);
            kit_h2_call_fini(&call);
            kit_h2_fini(&t);
        }
    }
}

/* A rate below the limit stays allowed however often it is reckoned: no part of a frame is lost. */
static void parts_of_frames_are_paid(void **state)
{
    (void)state;
    struct tc_h2_glitch_rate *rate = tc_h2_glitch_rate_new();
    for (uint64_t ms = 0; ms < 60000; ms++) /* 1,500 frames a second */
        assert_true(tc_h2_glitch_rate_add(rate, 1 + (int64_t)(ms % 2), 1999, ms));
    assert_in_range(rate->frames, 0, 2);
    tc_h2_glitch_rate_unref(rate);
}

/* Header blocks of closed streams are skipped, CONTINUATION included. Each byte may be a field: it counts as
 * TC_H2_BLOCK_BYTE bytes of other frames. */
static void skipped_blocks(void **state)
{
    (void)state;
    for (size_t frames = 20; frames <= 60; frames += 40) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        kit_h2_call_fini(&call);
        kit_h2_run(&t);
        count_from_now(&t);
        for (size_t left = frames; left > 0 && !t.closed; left -= 20) {
            put_bomb(&t, 1, 0, 20 * 16000 - 100);
            kit_h2_run(&t);
        }
        assert_int_equal(t.closed, frames > 20);
        if (t.closed)
            assert_non_null(strstr(t.why, TOO_MANY));
        kit_h2_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_frames),
        cmocka_unit_test(empty_frames_within_a_message),
        cmocka_unit_test(glitches_end_the_connection),
        cmocka_unit_test(large_glitches),
        cmocka_unit_test(fields_beyond_the_limit),
        cmocka_unit_test(fields_of_many_blocks),
        cmocka_unit_test(next_connection_pays),
        cmocka_unit_test(headers_in_pieces),
        cmocka_unit_test(parts_of_frames_are_paid),
        cmocka_unit_test(skipped_blocks),
        cmocka_unit_test(unknown_types_are_ignored),
        cmocka_unit_test(frames_after_the_end),
        cmocka_unit_test(the_end_may_have_continuations),
        cmocka_unit_test(late_frames_of_what_we_reset),
        cmocka_unit_test(much_is_read_in_turns),
        cmocka_unit_test(much_is_inflated_in_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
