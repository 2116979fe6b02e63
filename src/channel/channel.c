#include "channel/channel_struct.h"

#include "base/log.h"
#include "base/mem.h"
#include "channel/call_struct.h"
#include "channel/security.h"

static void on_idle_timer(struct tc_timer *timer);
static const struct tc_lb_helper_ops helper_ops;

static void on_unref(struct tc_task *task)
{
    tc_channel_unref(TC_CONTAINER_OF(task, torc_channel, unref_task));
}

void tc_channel_attach(torc_channel *ch)
{
    if (ch->ended || tc_list_linked(&ch->runtime_link))
        return;
    tc_channel_ref(ch);
    tc_list_append(tc_runtime_channels(ch->rt), &ch->runtime_link);
    ch->helper.ops = &helper_ops;
    ch->helper.env = &ch->lb_env;
    ch->picker = tc_picker_queue();
    ch->service_config = tc_service_config_ref(ch->default_config);
    tc_task_init(&ch->unref_task, on_unref);
    tc_timer_init(&ch->idle_timer, ch->loop, on_idle_timer);
}

void tc_channel_set_state(torc_channel *ch, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker)
{
    bool changed = state != ch->state;
    ch->state = state;
    tc_status_set(&ch->status,
                  state == TORC_TRANSIENT_FAILURE && status ? tc_status_ref(status) : (struct tc_status){0});
    tc_picker_unref(ch->picker);
    ch->picker = picker;
    if (changed || state == TORC_TRANSIENT_FAILURE) {
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_DEBUG, "%s: %s %s", ch->target.text, torc_connectivity_name(state),
               tc_status_text(&ch->status));
        tc_channel_publish(ch);
    }
    tc_pick_queue_wake(ch);
}

/* The helper of the policy. */

static torc_channel *of_helper(struct tc_lb_helper *h)
{
    return TC_CONTAINER_OF(h, torc_channel, helper);
}

static void on_conn_event(void *arg, const char *kind, struct tc_rstr *address, const char *reason)
{
    tc_channel_observe_event(arg, kind, address->data, reason);
}

static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    torc_channel *ch = of_helper(h);
    const struct tc_security *security = ch->lb_env.secured_by_xds ? tc_security_of(endpoint) : NULL;
    struct tc_conn_config *config =
        security ? tc_conn_config_secured(ch->conn_config, security->creds, security->server_name)
                 : tc_conn_config_ref(ch->conn_config);
    struct tc_subchannel *sc =
        tc_pool_subchannel(tc_runtime_pool(ch->rt), config, endpoint, addr, on_state, arg, on_conn_event, ch);
    tc_conn_config_unref(config);
    return sc;
}

static void update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                         struct tc_picker *picker)
{
    torc_channel *ch = of_helper(h);
    if (ch->ended || !ch->resolver)
        tc_picker_unref(picker);
    else
        tc_channel_set_state(ch, state, status, picker);
}

static void request_reresolution(struct tc_lb_helper *h)
{
    torc_channel *ch = of_helper(h);
    if (ch->resolver)
        ch->resolver->ops->request_reresolution(ch->resolver);
}

static const struct tc_lb_helper_ops helper_ops = {
    .create_subchannel = create_subchannel,
    .update_state = update_state,
    .request_reresolution = request_reresolution,
};

/* Going idle, and out of it. */

void tc_channel_exit_idle(torc_channel *ch)
{
    if (ch->ended)
        return;
    if (ch->resolver) {
        if (ch->child && ch->state == TORC_IDLE)
            tc_lb_child_exit_idle(ch->child);
        else if (!ch->child)
            ch->connect_wanted = true;
        return;
    }
    ch->connect_wanted = true;
    ch->last_active_ms = tc_loop_now_ms(ch->loop);
    if (ch->opts.idle_timeout_ms != UINT64_MAX)
        tc_timer_start(&ch->idle_timer, ch->opts.idle_timeout_ms);
    ch->resolver = ch->resolver_class->create(ch->resolver_class, &ch->target, &ch->resolver_env);
    tc_channel_set_state(ch, TORC_CONNECTING, NULL, tc_picker_queue());
    ch->resolver->ops->start(ch->resolver);
}

