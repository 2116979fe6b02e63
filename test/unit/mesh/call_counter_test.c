/* The counters of circuit breaking by {cluster, EDS service}. */
#include <time.h>

#include "support/cmocka.h"

#include "base/rstr.h"
#include "mesh/domain.h"

static void by_both_names(void **state)
{
    (void)state;
    struct tc_mesh_domain *d = tc_mesh_domain_new(NULL);
    struct tc_rstr *a = tc_rstr_str("a"), *ab = tc_rstr_str("ab"), *bc = tc_rstr_str("bc"), *c = tc_rstr_str("c");
    struct tc_call_counter *first = tc_call_counter_get(d, a, bc), *second = tc_call_counter_get(d, ab, c),
                           *third = tc_call_counter_get(d, a, NULL), *again = tc_call_counter_get(d, a, bc),
                           *alone = tc_call_counter_get(NULL, a, bc);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, second);
    assert_ptr_not_equal(first, third);
    assert_ptr_not_equal(first, alone);
    tc_call_counter_unref(again);
    bool full = false;
    assert_true(tc_call_counter_begin(first, 1, &full));
    again = tc_call_counter_get(d, a, bc);
    assert_false(tc_call_counter_begin(again, 1, &full));
    tc_call_counter_end(first);
    tc_call_counter_unref(again);
    tc_call_counter_unref(second);
    tc_call_counter_unref(alone);
    tc_mesh_domain_free(d); /* two outlive it */
    tc_call_counter_unref(first);
    tc_call_counter_unref(third);
    tc_rstr_unref(a);
    tc_rstr_unref(ab);
    tc_rstr_unref(bc);
    tc_rstr_unref(c);
}

static void thousands(void **state)
{
    (void)state;
    enum { N = 20000 };
    static struct tc_call_counter *counters[N];
    struct tc_mesh_domain *d = tc_mesh_domain_new(NULL);
    clock_t before = clock();
    for (unsigned i = 0; i < N; i++) {
        struct tc_rstr *name = tc_rstr_printf("cluster-%05u", i);
        counters[i] = tc_call_counter_get(d, name, name);
        struct tc_call_counter *again = tc_call_counter_get(d, name, name);
        assert_ptr_equal(again, counters[i]);
        tc_call_counter_unref(again);
        tc_rstr_unref(name);
    }
    for (unsigned i = 0; i < N; i++)
        tc_call_counter_unref(counters[i]);
    /* One after another it is 4e8 comparisons of names, and seconds. */
    assert_true(clock() - before < CLOCKS_PER_SEC);
    tc_mesh_domain_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_both_names),
        cmocka_unit_test(thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
