/* A channel on its loop: resolver -> service config and config selector -> LB policy -> picker -> calls. Loop thread
 * only, except that any thread may give back the last reference, and so destroy the channel.
 *
 *            first call, connect                  no call for idle_timeout_ms
 *   (made) ----------------------> CONNECTING ... ---------------------------> IDLE (resolver and policy are gone)
 *                                   READY, TRANSIENT_FAILURE, as the policy says
 *
 * A resolver's result is applied in tc_channel_on_result: first the policy, then the config selector, so that a route
 * never leads to a cluster that the policy does not have yet. A result that is only an error goes to the policy, and
 * service config and selector stay as they are; without a policy, calls fail with the error unless they wait for ready.
 *
 * The policy publishes a state and a picker (tc_channel_set_state). Calls use lb.picker. Each new picker makes
 * the calls that wait for a picker try again, by the serial queue; several new pickers before the queue runs cause one
 * try (pick_queue.c).
 *
 * The loop holds a reference from tc_channel_attach until the tasks that were queued by the end of the channel's last
 * turn have run (on_last_turn_end). */
#include "channel/channel_internal.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "lb/connectivity.h"
#include "lb/registry.h"
#include "runtime/runtime.h"
#include "subchannel/endpoint_security.h"
#include "subchannel/health.h"

static void on_idle_timer(struct tc_timer *timer);
static const struct tc_lb_helper_ops helper_ops;

static void channel_destroy(torc_channel *ch)
{
    bool made = ch->credentials != NULL; /* tc_channel_make sets credentials when nothing can fail any longer */
    tc_conn_config_unref(ch->conn_config);
    torc_credentials_unref(ch->credentials);
    tc_service_config_unref(ch->default_config);
    tc_rstr_unref(ch->authority);
    tc_rstr_unref(ch->user_agent);
    tc_free(ch->xds_bootstrap_json);
    tc_status_fini(&ch->end_status);
    tc_proxy_class_fini(&ch->proxied);
    tc_target_fini(&ch->target);
    tc_runtime_unref(ch->rt);
    struct tc_interceptors *interceptors = ch->interceptors;
    struct tc_channel_plugins plugins = ch->plugins;
    tc_free(ch);
    /* Last: these call the application. */
    if (plugins.release)
        plugins.release(plugins.arg, made);
    tc_interceptors_free(interceptors);
}

torc_channel *tc_channel_ref(torc_channel *ch)
{
    tc_ref_inc(&ch->ref);
    return ch;
}

void tc_channel_unref(torc_channel *ch)
{
    if (tc_ref_dec(&ch->ref))
        channel_destroy(ch);
}

static void on_unref(struct tc_task *task)
{
    tc_channel_unref(TC_CONTAINER_OF(task, torc_channel, unref_task));
}

/* Policies end by tasks that use what the channel holds for them (the application's factories, the LB environment). A
 * busy turn may leave such tasks in the serial queue, so the task that gives back the loop's reference is queued behind
 * them. */
static void on_last_turn_end(struct tc_task *task)
{
    torc_channel *ch = TC_CONTAINER_OF(task, torc_channel, unref_task);
    tc_task_init(&ch->unref_task, on_unref);
    tc_loop_defer(ch->loop, &ch->unref_task);
}

void tc_channel_attach(torc_channel *ch)
{
    if (ch->ended || tc_list_linked(&ch->member.link))
        return;
    tc_channel_ref(ch);
    tc_runtime_join(ch->rt, &ch->member);
    ch->lb.helper.ops = &helper_ops;
    ch->lb.helper.env = &ch->lb.env;
    ch->lb.picker = tc_picker_queue();
    ch->resolution.service_config = tc_service_config_ref(ch->default_config);
    ch->resolution.env.channel_id = tc_rng_u64(tc_loop_rng(ch->loop));
    tc_task_init(&ch->unref_task, on_last_turn_end);
    tc_timer_init(&ch->calls.idle_timer, ch->loop, on_idle_timer);
    if (tc_runtime_stopped(ch->rt)) {
        /* A task that was posted while the runtime shut down its channels attaches this channel. */
        struct tc_status status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_API, "the runtime was shut down");
        tc_channel_end(ch, &status, true);
        tc_status_fini(&status);
    }
}

void tc_channel_set_state(torc_channel *ch, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker)
{
    bool changed = state != ch->connectivity.state;
    ch->connectivity.state = state;
    tc_status_set(&ch->connectivity.status, state == TORC_CONNECTIVITY_TRANSIENT_FAILURE && status
                                                ? tc_status_ref(status)
                                                : (struct tc_status){0});
    tc_picker_unref(ch->lb.picker);
    ch->lb.picker = picker;
    if (changed || state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
        TC_LOG(TC_LOG_CHANNEL, changed ? TORC_LOG_INFO : TORC_LOG_DEBUG, "%s: channel %s%s%s", ch->target.text,
               tc_connectivity_name(state), ch->connectivity.status.text ? ": " : "",
               tc_status_text(&ch->connectivity.status));
        tc_state_watch_publish(&ch->connectivity);
    }
    tc_pick_queue_wake(&ch->queue);
}

