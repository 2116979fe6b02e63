/* The stages of torc bench (bench/plan.h): how --stage is read, when each RPC of an open loop is to begin, and how many
 * RPCs of a closed loop are to be under way. No RPC runs, and no clock is read: times count from the begin of the
 * plan. */
#include "bench/plan.h"

#include "base/clock.h"
#include "cli.h"
#include "support/cmocka.h"

#define S TC_NS_PER_S
#define MS TC_NS_PER_MS
#define NEVER UINT64_MAX

/* Returns the plan of a valid --stage, for bench_plan_fini. */
static struct bench_plan plan_of(const char *text)
{
    struct bench_plan p = {0};
    assert_int_equal(bench_plan_read(&p, "bench", text), 0);
    return p;
}

static void test_reading(void **state)
{
    static const struct {
        const char *text, *read; /* `read`: the stages as bench_plan_append_text shows them; NULL: a usage error */
    } rows[] = {
        {"100/30s", "100/30s"},
        {"100..1000/30s", "100..1000/30s"},
        {"0.001..1e6/250ms", "0.001..1000000/0.25s"},
        {"100/1s,0/2s,5..0/1m", "100/1s 0/2s 5..0/60s"},
        {"100..400/4x5s", "100/5s 200/5s 300/5s 400/5s"},
        {"9/2x1s", "9/1s 9/1s"},
        {"c=1..64/30s", "c=1..64/30s"},
        {"c=0/1ms,c=100000/1s", "c=0/0.001s c=100000/1s"},
        {"c=1..4/3x1s", "c=1/1s c=3/1s c=4/1s"},
        {"1/2400000h", "1/8640000000s"},
        {"", NULL},
        {",", NULL},
        {"100", NULL},
        {"100/", NULL},
        {"/1s", NULL},
        {"100/1", NULL},
        {"100/-1s", NULL},
        {"100/0s", NULL},
        {"100/999us", NULL},
        {"100/1s,", NULL},
        {"-1/1s", NULL},
        {"0.0009/1s", NULL},
        {"1000000.1/1s", NULL},
        {"nan/1s", NULL},
        {"inf/1s", NULL},
        {"0x10/1s", NULL},
        {"1..x/1s", NULL},
        {"1..2..3/1s", NULL},
        {"../1s", NULL},
        {"c=/1s", NULL},
        {"c=1.5/1s", NULL},
        {"c=-1/1s", NULL},
        {"c=100001/1s", NULL},
        {"C=1/1s", NULL},
        {"c=1/1s,1/1s", NULL},
        {"1/1s,c=1/1s", NULL},
        {"1/1x1s", NULL},
        {"1/0x1s", NULL},
        {"1/x1s", NULL},
        {"1/1001x1s", NULL},
        {"1/1000x1s,1/1s", NULL},
        {"1/2x1250001h", NULL},
        {"1/2400000h,1/100000h", "1/8640000000s 1/360000000s"},
        {"1/2400000h,1/100000h,1/1ms", NULL},
        {"1/2500000h", NULL},
        {"1/18446744073709551616x1s", NULL},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct bench_plan p = {0};
        struct tc_buf text = {0};
        int rc = bench_plan_read(&p, "bench", rows[i].text);
        for (size_t k = 0; k < p.stages.len; k++) {
            tc_buf_append_str(&text, k ? " " : "");
            bench_plan_append_text(&p, k, &text);
        }
        if (rc != (rows[i].read ? 0 : CLI_USAGE) || (rc == 0 && strcmp(tc_buf_cstr(&text), rows[i].read) != 0))
            fail_msg("'%s': %d, %s", rows[i].text, rc, tc_buf_cstr(&text));
        tc_buf_fini(&text);
        bench_plan_fini(&p);
    }
}

static void test_begin_of_each_call(void **state)
{
    static const struct {
        const char *text;
        uint64_t n, due_ns;
    } rows[] = {
        {"100/10s", 0, 0},
        {"100/10s", 1, 10 * MS},
        {"100/10s", 999, 9990 * MS},
        {"100/10s", 1000, NEVER},
        {"100/10s", UINT64_MAX, NEVER},
        {"10/100ms", 0, 0},
        {"10/100ms", 1, NEVER},
        {"0.001/1ms", 0, 0},
        {"0.1/30ms", 0, 0},
        {"3/100ms,3/900ms", 1, 333333333},
        {"0/1s,1/2s", 0, 1 * S},
        {"0/1s,1/2s,0/5s", 1, 2 * S},
        {"0/1s,1/2s,0/5s", 2, NEVER},
        /* A rising line, n = 50 t^2, and a falling one, n = 100 t - 50 t^2. */
        {"0..100/1s", 0, 0},
        {"0..100/1s", 2, 200 * MS},
        {"0..100/1s", 32, 800 * MS},
        {"0..100/1s", 50, NEVER},
        {"100..0/1s", 0, 0},
        {"100..0/1s", 18, 200 * MS},
        {"100..0/1s", 48, 800 * MS},
        {"100..0/1s", 50, NEVER},
        {"0..100/1s,100/1s", 50, 1 * S},
        {"0..100/1s,100/1s", 149, 1990 * MS},
        {"100/1s,200/1s,300/1s", 100, 1 * S},
        {"100/1s,200/1s,300/1s", 299, 1995 * MS},
        {"100/1s,200/1s,300/1s", 300, 2 * S},
        {"100/1s,200/1s,300/1s", 600, NEVER},
        {"1000000/2400000h", UINT64_C(8000000000000000), 8000000000 * S},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct bench_plan p = plan_of(rows[i].text);
        uint64_t due = bench_plan_due_ns(&p, rows[i].n);
        uint64_t off = due > rows[i].due_ns ? due - rows[i].due_ns : rows[i].due_ns - due;
        if (rows[i].due_ns == NEVER || due == NEVER ? off != 0 : off > 1 + due / (UINT64_C(1) << 50))
            fail_msg("%s: RPC %llu at %llu", rows[i].text, (unsigned long long)rows[i].n, (unsigned long long)due);
        bench_plan_fini(&p);
    }
}

