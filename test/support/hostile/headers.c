/* Hostile servers: header blocks as bombs, with wrong lengths, table states and encodings.
 *
 * In most rows a header list beyond the limit, or an invalid field, fails the RPC alone. A second RPC then shows that
 * the connection and its compression state survived (HOSTILE_NEXT). Blocks that cannot be decoded, and the largest
 * bombs, end the connection. Fields that are only odd are accepted. `refer` and `list_of` build the large blocks,
 * one_block sends most of them; sizes are counted as in RFC 9113 6.5.2. Bytes written by hand are HPACK (RFC 7541):
 * index 62 is the newest entry of the dynamic table.
 *
 * A play has one connection and one thread (hostile_play_fn), and borrows its peer. To read first: one_block. */
#include <stdio.h>

#include "support/hostile/rows.h"

#include "base/mem.h"

#define LIMIT ((size_t)16384) /* the default limit of a channel's header list */

void hostile_indexed(struct tc_buf *block, const char *name, size_t value_len, char fill)
{
    tc_buf_append_char(block, 0x40);
    tc_buf_append_char(block, (char)strlen(name));
    tc_buf_append_str(block, name);
    if (value_len < 127) {
        tc_buf_append_char(block, (char)value_len);
    } else {
        size_t rest = value_len - 127;
        tc_buf_append_char(block, 127);
        for (; rest >= 128; rest /= 128)
            tc_buf_append_char(block, (char)(rest % 128 + 128));
        tc_buf_append_char(block, (char)rest);
    }
    if (value_len)
        memset(tc_buf_reserve(block, value_len), fill, value_len);
    block->len += value_len;
}

/* Fills the block up to 16,000 bytes with references to the newest table entry. */
static void refer(struct tc_buf *block)
{
    while (block->len < 16000)
        tc_buf_append_char(block, (char)(0x80 | 62));
}

/* Sends the block to the first request, as trailers if `late`; `end` sets END_STREAM. Then sends a good answer to the
 * next request. */
static void one_block(struct hostile_peer *p, const struct tc_buf *block, bool late, bool end)
{
    uint32_t id = hostile_begin(p);
    if (late) {
        fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
        fake_h2_message(hostile_frames(p), id, "x", 1, false);
    }
    hostile_block(p, id, block, end);
    hostile_flush(p);
    hostile_answer_next(p);
    hostile_settle(p);
}

/* Puts a field of 3 KB into the table, then refers to it some 12,700 times, with a byte each. */
static void indexed_bomb(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_OK);
    hostile_indexed(&block, "x", 3200, 'v');
    refer(&block);
    one_block(p, &block, false, false);
    tc_buf_fini(&block);
}

/* A bomb of 1,400 references: few enough to be decoded to the end, so that the connection survives. */
static void small_indexed_bomb(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_OK);
    hostile_indexed(&block, "x", 3200, 'v');
    memset(tc_buf_reserve(&block, 1400), 0x80 | 62, 1400);
    block.len += 1400;
    one_block(p, &block, false, false);
    tc_buf_fini(&block);
}

static void indexed_bomb_in_trailers(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_TRAILERS);
    hostile_indexed(&block, "x", 3200, 'v');
    refer(&block);
    one_block(p, &block, true, true);
    tc_buf_fini(&block);
}

/* A bomb whose field has an empty value: each reference counts as 33 bytes of the header list. */
static void indexed_bomb_of_small_fields(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_OK);
    hostile_indexed(&block, "x", 0, 'v');
    refer(&block);
    one_block(p, &block, false, false);
    tc_buf_fini(&block);
}

/* Answers each request with a bomb in 21 frames: its 20 CONTINUATION frames are within the client's limit of 24. */
static void indexed_bombs_of_many_frames(struct hostile_peer *p)
{
    struct tc_buf block = {0}, more = {0};
    fake_h2_hpack(&block, HOSTILE_OK);
    hostile_indexed(&block, "x", 3200, 'v');
    refer(&block);
    refer(&more);
    hostile_keep(p);
    for (uint32_t id = hostile_begin(p); id; id = hostile_await(p, FAKE_H2_HEADERS)) {
        fake_h2_frame(hostile_frames(p), FAKE_H2_HEADERS, 0, id, block.data, block.len);
        for (int i = 0; i < 20; i++)
            fake_h2_frame(hostile_frames(p), FAKE_H2_CONTINUATION, i == 19 ? FAKE_H2_END_HEADERS : 0, id, more.data,
                          more.len);
    }
    tc_buf_fini(&block);
    tc_buf_fini(&more);
}

