/* xds_override_host's config: A55's OverrideHostLoadBalancingPolicyConfig as JSON, with A75's idle timeout. */
#include "lb/override_host_config.h"

#include "base/json.h"
#include "base/mem.h"

struct config {
    struct tc_lb_config base;
    struct tc_override_host_settings settings;
    struct tc_lb_config *child;
};

const struct tc_override_host_settings tc_override_host_defaults = {
    .statuses = 1u << TC_HEALTH_UNKNOWN | 1u << TC_HEALTH_HEALTHY,
    .idle_timeout_ms = 3600000,
};

struct tc_lb_config *tc_override_host_config_new(const struct tc_override_host_settings *settings,
                                                 struct tc_lb_config *child)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_override_host_class;
    tc_ref_init(&c->base.ref);
    c->settings = *settings;
    c->child = tc_lb_config_ref(child);
    return &c->base;
}

const struct tc_override_host_settings *tc_override_host_settings(const struct tc_lb_config *config)
{
    return &((const struct config *)config)->settings;
}

struct tc_lb_config *tc_override_host_child(const struct tc_lb_config *config)
{
    return ((const struct config *)config)->child;
}

/* A55: other values than these are ignored. */
static void read_statuses(const json_t *json, unsigned *out, struct tc_faults *faults)
{
    static const struct {
        const char *name;
        enum tc_health health;
    } known[] = {{"UNKNOWN", TC_HEALTH_UNKNOWN}, {"HEALTHY", TC_HEALTH_HEALTHY}, {"DRAINING", TC_HEALTH_DRAINING}};
    const json_t *list = NULL;
    if (!tc_json_get_arr(json, "overrideHostStatus", &list, faults))
        return;
    *out = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = 0; k < TC_ARRAY_LEN(known); k++) {
            const json_t *v = json_array_get(list, i);
            if ((json_is_string(v) && strcmp(json_string_value(v), known[k].name) == 0) ||
                (json_is_integer(v) && json_integer_value(v) == (json_int_t)known[k].health))
                *out |= 1u << known[k].health;
        }
}

struct tc_lb_config *tc_override_host_parse(const struct tc_lb_class *cls, const json_t *json,
                                            const struct tc_lb_registry *registry, unsigned depth,
                                            struct tc_faults *faults)
{
    (void)cls;
    struct tc_override_host_settings s = tc_override_host_defaults;
    const json_t *list = NULL;
    size_t before = faults->count;
    s.sessions = true;
    read_statuses(json, &s.statuses, faults);
    tc_json_get_duration_ms(json, "idleTimeout", &s.idle_timeout_ms, faults);
    if (!tc_json_get_arr(json, "childPolicy", &list, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".childPolicy", "field not present");
        return NULL;
    }
    tc_faults_push(faults, ".childPolicy");
    struct tc_lb_config *child = tc_lb_parse_list(registry, list, depth + 1, faults);
    tc_faults_pop(faults);
    struct tc_lb_config *config = faults->count == before ? tc_override_host_config_new(&s, child) : NULL;
    tc_lb_config_unref(child);
    return config;
}

void tc_override_host_free_config(struct tc_lb_config *base)
{
    struct config *c = (struct config *)base;
    tc_lb_config_unref(c->child);
    tc_free(c);
}

bool tc_override_host_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    const struct tc_override_host_settings *s = &a->settings, *t = &b->settings;
    return s->sessions == t->sessions && s->statuses == t->statuses && s->idle_timeout_ms == t->idle_timeout_ms &&
           tc_lb_config_eq(a->child, b->child);
}
