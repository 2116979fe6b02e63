/* Field paths of validation errors: segments that are text at once, and segments that become text when the path is
 * needed, in any order; escaped keys; the report of each error; and the limit on the text. */
#include "support/cmocka.h"

#include <stdio.h>

#include "base/validation_errors.h"

static void on_error(void *arg, struct tc_slice path, struct tc_slice error)
{
    tc_buf_printf(arg, "<%.*s|%.*s>", (int)path.len, path.data ? path.data : "", (int)error.len, error.data);
}

static void paths_of_both_kinds(void **state)
{
    (void)state;
    struct tc_validation_errors f = {0};
    tc_validation_push_index(&f, ".endpoints", 2);
    tc_validation_push(&f, ".map[\"%s\"]", "key");
    tc_validation_push_field(&f, ".address");
    tc_validation_add_at(&f, ".port", "is no port");
    tc_validation_pop(&f);
    tc_validation_add(&f, "is no map");
    tc_validation_push_index(&f, ".list", 0);
    tc_validation_pop(&f); /* never shown */
    tc_validation_pop(&f);
    tc_validation_push_field(&f, ".other");
    tc_validation_add(&f, "is missing");
    tc_validation_pop(&f);
    tc_validation_pop(&f);
    tc_validation_add(&f, "is nothing");
    assert_string_equal(tc_validation_text(&f), "field endpoints[2].map[\"key\"].address.port: is no port; "
                                                "field endpoints[2].map[\"key\"]: is no map; "
                                                "field endpoints[2].other: is missing; is nothing");
    assert_int_equal(f.count, 4);
    tc_validation_fini(&f);
}

/* A segment is shown and popped, and another one is pushed: the path has the new segment instead of the old one. */
static void the_path_follows(void **state)
{
    (void)state;
    struct tc_validation_errors f = {0};
    tc_validation_push_field(&f, ".a");
    for (size_t i = 0; i < 3; i++) {
        char want[32];
        tc_validation_push_index(&f, ".b", i);
        snprintf(want, sizeof(want), "a.b[%zu]", i);
        assert_true(tc_slice_eq_str(tc_validation_path(&f), want));
        tc_validation_pop(&f);
    }
    assert_true(tc_slice_eq_str(tc_validation_path(&f), "a"));
    tc_validation_pop(&f);
    assert_int_equal(tc_validation_path(&f).len, 0);
    tc_validation_push_field(&f, ".c");
    assert_true(tc_slice_eq_str(tc_validation_path(&f), "c"));
    assert_false(tc_validation_any(&f));
    tc_validation_fini(&f);
}

/* Each error is reported with its path as it is added, whatever max_text_bytes is, and no text is collected. */
static void each_is_reported(void **state)
{
    (void)state;
    struct tc_buf told = {0};
    struct tc_validation_errors f = {.report = on_error, .arg = &told, .max_text_bytes = 8};
    tc_validation_push_field(&f, ".a");
    for (size_t i = 0; i < 3; i++)
        tc_validation_add_at(&f, ".b", "is %zu", i);
    tc_validation_pop(&f);
    tc_validation_add(&f, "is nothing");
    assert_string_equal(tc_buf_cstr(&told), "<a.b|is 0><a.b|is 1><a.b|is 2><|is nothing>");
    assert_int_equal(f.count, 4);
    assert_string_equal(tc_validation_text(&f), "");
    tc_validation_fini(&f);
    tc_buf_fini(&told);
}

static void keys_are_escaped(void **state)
{
    (void)state;
    struct tc_validation_errors f = {0};
    tc_validation_push_field(&f, ".map");
    tc_validation_push_key(&f, "", "a\"]: \\x\n; field b");
    tc_validation_add_at(&f, ".c", "is bad");
    assert_string_equal(tc_validation_text(&f), "field map[\"a\\\"]: \\\\x\\u000a; field b\"].c: is bad");
    tc_validation_pop(&f);
    assert_true(tc_slice_eq_str(tc_validation_path(&f), "map"));
    tc_validation_push_key(&f, ".children", "\"]");
    assert_true(tc_slice_eq_str(tc_validation_path(&f), "map.children[\"\\\"]\"]"));
    tc_validation_pop(&f);
    tc_validation_fini(&f);
}

/* A text is cut at max_text_bytes, or up to three bytes earlier so that no UTF-8 character is cut in two. */
static void long_texts_are_cut(void **state)
{
    static const char *const rows[][2] = {
        {"1234567\xe2\x82\xac\xe2\x82\xac", "1234567\xe2\x82\xac..."},
        {"12345678\xe2\x82\xac\xe2\x82\xac", "12345678..."},
        {"123456789\xe2\x82\xac\xe2\x82\xac", "123456789..."},
        {"1234567\xf0\x9f\x98\x80.", "1234567..."},
        {"a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", "a\x80\x80\x80\x80\x80\x80..."},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_validation_errors f = {.max_text_bytes = 10};
        tc_validation_add(&f, "%s", rows[i][0]);
        assert_string_equal(tc_validation_text(&f), rows[i][1]);
        tc_validation_fini(&f);
    }
}

/* An error that fills the text to the byte is whole. The next error leaves the dots behind it. */
static void a_full_text_says_that_more_follow(void **state)
{
    (void)state;
    struct tc_validation_errors f = {.max_text_bytes = 10};
    tc_validation_add(&f, "0123456789");
    assert_string_equal(tc_validation_text(&f), "0123456789");
    tc_validation_add(&f, "more");
    tc_validation_add(&f, "yet more");
    assert_string_equal(tc_validation_text(&f), "0123456789...");
    assert_int_equal(f.count, 3);
    tc_validation_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_both_kinds), cmocka_unit_test(the_path_follows),
        cmocka_unit_test(each_is_reported),    cmocka_unit_test(keys_are_escaped),
        cmocka_unit_test(long_texts_are_cut),  cmocka_unit_test(a_full_text_says_that_more_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