/* Sends fields whose names and values are empty. */
static void empty_fields(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_OK);
    while (block.len < 16000)
        tc_buf_append(&block, "\0\0\0", 3);
    one_block(p, &block, false, false);
    tc_buf_fini(&block);
}

/* Begins a block with good fields and these bytes, then sends CONTINUATION frames full of `fill`, until the client
 * closes or 1000 frames are sent. */
static void endless_block(struct hostile_peer *p, const char *begin, size_t len, char fill)
{
    char more[16384];
    struct tc_buf block = {0};
    uint32_t id = hostile_begin(p);
    fake_h2_hpack(&block, HOSTILE_OK);
    tc_buf_append(&block, begin, len);
    fake_h2_frame(hostile_frames(p), FAKE_H2_HEADERS, 0, id, block.data, block.len);
    memset(more, fill, sizeof(more));
    for (int i = 0; i < 1000 && id && hostile_flush_much(p); i++)
        fake_h2_frame(hostile_frames(p), FAKE_H2_CONTINUATION, 0, id, more, sizeof(more));
    hostile_await_close(p);
    tc_buf_fini(&block);
}

static void value_of_4_gib(struct hostile_peer *p)
{
    endless_block(p, "\0\1x\x7f\x80\xff\xff\xff\x0f", 9, 'v');
}

static void name_of_4_gib(struct hostile_peer *p)
{
    endless_block(p, "\0\x7f\x80\xff\xff\xff\x0f", 7, 'n');
}

static void length_without_end(struct hostile_peer *p)
{
    endless_block(p, "\0\1x\x7f", 4, (char)0x80);
}

static void index_out_of_the_table(struct hostile_peer *p)
{
    endless_block(p, "\xff\xff\xff\xff\x0f", 5, 'v');
}

static void huffman_garbage(struct hostile_peer *p)
{
    endless_block(p, "\0\1x\x84\xff\xff\xff\xff", 8, 'v');
}

/* Sends 3,975 pairs of updates of the table's size before the fields. */
static void table_sizes(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    while (block.len < 15900)
        tc_buf_append(&block, "\x20\x3f\xe1\x1f", 4); /* 0, 4096 */
    fake_h2_hpack(&block, HOSTILE_OK "grpc-status: 9\n");
    one_block(p, &block, false, true);
    tc_buf_fini(&block);
}

static void table_too_large(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    tc_buf_append(&block, "\x3f\xe1\xff\x03", 4);
    fake_h2_hpack(&block, HOSTILE_OK);
    one_block(p, &block, false, false);
    tc_buf_fini(&block);
}

/* Appends `fields`, which count as `base` bytes, and more fields up to exactly `size` bytes. A field counts as its
 * name, its value and 32 bytes (RFC 9113 6.5.2). */
static void list_of(struct tc_buf *block, const char *fields, size_t base, size_t size)
{
    char line[1200];
    fake_h2_hpack(block, fields);
    for (size_t left = size - base; left;) {
        size_t n = TC_MIN(left, (size_t)1000);
        if (left - n && left - n < 33)
            n -= 33;
        snprintf(line, sizeof(line), "y: %0*d\n", (int)(n - 33), 0);
        fake_h2_hpack(block, line);
        left -= n;
    }
}

/* ":status" 7+3, "content-type" 12+16, "intact" 6+3. "grpc-status" 11+1. And 32 for each. */
#define OK_SIZE ((size_t)(10 + 28 + 9 + 96))
#define TRAILERS_SIZE ((size_t)(12 + 32))

