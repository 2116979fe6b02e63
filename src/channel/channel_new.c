/* Making channels: what needs no loop, by any thread. */
#include <pthread.h>

#include <torc/version.h>

#include "base/mem.h"
#include "base/options.h"
#include "channel/builtin.h"
#include "channel/channel_struct.h"
#include "channel/options.h"
#include "creds/xds.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool app_scheme(const struct torc_channel_options *o, struct tc_slice scheme,
                       const struct torc_resolver_class **found)
{
    for (size_t i = 0; o->resolvers && o->resolvers[i]; i++) {
        const struct torc_resolver_class *cls = o->resolvers[i];
        if (cls->size >= offsetof(struct torc_resolver_class, arg) && tc_options_known(cls, sizeof(*cls)) &&
            cls->scheme && cls->start && tc_slice_eq_str(scheme, cls->scheme)) {
            *found = cls;
            return true;
        }
    }
    return false;
}

static bool known_scheme(void *arg, struct tc_slice scheme)
{
    const struct torc_resolver_class *app;
    return app_scheme(arg, scheme, &app) || tc_resolver_find(scheme) != NULL;
}

static bool set_target(torc_channel *ch, const char *target, char **why)
{
    const struct torc_resolver_class *app;
    if (tc_target_parse(&ch->target, target, known_scheme, &ch->opts, why) != 0)
        return false;
    struct tc_slice scheme = tc_slice_str(ch->target.scheme);
    if (app_scheme(&ch->opts, scheme, &app)) {
        tc_app_resolver_class_init(&ch->app_resolver, app);
        ch->resolver_class = &ch->app_resolver.base;
    } else {
        ch->resolver_class = tc_resolver_find(scheme);
        if (tc_proxy_class_init(&ch->proxied, &ch->target, ch->resolver_class, ch->opts.http_proxy))
            ch->resolver_class = &ch->proxied.base;
    }
    struct tc_buf authority = {0};
    /* Asked in any case: it is the check of the target as well. */
    bool ok = ch->resolver_class->authority(ch->resolver_class, &ch->target, &authority, why);
    if (ok)
        ch->authority =
            ch->opts.authority ? tc_rstr_str(ch->opts.authority) : tc_rstr_new(authority.data, authority.len);
    tc_buf_fini(&authority);
    return ok;
}

static bool set_policies(torc_channel *ch, char **why)
{
    if (ch->opts.lb_policies && ch->opts.lb_policies[0]) {
        ch->app_lb = tc_app_lb_classes_new(ch->opts.lb_policies, why);
        if (!ch->app_lb)
            return false;
        ch->registry = tc_app_lb_classes_registry(ch->app_lb);
    } else {
        ch->registry = tc_shared_lb_registry();
    }
    if (!ch->opts.service_config_json)
        return true;
    ch->default_config = tc_service_config_parse(ch->registry, tc_slice_str(ch->opts.service_config_json), why);
    return ch->default_config != NULL;
}

static struct tc_conn_config *make_conn_config(const torc_channel *ch)
{
    const struct torc_channel_options *o = &ch->opts;
    struct tc_conn_config *c = TC_NEW(struct tc_conn_config);
    tc_ref_init(&c->ref);
    /* A29: the fallback, where no cluster says otherwise. */
    torc_credentials *own = tc_creds_channel(ch->credentials), *fallback = tc_credentials_xds_fallback(own);
    c->creds = torc_credentials_ref(fallback ? fallback : own);
    struct tc_slice host = tc_addr_host_of(tc_rstr_slice(ch->authority)); /* whose certificate it must be */
    c->server_name = tc_rstr_new(host.data, host.len);
    c->backoff = (struct tc_backoff_opts){.initial_ms = o->backoff_initial_ms,
                                          .max_ms = o->backoff_max_ms,
                                          .multiplier = o->backoff_multiplier,
                                          .jitter = o->backoff_jitter};
    c->connect_timeout_ms = o->connect_timeout_ms;
    c->keepalive_time_ms = o->keepalive_time_ms;
    c->keepalive_timeout_ms = o->keepalive_timeout_ms;
    c->keepalive_without_calls = o->keepalive_without_calls;
    c->max_header_list_bytes = o->max_header_list_bytes;
    c->is_private = ch->is_private;
    return c;
}

