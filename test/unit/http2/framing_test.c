/* Length-prefixed messages, without a connection: the decoder fed in pieces of several sizes, its memory, gzip.
 *
 * A decoded message belongs to the test, which drops it with tc_rstr_unref. With `blocks` the memory of messages is
 * counted (tc_blocks_lent), and small blocks and those of about a mebibyte are reused (base/blocks.h). Without `blocks`
 * the memory comes from the system. One thread. */
#include "http2/framing.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "support/cmocka.h"

/* Feeds bytes `step` at a time. Appends the content of each message to `out` as "[...]", and the text of an error.
 * Returns the decoder's code. */
static int feed(struct tc_h2_decoder *d, const void *data, size_t len, size_t step, struct tc_buf *out)
{
    const char *p = data;
    size_t at = 0;
    while (at < len) {
        size_t used, n = TC_MIN(step, len - at);
        struct tc_rstr *message;
        struct tc_status error;
        int rc = tc_h2_decoder_push(d, p + at, n, &used, &message, &error);
        if (rc) {
            tc_buf_append_str(out, tc_status_text(&error));
            tc_status_fini(&error);
            return rc;
        }
        assert_in_range(used, message ? 0 : 1, n);
        at += used;
        if (message) {
            tc_buf_printf(out, "[%.*s]", (int)message->len, message->data);
            tc_rstr_unref(message);
        }
    }
    return 0;
}

/* Feeds the bytes whole, one at a time and three at a time. Asserts the decoder's code, and the text that feed makes.
 * max: of a message, in bytes. */
static void check_feed(enum tc_h2_encoding encoding, size_t max, const void *data, size_t len, int rc, const char *want)
{
    const size_t steps[] = {SIZE_MAX, 1, 3};
    for (size_t i = 0; i < TC_ARRAY_LEN(steps); i++) {
        struct tc_h2_decoder d;
        struct tc_buf out = {0};
        tc_h2_decoder_init(&d, max);
        d.encoding = encoding;
        assert_int_equal(feed(&d, data, len, steps[i], &out), rc);
        assert_string_equal(tc_buf_cstr(&out), want);
        tc_h2_decoder_fini(&d);
        tc_buf_fini(&out);
    }
}

static void decodes_messages(void **state)
{
    (void)state;
    check_feed(TC_H2_IDENTITY, 100, "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\1x", 19, 0, "[abc][][x]");
    check_feed(TC_H2_IDENTITY, 100, "\0\0\0\0\3ab", 7, 0, "");
}

static void tells_what_was_compressed(void **state)
{
    (void)state;
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_str("abc")), *message;
    assert_non_null(packed);
    for (int compressed = 0; compressed <= 1; compressed++) {
        struct tc_h2_decoder d;
        struct tc_status error;
        uint8_t prefix[TC_H2_PREFIX_LEN];
        struct tc_buf wire = {0};
        size_t used;
        tc_h2_decoder_init(&d, 100);
        d.encoding = TC_H2_GZIP;
        tc_h2_prefix(prefix, compressed, compressed ? packed->len : 3);
        tc_buf_append(&wire, prefix, sizeof(prefix));
        tc_buf_append_slice(&wire, compressed ? tc_rstr_slice(packed) : tc_slice_str("abc"));
        assert_int_equal(tc_h2_decoder_push(&d, wire.data, wire.len, &used, &message, &error), 0);
        assert_string_equal(tc_rstr_cstr(message), "abc");
        assert_int_equal(message->compressed, compressed);
        tc_rstr_unref(message);
        tc_h2_decoder_fini(&d);
        tc_buf_fini(&wire);
    }
    tc_rstr_unref(packed);
}

static void rejects_what_is_not_allowed(void **state)
{
    (void)state;
    check_feed(TC_H2_IDENTITY, 2, "\0\0\0\0\3abc", 8, TORC_ELIMIT, "received message larger than max (3 vs. 2)");
    check_feed(TC_H2_IDENTITY, 100, "\0\xff\xff\xff\xff", 5, TORC_ELIMIT,
               "received message larger than max (4294967295 vs. 100)");
    check_feed(TC_H2_IDENTITY, 100, "\1\0\0\0\1x", 6, TORC_EPROTO, "received compressed message without grpc-encoding");
    check_feed(TC_H2_GZIP, 100, "\2\0\0\0\1x", 6, TORC_EPROTO, "received message with invalid flag byte 2");
    check_feed(TC_H2_GZIP, 100, "\1\0\0\0\4junk", 9, TORC_EPROTO, "received message could not be decompressed (gzip)");
}

static void announced_size_takes_no_memory(void **state)
{
    (void)state;
    struct tc_h2_decoder d;
    struct tc_buf out = {0};
    tc_h2_decoder_init(&d, SIZE_MAX);
    /* A machine of 32 bits refuses 4 GiB, which it has no addresses for. */
    const char *begun = SIZE_MAX > UINT32_MAX ? "\0\xff\xff\xff\xff!" : "\0\x7f\xff\xff\xff!";
    assert_int_equal(feed(&d, begun, 6, SIZE_MAX, &out), 0);
    assert_in_range(d.cap, 1, 128 * 1024);
    tc_h2_decoder_fini(&d);
    tc_buf_fini(&out);
}