/* Stops resolver and policy and forgets what they said. */
static void stop_parts(torc_channel *ch)
{
    tc_timer_stop(&ch->idle_timer);
    if (ch->resolver)
        ch->resolver->ops->shutdown(ch->resolver);
    ch->resolver = NULL;
    if (ch->child)
        tc_lb_child_shutdown(ch->child);
    ch->child = NULL;
    ch->resolved = false;
    ch->connect_wanted = false;
    tc_config_selector_unref(ch->selector);
    ch->selector = NULL;
    if (ch->lb_config)
        tc_lb_config_unref(ch->lb_config);
    ch->lb_config = NULL;
    tc_status_fini(&ch->resolve_error);
}

static void on_idle_timer(struct tc_timer *timer)
{
    torc_channel *ch = TC_CONTAINER_OF(timer, torc_channel, idle_timer);
    uint64_t now_ms = tc_loop_now_ms(ch->loop), limit_ms = ch->opts.idle_timeout_ms;
    uint64_t quiet_ms = ch->n_calls ? 0 : now_ms - ch->last_active_ms;
    if (quiet_ms < limit_ms) {
        tc_timer_start(&ch->idle_timer, limit_ms - quiet_ms);
        return;
    }
    TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "%s: idle, no call for %llu ms", ch->target.text,
           (unsigned long long)quiet_ms);
    stop_parts(ch);
    tc_channel_set_state(ch, TORC_IDLE, NULL, tc_picker_queue());
}

void tc_channel_call_began(torc_channel *ch)
{
    ch->n_calls++;
    if (!ch->resolver) {
        tc_channel_exit_idle(ch);
        /* The policy's own pick decides what connects. */
        ch->connect_wanted = false;
    }
}

void tc_channel_call_ended(torc_channel *ch)
{
    if (--ch->n_calls == 0)
        ch->last_active_ms = tc_loop_now_ms(ch->loop);
}

void tc_channel_reset_backoff(torc_channel *ch)
{
    if (ch->resolver)
        ch->resolver->ops->reset_backoff(ch->resolver);
    if (ch->child)
        tc_lb_child_reset_backoff(ch->child);
}

void tc_channel_observe_event(torc_channel *ch, const char *kind, const char *detail, const char *reason)
{
    if (ch->observer)
        ch->observer(kind, detail, reason, ch->observer_arg);
}

/* Results of the resolver. */

static void resolution_failed(torc_channel *ch, const struct tc_status *status)
{
    tc_status_set(&ch->resolve_error, tc_status_ref(status));
    tc_channel_set_state(ch, TORC_TRANSIENT_FAILURE, status, tc_picker_fail(status));
    tc_pick_queue_resolved(ch);
}

/* The service config that a result brings into force; NULL with *bad when it is invalid and there is none to keep
 * (A21). The caller unrefs it. */
static struct tc_service_config *choose_config(torc_channel *ch, const struct tc_resolver_result *r,
                                               struct tc_status *bad, bool *refused)
{
    if (!r->service_config || ch->opts.disable_service_config_lookup)
        return tc_service_config_ref(ch->default_config);
    char *why = NULL;
    struct tc_service_config *c = tc_service_config_parse(ch->registry, tc_rstr_slice(r->service_config), &why);
    if (!c) {
        *refused = true;
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: the resolver's %s", ch->target.text, why);
        if (ch->resolved)
            c = tc_service_config_ref(ch->service_config);
        else
            *bad = tc_status_make(TORC_STATUS_UNAVAILABLE, "the resolver's %s", why);
        tc_free(why);
    }
    return c;
}

static struct tc_lb_config *choose_policy(torc_channel *ch, const struct tc_resolver_result *r)
{
    if (r->lb_config)
        return tc_lb_config_ref(r->lb_config);
    if (!r->endpoints && ch->lb_config)
        return tc_lb_config_ref(ch->lb_config);
    struct tc_lb_config *lb = ch->service_config ? tc_service_config_lb(ch->service_config) : NULL;
    return lb ? tc_lb_config_ref(lb) : tc_lb_default_config(ch->registry, "pick_first");
}

