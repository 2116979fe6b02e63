/* Regular expressions: matches, refusals, and bounds on memory and time.
 *
 * Each test compiles its regexes and frees them. `matches` gives each match a budget of its own; tests of budgets call
 * the functions themselves. Time is CPU time, so that other processes do not count. Bounds that depend on the machine
 * are checked only if FOOTPRINT_MEASURED, except those of ambiguous_patterns_are_fast. One thread. */
#include "regex/regex.h"

#include <string.h>
#include <time.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"

#include "base/mem.h"

/* Returns the regex of a pattern that must be accepted. The caller frees it (tc_regex_free). */
static struct tc_regex *compile(const char *pattern)
{
    char *why = NULL;
    struct tc_regex *r = tc_regex_new(tc_slice_str(pattern), NULL, &why);
    assert_null(why);
    assert_non_null(r);
    return r;
}

/* Asserts that the pattern is refused and that the error contains `reason`. `limits` may be NULL: the defaults. */
static void assert_refused(const char *pattern, const struct tc_regex_limits *limits, const char *reason)
{
    char *why = NULL;
    assert_null(tc_regex_new(tc_slice_str(pattern), limits, &why));
    assert_non_null(why);
    assert_non_null(strstr(why, reason));
    tc_free(why);
}

static bool matches(const struct tc_regex *r, struct tc_slice text)
{
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    return tc_regex_full_match(r, text, &steps);
}

static void full_match_covers_the_whole_text(void **state)
{
    (void)state;
    struct tc_regex *r = compile("a+b|c");
    assert_true(matches(r, tc_slice_str("aab")));
    assert_true(matches(r, tc_slice_str("c")));
    assert_false(matches(r, tc_slice_str("xaab")));
    assert_false(matches(r, tc_slice_str("aabx")));
    assert_false(matches(r, tc_slice_of(NULL, 0)));
    tc_regex_free(r);
    tc_regex_free(NULL);
}

static void bad_patterns_are_refused(void **state)
{
    (void)state;
    assert_refused("a[", NULL, "missing ]");
    assert_refused("(a", NULL, "missing )");
    assert_refused("(?=a)", NULL, "invalid perl operator"); /* RE2 has no look-ahead */
    assert_refused("(a)\\1", NULL, "invalid escape");
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    char long_pattern[TC_REGEX_PATTERN_MAX_BYTES + 2];
    memset(long_pattern, 'a', sizeof(long_pattern) - 1);
    long_pattern[sizeof(long_pattern) - 1] = '\0';
    assert_refused(long_pattern, NULL, "longer than 8192");
    long_pattern[TC_REGEX_PATTERN_MAX_BYTES] = '\0';
    tc_regex_free(compile(long_pattern));
    assert_refused("abcd", &(struct tc_regex_limits){.pattern_bytes = 3}, "longer than 3");
    /* Small text, large program. */
    assert_refused("((((a{100}){100}){100}){100}){100}", NULL, "");
    char letters[3 * 86 + 1] = "";
    for (int i = 0; i < 86; i++)
        memcpy(&letters[3 * i], "\\pL", 4);
    assert_refused(letters, NULL, "pattern too large - 86 Unicode classes, more than 85");
    assert_refused("(\\pL{500}){2}", &(struct tc_regex_limits){.memory_bytes = 65536}, "");
}

static void memory_grows_with_the_program(void **state)
{
    (void)state;
    struct tc_regex *small = compile("a"), *large = compile("\\pL{100}");
    assert_true(tc_regex_memory(small) < 4096);
    assert_true(tc_regex_memory(large) > 100000);
    tc_regex_free(small);
    tc_regex_free(large);
}

