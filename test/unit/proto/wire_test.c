/* proto/wire: reading the outermost fields of a message, well-formed and malformed, and appending fields. */
#include "support/cmocka.h"

#include "proto/wire.h"

#define BYTES(text) tc_slice_of("" text, sizeof(text) - 1)

static void every_kind_of_field(void **state)
{
    (void)state;
    /* 1: "ab", 2: varint 300, 3: fixed64, 4: fixed32, 16: "" */
    struct tc_slice rest = BYTES("\x0a\x02"
                                 "ab"
                                 "\x10\xac\x02"
                                 "\x19________"
                                 "\x25____"
                                 "\x82\x01\x00");
    static const uint64_t numbers[] = {1, 2, 3, 4, 16};
    struct tc_wire_field f;
    for (size_t i = 0; i < TC_ARRAY_LEN(numbers); i++) {
        assert_true(tc_wire_next(&rest, &f));
        assert_int_equal(f.number, numbers[i]);
        assert_int_equal(f.is_bytes, i == 0 || i == 4);
        assert_int_equal(f.is_varint, i == 1);
        assert_int_equal(f.varint, i == 1 ? 300 : 0);
        assert_int_equal(f.is_64bit, i == 2);
        if (i == 0)
            assert_true(tc_slice_eq_str(f.value, "ab"));
        if (i == 2)
            assert_true(tc_slice_eq_str(f.value, "________"));
        if (i == 4)
            assert_int_equal(f.value.len, 0);
    }
    assert_false(tc_wire_next(&rest, &f));
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    static const struct tc_slice bad[] = {
        {"", 0},
        {"\x80", 1}, /* a tag that is cut off */
        {"\x0a\x05"
         "ab",
         4},                                                  /* a length past the end */
        {"\x0b\x0c", 2},                                      /* a group */
        {"\x0a", 1},                                          /* no length */
        {"\x10\x80", 2},                                      /* half a varint */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a varint of eleven bytes */
        {"\x19"
         "1234",
         5},                                                  /* half a fixed64 */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a length of 2^64 - 1 */
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_slice rest = bad[i];
        struct tc_wire_field f;
        assert_false(tc_wire_next(&rest, &f));
        assert_null(tc_wire_find(bad[i], 1).data);
    }
}

static void last_one_is_found(void **state)
{
    (void)state;
    struct tc_slice m = BYTES("\x0a\x01x\x12\x01y\x0a\x01z\x08\x07\x0b");
    assert_true(tc_slice_eq_str(tc_wire_find(m, 1), "z"));
    assert_true(tc_slice_eq_str(tc_wire_find(m, 2), "y"));
    assert_null(tc_wire_find(m, 3).data);
}

static void what_is_appended_is_read_again(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, 3000000};
    for (size_t i = 0; i < TC_ARRAY_LEN(lengths); i++) {
        struct tc_buf value = {0}, message = {0};
        struct tc_wire_field f;
        for (size_t n = 0; n < lengths[i]; n++)
            tc_buf_append_char(&value, (char)(n * 31));
        tc_wire_append(&message, 1, tc_buf_slice(&value));
        tc_wire_append(&message, 1000, tc_slice_str("next"));
        struct tc_slice rest = tc_buf_slice(&message);
        assert_true(tc_wire_next(&rest, &f));
        assert_true(f.is_bytes && f.number == 1 && tc_slice_eq(f.value, tc_buf_slice(&value)));
        assert_true(tc_wire_next(&rest, &f));
        assert_true(f.is_bytes && f.number == 1000 && tc_slice_eq_str(f.value, "next"));
        assert_int_equal(rest.len, 0);
        tc_buf_fini(&value);
        tc_buf_fini(&message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_field),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(last_one_is_found),
        cmocka_unit_test(what_is_appended_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