/* As many RPCs begin within a stage as bench_plan_calls counts from the begin of the stage to its end, so that a
 * report's rows of stages add up. */
static void test_calls_of_each_stage(void **state)
{
    static const struct {
        const char *text;
        uint64_t calls[4]; /* by stage */
    } rows[] = {
        {"100/1s,200/1s,300/1s", {100, 200, 300}},  {"0..1000/1s,1000/500ms,1000..0/1s", {500, 500, 500}},
        {"0/1s,10/1s,0/1s,10/1s", {0, 10, 0, 10}},  {"0.3/1s,0.3/1s,0.3/1s,0.2/1s", {1, 0, 0, 1}},
        {"0.1/1s,0.1/1s,0.1/1s", {1, 0, 0}},        {"333.3/100ms,333.4/100ms,333.3/100ms", {34, 33, 33}},
        {"100000..1000000/1s,0.5/1s", {550000, 1}}, {"1..1000/999ms,1000..1/1ms", {500, 1}},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct bench_plan p = plan_of(rows[i].text);
        uint64_t before = 0, by_stage[4] = {0}, due, last = 0;
        for (uint64_t n = 0; (due = bench_plan_due_ns(&p, n)) != NEVER; n++) {
            assert_true(due >= last && due < bench_plan_end_ns(&p));
            by_stage[bench_plan_stage(&p, due)]++;
            last = due;
        }
        for (size_t k = 0; k < p.stages.len; k++) {
            uint64_t by_end = bench_plan_calls(&p, p.stages.data[k].end_ns);
            if (by_stage[k] != rows[i].calls[k] || by_end - before != by_stage[k])
                fail_msg("%s: stage %zu has %llu, by its end %llu", rows[i].text, k, (unsigned long long)by_stage[k],
                         (unsigned long long)by_end);
            before = by_end;
        }
        for (uint64_t t = 0; t <= bench_plan_end_ns(&p) && before < 2000; t += 7777777) {
            uint64_t n = bench_plan_calls(&p, t);
            assert_true(bench_plan_due_ns(&p, n) >= t && (n == 0 || bench_plan_due_ns(&p, n - 1) < t));
        }
        bench_plan_fini(&p);
    }
}

static void test_calls_at_a_time(void **state)
{
    static const struct {
        const char *text;
        uint64_t t_ns, concurrency, until_ns;
    } rows[] = {
        {"c=8/10s", 0, 8, 10 * S},
        {"c=8/10s", 10 * S, 8, 10 * S},
        {"c=8/10s", NEVER, 8, 10 * S},
        {"c=1..4/4s", 0, 1, 1 * S},
        {"c=1..4/4s", 999 * MS, 1, 1 * S},
        {"c=1..4/4s", 1 * S, 2, 2 * S},
        {"c=1..4/4s", 3 * S, 4, 4 * S},
        {"c=4..1/4s", 0, 4, 1 * S},
        {"c=4..1/4s", 3500 * MS, 1, 4 * S},
        {"c=2/1s,c=0/1s,c=5/1s", 1 * S, 0, 2 * S},
        {"c=2/1s,c=0/1s,c=5/1s", 2 * S, 5, 3 * S},
        {"c=0..100000/1ms", 999999, 100000, 1 * MS},
        {"c=100000..0/1ms", 999999, 0, 1 * MS},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct bench_plan p = plan_of(rows[i].text);
        uint64_t until, c = bench_plan_concurrency(&p, rows[i].t_ns, &until);
        if (c != rows[i].concurrency || until != rows[i].until_ns)
            fail_msg("%s at %llu: %llu until %llu", rows[i].text, (unsigned long long)rows[i].t_ns,
                     (unsigned long long)c, (unsigned long long)until);
        bench_plan_fini(&p);
    }
}

/* Load without --stage is one stage, which may be endless. A stage after an endless one does not move the end of the
 * plan. A plan whose rates are all 0 begins no RPC. */
static void test_one_endless_stage(void **state)
{
    struct bench_plan p = {0};
    (void)state;
    bench_plan_add(&p, 1e6, 1e6, UINT64_MAX);
    assert_true(bench_plan_end_ns(&p) == UINT64_MAX && bench_plan_any(&p));
    assert_true(bench_plan_due_ns(&p, 1) == 1000 && bench_plan_due_ns(&p, 1000000) == S);
    assert_true(bench_plan_calls(&p, S) == 1000000 && bench_plan_stage(&p, UINT64_MAX) == 0);
    bench_plan_add(&p, 1, 1, UINT64_MAX);
    assert_true(bench_plan_end_ns(&p) == UINT64_MAX);
    bench_plan_fini(&p);
    p = plan_of("0/1s,0..0/2s");
    assert_false(bench_plan_any(&p));
    assert_true(bench_plan_due_ns(&p, 0) == NEVER && bench_plan_calls(&p, NEVER) == 0);
    bench_plan_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_begin_of_each_call),
        cmocka_unit_test(test_calls_of_each_stage),
        cmocka_unit_test(test_calls_at_a_time),
        cmocka_unit_test(test_one_endless_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
