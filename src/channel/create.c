/* Making channels: everything that needs no loop. Any thread, except for tc_channel_new_private and the three callbacks
 * (on_runtime_shutdown, on_exit_idle, on_free), which run on the loop.
 *
 * Target, resolver, authority, service config and credentials are checked and fixed here, so that torc_channel_new can
 * refuse them with a reason, and every thread may read them later. If a step fails, tc_channel_unref frees what the
 * steps before it made, except for the dialer, which tc_channel_make frees: no member of the channel has it before
 * conn_config_make. tc_channel_unref also tells plugins.release that the channel was not made (channel_destroy in
 * channel.c).
 *
 * On the loop, the first call, watch, request to connect or to reset backoffs, or torc_channel_free attaches the
 * channel (tc_channel_attach in channel.c); tc_channel_new_private attaches it at once. Until then nothing connects. */
#include "channel/create.h"

#include <torc/version.h>

#include "base/mem.h"
#include "base/options.h"
#include "base/status.h"
#include "channel/channel_internal.h"
#include "channel/options.h"
#include "creds/xds.h"
#include "resolver/builtin.h"
#include "runtime/runtime.h"
#include "subchannel/health.h"

static const struct tc_resolver_class *resolver_find(const struct tc_channel_plugins *p, struct tc_slice scheme)
{
    const struct tc_resolver_class *own = p->find_resolver ? p->find_resolver(p->arg, scheme) : NULL;
    return own ? own : tc_resolver_find(scheme);
}

static bool known_scheme(void *arg, struct tc_slice scheme)
{
    return resolver_find(arg, scheme) != NULL;
}

/* Sets resolver and authority of the target. Returns false with an error. */
static bool target_set(torc_channel *ch, const char *target, torc_error **error)
{
    char *why = NULL;
    if (tc_target_parse(&ch->target, target, known_scheme, &ch->plugins, &why) != 0)
        return tc_error_take(error, TORC_EINVAL, TORC_LAYER_RESOLVER, why);
    ch->resolver_class = resolver_find(&ch->plugins, tc_slice_str(ch->target.scheme));
    /* A proxy (resolver/proxy.h) applies to built-in resolvers only. */
    if (ch->resolver_class == tc_resolver_find(tc_slice_str(ch->target.scheme)) &&
        tc_proxy_class_init(&ch->proxied, &ch->target, ch->resolver_class, ch->opts.http_proxy))
        ch->resolver_class = &ch->proxied.base;
    struct tc_buf authority = {0};
    /* Called even if the option overrides the authority: the function also checks the target. */
    bool ok = ch->resolver_class->authority(ch->resolver_class, &ch->target, &authority, &why);
    if (!ok)
        tc_error_take(error, TORC_EINVAL, TORC_LAYER_RESOLVER, why);
    else
        ch->authority =
            ch->opts.authority ? tc_rstr_str(ch->opts.authority) : tc_rstr_new(authority.data, authority.len);
    tc_buf_fini(&authority);
    return ok;
}

static bool default_config_set(torc_channel *ch, torc_error **error)
{
    char *why = NULL;
    if (!ch->opts.service_config_json)
        return true;
    ch->default_config =
        tc_service_config_parse(ch->plugins.policies, tc_slice_str(ch->opts.service_config_json), &why);
    return ch->default_config || tc_error_take(error, TORC_EINVAL, TORC_LAYER_RESOLVER, why);
}

/* Stores the dialer, or NULL for connect(2). Returns false with an error. The caller owns *out, also on failure. */
static bool dialer_make(const torc_channel *ch, struct tc_dialer **out, torc_error **error)
{
    struct torc_dialer of;
    bool is_fd = ch->resolver_class == &tc_resolver_fd;
    if (is_fd && ch->is_private)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "a control plane cannot be a descriptor");
    *out = is_fd ? tc_dialer_of_fd(tc_resolver_fd_of(&ch->target)) : NULL;
    if (!ch->opts.dialer)
        return true;
    bool ok = !is_fd || tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                                     "options: dialer: must be NULL for a target that is a descriptor");
    ok = ok && tc_options_take(TC_OPTIONS_DIALER, &of, ch->opts.dialer, error);
    ok = ok && (of.dial || tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "dialer: dial: is NULL"));
    if (ok)
        *out = tc_dialer_new(&of);
    return ok;
}

/* The last step that may fail: once it succeeds, the channel owes each interceptor its `release`. */
static bool interceptors_set(torc_channel *ch, torc_error **error)
{
    const struct torc_interceptor *const *list = ch->opts.interceptors;
    if (!list || !list[0])
        return true;
    ch->interceptors = tc_interceptors_new(list, error);
    return ch->interceptors != NULL;
}

/* Returns the settings of the channel's connections. A cluster that secures its own connections (A29) uses a copy with
 * other credentials and another server_name. Takes over the dialer. */
