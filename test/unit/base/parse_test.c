/* Numbers, durations and sizes from text, encodings and UTF-8 (base/parse.h), XXH64, random numbers, JSON, and
 * validation errors, of which validation_errors_test.c has more. */
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/random.h"
#include "base/validation_errors.h"
#include "support/cmocka.h"

static void test_numbers(void **state)
{
    (void)state;
    uint64_t u = 7;
    int64_t i = 7;
    double d = 7;
    assert_int_equal(tc_parse_u64(tc_slice_str("18446744073709551615"), UINT64_MAX, &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(tc_parse_u64(tc_slice_str("18446744073709551616"), UINT64_MAX, &u), TORC_EPARSE);
    assert_int_equal(tc_parse_u64(tc_slice_str("65536"), 65535, &u), TORC_EPARSE);
    assert_int_equal(tc_parse_u64(tc_slice_str(""), 9, &u), TORC_EPARSE);
    assert_int_equal(tc_parse_u64(tc_slice_str("1x"), 9, &u), TORC_EPARSE);
    assert_int_equal(tc_parse_u64(tc_slice_str("+1"), 9, &u), TORC_EPARSE);
    assert_true(u == UINT64_MAX);
    assert_int_equal(tc_parse_i64(tc_slice_str("-9223372036854775808"), &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(tc_parse_i64(tc_slice_str("9223372036854775808"), &i), TORC_EPARSE);
    assert_int_equal(tc_parse_double(tc_slice_str("1.5e3"), &d), 0);
    assert_true(d == 1500.0);
    assert_int_equal(tc_parse_double(tc_slice_str("inf"), &d), TORC_EPARSE);
    assert_int_equal(tc_parse_double(tc_slice_str("1e999"), &d), TORC_EPARSE);
    assert_int_equal(tc_parse_double(tc_slice_str("0x10"), &d), TORC_EPARSE);
    assert_int_equal(tc_parse_double(tc_slice_of("", 1), &d), TORC_EPARSE);
    assert_int_equal(tc_parse_double(tc_slice_of("1\0002", 3), &d), TORC_EPARSE);
}

static void test_durations_and_sizes(void **state)
{
    (void)state;
    uint64_t v;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"250ms", 250000000}, {"1.5s", 1500000000}, {"2m", 120000000000}, {"1h", 3600000000000}, {"3us", 3000}};
    for (size_t k = 0; k < TC_ARRAY_LEN(good); k++) {
        assert_int_equal(tc_parse_duration_ns(tc_slice_str(good[k].text), &v), 0);
        assert_true(v == good[k].ns);
    }
    assert_int_equal(tc_parse_duration_ns(tc_slice_str("5"), &v), TORC_EPARSE);
    assert_int_equal(tc_parse_duration_ns(tc_slice_str("-5s"), &v), TORC_EPARSE);
    assert_int_equal(tc_parse_duration_ns(tc_slice_str("5 s"), &v), TORC_EPARSE);
    assert_int_equal(tc_parse_size(tc_slice_str("4M"), &v), 0);
    assert_true(v == 4194304);
    assert_int_equal(tc_parse_size(tc_slice_str("64k"), &v), 0);
    assert_true(v == 65536);
    assert_int_equal(tc_parse_size(tc_slice_str("1G"), &v), 0);
    assert_true(v == 1073741824);
    assert_int_equal(tc_parse_size(tc_slice_str("1.3"), &v), TORC_EPARSE);
    assert_int_equal(tc_parse_size(tc_slice_str("1T"), &v), TORC_EPARSE);
    assert_int_equal(tc_parse_size(tc_slice_of("1", 2), &v), TORC_EPARSE); /* a NUL is not a unit */
}

/* Asserts the encoding of `bytes` with padding and without (`bare`), and that both are decoded to `bytes`. */
static void round_trip_base64(const char *bytes, size_t len, const char *padded, const char *bare)
{
    struct tc_buf out = {0}, back = {0};
    tc_base64_encode(&out, bytes, len, true);
    assert_string_equal(tc_buf_cstr(&out), padded);
    assert_int_equal(tc_base64_decode(&back, tc_buf_slice(&out)), 0);
    assert_true(tc_slice_eq(tc_buf_slice(&back), tc_slice_of(bytes, len)));
    tc_buf_clear(&out);
    tc_buf_clear(&back);
    tc_base64_encode(&out, bytes, len, false);
    assert_string_equal(tc_buf_cstr(&out), bare);
    assert_int_equal(tc_base64_decode(&back, tc_buf_slice(&out)), 0);
    assert_true(tc_slice_eq(tc_buf_slice(&back), tc_slice_of(bytes, len)));
    tc_buf_fini(&out);
    tc_buf_fini(&back);
}

/* Some vectors of RFC 4648 section 10, and one with bytes that are not text. Padding may be left out, but not in
 * part. */
static void test_base64(void **state)
{
    (void)state;
    struct tc_buf out = {0};
    round_trip_base64("", 0, "", "");
    round_trip_base64("f", 1, "Zg==", "Zg");
    round_trip_base64("fo", 2, "Zm8=", "Zm8");
    round_trip_base64("foobar", 6, "Zm9vYmFy", "Zm9vYmFy");
    round_trip_base64("\0\xff\x80", 3, "AP+A", "AP+A");
    static const char *const bad[] = {"Z", "Zg=", "Z===", "Zg==Zg==", "Z g=", "Zm9v\n", "===="};
    for (size_t k = 0; k < TC_ARRAY_LEN(bad); k++)
        assert_int_equal(tc_base64_decode(&out, tc_slice_str(bad[k])), TORC_EPARSE);
    assert_int_equal(out.len, 0);
    tc_buf_fini(&out);
}

static void test_percent_and_hex(void **state)
{
    (void)state;
    struct tc_buf out = {0};
    tc_grpc_message_encode(&out, tc_slice_str("100% \n\xc3\xa9"));
    assert_string_equal(tc_buf_cstr(&out), "100%25 %0A%C3%A9");
    tc_buf_clear(&out);
    tc_grpc_message_decode(&out, tc_slice_str("a%20b%zz%4"));
    assert_string_equal(tc_buf_cstr(&out), "a b%zz%4");
    tc_buf_clear(&out);
    tc_grpc_message_decode(&out, tc_slice_str("%00told%00%0")); /* NUL becomes U+FFFD */
    assert_string_equal(tc_buf_cstr(&out), "\xef\xbf\xbdtold\xef\xbf\xbd%0");
    tc_buf_clear(&out);
    /* A listener template (A47) keeps ':' and '/', among others. */
    tc_uri_encode(&out, tc_slice_str("[::1]:8080/x"), ":/");
    assert_string_equal(tc_buf_cstr(&out), "%5B::1%5D:8080/x");
    tc_buf_clear(&out);
    tc_uri_encode(&out, tc_slice_str("svc/2nd component"), NULL);
    assert_string_equal(tc_buf_cstr(&out), "svc%2F2nd%20component");
    tc_buf_clear(&out);
    assert_int_equal(tc_uri_decode(&out, tc_slice_str("a%2Fb")), 0);
    assert_string_equal(tc_buf_cstr(&out), "a/b");
    tc_buf_clear(&out);
    assert_int_equal(tc_uri_decode(&out, tc_slice_str("a%2")), TORC_EPARSE);
    assert_int_equal(tc_hex_decode(&out, tc_slice_str("00fFa1")), 0);
    assert_memory_equal(out.data, "\x00\xff\xa1", 3);
    assert_int_equal(tc_hex_decode(&out, tc_slice_str("0g")), TORC_EPARSE);
    assert_int_equal(tc_hex_decode(&out, tc_slice_str("0")), TORC_EPARSE);
    tc_buf_fini(&out);
}

static void test_utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xef\xbf\xbf"};
    static const char *const bad[] = {"\x80", "\xc0\xaf", "\xe0\x80\xaf",         "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xc3", "\xe2\x82", "\xf8\x88\x80\x80\x80", "a\xff"};
    for (size_t k = 0; k < TC_ARRAY_LEN(good); k++)
        assert_true(tc_utf8_valid(tc_slice_str(good[k])));
    for (size_t k = 0; k < TC_ARRAY_LEN(bad); k++)
        assert_false(tc_utf8_valid(tc_slice_str(bad[k])));
    assert_true(tc_utf8_valid(tc_slice_of(NULL, 0)));
}

/* XXH64 with seed 0, as the reference implementation computes it. */
static void test_xxh64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t hash;
    } vectors[] = {
        {"", 0xef46db3751d8e999},
        {"a", 0xd24ec4f1a98c6e5b},
        {"abc", 0x44bc2cf5ad770999},
        {"foo", 0x33bf00a859c4ba3f},
        {"a,b", 0xf0e4978678bbcc60},
        {"127.0.0.1:10001_0", 0x929561360b132b86},
        {"[::1]:443_0", 0xc229292bb5f8c138},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0xe2df261fc2ec30eb},
    };
    for (size_t k = 0; k < TC_ARRAY_LEN(vectors); k++)
        assert_true(tc_xxh64_slice(tc_slice_str(vectors[k].text)) == vectors[k].hash);
}

