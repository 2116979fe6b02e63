/* The adapter of an application's LB policy, held to the contract of a policy (lb/policy.h) without a channel. */
#include "api/lb_adapter.h"

#include <torc/lb.h>

#include "support/cmocka.h"
#include "support/fakes/lb.h"

/* A policy of the application with one child for all endpoints. */
struct app {
    torc_lb_helper *helper;
    torc_lb_child *child;
    unsigned destroyed;
};

static void *app_create(torc_lb_helper *helper, void *arg)
{
    struct app *app = arg;
    app->helper = helper;
    return app;
}

static void app_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct app *app = state;
    (void)config_json;
    if (!app->child)
        app->child = torc_lb_child_create(app->helper, "round_robin", NULL);
    torc_lb_child_set_endpoints(app->child, endpoints, n);
}

static void app_on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity child_state)
{
    struct app *app = state;
    (void)child, (void)child_arg;
    torc_lb_update_state(app->helper, child_state, NULL);
}

static torc_lb_child *app_pick(void *state, torc_lb_pick *pick)
{
    (void)pick;
    return ((struct app *)state)->child;
}

static void app_destroy(void *state)
{
    ((struct app *)state)->destroyed++;
}

/* fake_lb_free shuts the policy down twice: right after it is made, and with a child that connects or is connected. */
static void a_second_shutdown_does_nothing(void **state)
{
    (void)state;
    for (unsigned stage = 0; stage < 3; stage++) {
        struct app app = {0};
        const struct torc_lb_factory factory = {
            .size = sizeof(factory),
            .name = "app",
            .create = app_create,
            .update = app_update,
            .on_child_state = app_on_child_state,
            .pick = app_pick,
            .destroy = app_destroy,
            .arg = &app,
        };
        struct tc_lb_factory adapter;
        tc_app_lb_factory_init(&adapter, &factory);
        struct fake_lb *f = fake_lb_new(NULL);
        f->policy = tc_lb_create(&adapter, &f->helper);
        if (stage > 0) {
            struct tc_validation_errors errors = {0};

            json_t *json = json_object();
            struct tc_lb_config *config = adapter.parse_config(&adapter, json, f->registry, 0, &errors);
            json_decref(json);
            tc_validation_fini(&errors);
            assert_true(fake_lb_update(f, fake_lb_endpoints("1.1.1.1:1"), config, NULL));
            assert_int_equal(fake_lb_count(f, NULL), 1);
        }
        if (stage > 1) {
            fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_READY);
            assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
        }
        fake_lb_free(f); /* shuts down twice */
        assert_int_equal(app.destroyed, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_shutdown_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
