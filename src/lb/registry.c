#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "lb/outlier_detection.h"
#include "lb/override_host.h"
#include "lb/pick_first.h"
#include "lb/policy.h"
#include "lb/priority.h"
#include "lb/ring_hash.h"
#include "lb/round_robin.h"
#include "lb/weighted_target.h"

enum { MAX_DEPTH = 16 }; /* A52 */
enum { MAX_NAMES = 8 };  /* in a text */

struct tc_lb_config *tc_lb_config_ref(struct tc_lb_config *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void tc_lb_config_unref(struct tc_lb_config *c)
{
    if (c && tc_ref_dec(&c->ref))
        c->cls->free_config(c);
}

bool tc_lb_config_eq(const struct tc_lb_config *a, const struct tc_lb_config *b)
{
    if (a == b)
        return true;
    return a && b && a->cls == b->cls && a->cls->equal_config && a->cls->equal_config(a, b);
}

/* Some ten policies: a list is as fast as a table. */
struct tc_lb_registry {
    TC_VEC(const struct tc_lb_class *) classes;
};

struct tc_lb_registry *tc_lb_registry_new(void)
{
    return TC_NEW(struct tc_lb_registry);
}

void tc_lb_registry_free(struct tc_lb_registry *r)
{
    if (!r)
        return;
    tc_vec_fini(&r->classes);
    tc_free(r);
}

const struct tc_lb_class *tc_lb_registry_find(const struct tc_lb_registry *r, struct tc_slice name)
{
    for (size_t i = 0; i < r->classes.len; i++) {
        const struct tc_lb_class *cls = r->classes.data[i];
        if (tc_slice_eq_str(name, cls->name) || (cls->alias && tc_slice_eq_str(name, cls->alias)))
            return cls;
    }
    return NULL;
}

int tc_lb_registry_add(struct tc_lb_registry *r, const struct tc_lb_class *cls)
{
    if (tc_lb_registry_find(r, tc_slice_str(cls->name)) ||
        (cls->alias && tc_lb_registry_find(r, tc_slice_str(cls->alias))))
        return TORC_EEXIST;
    *tc_vec_push(&r->classes) = cls;
    return 0;
}

void tc_lb_registry_add_standard(struct tc_lb_registry *r)
{
    static const struct tc_lb_class *const standard[] = {
        &tc_pick_first_class, &tc_round_robin_class,       &tc_weighted_target_class, &tc_priority_class,
        &tc_ring_hash_class,  &tc_outlier_detection_class, &tc_override_host_class};
    for (size_t i = 0; i < TC_ARRAY_LEN(standard); i++)
        tc_lb_registry_add(r, standard[i]);
}

/* The one member of a list's entry; false, with a fault, when the entry has another form. */
static bool read_entry(const json_t *entry, const char **name, const json_t **config, struct tc_faults *faults)
{
    if (!json_is_object(entry)) {
        tc_faults_add(faults, "must be an object");
        return false;
    }
    if (json_object_size(entry) != 1) {
        tc_faults_add(faults, "must have exactly one member, the policy's name");
        return false;
    }
    void *it = json_object_iter((json_t *)entry);
    *name = json_object_iter_key(it);
    *config = json_object_iter_value(it);
    return true;
}

static struct tc_lb_config *parse_config(const struct tc_lb_registry *r, const struct tc_lb_class *cls,
                                         const json_t *json, unsigned depth, struct tc_faults *faults)
{
    json_t *none = NULL;
    if (json_is_null(json))
        json = none = json_object();
    struct tc_lb_config *config = NULL;
    if (json_is_object(json))
        config = cls->parse_config(cls, json, r, depth, faults);
    else
        tc_faults_add(faults, "must be an object");
    json_decref(none);
    return config;
}

/* The names of what is not supported, for the text that says so. */
static void add_name(struct tc_buf *list, size_t i, const char *name)
{
    if (i > MAX_NAMES)
        return;
    tc_buf_append_str(list, i ? ", " : "");
    tc_buf_printf(list, i == MAX_NAMES ? "..." : "%.64s", name);
}

struct tc_lb_config *tc_lb_parse_list(const struct tc_lb_registry *r, const json_t *list, unsigned depth,
                                      struct tc_faults *faults)
{
    if (depth > MAX_DEPTH) {
        tc_faults_add(faults, "more than %d nested LB policies", MAX_DEPTH);
        return NULL;
    }
    if (!json_is_array(list)) {
        tc_faults_add(faults, "must be an array");
        return NULL;
    }
    struct tc_buf asked = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name;
        const json_t *json;
        struct tc_lb_config *config = NULL;
        tc_faults_push(faults, "[%zu]", i);
        bool good = read_entry(json_array_get(list, i), &name, &json, faults);
        const struct tc_lb_class *cls = good ? tc_lb_registry_find(r, tc_slice_str(name)) : NULL;
        if (cls) {
            tc_faults_push(faults, ".%s", name);
            config = parse_config(r, cls, json, depth, faults);
            tc_faults_pop(faults);
        }
        tc_faults_pop(faults);
        if (!good || cls) {
            tc_buf_fini(&asked);
            return config;
        }
        add_name(&asked, i, name);
    }
    tc_faults_add(faults, "no supported LB policy in the list%s%s", asked.len ? ": " : "", tc_buf_cstr(&asked));
    tc_buf_fini(&asked);
    return NULL;
}

struct tc_lb_config *tc_lb_default_config(const struct tc_lb_registry *r, const char *name)
{
    const struct tc_lb_class *cls = tc_lb_registry_find(r, tc_slice_str(name));
    if (!cls)
        return NULL;
    struct tc_faults faults;
    tc_faults_init(&faults);
    json_t *json = json_object();
    struct tc_lb_config *config = cls->parse_config(cls, json, r, 0, &faults);
    json_decref(json);
    tc_faults_fini(&faults);
    return config;
}
