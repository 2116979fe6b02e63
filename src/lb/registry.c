/* The registry of LB policies, and loadBalancingConfig lists.
 *
 * A list [{"name": {config}}, ...] gives the policies in order of preference. The first registered policy is chosen. An
 * error in its config fails the whole list, even if a later policy is fine (A24). A malformed entry before the chosen
 * one fails the list, too; entries behind the chosen one are not read. A policy with children parses their lists
 * through tc_lb_parse_list with a larger depth.
 *
 * A registry points to factories that it does not own. Parsing only reads the registry, so any thread may parse. */
#include "lb/registry.h"

#include "base/json.h"
#include "base/mem.h"

enum {
    MAX_DEPTH = 16, /* A52 */
    MAX_NAMES = 8,  /* of unsupported policies that an error text lists */
};

struct tc_lb_registry *tc_lb_registry_new(void)
{
    return TC_NEW(struct tc_lb_registry);
}

void tc_lb_registry_free(struct tc_lb_registry *r)
{
    if (!r)
        return;
    tc_vec_fini(&r->factories);
    tc_free(r);
}

const struct tc_lb_factory *tc_lb_registry_find(const struct tc_lb_registry *r, struct tc_slice name)
{
    for (size_t i = 0; i < r->factories.len; i++) {
        const struct tc_lb_factory *factory = r->factories.data[i];
        if (tc_slice_eq_str(name, factory->name) || (factory->alias && tc_slice_eq_str(name, factory->alias)))
            return factory;
    }
    return NULL;
}

int tc_lb_registry_add(struct tc_lb_registry *r, const struct tc_lb_factory *factory)
{
    if (tc_lb_registry_find(r, tc_slice_str(factory->name)) ||
        (factory->alias && tc_lb_registry_find(r, tc_slice_str(factory->alias))))
        return TORC_EEXIST;
    *tc_vec_push(&r->factories) = factory;
    return 0;
}

/* Reads {"name": {config}}. Adds an error and returns false when the entry has another form. */
static bool read_policy_entry(const json_t *entry, const char **name, const json_t **config,
                              struct tc_validation_errors *errors)
{
    if (!json_is_object(entry)) {
        tc_validation_add(errors, "must be an object");
        return false;
    }
    if (json_object_size(entry) != 1) {
        tc_validation_add(errors, "must have exactly one member, the policy's name");
        return false;
    }
    void *it = json_object_iter((json_t *)entry);
    *name = json_object_iter_key(it);
    *config = json_object_iter_value(it);
    return true;
}

static struct tc_lb_config *parse_policy_config(const struct tc_lb_registry *r, const struct tc_lb_factory *factory,
                                                const json_t *json, unsigned depth, struct tc_validation_errors *errors)
{
    json_t *none = NULL;
    if (json_is_null(json))
        json = none = json_object();
    struct tc_lb_config *config = NULL;
    if (json_is_object(json))
        config = factory->parse_config(factory, json, r, depth, errors);
    else
        tc_validation_add(errors, "must be an object");
    json_decref(none);
    return config;
}

/* Appends the name of entry i: all entries before it are unsupported, too. */
static void add_unsupported_name(struct tc_buf *list, size_t i, const char *name)
{
    if (i > MAX_NAMES)
        return;
    tc_buf_append_str(list, i ? ", " : "");
    if (i == MAX_NAMES)
        tc_buf_append_str(list, "...");
    else
        tc_buf_printf(list, TC_SHOWN, TC_SHOW(name));
}

struct tc_lb_config *tc_lb_parse_list(const struct tc_lb_registry *r, const json_t *list, unsigned depth,
                                      struct tc_validation_errors *errors)
{
    if (depth > MAX_DEPTH) {
        tc_validation_add(errors, "more than %d nested LB policies", MAX_DEPTH);
        return NULL;
    }
    if (!json_is_array(list)) {
        tc_validation_add(errors, "must be an array");
        return NULL;
    }
    struct tc_buf asked = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name;
        const json_t *json;
        struct tc_lb_config *config = NULL;
        tc_validation_push(errors, "[%zu]", i);
        bool good = read_policy_entry(json_array_get(list, i), &name, &json, errors);
        const struct tc_lb_factory *factory = good ? tc_lb_registry_find(r, tc_slice_str(name)) : NULL;
        if (factory) {
            tc_validation_push(errors, ".%s", name);
            config = parse_policy_config(r, factory, json, depth, errors);
            tc_validation_pop(errors);
        }
        tc_validation_pop(errors);
        if (!good || factory) {
            tc_buf_fini(&asked);
            return config;
        }
        add_unsupported_name(&asked, i, name);
    }
    tc_validation_add(errors, "no supported LB policy in the list%s%s", asked.len ? ": " : "", tc_buf_cstr(&asked));
    tc_buf_fini(&asked);
    return NULL;
}

struct tc_lb_config *tc_lb_parse_child(const struct tc_lb_registry *r, const json_t *object, const char *key,
                                       unsigned depth, struct tc_validation_errors *errors)
{
    const json_t *list = NULL;
    size_t before = errors->count;
    char *path = tc_asprintf(".%s", key);
    struct tc_lb_config *config = NULL;
    if (tc_json_get_arr(object, key, &list, errors)) {
        tc_validation_push(errors, "%s", path);
        config = tc_lb_parse_list(r, list, depth + 1, errors);
        tc_validation_pop(errors);
    } else if (errors->count == before) {
        tc_validation_add_at(errors, path, "field not present");
    }
    tc_free(path);
    return config;
}

struct tc_lb_config *tc_lb_default_config(const struct tc_lb_registry *r, const char *name)
{
    const struct tc_lb_factory *factory = tc_lb_registry_find(r, tc_slice_str(name));
    if (!factory)
        return NULL;
    struct tc_validation_errors errors = {0};
    json_t *json = json_object();
    struct tc_lb_config *config = factory->parse_config(factory, json, r, 0, &errors);
    json_decref(json);
    tc_validation_fini(&errors);
    return config;
}
