/* Decodes a Cluster's outlier_detection (A50). An absent field has A50's default, except that the default of
 * enforcing_failure_percentage is 0. An algorithm whose enforcement is 0 percent is off. Runs on any thread. */
#include "xds/resource/cluster_decoder.h"

static void decode_ms(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d, uint64_t *ms)
{
    if (d)
        tc_decode_duration_ms(dec, field, d, ms);
}

static void decode_percent(struct tc_decoder *dec, const char *field, const Google__Protobuf__UInt32Value *v,
                           uint32_t *out)
{
    if (!v)
        return;
    if (v->value > 100)
        tc_validation_add_at(dec->errors, field, "value must be <= 100");
    *out = v->value;
}

static void decode_u32(const Google__Protobuf__UInt32Value *v, uint32_t *out)
{
    if (v)
        *out = v->value;
}

const struct tc_outlier_settings *tc_decode_outlier(struct tc_decoder *dec,
                                                    const Envoy__Config__Cluster__V3__OutlierDetection *m)
{
    struct tc_outlier_settings *out = TC_RESOURCE_NEW(dec->arena, struct tc_outlier_settings);
    *out = tc_outlier_defaults;
    out->failure_percentage.enforcement_percent = 0;
    tc_validation_push(dec->errors, ".outlier_detection");
    decode_ms(dec, ".interval", m->interval, &out->interval_ms);
    decode_ms(dec, ".base_ejection_time", m->base_ejection_time, &out->base_ejection_ms);
    /* A50: by default 300 s, or base_ejection_time when that is longer. */
    out->max_ejection_ms = TC_MAX(out->base_ejection_ms, (uint64_t)300000);
    decode_ms(dec, ".max_ejection_time", m->max_ejection_time, &out->max_ejection_ms);
    decode_percent(dec, ".max_ejection_percent", m->max_ejection_percent, &out->max_ejection_percent);
    decode_percent(dec, ".enforcing_success_rate", m->enforcing_success_rate, &out->success_rate.enforcement_percent);
    decode_u32(m->success_rate_minimum_hosts, &out->success_rate.minimum_hosts);
    decode_u32(m->success_rate_request_volume, &out->success_rate.request_volume);
    decode_u32(m->success_rate_stdev_factor, &out->stdev_factor);
    decode_percent(dec, ".failure_percentage_threshold", m->failure_percentage_threshold, &out->failure_threshold);
    decode_percent(dec, ".enforcing_failure_percentage", m->enforcing_failure_percentage,
                   &out->failure_percentage.enforcement_percent);
    decode_u32(m->failure_percentage_minimum_hosts, &out->failure_percentage.minimum_hosts);
    decode_u32(m->failure_percentage_request_volume, &out->failure_percentage.request_volume);
    tc_validation_pop(dec->errors);
    out->success_rate.on = out->success_rate.enforcement_percent != 0;
    out->failure_percentage.on = out->failure_percentage.enforcement_percent != 0;
    return out;
}
