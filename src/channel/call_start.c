/* The stages of a call up to its first attempt (call.c has the picture):
 *
 *   tc_call_begin -> rpc_begin         on_start of the channel's interceptors, if it has any and the call is not dry;
 *                                      an interceptor may delay the call
 *                 -> call_go_on        the deadline, credentials
 *                 -> call_resolved     at once, or when the resolver has a result
 *                 -> config_select     A31's config selector, or the service config's method config: route, cluster,
 *                                      timeout, retry policy, message limits
 *                 -> filters_start     the route's HTTP filters, if it has any; one of them may delay the call
 *                 -> call_first_attempt   the pick, or hedging
 *
 * A step that fails the call, or must wait, calls no further step. When the wait is over, its callback goes on from
 * there. */
#include "channel/call_start.h"

#include "base/mem.h"
#include "channel/attempt.h"
#include "channel/call_setup.h"
#include "channel/deadline.h"
#include "channel/hedge.h"

/* The call's config is known, and the call has passed the filters. */
static void call_first_attempt(struct tc_call *c)
{
    if (TC_UNLIKELY(c->retry.policy.hedging && !c->asked.dry))
        tc_hedge_start(c);
    else
        tc_call_attempt(c);
}

/* --- HTTP filters --- */

static void filters_follow(struct tc_call *c, enum tc_filter_verdict verdict)
{
    if (verdict == TC_FILTER_NEXT)
        call_first_attempt(c);
    else if (verdict == TC_FILTER_WAIT)
        c->stage = TC_CALL_WAIT_FILTER;
    else
        tc_call_fail(c, tc_call_filters_take_status(c->filters));
}

static void on_filters_resumed(void *arg, enum tc_filter_verdict verdict)
{
    filters_follow(arg, verdict);
}

static void filters_start(struct tc_call *c)
{
    const struct tc_filter_call as_seen = {
        .loop = c->channel->loop,
        .arena = &c->arena,
        .path = c->asked.path,
        .metadata = &c->asked.metadata,
        .config = &c->config,
        .explain = c->asked.explain,
    };
    c->filters = tc_call_filters_new(c->config.filters, &as_seen, c->asked.dry, on_filters_resumed, c);
    filters_follow(c, tc_call_filters_start(c->filters));
}

/* --- the config selector --- */

static void method_config_use(struct tc_call *c)
{
    const struct tc_service_config *sc = c->channel->resolution.service_config;
    const struct tc_method_config *m = sc ? tc_service_config_method(sc, c->asked.path) : NULL;
    c->config = TC_CALL_CONFIG_NONE;
    if (!m)
        return;
    c->config.timeout_ns = m->timeout_ns;
    c->config.wait_for_ready = m->wait_for_ready;
    c->retry.policy = m->retry;
    c->config.max_request_bytes = m->max_request_bytes;
    c->config.max_response_bytes = m->max_response_bytes;
}

/* Sets each limit to the smallest one of the options, the config, and (to send) gRPC's length prefix. 0 in a call's
 * option means the channel's. */
static void message_limits_set(struct tc_call *c)
{
    const torc_channel *ch = c->channel;
    struct tc_h2_request *r = &c->attempt.request;
    uint64_t channels = (uint64_t)ch->opts.max_receive_message_bytes;
    uint64_t receive = c->asked.max_receive_bytes ? c->asked.max_receive_bytes : channels;
    r->has_limits = true;
    r->max_receive_message_bytes = (size_t)TC_MIN(TC_MIN(receive, c->config.max_response_bytes), SIZE_MAX);
    r->max_send_message_bytes = (size_t)TC_MIN((uint64_t)ch->opts.max_send_message_bytes,
                                               TC_MIN(c->config.max_request_bytes, TC_H2_MESSAGE_MAX));
}

/* Returns false if the call has ended. */
static bool config_select(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    struct tc_config_selector *selector = ch->resolution.selector;
    if (selector) {
        struct tc_select_args args = {.path = c->asked.path,
                                      .headers = &c->asked.metadata,
                                      .arena = &c->arena,
                                      .rng = tc_loop_rng(ch->loop),
                                      .explain = c->asked.explain};
        struct tc_call_config config = TC_CALL_CONFIG_NONE;
        struct tc_status status = selector->ops->select(selector, &args, &config);
        if (!tc_status_ok(&status)) {
            tc_call_fail(c, tc_status_legal(status, "ConfigSelector"));
            return false;
        }
        tc_status_fini(&status);
        c->config = config;
        if (config.retry)
            c->retry.policy = *config.retry;
    } else {
        method_config_use(c);
    }
    c->waits = (c->asked.wait_for_ready ? c->asked.wait_for_ready : c->config.wait_for_ready) > 0;
    if (!ch->opts.retries)
        c->retry.policy.max_attempts = 0;
    c->retry.policy.hedging &= c->retry.policy.max_attempts != 0;
    message_limits_set(c);
    uint64_t timeout = c->config.timeout_ns, started_ns = c->deadline.started_ns;
    if (timeout < UINT64_MAX - started_ns && started_ns + timeout < c->deadline.at_ns) {
        c->deadline.at_ns = started_ns + timeout;
        tc_call_deadline_arm(c);
    }
    return !tc_call_end_if_late(c);
}

static void call_resolved(struct tc_call *c);

static void on_resolved(struct tc_queued *q)
{
    call_resolved(TC_CONTAINER_OF(q, struct tc_call, queue));
}