static void set_envs(torc_channel *ch)
{
    const struct torc_channel_options *o = &ch->opts;
    ch->conn_config = make_conn_config(ch);
    ch->resolver_env = (struct tc_resolver_env){
        .loop = ch->loop,
        .lb_registry = ch->registry,
        .authority = tc_rstr_slice(ch->authority),
        .xds_bootstrap_json = ch->xds_bootstrap_json,
        .dns_min_interval_ms = o->dns_min_interval_ms,
        .xds_resource_timeout_ms = o->xds_resource_timeout_ms,
        .credentials = tc_creds_channel(ch->credentials), /* A27: control planes get no call credentials of ours */
        .runtime = ch->rt,
        .backoff = ch->conn_config->backoff,
        .on_result = tc_channel_on_result,
        .arg = ch,
    };
    tc_lb_turns_init(&ch->lb_turns, ch->loop);
    ch->lb_env = (struct tc_lb_env){
        .loop = ch->loop,
        .turns = &ch->lb_turns,
        .registry = ch->registry,
        .target = tc_slice_str(ch->target.text),
        .authority = tc_rstr_slice(ch->authority),
        .secured_by_xds = tc_credentials_xds_fallback(tc_creds_channel(ch->credentials)) != NULL,
        .ring_size_cap = o->ring_size_cap,
        .priority_failover_ms = 10000,
        .priority_retention_ms = 900000,
        .connection_attempt_delay_ms = 250,
    };
}

static void destroy(torc_channel *ch)
{
    tc_conn_config_unref(ch->conn_config);
    torc_credentials_unref(ch->credentials);
    tc_service_config_unref(ch->default_config);
    tc_app_lb_classes_free(ch->app_lb);
    tc_rstr_unref(ch->authority);
    tc_rstr_unref(ch->user_agent);
    tc_free(ch->xds_bootstrap_json);
    tc_status_fini(&ch->end_status);
    tc_proxy_class_fini(&ch->proxied);
    tc_target_fini(&ch->target);
    tc_runtime_unref(ch->rt);
    tc_free(ch);
}

static void on_exit_idle(struct tc_task *task)
{
    torc_channel *ch = TC_CONTAINER_OF(task, torc_channel, exit_idle_task);
    atomic_flag_clear(&ch->connect_posted);
    tc_channel_attach(ch);
    tc_channel_exit_idle(ch);
    tc_channel_unref(ch);
}

static void on_free(struct tc_task *task)
{
    torc_channel *ch = TC_CONTAINER_OF(task, torc_channel, free_task);
    struct tc_status status = tc_status_make(TORC_STATUS_CANCELLED, "the channel was freed by the application");
    tc_channel_attach(ch);
    tc_channel_end(ch, &status, true);
    tc_status_fini(&status);
    tc_channel_unref(ch);
}

