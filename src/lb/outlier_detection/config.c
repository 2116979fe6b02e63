/* The config of outlier_detection as A50 writes it in JSON:
 *
 * {"interval": "10s", "baseEjectionTime": "30s", "maxEjectionTime": "300s", "maxEjectionPercent": 10,
 *  "successRateEjection": {"stdevFactor": 1900, "enforcementPercentage": 100, "minimumHosts": 5, "requestVolume": 100},
 *  "failurePercentageEjection": {"threshold": 85, "enforcementPercentage": 100, ...}, "childPolicy": [...]}
 *
 * Every key but childPolicy may be absent. An algorithm is on if its object is there, even an empty one. */
#include "lb/outlier_detection/config.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/registry.h"

const struct tc_outlier_settings tc_outlier_defaults = {
    .interval_ms = 10000,
    .base_ejection_ms = 30000,
    .max_ejection_ms = 300000,
    .max_ejection_percent = 10,
    .success_rate = {.enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 100},
    .stdev_factor = 1900,
    .failure_percentage = {.enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 50},
    .failure_threshold = 85,
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

/* Leaves *out as it is where the key is absent or null, and where the value is refused, which adds an error. */
static void config_read_u32(const json_t *json, const char *key, uint32_t max, uint32_t *out,
                            struct tc_validation_errors *errors)
{
    uint64_t value;
    if (tc_json_get_u64(json, key, max, &value, errors))
        *out = (uint32_t)value;
}

/* Reads the object of an algorithm. The algorithm's own limit is the number at `limit_key`, at most `limit_max`. */
static void config_read_algorithm(const json_t *json, const char *key, struct tc_outlier_algorithm *a,
                                  const char *limit_key, uint32_t limit_max, uint32_t *limit,
                                  struct tc_validation_errors *errors)
{
    const json_t *obj = NULL;
    if (!tc_json_get_obj(json, key, &obj, errors))
        return;
    a->on = true;
    tc_validation_push(errors, ".%s", key);
    config_read_u32(obj, limit_key, limit_max, limit, errors);
    config_read_u32(obj, "enforcementPercentage", 100, &a->enforcement_percent, errors);
    config_read_u32(obj, "minimumHosts", UINT32_MAX, &a->minimum_hosts, errors);
    config_read_u32(obj, "requestVolume", UINT32_MAX, &a->request_volume, errors);
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
    config_read_algorithm(json, "successRateEjection", &s.success_rate, "stdevFactor", UINT32_MAX, &s.stdev_factor,
                          errors);
    config_read_algorithm(json, "failurePercentageEjection", &s.failure_percentage, "threshold", 100,
                          &s.failure_threshold, errors);
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

static bool algorithm_eq(const struct tc_outlier_algorithm *a, const struct tc_outlier_algorithm *b)
{
    return a->on == b->on && a->enforcement_percent == b->enforcement_percent && a->minimum_hosts == b->minimum_hosts &&
           a->request_volume == b->request_volume;
}

bool tc_outlier_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_outlier_config *a = (const struct tc_outlier_config *)pa, *b = (const struct tc_outlier_config *)pb;
    const struct tc_outlier_settings *s = &a->settings, *t = &b->settings;
    return s->interval_ms == t->interval_ms && s->base_ejection_ms == t->base_ejection_ms &&
           s->max_ejection_ms == t->max_ejection_ms && s->max_ejection_percent == t->max_ejection_percent &&
           algorithm_eq(&s->success_rate, &t->success_rate) && s->stdev_factor == t->stdev_factor &&
           algorithm_eq(&s->failure_percentage, &t->failure_percentage) &&
           s->failure_threshold == t->failure_threshold && tc_lb_config_eq(a->child, b->child);
}
