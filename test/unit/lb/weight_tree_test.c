/* lb/weight_tree: draws and totals, against a sum over the plain weights. */
#include "support/cmocka.h"

#include "base/random.h"
#include "lb/weight_tree.h"

enum { MAX = 70, ROUNDS = 2000 };

static void it_draws_as_a_sum_does(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 7);
    for (size_t n = 1; n <= MAX; n++) {
        uint64_t weights[MAX] = {0}, total = 0;
        struct tc_weight_tree t;
        tc_weight_tree_init(&t, n);
        for (unsigned r = 0; r < ROUNDS / MAX; r++) {
            size_t i = (size_t)tc_rng_below(&rng, n);
            uint64_t weight = tc_rng_below(&rng, 3) ? tc_rng_below(&rng, UINT32_MAX) : 0;
            tc_weight_tree_add(&t, i, (int64_t)weight - (int64_t)weights[i]);
            total += weight - weights[i];
            weights[i] = weight;
            assert_int_equal(t.total, total);
            uint64_t sum = 0;
            for (size_t k = 0; k < n; sum += weights[k++])
                if (weights[k]) {
                    assert_int_equal(tc_weight_tree_find(&t, sum), k);
                    assert_int_equal(tc_weight_tree_find(&t, sum + weights[k] - 1), k);
                }
        }
        tc_weight_tree_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_draws_as_a_sum_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
