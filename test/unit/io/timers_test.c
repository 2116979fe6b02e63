/* The timer wheel. random_timers_fire_as_the_model_says starts, stops and fires timers of a manual loop at random, and
 * holds each against a model: a plain array in which `first` finds the timer that must fire next. The other tests use
 * the wheel alone, without a loop. The seeds of the random numbers are fixed, so that each run is the same. All times
 * are in ms. */
#include "io/loop.h"
#include "io/timers.h"

#include "base/mem.h"
#include "support/cmocka.h"

enum { TIMERS = 400, STEPS = 20000 };

/* A timer, and what the model knows of it. */
struct model {
    struct tc_timer timer;
    uint64_t due_ms, order; /* `order`: how many starts came before its own */
    bool active;
};

struct fixture {
    struct tc_loop *loop;
    struct tc_rng rng;
    struct model timers[TIMERS];
    uint64_t next_order;
    size_t fired;
};

static struct fixture fx;

/* Returns the timer that must fire first, by due time, then by order of starting; NULL if none runs. */
static struct model *first(void)
{
    struct model *best = NULL;
    for (int i = 0; i < TIMERS; i++) {
        struct model *m = &fx.timers[i];
        if (m->active && (!best || m->due_ms < best->due_ms || (m->due_ms == best->due_ms && m->order < best->order)))
            best = m;
    }
    return best;
}

/* Draws from 0 ms to some two years: any value below 2^n, with n from 1 to 36 equally likely. */
static uint64_t random_delay_ms(void)
{
    return tc_rng_u64(&fx.rng) >> (64 - 1 - tc_rng_below(&fx.rng, 36));
}

static void start(struct model *m)
{
    uint64_t delay_ms = tc_rng_below(&fx.rng, 3) ? random_delay_ms() : tc_rng_below(&fx.rng, 70);
    tc_timer_start(&m->timer, delay_ms);
    m->due_ms = tc_loop_now_ms(fx.loop) + delay_ms;
    m->order = fx.next_order++;
    m->active = true;
}

static void on_fire(struct tc_timer *timer)
{
    struct model *m = TC_CONTAINER_OF(timer, struct model, timer);
    assert_ptr_equal(m, first());
    assert_int_equal(m->due_ms, tc_loop_now_ms(fx.loop));
    m->active = false;
    fx.fired++;
}

static void random_timers_fire_as_the_model_says(void **state)
{
    (void)state;
    fx.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    tc_rng_init_seed(&fx.rng, 20240229);
    for (int i = 0; i < TIMERS; i++)
        tc_timer_init(&fx.timers[i].timer, fx.loop, on_fire);
    for (int step = 0; step < STEPS; step++) {
        struct model *m = &fx.timers[tc_rng_below(&fx.rng, TIMERS)];
        switch (tc_rng_below(&fx.rng, 8)) {
        case 0:
            tc_timer_stop(&m->timer);
            m->active = false;
            break;
        case 1:
            tc_loop_advance(fx.loop, tc_rng_below(&fx.rng, 100));
            break;
        case 2:
            if (tc_rng_below(&fx.rng, 20) == 0)
                tc_loop_advance(fx.loop, random_delay_ms());
            break;
        default:
            start(m);
        }
        assert_int_equal(tc_timer_active(&m->timer), m->active);
        /* No timer is overdue. A timer of 0 ms may be due now, and wait for the next advance. */
        struct model *next = first();
        assert_true(!next || next->due_ms >= tc_loop_now_ms(fx.loop));
    }
    struct model *last;
    while ((last = first()))
        tc_loop_advance(fx.loop, last->due_ms - tc_loop_now_ms(fx.loop));
    assert_int_equal(tc_loop_timeout_ms(fx.loop), -1);
    assert_true(fx.fired > STEPS / 10);
    tc_loop_free(fx.loop);
}

static void next_is_never_late(void **state)
{
    (void)state;
    struct tc_timers *w = TC_NEW(struct tc_timers);
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 5);
    for (int i = 0; i < 10000; i++) {
        uint64_t now_ms = tc_rng_u64(&rng) >> (18 + tc_rng_below(&rng, 40));
        tc_timers_init(w, now_ms);
        assert_true(tc_timers_next(w) == UINT64_MAX);
        struct tc_timer t = {.due_ms = now_ms + 1 + (tc_rng_u64(&rng) >> (19 + tc_rng_below(&rng, 40)))};
        tc_list_init(&t.link);
        tc_timers_add(w, &t);
        int steps = 0;
        while (tc_list_empty(&w->due)) {
            uint64_t at_ms = tc_timers_next(w);
            assert_true(at_ms > w->now_ms && at_ms <= t.due_ms);
            tc_timers_advance(w, at_ms);
            assert_true(++steps <= TC_TIMERS_LEVELS);
        }
        assert_int_equal(w->now_ms, t.due_ms);
        tc_timers_remove(w, &t);
        assert_true(tc_timers_empty(w));
    }
    tc_free(w);
}

static void removal_empties_the_wheel(void **state)
{
    (void)state;
    struct tc_timers *w = TC_NEW(struct tc_timers);
    tc_timers_init(w, 1000);
    struct tc_timer t[3] = {{.due_ms = 1001}, {.due_ms = 1001}, {.due_ms = 90000}};
    for (int i = 0; i < 3; i++) {
        tc_list_init(&t[i].link);
        tc_timers_add(w, &t[i]);
    }
    tc_timers_remove(w, &t[0]);
    assert_int_equal(tc_timers_next(w), 1001);
    tc_timers_remove(w, &t[1]);
    assert_true(tc_timers_next(w) > 1001 && tc_timers_next(w) != UINT64_MAX);
    tc_timers_remove(w, &t[2]);
    assert_true(tc_timers_empty(w));
    tc_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_timers_fire_as_the_model_says),
        cmocka_unit_test(next_is_never_late),
        cmocka_unit_test(removal_empties_the_wheel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
