/* The adapter of an application's LB policy keeps the contract of a policy (lb/policy.h). fakes/lb plays the channel.
 *
 * The application's policy is struct app, with one child for all endpoints, or struct each, with a pick_first child for
 * each endpoint. Everything runs on the test's thread: the fake has a loop with virtual time, and subchannels whose
 * states the test sets. A picker may outlive the policy: fake_lb_free picks with the last picker after the shutdown. */
#include "api/lb_adapter.h"

#include <math.h>

#include <torc/lb.h>
#include <torc/orca.h>

#include "support/cmocka.h"
#include "support/fakes/lb.h"

#include "base/mem.h"

/* A policy of the application with one child for all endpoints. */
struct app {
    torc_lb_helper *helper;  /* the adapter's */
    const char *policy;      /* of the child */
    torc_lb_child *child;    /* made by the first update; the adapter frees it. NULL before */
    unsigned destroyed;      /* calls of app_destroy */
    unsigned ended;          /* calls of app_on_call_end */
    int metric;              /* app_on_call_end asks for this metric */
    const char *metric_name; /* the name in a map of metrics; NULL: the metric is not a map */
    int found;               /* what torc_lb_call_end_load returned */
    double value;            /* what torc_lb_call_end_load wrote, if it found the metric */
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
        app->child = torc_lb_child_create(app->helper, app->policy, NULL);
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
    const char *method = torc_lb_pick_method(pick), *header = torc_lb_pick_header(pick, "x-key");
    assert_string_equal(method, "/s.S/M");
    assert_string_equal(header, "a value that takes room,and another");
    torc_lb_pick_watch(pick, NULL);
    return ((struct app *)state)->child;
}

static void app_on_call_end(void *state, void *call_arg, torc_lb_call_end *end)
{
    struct app *app = state;
    (void)call_arg;
    app->ended++;
    app->found = torc_lb_call_end_load(end, app->metric, app->metric_name, &app->value);
}

static void app_destroy(void *state)
{
    ((struct app *)state)->destroyed++;
}

/* A slice of a literal, which may contain NUL. */
#define LIT(text)                                                                                                      \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }

/* A policy of the application in a fake channel. kit_init fills it in for struct app; fake_lb_free(f) ends it. */
struct kit {
    struct app app; /* the factory has its address: a kit must not move */
    struct tc_app_lb_factory adapter;
    struct fake_lb *f;
};

static void kit_init(struct kit *k)
{
    static const struct tc_header headers[] = {{LIT("x-key"), LIT("a value that takes room")},
                                               {LIT("x-key"), LIT("and another")}};
    static const struct tc_headers list = {.data = (struct tc_header *)(uintptr_t)headers,
                                           .len = TC_ARRAY_LEN(headers)};
    *k = (struct kit){.app.policy = "round_robin",
                      .adapter.app = {
                          .size = sizeof(k->adapter.app),
                          .name = "app",
                          .create = app_create,
                          .update = app_update,
                          .on_child_state = app_on_child_state,
                          .pick = app_pick,
                          .destroy = app_destroy,
                          .on_call_end = app_on_call_end,
                          .arg = &k->app,
                      }};
    k->f = fake_lb_new(NULL);
    k->adapter.loop = k->f->loop;
    tc_app_lb_factory_init(&k->adapter);
    k->f->policy = tc_lb_create(&k->adapter.base, &k->f->helper);
    k->f->args.path = tc_slice_str("/s.S/M");
    k->f->args.headers = &list;
}

static void kit_update_to(struct kit *k, const char *endpoints)
{
    struct tc_validation_errors errors = {0};
    json_t *json = json_object();
    struct tc_lb_config *config = k->adapter.base.parse_config(&k->adapter.base, json, k->f->registry, 0, &errors);
    json_decref(json);
    tc_validation_fini(&errors);
    assert_true(fake_lb_update(k->f, fake_lb_endpoints(endpoints), config, NULL));
}

static void kit_update(struct kit *k)
{
    kit_update_to(k, "1.1.1.1:1");
}

/* fake_lb_free shuts the policy down twice. Stage 0: before the first update, which makes the application's policy.
 * Stage 1: the child connects. Stage 2: the child is connected. */
static void a_second_shutdown_does_nothing(void **state)
{
    (void)state;
    for (unsigned stage = 0; stage < 3; stage++) {
        struct kit k;
        kit_init(&k);
        if (stage > 0) {
            kit_update(&k);
            assert_int_equal(fake_lb_count(k.f, NULL), 1);
        } else {
            k.f->policy->ops->exit_idle(k.f->policy);
        }
        if (stage > 1)
            fake_lb_set(k.f, "1.1.1.1:1", TORC_CONNECTIVITY_READY);
        fake_lb_free(k.f);
        assert_int_equal(k.app.destroyed, stage > 0);
    }
}

