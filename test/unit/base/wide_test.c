/* Sums of 128 bits and their doubles: against the compiler's 128-bit integers, if it has them, and against known
 * numbers. Upper halves of products: against known numbers. */
#include "base/wide.h"

#include "base/common.h"
#include "base/random.h"
#include "support/cmocka.h"

static void test_known(void **state TC_UNUSED)
{
    assert_true(tc_mul_high(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    assert_true(tc_mul_high(UINT64_C(1) << 63, 2) == 1);
    assert_true(tc_mul_high(UINT32_MAX, UINT32_MAX) == 0);
    struct tc_wide sum = {0};
    tc_wide_add(&sum, UINT64_MAX);
    tc_wide_add(&sum, 1);
    assert_true(sum.high == 1 && sum.low == 0);
    assert_true(tc_wide_double(sum) == 0x1p64);
    /* Half way between two doubles the result is the even one. One more gives the upper one. */
    assert_true(tc_wide_double((struct tc_wide){1, 1u << 11}) == 0x1p64);
    assert_true(tc_wide_double((struct tc_wide){1, (1u << 11) + 1}) == 0x1p64 + 0x1p12);
    assert_true(tc_wide_double((struct tc_wide){1, 3u << 11}) == 0x1p64 + 0x1p13);
    assert_true(tc_wide_double((struct tc_wide){UINT64_MAX, UINT64_MAX}) == 0x1p128);
}

static void test_as_the_compiler(void **state TC_UNUSED)
{
#ifdef __SIZEOF_INT128__
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 17);
    for (int i = 0; i < 100000; i++) {
        struct tc_wide w = {tc_rng_u64(&rng) >> (i % 64), tc_rng_u64(&rng) << (i / 64 % 64)};
        uint64_t n = tc_rng_u64(&rng);
        unsigned __int128 same = (unsigned __int128)w.high << 64 | w.low;
        assert_true(tc_wide_double(w) == (double)same);
        tc_wide_add(&w, n);
        same += n;
        assert_true(w.high == (uint64_t)(same >> 64) && w.low == (uint64_t)same);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_as_the_compiler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
