/* The registry of a channel with LB policies of the application's own: the built-in policies, and copies of the
 * application's factories. The channel keeps it until the channel's memory goes. Declared in lb_adapter_api.h. */
#include <stdio.h>

#include "api/builtin.h"
#include "api/lb_adapter.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/status.h"
#include "lb/registry.h"

struct tc_app_lb_factories {
    struct tc_lb_registry *registry; /* owned */
    size_t n;
    struct tc_app_lb_factory at[]; /* with copies: a policy may outlive the application's struct */
};

static struct tc_lb_registry *registry_make(void)
{
    struct tc_lb_registry *r = tc_lb_registry_new();
    tc_builtin_add_policies(r);
    return r;
}

/* Copies factory i. Returns false with an error if it is malformed or its name is taken. */
static bool factory_add(struct tc_app_lb_factories *c, size_t i, const struct torc_lb_factory *given,
                        torc_error **error)
{
    struct torc_lb_factory *app = &c->at[i].app;
    char title[sizeof("lb_policies[18446744073709551615]")];
    snprintf(title, sizeof(title), "lb_policies[%zu]", i);
    if (!tc_sized_read(app, sizeof(*app), given, title, "torc_lb_factory", error))
        return false;
    const char *missing = !app->name     ? "name"
                          : !app->create ? "create"
                          : !app->update ? "update"
                          : !app->pick   ? "pick"
                                         : NULL;
    if (missing)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: it is NULL", title, missing);
    if (!app->name[0])
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: name: it is empty", title);
    tc_app_lb_factory_init(&c->at[i]);
    return tc_lb_registry_add(c->registry, &c->at[i].base) == 0 ||
           tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: name: \"" TC_SHOWN "\" is taken", title,
                        TC_SHOW(app->name));
}

struct tc_app_lb_factories *tc_app_lb_factories_new(const struct torc_lb_factory *const *list,
                                                    const struct tc_loop *loop, torc_error **error)
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
        c->at[i].loop = loop;
        if (!factory_add(c, i, list[i], error)) {
            tc_app_lb_factories_free(c);
            return NULL;
        }
    }
    c->n = n;
    return c;
}

void tc_app_lb_factories_release(const struct tc_app_lb_factories *c)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (c->at[i].app.release)
            c->at[i].app.release(c->at[i].app.arg);
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