/* An RPC that waits is picked for again with each new picker. These picks take nothing from the RPC's arena. As they
 * lead to no attempt, on_call_end follows each at once. */
static void picks_take_no_memory_of_the_call(void **state)
{
    (void)state;
    struct kit k;
    kit_init(&k);
    kit_update(&k);
    assert_string_equal(fake_lb_pick(k.f), "QUEUE");
    size_t used = k.f->arena.used;
    for (unsigned i = 0; i < 1000; i++) {
        torc_lb_update_state(k.app.helper, TORC_CONNECTIVITY_CONNECTING, NULL);
        assert_string_equal(fake_lb_pick(k.f), "QUEUE");
    }
    assert_int_equal(k.f->arena.used, used);
    assert_int_equal(k.app.ended, 1001);
    fake_lb_free(k.f);
}

/* Picks for an RPC and ends the RPC, with `n` trailers (at most 2) that each hold the report. */
static void end_with(struct kit *k, struct tc_slice report, size_t n)
{
    const struct tc_header header = {LIT("endpoint-load-metrics-bin"), report};
    struct tc_header headers[2] = {header, header};
    const struct tc_headers trailers = {.data = headers, .len = n};
    const struct tc_status ok = {0};
    struct tc_call_tracker *next;
    assert_string_equal(fake_lb_pick(k->f), "1.1.1.1:1");
    for (struct tc_call_tracker *t = k->f->pick.trackers; t; t = next) {
        next = t->next;
        t->on_done(t, &ok, n ? &trailers : NULL);
    }
    k->f->pick.trackers = NULL;
}

/* An unhealthy endpoint fails a child of round_robin. A pick_first child ignores health (A61). */
static void health_counts_for_round_robin(void **state)
{
    static const char *const policies[] = {"round_robin", "pick_first"};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        struct kit k;
        kit_init(&k);
        k.app.policy = policies[i];
        kit_update(&k);
        fake_lb_set(k.f, "1.1.1.1:1", TORC_CONNECTIVITY_READY);
        end_with(&k, tc_slice_of(NULL, 0), 0);
        fake_lb_set_health(k.f, "1.1.1.1:1", TORC_STATUS_UNAVAILABLE, "sick");
        if (i == 0) {
            assert_string_equal(fake_lb_pick(k.f), "FAIL");
            assert_int_equal(k.f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
            fake_lb_set_health(k.f, "1.1.1.1:1", TORC_STATUS_OK, "");
        }
        end_with(&k, tc_slice_of(NULL, 0), 0);
        fake_lb_free(k.f);
    }
}

/* A policy of the application with one child for each of the two endpoints. Its state is aggregated from the children's
 * (torc_lb_update_state_of_children). */
struct each {
    torc_lb_helper *helper;
    torc_lb_child *children[2];     /* the adapter frees them */
    enum torc_connectivity seen[2]; /* the states that each_on_child_state was told */
};

static void *each_create(torc_lb_helper *helper, void *arg)
{
    ((struct each *)arg)->helper = helper;
    return arg;
}

static void each_update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct each *e = state;
    (void)config_json;
    torc_lb_update_state_of_children(e->helper, "no children");
    for (size_t i = 0; i < n; i++) {
        e->children[i] = torc_lb_child_create(e->helper, "pick_first", &e->seen[i]);
        torc_lb_child_set_endpoints(e->children[i], &endpoints[i], 1);
        assert_int_equal(torc_lb_child_state(e->children[i]), TORC_CONNECTIVITY_CONNECTING);
    }
}

static void each_on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
{
    *(enum torc_connectivity *)child_arg = now;
    assert_int_equal(torc_lb_child_state(child), now);
    torc_lb_update_state_of_children(((struct each *)state)->helper, torc_lb_child_text(child));
}

static torc_lb_child *each_pick(void *state, torc_lb_pick *pick)
{
    (void)pick;
    struct each *e = state;
    for (size_t i = 0; i < 2; i++)
        if (torc_lb_child_state(e->children[i]) == TORC_CONNECTIVITY_READY)
            return e->children[i];
    return NULL;
}

/* The aggregated state is the first of READY, CONNECTING, IDLE, TRANSIENT_FAILURE that a child has. The factory has no
 * destroy. */
