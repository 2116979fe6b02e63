/* Types of base for text and bytes: slices, buffers, shared strings (struct tc_rstr), header lists, and statuses. Also
 * the cut of long names in messages (TC_SHOWN), the budget of arenas, and vectors. */
#include <string.h>

#include "base/headers.h"
#include "base/mem.h"
#include "base/rstr.h"
#include "base/status.h"
#include "base/vec.h"
#include "support/cmocka.h"

static void test_slices(void **state)
{
    (void)state;
    struct tc_slice s = tc_slice_str("  a,b,,c ");
    struct tc_slice part;
    bool more = true;
    const char *want[] = {"a", "b", "", "c"};
    size_t n = 0;
    s = tc_slice_trim(s);
    while (tc_slice_split(&s, &more, ',', &part))
        assert_true(tc_slice_eq_str(part, want[n++]));
    assert_int_equal(n, 4);
    assert_true(tc_slice_ieq(tc_slice_str("ABC"), tc_slice_str("abc")));
    assert_false(tc_slice_ieq(tc_slice_str("ABC"), tc_slice_str("abd")));
    assert_int_equal(tc_slice_find(tc_slice_str("hello"), tc_slice_str("lo")), 3);
    assert_int_equal(tc_slice_find(tc_slice_str("hello"), tc_slice_str("ol")), -1);
    assert_int_equal(tc_slice_ifind(tc_slice_str("heLLo"), tc_slice_str("llo")), 2);
    assert_true(tc_slice_starts(tc_slice_str("abc"), tc_slice_of(NULL, 0)));
    assert_true(tc_slice_ends(tc_slice_str("abc"), tc_slice_str("bc")));
    assert_false(tc_slice_ends(tc_slice_str("c"), tc_slice_str("bc")));
    assert_true(tc_slice_istarts(tc_slice_str("Content-Type"), tc_slice_str("content-")));
    assert_true(tc_slice_iends(tc_slice_str("x.EXAMPLE.com"), tc_slice_str(".example.COM")));
}

/* Comparisons that ignore case look at every byte, also behind a NUL. */
static void test_any_case(void **state)
{
    (void)state;
    struct tc_slice upper = tc_slice_of("A\0B", 3), lower = tc_slice_of("a\0b", 3), other = tc_slice_of("a\0c", 3);
    assert_true(tc_slice_ieq(upper, lower));
    assert_false(tc_slice_ieq(upper, other));
    assert_true(tc_slice_istarts(upper, lower));
    assert_false(tc_slice_iends(upper, other));
    assert_int_equal(tc_slice_ifind(tc_slice_of("xa\0b", 4), upper), 1);
    assert_int_equal(tc_slice_ifind(upper, other), -1);
    const struct tc_slice alphabet = tc_slice_str("0abcDEFghijklmnopqrstuvwxyz0123456789");
    assert_int_equal(tc_slice_ifind(alphabet, tc_slice_str("ABCdefghijklmnopqrstuvwxyz0123456789")), 1);
    assert_int_equal(tc_slice_ifind(alphabet, tc_slice_str("ABCdefghijklmnopqrstuvwxyz012345678x")), -1);
    assert_int_equal(tc_slice_ifind(tc_slice_str("a"), alphabet), -1);
    assert_false(tc_slice_ieq(tc_slice_str("["), tc_slice_str("{"))); /* no letters, 0x20 apart */
}

/* Shown names: the whole name, or the whole characters of its first TC_SHOW_MAX bytes and "...". */
static void test_shown_names(void **state)
{
    (void)state;
    char name[TC_SHOW_MAX + 8] = {0};
    memset(name, 'n', TC_SHOW_MAX);
    char *text = tc_asprintf("<" TC_SHOWN ">", TC_SHOW(name));
    assert_int_equal(strlen(text), TC_SHOW_MAX + 2);
    tc_free(text);
    name[TC_SHOW_MAX] = 'x';
    text = tc_asprintf("<" TC_SHOWN ">", TC_SHOW(name));
    assert_int_equal(strlen(text), TC_SHOW_MAX + 5);
    assert_string_equal(text + TC_SHOW_MAX, "n...>");
    tc_free(text);
    memcpy(name + TC_SHOW_MAX - 2, "\xe2\x82\xac", 4); /* ends one byte beyond TC_SHOW_MAX */
    assert_int_equal(tc_show_length(name), TC_SHOW_MAX - 2);
    assert_string_equal(tc_show_rest(name), "...");
    memcpy(name + TC_SHOW_MAX - 3, "\xe2\x82\xac", 4);
    assert_int_equal(tc_show_length(name), TC_SHOW_MAX);
    assert_string_equal(tc_show_rest(name), "");
    memset(name, 0x80, TC_SHOW_MAX + 1); /* not UTF-8: at most three bytes are dropped */
    assert_int_equal(tc_show_length(name), TC_SHOW_MAX - 3);
    assert_int_equal(tc_show_length(""), 0);
}

