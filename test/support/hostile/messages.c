/* Hostile servers: gRPC messages that are not what they claim to be.
 *
 * The rows have wrong prefixes, lengths beyond the limits, compressed messages that inflate to more than allowed or not
 * at all, more messages than a call wants, frames after the end, an end without trailers, an error page, DATA beyond
 * the window, and servers that never open the window for the request. The client must neither allocate for an
 * announcement nor inflate beyond its limit.
 *
 * A play has one connection and one thread (hostile_play_fn), and borrows its peer. Bytes written by hand begin with
 * gRPC's prefix: a flag, then four bytes of length. To read first: body. */
#include <zlib.h>

#include "support/hostile/rows.h"

#include "base/mem.h"

#define GZIP_OK HOSTILE_OK "grpc-encoding: gzip\n"

/* Answers the first request with these headers, these bytes as DATA and, if `end`, trailers of success. Then sends a
 * good answer to the next request. */
static void body(struct hostile_peer *p, const char *headers, const void *data, size_t len, bool end)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, headers, false);
    fake_h2_data(hostile_frames(p), id, data, len, false);
    if (end)
        fake_h2_headers(hostile_frames(p), id, HOSTILE_TRAILERS, true);
    hostile_flush(p);
    hostile_answer_next(p);
    hostile_settle(p);
}

static void shorter_than_said(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\0\0\0\0\x0ahello", 10, true);
}

static void longer_than_said(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\0\0\0\0\1hello", 10, true);
}

static void part_of_a_prefix(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\0\0\0", 3, true);
}

static void no_message(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "", 0, true);
}

static void two_messages(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\0\0\0\0\1a\0\0\0\0\1b", 12, true);
}

static void prefix_of_5_mib(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\0\0\x50\0\0", 5, false);
}

static void prefix_of_4_gib(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\0\xff\xff\xff\xff", 5, false);
}

/* Announces the largest allowed message to each request, and sends nothing of it: the client must not allocate for
 * it. */
static void prefix_of_4_mib(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    for (uint32_t id; (id = hostile_await(p, FAKE_H2_HEADERS));) {
        fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
        fake_h2_data(hostile_frames(p), id, "\0\0\x40\0\0", 5, false);
    }
}

static void flag_of_7(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\7\0\0\0\0", 5, true);
}

static void compressed_without_encoding(struct hostile_peer *p)
{
    body(p, HOSTILE_OK, "\1\0\0\0\1x", 6, true);
}

static void unknown_encoding(struct hostile_peer *p)
{
    body(p, HOSTILE_OK "grpc-encoding: br\n", "\1\0\0\0\1x", 6, true);
}

static void no_gzip(struct hostile_peer *p)
{
    body(p, GZIP_OK, "\1\0\0\0\4abcd", 9, true);
}

/* Writes one compressed message to `out`, which must be empty: gzip members, each of which inflates to `each` zeros. */
static void bomb(struct tc_buf *out, size_t members, size_t each)
{
    uint8_t prefix[5] = {1};
    static char zeros[1 << 16];
    tc_buf_append(out, prefix, 5);
    z_stream z = {0};
    deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY);
    for (size_t m = 0; m < members; m++, deflateReset(&z)) {
        size_t left = each;
        int rc = Z_OK;
        while (rc != Z_STREAM_END) {
            if (z.avail_in == 0) {
                z.avail_in = (uInt)TC_MIN(left, sizeof(zeros));
                z.next_in = (Bytef *)zeros;
                left -= z.avail_in;
            }
            z.next_out = (Bytef *)tc_buf_reserve(out, 4096);
            z.avail_out = 4096;
            rc = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
            out->len += 4096 - z.avail_out;
        }
    }
    deflateEnd(&z);
    size_t len = out->len - 5;
    for (int i = 0; i < 4; i++)
        out->data[1 + i] = (char)(len >> (24 - 8 * i));
}