static void the_state_of_children(void **state)
{
    const enum torc_connectivity IDLE = TORC_CONNECTIVITY_IDLE, CONNECTING = TORC_CONNECTIVITY_CONNECTING,
                                 READY = TORC_CONNECTIVITY_READY, FAILURE = TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    const struct {
        enum torc_connectivity one, other, both;
    } rows[] = {{READY, CONNECTING, READY},     {READY, FAILURE, READY},     {IDLE, FAILURE, IDLE},
                {IDLE, CONNECTING, CONNECTING}, {FAILURE, FAILURE, FAILURE}, {CONNECTING, FAILURE, CONNECTING}};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct each each = {0};
        struct kit k = {.f = fake_lb_new(NULL),
                        .adapter.app = {TORC_SIZE(torc_lb_factory), .name = "each", .create = each_create,
                                        .update = each_update, .on_child_state = each_on_child_state, .pick = each_pick,
                                        .arg = &each}};
        k.adapter.loop = k.f->loop;
        tc_app_lb_factory_init(&k.adapter);
        k.f->policy = tc_lb_create(&k.adapter.base, &k.f->helper);
        kit_update_to(&k, "1.1.1.1:1 1.1.1.1:2");
        fake_lb_set(k.f, "1.1.1.1:1", rows[i].one == IDLE ? READY : rows[i].one);
        fake_lb_set(k.f, "1.1.1.1:2", rows[i].other);
        if (rows[i].one == IDLE)
            fake_lb_set(k.f, "1.1.1.1:1", IDLE);
        assert_int_equal(each.seen[0], rows[i].one);
        assert_int_equal(each.seen[1], rows[i].other);
        assert_int_equal(k.f->state, rows[i].both);
        assert_string_equal(fake_lb_pick(k.f), rows[i].both == READY     ? "1.1.1.1:1"
                                               : rows[i].both == FAILURE ? "FAIL"
                                                                         : "QUEUE");
        fake_lb_free(k.f);
    }
}

/* torc_lb_call_end_load reads a backend's report, which may be malformed. 7: the value is left unchanged. */
static void load_reports(void **state)
{
    (void)state;
#define CPU "\x09\0\0\0\0\0\0\xe0\x3f" /* 0.5 */
#define CPU_NAN "\x09\0\0\0\0\0\0\xf8\x7f"
#define ROWS "\x22\x0f\x0a\x04rows\x11\0\0\0\0\0\0\xf0\x3f" /* 1.0 */
    static const struct {
        struct tc_slice report;
        size_t n;
        int metric;
        const char *name;
        int found;
        double value;
    } rows[] = {
        {LIT(""), 0, TORC_ORCA_CPU, NULL, 0, 7},
        {LIT(""), 1, TORC_ORCA_CPU, NULL, 0, 7},
        {LIT(CPU), 1, TORC_ORCA_CPU, NULL, 1, 0.5},
        {LIT(CPU), 1, TORC_ORCA_CPU, "rows", 0, 7},
        {LIT(CPU), 1, TORC_ORCA_MEMORY, NULL, 0, 7},
        {LIT(CPU), 1, -1, NULL, 0, 7},
        {LIT(CPU), 2, TORC_ORCA_CPU, NULL, 0, 7}, /* two reports */
        {LIT(CPU ROWS), 1, TORC_ORCA_REQUEST_COST, "rows", 1, 1},
        {LIT(CPU ROWS), 1, TORC_ORCA_REQUEST_COST, "row", 0, 7},
        {LIT(CPU ROWS), 1, TORC_ORCA_REQUEST_COST, NULL, 0, 7},
        {LIT(CPU_NAN CPU), 1, TORC_ORCA_CPU, NULL, 1, 0.5}, /* the last value counts */
        {LIT(CPU CPU_NAN), 1, TORC_ORCA_CPU, NULL, 1, NAN},
        {LIT(CPU "\x09\0"), 1, TORC_ORCA_CPU, NULL, 0, 7}, /* cut short */
    };
    struct kit k;
    kit_init(&k);
    kit_update(&k);
    fake_lb_set(k.f, "1.1.1.1:1", TORC_CONNECTIVITY_READY);
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        k.app.metric = rows[i].metric;
        k.app.metric_name = rows[i].name;
        k.app.value = 7;
        end_with(&k, rows[i].report, rows[i].n);
        assert_int_equal(k.app.found, rows[i].found);
        assert_true(k.app.value == rows[i].value || (isnan(rows[i].value) && isnan(k.app.value)));
    }
    fake_lb_free(k.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_shutdown_does_nothing),
        cmocka_unit_test(picks_take_no_memory_of_the_call),
        cmocka_unit_test(health_counts_for_round_robin),
        cmocka_unit_test(the_state_of_children),
        cmocka_unit_test(load_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
