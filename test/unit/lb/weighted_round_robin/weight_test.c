/* Weights from load reports: the formula, the periods, and reports that must change nothing.
 *
 * Reports are bytes that kits/orca packs, and configs are parsed from JSON. A test passes in the time, in nanoseconds;
 * no clock runs. A weight is qps / (utilization + eps / qps * errorUtilizationPenalty). tc_wrr_weight_get returns 0
 * while the weight must not be used. A test drops its weight and its config. One thread. */
#include "lb/weighted_round_robin/weight.h"

#include <math.h>

#include "lb/registry.h"
#include "lb/weighted_round_robin/policy.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/orca.h"

/* Returns the config of the JSON, which must be good, with one reference. */
static struct tc_lb_config *config_of(const char *json)
{
    struct tc_validation_errors errors = {0};
    json_t *value = json_loads(json, 0, NULL);
    assert_non_null(value);
    struct tc_lb_config *c = tc_wrr_config_parse(&tc_weighted_round_robin_factory, value, NULL, 0, &errors);
    assert_false(tc_validation_any(&errors));
    tc_validation_fini(&errors);
    json_decref(value);
    return c;
}

/* Returns the weight after one report, without a blackout; 0: the report changed nothing. */
static float weight_of(const char *json, const struct kit_orca *report)
{
    struct tc_lb_config *c = config_of(json);
    struct tc_wrr_weight *w = tc_wrr_weight_new();
    struct tc_buf bytes = {0};
    struct tc_wrr_config no_blackout = *tc_wrr_config(c);
    no_blackout.blackout_ms = 0;
    tc_wrr_weight_report(w, &no_blackout, kit_orca_pack(report, &bytes), 5);
    float weight = tc_wrr_weight_get(w, &no_blackout, 5);
    assert_true((weight > 0) == (w->non_empty_since_ns == 5));
    tc_buf_fini(&bytes);
    tc_wrr_weight_unref(w);
    tc_lb_config_unref(c);
    return weight;
}

#define METRICS(list) "{\"metricNamesForComputingUtilization\": [" list "]}"
#define COST METRICS("\"named_metrics.cost\"")
#define TWO METRICS("\"named_metrics.cost\", \"utilization.score\"")

static void the_formula(void **state)
{
    TC_CASE(WR07);
    TC_CASE(WR08);
    TC_CASE(WR13);
    TC_CASE(WR16);
    (void)state;
    static const struct {
        const char *config;
        struct kit_orca report;
        float weight;
    } rows[] = {
        {"{}", {.app = .9, .qps = 100}, 111.111115f},
        {"{}", {.app = .3, .qps = 100}, 333.333344f},
        {"{}", {.app = .1, .qps = 100, .eps = 50}, 166.666672f},
        {"{}", {.app = .1, .qps = 100, .eps = 20}, 333.333344f},
        {"{}", {.app = .1, .qps = 100, .eps = 10}, 500},
        {"{\"errorUtilizationPenalty\": 0}", {.app = .1, .qps = 100, .eps = 50}, 1000},
        {"{\"errorUtilizationPenalty\": 0}", {.cpu = .1, .qps = 10, .eps = 10}, 100},
        {"{\"errorUtilizationPenalty\": 0.9}", {.cpu = .1, .qps = 10, .eps = 10}, 10},
        {"{\"errorUtilizationPenalty\": 0.9}", {.cpu = 1, .qps = 10}, 10},
        {"{}", {.cpu = .5, .qps = 1, .eps = -1}, 2},
        {"{}", {.app = .8, .cpu = .1, .qps = 1}, 1.25f},
        {"{}", {.app = -1, .cpu = .1, .qps = 1}, 10},
        {"{}", {.app = 0, .cpu = .1, .qps = 1}, 10},
        {COST, {.app = .8, .cpu = .1, .qps = 1, .name = "cost", .named = .5}, 2},
        {COST, {.app = .8, .cpu = .1, .qps = 1, .name = "cost", .named = NAN}, 1.25f},
        {TWO, {.cpu = .1, .qps = 1, .name = "score", .named = .8, .is_utilization = true}, 1.25f},
        {COST, {.cpu = .1, .qps = 1, .name = "cost", .named = NAN}, 10},
        {COST, {.cpu = .1, .qps = 1, .name = "cost", .named = 0}, 10},
        {COST, {.cpu = .1, .qps = 1, .name = "cost", .named = -1}, 10},
        {COST, {.cpu = .1, .qps = 1, .name = "other", .named = .5}, 10},
        {METRICS("\"named_metrics.a.b\""), {.cpu = .1, .qps = 1, .name = "a.b", .named = .5}, 2},
        {METRICS("\"cpu_utilization\", \"mem_utilization\""), {.cpu = .25, .mem = .5, .app = 4, .qps = 1}, 2},
        {METRICS("\"application_utilization\""), {.cpu = .25, .app = .5, .qps = 1}, 2},
        {METRICS("\"rps\", \"\", \"named_metrics\", \"cpu_utilization.x\""), {.cpu = .5, .qps = 1}, 2},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        float weight = weight_of(rows[i].config, &rows[i].report);
        assert_true(fabsf(weight - rows[i].weight) <= 1e-6f * rows[i].weight);
    }
}