/* --- requests of the policy --- */

static torc_channel *of_helper(struct tc_lb_helper *h)
{
    return TC_CONTAINER_OF(h, torc_channel, lb.helper);
}

static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    torc_channel *ch = of_helper(h);
    const struct tc_security *security = ch->lb.env.secured_by_xds ? tc_security_of(endpoint) : NULL;
    struct tc_conn_config *config =
        security ? tc_conn_config_secured(ch->conn_config, security->creds, security->server_name)
                 : tc_conn_config_ref(ch->conn_config);
    struct tc_subchannel *sc = tc_subchannel_new(tc_runtime_pool(ch->rt), config, endpoint, addr, on_state, arg,
                                                 tc_state_watch_on_conn_event, &ch->connectivity);
    tc_conn_config_unref(config);
    tc_scaling_add(&ch->lb.scaling, sc);
    return sc;
}

static void update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                         struct tc_picker *picker)
{
    torc_channel *ch = of_helper(h);
    if (ch->ended || !ch->resolution.resolver)
        tc_picker_unref(picker);
    else
        tc_channel_set_state(ch, state, status, picker);
}

static void request_reresolution(struct tc_lb_helper *h)
{
    torc_channel *ch = of_helper(h);
    if (ch->resolution.resolver)
        ch->resolution.resolver->ops->request_reresolution(ch->resolution.resolver);
}

static const struct tc_lb_helper_ops helper_ops = {
    .create_subchannel = create_subchannel,
    .update_state = update_state,
    .request_reresolution = request_reresolution,
};

/* --- idle, and out of it --- */

void tc_channel_exit_idle(torc_channel *ch)
{
    if (ch->ended)
        return;
    if (ch->resolution.resolver) {
        if (ch->lb.child && ch->connectivity.state == TORC_CONNECTIVITY_IDLE)
            tc_graceful_switch_exit_idle(ch->lb.child);
        else if (!ch->lb.child)
            ch->lb.connect_wanted = true;
        return;
    }
    ch->lb.connect_wanted = true;
    ch->calls.last_active_ms = tc_loop_now_ms(ch->loop);
    if (ch->opts.idle_timeout_ms != INT64_MAX)
        tc_timer_start(&ch->calls.idle_timer, (uint64_t)ch->opts.idle_timeout_ms);
    ch->resolution.resolver = ch->resolver_class->create(ch->resolver_class, &ch->target, &ch->resolution.env);
    tc_channel_set_state(ch, TORC_CONNECTIVITY_CONNECTING, NULL, tc_picker_queue());
    ch->resolution.resolver->ops->start(ch->resolution.resolver);
}

/* Ends resolver and policy, and drops their last results, except the service config, which stays in force until the
 * next result. */
static void channel_go_idle(torc_channel *ch)
{
    tc_timer_stop(&ch->calls.idle_timer);
    if (ch->resolution.resolver)
        ch->resolution.resolver->ops->shutdown(ch->resolution.resolver);
    ch->resolution.resolver = NULL;
    if (ch->lb.child)
        tc_graceful_switch_shutdown(ch->lb.child);
    ch->lb.child = NULL;
    ch->resolution.usable = false;
    ch->lb.connect_wanted = false;
    tc_config_selector_unref(ch->resolution.selector);
    ch->resolution.selector = NULL;
    if (ch->lb.config)
        tc_lb_config_unref(ch->lb.config);
    ch->lb.config = NULL;
    tc_status_fini(&ch->resolution.error);
}

static void on_idle_timer(struct tc_timer *timer)
{
    torc_channel *ch = TC_CONTAINER_OF(timer, torc_channel, calls.idle_timer);
    uint64_t now_ms = tc_loop_now_ms(ch->loop), limit_ms = (uint64_t)ch->opts.idle_timeout_ms;
    uint64_t quiet_ms = ch->calls.n ? 0 : now_ms - ch->calls.last_active_ms;
    if (quiet_ms < limit_ms) {
        tc_timer_start(&ch->calls.idle_timer, limit_ms - quiet_ms);
        return;
    }
    TC_LOG(TC_LOG_CHANNEL, TORC_LOG_DEBUG, "%s: idle, no call for %llu ms", ch->target.text,
           (unsigned long long)quiet_ms);
    channel_go_idle(ch);
    tc_channel_set_state(ch, TORC_CONNECTIVITY_IDLE, NULL, tc_picker_queue());
}