/* Answers with one compressed message of `members` gzip members, each of which inflates to `each` zeros. */
static void bombs(struct hostile_peer *p, size_t members, size_t each)
{
    struct tc_buf b = {0};
    bomb(&b, members, each);
    body(p, GZIP_OK, b.data, b.len, true);
    tc_buf_fini(&b);
}

static void gzip_bomb(struct hostile_peer *p)
{
    bombs(p, 1, (size_t)80 << 20); /* also more than the 64 MiB that a control plane may send */
}

static void gzip_one_byte_too_many(struct hostile_peer *p)
{
    bombs(p, 1, ((size_t)4 << 20) + 1);
}

static void gzip_bombs_in_a_row(struct hostile_peer *p)
{
    bombs(p, 1500, 1000);
}

/* Sends empty messages to a call that wants one: as many as fit into the stream's window of 64 KiB. */
static void messages_of_nothing(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    for (int i = 0; i < 65536 / 5 && id && hostile_flush_much(p); i++)
        fake_h2_message(hostile_frames(p), id, "", 0, false);
    hostile_answer_next(p);
    hostile_settle(p);
}

/* Sends up to 200,000 empty messages, more than the window allows, to a call that has ended, while a second call
 * runs. */
static void messages_without_end(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_message(hostile_frames(p), id, "", 0, false);
    fake_h2_message(hostile_frames(p), id, "", 0, false);
    (void)hostile_await(p, FAKE_H2_HEADERS);
    for (int i = 0; i < 200000 && id && hostile_flush_much(p); i++)
        fake_h2_message(hostile_frames(p), id, "", 0, false);
    hostile_await_close(p);
}

/* Answers the first RPC. While the second runs, sends more data for the first. */
static void data_after_the_end(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    hostile_answer(p, id);
    (void)hostile_await(p, FAKE_H2_HEADERS);
    for (int i = 0; i < 1000 && id; i++)
        fake_h2_data(hostile_frames(p), id, "more", 4, true);
    hostile_await_close(p);
}

static void headers_after_the_end(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    hostile_answer(p, id);
    (void)hostile_await(p, FAKE_H2_HEADERS);
    for (int i = 0; i < 1000 && id; i++)
        fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    hostile_await_close(p);
}

/* Sends data behind the end of the stream, in the same write. */
static void data_right_after_the_end(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_TRAILERS, true);
    fake_h2_data(hostile_frames(p), id, "more", 4, true);
    hostile_await_close(p);
}

static void ended_without_trailers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, true);
    hostile_flush(p);
    hostile_answer_next(p);
    hostile_settle(p);
}

static void error_page_without_end(struct hostile_peer *p)
{
    char page[16000];
    memset(page, 'p', sizeof(page));
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, ":status: 502\ncontent-type: text/html\n", false);
    for (int i = 0; i < 4 && id; i++)
        fake_h2_data(hostile_frames(p), id, page, sizeof(page), false);
    hostile_flush(p);
    hostile_answer_next(p);
    hostile_settle(p);
}

/* Sends more than the window of a stream that is not read. */
static void beyond_the_window(struct hostile_peer *p)
{
    char data[16000] = {0};
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_data(hostile_frames(p), id, "\0\0\x3f\0\0", 5, false);
    for (int i = 0; i < 4000 && id && hostile_flush_much(p); i++)
        fake_h2_data(hostile_frames(p), id, data, sizeof(data), false);
    hostile_settle(p);
}

/* Answers when the request's headers have come, and never opens the window for the request's message. */
static void answered_unread(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK "grpc-status: 8\ngrpc-message: no\n", true);
    hostile_settle(p);
}

static void never_read(struct hostile_peer *p)
{
    if (hostile_begin(p))
        hostile_await(p, FAKE_H2_RST_STREAM);
}

#define OVER "RESOURCE_EXHAUSTED received message larger than max"