static void test_buffers(void **state)
{
    (void)state;
    struct tc_buf b = {0};
    char expect[300];
    assert_string_equal(tc_buf_cstr(&b), "");
    for (int i = 0; i < 100; i++)
        tc_buf_printf(&b, "%02d ", i);
    assert_int_equal(b.len, 300);
    tc_buf_consume(&b, 3);
    assert_memory_equal(b.data, "01 02", 5);
    tc_buf_clear(&b);
    memset(expect, 'x', sizeof(expect));
    tc_buf_printf(&b, "%.*s", 299, expect);
    assert_int_equal(b.len, 299);
    char *taken = tc_buf_take(&b);
    assert_int_equal(strlen(taken), 299);
    assert_null(b.data);
    tc_free(taken);
}

static void test_shared_strings(void **state)
{
    (void)state;
    struct tc_rstr *a = tc_rstr_printf("%d-%s", 7, "x");
    struct tc_rstr *b = tc_rstr_ref(a);
    tc_rstr_unref(a);
    assert_string_equal(b->data, "7-x");
    assert_true(tc_rstr_eq(NULL, NULL));
    struct tc_rstr *empty = tc_rstr_str("");
    assert_true(tc_rstr_eq(NULL, empty));
    assert_false(tc_rstr_eq(b, empty));
    tc_rstr_unref(empty);
    tc_rstr_unref(b);
    tc_rstr_unref(NULL);
}

static void test_arena_budget(void **state)
{
    (void)state;
    struct tc_arena a;
    tc_arena_init(&a, 64, 1000);
    assert_non_null(tc_arena_alloc(&a, 0)); /* NULL only if the budget is exceeded */
    assert_non_null(tc_arena_calloc(&a, 0, 8));
    char *p = tc_arena_alloc(&a, 100);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    memset(p, 1, 100);
    assert_non_null(tc_arena_alloc(&a, 500));
    assert_null(tc_arena_alloc(&a, 500));
    assert_null(tc_arena_alloc(&a, SIZE_MAX));
    assert_null(tc_arena_calloc(&a, SIZE_MAX / 2, 16));
    tc_arena_reset(&a);
    assert_non_null(tc_arena_alloc(&a, 900));
    tc_arena_fini(&a);
}

static void test_headers(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_headers h;
    struct tc_buf scratch = {0};
    struct tc_slice v;
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&h, &arena);
    for (int i = 0; i < 20; i++)
        assert_int_equal(tc_headers_add_copy(&h, tc_slice_str(i % 2 ? "b" : "a"), tc_slice_str("v")), 0);
    assert_int_equal(h.len, 20);
    assert_true(tc_headers_joined(&h, tc_slice_str("a"), &scratch, &v));
    assert_true(tc_slice_eq_str(v, "v,v,v,v,v,v,v,v,v,v"));
    assert_false(tc_headers_joined(&h, tc_slice_str("c"), &scratch, &v));
    assert_null(tc_headers_find(&h, tc_slice_str("c")));
    assert_true(tc_header_name_valid(tc_slice_str("x-a_b.9")));
    assert_false(tc_header_name_valid(tc_slice_str("X-a")));
    assert_false(tc_header_name_valid(tc_slice_str("")));
    assert_false(tc_header_name_valid(tc_slice_str("a b")));
    assert_true(tc_header_value_valid(tc_slice_str("plain ~")));
    assert_false(tc_header_value_valid(tc_slice_str("tab\t")));
    assert_true(tc_header_is_binary(tc_slice_str("x-bin")));
    assert_false(tc_header_is_binary(tc_slice_str("xbin")));
    tc_buf_fini(&scratch);
    tc_arena_fini(&arena);
}

static void test_statuses(void **state)
{
    (void)state;
    struct tc_status s = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no %s", "way");
    struct tc_status t = tc_status_ref(&s);
    assert_true(tc_status_eq(&s, &t));
    assert_string_equal(tc_status_text(&t), "no way");
    tc_status_set(&s, (struct tc_status){0});
    assert_true(tc_status_ok(&s));
    assert_false(tc_status_eq(&s, &t));
    tc_status_fini(&t);
    for (int code = 0; code <= 16; code++)
        assert_int_equal(torc_status_code_from_name(torc_status_code_name(code)), code);
    assert_string_equal(torc_status_code_name(17), "UNKNOWN");
    assert_string_equal(torc_status_code_name(-1), "UNKNOWN");
    assert_int_equal(torc_status_code_from_name("nope"), -1);
}

static void test_vectors(void **state)
{
    (void)state;
    TC_VEC(int) v = {0};
    for (int i = 0; i < 100; i++)
        *tc_vec_push(&v) = i;
    tc_vec_remove(&v, 0);
    tc_vec_remove(&v, 98);
    assert_int_equal(v.len, 98);
    assert_int_equal(v.data[0], 1);
    assert_int_equal(v.data[97], 98);
    tc_vec_fini(&v);
    assert_null(v.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),       cmocka_unit_test(test_buffers),  cmocka_unit_test(test_shared_strings),
        cmocka_unit_test(test_arena_budget), cmocka_unit_test(test_headers),  cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_vectors),      cmocka_unit_test(test_any_case), cmocka_unit_test(test_shown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