void tc_channel_call_began(torc_channel *ch)
{
    ch->calls.n++;
    if (!ch->resolution.resolver) {
        tc_channel_exit_idle(ch);
        ch->lb.connect_wanted = false;
    }
}

void tc_channel_call_ended(torc_channel *ch)
{
    if (--ch->calls.n == 0)
        ch->calls.last_active_ms = tc_loop_now_ms(ch->loop);
}

void tc_channel_reset_backoff(torc_channel *ch)
{
    if (ch->resolution.resolver)
        ch->resolution.resolver->ops->reset_backoff(ch->resolution.resolver);
    if (ch->lb.child)
        tc_graceful_switch_reset_backoff(ch->lb.child);
}

/* --- results of the resolver --- */

static void resolution_failed(torc_channel *ch, const struct tc_status *status)
{
    tc_status_set(&ch->resolution.error, tc_status_ref(status));
    tc_channel_set_state(ch, TORC_CONNECTIVITY_TRANSIENT_FAILURE, status, tc_picker_fail(status));
    tc_pick_queue_resolved(&ch->queue);
}

/* Returns the service config that a result brings into force (a reference; NULL: none). If the result's config is
 * invalid, sets *refused and returns the present config; if calls have no usable result yet, sets *bad too and returns
 * NULL (A21). */
static struct tc_service_config *choose_config(torc_channel *ch, const struct tc_resolver_result *r,
                                               struct tc_status *bad, bool *refused)
{
    if (!r->service_config || !ch->opts.service_config_lookup)
        return tc_service_config_ref(ch->default_config);
    char *why = NULL;
    struct tc_service_config *c = tc_service_config_parse(ch->plugins.policies, tc_rstr_slice(r->service_config), &why);
    if (!c) {
        *refused = true;
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: the resolver's %s", ch->target.text, why);
        if (ch->resolution.usable)
            c = tc_service_config_ref(ch->resolution.service_config);
        else
            *bad = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "the resolver's %s", why);
        tc_free(why);
    }
    return c;
}

/* Returns the config for the policy's update, a reference: the result's; after an error the present one; else the
 * service config's, or that of pick_first. */
static struct tc_lb_config *choose_policy(torc_channel *ch, const struct tc_resolver_result *r)
{
    if (r->lb_config)
        return tc_lb_config_ref(r->lb_config);
    if (!r->endpoints && ch->lb.config)
        return tc_lb_config_ref(ch->lb.config);
    struct tc_lb_config *lb =
        ch->resolution.service_config ? tc_service_config_lb(ch->resolution.service_config) : NULL;
    return lb ? tc_lb_config_ref(lb) : tc_lb_default_config(ch->plugins.policies, "pick_first");
}

/* Gives the policy a result, after making the policy if there is none. Returns false if the policy refused it. */
static bool update_policy(torc_channel *ch, const struct tc_resolver_result *r)
{
    struct tc_lb_config *config = choose_policy(ch, r);
    if (ch->lb.config)
        tc_lb_config_unref(ch->lb.config);
    ch->lb.config = config;
    struct tc_lb_update update = {
        .endpoints = r->endpoints,
        .endpoints_error = r->endpoints ? NULL : &r->status,
        .config = config,
        .attributes = r->attributes,
    };
    bool first = !ch->lb.child;
    if (first)
        ch->lb.child = tc_graceful_switch_new(&ch->lb.helper);
    tc_pool_set_updating(tc_runtime_pool(ch->rt), true);
    struct tc_status status = tc_graceful_switch_update(ch->lb.child, &update);
    tc_pool_set_updating(tc_runtime_pool(ch->rt), false);
    bool ok = tc_status_ok(&status);
    if (!ok)
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "%s: the policy refused an update: %s", ch->target.text,
               tc_status_text(&status));
    tc_status_fini(&status);
    if (first && ch->lb.connect_wanted && ch->lb.child)
        tc_graceful_switch_exit_idle(ch->lb.child);
    ch->lb.connect_wanted = false;
    return ok;
}

/* Logs the number of a result's addresses, or its error, if addresses or error differ from those logged last. A
 * resolver that chooses the policy (xDS) logs such results itself. */
