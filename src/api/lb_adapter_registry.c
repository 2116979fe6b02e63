/* The registry of a channel with LB policies of the application's own: the built-in policies, and copies of the
 * application's factories, which the channel keeps until it is destroyed. Declared in lb_adapter_api.h. */
#include "api/builtin.h"
#include "api/lb_adapter.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/status.h"
#include "lb/registry.h"

struct tc_app_lb_factories {
    struct tc_lb_registry *registry;
    size_t n;
    struct {
        struct tc_lb_factory factory;
        struct torc_lb_factory app; /* a copy: a policy may end after the application's is gone */
    } at[];
};

static struct tc_lb_registry *registry_make(void)
{
    struct tc_lb_registry *r = tc_lb_registry_new();
    tc_builtin_add_policies(r);
    return r;
}

/* Accepts the structs of older headers, which have at least the members before `arg`, and the structs of newer headers
 * if the members that this version does not know are zero. */
static bool class_is_well_formed(const struct torc_lb_factory *app)
{
    return app->size >= offsetof(struct torc_lb_factory, arg) && tc_sized_known(app, sizeof(*app)) && app->name &&
           app->name[0] && app->create && app->update && app->pick && app->destroy;
}

struct tc_app_lb_factories *tc_app_lb_factories_new(const struct torc_lb_factory *const *list, torc_error **error)
{
    size_t n = 0;
    while (list[n])
        n++;
    size_t bytes;
    if (__builtin_mul_overflow(n, sizeof(((struct tc_app_lb_factories *)NULL)->at[0]), &bytes) ||
        bytes > SIZE_MAX / 2) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "lb_policies: %zu factories do not fit in memory", n);
        return NULL;
    }
    struct tc_app_lb_factories *c = tc_calloc(1, sizeof(*c) + bytes);
    c->registry = registry_make();
    for (size_t i = 0; i < n; i++) {
        bool ok = class_is_well_formed(list[i]);
        if (ok) {
            memcpy(&c->at[i].app, list[i], TC_MIN(list[i]->size, sizeof(c->at[i].app)));
            tc_app_lb_factory_init(&c->at[i].factory, &c->at[i].app);
            ok = tc_lb_registry_add(c->registry, &c->at[i].factory) == 0;
        }
        if (!ok) {
            tc_error_set(
                error, TORC_EINVAL, TORC_LAYER_API,
                "lb_policies[%zu] (\"%s\"): the factory is incomplete or a newer version's, or its name is taken", i,
                list[i]->name ? list[i]->name : "");
            tc_app_lb_factories_free(c);
            return NULL;
        }
    }
    c->n = n;
    return c;
}

void tc_app_lb_factories_free(struct tc_app_lb_factories *c)
{
    if (!c)
        return;
    tc_lb_registry_free(c->registry);
    tc_free(c);
}

const struct tc_lb_registry *tc_app_lb_factories_registry(const struct tc_app_lb_factories *c)
{
    return c->registry;
}
