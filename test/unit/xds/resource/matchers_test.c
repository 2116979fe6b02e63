/* Matchers of strings, headers and fractions, which routes have. They are decoded as part of a RouteConfiguration in
 * proto3 JSON (kits/resource), and tried on the headers that `setup` adds. matchers_have_texts makes its matchers by
 * hand. */
#include "xds/resource/matchers.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"
#include "xds/resource/route_config.h"
#include "xds/resource/route_match.h"

#include "base/mem.h"

static struct tc_arena arena;
static struct tc_headers headers;

static int setup(void **state)
{
    (void)state;
    static const char *const fields[][2] = {
        {"k", "abc"},   {"multi", "a"},      {"multi", "b"},        {"n", "7"}, {"text", "seven"}, {"e", ""},
        {"b-bin", "x"}, {"negative", "-20"}, {"content-type", "t"},
    };
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&headers, &arena);
    for (size_t i = 0; i < TC_ARRAY_LEN(fields); i++)
        assert_int_equal(tc_headers_add(&headers, tc_slice_str(fields[i][0]), tc_slice_str(fields[i][1])), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_arena_fini(&arena);
    return 0;
}

#define MATCH(match) "{'name':'rc','virtual_hosts':[{'domains':['*'],'routes':[{'match':{'prefix':'/'," match "}}]}]}"

static bool route_matches(const char *json, uint64_t random)
{
    struct tc_xds_resource *r = kit_resource_valid(&tc_route_config_type, NULL, json);
    const struct tc_virtual_host *v = &tc_route_config_of(r)->table.vhosts[0];
    assert_int_equal(v->n_routes, 1);
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    bool matches = tc_route_match(&v->routes[0], tc_slice_str("/s/m"), &headers, random, &steps);
    tc_xds_resource_unref(r);
    return matches;
}

static bool header_matches(const char *matcher)
{
    char *json = tc_asprintf(MATCH("'headers':[{%s}]"), matcher);
    bool matches = route_matches(json, 0);
    tc_free(json);
    return matches;
}

static void strings_match(void **state)
{
    TC_CASE(LR14);
    (void)state;
    assert_true(header_matches("'name':'k','exact_match':'abc'"));
    assert_true(header_matches("'name':'K','exact_match':'abc'"));
    assert_false(header_matches("'name':'k','exact_match':'ab'"));
    assert_true(header_matches("'name':'k','prefix_match':'ab'"));
    assert_false(header_matches("'name':'k','prefix_match':'b'"));
    assert_true(header_matches("'name':'k','suffix_match':'bc'"));
    assert_false(header_matches("'name':'k','suffix_match':'b'"));
    assert_true(header_matches("'name':'k','contains_match':'b'"));
    assert_false(header_matches("'name':'k','contains_match':'x'"));
    assert_true(header_matches("'name':'k','safe_regex_match':{'regex':'a.c'}"));
    assert_false(header_matches("'name':'k','safe_regex_match':{'regex':'a.'}"));
    assert_true(header_matches("'name':'e','exact_match':''"));
    assert_true(header_matches("'name':'multi','exact_match':'a,b'"));
    assert_true(header_matches("'name':'k','string_match':{'exact':'ABC','ignore_case':true}"));
    assert_false(header_matches("'name':'k','string_match':{'exact':'ABC'}"));
    assert_true(header_matches("'name':'k','string_match':{'prefix':'AB','ignore_case':true}"));
    assert_true(header_matches("'name':'k','string_match':{'suffix':'BC','ignore_case':true}"));
    assert_true(header_matches("'name':'k','string_match':{'contains':'B','ignore_case':true}"));
    assert_false(header_matches("'name':'k','string_match':{'safe_regex':{'regex':'A.C'},'ignore_case':true}"));
}

static void ranges_match(void **state)
{
    TC_CASE(LR14);
    (void)state;
    assert_true(header_matches("'name':'n','range_match':{'start':7,'end':8}"));
    assert_false(header_matches("'name':'n','range_match':{'start':6,'end':7}"));
    assert_true(header_matches("'name':'negative','range_match':{'start':-21,'end':0}"));
    assert_false(header_matches("'name':'text','range_match':{'start':0,'end':100}"));
    assert_true(header_matches("'name':'text','range_match':{'start':0,'end':100},'invert_match':true"));
    kit_resource_refused(&tc_route_config_type, NULL,
                         MATCH("'headers':[{'name':'n','range_match':{'start':2,'end':1}}]"),
                         "headers[0].range_match: end must not be less than start");
}