static void result_log(torc_channel *ch, const struct tc_resolver_result *r)
{
    if (TC_LIKELY(!tc_log_enabled(TC_LOG_RESOLVER, TORC_LOG_INFO)) || r->lb_config)
        return;
    struct tc_buf b = {0};
    size_t n = 0;
    for (size_t i = 0; r->endpoints && i < r->endpoints->n; i++) {
        n += r->endpoints->at[i]->n_addrs;
        for (size_t k = 0; k < r->endpoints->at[i]->n_addrs; k++) {
            tc_addr_format(&r->endpoints->at[i]->addrs[k], &b);
            tc_buf_append_char(&b, ' ');
        }
    }
    if (!r->endpoints)
        tc_buf_append_str(&b, tc_status_text(&r->status));
    uint64_t hash = tc_xxh64_slice(tc_buf_slice(&b));
    if (hash != ch->resolution.logged && r->endpoints)
        TC_LOG(TC_LOG_RESOLVER, TORC_LOG_INFO, "%s: resolved, addresses: %zu", ch->target.text, n);
    else if (hash != ch->resolution.logged)
        TC_LOG(TC_LOG_RESOLVER, TORC_LOG_INFO, "%s: not resolved: %s", ch->target.text, tc_buf_cstr(&b));
    ch->resolution.logged = hash;
    tc_buf_fini(&b);
}

bool tc_channel_on_result(void *arg, struct tc_resolver_result *r)
{
    torc_channel *ch = arg;
    result_log(ch, r);
    bool ok = true, refused = false;
    struct tc_status bad = {0};
    bool only_error = !r->endpoints && !r->lb_config && !r->selector;
    /* The policy still serves RPCs that have their route. New RPCs get no route: they fail, or wait if they wait for
     * ready. */
    bool unroutable = !r->endpoints && r->lb_config && !r->selector && !tc_status_ok(&r->status);
    if (only_error && !ch->lb.child) {
        resolution_failed(ch, &r->status);
        goto done;
    }
    if (!only_error) {
        struct tc_service_config *config = choose_config(ch, r, &bad, &refused);
        if (!tc_status_ok(&bad)) {
            resolution_failed(ch, &bad);
            ok = false;
            goto done;
        }
        tc_service_config_unref(ch->resolution.service_config);
        ch->resolution.service_config = config;
        /* Where the resolver chooses the policy (xDS), health checks and scaling of a service config do not count. */
        bool asks = config && !r->lb_config;
        tc_health_checks_set(ch->conn_config->health, asks ? tc_service_config_health(config) : NULL);
        tc_scaling_set(&ch->lb.scaling, asks ? tc_service_config_max_connections(config) : 1);
    }
    ok = update_policy(ch, r) && !refused;
    if (!only_error) {
        tc_config_selector_unref(ch->resolution.selector);
        ch->resolution.selector = r->selector;
        r->selector = NULL;
    }
    tc_status_set(&ch->resolution.error, unroutable ? tc_status_ref(&r->status) : (struct tc_status){0});
    static const struct tc_retry_throttle unthrottled;
    tc_retry_throttle_update(&ch->calls.throttle, ch->resolution.service_config
                                                      ? tc_service_config_throttle(ch->resolution.service_config)
                                                      : &unthrottled);
    ch->resolution.usable = !unroutable;
    tc_pick_queue_resolved(&ch->queue);
done:
    tc_status_fini(&bad);
    tc_resolver_result_fini(r);
    return ok;
}

/* --- the end --- */

static void channel_end_connections(torc_channel *ch)
{
    tc_pool_channel_gone(tc_runtime_pool(ch->rt), ch->conn_config);
    tc_dialer_end(ch->conn_config->dialer, ch->loop);
    tc_health_checks_end(ch->conn_config->health);
}

void tc_channel_end(torc_channel *ch, const struct tc_status *status, bool tell)
{
    if (ch->ended)
        return;
    ch->ended = true;
    ch->end_status = tc_status_ref(status);
    tc_list_remove(&ch->member.link);
    while (!tc_list_empty(&ch->calls.all)) {
        struct tc_channel_call *c = TC_CONTAINER_OF(ch->calls.all.next, struct tc_channel_call, link);
        c->end(c, tell ? status : NULL);
    }
    channel_go_idle(ch);
    tc_scaling_fini(&ch->lb.scaling);
    tc_task_cancel(&ch->lb.connect_turns.end);
    channel_end_connections(ch);
    tc_task_cancel(&ch->queue.retry);
    tc_picker_unref(ch->lb.picker);
    ch->lb.picker = NULL;
    tc_service_config_unref(ch->resolution.service_config);
    ch->resolution.service_config = NULL;
    tc_state_watch_end(&ch->connectivity, tell);
    /* A caller up the stack may still use the channel, and its policies end by the serial queue. */
    tc_loop_at_turn_end(ch->loop, &ch->unref_task);
}

void tc_channel_shutdown(torc_channel *ch)
{
    struct tc_status status = tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_DEADLINE, "the channel was shut down");
    tc_channel_end(ch, &status, false);
    tc_status_fini(&status);
    tc_channel_unref(ch);
}

void tc_channel_watch_add(torc_channel *ch, struct tc_channel_watch *watch)
{
    tc_list_append(&ch->connectivity.watches, &watch->link);
}

void tc_channel_watch_remove(struct tc_channel_watch *watch)
{
    tc_list_remove(&watch->link);
}
