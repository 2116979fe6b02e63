/* The timers of torc bench, against a plain search for the earliest timer. No clock is read. */
#include "bench/timers.h"

#include "base/random.h"
#include "support/cmocka.h"

enum { TIMERS = 40, STEPS = 20000 };

/* Returns the time of the earliest timer; UINT64_MAX: none is set. */
static uint64_t earliest(const struct bench_timer *timers)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < TIMERS; i++)
        if (timers[i].place && timers[i].due_ns < least)
            least = timers[i].due_ns;
    return least;
}

static void test_order(void **state)
{
    struct bench_timers t = {0};
    struct bench_timer timers[TIMERS] = {0};
    struct tc_rng rng;
    (void)state;
    tc_rng_init_seed(&rng, 7);
    for (int step = 0; step < STEPS; step++) {
        uint64_t at = tc_rng_below(&rng, TIMERS), due = tc_rng_below(&rng, 100);
        due = due < 30 ? UINT64_MAX : due < 35 ? 0 : due;
        bench_timer_set(&t, &timers[at], due);
        assert_true((timers[at].place != 0) == (due != UINT64_MAX));
        const struct bench_timer *first = bench_timers_first(&t);
        assert_true((first ? first->due_ns : UINT64_MAX) == earliest(timers));
    }
    for (uint64_t last = 0; bench_timers_first(&t);) {
        struct bench_timer *first = bench_timers_first(&t);
        assert_true(first->due_ns >= last);
        last = first->due_ns;
        bench_timer_set(&t, first, UINT64_MAX);
    }
    for (size_t i = 0; i < TIMERS; i++)
        assert_true(timers[i].place == 0);
    bench_timers_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