static void list_at_the_limit(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    uint32_t id = hostile_begin(p);
    list_of(&block, HOSTILE_OK, OK_SIZE, LIMIT);
    hostile_block(p, id, &block, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    tc_buf_clear(&block);
    list_of(&block, HOSTILE_TRAILERS, TRAILERS_SIZE, LIMIT);
    hostile_block(p, id, &block, true);
    hostile_flush(p);
    hostile_answer_next(p);
    hostile_settle(p);
    tc_buf_fini(&block);
}

static void list_over_the_limit(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    list_of(&block, HOSTILE_OK, OK_SIZE, LIMIT + 1);
    one_block(p, &block, false, false);
    tc_buf_fini(&block);
}

static void trailers_over_the_limit(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    list_of(&block, HOSTILE_TRAILERS, TRAILERS_SIZE, LIMIT + 1);
    one_block(p, &block, true, true);
    tc_buf_fini(&block);
}

/* A field beyond the limit still goes into the table: the next response refers to it. */
static void table_behind_the_limit(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    uint32_t id = hostile_begin(p);
    list_of(&block, HOSTILE_OK, OK_SIZE, LIMIT + 1);
    tc_buf_append_str(&block, "\x40\x06intact\x03yes");
    hostile_block(p, id, &block, false);
    id = hostile_await(p, FAKE_H2_HEADERS);
    tc_buf_clear(&block);
    fake_h2_hpack(&block, ":status: 200\ncontent-type: application/grpc\n");
    tc_buf_append_char(&block, (char)(0x80 | 62));
    hostile_block(p, id, &block, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_TRAILERS, true);
    hostile_settle(p);
    tc_buf_fini(&block);
}

/* An invalid field goes into the table, then a valid one, to which the next response refers: the error of the first
 * field must not stick. */
static void table_of_bad_base64(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    uint32_t id = hostile_begin(p);
    fake_h2_hpack(&block, HOSTILE_OK);
    tc_buf_append_str(&block, "\x40\x05x-bin\x04!!!!");
    tc_buf_append_str(&block, "\x40\x06intact\x03yes");
    hostile_block(p, id, &block, false);
    id = hostile_await(p, FAKE_H2_HEADERS);
    tc_buf_clear(&block);
    fake_h2_hpack(&block, ":status: 200\ncontent-type: application/grpc\n");
    tc_buf_append_char(&block, (char)(0x80 | 62));
    hostile_block(p, id, &block, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_TRAILERS, true);
    hostile_settle(p);
    tc_buf_fini(&block);
}

/* Answers the first request with a header block of these fields ("name: value\n..."); `end` sets END_STREAM. */
static void fields(struct hostile_peer *p, const char *text, bool end)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, text);
    one_block(p, &block, false, end);
    tc_buf_fini(&block);
}

static void bad_base64(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "x-bin: a*b\n", false);
}

static void bad_base64_in_trailers(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_TRAILERS "x-bin: abcde\n");
    one_block(p, &block, true, true);
    tc_buf_fini(&block);
}

static void bad_percent(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "grpc-status: 9\ngrpc-message: %zz %4 %\n", true);
}

static void percent_of_bytes(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "grpc-status: 9\ngrpc-message: a%00b%ff%0a%1b[2J\n", true);
}

static void status_out_of_range(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "grpc-status: 4294967296\n", true);
}

static void status_twice(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "grpc-status: 0\ngrpc-status: 5\n", true);
}

static void no_status_field(struct hostile_peer *p)
{
    fields(p, "content-type: application/grpc\n", false);
}

static void upper_case(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "Big: x\n", false);
}

static void connection_field(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "connection: close\n", false);
}

static void pseudo_after_fields(struct hostile_peer *p)
{
    fields(p, "content-type: application/grpc\n:status: 200\n", false);
}

static void control_characters(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK "x: a\rb\n", false);
}

static void request_field(struct hostile_peer *p)
{
    fields(p, HOSTILE_OK ":scheme: http\nte: x\n", false);
}

/* Sends grpc-lb-token and lb-cost-bin, which the client does not use, then a field of 9,000 bytes: all valid, and
 * within the limit. */
static void odd_fields(struct hostile_peer *p)
{
    char text[9300];
    snprintf(text, sizeof(text), HOSTILE_OK "grpc-lb-token: y\nlb-cost-bin: AA\nz: %09000d\n", 0);
    struct tc_buf block = {0};
    uint32_t id = hostile_begin(p);
    fake_h2_hpack(&block, text);
    hostile_block(p, id, &block, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_TRAILERS, true);
    hostile_answer_next(p);
    hostile_settle(p);
    tc_buf_fini(&block);
}

static void headers_without_content(struct hostile_peer *p)
{
    const struct tc_buf block = {0};
    one_block(p, &block, false, false);
}