/* The cost of parsing a pattern: Unicode classes cost more than the program's size shows. */
static void cost_of_reading(void **state)
{
    (void)state;
    assert_int_equal(tc_regex_reading_cost(tc_slice_str("")), 0);
    assert_int_equal(tc_regex_reading_cost(tc_slice_str("abc")), 48);
    assert_true(tc_regex_reading_cost(tc_slice_str("(?:\\pL\\P{Han}){0}")) > 2 * 24576);
    static const char long_one[8192]; /* a character costs more in a long pattern */
    assert_int_equal(tc_regex_reading_cost(tc_slice_of(long_one, 8192)), 8192 * 357);
    assert_int_equal(tc_regex_reading_cost(tc_slice_of(long_one, 4096)), 4096 * 186);
}

/* Returns the CPU time of a match that fails, in microseconds: the least of five runs. */
static double match_us(const struct tc_regex *r, struct tc_slice text)
{
    double least = 1e9;
    for (int i = 0; i < 5; i++) {
        struct timespec a, b;
        uint64_t steps = UINT64_MAX;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        assert_false(tc_regex_full_match(r, text, &steps));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        double us = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
        least = us < least ? us : least;
    }
    return least;
}

/* Counted patterns that match in many ways still run as an automaton: a match of 50 KB takes less than 5 ms of CPU
 * time. Without an automaton the match takes tens of milliseconds. */
static void ambiguous_patterns_are_fast(void **state)
{
    (void)state;
    static const char *const patterns[] = {"^(.*a){12}x",    "(.*a){25}x",    "(.*a){50}x",
                                           "(.*[a-c]){20}z", "(.*a.*b){20}x", "([a-z0-9]*[^;]*){12}!",
                                           "(\\w+\\s?){20}!"};
    static char texts[2][50000];
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof(texts[0]); i++) {
        seed = seed * 1103515245 + 12345;
        texts[0][i] = 'a';
        texts[1][i] = "abcdefgh ,-/"[(seed >> 16) % 12];
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(patterns); i++) {
        struct tc_regex *r = compile(patterns[i]);
        double us[2];
        for (size_t t = 0; t < 2; t++) {
            us[t] = match_us(r, tc_slice_of(texts[t], sizeof(texts[t])));
            assert_true(us[t] < 5000);
        }
        print_message("%s on 50 KB: %.0f us, %.0f us\n", patterns[i], us[0], us[1]);
        tc_regex_free(r);
    }
}

/* Each pattern's full automaton would have thousands of states, and the text reaches many of them. Nevertheless a regex
 * takes less than 64 KiB on average. */
static void automata_are_small(void **state)
{
    (void)state;
    enum { REGEXES = 200 };
    static struct tc_regex *all[REGEXES];
    char text[8192];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof(text); i++) {
        x = x * 1103515245u + 12345u;
        text[i] = x >> 16 & 1 ? 'a' : 'b';
    }
    struct footprint before = footprint_begin();
    for (int i = 0; i < REGEXES; i++) {
        char *pattern = tc_asprintf("[ab]*a[ab]{13}c?|%d", i);
        all[i] = compile(pattern);
        tc_free(pattern);
        (void)matches(all[i], tc_slice_of(text, sizeof(text)));
    }
    struct footprint grown = footprint_since(&before);
    print_message("%d regexes: %ld kB\n", REGEXES, grown.kb);
    if (FOOTPRINT_MEASURED)
        assert_true(grown.kb < REGEXES * 64);
    for (int i = 0; i < REGEXES; i++)
        tc_regex_free(all[i]);
}

static void matching_does_not_backtrack(void **state)
{
    (void)state;
    struct tc_regex *r = compile("(a+)+b");
    char text[4096];
    memset(text, 'a', sizeof(text));
    assert_false(matches(r, tc_slice_of(text, sizeof(text))));
    tc_regex_free(r);
}

/* The program of `large` has about 60,000 instructions, so each byte of text takes about 60,000 steps. A match that
 * costs more steps than are left fails and leaves 0 steps. */
