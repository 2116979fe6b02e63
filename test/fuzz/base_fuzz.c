/* The parsers of base/: numbers, durations, sizes, encodings, UTF-8, slices.
 *
 * Each parser gets the whole input. Its result is compared with, or judged by:
 *
 *   a model, or the C library   integers, accepted doubles, decoded grpc-message, UTF-8, tc_slice_find
 *   encoded and decoded again   base64, hex, grpc-message, URI escapes
 *   a few properties            durations and sizes (range, characters), split and trimmed slices */
#include <math.h>

#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"

/* Returns true if the slice is not empty and has only characters of `allowed`. */
static bool only(struct tc_slice s, const char *allowed)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] == '\0' || !strchr(allowed, s.data[i]))
            return false;
    return s.len > 0;
}

static void check_integers(struct tc_slice s)
{
    uint64_t u = 1, model = 0;
    int64_t i = 1;
    bool fits = only(s, "0123456789");
    for (size_t k = 0; fits && k < s.len; k++) {
        uint64_t digit = (uint64_t)(s.data[k] - '0');
        fits = model <= (UINT64_MAX - digit) / 10;
        model = model * 10 + digit;
    }
    TC_FUZZ_CHECK((tc_parse_u64(s, UINT64_MAX, &u) == 0) == fits);
    TC_FUZZ_CHECK(u == (fits ? model : 1));
    u = 1;
    TC_FUZZ_CHECK((tc_parse_u64(s, 65535, &u) == 0) == (fits && model <= 65535));
    if (tc_parse_i64(s, &i) == 0) {
        char *text = tc_asprintf("%lld", (long long)i), *end;
        TC_FUZZ_CHECK(strtoll(text, &end, 10) == i && only(s, "-0123456789"));
        TC_FUZZ_CHECK(i < 0 ? s.data[0] == '-' : s.data[0] == '-' || (fits && model == (uint64_t)i));
        tc_free(text);
    }
}

static void check_numbers(struct tc_slice s)
{
    double d;
    uint64_t v;
    if (tc_parse_double(s, &d) == 0) {
        char *text = tc_slice_dup(s), *end;
        TC_FUZZ_CHECK(only(s, "0123456789.eE+-") && isfinite(d));
        TC_FUZZ_CHECK(strtod(text, &end) == d && *end == '\0' && end == text + s.len);
        tc_free(text);
    }
    if (tc_parse_duration_ns(s, &v) == 0)
        TC_FUZZ_CHECK(only(s, "0123456789.numsh") && v < 9000000000000000000u);
    if (tc_parse_size(s, &v) == 0)
        TC_FUZZ_CHECK(only(s, "0123456789.kMG") && v <= 9000000000000000000u);
}

static void check_encodings(struct tc_slice s)
{
    struct tc_buf a = {0}, b = {0};
    for (int pad = 0; pad < 2; pad++) {
        tc_buf_clear(&a);
        tc_buf_clear(&b);
        tc_base64_encode(&a, s.data, s.len, pad);
        TC_FUZZ_CHECK(tc_base64_decode(&b, tc_buf_slice(&a)) == 0 && tc_slice_eq(tc_buf_slice(&b), s));
    }
    tc_buf_clear(&a);
    if (tc_base64_decode(&a, s) == 0) {
        tc_buf_clear(&b);
        tc_base64_encode(&b, a.data, a.len, true);
        TC_FUZZ_CHECK(b.len == (s.len + 3) / 4 * 4);
    }
    TC_FUZZ_CHECK(tc_base64_decode(&a, tc_slice_str("?")) != 0);
    tc_buf_clear(&a);
    tc_buf_clear(&b);
    tc_hex_encode(&a, s.data, s.len);
    TC_FUZZ_CHECK(tc_hex_decode(&b, tc_buf_slice(&a)) == 0 && tc_slice_eq(tc_buf_slice(&b), s));
    tc_buf_clear(&a);
    TC_FUZZ_CHECK(tc_hex_decode(&a, s) == 0 ? a.len * 2 == s.len : a.len == 0);
    tc_buf_fini(&a);
    tc_buf_fini(&b);
}

/* Returns the value of a hexadecimal digit of either case; -1 for any other character. */
static int model_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
    return !at || (c < '0') ? -1 : (int)(at - digits);
}

/* Decodes grpc-message, with U+FFFD for each escaped NUL. */
static void model_message(struct tc_buf *out, struct tc_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        int hi = s.data[i] == '%' && i + 2 < s.len ? model_digit(s.data[i + 1]) : -1;
        int lo = hi >= 0 ? model_digit(s.data[i + 2]) : -1;
        if (lo < 0) {
            tc_buf_append_char(out, s.data[i]);
            continue;
        }
        i += 2;
        if (hi || lo)
            tc_buf_append_char(out, (char)(hi << 4 | lo));
        else
            tc_buf_append_str(out, "\xef\xbf\xbd");
    }
}