/* Returns true if a weight may come of this QPS and this load. */
static bool usable(double qps, double load)
{
    return qps > 0 && load > 0 && isfinite(qps) && isfinite(load);
}

/* Numbers of a report at the ends of their range: the weight is finite and positive, or the report is ignored. A report
 * is ignored if its QPS or its load is not positive and finite. */
static void hostile_numbers(void **state)
{
    (void)state;
    static const double all[] = {
        0, -0.0, 1, -1, 1e-308, 1e308, -1e308, 5e-324, NAN, (double)INFINITY, -(double)INFINITY};
    enum { N = TC_ARRAY_LEN(all) };
    unsigned weights = 0;
    for (size_t i = 0; i < N * N * N * N; i++) {
        struct kit_orca r = {.qps = all[i % N], .eps = all[i / N % N], .app = all[i / N / N % N]};
        double cost = all[i / N / N / N];
        float plain = weight_of("{\"errorUtilizationPenalty\": 1e308}", &r);
        r.name = "cost";
        r.named = cost;
        float named = weight_of(COST, &r);
        assert_true(plain >= 0 && isfinite(plain) && named >= 0 && isfinite(named));
        assert_true(plain == 0 || usable(r.qps, r.app));
        assert_true(named == 0 || usable(r.qps, cost > 0 ? cost : r.app));
        weights += plain > 0;
    }
    assert_true(weights > 0);
}

static void malformed_reports(void **state)
{
    (void)state;
    struct tc_lb_config *c = config_of("{\"blackoutPeriod\": \"0s\"}");
    struct tc_buf bytes = {0};
    struct kit_orca report = {.app = .5, .qps = 1, .name = "n", .named = 1};
    struct tc_slice whole = kit_orca_pack(&report, &bytes);
    unsigned refused = 0;
    for (size_t len = 0; len < whole.len; len++) {
        struct tc_wrr_weight *w = tc_wrr_weight_new();
        tc_wrr_weight_report(w, tc_wrr_config(c), tc_slice_of(whole.data, len), 0);
        refused += w->non_empty_since_ns == UINT64_MAX;
        tc_wrr_weight_unref(w);
    }
    assert_int_equal(refused, whole.len); /* application_utilization, the last field, is cut short or missing */
    tc_buf_append(&bytes, "\x42\x03\x0a\x01\xff", 5); /* a name that is not UTF-8 */
    struct tc_wrr_weight *w = tc_wrr_weight_new();
    tc_wrr_weight_report(w, tc_wrr_config(c), tc_buf_slice(&bytes), 0);
    assert_int_equal(w->non_empty_since_ns, UINT64_MAX);
    tc_wrr_weight_unref(w);
    tc_buf_fini(&bytes);
    tc_lb_config_unref(c);
}

static void blackout_and_expiration(void **state)
{
    TC_CASE(WR09);
    TC_CASE(WR11);
    (void)state;
    const uint64_t s = 1000000000;
    struct tc_lb_config *base = config_of("{\"blackoutPeriod\": \"1s\", \"weightExpirationPeriod\": \"2s\"}");
    const struct tc_wrr_config *c = tc_wrr_config(base);
    struct tc_wrr_weight *w = tc_wrr_weight_new();
    struct tc_buf bytes = {0};
    struct kit_orca report = {.app = .5, .qps = 1};
    struct tc_slice r = kit_orca_pack(&report, &bytes);
    assert_true(tc_wrr_weight_get(w, c, 7 * s) == 0);
    tc_wrr_weight_report(w, c, r, 10 * s);
    tc_wrr_weight_report(w, c, r, 10 * s + s / 2); /* the blackout counts from the first report */
    assert_true(tc_wrr_weight_get(w, c, 11 * s - 1) == 0);
    assert_true(tc_wrr_weight_get(w, c, 11 * s) == 2);
    assert_true(tc_wrr_weight_get(w, c, 12 * s - 1) == 2);
    tc_wrr_weight_report(w, c, r, 12 * s - 1);
    assert_true(tc_wrr_weight_get(w, c, 14 * s - 2) == 2);
    assert_true(tc_wrr_weight_get(w, c, 14 * s - 1) == 0); /* expired: the blackout begins with the next report */
    tc_wrr_weight_report(w, c, r, 20 * s);
    assert_true(tc_wrr_weight_get(w, c, 21 * s - 1) == 0);
    assert_true(tc_wrr_weight_get(w, c, 21 * s) == 2);
    w->non_empty_since_ns = UINT64_MAX; /* as the policy does when the endpoint is READY again */
    assert_true(tc_wrr_weight_get(w, c, 21 * s) == 0);
    struct tc_wrr_config no_blackout = *c;
    no_blackout.blackout_ms = 0;
    assert_true(tc_wrr_weight_get(w, &no_blackout, 22 * s - 1) == 2);
    assert_true(tc_wrr_weight_get(w, &no_blackout, 22 * s) == 0);
    tc_buf_fini(&bytes);
    tc_wrr_weight_unref(w);
    tc_lb_config_unref(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formula),
        cmocka_unit_test(hostile_numbers),
        cmocka_unit_test(malformed_reports),
        cmocka_unit_test(blackout_and_expiration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
