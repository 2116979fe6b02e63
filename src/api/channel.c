/* The public functions of channels, except those that watch the state (channel_watch.c): making a channel with the
 * application's own resolvers and LB policies, and the requests of any thread to it. torc/channel.h has the contract.
 *
 * A request is posted to the channel's loop with a reference to the channel. torc_channel_free hands over
 * (tc_runtime_run) the channel's own free_task with the handle's reference; if torc_runtime_free has begun or the loop
 * has ended, it gives the reference back itself. torc_channel_state reads the published state, and hands over
 * exit_idle_task only when it is to connect an IDLE channel. torc_channel_describe waits for the loop.
 *
 * The channel owns the copies of the application's factories (struct app_plugins) until its memory goes. */
#include <torc/channel.h>

#include "api/builtin.h"
#include "api/lb_adapter_api.h"
#include "api/resolver_adapter.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/thread.h"
#include "channel/channel_internal.h"
#include "channel/create.h"
#include "channel/explain.h"
#include "channel/options.h"
#include "lb/connectivity.h"
#include "lb/describe.h"
#include "runtime/blocking.h"

/* The application's own resolvers and LB policies: tc_channel_plugins.arg. */
struct app_plugins {
    struct tc_app_lb_factories *policies; /* owned; NULL: none */
    size_t n_resolvers;
    struct tc_app_resolver_class resolvers[];
};

static const struct tc_resolver_class *plugins_find_resolver(void *arg, struct tc_slice scheme)
{
    struct app_plugins *app = arg;
    for (size_t i = 0; i < app->n_resolvers; i++)
        if (tc_slice_eq_str(scheme, app->resolvers[i].base.scheme))
            return &app->resolvers[i].base;
    return NULL;
}

static void plugins_release(void *arg, bool made)
{
    struct app_plugins *app = arg;
    for (size_t i = 0; made && i < app->n_resolvers; i++)
        if (app->resolvers[i].app.release)
            app->resolvers[i].app.release(app->resolvers[i].app.arg);
    if (made)
        tc_app_lb_factories_release(app->policies);
    tc_app_lb_factories_free(app->policies);
    tc_free(app);
}

/* Copies the resolver factories, a list that ends with NULL (`resolvers` NULL: none). The caller owns the result.
 * Returns NULL with an error if a factory is malformed. */
static struct app_plugins *app_plugins_new(const struct torc_resolver_factory *const *resolvers, torc_error **error)
{
    size_t n = 0;
    while (resolvers && resolvers[n])
        n++;
    struct app_plugins *app = tc_calloc(1, sizeof(*app) + n * sizeof(app->resolvers[0]));
    app->n_resolvers = n;
    for (size_t i = 0; i < n; i++)
        if (!tc_app_resolver_class_init(&app->resolvers[i], resolvers[i], i, error)) {
            tc_free(app);
            return NULL;
        }
    return app;
}

/* Fills in *plugins, for tc_channel_make to take over. Returns false with an error, and *plugins must not be used, if
 * the options or one of the application's factories are malformed, or if the name of an LB policy is taken. */
static bool plugins_make(struct tc_channel_plugins *plugins, torc_runtime *rt, const struct torc_channel_options *given,
                         torc_error **error)
{
    struct torc_channel_options o;
    *plugins = (struct tc_channel_plugins){.policies = tc_builtin_policies()};
    if (!tc_options_take(TC_OPTIONS_CHANNEL, &o, given, error))
        return false;
    bool own_policies = o.lb_policies && o.lb_policies[0];
    if (!own_policies && !(o.resolvers && o.resolvers[0]))
        return true;
    struct app_plugins *app = app_plugins_new(o.resolvers, error);
    if (!app)
        return false;
    plugins->find_resolver = plugins_find_resolver;
    plugins->arg = app;
    plugins->release = plugins_release;
    if (!own_policies)
        return true;
    app->policies = tc_app_lb_factories_new(o.lb_policies, tc_runtime_loop(rt), error);
    if (!app->policies) {
        plugins_release(app, false);
        return false;
    }
    plugins->policies = tc_app_lb_factories_registry(app->policies);
    return true;
}

torc_channel *torc_channel_new(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                               torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    struct tc_channel_plugins plugins;
    if (!target) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "target: it is NULL");
        return NULL;
    }
    rt = tc_runtime_or_default(rt, "runtime", error);
    if (!rt || !plugins_make(&plugins, rt, options, error))
        return NULL;
    return tc_channel_make(rt, target, options, &plugins, false, error);
}

