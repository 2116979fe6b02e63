/* outlier_detection's config: defaults, errors, equality. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"
#include "lb/outlier_detection/policy.h"

#define RR "'childPolicy': [{'round_robin': {}}]"

static int setup(void **state)
{
    *state = fake_lb_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

static void defaults(void **state)
{
    TC_CASE(OD09);
    struct fake_lb *f = *state;
    const char *json = "{'successRateEjection': {}, 'failurePercentageEjection': {}, " RR "}";
    struct tc_lb_config *config = fake_lb_config(f, "outlier_detection", json, NULL);
    const struct tc_outlier_settings *s = &tc_outlier_config(config)->settings;
    assert_int_equal(s->interval_ms, 10000);
    assert_int_equal(s->base_ejection_ms, 30000);
    assert_int_equal(s->max_ejection_ms, 300000);
    assert_int_equal(s->max_ejection_percent, 10);
    assert_true(s->success_rate.on);
    assert_int_equal(s->stdev_factor, 1900);
    assert_int_equal(s->success_rate.enforcement_percent, 100);
    assert_int_equal(s->success_rate.minimum_hosts, 5);
    assert_int_equal(s->success_rate.request_volume, 100);
    assert_true(s->failure_percentage.on);
    assert_int_equal(s->failure_threshold, 85);
    assert_int_equal(s->failure_percentage.enforcement_percent, 100);
    assert_int_equal(s->failure_percentage.minimum_hosts, 5);
    assert_int_equal(s->failure_percentage.request_volume, 50);
    tc_lb_config_unref(config);
    config =
        fake_lb_config(f, "outlier_detection", "{'interval': '1.5s', 'baseEjectionTime': '0.0000001s', " RR "}", NULL);
    s = &tc_outlier_config(config)->settings;
    assert_false(s->success_rate.on);
    assert_false(s->failure_percentage.on);
    assert_int_equal(s->interval_ms, 1500);
    assert_int_equal(s->base_ejection_ms, 1);
    tc_lb_config_unref(config);
}

static void errors(void **state)
{
    struct fake_lb *f = *state;
    static const struct {
        const char *fields, *why;
    } cases[] = {
        {"'interval': '1s'", ".childPolicy: field not present"},
        {"'childPolicy': [{'nobody': {}}]", ".childPolicy: "},
        {"'interval': '-1s', " RR, ".interval: \"-1s\" is not a duration"},
        {"'interval': '1', " RR, ".interval: "},
        {"'interval': 's', " RR, ".interval: "},
        {"'interval': '250ms', " RR, ".interval: "},
        {"'interval': '1.s', " RR, ".interval: "},
        {"'interval': '1.0000000001s', " RR, ".interval: "},
        {"'interval': 1, " RR, ".interval: "},
        {"'baseEjectionTime': '315576000001s', " RR, ".baseEjectionTime: "},
        {"'maxEjectionTime': '315576000000.1s', " RR, ".maxEjectionTime: "},
        {"'maxEjectionPercent': 101, " RR, ".maxEjectionPercent: must be a whole number from 0 to 100"},
        {"'successRateEjection': 1, " RR, ".successRateEjection: must be an object"},
        {"'successRateEjection': {'enforcementPercentage': 101}, " RR, ".successRateEjection.enforcementPercentage: "},
        {"'failurePercentageEjection': {'threshold': 101}, " RR, ".failurePercentageEjection.threshold: "},
        {"'failurePercentageEjection': {'enforcementPercentage': 101}, " RR,
         ".failurePercentageEjection.enforcementPercentage: "},
        {"'successRateEjection': {'requestVolume': -1}, " RR, ".successRateEjection.requestVolume: "},
        {"'interval': 'x', 'maxEjectionPercent': 200, " RR, ".maxEjectionPercent: "},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        char *json = tc_asprintf("{%s}", cases[i].fields), *why = NULL;
        assert_null(fake_lb_config(f, "outlier_detection", json, &why));
        if (!strstr(why, cases[i].why))
            fail_msg("%s: \"%s\" does not contain \"%s\"", cases[i].fields, why, cases[i].why);
        tc_free(json);
        tc_free(why);
    }
}

static void equality(void **state)
{
    struct fake_lb *f = *state;
    static const char *const distinct[] = {
        RR,
        "'interval': '11s', " RR,
        "'baseEjectionTime': '11s', " RR,
        "'maxEjectionTime': '11s', " RR,
        "'maxEjectionPercent': 11, " RR,
        "'successRateEjection': {}, " RR,
        "'successRateEjection': {'stdevFactor': 1}, " RR,
        "'successRateEjection': {'enforcementPercentage': 1}, " RR,
        "'successRateEjection': {'minimumHosts': 1}, " RR,
        "'successRateEjection': {'requestVolume': 1}, " RR,
        "'failurePercentageEjection': {}, " RR,
        "'failurePercentageEjection': {'threshold': 1}, " RR,
        "'failurePercentageEjection': {'enforcementPercentage': 1}, " RR,
        "'failurePercentageEjection': {'minimumHosts': 1}, " RR,
        "'failurePercentageEjection': {'requestVolume': 1}, " RR,
        "'childPolicy': [{'pick_first': {}}]",
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(distinct); i++)
        for (size_t k = 0; k < TC_ARRAY_LEN(distinct); k++) {
            char *ja = tc_asprintf("{%s}", distinct[i]), *jb = tc_asprintf("{%s}", distinct[k]);
            struct tc_lb_config *a = fake_lb_config(f, "outlier_detection", ja, NULL);
            struct tc_lb_config *b = fake_lb_config(f, "outlier_detection", jb, NULL);
            assert_int_equal(tc_lb_config_eq(a, b), i == k);
            tc_lb_config_unref(a);
            tc_lb_config_unref(b);
            tc_free(ja);
            tc_free(jb);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(defaults), TEST(errors), TEST(equality)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
