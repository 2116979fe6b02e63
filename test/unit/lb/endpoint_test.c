/* Endpoints: identity, equality, named lists, localities, and the map by address sets. fake_lb_endpoints
 * (support/fakes/lb.h) makes endpoints from texts, and has the syntax. */
#include "lb/endpoint.h"

#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "lb/endpoint_map.h"

static void the_address_set_is_the_identity(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"1.1.1.1:1", "1.1.1.1:1*5#k", true},
        {"1.1.1.1:1", "1.1.1.1:2", false},
        {"1.1.1.1:1,2.2.2.2:2", "2.2.2.2:2,1.1.1.1:1", true},
        {"1.1.1.1:1,2.2.2.2:2", "1.1.1.1:1", false},
        {"1.1.1.1:1,1.1.1.1:1", "1.1.1.1:1", true},
        {"1.1.1.1:1,2.2.2.2:2", "1.1.1.1:1,3.3.3.3:3", false},
        {"1.1.1.1:1,1.1.1.1:1,2.2.2.2:2", "2.2.2.2:2,2.2.2.2:2,1.1.1.1:1", true},
        {"[::1]:1", "unix:/x", false},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        struct tc_endpoints *a = fake_lb_endpoints(cases[i].a), *b = fake_lb_endpoints(cases[i].b);
        assert_int_equal(tc_endpoint_same_addrs(a->at[0], b->at[0]), cases[i].same);
        assert_int_equal(tc_endpoint_same_addrs(b->at[0], a->at[0]), cases[i].same);
        if (cases[i].same)
            assert_true(tc_endpoint_addrs_hash(a->at[0]) == tc_endpoint_addrs_hash(b->at[0]));
        tc_endpoints_unref(a);
        tc_endpoints_unref(b);
    }
}

static void attributes_count_for_equality(void **state)
{
    (void)state;
    static const char *const all[] = {"1.1.1.1:1,2.2.2.2:2",
                                      "2.2.2.2:2,1.1.1.1:1",
                                      "1.1.1.1:1,2.2.2.2:2*2",
                                      "1.1.1.1:1,2.2.2.2:2#k",
                                      "1.1.1.1:1,2.2.2.2:2@z",
                                      "1.1.1.1:1,2.2.2.2:2 1.1.1.1:1",
                                      ""};
    for (size_t i = 0; i < TC_ARRAY_LEN(all); i++) {
        for (size_t k = 0; k < TC_ARRAY_LEN(all); k++) {
            struct tc_endpoints *a = fake_lb_endpoints(all[i]), *b = fake_lb_endpoints(all[k]);
            assert_int_equal(tc_endpoints_eq(a, b), i == k);
            tc_endpoints_unref(a);
            tc_endpoints_unref(b);
        }
    }
}

static void children_are_found_by_name(void **state)
{
    (void)state;
    struct tc_endpoints *tree = fake_lb_endpoint_tree("b", "2.2.2.2:2", "a", "1.1.1.1:1", "ab", "3.3.3.3:3", NULL);
    struct tc_endpoints *same = fake_lb_endpoint_tree("ab", "3.3.3.3:3", "a", "1.1.1.1:1", "b", "2.2.2.2:2", NULL);
    struct tc_endpoints *other = fake_lb_endpoint_tree("ab", "3.3.3.3:3", "a", "1.1.1.1:1", "b", "2.2.2.2:3", NULL);
    assert_int_equal(tc_endpoints_child(tree, tc_slice_str("a"))->at[0]->addrs[0].sa.in.sin_port, htons(1));
    assert_int_equal(tc_endpoints_child(tree, tc_slice_str("ab"))->at[0]->addrs[0].sa.in.sin_port, htons(3));
    assert_int_equal(tc_endpoints_child(tree, tc_slice_str("b"))->n, 1);
    assert_int_equal(tc_endpoints_child(tree, tc_slice_str("c"))->n, 0);
    assert_int_equal(tc_endpoints_child(NULL, tc_slice_str("c"))->n, 0);
    assert_true(tc_endpoints_eq(tree, same));
    assert_false(tc_endpoints_eq(tree, other));
    struct tc_endpoints *empty = tc_endpoints_empty();
    assert_ptr_equal(empty, tc_endpoints_child(tree, tc_slice_str("c")));
    tc_endpoints_unref(empty);
    tc_endpoints_unref(tree);
    tc_endpoints_unref(same);
    tc_endpoints_unref(other);
}

static void localities(void **state)
{
    (void)state;
    struct tc_locality *a = tc_locality_new(tc_slice_str("r"), tc_slice_str("z"), tc_slice_str("s"));
    struct tc_locality *b = tc_locality_new(tc_slice_str("r"), tc_slice_str("z1"), tc_slice_str(""));
    assert_true(tc_locality_cmp(a, b) < 0);
    assert_true(tc_locality_cmp(b, a) > 0);
    assert_true(tc_locality_cmp(NULL, a) < 0);
    assert_int_equal(tc_locality_cmp(a, a), 0);
    struct tc_buf text = {0};
    tc_locality_format(a, &text);
    assert_string_equal(tc_buf_cstr(&text), "{region=\"r\", zone=\"z\", sub_zone=\"s\"}");
    tc_buf_fini(&text);
    tc_locality_unref(a);
    tc_locality_unref(b);
}

static void the_map_finds_by_address_set(void **state)
{
    (void)state;
    struct tc_endpoints *list = fake_lb_endpoints("1.1.1.1:1 2.2.2.2:2,3.3.3.3:3 3.3.3.3:3,2.2.2.2:2 4.4.4.4:4");
    struct tc_endpoint_map map;
    uint32_t at = 99;
    tc_endpoint_map_init(&map, list->n);
    assert_int_equal(tc_endpoint_map_add(&map, list->at[0], 0), 0);
    assert_int_equal(tc_endpoint_map_add(&map, list->at[1], 1), 1);
    assert_int_equal(tc_endpoint_map_add(&map, list->at[2], 2), 1);
    assert_true(tc_endpoint_map_find(&map, list->at[2], &at));
    assert_int_equal(at, 1);
    assert_false(tc_endpoint_map_find(&map, list->at[3], &at));
    tc_endpoint_map_fini(&map);
    tc_endpoints_unref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_set_is_the_identity), cmocka_unit_test(attributes_count_for_equality),
        cmocka_unit_test(children_are_found_by_name),      cmocka_unit_test(localities),
        cmocka_unit_test(the_map_finds_by_address_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
