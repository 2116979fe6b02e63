/* weight = qps / (utilization + eps / qps * errorUtilizationPenalty).
 *
 * The utilization is the largest of the metrics that the config names (A114). If none of them is above 0, it is the
 * report's application_utilization, or else its cpu_utilization. The backend may send any numbers: a report whose
 * weight would be NaN, infinite or below TC_WRR_WEIGHT_MIN is ignored. */
#include "lb/weighted_round_robin/weight.h"

#include <float.h>

#include "base/mem.h"
#include "lb/orca.h"
#include "lb/weighted_round_robin/scheduler.h"

struct tc_wrr_weight *tc_wrr_weight_new(void)
{
    struct tc_wrr_weight *w = TC_NEW(struct tc_wrr_weight);
    tc_lref_init(&w->ref);
    w->non_empty_since_ns = UINT64_MAX;
    return w;
}

void tc_wrr_weight_unref(struct tc_wrr_weight *w)
{
    if (w && tc_lref_dec(&w->ref))
        tc_free(w);
}

struct report_sums {
    double fields[TC_ORCA_APPLICATION + 1]; /* by enum tc_orca_field; those of named fields are not used */
    double metrics[TC_WRR_METRICS_MAX];     /* metrics[i]: the value of config->metrics[i], or 0 */
};

/* Reads a report into *out, whose used parts must be zero. Returns false if the report is malformed. */
static bool report_read(struct tc_slice report, const struct tc_wrr_config *config, struct report_sums *out)
{
    struct tc_orca_value v;
    while (tc_orca_next(&report, &v)) {
        if (v.field <= TC_ORCA_APPLICATION)
            out->fields[v.field] = v.value;
        for (size_t i = 0; i < config->n_metrics; i++)
            if (config->metrics[i].field == v.field && tc_slice_eq(tc_rstr_slice(config->metrics[i].name), v.name))
                out->metrics[i] = v.value;
    }
    return report.len == 0;
}

static double report_utilization(const struct report_sums *r, const struct tc_wrr_config *config)
{
    double most = 0;
    for (size_t i = 0; i < config->n_metrics; i++)
        most = r->metrics[i] > most ? r->metrics[i] : most; /* false for NaN */
    if (most > 0)
        return most;
    return r->fields[TC_ORCA_APPLICATION] > 0 ? r->fields[TC_ORCA_APPLICATION] : r->fields[TC_ORCA_CPU];
}

void tc_wrr_weight_report(struct tc_wrr_weight *w, const struct tc_wrr_config *config, struct tc_slice report,
                          uint64_t now_ns)
{
    struct report_sums r;
    memset(r.fields, 0, sizeof(r.fields));
    memset(r.metrics, 0, config->n_metrics * sizeof(r.metrics[0]));
    if (!report_read(report, config, &r))
        return;
    double qps = r.fields[TC_ORCA_QPS], eps = r.fields[TC_ORCA_EPS], load = report_utilization(&r, config);
    if (!(qps > 0 && load > 0))
        return;
    if (eps > 0 && config->penalty > 0)
        load += eps / qps * config->penalty;
    double weight = qps / load;
    if (!(weight >= TC_WRR_WEIGHT_MIN && weight <= (double)FLT_MAX))
        return;
    w->weight = (float)weight;
    w->last_update_ns = now_ns;
    if (w->non_empty_since_ns == UINT64_MAX)
        w->non_empty_since_ns = now_ns;
}

float tc_wrr_weight_get(struct tc_wrr_weight *w, const struct tc_wrr_config *config, uint64_t now_ns)
{
    uint64_t since_ns = w->non_empty_since_ns;
    if ((now_ns - w->last_update_ns) / TC_NS_PER_MS >= config->expiration_ms) {
        w->non_empty_since_ns = UINT64_MAX;
        return 0;
    }
    bool blackout = since_ns == UINT64_MAX || (now_ns - since_ns) / TC_NS_PER_MS < config->blackout_ms;
    return config->blackout_ms > 0 && blackout ? 0 : w->weight; /* still 0 before the first report */
}
