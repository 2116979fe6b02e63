/* The config of weighted_round_robin as A58 and A114 write it in JSON:
 *
 * {"enableOobLoadReport": false, "oobReportingPeriod": "10s", "blackoutPeriod": "10s",
 *  "weightExpirationPeriod": "180s", "weightUpdatePeriod": "1s", "errorUtilizationPenalty": 1.0,
 *  "metricNamesForComputingUtilization": ["named_metrics.q"]}
 *
 * All of it may be absent; all values but the metric names are the defaults. Unknown metric names are left out
 * (A114). */
#include "lb/weighted_round_robin/config.h"

#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "lb/orca.h"

static void config_read_penalty(const json_t *json, double *out, struct tc_validation_errors *errors)
{
    const json_t *v = json_object_get(json, "errorUtilizationPenalty");
    if (!v || json_is_null(v))
        return;
    *out = json_number_value(v);
    if (!json_is_number(v))
        tc_validation_add_at(errors, ".errorUtilizationPenalty", "must be a number");
    else if (!isfinite(*out) || *out < 0)
        tc_validation_add_at(errors, ".errorUtilizationPenalty", "must be non-negative");
}

/* A114: "cpu_utilization" is a field, "named_metrics.K" the value of K in a map. Stores the metric, whose name is a new
 * reference. Returns false when there is no such metric. */
static bool metric_parse(struct tc_slice text, struct tc_wrr_metric *out)
{
    static const struct {
        const char *text;
        uint64_t field;
        bool named;
    } known[] = {
        {"cpu_utilization", TC_ORCA_CPU, false},
        {"mem_utilization", TC_ORCA_MEM, false},
        {"application_utilization", TC_ORCA_APPLICATION, false},
        {"named_metrics.", TC_ORCA_NAMED, true},
        {"utilization.", TC_ORCA_UTILIZATION, true},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(known); i++) {
        struct tc_slice head = tc_slice_str(known[i].text);
        if (known[i].named ? !tc_slice_starts(text, head) : !tc_slice_eq(text, head))
            continue;
        *out = (struct tc_wrr_metric){known[i].field, tc_rstr_new(text.data + head.len, text.len - head.len)};
        return true;
    }
    return false;
}

static void config_read_metrics(const json_t *json, struct tc_wrr_config *c, struct tc_validation_errors *errors)
{
    static const char key[] = "metricNamesForComputingUtilization";
    const json_t *list = NULL;
    if (!tc_json_get_arr(json, key, &list, errors))
        return;
    size_t n = json_array_size(list);
    if (n > TC_WRR_METRICS_MAX) {
        tc_validation_add_at(errors, ".metricNamesForComputingUtilization", "more than %d names", TC_WRR_METRICS_MAX);
        return;
    }
    c->metrics = tc_calloc(n ? n : 1, sizeof(*c->metrics));
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(list, i);
        tc_validation_push_index(errors, key, i);
        if (!json_is_string(name))
            tc_validation_add(errors, "must be a string");
        else if (metric_parse(tc_slice_of(json_string_value(name), json_string_length(name)),
                              &c->metrics[c->n_metrics]))
            c->n_metrics++;
        tc_validation_pop(errors);
    }
}

struct tc_lb_config *tc_wrr_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_validation_errors *errors)
{
    (void)registry, (void)depth;
    struct tc_wrr_config *c = TC_NEW(struct tc_wrr_config);
    size_t before = errors->count;
    tc_lb_config_init(&c->base, factory);
    c->oob_period_ms = c->blackout_ms = 10000;
    c->expiration_ms = 180000;
    c->update_ms = 1000;
    c->penalty = 1;
    tc_json_get_bool(json, "enableOobLoadReport", &c->oob, errors);
    tc_json_get_duration_ms(json, "oobReportingPeriod", &c->oob_period_ms, errors);
    tc_json_get_duration_ms(json, "blackoutPeriod", &c->blackout_ms, errors);
    tc_json_get_duration_ms(json, "weightExpirationPeriod", &c->expiration_ms, errors);
    tc_json_get_duration_ms(json, "weightUpdatePeriod", &c->update_ms, errors);
    c->update_ms = TC_MIN(TC_MAX(c->update_ms, (uint64_t)TC_WRR_UPDATE_MIN_MS), (uint64_t)TC_WRR_UPDATE_MAX_MS);
    config_read_penalty(json, &c->penalty, errors);
    config_read_metrics(json, c, errors);
    if (errors->count == before)
        return &c->base;
    tc_wrr_config_free(&c->base);
    return NULL;
}

void tc_wrr_config_free(struct tc_lb_config *base)
{
    struct tc_wrr_config *c = (struct tc_wrr_config *)base;
    for (size_t i = 0; i < c->n_metrics; i++)
        tc_rstr_unref(c->metrics[i].name);
    tc_free(c->metrics);
    tc_free(c);
}

bool tc_wrr_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_wrr_config *a = tc_wrr_config(pa), *b = tc_wrr_config(pb);
    for (size_t i = 0; i < a->n_metrics && i < b->n_metrics; i++)
        if (a->metrics[i].field != b->metrics[i].field || !tc_rstr_eq(a->metrics[i].name, b->metrics[i].name))
            return false;
    return a->oob == b->oob && a->oob_period_ms == b->oob_period_ms && a->blackout_ms == b->blackout_ms &&
           a->expiration_ms == b->expiration_ms && a->update_ms == b->update_ms &&
           memcmp(&a->penalty, &b->penalty, sizeof(a->penalty)) == 0 && a->n_metrics == b->n_metrics;
}
