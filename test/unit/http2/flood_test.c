/* Frames that carry nothing, at a client: which are counted, which are allowed for, and what a turn reads. */
#include "base/mem.h"
#include "http2/internal.h"
#include "support/cmocka.h"
#include "support/h2_client.h"

#define OK TC_H2_OK_HEADERS
#define OK_TRAILERS "grpc-status: 0\n"
#define TOO_MANY "too many frames that carry nothing"
#define PADDED 8

/* Nothing at all, and padding alone, of which the window has as much as is taken. */
static void empty_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init(&t, NULL, i % 2);
        tc_h2_test_unary(&call, &t);
        tc_h2_peer_headers(t.peer, 1, OK, false);
        tc_h2_peer_hold(t.peer, true);
        for (int k = 0; k < 1001; k++)
            tc_h2_peer_frame(t.peer, TC_H2P_DATA, i < 2 ? 0 : PADDED, 1, i < 4 ? "" : "\7\0\0\0\0\0\0",
                             i < 2   ? 0
                             : i < 4 ? 1
                                     : 8);
        tc_h2_peer_hold(t.peer, false);
        tc_h2_test_run(&t);
        assert_int_equal(t.closed, 1);
        assert_non_null(strstr(t.why, "too many empty frames"));
        assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

/* Never many in a row: a byte of a message comes now and then. They count as others do that carry nothing. */
static void empty_frames_within_a_message(void **state)
{
    (void)state;
    for (int padded = 0; padded < 2; padded++) {
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init(&t, NULL, 0);
        tc_h2_test_unary(&call, &t);
        tc_h2_peer_headers(t.peer, 1, OK, false);
        tc_h2_peer_data(t.peer, 1, "\0\0\0\4\0", 5, false);
        int bytes = 0;
        for (; bytes < 100 && !t.closed; bytes++) {
            tc_h2_peer_hold(t.peer, true);
            for (int i = 0; i < 999; i++)
                tc_h2_peer_frame(t.peer, TC_H2P_DATA, padded ? PADDED : 0, 1, "", padded ? 1 : 0);
            tc_h2_peer_data(t.peer, 1, "x", 1, false);
            tc_h2_peer_hold(t.peer, false);
            tc_h2_test_run(&t);
        }
        assert_in_range(bytes, 9, 21);
        assert_non_null(strstr(t.why, TOO_MANY));
        assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

static void put_frames(struct tc_h2_test *t, int n, uint8_t type, uint32_t stream, const void *payload, size_t len)
{
    tc_h2_peer_hold(t->peer, true);
    for (int i = 0; i < n; i++)
        tc_h2_peer_frame(t->peer, type, 0, stream, payload, len);
    tc_h2_peer_hold(t->peer, false);
    tc_h2_test_run(t);
}

/* As many at once as nobody needs end the connection; more of them, but in as many seconds, do not. */
static void bare_frames(void **state)
{
    (void)state;
    static const struct {
        uint8_t type;
        const char *payload;
        size_t len;
    } kinds[] = {{TC_H2P_WINDOW_UPDATE, "\0\0\0\1", 4},
                 {2, "\0\0\0\0\x10", 5},
                 {0xfa, "grease", 6},
                 {0x0a, "", 0},
                 {0x0c, "", 0},
                 {0x10, "", 0}};
    for (size_t k = 0; k < TC_ARRAY_LEN(kinds); k++) {
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init(&t, NULL, 0);
        tc_h2_test_unary(&call, &t);
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
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

/* A peer that has sent much does not keep the loop from others until all of it is read. */
static void much_is_read_in_turns(void **state)
{
    (void)state;
    static const char head[] = {0, 0x40, 0, (char)0xfa, 0, 0, 0, 0, 0}, payload[16384];
    struct tc_h2_test t;
    tc_h2_test_init(&t, NULL, 0);
    for (int i = 0; i < 512; i++) {
        tc_pipe_put(t.pipe, 1, head, sizeof(head));
        tc_pipe_put(t.pipe, 1, payload, sizeof(payload));
    }
    size_t before = tc_pipe_unread(t.pipe, 0).len;
    int turns = 0;
    for (size_t left = before; left > 0; turns++) {
        assert_true(tc_loop_turn(t.loop, 0));
        left = tc_pipe_unread(t.pipe, 0).len;
    }
    assert_true(before > 8 << 20);
    assert_in_range(turns, 8, 20);
    tc_h2_test_fini(&t);
}

/* Messages of 1 MiB that came as one KiB, of two calls that read on: nobody waits for all of them. */
static void much_is_inflated_in_turns(void **state)
{
    (void)state;
    enum { MESSAGES = 24, BYTES = 1 << 20 };
    struct tc_h2_test t;
    struct tc_h2_test_call calls[2];
    struct tc_buf b = {0};
    char *zeros = tc_calloc(1, BYTES);
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(zeros, BYTES));
    uint8_t prefix[5];
    tc_h2_prefix(prefix, true, packed->len);
    tc_buf_append(&b, prefix, 5);
    tc_buf_append(&b, packed->data, packed->len);
    tc_h2_test_init(&t, NULL, 0);
    for (int i = 0; i < 2; i++) {
        tc_h2_test_unary(&calls[i], &t);
        calls[i].auto_read = true;
    }
    tc_h2_peer_hold(t.peer, true);
    for (uint32_t id = 1; id <= 3; id += 2) {
        tc_h2_peer_headers(t.peer, id, OK "grpc-encoding: gzip\n", false);
        for (int k = 0; k < MESSAGES; k++)
            tc_h2_peer_data(t.peer, id, b.data, b.len, false);
        tc_h2_peer_headers(t.peer, id, OK_TRAILERS, true);
    }
    tc_h2_peer_hold(t.peer, false);
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
        tc_h2_test_call_fini(&calls[i]);
    }
    tc_h2_test_fini(&t);
    tc_rstr_unref(packed);
    tc_buf_fini(&b);
    tc_free(zeros);
}

/* RFC 9113 5.5: what is not known is passed over, in the middle of whatever. */
static void unknown_types_are_ignored(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init(&t, NULL, chunk);
        tc_h2_test_unary(&call, &t);
        for (unsigned type = 10; type < 256; type++)
            tc_h2_peer_frame(t.peer, (uint8_t)type, 0xff, type % 2, "grease", type % 7);
        tc_h2_peer_headers(t.peer, 1, OK, false);
        tc_h2_peer_frame(t.peer, 0xfa, 0xff, 1, "grease", 6);
        tc_h2_peer_message(t.peer, 1, "y", 1, false);
        tc_h2_peer_frame(t.peer, 0xfb, 0, 1, "", 0);
        tc_h2_peer_headers(t.peer, 1, OK_TRAILERS, true);
        tc_h2_peer_frame(t.peer, 0xfc, 1, 1, "grease", 6);
        tc_h2_test_run(&t);
        assert_int_equal(call.code, TORC_STATUS_OK);
        assert_int_equal(t.closed, 0);
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

static void count_from_now(struct tc_h2_test *t)
{
    t->conn->bare_frames = 0;
    t->conn->bare_since_ms = tc_loop_now_ms(t->loop);
}

/* What is in them counts as well, by the KiB. */
static void large_bare_frames(void **state)
{
    (void)state;
    static const char payload[16384] = {0x7f, (char)0xff, (char)0xff, (char)0xff};
    static const struct {
        uint8_t type;
        size_t len;
        int n; /* one more is too many */
    } kinds[] = {{0xfa, 16384, 588}, {0xfa, 1024, 5000}, {0xfa, 1023, 10000}, {TC_H2P_GOAWAY, 16384, 588}};
    for (size_t k = 0; k < TC_ARRAY_LEN(kinds); k++) {
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init(&t, NULL, 0);
        tc_h2_test_unary(&call, &t);
        count_from_now(&t);
        put_frames(&t, kinds[k].n, kinds[k].type, 0, payload, kinds[k].len);
        assert_int_equal(t.closed, 0);
        put_frames(&t, 1, kinds[k].type, 0, payload, kinds[k].len);
        assert_int_equal(t.closed, 1);
        assert_non_null(strstr(t.why, TOO_MANY));
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

static void put_answer(struct tc_h2_test *t, uint32_t id)
{
    tc_h2_peer_headers(t->peer, id, OK, false);
    tc_h2_peer_message(t->peer, id, "y", 1, false);
    tc_h2_peer_headers(t->peer, id, OK_TRAILERS, true);
}

/* What comes behind its end, on the stream. */
static void put_late(struct tc_h2_test *t, int kind, uint32_t id)
{
    switch (kind) {
    case 0:
        tc_h2_peer_data(t->peer, id, "more", 4, false);
        break;
    case 1:
        tc_h2_peer_data(t->peer, id, "", 0, true);
        break;
    case 2:
        tc_h2_peer_headers(t->peer, id, OK_TRAILERS, true);
        break;
    default:
        tc_h2_peer_rst(t->peer, id, 0);
        tc_h2_peer_window(t->peer, id, 1);
        tc_h2_peer_frame(t->peer, 2, 0, id, "\0\0\0\0\x10", 5);
        break;
    }
}

/* RFC 9113 5.1: DATA and HEADERS behind END_STREAM end the connection, with what runs on it; what was complete, in the
 * same bytes even, stays so. RST_STREAM, WINDOW_UPDATE and PRIORITY may be late. */
static void frames_after_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        int kind = i % 4;
        bool at_once = i & 4;
        struct tc_h2_test t;
        struct tc_h2_test_call call, other;
        tc_h2_test_init(&t, NULL, i & 8 ? 1 : 0);
        tc_h2_test_unary(&call, &t);
        tc_h2_test_unary(&other, &t);
        tc_h2_peer_hold(t.peer, at_once);
        put_answer(&t, 1);
        tc_h2_test_run(&t);
        assert_int_equal(call.done, at_once ? 0 : 1);
        put_late(&t, kind, 1);
        tc_h2_peer_hold(t.peer, false);
        tc_h2_test_run(&t);
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
            const struct tc_h2p_frame *f = tc_h2_peer_expect(t.peer, TC_H2P_GOAWAY, 0);
            assert_non_null(f);
            assert_memory_equal(f->payload + 4, "\0\0\0\5", 4);
        }
        tc_h2_test_call_fini(&call);
        tc_h2_test_call_fini(&other);
        tc_h2_test_fini(&t);
    }
}

/* CONTINUATION belongs to the block that has the end. */
static void the_end_may_have_continuations(void **state)
{
    (void)state;
    struct tc_h2_test t;
    struct tc_h2_test_call call;
    struct tc_buf block = {0};
    tc_h2_test_init(&t, NULL, 0);
    tc_h2_test_unary(&call, &t);
    tc_h2_peer_headers(t.peer, 1, OK, false);
    tc_h2_peer_message(t.peer, 1, "y", 1, false);
    tc_h2_peer_hpack(&block, OK_TRAILERS);
    tc_h2_peer_frame(t.peer, TC_H2P_HEADERS, TC_H2P_END_STREAM, 1, block.data, block.len - 3);
    tc_h2_peer_frame(t.peer, TC_H2P_CONTINUATION, 0, 1, "", 0);
    tc_h2_peer_frame(t.peer, TC_H2P_CONTINUATION, TC_H2P_END_HEADERS, 1, block.data + block.len - 3, 3);
    tc_h2_test_run(&t);
    assert_int_equal(t.closed, 0);
    assert_int_equal(call.code, TORC_STATUS_OK);
    tc_buf_fini(&block);
    tc_h2_test_call_fini(&call);
    tc_h2_test_fini(&t);
}

/* 0: all that the window of the stream allows; 1: as much again; 2: its end, again and again; 3: blocks in pieces; 4:
 * the rest of a message of 4 MiB that was wanted, in small frames. */
static void put_late_messages(struct tc_h2_test *t, int kind)
{
    for (int i = 0; kind < 2 && i < (kind + 1) * 64 * 1024 / 5; i++)
        tc_h2_peer_message(t->peer, 1, "", 0, false);
    for (int i = 0; kind == 2 && i < 30000; i++)
        tc_h2_peer_headers(t->peer, 1, OK_TRAILERS, false);
    for (int i = 0; kind == 3 && i < 6000; i++) {
        tc_h2_peer_frame(t->peer, TC_H2P_HEADERS, 0, 1, "", 0);
        for (int k = 0; k < 6; k++)
            tc_h2_peer_frame(t->peer, TC_H2P_CONTINUATION, k == 5 ? TC_H2P_END_HEADERS : 0, 1, "", 0);
    }
    static const char rest[128];
    for (int i = 0; kind == 4 && i < (4 << 20) / 128; i++)
        tc_h2_peer_data(t->peer, 1, rest, sizeof(rest), false);
    if (kind == 0 || kind == 4)
        tc_h2_peer_headers(t->peer, 1, OK_TRAILERS, true);
}

/* A stream that we reset: all that its window allows may be on the way, in the smallest of messages, and the end. */
static void late_frames_of_what_we_reset(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        struct tc_h2_test t;
        bool tolerated = k == 0 || k == 4;
        struct tc_h2_test_call call, other;
        tc_h2_test_init(&t, NULL, 0);
        tc_h2_test_unary(&call, &t);
        tc_h2_test_unary(&other, &t);
        tc_h2_peer_headers(t.peer, 1, OK, false);
        if (k == 4)
            tc_h2_peer_data(t.peer, 1, "\0\0\x40\0\0", 5, false);
        tc_h2_test_run(&t);
        tc_h2_stream_cancel(call.stream, 8);
        call.stream = NULL;
        tc_h2_test_run(&t);
        assert_non_null(tc_h2_peer_expect(t.peer, TC_H2P_RST_STREAM, 1));
        count_from_now(&t);
        tc_h2_peer_hold(t.peer, true);
        put_late_messages(&t, k);
        put_answer(&t, 3);
        tc_h2_peer_hold(t.peer, false);
        tc_h2_test_run(&t);
        assert_int_equal(other.code, tolerated ? TORC_STATUS_OK : TORC_STATUS_UNAVAILABLE);
        assert_int_equal(t.closed, !tolerated);
        if (!tolerated)
            assert_non_null(strstr(t.why, TOO_MANY));
        tc_h2_test_call_fini(&other);
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

/* A byte for each field of some KiB, in so many frames. */
static void put_bomb(struct tc_h2_test *t, int frames)
{
    char references[16000];
    struct tc_buf block = {0};
    memset(references, 0x80 | 62, sizeof(references));
    tc_h2_peer_hpack(&block, OK);
    tc_buf_append(&block, "\x40\1x\x7f\x81\x18", 6); /* 3,200 bytes */
    memset(tc_buf_reserve(&block, 3200), 'v', 3200);
    block.len += 3200;
    tc_h2_peer_frame(t->peer, TC_H2P_HEADERS, 0, 1, block.data, block.len);
    for (int i = 1; i < frames; i++)
        tc_h2_peer_frame(t->peer, TC_H2P_CONTINUATION, i + 1 == frames ? TC_H2P_END_HEADERS : 0, 1, references,
                         sizeof(references));
    tc_buf_fini(&block);
}

/* What is beyond the limit of a list is decoded for the sake of the connection, but not without end. */
static void fields_beyond_the_limit(void **state)
{
    (void)state;
    for (int frames = 2; frames < 6; frames++) {
        bool alive = frames < 3;
        struct tc_h2_test t;
        struct tc_h2_test_call call;
        tc_h2_test_init(&t, NULL, 0);
        tc_h2_test_unary(&call, &t);
        count_from_now(&t);
        put_bomb(&t, frames);
        tc_h2_test_run(&t);
        assert_int_equal(call.code, alive ? TORC_STATUS_RESOURCE_EXHAUSTED : TORC_STATUS_UNAVAILABLE);
        assert_int_equal(t.closed, !alive);
        if (!alive)
            assert_non_null(strstr(t.why, "too many header fields beyond the limit"));
        tc_h2_test_call_fini(&call);
        tc_h2_test_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_frames),
        cmocka_unit_test(empty_frames_within_a_message),
        cmocka_unit_test(bare_frames),
        cmocka_unit_test(large_bare_frames),
        cmocka_unit_test(fields_beyond_the_limit),
        cmocka_unit_test(unknown_types_are_ignored),
        cmocka_unit_test(frames_after_the_end),
        cmocka_unit_test(the_end_may_have_continuations),
        cmocka_unit_test(late_frames_of_what_we_reset),
        cmocka_unit_test(much_is_read_in_turns),
        cmocka_unit_test(much_is_inflated_in_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
