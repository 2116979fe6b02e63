/* Connection backoff (connection-backoff.md): the bounds of each delay, the reset, and other options. */
#include "io/backoff.h"

#include <math.h>

#include "support/cmocka.h"

static void delays_grow_within_their_bounds(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 3);
    double lowest = 2, highest = 0;
    for (int round = 0; round < 2000; round++) {
        struct tc_backoff b;
        tc_backoff_init(&b, NULL);
        double expected = 1000;
        for (int i = 0; i < 15; i++) {
            double ms = (double)tc_backoff_next_ms(&b, &rng);
            assert_true(ms >= floor(expected * 0.8) && ms <= ceil(expected * 1.2));
            lowest = fmin(lowest, ms / expected);
            highest = fmax(highest, ms / expected);
            expected = fmin(expected * 1.6, 120000);
        }
        assert_true(fabs(expected - 120000) < 1e-9);
    }
    /* The jitter comes close to both bounds. */
    assert_true(lowest < 0.81 && highest > 1.19);
}

static void reset_starts_over(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 4);
    struct tc_backoff b;
    tc_backoff_init(&b, NULL);
    for (int i = 0; i < 10; i++)
        tc_backoff_next_ms(&b, &rng);
    tc_backoff_reset(&b);
    assert_in_range(tc_backoff_next_ms(&b, &rng), 800, 1200);
}

static void options_are_respected(void **state)
{
    (void)state;
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 4);
    struct tc_backoff b;
    tc_backoff_init(&b, &(struct tc_backoff_opts){.initial_ms = 100, .max_ms = 350, .multiplier = 2, .jitter = 0});
    const uint64_t expected[] = {100, 200, 350, 350};
    for (int i = 0; i < 4; i++)
        assert_int_equal(tc_backoff_next_ms(&b, &rng), expected[i]);
    /* An initial delay above the cap is capped too. */
    tc_backoff_init(&b, &(struct tc_backoff_opts){.initial_ms = 1000, .max_ms = 50, .multiplier = 2, .jitter = 0});
    assert_int_equal(tc_backoff_next_ms(&b, &rng), 50);
    /* The next delay grows or shrinks from the delay without the cap. */
    tc_backoff_init(&b, &(struct tc_backoff_opts){.initial_ms = 1000, .max_ms = 500, .multiplier = 0.4, .jitter = 0});
    assert_int_equal(tc_backoff_next_ms(&b, &rng), 500);
    assert_int_equal(tc_backoff_next_ms(&b, &rng), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_grow_within_their_bounds),
        cmocka_unit_test(reset_starts_over),
        cmocka_unit_test(options_are_respected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