static const struct hostile_row rows[] = {
    {"a message shorter than it says", shorter_than_said, "INTERNAL response ends within a message", NULL, HOSTILE_NEXT,
     NULL},
    {"a message longer than it says", longer_than_said, "INTERNAL response ends within a message", NULL, HOSTILE_NEXT,
     NULL},
    {"a part of a prefix", part_of_a_prefix, "INTERNAL response ends within a message", NULL, HOSTILE_NEXT, NULL},
    {"no message", no_message, "INTERNAL the server sent no response message", NULL, HOSTILE_NEXT, NULL},
    {"two messages", two_messages, "INTERNAL more than one response", NULL, HOSTILE_NEXT, NULL},
    {"a prefix of 5 MiB and no body", prefix_of_5_mib, OVER " (5242880 vs. 4194304)", NULL, HOSTILE_NEXT, NULL},
    {"a prefix of 4 GiB and no body", prefix_of_4_gib, OVER " (4294967295 vs. 4194304)", NULL, HOSTILE_NEXT, NULL},
    {"200 prefixes of 4 MiB and no bodies", prefix_of_4_mib,
     "DEADLINE_EXCEEDED while waiting for the end of the response", "DEADLINE_EXCEEDED while waiting for the response",
     HOSTILE_SHORT | HOSTILE_MANY, NULL},
    {"a flag byte of 7", flag_of_7, "INTERNAL received message with invalid flag byte 7", NULL, HOSTILE_NEXT, NULL},
    {"the compressed flag without encoding", compressed_without_encoding,
     "INTERNAL received compressed message without grpc-encoding", NULL, HOSTILE_NEXT, NULL},
    {"an unknown encoding", unknown_encoding, "INTERNAL received unknown grpc-encoding \"br\"", NULL, HOSTILE_NEXT,
     NULL},
    {"gzip that is none", no_gzip, "INTERNAL received message could not be decompressed", NULL, HOSTILE_NEXT, NULL},
    {"gzip bomb of 80 MiB", gzip_bomb, OVER " after decompression (max 4194304)", NULL, HOSTILE_NEXT, NULL},
    {"gzip, one byte over the limit", gzip_one_byte_too_many, OVER " after decompression (max 4194304)", NULL,
     HOSTILE_NEXT, NULL},
    {"1,500 members of gzip", gzip_bombs_in_a_row, "INTERNAL could not be decompressed", NULL, HOSTILE_NEXT, NULL},
    {"a window of messages", messages_of_nothing, "INTERNAL more than one response", NULL, HOSTILE_NEXT, NULL},
    {"messages without end", messages_without_end, "INTERNAL more than one response", NULL, 0,
     "UNAVAILABLE too many frames that carry nothing"},
    {"DATA after the end", data_after_the_end, "OK", NULL, 0,
     "UNAVAILABLE STREAM_CLOSED: DATA after the end of its stream"},
    {"HEADERS after the end", headers_after_the_end, "OK", NULL, 0,
     "UNAVAILABLE STREAM_CLOSED: HEADERS after the end of its stream"},
    {"DATA right after the end", data_right_after_the_end, "OK", NULL, 0, NULL},
    {"the end without trailers", ended_without_trailers, "INTERNAL server closed the stream without sending trailers",
     NULL, HOSTILE_NEXT, NULL},
    {"an error page without end", error_page_without_end, "UNAVAILABLE HTTP status 502", NULL, HOSTILE_NEXT, NULL},
    {"DATA beyond the window", beyond_the_window, "INTERNAL server broke the rules of HTTP/2: FLOW_CONTROL_ERROR", NULL,
     HOSTILE_UNREAD, NULL},
    {"an answer to a request that nobody reads", answered_unread, "RESOURCE_EXHAUSTED no", NULL, HOSTILE_LARGE, NULL},
    {"a request that nobody reads", never_read, "DEADLINE_EXCEEDED while waiting for the response", NULL,
     HOSTILE_LARGE | HOSTILE_SHORT, NULL},
};

struct hostile_rows hostile_message_rows(void)
{
    return (struct hostile_rows){rows, TC_ARRAY_LEN(rows)};
}