static bool update_policy(torc_channel *ch, const struct tc_resolver_result *r)
{
    struct tc_lb_config *config = choose_policy(ch, r);
    if (ch->lb_config)
        tc_lb_config_unref(ch->lb_config);
    ch->lb_config = config;
    struct tc_lb_update update = {
        .endpoints = r->endpoints,
        .endpoints_error = r->endpoints ? NULL : &r->status,
        .config = config,
        .resolution_note = r->resolution_note,
        .attributes = r->attributes,
    };
    bool first = !ch->child;
    if (first)
        ch->child = tc_lb_child_new(&ch->helper);
    tc_pool_set_updating(tc_runtime_pool(ch->rt), true);
    struct tc_status status = tc_lb_child_update(ch->child, &update);
    tc_pool_set_updating(tc_runtime_pool(ch->rt), false);
    bool ok = tc_status_ok(&status);
    if (!ok)
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "%s: the policy refused an update: %s", ch->target.text,
               tc_status_text(&status));
    tc_status_fini(&status);
    if (first && ch->connect_wanted && ch->child)
        tc_lb_child_exit_idle(ch->child);
    ch->connect_wanted = false;
    return ok;
}

bool tc_channel_on_result(void *arg, struct tc_resolver_result *r)
{
    torc_channel *ch = arg;
    bool ok = true, refused = false;
    struct tc_status bad = {0};
    /* An error alone leaves what is in force as it is. */
    bool only_error = !r->endpoints && !r->lb_config && !r->selector;
    /* The policy goes on for RPCs that have their route; others have none, and those that wait do so for one. */
    bool unroutable = !r->endpoints && r->lb_config && !r->selector && !tc_status_ok(&r->status);
    if (only_error && !ch->child) {
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
        tc_service_config_unref(ch->service_config);
        ch->service_config = config;
    }
    ok = update_policy(ch, r) && !refused;
    if (!only_error) {
        /* After the policy: a route must not lead to what the tree does not have yet. */
        tc_config_selector_unref(ch->selector);
        ch->selector = r->selector;
        r->selector = NULL;
    }
    tc_status_set(&ch->resolve_error, unroutable ? tc_status_ref(&r->status) : (struct tc_status){0});
    static const struct tc_retry_throttle unthrottled;
    tc_retry_throttle_update(&ch->throttle,
                             ch->service_config ? tc_service_config_throttle(ch->service_config) : &unthrottled);
    ch->resolved = !unroutable;
    tc_pick_queue_resolved(ch);
done:
    tc_status_fini(&bad);
    tc_resolver_result_fini(r);
    return ok;
}

/* The end. */

void tc_channel_end(torc_channel *ch, const struct tc_status *status, bool tell)
{
    if (ch->ended)
        return;
    ch->ended = true;
    ch->end_status = tc_status_ref(status);
    tc_list_remove(&ch->runtime_link);
    while (!tc_list_empty(&ch->calls)) {
        struct tc_call *c = TC_CONTAINER_OF(ch->calls.next, struct tc_call, link);
        if (tell)
            tc_call_abort(c, status);
        else
            tc_call_cancel(c);
    }
    stop_parts(ch);
    tc_lb_turns_stop(&ch->lb_turns);
    if (ch->conn_config)
        tc_pool_forget_failures(tc_runtime_pool(ch->rt), ch->conn_config);
    tc_task_cancel(&ch->retry);
    tc_picker_unref(ch->picker);
    ch->picker = NULL;
    tc_service_config_unref(ch->service_config);
    ch->service_config = NULL;
    tc_status_fini(&ch->status);
    ch->state = TORC_SHUTDOWN;
    atomic_store(&ch->published, TORC_SHUTDOWN);
    ch->observer = NULL;
    tc_channel_watch_end(ch, tell);
    /* Someone of the channel's may be up the stack, and its policies end by the serial queue. */
    tc_loop_at_turn_end(ch->loop, &ch->unref_task);
}

void tc_channel_shutdown(torc_channel *ch)
{
    struct tc_status status = tc_status_make(TORC_STATUS_CANCELLED, "the channel was shut down");
    tc_channel_end(ch, &status, false);
    tc_status_fini(&status);
    tc_channel_unref(ch);
}
