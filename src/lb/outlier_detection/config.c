/* The config of outlier_detection as A50 writes it in JSON:
 *
 * {"interval": "10s", "baseEjectionTime": "30s", "maxEjectionTime": "300s", "maxEjectionPercent": 10,
 *  "successRateEjection": {"stdevFactor": 1900, "enforcementPercentage": 100, "minimumHosts": 5, "requestVolume": 100},
 *  "failurePercentageEjection": {"threshold": 85, "enforcementPercentage": 100, ...}, "childPolicy": [...]}
 *
 * All but childPolicy may be absent. An algorithm is on if its object is there, also if the object is empty. */
#include "lb/outlier_detection/config.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/registry.h"

const struct tc_outlier_settings tc_outlier_defaults = {
    .interval_ms = 10000,
    .base_ejection_ms = 30000,
    .max_ejection_ms = 300000,
    .max_ejection_percent = 10,
    .success_rate = {.stdev_factor = 1900, .enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 100},
    .failure_percentage = {.threshold = 85, .enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 50},
};

struct tc_lb_config *tc_outlier_config_new(const struct tc_lb_factory *factory,
                                           const struct tc_outlier_settings *settings, struct tc_lb_config *child)
{
    struct tc_outlier_config *c = TC_NEW(struct tc_outlier_config);
    tc_lb_config_init(&c->base, factory);
    c->settings = *settings;
    c->child = tc_lb_config_ref(child);
    return &c->base;
}

/* Keeps *out where the key is absent. */
static void config_read_u32(const json_t *json, const char *key, uint32_t max, uint32_t *out,
                            struct tc_validation_errors *errors)
{
    uint64_t value;
    if (tc_json_get_u64(json, key, max, &value, errors))
        *out = (uint32_t)value;
}

static void config_read_success_rate(const json_t *json, struct tc_outlier_settings *s,
                                     struct tc_validation_errors *errors)
{
    const json_t *obj = NULL;
    if (!tc_json_get_obj(json, "successRateEjection", &obj, errors))
        return;
    s->by_success_rate = true;
    tc_validation_push(errors, ".successRateEjection");
    config_read_u32(obj, "stdevFactor", UINT32_MAX, &s->success_rate.stdev_factor, errors);
    config_read_u32(obj, "enforcementPercentage", 100, &s->success_rate.enforcement_percent, errors);
    config_read_u32(obj, "minimumHosts", UINT32_MAX, &s->success_rate.minimum_hosts, errors);
    config_read_u32(obj, "requestVolume", UINT32_MAX, &s->success_rate.request_volume, errors);
    tc_validation_pop(errors);
}

static void config_read_failure_percentage(const json_t *json, struct tc_outlier_settings *s,
                                           struct tc_validation_errors *errors)
{
    const json_t *obj = NULL;
    if (!tc_json_get_obj(json, "failurePercentageEjection", &obj, errors))
        return;
    s->by_failure_percentage = true;
    tc_validation_push(errors, ".failurePercentageEjection");
    config_read_u32(obj, "threshold", 100, &s->failure_percentage.threshold, errors);
    config_read_u32(obj, "enforcementPercentage", 100, &s->failure_percentage.enforcement_percent, errors);
    config_read_u32(obj, "minimumHosts", UINT32_MAX, &s->failure_percentage.minimum_hosts, errors);
    config_read_u32(obj, "requestVolume", UINT32_MAX, &s->failure_percentage.request_volume, errors);
    tc_validation_pop(errors);
}

struct tc_lb_config *tc_outlier_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                             const struct tc_lb_registry *registry, unsigned depth,
                                             struct tc_validation_errors *errors)
{
    struct tc_outlier_settings s = tc_outlier_defaults;
    size_t before = errors->count;
    tc_json_get_duration_ms(json, "interval", &s.interval_ms, errors);
    tc_json_get_duration_ms(json, "baseEjectionTime", &s.base_ejection_ms, errors);
    tc_json_get_duration_ms(json, "maxEjectionTime", &s.max_ejection_ms, errors);
    config_read_u32(json, "maxEjectionPercent", 100, &s.max_ejection_percent, errors);
    config_read_success_rate(json, &s, errors);
    config_read_failure_percentage(json, &s, errors);
    struct tc_lb_config *child = tc_lb_parse_child(registry, json, "childPolicy", depth, errors);
    struct tc_lb_config *config = errors->count == before ? tc_outlier_config_new(factory, &s, child) : NULL;
    tc_lb_config_unref(child);
    return config;
}

void tc_outlier_config_free(struct tc_lb_config *base)
{
    struct tc_outlier_config *c = (struct tc_outlier_config *)base;
    tc_lb_config_unref(c->child);
    tc_free(c);
}

static bool settings_success_rate_eq(const struct tc_outlier_settings *a, const struct tc_outlier_settings *b)
{
    return a->by_success_rate == b->by_success_rate && a->success_rate.stdev_factor == b->success_rate.stdev_factor &&
           a->success_rate.enforcement_percent == b->success_rate.enforcement_percent &&
           a->success_rate.minimum_hosts == b->success_rate.minimum_hosts &&
           a->success_rate.request_volume == b->success_rate.request_volume;
}

static bool settings_failure_percentage_eq(const struct tc_outlier_settings *a, const struct tc_outlier_settings *b)
{
    return a->by_failure_percentage == b->by_failure_percentage &&
           a->failure_percentage.threshold == b->failure_percentage.threshold &&
           a->failure_percentage.enforcement_percent == b->failure_percentage.enforcement_percent &&
           a->failure_percentage.minimum_hosts == b->failure_percentage.minimum_hosts &&
           a->failure_percentage.request_volume == b->failure_percentage.request_volume;
}

bool tc_outlier_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_outlier_config *a = (const struct tc_outlier_config *)pa, *b = (const struct tc_outlier_config *)pb;
    const struct tc_outlier_settings *s = &a->settings, *t = &b->settings;
    return s->interval_ms == t->interval_ms && s->base_ejection_ms == t->base_ejection_ms &&
           s->max_ejection_ms == t->max_ejection_ms && s->max_ejection_percent == t->max_ejection_percent &&
           settings_success_rate_eq(s, t) && settings_failure_percentage_eq(s, t) &&
           tc_lb_config_eq(a->child, b->child);
}
