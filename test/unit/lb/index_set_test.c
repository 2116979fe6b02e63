/* The set of indexes against an array of booleans, and with ten million places. */
#include "lb/index_set.h"

#include "support/case.h"
#include "support/cmocka.h"

#include "base/mem.h"
#include "base/random.h"

/* Does for the n booleans what tc_index_set_next does for a set. */
static uint32_t naive_next(const bool *has, uint32_t n, uint32_t i)
{
    while (i < n && !has[i])
        i++;
    return i < n ? i : TC_INDEX_NONE;
}

/* Random additions and removals, dense and sparse; every place is searched from. */
static void is_the_naive_one(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 8200};
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 11);
    for (size_t k = 0; k < TC_ARRAY_LEN(sizes); k++) {
        uint32_t n = sizes[k];
        bool *has = tc_calloc(n + 1, sizeof(*has));
        struct tc_index_set s;
        tc_index_set_init(&s, n);
        for (unsigned round = 0; round < 40; round++) {
            for (unsigned change = 0; n && change < 1 + n / (1 + round); change++) {
                uint32_t i = (uint32_t)tc_rng_below(&rng, n);
                has[i] = round % 20 < 10;
                (has[i] ? tc_index_set_add : tc_index_set_remove)(&s, i);
            }
            for (uint32_t i = 0; i <= n; i++)
                assert_int_equal(tc_index_set_next(&s, i), naive_next(has, n, i));
        }
        for (uint32_t i = 0; i < n; i++)
            tc_index_set_remove(&s, i);
        assert_int_equal(tc_index_set_next(&s, 0), TC_INDEX_NONE);
        tc_index_set_fini(&s);
        tc_free(has);
    }
}

/* Members far apart, so that the search crosses several levels, and two neighbours at a boundary of words on three
 * levels. */
static void among_millions(void **state)
{
    (void)state;
    static const uint32_t members[] = {0, 1000000, 4194303, 4194304, 9999999};
    struct tc_index_set s;
    tc_index_set_init(&s, 10000000);
    for (size_t i = 0; i < TC_ARRAY_LEN(members); i++)
        tc_index_set_add(&s, members[i]);
    uint32_t at = 0;
    for (size_t i = 0; i < TC_ARRAY_LEN(members); i++) {
        assert_int_equal(at = tc_index_set_next(&s, at), members[i]);
        at++;
    }
    assert_int_equal(tc_index_set_next(&s, at), TC_INDEX_NONE);
    assert_int_equal(tc_index_set_next(&s, UINT32_MAX), TC_INDEX_NONE);
    tc_index_set_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_naive_one),
        cmocka_unit_test(among_millions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