/* While a message comes in pieces of 1,000 bytes, its memory is at most 64 KiB or twice the bytes that came, whichever
 * is more, beside a head of at most 64 bytes. A message of 64 to 512 KiB never takes more memory than its length,
 * beside the head. */
static void room_grows_with_what_came(void **state)
{
    (void)state;
    enum { FIRST_ROOM = 64 << 10, HEAD = 64, PIECE = 1000 };
    static const char piece[PIECE];
    static const size_t lengths[] = {65537, 70000, 131072, 200000, 600000, 1u << 20, (1u << 20) + 1, 4u << 20};
    for (size_t i = 0; i < TC_ARRAY_LEN(lengths); i++) {
        size_t len = lengths[i], used;
        struct tc_blocks *blocks = tc_blocks_new();
        struct tc_rstr *message;
        struct tc_status error;
        struct tc_h2_decoder d;
        uint8_t prefix[TC_H2_PREFIX_LEN];
        tc_h2_decoder_init(&d, len);
        d.blocks = blocks;
        tc_h2_prefix(prefix, false, len);
        assert_int_equal(tc_h2_decoder_push(&d, prefix, sizeof(prefix), &used, &message, &error), 0);
        for (size_t at = 0; !message; at += used) {
            assert_int_equal(tc_h2_decoder_push(&d, piece, PIECE, &used, &message, &error), 0);
            size_t most = TC_MAX(2 * (at + used), (size_t)FIRST_ROOM);
            assert_in_range(tc_blocks_lent(blocks), at + used, (len > 512 << 10 ? most : TC_MIN(most, len)) + HEAD);
        }
        tc_rstr_unref(message);
        tc_blocks_end(blocks);
    }
}

/* A message of 1 MiB leaves its block to the next message of that size. Once more than 64 KiB of the next message have
 * come, it has room for all its bytes. */
static void kept_memory_has_room_for_the_whole(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    static char data[TC_H2_PREFIX_LEN + LENGTH];
    struct tc_blocks *blocks = tc_blocks_new();
    tc_h2_prefix((uint8_t *)data, false, LENGTH);
    for (int round = 0; round < 2; round++) {
        struct tc_rstr *message = NULL;
        struct tc_status error;
        struct tc_h2_decoder d;
        size_t used, at = 70000;
        tc_h2_decoder_init(&d, LENGTH);
        d.blocks = blocks;
        assert_int_equal(tc_h2_decoder_push(&d, data, at, &used, &message, &error), 0);
        assert_in_range(d.cap, round ? LENGTH : 70000, round ? LENGTH : 140000);
        assert_int_equal(tc_h2_decoder_push(&d, data + at, sizeof(data) - at, &used, &message, &error), 0);
        assert_non_null(message);
        tc_rstr_unref(message);
    }
    tc_blocks_end(blocks);
}

/* Decodes a message of `len` bytes in pieces of 1,000, 9,000, 81,000 and 729,000 bytes. Asserts its content. `blocks`
 * may be NULL. */
static void check_large(size_t len, struct tc_blocks *blocks)
{
    char *data = tc_malloc(len + 5);
    for (size_t i = 0; i < len; i++)
        data[5 + i] = (char)(i / 4 >> 8 * (i % 4)); /* each four bytes are their number: a misplaced piece shows */
    tc_h2_prefix((uint8_t *)data, false, len);
    for (size_t step = 1000; step < 1000000; step *= 9) {
        struct tc_h2_decoder d;
        struct tc_rstr *message = NULL;
        struct tc_status error;
        size_t at = 0, used;
        tc_h2_decoder_init(&d, 16u << 20);
        d.blocks = blocks;
        while (at < len + 5 && !message) {
            assert_int_equal(tc_h2_decoder_push(&d, data + at, TC_MIN(step, len + 5 - at), &used, &message, &error), 0);
            at += used;
        }
        assert_non_null(message);
        assert_int_equal(message->len, len);
        assert_memory_equal(message->data, data + 5, len);
        tc_rstr_unref(message);
        assert_true(tc_h2_decoder_idle(&d));
    }
    tc_free(data);
}

/* A large message keeps its bytes while its room grows, also when it moves to a block that is reused later. */
static void large_message_grows(void **state)
{
    (void)state;
    static const size_t lengths[] = {65536, 65537, 70000, 600000, 1u << 20, (1u << 20) + 1, (3u << 20) + 17, 9u << 20};
    struct tc_blocks *blocks = tc_blocks_new();
    for (size_t i = 0; i < TC_ARRAY_LEN(lengths); i++) {
        check_large(lengths[i], NULL);
        check_large(lengths[i], blocks);
    }
    tc_blocks_end(blocks);
}