static void matching_has_a_budget(void **state)
{
    (void)state;
    struct tc_buf pattern = {0};
    char text[8192];
    memset(text, 'a', sizeof(text));
    for (int i = 0; i < 60; i++)
        tc_buf_append_str(&pattern, "(?:[ab]*a[ab]{1000})?");
    struct tc_regex *large = compile(tc_buf_cstr(&pattern)), *small = compile("(a+)+");
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    assert_false(tc_regex_full_match(large, tc_slice_of(text, sizeof(text)), &steps));
    assert_int_equal(steps, 0);
    assert_false(tc_regex_full_match(small, tc_slice_of(text, 1), &steps));
    steps = TC_REGEX_MATCH_STEPS;
    assert_true(tc_regex_full_match(large, tc_slice_of(text, 1100), &steps)); /* takes about half of the steps */
    assert_true(steps > TC_REGEX_MATCH_STEPS / 4 && steps < TC_REGEX_MATCH_STEPS * 3 / 4);
    assert_false(tc_regex_full_match(large, tc_slice_of(text, 2200), &steps));
    assert_int_equal(steps, 0);
    steps = TC_REGEX_MATCH_STEPS;
    for (int i = 0; i < 500; i++)
        assert_true(tc_regex_full_match(small, tc_slice_of(text, sizeof(text)), &steps));
    tc_regex_free(large);
    tc_regex_free(small);
    tc_buf_fini(&pattern);
}

/* Each match searches the rest of the text for a "b", which does not occur: the budget ends after some matches. */
static void rewriting_has_a_budget(void **state)
{
    (void)state;
    static char text[65536];
    struct tc_buf out = {0};
    struct tc_regex *r = compile("a(?:.*b)?");
    memset(text, 'a', sizeof(text));
    uint64_t steps = TC_REGEX_REPLACE_STEPS;
    struct footprint before = footprint_begin();
    tc_regex_replace_all(r, tc_slice_of(text, sizeof(text)), tc_slice_str("x"), &steps, &out);
    uint64_t ms = footprint_since(&before).cpu_ms;
    assert_int_equal(out.len, sizeof(text));
    size_t replaced = 0;
    while (replaced < out.len && out.data[replaced] == 'x')
        replaced++;
    for (size_t i = replaced; i < out.len; i++)
        assert_int_equal(out.data[i], 'a'); /* the rest is copied unchanged */
    print_message("%zu of %zu matches replaced in %d ms\n", replaced, sizeof(text), (int)ms);
    assert_in_range(replaced, 20, 100);
    if (FOOTPRINT_MEASURED)
        assert_true(ms < 200);
    /* Without steps nothing is replaced. */
    steps = 0;
    tc_buf_clear(&out);
    tc_regex_replace_all(r, tc_slice_of(text, 100), tc_slice_str("x"), &steps, &out);
    assert_memory_equal(out.data, text, 100);
    /* In a text of ordinary length all matches are replaced, even with this pattern. */
    steps = TC_REGEX_REPLACE_STEPS;
    tc_buf_clear(&out);
    tc_regex_replace_all(r, tc_slice_of(text, 1500), tc_slice_str("x"), &steps, &out);
    assert_int_equal(out.len, 1500);
    assert_null(memchr(out.data, 'a', out.len));
    tc_buf_fini(&out);
    tc_regex_free(r);
}

static void assert_replaced(const char *pattern, const char *rewrite, const char *text, const char *expected)
{
    uint64_t steps = TC_REGEX_REPLACE_STEPS;
    char *why = NULL;
    struct tc_regex *r = compile(pattern);
    struct tc_buf out = {0};
    assert_true(tc_regex_check_rewrite(r, tc_slice_str(rewrite), &why));
    tc_regex_replace_all(r, tc_slice_str(text), tc_slice_str(rewrite), &steps, &out);
    assert_string_equal(tc_buf_cstr(&out), expected);
    tc_buf_fini(&out);
    tc_regex_free(r);
}

