/* The config of xds_override_host as JSON (A55, A75):
 *
 * {"overrideHostStatus": ["UNKNOWN", "HEALTHY"], "idleTimeout": "3600s", "childPolicy": [...]}
 *
 * All fields but childPolicy may be absent. A config from JSON always has sessions; a config of cds has them if the
 * listener has the session filter. */
#include "xds/lb/override_host_config.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/registry.h"

const struct tc_override_host_settings tc_override_host_defaults = {
    .statuses = 1u << TC_HEALTH_UNKNOWN | 1u << TC_HEALTH_HEALTHY,
    .idle_timeout_ms = 3600000,
};

struct tc_lb_config *tc_override_config_new(const struct tc_lb_factory *factory,
                                            const struct tc_override_host_settings *settings,
                                            struct tc_lb_config *child)
{
    struct tc_override_host_config *c = TC_NEW(struct tc_override_host_config);
    tc_lb_config_init(&c->base, factory);
    c->settings = *settings;
    c->child = tc_lb_config_ref(child);
    return &c->base;
}

/* Stores the statuses, each given by its name or its number. Leaves *out as it is if the member is absent or not a
 * list. A55: values other than the three known ones are ignored. */
static void config_read_statuses(const json_t *json, unsigned *out, struct tc_validation_errors *errors)
{
    static const struct {
        const char *name;
        enum tc_health health;
    } known[] = {{"UNKNOWN", TC_HEALTH_UNKNOWN}, {"HEALTHY", TC_HEALTH_HEALTHY}, {"DRAINING", TC_HEALTH_DRAINING}};
    const json_t *list = NULL;
    if (!tc_json_get_arr(json, "overrideHostStatus", &list, errors))
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

struct tc_lb_config *tc_override_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                              const struct tc_lb_registry *registry, unsigned depth,
                                              struct tc_validation_errors *errors)
{
    struct tc_override_host_settings s = tc_override_host_defaults;
    size_t before = errors->count;
    s.sessions = true;
    config_read_statuses(json, &s.statuses, errors);
    tc_json_get_duration_ms(json, "idleTimeout", &s.idle_timeout_ms, errors);
    struct tc_lb_config *child = tc_lb_parse_child(registry, json, "childPolicy", depth, errors);
    struct tc_lb_config *config = errors->count == before ? tc_override_config_new(factory, &s, child) : NULL;
    tc_lb_config_unref(child);
    return config;
}

void tc_override_config_free(struct tc_lb_config *base)
{
    struct tc_override_host_config *c = (struct tc_override_host_config *)base;
    tc_lb_config_unref(c->child);
    tc_free(c);
}

bool tc_override_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_override_host_config *a = (const struct tc_override_host_config *)pa,
                                         *b = (const struct tc_override_host_config *)pb;
    const struct tc_override_host_settings *s = &a->settings, *t = &b->settings;
    return s->sessions == t->sessions && s->statuses == t->statuses && s->idle_timeout_ms == t->idle_timeout_ms &&
           tc_lb_config_eq(a->child, b->child);
}