static void presence_and_inversion(void **state)
{
    TC_CASE(LR14);
    (void)state;
    assert_true(header_matches("'name':'k','present_match':true"));
    assert_false(header_matches("'name':'k','present_match':false"));
    assert_false(header_matches("'name':'x','present_match':true"));
    assert_true(header_matches("'name':'x','present_match':false"));
    assert_true(header_matches("'name':'x','present_match':true,'invert_match':true"));
    assert_false(header_matches("'name':'k','exact_match':'abc','invert_match':true"));
    assert_true(header_matches("'name':'k','exact_match':'x','invert_match':true"));
    /* A matcher of the value fails on an absent header, inverted or not. */
    assert_false(header_matches("'name':'x','exact_match':'abc'"));
    assert_false(header_matches("'name':'x','exact_match':'abc','invert_match':true"));
}

static void special_headers(void **state)
{
    TC_CASE(LR14);
    (void)state;
    assert_false(header_matches("'name':'b-bin','exact_match':'x'"));
    assert_false(header_matches("'name':'b-bin','present_match':true"));
    assert_true(header_matches("'name':'content-type','exact_match':'application/grpc'"));
}

static void header_matchers_are_checked(void **state)
{
    TC_CASE(LR14);
    (void)state;
    kit_resource_refused(&tc_route_config_type, NULL, MATCH("'headers':[{'name':'k'}]"),
                         "headers[0]: invalid header matcher");
    kit_resource_refused(&tc_route_config_type, NULL, MATCH("'headers':[{'exact_match':'k'}]"),
                         "name: must be non-empty");
}

static void all_headers_must_match(void **state)
{
    TC_CASE(LR14);
    (void)state;
    assert_true(route_matches(MATCH("'headers':[{'name':'k','exact_match':'abc'},{'name':'n','exact_match':'7'}]"), 0));
    assert_false(
        route_matches(MATCH("'headers':[{'name':'k','exact_match':'abc'},{'name':'n','exact_match':'8'}]"), 0));
}

#define FRACTION(n, d) MATCH("'runtime_fraction':{'default_value':{'numerator':" #n ",'denominator':'" #d "'}}")

static void fractions_match(void **state)
{
    TC_CASE(LR15);
    (void)state;
    assert_true(route_matches(FRACTION(25, HUNDRED), 249999));
    assert_false(route_matches(FRACTION(25, HUNDRED), 250000));
    assert_true(route_matches(FRACTION(1, MILLION), 3000000));
    assert_false(route_matches(FRACTION(0, MILLION), 0));
    assert_true(route_matches(FRACTION(100, HUNDRED), 999999));
    kit_resource_refused(&tc_route_config_type, NULL, MATCH("'runtime_fraction':{'default_value':{'denominator':9}}"),
                         "match.runtime_fraction.default_value.denominator: unknown denominator type");
    kit_resource_refused(&tc_route_config_type, NULL, MATCH("'runtime_fraction':{}"),
                         "default_value: field not present");
}

static void matchers_have_texts(void **state)
{
    (void)state;
    struct tc_buf text = {0};
    struct tc_header_matcher m = {.name = tc_slice_str("k"), .invert = true};
    m.string.text = tc_slice_str("v");
    tc_header_matcher_format(&m, &text);
    assert_string_equal(tc_buf_cstr(&text), "not header \"k\" exact \"v\"");
    tc_buf_clear(&text);
    m = (struct tc_header_matcher){.name = tc_slice_str("k"), .kind = TC_HEADER_MATCH_RANGE, .range_end = 3};
    tc_header_matcher_format(&m, &text);
    assert_string_equal(tc_buf_cstr(&text), "header \"k\" in [0, 3)");
    tc_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(strings_match, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_match, setup, teardown),
        cmocka_unit_test_setup_teardown(presence_and_inversion, setup, teardown),
        cmocka_unit_test_setup_teardown(special_headers, setup, teardown),
        cmocka_unit_test(header_matchers_are_checked),
        cmocka_unit_test_setup_teardown(all_headers_must_match, setup, teardown),
        cmocka_unit_test_setup_teardown(fractions_match, setup, teardown),
        cmocka_unit_test(matchers_have_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