static void all_matches_are_replaced(void **state)
{
    TC_CASE(HP06);
    (void)state;
    assert_replaced("[0-9]+", "foo", "a1b22c333", "afoobfoocfoo");
    assert_replaced("/products", "/new-products", "/products", "/new-products");
    assert_replaced("(\\w+)@(\\w+)", "\\2.\\1", "u@h v@g", "h.u g.v");
    assert_replaced("x", "\\\\\\0", "axa", "a\\xa");
    assert_replaced("x", "y", "", "");
    assert_replaced("", "e", "abc", "eaebece");
    assert_replaced("a*", "-", "baac", "-b-c-");
    assert_replaced("", "-", "\xc3\xa9\xc3", "-\xc3\xa9-\xc3-"); /* an empty match does not split a character */
}

/* Replaces all matches in a text of `text_len` letters "a". The rewrite repeats `unit` until it has `rewrite_len`
 * bytes. Asserts that the result is TC_REGEX_REPLACED_MAX_BYTES long and that each byte is `expected`. */
static void assert_cut(const char *pattern, const char *unit, size_t rewrite_len, size_t text_len, char expected)
{
    uint64_t steps = UINT64_MAX;
    char *why = NULL;
    struct tc_regex *r = compile(pattern);
    struct tc_buf rewrite = {0}, text = {0}, out = {0};
    while (rewrite.len < rewrite_len)
        tc_buf_append_str(&rewrite, unit);
    memset(tc_buf_reserve(&text, text_len), 'a', text_len);
    text.len = text_len;
    assert_true(tc_regex_check_rewrite(r, tc_buf_slice(&rewrite), &why));
    tc_regex_replace_all(r, tc_buf_slice(&text), tc_buf_slice(&rewrite), &steps, &out);
    assert_int_equal(out.len, TC_REGEX_REPLACED_MAX_BYTES);
    for (size_t i = 0; i < out.len; i++)
        assert_int_equal(out.data[i], expected);
    tc_buf_fini(&rewrite);
    tc_buf_fini(&text);
    tc_buf_fini(&out);
    tc_regex_free(r);
}

static void results_are_bounded(void **state)
{
    (void)state;
    assert_cut("a", "x", TC_REGEX_REWRITE_MAX_BYTES, 1000, 'x');
    assert_cut(".*", "\\0", TC_REGEX_REWRITE_MAX_BYTES, 10000, 'a');
    assert_cut("b", "x", 1, 100000, 'a');
    assert_cut("", "a", 3, 65536, 'a');
}

static void assert_bad_rewrite(const char *pattern, const char *rewrite)
{
    char *why = NULL;
    struct tc_regex *r = compile(pattern);
    assert_false(tc_regex_check_rewrite(r, tc_slice_str(rewrite), &why));
    assert_non_null(why);
    tc_free(why);
    tc_regex_free(r);
}

static void rewrites_are_checked(void **state)
{
    (void)state;
    assert_bad_rewrite("a", "\\1");
    assert_bad_rewrite("(a)", "\\2");
    assert_bad_rewrite("a", "\\n");
    assert_bad_rewrite("a", "x\\");
    char text[TC_REGEX_REWRITE_MAX_BYTES + 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_bad_rewrite("a", text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_match_covers_the_whole_text),
        cmocka_unit_test(bad_patterns_are_refused),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(memory_grows_with_the_program),
        cmocka_unit_test(cost_of_reading),
        cmocka_unit_test(ambiguous_patterns_are_fast),
        cmocka_unit_test(automata_are_small),
        cmocka_unit_test(matching_does_not_backtrack),
        cmocka_unit_test(matching_has_a_budget),
        cmocka_unit_test(rewriting_has_a_budget),
        cmocka_unit_test(all_matches_are_replaced),
        cmocka_unit_test(results_are_bounded),
        cmocka_unit_test(rewrites_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