/* Called when the call begins, and when a result came or resolution failed while it waited. */
static void call_resolved(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    const struct tc_status *error = &ch->resolution.error;
    if (ch->resolution.usable) {
        if (!config_select(c))
            return;
        if (c->config.filters)
            filters_start(c);
        else
            call_first_attempt(c);
    } else if (!tc_status_ok(error) && c->asked.wait_for_ready <= 0) {
        tc_call_fail(c, tc_status_legal(tc_status_ref(error), "resolver"));
    } else {
        c->stage = TC_CALL_WAIT_CONFIG;
        tc_pick_queue_wait(&ch->queue.config, &c->queue, on_resolved);
    }
}

/* --- the start --- */

static void request_fill(struct tc_call *c)
{
    const torc_channel *ch = c->channel;
    struct tc_h2_request *r = &c->attempt.request;
    r->path = c->asked.path;
    r->authority = tc_rstr_slice(ch->authority);
    r->user_agent = tc_rstr_slice(ch->user_agent);
    r->encoding = c->asked.gzip ? TC_H2_GZIP : TC_H2_IDENTITY;
    r->metadata = &c->asked.metadata;
}

static void channel_join(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    tc_channel_attach(ch);
    tc_list_append(&ch->calls.all, &c->member.link);
    tc_channel_call_began(ch);
}

void tc_call_refuse(struct tc_call *c, struct tc_status why)
{
    channel_join(c);
    tc_call_fail(c, why);
}

static void call_go_on(struct tc_call *c)
{
    request_fill(c);
    if (tc_call_end_if_late(c))
        return;
    tc_call_setup_credentials(c);
    if (c->deadline.at_ns != UINT64_MAX)
        tc_call_deadline_arm(c);
    call_resolved(c);
}

/* Called when the walk past the interceptors' on_start has passed, failed or waits. After WAITS (an interceptor holds
 * up the call) this function is called again. */
static void on_rpc_begun(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call *c = w->owner;
    if (end == TC_WALK_FAILED) {
        tc_call_fail(c, tc_status_ref(&w->failure));
    } else if (end == TC_WALK_PASSED) {
        c->rpc->begun = true;
        call_go_on(c);
        tc_call_send_held(c);
    }
}

static const char *rpc_method(const torc_rpc *rpc)
{
    return ((const struct tc_call *)rpc->owner)->asked.path.data;
}

static const char *rpc_target(const torc_rpc *rpc)
{
    return ((const struct tc_call *)rpc->owner)->channel->target.text;
}

static const char *rpc_authority(const torc_rpc *rpc)
{
    return tc_rstr_cstr(((const struct tc_call *)rpc->owner)->channel->authority);
}

static const char *rpc_peer(const torc_rpc *rpc)
{
    return tc_rstr_cstr(((const struct tc_call *)rpc->owner)->attempt.peer);
}

static uint64_t rpc_deadline_ns(const torc_rpc *rpc)
{
    return ((const struct tc_call *)rpc->owner)->deadline.at_ns;
}

static const struct tc_headers *rpc_headers(const torc_rpc *rpc)
{
    return ((const struct tc_call *)rpc->owner)->attempt.headers;
}

static const struct tc_headers *rpc_trailers(const torc_rpc *rpc)
{
    return ((const struct tc_call *)rpc->owner)->trailers;
}

static const struct tc_rpc_side client_side = {rpc_method,      rpc_target,  rpc_authority, rpc_peer,
                                               rpc_deadline_ns, rpc_headers, rpc_trailers,  false};

static void rpc_begin(struct tc_call *c)
{
    const torc_channel *ch = c->channel;
    torc_rpc *rpc = tc_rpc_new(ch->interceptors, ch->rt, &client_side, c, &c->arena, &c->asked.metadata, &c->status);
    c->rpc = rpc;
    c->asked.watch_picks = tc_rpc_has(rpc, TC_HOOK_PICK);
    c->asked.watch_wire = tc_rpc_has(rpc, TC_HOOK_WIRE);
    c->stage = TC_CALL_WAIT_INTERCEPTOR;
    if (c->deadline.at_ns != UINT64_MAX)
        tc_call_deadline_arm(c);
    rpc->main.owner = c;
    rpc->main.resumed = on_rpc_begun;
    on_rpc_begun(&rpc->main, tc_walk_begin(&rpc->main, rpc, TC_HOOK_START, false));
}

void tc_call_begin(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    channel_join(c);
    if (ch->ended)
        tc_call_fail(c, tc_status_ref(&ch->end_status));
    else if (TC_UNLIKELY(ch->interceptors != NULL && !c->asked.dry))
        rpc_begin(c);
    else
        call_go_on(c);
}

static void private_release(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    tc_call_fini(c);
    tc_arena_fini(&c->arena);
    tc_free(c);
    tc_channel_unref(ch);
}

struct tc_call *tc_call_start(torc_channel *ch, const struct tc_call_opts *opts, const struct tc_call_events *events,
                              void *arg)
{
    struct tc_call *c = TC_NEW(struct tc_call);
    tc_arena_init(&c->arena, 0, 0);
    tc_call_init(c, ch);
    c->release = private_release;
    c->events = events;
    c->arg = arg;
    c->asked.path = tc_slice_of(tc_arena_dup(&c->arena, opts->method), opts->method.len);
    for (size_t i = 0; opts->metadata && i < opts->metadata->len; i++)
        tc_headers_add_copy(&c->asked.metadata, opts->metadata->data[i].name, opts->metadata->data[i].value);
    c->asked.wait_for_ready = opts->wait_for_ready;
    c->retried = opts->once;
    c->asked.max_receive_bytes = opts->max_receive_message_bytes;
    c->deadline.started_ns = tc_loop_clock_ns(ch->loop);
    if (opts->timeout_ns && opts->timeout_ns < UINT64_MAX - c->deadline.started_ns)
        c->deadline.at_ns = c->deadline.started_ns + opts->timeout_ns;
    tc_call_begin(c);
    return c;
}