void torc_channel_free(torc_channel *ch)
{
    int rc = ch ? tc_runtime_check(ch->rt) : TORC_EFORK;
    if (rc == TORC_EFORK || atomic_exchange(&ch->freed, true))
        return;
    torc_runtime *rt = tc_runtime_ref(ch->rt);
    if (rc == TORC_ECLOSED || !tc_runtime_run(rt, &ch->free_task))
        tc_channel_unref(ch); /* the end of the runtime ends its channels */
    tc_runtime_unref(rt);
}

enum torc_connectivity torc_channel_state(torc_channel *ch, bool try_to_connect)
{
    if (!ch)
        return TORC_CONNECTIVITY_SHUTDOWN;
    enum torc_connectivity state = (enum torc_connectivity)atomic_load(&ch->connectivity.published);
    if (try_to_connect && state == TORC_CONNECTIVITY_IDLE && tc_runtime_check(ch->rt) == 0 &&
        !atomic_flag_test_and_set(&ch->connect_posted)) {
        tc_channel_ref(ch);
        if (!tc_runtime_run(ch->rt, &ch->exit_idle_task))
            tc_channel_unref(ch);
    }
    return state;
}

const char *torc_connectivity_name(enum torc_connectivity state)
{
    return tc_connectivity_name(state);
}

const char *torc_channel_target(const torc_channel *ch)
{
    return ch ? ch->target.text : NULL;
}

/* --- requests of threads to the channel's loop --- */

/* A request on its way to the loop; its task frees it. */
struct request {
    struct tc_task task;
    torc_channel *ch;         /* a reference */
    torc_channel_event_fn fn; /* of torc_channel_observe, with `arg`; NULL: removes the observer */
    void *arg;
};

static void on_reset_backoff(struct tc_task *task)
{
    struct request *r = TC_CONTAINER_OF(task, struct request, task);
    tc_channel_attach(r->ch);
    tc_channel_reset_backoff(r->ch);
    tc_channel_unref(r->ch);
    tc_free(r);
}

static void on_observe(struct tc_task *task)
{
    struct request *r = TC_CONTAINER_OF(task, struct request, task);
    if (!r->ch->ended)
        tc_state_watch_set_observer(&r->ch->connectivity, r->fn, r->arg);
    tc_channel_unref(r->ch);
    tc_free(r);
}

/* Posts a new request to the loop, also from inside a turn: a request must not overtake an earlier one. Returns 0.
 * Returns TORC_EINVAL if `ch` is NULL, an error of tc_runtime_check, or TORC_ECLOSED if the loop has ended, and on_loop
 * is not called. */
static int request_post(torc_channel *ch, void (*on_loop)(struct tc_task *), torc_channel_event_fn fn, void *arg)
{
    int rc = ch ? tc_runtime_check(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct request *r = TC_NEW(struct request);
    r->ch = tc_channel_ref(ch);
    r->fn = fn;
    r->arg = arg;
    tc_task_init(&r->task, on_loop);
    if (tc_loop_post(ch->loop, &r->task))
        return 0;
    tc_channel_unref(ch);
    tc_free(r);
    return TORC_ECLOSED;
}

void torc_channel_reset_backoff(torc_channel *ch)
{
    request_post(ch, on_reset_backoff, NULL, NULL);
}

int torc_channel_observe(torc_channel *ch, torc_channel_event_fn fn, void *arg)
{
    return request_post(ch, on_observe, fn, arg);
}

/* --- torc_channel_describe --- */

struct asked {
    const torc_channel *ch;
    char *text; /* made by on_asked; for torc_free */
};

static void on_asked(void *arg)
{
    struct asked *a = arg;
    struct tc_describe d = {0};
    tc_channel_describe(a->ch, NULL, &d);
    a->text = tc_buf_take(&d.out);
}

int torc_channel_describe(torc_channel *ch, char **json)
{
    int rc = ch && json ? tc_runtime_check_blocking(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct asked a = {.ch = tc_channel_ref(ch)};
    rc = tc_runtime_do(ch->rt, on_asked, &a);
    tc_channel_unref(ch);
    if (rc == 0)
        *json = a.text;
    return rc;
}
