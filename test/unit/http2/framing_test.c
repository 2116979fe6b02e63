#include "http2/framing.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "http2/internal.h"
#include "support/cmocka.h"

/* Feeds bytes `step` at a time; the messages' lengths and contents go to out as "[...]", an error's text after them. */
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

static void refuses_what_is_not_allowed(void **state)
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
    assert_int_equal(feed(&d,
                          "\0\xff\xff\xff\xff"
                          "abc",
                          8, SIZE_MAX, &out),
                     0);
    assert_in_range(d.cap, 1, 128 * 1024);
    tc_h2_decoder_fini(&d);
    tc_buf_fini(&out);
}

static void check_large(size_t len, struct tc_blocks *blocks)
{
    char *data = tc_malloc(len + 5);
    memset(data, 'q', len + 5);
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

/* From room to room: of its own, one that is kept for the next, and of its own again. */
static void large_message_grows(void **state)
{
    (void)state;
    static const size_t lengths[] = {65536, 65537, 70000, 1u << 20, (1u << 20) + 1, (3u << 20) + 17, 9u << 20};
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
        assert_int_equal(tc_h2_gunzip(tc_rstr_slice(packed), sizes[i], &plain), 0);
        assert_int_equal(plain->len, sizes[i]);
        assert_memory_equal(plain->data, text, sizes[i]);
        tc_rstr_unref(plain);
        if (sizes[i] > 0)
            assert_int_equal(tc_h2_gunzip(tc_rstr_slice(packed), sizes[i] - 1, &plain), TORC_ELIMIT);
        /* Cut short, and with something behind it. */
        for (size_t cut = 0; cut < packed->len; cut++)
            assert_int_equal(tc_h2_gunzip(tc_slice_of(packed->data, cut), sizeof(text), &plain), TORC_EPROTO);
        struct tc_buf longer = {0};
        tc_buf_append(&longer, packed->data, packed->len);
        tc_buf_append_char(&longer, 'x');
        assert_int_equal(tc_h2_gunzip(tc_buf_slice(&longer), sizeof(text), &plain), TORC_EPROTO);
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
    assert_int_equal(tc_h2_gunzip(tc_rstr_slice(packed), 1000, &plain), TORC_ELIMIT);
    /* What is much is counted before there is room for it. */
    assert_int_equal(tc_h2_gunzip(tc_rstr_slice(packed), len - 1, &plain), TORC_ELIMIT);
    assert_int_equal(tc_h2_gunzip(tc_slice_of(packed->data, packed->len - 1), len, &plain), TORC_EPROTO);
    assert_int_equal(tc_h2_gunzip(tc_rstr_slice(packed), len, &plain), 0);
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

static void check_timeout(uint64_t ns, const char *want)
{
    char text[16];
    size_t len = tc_h2_timeout_encode(text, ns);
    assert_int_equal(len, strlen(want));
    assert_string_equal(text, want);
}

static void timeouts(void **state)
{
    (void)state;
    check_timeout(1, "1n");
    check_timeout(99999999, "99999999n");
    check_timeout(100000000, "100000u");
    check_timeout(100000001, "100001u");
    check_timeout(10 * TC_NS_PER_S, "10000000u");
    check_timeout(100 * TC_NS_PER_S, "100000m");
    check_timeout(99999999 * TC_NS_PER_MS + 1, "100000S");
    check_timeout(UINT64_MAX, "5124096H");
    uint64_t ns = 5;
    assert_int_equal(tc_h2_timeout_decode(tc_slice_str("100m"), &ns), 0);
    assert_int_equal(ns, 100 * TC_NS_PER_MS);
    assert_int_equal(tc_h2_timeout_decode(tc_slice_str("99999999H"), &ns), 0);
    assert_true(ns == UINT64_MAX);
    const char *const bad[] = {"", "1", "S", "1s", "123456789S", "-1S", "+1S", "1 S", "1.5S", "0x1S"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        assert_int_equal(tc_h2_timeout_decode(tc_slice_str(bad[i]), &ns), TORC_EPARSE);
    assert_int_equal(tc_h2_timeout_decode(tc_slice_str("0n"), &ns), 0);
    assert_true(ns == 0);
}

static void http_status_mapping(void **state)
{
    (void)state;
    const int want[][2] = {{400, TORC_STATUS_INTERNAL},          {401, TORC_STATUS_UNAUTHENTICATED},
                           {403, TORC_STATUS_PERMISSION_DENIED}, {404, TORC_STATUS_UNIMPLEMENTED},
                           {429, TORC_STATUS_UNAVAILABLE},       {500, TORC_STATUS_UNKNOWN},
                           {502, TORC_STATUS_UNAVAILABLE},       {503, TORC_STATUS_UNAVAILABLE},
                           {504, TORC_STATUS_UNAVAILABLE},       {301, TORC_STATUS_UNKNOWN}};
    for (size_t i = 0; i < TC_ARRAY_LEN(want); i++)
        assert_int_equal(tc_h2_code_from_http((unsigned)want[i][0]), want[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_messages),
        cmocka_unit_test(refuses_what_is_not_allowed),
        cmocka_unit_test(announced_size_takes_no_memory),
        cmocka_unit_test(large_message_grows),
        cmocka_unit_test(gzip_both_ways),
        cmocka_unit_test(gzip_bomb_is_bounded),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(http_status_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