static void test_random(void **state)
{
    (void)state;
    struct tc_rng a, b;
    int seen[5] = {0};
    tc_rng_init_seed(&a, 1);
    tc_rng_init_seed(&b, 1);
    for (int k = 0; k < 5000; k++) {
        assert_true(tc_rng_u64(&a) == tc_rng_u64(&b));
        seen[tc_rng_below(&a, 5)]++;
        tc_rng_below(&b, 5);
        double d = tc_rng_double(&a);
        assert_true(d >= 0 && d < 1);
        tc_rng_double(&b);
    }
    for (int k = 0; k < 5; k++)
        assert_in_range(seen[k], 850, 1150);
}

static void test_faults(void **state)
{
    (void)state;
    struct tc_validation_errors f = {0};
    assert_false(tc_validation_any(&f));
    tc_validation_push(&f, ".a");
    tc_validation_push(&f, "[%d]", 2);
    tc_validation_add(&f, "too %s", "big");
    tc_validation_pop(&f);
    tc_validation_add_at(&f, ".b", "missing");
    tc_validation_pop(&f);
    tc_validation_add(&f, "whole");
    assert_int_equal(f.count, 3);
    assert_string_equal(tc_validation_text(&f), "field a[2]: too big; field a.b: missing; whole");
    tc_validation_fini(&f);

    f = (struct tc_validation_errors){0};
    f.max_text_bytes = 50;
    for (int k = 0; k < 1000; k++)
        tc_validation_add(&f, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    assert_int_equal(f.count, 1000);
    assert_true(f.text.len <= 53);
    assert_true(tc_utf8_valid(tc_buf_slice(&f.text)));
    tc_validation_fini(&f);
}

static void test_json(void **state)
{
    (void)state;
    struct tc_validation_errors f = {0};
    char *why = NULL;
    const char *s = "unset";
    uint64_t n = 1;
    bool flag = false;
    static const struct tc_slice with_nul[] = {{"{}\0", 3}, {"{} \0\n", 5}, {"\0{}", 3}, {"{\"a\":\0 1}", 8}};
    for (size_t k = 0; k < TC_ARRAY_LEN(with_nul); k++) {
        assert_null(tc_json_parse(with_nul[k], &why));
        assert_non_null(strstr(why, ": a NUL byte is in the text"));
        tc_free(why);
    }
    assert_null(tc_json_parse(tc_slice_of("{] \0", 4), &why)); /* the NUL is behind the syntax error */
    assert_null(strstr(why, "NUL"));
    tc_free(why);
    assert_null(tc_json_parse(tc_slice_str("{\"a\":1,\"a\":2}"), &why));
    assert_non_null(strstr(why, "line 1"));
    tc_free(why);
    assert_null(tc_json_parse(tc_slice_str("{\"\\\xc3\xa9\":1}"), &why)); /* the reason quotes half a character */
    assert_true(tc_utf8_valid(tc_slice_str(why)));
    assert_non_null(strstr(why, "invalid escape"));
    tc_free(why);
    why = NULL;
    json_t *v = tc_json_parse(tc_slice_str("{\"s\":\"x\",\"n\":\"42\",\"b\":true,\"z\":null,\"neg\":-1}"), &why);
    assert_non_null(v);
    assert_true(tc_json_get_str(v, "s", &s, &f));
    assert_string_equal(s, "x");
    assert_true(tc_json_get_u64(v, "n", 100, &n, &f));
    assert_int_equal(n, 42);
    assert_true(tc_json_get_bool(v, "b", &flag, &f));
    assert_false(tc_json_get_str(v, "z", &s, &f));
    assert_false(tc_validation_any(&f));
    assert_false(tc_json_get_u64(v, "n", 41, &n, &f));
    assert_false(tc_json_get_u64(v, "neg", 41, &n, &f));
    assert_false(tc_json_get_bool(v, "s", &flag, &f));
    assert_string_equal(tc_validation_text(&f),
                        "field n: must be a whole number from 0 to 41; field neg: must be a whole "
                        "number from 0 to 41; field s: must be a boolean, is string");
    tc_validation_fini(&f);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_durations_and_sizes),
        cmocka_unit_test(test_base64),  cmocka_unit_test(test_percent_and_hex),
        cmocka_unit_test(test_utf8),    cmocka_unit_test(test_xxh64),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
