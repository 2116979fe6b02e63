#include "resource/outlier_parse.h"

static void read_ms(struct tc_reading *p, const char *field, const Google__Protobuf__Duration *d, uint64_t *ms)
{
    if (!d)
        return;
    tc_faults_push(p->faults, "%s", field);
    tc_read_duration_ms(p, d, ms);
    tc_faults_pop(p->faults);
}

static void read_percent(struct tc_reading *p, const char *field, const Google__Protobuf__UInt32Value *v, uint32_t *out)
{
    if (!v)
        return;
    if (v->value > 100)
        tc_faults_add_at(p->faults, field, "value must be <= 100");
    *out = v->value;
}

static void read_u32(const Google__Protobuf__UInt32Value *v, uint32_t *out)
{
    if (v)
        *out = v->value;
}

const struct tc_outlier_detection *tc_read_outlier(struct tc_reading *p,
                                                   const Envoy__Config__Cluster__V3__OutlierDetection *m)
{
    struct tc_outlier_detection *out = TC_STORE_NEW(p->store, struct tc_outlier_detection);
    *out = (struct tc_outlier_detection){
        .interval_ms = 10000,
        .base_ejection_ms = 30000,
        .max_ejection_percent = 10,
        .sr = {.stdev_factor = 1900, .enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 100},
        .fp = {.threshold = 85, .enforcement_percent = 0, .minimum_hosts = 5, .request_volume = 50},
    };
    tc_faults_push(p->faults, ".outlier_detection");
    read_ms(p, ".interval", m->interval, &out->interval_ms);
    read_ms(p, ".base_ejection_time", m->base_ejection_time, &out->base_ejection_ms);
    /* A50: by default 300 s, or base_ejection_time when that is longer. */
    out->max_ejection_ms = TC_MAX(out->base_ejection_ms, (uint64_t)300000);
    read_ms(p, ".max_ejection_time", m->max_ejection_time, &out->max_ejection_ms);
    read_percent(p, ".max_ejection_percent", m->max_ejection_percent, &out->max_ejection_percent);
    read_percent(p, ".enforcing_success_rate", m->enforcing_success_rate, &out->sr.enforcement_percent);
    read_u32(m->success_rate_minimum_hosts, &out->sr.minimum_hosts);
    read_u32(m->success_rate_request_volume, &out->sr.request_volume);
    read_u32(m->success_rate_stdev_factor, &out->sr.stdev_factor);
    read_percent(p, ".failure_percentage_threshold", m->failure_percentage_threshold, &out->fp.threshold);
    read_percent(p, ".enforcing_failure_percentage", m->enforcing_failure_percentage, &out->fp.enforcement_percent);
    read_u32(m->failure_percentage_minimum_hosts, &out->fp.minimum_hosts);
    read_u32(m->failure_percentage_request_volume, &out->fp.request_volume);
    tc_faults_pop(p->faults);
    out->success_rate = out->sr.enforcement_percent != 0;
    out->failure_percentage = out->fp.enforcement_percent != 0;
    return out;
}
