/* Registries of LB policies: the process's shared one, and those of channels with policies of the application's own. */
#include <pthread.h>

#include "base/mem.h"
#include "base/options.h"
#include "channel/app_lb_policy.h"
#include "channel/builtin.h"

struct tc_app_lb_classes {
    struct tc_lb_registry *registry;
    size_t n;
    struct {
        struct tc_lb_class cls;
        struct torc_lb_class app; /* a copy: a policy may end after the application's is gone */
    } at[];
};

static struct tc_lb_registry *make_registry(void)
{
    struct tc_lb_registry *r = tc_lb_registry_new();
    tc_lb_registry_add_standard(r);
    tc_builtin_lb_add(r);
    return r;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tc_lb_registry *shared;

static void make_shared(void)
{
    shared = make_registry();
}

const struct tc_lb_registry *tc_shared_lb_registry(void)
{
    pthread_once(&once, make_shared);
    return shared;
}

static bool well_formed(const struct torc_lb_class *app)
{
    return app->size >= offsetof(struct torc_lb_class, arg) && tc_options_known(app, sizeof(*app)) && app->name &&
           app->name[0] && app->create && app->update && app->pick && app->destroy;
}

struct tc_app_lb_classes *tc_app_lb_classes_new(const struct torc_lb_class *const *list, char **why)
{
    size_t n = 0;
    while (list[n])
        n++;
    size_t bytes;
    if (__builtin_mul_overflow(n, sizeof(((struct tc_app_lb_classes *)NULL)->at[0]), &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    struct tc_app_lb_classes *c = tc_calloc(1, sizeof(*c) + bytes);
    c->registry = make_registry();
    for (size_t i = 0; i < n; i++) {
        bool ok = well_formed(list[i]);
        if (ok) {
            memcpy(&c->at[i].app, list[i], TC_MIN(list[i]->size, sizeof(c->at[i].app)));
            tc_app_lb_class_init(&c->at[i].cls, &c->at[i].app);
            ok = tc_lb_registry_add(c->registry, &c->at[i].cls) == 0;
        }
        if (!ok) {
            if (why)
                *why = tc_asprintf(
                    "lb_policies[%zu] (\"%s\"): the class is incomplete or a newer version's, or its name is taken", i,
                    list[i]->name ? list[i]->name : "");
            tc_app_lb_classes_free(c);
            return NULL;
        }
    }
    c->n = n;
    return c;
}

void tc_app_lb_classes_free(struct tc_app_lb_classes *c)
{
    if (!c)
        return;
    tc_lb_registry_free(c->registry);
    tc_free(c);
}

const struct tc_lb_registry *tc_app_lb_classes_registry(const struct tc_app_lb_classes *c)
{
    return c->registry;
}