static struct tc_conn_config *conn_config_make(const torc_channel *ch, struct tc_dialer *dialer)
{
    const struct torc_channel_options *o = &ch->opts;
    struct tc_conn_config *c = TC_NEW(struct tc_conn_config);
    tc_ref_init(&c->ref);
    /* A29: the fallback credentials, for a cluster without TLS of its own. */
    torc_credentials *own = tc_creds_channel(ch->credentials), *fallback = tc_credentials_xds_fallback(own);
    c->creds = torc_credentials_ref(fallback ? fallback : own);
    struct tc_slice host = tc_addr_host_of(tc_rstr_slice(ch->authority)); /* the name that the certificate must have */
    c->server_name = tc_rstr_new(host.data, host.len);
    c->backoff = (struct tc_backoff_opts){.initial_ms = (uint64_t)o->backoff_initial_ms,
                                          .max_ms = (uint64_t)o->backoff_max_ms,
                                          .multiplier = o->backoff_multiplier,
                                          .jitter = o->backoff_jitter};
    c->connect_timeout_ms = (uint64_t)o->connect_timeout_ms;
    c->keepalive_time_ms = (uint64_t)o->keepalive_time_ms;
    c->keepalive_timeout_ms = (uint64_t)o->keepalive_timeout_ms;
    c->keepalive_without_calls = o->keepalive_without_calls;
    c->max_header_list_bytes = (uint64_t)o->max_header_list_bytes;
    c->max_request_header_bytes = (uint64_t)o->max_request_header_bytes;
    c->is_private = ch->is_private;
    c->max_connections = (uint32_t)o->max_connections_per_subchannel;
    c->health = o->health_checks ? tc_health_checks_new(ch->loop) : NULL;
    c->dialer = dialer;
    if (dialer)
        tc_dialer_accept(dialer);
    return c;
}

static void envs_set(torc_channel *ch, struct tc_dialer *dialer)
{
    const struct torc_channel_options *o = &ch->opts;
    ch->conn_config = conn_config_make(ch, dialer);
    ch->resolution.env = (struct tc_resolver_env){
        .loop = ch->loop,
        .lb_registry = ch->plugins.policies,
        .authority = tc_rstr_slice(ch->authority),
        .xds_bootstrap_json = ch->xds_bootstrap_json,
        .dns_min_interval_ms = (uint64_t)o->dns_min_interval_ms,
        .xds_resource_timeout_ms = (uint64_t)o->xds_resource_timeout_ms,
        .credentials = tc_creds_channel(ch->credentials), /* A27: control planes do not get the call credentials */
        .runtime = ch->rt,
        .backoff = ch->conn_config->backoff,
        .on_result = tc_channel_on_result,
        .arg = ch,
    };
    tc_scaling_init(&ch->lb.scaling);
    tc_connect_turns_init(&ch->lb.connect_turns, ch->loop);
    ch->lb.env = (struct tc_lb_env){
        .loop = ch->loop,
        .connect_turns = &ch->lb.connect_turns,
        .registry = ch->plugins.policies,
        .target = tc_slice_str(ch->target.text),
        .authority = tc_rstr_slice(ch->authority),
        .secured_by_xds = tc_credentials_xds_fallback(tc_creds_channel(ch->credentials)) != NULL,
        .ring_size_cap = (uint32_t)o->ring_size_cap,
        .priority_failover_ms = 10000,
        .priority_retention_ms = 900000,
        .connection_attempt_delay_ms = 250,
    };
}

static void on_runtime_shutdown(struct tc_runtime_member *member, const struct tc_status *status)
{
    tc_channel_end(TC_CONTAINER_OF(member, torc_channel, member), status, true);
}

/* torc_channel_state with try_to_connect. */
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
    struct tc_status status =
        tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_DEADLINE, "the channel was freed by the application");
    tc_channel_attach(ch);
    tc_channel_end(ch, &status, true);
    tc_status_fini(&status);
    tc_channel_unref(ch);
}

torc_channel *tc_channel_make(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                              const struct tc_channel_plugins *plugins, bool is_private, torc_error **error)
{
    torc_channel *ch = TC_NEW(torc_channel);
    tc_ref_init(&ch->ref);
    struct tc_dialer *dialer = NULL;
    ch->rt = tc_runtime_ref(rt);
    ch->loop = tc_runtime_loop(rt);
    ch->is_private = is_private;
    ch->plugins = *plugins;
    tc_list_init(&ch->member.link);
    ch->member.is_private = is_private;
    ch->member.on_shutdown = on_runtime_shutdown;
    if (!tc_channel_options_complete(&ch->opts, options, error) || !target_set(ch, target, error) ||
        !default_config_set(ch, error) || !dialer_make(ch, &dialer, error) || !interceptors_set(ch, error)) {
        tc_dialer_unref(dialer);
        tc_channel_unref(ch);
        return NULL;
    }
    /* From here on no step may fail: to channel_destroy, `credentials` is the mark of a channel that was made. */
    ch->credentials = torc_credentials_ref(ch->opts.credentials);
    ch->user_agent = ch->opts.user_agent ? tc_rstr_printf("%s torc-c/%s", ch->opts.user_agent, TORC_VERSION)
                                         : tc_rstr_printf("torc-c/%s", TORC_VERSION);
    if (ch->opts.xds_bootstrap_json)
        ch->xds_bootstrap_json = tc_strdup(ch->opts.xds_bootstrap_json);
    envs_set(ch, dialer);
    atomic_flag_clear(&ch->connect_posted);
    tc_task_init(&ch->free_task, on_free);
    tc_task_init(&ch->exit_idle_task, on_exit_idle);
    tc_state_watch_init(&ch->connectivity, ch->loop);
    tc_pick_queue_init(&ch->queue, ch->loop);
    tc_list_init(&ch->calls.all);
    return ch;
}

torc_channel *tc_channel_new_private(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                                     const struct tc_lb_registry *policies, struct tc_status *why)
{
    const struct tc_channel_plugins plugins = {.policies = policies};
    torc_error *error = NULL;
    torc_channel *ch = tc_channel_make(rt, target, options, &plugins, true, &error);
    if (ch)
        tc_channel_attach(ch);
    else
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_API, "%s", torc_error_text(error));
    torc_error_free(error);
    return ch;
}
