/* The config of weighted_round_robin in JSON: defaults, bounds, and what is refused. */
#include "lb/weighted_round_robin/config.h"

#include "base/mem.h"
#include "lb/orca.h"
#include "lb/weighted_round_robin/policy.h"
#include "support/cmocka.h"

/* Returns the config with one reference, or NULL with the errors in *why (tc_free). `why` may be NULL for a config that
 * is good. */
static struct tc_lb_config *parse(const char *json, char **why)
{
    struct tc_validation_errors errors = {0};
    json_error_t error;
    json_t *value = json_loads(json, 0, &error);
    assert_non_null(value);
    struct tc_lb_config *c = tc_wrr_config_parse(&tc_weighted_round_robin_factory, value, NULL, 0, &errors);
    assert_true(!c == tc_validation_any(&errors));
    if (!c)
        *why = tc_strdup(tc_validation_text(&errors));
    tc_validation_fini(&errors);
    json_decref(value);
    return c;
}

static void defaults_and_bounds(void **state)
{
    (void)state;
    struct tc_lb_config *base = parse("{}", NULL);
    const struct tc_wrr_config *c = tc_wrr_config(base);
    assert_false(c->oob);
    assert_int_equal(c->oob_period_ms, 10000);
    assert_int_equal(c->blackout_ms, 10000);
    assert_int_equal(c->expiration_ms, 180000);
    assert_int_equal(c->update_ms, 1000);
    assert_true(c->penalty == 1);
    assert_int_equal(c->n_metrics, 0);
    tc_lb_config_unref(base);
    base = parse(
        "{\"enableOobLoadReport\": true, \"oobReportingPeriod\": \"0s\", \"blackoutPeriod\": \"0s\","
        " \"weightExpirationPeriod\": \"1.5s\", \"weightUpdatePeriod\": \"0.01s\","
        " \"errorUtilizationPenalty\": 0, \"metricNamesForComputingUtilization\": [\"named_metrics.a.b\", \"x\"]}",
        NULL);
    c = tc_wrr_config(base);
    assert_true(c->oob);
    assert_int_equal(c->oob_period_ms, 0);
    assert_int_equal(c->blackout_ms, 0);
    assert_int_equal(c->expiration_ms, 1500);
    assert_int_equal(c->update_ms, 100);
    assert_true(c->penalty == 0);
    assert_int_equal(c->n_metrics, 1);
    assert_int_equal(c->metrics[0].field, TC_ORCA_NAMED);
    assert_string_equal(c->metrics[0].name->data, "a.b");
    struct tc_lb_config *other = parse("{}", NULL);
    assert_false(tc_lb_config_eq(base, other));
    tc_lb_config_unref(other);
    tc_lb_config_unref(base);
    base = parse("{\"weightUpdatePeriod\": \"315576000000s\"}", NULL);
    assert_int_equal(tc_wrr_config(base)->update_ms, TC_WRR_UPDATE_MAX_MS);
    tc_lb_config_unref(base);
}

static void refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"errorUtilizationPenalty\": -0.1}", "errorUtilizationPenalty: must be non-negative"},
        {"{\"errorUtilizationPenalty\": true}", "errorUtilizationPenalty: must be a number"},
        {"{\"enableOobLoadReport\": 1}", "enableOobLoadReport"},
        {"{\"blackoutPeriod\": \"-1s\"}", "blackoutPeriod"},
        {"{\"blackoutPeriod\": 1}", "blackoutPeriod"},
        {"{\"weightUpdatePeriod\": \"1m\"}", "weightUpdatePeriod"},
        {"{\"metricNamesForComputingUtilization\": \"x\"}", "metricNamesForComputingUtilization"},
        {"{\"metricNamesForComputingUtilization\": [\"cpu_utilization\", 1]}",
         "metricNamesForComputingUtilization[1]: must be a string"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char *why = NULL;
        assert_null(parse(rows[i][0], &why));
        if (!strstr(why, rows[i][1]))
            fail_msg("%s", why);
        tc_free(why);
    }
    struct tc_buf many = {0};
    tc_buf_append_str(&many, "{\"metricNamesForComputingUtilization\": [\"\"");
    for (unsigned i = 0; i < TC_WRR_METRICS_MAX; i++)
        tc_buf_append_str(&many, ", \"cpu_utilization\"");
    tc_buf_append_str(&many, "]}");
    char *why = NULL;
    assert_null(parse(tc_buf_cstr(&many), &why));
    assert_non_null(strstr(why, "more than 100 names"));
    tc_free(why);
    tc_buf_fini(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_bounds),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