static void gzip_both_ways(void **state)
{
    (void)state;
    char text[5000];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 7);
    const size_t sizes[] = {0, 1, 100, sizeof(text)};
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(text, sizes[i])), *plain = NULL;
        assert_non_null(packed);
        assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), sizes[i], &plain), 0);
        assert_int_equal(plain->len, sizes[i]);
        assert_memory_equal(plain->data, text, sizes[i]);
        tc_rstr_unref(plain);
        if (sizes[i] > 0)
            assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), sizes[i] - 1, &plain), TORC_ELIMIT);
        /* A gzip member that is cut short, and one with a byte after it. */
        for (size_t cut = 0; cut < packed->len; cut++)
            assert_int_equal(tc_h2_gunzip(NULL, tc_slice_of(packed->data, cut), sizeof(text), &plain), TORC_EPROTO);
        struct tc_buf longer = {0};
        tc_buf_append(&longer, packed->data, packed->len);
        tc_buf_append_char(&longer, 'x');
        assert_int_equal(tc_h2_gunzip(NULL, tc_buf_slice(&longer), sizeof(text), &plain), TORC_EPROTO);
        tc_buf_fini(&longer);
        tc_rstr_unref(packed);
    }
}

static void gzip_bomb_is_bounded(void **state)
{
    (void)state;
    size_t len = 64u << 20;
    char *zeros = tc_calloc(1, len);
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(zeros, len)), *plain = NULL;
    tc_free(zeros);
    assert_in_range(packed->len, 1, 100000);
    assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), 1000, &plain), TORC_ELIMIT);
    /* Large content is counted before there is room for it. */
    assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), len - 1, &plain), TORC_ELIMIT);
    assert_int_equal(tc_h2_gunzip(NULL, tc_slice_of(packed->data, packed->len - 1), len, &plain), TORC_EPROTO);
    assert_int_equal(tc_h2_gunzip(NULL, tc_rstr_slice(packed), len, &plain), 0);
    assert_int_equal(plain->len, len);
    assert_int_equal(plain->data[len - 1], 0);
    tc_rstr_unref(plain);
    struct tc_buf framed = {0};
    uint8_t prefix[5];
    tc_h2_prefix(prefix, true, packed->len);
    tc_buf_append(&framed, prefix, 5);
    tc_buf_append(&framed, packed->data, packed->len);
    check_feed(TC_H2_GZIP, 100000, framed.data, framed.len, TORC_ELIMIT,
               "received message larger than max after decompression (max 100000)");
    tc_buf_fini(&framed);
    tc_rstr_unref(packed);
}

/* A received message counts as lent while somebody holds it, whatever its size, compressed or not. */
static void held_messages_are_counted(void **state)
{
    (void)state;
    static char text[5 << 20];
    static const size_t sizes[] = {1, 2000, 3000, 70000, 1 << 20, 3 << 20, sizeof(text)};
    struct tc_blocks *blocks = tc_blocks_new();
    for (size_t i = 0; i < 2 * TC_ARRAY_LEN(sizes); i++) {
        size_t size = sizes[i / 2], used;
        struct tc_rstr *packed = i % 2 ? tc_h2_gzip(tc_slice_of(text, size)) : NULL, *message = NULL;
        struct tc_slice sent = packed ? tc_rstr_slice(packed) : tc_slice_of(text, size);
        uint8_t prefix[TC_H2_PREFIX_LEN];
        tc_h2_prefix(prefix, packed, sent.len);
        struct tc_h2_decoder d;
        tc_h2_decoder_init(&d, sizeof(text));
        d.blocks = blocks;
        d.encoding = TC_H2_GZIP;
        struct tc_status error;
        assert_int_equal(tc_h2_decoder_push(&d, prefix, sizeof(prefix), &used, &message, &error), 0);
        for (size_t at = 0; at < sent.len; at += used) {
            const char *from = (const char *)sent.data + at;
            size_t n = TC_MIN(sent.len - at, (size_t)16384);
            assert_int_equal(tc_h2_decoder_push(&d, from, n, &used, &message, &error), 0);
        }
        assert_non_null(message);
        assert_int_equal(message->len, size);
        assert_in_range(tc_blocks_lent(blocks), size, 2 * size + 128);
        tc_rstr_unref(message);
        tc_h2_decoder_fini(&d);
        tc_rstr_unref(packed);
        assert_int_equal(tc_blocks_lent(blocks), 0);
    }
    tc_blocks_end(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_messages),
        cmocka_unit_test(tells_what_was_compressed),
        cmocka_unit_test(rejects_what_is_not_allowed),
        cmocka_unit_test(announced_size_takes_no_memory),
        cmocka_unit_test(room_grows_with_what_came),
        cmocka_unit_test(kept_memory_has_room_for_the_whole),
        cmocka_unit_test(large_message_grows),
        cmocka_unit_test(gzip_both_ways),
        cmocka_unit_test(gzip_bomb_is_bounded),
        cmocka_unit_test(held_messages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