/* Sends up to 5,000 more HEADERS without END_STREAM instead of trailers. */
static void headers_again(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    for (int i = 0; i < 5000 && id && hostile_flush_much(p); i++)
        fake_h2_headers(hostile_frames(p), id, "x: y\n", false);
    hostile_answer_next(p);
    hostile_settle(p);
}

#define OVER "RESOURCE_EXHAUSTED received headers larger than max ("
#define INVALID "INTERNAL server sent an invalid HTTP/2 header block"

static const struct hostile_row rows[] = {
    {"indexed header bomb", indexed_bomb, OVER, NULL, 0, NULL},
    {"indexed header bomb in trailers", indexed_bomb_in_trailers, OVER, NULL, 0, NULL},
    {"small indexed header bomb", small_indexed_bomb, OVER, NULL, HOSTILE_NEXT, NULL},
    {"indexed header bomb of small fields", indexed_bomb_of_small_fields, OVER, NULL, HOSTILE_NEXT, NULL},
    {"200 indexed header bombs of many frames", indexed_bombs_of_many_frames, OVER,
     "UNAVAILABLE too many header fields", HOSTILE_MANY, NULL},
    {"fields without name and value", empty_fields, OVER, INVALID, HOSTILE_NEXT, NULL},
    {"a value of 4 GiB", value_of_4_gib, "UNAVAILABLE COMPRESSION_ERROR", NULL, 0, NULL},
    {"a name of 4 GiB", name_of_4_gib, "UNAVAILABLE COMPRESSION_ERROR", NULL, 0, NULL},
    {"a length without end", length_without_end, "UNAVAILABLE COMPRESSION_ERROR", NULL, 0, NULL},
    {"an index out of the table", index_out_of_the_table, "UNAVAILABLE COMPRESSION_ERROR", NULL, 0, NULL},
    {"Huffman code that is none", huffman_garbage, "UNAVAILABLE COMPRESSION_ERROR", NULL, 0, NULL},
    {"7,950 changes of the table's size", table_sizes, "FAILED_PRECONDITION ", NULL, HOSTILE_NEXT, NULL},
    {"a table larger than allowed", table_too_large, "UNAVAILABLE COMPRESSION_ERROR", NULL, 0, NULL},
    {"header lists at the limit", list_at_the_limit, "OK", NULL, HOSTILE_NEXT, NULL},
    {"a header list one byte over the limit", list_over_the_limit, OVER "16385 vs. 16384)", NULL, HOSTILE_NEXT, NULL},
    {"trailers one byte over the limit", trailers_over_the_limit, OVER "16385 vs. 16384)", NULL, HOSTILE_NEXT, NULL},
    {"an entry of the table behind the limit", table_behind_the_limit, OVER, NULL, HOSTILE_NEXT, NULL},
    {"an entry of the table behind bad base64", table_of_bad_base64, "INTERNAL x-bin that is not valid base64", NULL,
     HOSTILE_NEXT, NULL},
    {"bad base64", bad_base64, "INTERNAL x-bin that is not valid base64", NULL, HOSTILE_NEXT, NULL},
    {"bad base64 in trailers", bad_base64_in_trailers, "INTERNAL x-bin that is not valid base64", NULL, HOSTILE_NEXT,
     NULL},
    {"bad percent-encoding", bad_percent, "FAILED_PRECONDITION %zz %4 %", NULL, HOSTILE_NEXT, NULL},
    {"percent-encoded bytes", percent_of_bytes, "FAILED_PRECONDITION a", NULL, HOSTILE_NEXT, NULL},
    {"a status out of range", status_out_of_range, "UNKNOWN 4294967296", NULL, HOSTILE_NEXT, NULL},
    {"two statuses", status_twice, "NOT_FOUND ", NULL, HOSTILE_NEXT, NULL},
    {"no :status", no_status_field, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"an upper-case name", upper_case, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"a connection field", connection_field, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"fields of a request", request_field, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"a pseudo field after others", pseudo_after_fields, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"a control character", control_characters, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"odd fields beyond 8 KB", odd_fields, "OK", NULL, HOSTILE_NEXT, NULL},
    {"HEADERS without content", headers_without_content, INVALID, NULL, HOSTILE_NEXT, NULL},
    {"headers again and again", headers_again, INVALID, NULL, HOSTILE_NEXT, NULL},
};

struct hostile_rows hostile_header_rows(void)
{
    return (struct hostile_rows){rows, TC_ARRAY_LEN(rows)};
}