torc_channel *tc_channel_make(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                              bool is_private, char **why)
{
    pthread_once(&once, tc_builtin_init);
    torc_channel *ch = TC_NEW(torc_channel);
    tc_ref_init(&ch->ref);
    ch->rt = tc_runtime_ref(rt);
    ch->loop = tc_runtime_loop(rt);
    ch->is_private = is_private;
    tc_list_init(&ch->runtime_link);
    if (!tc_channel_options_complete(&ch->opts, options, why) || !set_target(ch, target, why) ||
        !set_policies(ch, why)) {
        destroy(ch);
        return NULL;
    }
    ch->credentials = torc_credentials_ref(ch->opts.credentials);
    ch->user_agent = ch->opts.user_agent ? tc_rstr_printf("%s torc-c/%s", ch->opts.user_agent, torc_version())
                                         : tc_rstr_printf("torc-c/%s", torc_version());
    if (ch->opts.xds_bootstrap_json)
        ch->xds_bootstrap_json = tc_strdup(ch->opts.xds_bootstrap_json);
    set_envs(ch);
    atomic_init(&ch->published, TORC_IDLE);
    atomic_flag_clear(&ch->connect_posted);
    tc_task_init(&ch->free_task, on_free);
    tc_task_init(&ch->exit_idle_task, on_exit_idle);
    tc_channel_watch_init(ch);
    tc_pick_queue_init(ch);
    tc_list_init(&ch->calls);
    return ch;
}

torc_channel *tc_channel_ref(torc_channel *ch)
{
    tc_ref_inc(&ch->ref);
    return ch;
}

void tc_channel_unref(torc_channel *ch)
{
    if (tc_ref_dec(&ch->ref))
        destroy(ch);
}

torc_channel *torc_channel_new(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                               char **why)
{
    if (!target) {
        if (why)
            *why = tc_strdup("target: it is NULL");
        return NULL;
    }
    if (!rt)
        rt = torc_runtime_default();
    int rc = rt ? tc_runtime_check(rt) : TORC_EIO;
    if (rc != 0) {
        if (why)
            *why = tc_asprintf("runtime: %s", torc_strerror(rc));
        return NULL;
    }
    return tc_channel_make(rt, target, options, false, why);
}

torc_channel *tc_channel_new_private(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                                     struct tc_status *why)
{
    char *text = NULL;
    torc_channel *ch = tc_channel_make(rt, target, options, true, &text);
    if (ch)
        tc_channel_attach(ch);
    else
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, "%s", text);
    tc_free(text);
    return ch;
}

void torc_channel_free(torc_channel *ch)
{
    int rc = ch ? tc_runtime_check(ch->rt) : TORC_EFORK;
    if (rc == TORC_ECLOSED) /* the end of the runtime ends its channels */
        tc_channel_unref(ch);
    else if (rc == 0)
        tc_runtime_run(ch->rt, &ch->free_task);
}

enum torc_connectivity torc_channel_state(torc_channel *ch, bool try_to_connect)
{
    if (!ch)
        return TORC_SHUTDOWN;
    enum torc_connectivity state = (enum torc_connectivity)atomic_load(&ch->published);
    if (try_to_connect && state == TORC_IDLE && tc_runtime_check(ch->rt) == 0 &&
        !atomic_flag_test_and_set(&ch->connect_posted)) {
        tc_channel_ref(ch);
        tc_runtime_run(ch->rt, &ch->exit_idle_task);
    }
    return state;
}

const char *torc_channel_target(const torc_channel *ch)
{
    return ch ? ch->target.text : NULL;
}

struct request {
    struct tc_task task;
    torc_channel *ch;
    torc_channel_event_fn fn;
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
    r->ch->observer = r->fn;
    r->ch->observer_arg = r->arg;
    tc_channel_unref(r->ch);
    tc_free(r);
}

static int request(torc_channel *ch, void (*on_loop)(struct tc_task *), torc_channel_event_fn fn, void *arg)
{
    int rc = ch ? tc_runtime_check(ch->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct request *r = TC_NEW(struct request);
    r->ch = tc_channel_ref(ch);
    r->fn = fn;
    r->arg = arg;
    tc_task_init(&r->task, on_loop);
    tc_runtime_run(ch->rt, &r->task);
    return 0;
}

void torc_channel_reset_backoff(torc_channel *ch)
{
    request(ch, on_reset_backoff, NULL, NULL);
}

int torc_channel_observe(torc_channel *ch, torc_channel_event_fn fn, void *arg)
{
    return request(ch, on_observe, fn, arg);
}
