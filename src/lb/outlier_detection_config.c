/* outlier_detection's config: A50's OutlierDetectionLoadBalancingConfig as JSON. */
#include "lb/outlier_detection_config.h"
#include "base/json.h"
#include "base/mem.h"

struct config {
    struct tc_lb_config base;
    struct tc_outlier_settings settings;
    struct tc_lb_config *child;
};

const struct tc_outlier_settings tc_outlier_defaults = {
    .interval_ms = 10000,
    .base_ejection_ms = 30000,
    .max_ejection_ms = 300000,
    .max_ejection_percent = 10,
    .success_rate = {.stdev_factor = 1900, .enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 100},
    .failure_percentage = {.threshold = 85, .enforcement_percent = 100, .minimum_hosts = 5, .request_volume = 50},
};

struct tc_lb_config *tc_outlier_detection_config_new(const struct tc_outlier_settings *settings,
                                                     struct tc_lb_config *child)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_outlier_detection_class;
    tc_ref_init(&c->base.ref);
    c->settings = *settings;
    c->child = tc_lb_config_ref(child);
    return &c->base;
}

const struct tc_outlier_settings *tc_outlier_detection_settings(const struct tc_lb_config *config)
{
    return &((const struct config *)config)->settings;
}

struct tc_lb_config *tc_outlier_detection_child(const struct tc_lb_config *config)
{
    return ((const struct config *)config)->child;
}

static void read_u32(const json_t *json, const char *key, uint32_t max, uint32_t *out, struct tc_faults *faults)
{
    uint64_t value;
    if (tc_json_get_u64(json, key, max, &value, faults))
        *out = (uint32_t)value;
}

static void read_success_rate(const json_t *json, struct tc_outlier_settings *s, struct tc_faults *faults)
{
    const json_t *obj = NULL;
    if (!tc_json_get_obj(json, "successRateEjection", &obj, faults))
        return;
    s->by_success_rate = true;
    tc_faults_push(faults, ".successRateEjection");
    read_u32(obj, "stdevFactor", UINT32_MAX, &s->success_rate.stdev_factor, faults);
    read_u32(obj, "enforcementPercentage", 100, &s->success_rate.enforcement_percent, faults);
    read_u32(obj, "minimumHosts", UINT32_MAX, &s->success_rate.minimum_hosts, faults);
    read_u32(obj, "requestVolume", UINT32_MAX, &s->success_rate.request_volume, faults);
    tc_faults_pop(faults);
}

static void read_failure_percentage(const json_t *json, struct tc_outlier_settings *s, struct tc_faults *faults)
{
    const json_t *obj = NULL;
    if (!tc_json_get_obj(json, "failurePercentageEjection", &obj, faults))
        return;
    s->by_failure_percentage = true;
    tc_faults_push(faults, ".failurePercentageEjection");
    read_u32(obj, "threshold", 100, &s->failure_percentage.threshold, faults);
    read_u32(obj, "enforcementPercentage", 100, &s->failure_percentage.enforcement_percent, faults);
    read_u32(obj, "minimumHosts", UINT32_MAX, &s->failure_percentage.minimum_hosts, faults);
    read_u32(obj, "requestVolume", UINT32_MAX, &s->failure_percentage.request_volume, faults);
    tc_faults_pop(faults);
}

static struct tc_lb_config *read_child(const json_t *json, const struct tc_lb_registry *registry, unsigned depth,
                                       struct tc_faults *faults)
{
    const json_t *list = NULL;
    size_t before = faults->count;
    if (!tc_json_get_arr(json, "childPolicy", &list, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".childPolicy", "field not present");
        return NULL;
    }
    tc_faults_push(faults, ".childPolicy");
    struct tc_lb_config *child = tc_lb_parse_list(registry, list, depth + 1, faults);
    tc_faults_pop(faults);
    return child;
}

struct tc_lb_config *tc_outlier_detection_parse(const struct tc_lb_class *cls, const json_t *json,
                                                const struct tc_lb_registry *registry, unsigned depth,
                                                struct tc_faults *faults)
{
    (void)cls;
    struct tc_outlier_settings s = tc_outlier_defaults;
    size_t before = faults->count;
    tc_json_get_duration_ms(json, "interval", &s.interval_ms, faults);
    tc_json_get_duration_ms(json, "baseEjectionTime", &s.base_ejection_ms, faults);
    tc_json_get_duration_ms(json, "maxEjectionTime", &s.max_ejection_ms, faults);
    read_u32(json, "maxEjectionPercent", 100, &s.max_ejection_percent, faults);
    read_success_rate(json, &s, faults);
    read_failure_percentage(json, &s, faults);
    struct tc_lb_config *child = read_child(json, registry, depth, faults);
    struct tc_lb_config *config = faults->count == before ? tc_outlier_detection_config_new(&s, child) : NULL;
    tc_lb_config_unref(child);
    return config;
}

void tc_outlier_detection_free_config(struct tc_lb_config *base)
{
    struct config *c = (struct config *)base;
    tc_lb_config_unref(c->child);
    tc_free(c);
}

static bool success_rate_eq(const struct tc_outlier_settings *a, const struct tc_outlier_settings *b)
{
    return a->by_success_rate == b->by_success_rate && a->success_rate.stdev_factor == b->success_rate.stdev_factor &&
           a->success_rate.enforcement_percent == b->success_rate.enforcement_percent &&
           a->success_rate.minimum_hosts == b->success_rate.minimum_hosts &&
           a->success_rate.request_volume == b->success_rate.request_volume;
}

static bool failure_percentage_eq(const struct tc_outlier_settings *a, const struct tc_outlier_settings *b)
{
    return a->by_failure_percentage == b->by_failure_percentage &&
           a->failure_percentage.threshold == b->failure_percentage.threshold &&
           a->failure_percentage.enforcement_percent == b->failure_percentage.enforcement_percent &&
           a->failure_percentage.minimum_hosts == b->failure_percentage.minimum_hosts &&
           a->failure_percentage.request_volume == b->failure_percentage.request_volume;
}

bool tc_outlier_detection_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    const struct tc_outlier_settings *s = &a->settings, *t = &b->settings;
    return s->interval_ms == t->interval_ms && s->base_ejection_ms == t->base_ejection_ms &&
           s->max_ejection_ms == t->max_ejection_ms && s->max_ejection_percent == t->max_ejection_percent &&
           success_rate_eq(s, t) && failure_percentage_eq(s, t) && tc_lb_config_eq(a->child, b->child);
}