static void check_messages(struct tc_slice s)
{
    struct tc_buf a = {0}, b = {0}, c = {0};
    tc_grpc_message_encode(&a, s);
    for (size_t i = 0; i < a.len; i++)
        TC_FUZZ_CHECK(a.data[i] >= 0x20 && a.data[i] <= 0x7e);
    tc_grpc_message_decode(&b, tc_buf_slice(&a));
    TC_FUZZ_CHECK(b.len == 0 || !memchr(b.data, 0, b.len));
    TC_FUZZ_CHECK(tc_slice_eq(tc_buf_slice(&b), s) || memchr(s.data, 0, s.len));
    tc_buf_clear(&b);
    tc_grpc_message_decode(&b, s);
    model_message(&c, s);
    TC_FUZZ_CHECK(tc_slice_eq(tc_buf_slice(&b), tc_buf_slice(&c)));
    tc_buf_fini(&a);
    tc_buf_fini(&b);
    tc_buf_fini(&c);
}

static void check_escapes(struct tc_slice s)
{
    struct tc_buf a = {0}, b = {0};
    tc_uri_encode(&a, s, "/");
    TC_FUZZ_CHECK(tc_uri_decode(&b, tc_buf_slice(&a)) == 0 && tc_slice_eq(tc_buf_slice(&b), s));
    tc_buf_clear(&b);
    if (tc_uri_decode(&b, s) == 0) {
        tc_buf_clear(&a);
        tc_uri_encode(&a, tc_buf_slice(&b), NULL);
        struct tc_buf c = {0};
        TC_FUZZ_CHECK(tc_uri_decode(&c, tc_buf_slice(&a)) == 0);
        TC_FUZZ_CHECK(tc_slice_eq(tc_buf_slice(&c), tc_buf_slice(&b)));
        tc_buf_fini(&c);
    }
    tc_buf_fini(&a);
    tc_buf_fini(&b);
}

/* Returns the length of the UTF-8 character at p, where `left` bytes are left; 0 if it is malformed. The rows are those
 * of RFC 3629 section 4: the lowest and the highest value of each byte. */
static size_t utf8_character(const unsigned char *p, size_t left)
{
    static const unsigned char rows[][8] = {
        {0x00, 0x7f},
        {0xc2, 0xdf, 0x80, 0xbf},
        {0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf},
        {0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf},
        {0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf},
        {0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf},
        {0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
    };
    for (size_t r = 0; r < TC_ARRAY_LEN(rows); r++) {
        size_t n = r == 0 ? 1 : r == 1 ? 2 : r < 6 ? 3 : 4, i = 0;
        while (i < n && i < left && p[i] >= rows[r][2 * i] && p[i] <= rows[r][2 * i + 1])
            i++;
        if (i == n)
            return n;
    }
    return 0;
}

static void check_utf8(struct tc_slice s)
{
    const unsigned char *p = (const unsigned char *)s.data;
    size_t at = 0, n = 1;
    while (at < s.len && n) {
        n = utf8_character(p + at, s.len - at);
        at += n;
    }
    TC_FUZZ_CHECK(tc_utf8_valid(s) == (n != 0));
}

static ptrdiff_t model_find(struct tc_slice a, struct tc_slice needle)
{
    for (size_t i = 0; i + needle.len <= a.len; i++)
        if (needle.len == 0 || memcmp(a.data + i, needle.data, needle.len) == 0)
            return (ptrdiff_t)i;
    return -1;
}

static void check_slices(struct tc_slice s)
{
    size_t half = s.len / 2, parts = 0, bytes = 0;
    struct tc_slice needle = tc_slice_of(half ? s.data + half : s.data, TC_MIN(s.len - half, 3)), part, rest = s;
    struct tc_slice hay = tc_slice_of(s.data, half);
    bool more = true;
    TC_FUZZ_CHECK(tc_slice_find(s, needle) == model_find(s, needle));
    TC_FUZZ_CHECK(tc_slice_find(hay, needle) == model_find(hay, needle));
    TC_FUZZ_CHECK(tc_slice_find(hay, needle) < 0 || tc_slice_ifind(hay, needle) >= 0);
    while (tc_slice_split(&rest, &more, ',', &part)) {
        parts++;
        bytes += part.len;
    }
    TC_FUZZ_CHECK(parts >= 1 && bytes + parts - 1 == s.len);
    part = tc_slice_trim(s);
    TC_FUZZ_CHECK(part.len <= s.len);
    TC_FUZZ_CHECK(part.len == 0 || (part.data[0] != 0x20 && part.data[part.len - 1] != 0x20));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_slice s = tc_slice_of(size ? data : NULL, size); /* an empty slice may have NULL */
    check_integers(s);
    check_numbers(s);
    check_encodings(s);
    check_messages(s);
    check_escapes(s);
    check_utf8(s);
    check_slices(s);
    return 0;
}
