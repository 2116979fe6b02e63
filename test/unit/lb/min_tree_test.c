/* The tree of keys against a scan of all keys, and the draw among equal keys. */
#include "lb/min_tree.h"

#include <math.h>

#include "support/cmocka.h"

enum { PLACES = 300 };

static void nothing_to_draw(void **state)
{
    struct tc_min_tree t = {0};
    struct tc_rng rng;
    (void)state;
    tc_rng_init_seed(&rng, 1);
    assert_int_equal(tc_min_tree_draw(&t, &rng), UINT32_MAX);
    tc_min_tree_set(&t, 0, 7);
    assert_int_equal(tc_min_tree_draw(&t, &rng), 0);
    tc_min_tree_set(&t, 0, INFINITY);
    assert_int_equal(tc_min_tree_draw(&t, &rng), UINT32_MAX);
    tc_min_tree_fini(&t);
}

/* Keys come, change and go at random places. Each draw must give a place with the least key. */
static void is_the_least(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct tc_min_tree t = {0};
        struct tc_rng rng;
        double keys[PLACES], least;
        uint32_t used = 0;
        tc_rng_init_seed(&rng, seed);
        for (unsigned step = 0; step < 3000; step++) {
            uint32_t i = (uint32_t)tc_rng_below(&rng, used < PLACES ? used + 1 : used);
            used += i == used;
            keys[i] = tc_rng_below(&rng, 4) ? (double)tc_rng_below(&rng, 5) : INFINITY;
            tc_min_tree_set(&t, i, keys[i]);
            least = INFINITY;
            for (uint32_t k = 0; k < used; k++)
                least = fmin(least, keys[k]);
            uint32_t drawn = tc_min_tree_draw(&t, &rng);
            if (isinf(least))
                assert_int_equal(drawn, UINT32_MAX);
            else
                assert_true(drawn < used && keys[drawn] <= least);
        }
        tc_min_tree_fini(&t);
    }
}

/* Of 1,000 places every third has the least key: each of these is drawn about equally often. */
static void equal_ones_alike(void **state)
{
    enum { MANY = 1000, EACH = 400 };
    struct tc_min_tree t = {0};
    struct tc_rng rng;
    unsigned counts[MANY] = {0};
    double chi2 = 0;
    (void)state;
    tc_rng_init_seed(&rng, 5);
    for (uint32_t i = 0; i < MANY; i++)
        tc_min_tree_set(&t, i, i % 3 ? 2 + i : 1);
    for (unsigned i = 0; i < 334 * EACH; i++)
        counts[tc_min_tree_draw(&t, &rng)]++;
    for (uint32_t i = 0; i < MANY; i++) {
        if (i % 3)
            assert_int_equal(counts[i], 0);
        else
            chi2 += ((double)counts[i] - EACH) * ((double)counts[i] - EACH) / EACH;
    }
    assert_true(chi2 > 233 && chi2 < 433); /* 333 degrees of freedom, almost four standard deviations */
    tc_min_tree_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_to_draw),
        cmocka_unit_test(is_the_least),
        cmocka_unit_test(equal_ones_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
