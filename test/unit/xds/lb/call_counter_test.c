/* The counters of circuit breaking, by {cluster, EDS service}. */
#include "xds/lb/call_counter.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"

static void by_both_names(void **state)
{
    (void)state;
    struct tc_rstr *a = tc_rstr_str("a"), *ab = tc_rstr_str("ab"), *bc = tc_rstr_str("bc"), *c = tc_rstr_str("c");
    struct tc_call_counter *first = tc_call_counter_get(a, bc), *second = tc_call_counter_get(ab, c),
                           *third = tc_call_counter_get(a, NULL), *again = tc_call_counter_get(a, bc);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, second);
    assert_ptr_not_equal(first, third);
    tc_call_counter_unref(again);
    bool full = false;
    assert_true(tc_call_counter_begin(first, 1, &full));
    again = tc_call_counter_get(a, bc);
    assert_false(tc_call_counter_begin(again, 1, &full));
    tc_call_counter_end(first);
    tc_call_counter_unref(again);
    tc_call_counter_unref(second);
    tc_call_counter_unref(first);
    tc_call_counter_unref(third);
    tc_rstr_unref(a);
    tc_rstr_unref(ab);
    tc_rstr_unref(bc);
    tc_rstr_unref(c);
}

/* RPCs in flight in the parent do not count in a forked child. The child may release the parent's counters that it
 * holds. */
static void a_child_counts_anew(void **state)
{
    (void)state;
    struct tc_rstr *name = tc_rstr_str("a");
    struct tc_call_counter *parents = tc_call_counter_get(name, NULL);
    bool full = false;
    assert_true(tc_call_counter_begin(parents, 1, &full));
    pid_t child = fork();
    if (child == 0) {
        struct tc_call_counter *own = tc_call_counter_get(name, NULL), *again = tc_call_counter_get(name, NULL);
        bool ok = own != parents && own == again && tc_call_counter_begin(own, 1, &full);
        tc_call_counter_unref(parents);
        tc_call_counter_unref(again);
        again = tc_call_counter_get(name, NULL);
        ok = ok && own == again && !tc_call_counter_begin(again, 1, &full);
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct tc_call_counter *again = tc_call_counter_get(name, NULL);
    assert_ptr_equal(again, parents);
    assert_false(tc_call_counter_begin(again, 1, &full));
    tc_call_counter_end(parents);
    tc_call_counter_unref(again);
    tc_call_counter_unref(parents);
    tc_rstr_unref(name);
}

static void thousands(void **state)
{
    (void)state;
    enum { N = 20000 };
    static struct tc_call_counter *counters[N];
    clock_t before = clock();
    for (unsigned i = 0; i < N; i++) {
        struct tc_rstr *name = tc_rstr_printf("cluster-%05u", i);
        counters[i] = tc_call_counter_get(name, name);
        struct tc_call_counter *again = tc_call_counter_get(name, name);
        assert_ptr_equal(again, counters[i]);
        tc_call_counter_unref(again);
        tc_rstr_unref(name);
    }
    for (unsigned i = 0; i < N; i++)
        tc_call_counter_unref(counters[i]);
    /* A list instead of a hash table would take up to 4e8 comparisons. */
    assert_true(clock() - before < CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_both_names),
        cmocka_unit_test(a_child_counts_anew),
        cmocka_unit_test(thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
