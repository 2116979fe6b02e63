/* The call's way from the config selector to the pick, its deadline, and its end. */
#include "base/mem.h"
#include "channel/call_struct.h"
#include "creds/creds.h"
#include "lb/session.h"

struct tc_status tc_status_from_control_plane(struct tc_status status)
{
    switch (status.code) {
    case TORC_STATUS_OK:
    case TORC_STATUS_INVALID_ARGUMENT:
    case TORC_STATUS_NOT_FOUND:
    case TORC_STATUS_ALREADY_EXISTS:
    case TORC_STATUS_FAILED_PRECONDITION:
    case TORC_STATUS_ABORTED:
    case TORC_STATUS_OUT_OF_RANGE:
    case TORC_STATUS_DATA_LOSS: {
        struct tc_status out =
            tc_status_make(TORC_STATUS_INTERNAL, "Illegal status code from control plane; original status: %s: %s",
                           torc_status_code_name(status.code), tc_status_text(&status));
        tc_status_fini(&status);
        return out;
    }
    default:
        return status;
    }
}

static void on_done_task(struct tc_task *task)
{
    struct tc_call *c = TC_CONTAINER_OF(task, struct tc_call, done);
    struct tc_call_end end = {
        .status = c->status,
        .headers = c->headers,
        .trailers = c->trailers,
        .peer = c->peer,
        .attempts = c->attempts,
    };
    c->events->on_done(c->arg, &end);
    c->release(c);
}

/* Ends the hold on what the RPC chose; what explains the call needs the cluster's name beyond that. */
static void release_config(struct tc_call *c)
{
    if (!c->config.release)
        return;
    if (TC_UNLIKELY(c->explain)) {
        const char *name = tc_arena_dup(&c->arena, c->config.cluster);
        c->config.cluster = tc_slice_of(name, name ? c->config.cluster.len : 0);
    }
    c->config.release(c->config.hold);
    c->config.release = NULL;
}

/* Everything that reaches out of the call, taken back. */
static void detach(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    c->stage = TC_CALL_DONE;
    tc_timer_stop(&c->timer);
    tc_timer_stop(&c->retry_timer);
    tc_task_cancel(&c->dropped);
    tc_task_cancel(&c->expired);
    tc_list_remove(&c->queue);
    tc_list_remove(&c->capacity.link);
    tc_call_auth_stop(c);
    tc_call_drop_stream(c);
    tc_call_free_messages(c);
    if (c->hedge)
        tc_hedge_stop(c->hedge);
    tc_call_tell_trackers(c, status, trailers);
    tc_call_filters_end(c);
    tc_filter_chain_unref(c->config.filters);
    c->config.filters = NULL;
    release_config(c);
    tc_list_remove(&c->link);
    tc_channel_call_ended(c->channel);
}

void tc_call_finish(struct tc_call *c, struct tc_status status, const struct tc_headers *trailers)
{
    detach(c, &status, trailers);
    tc_status_set(&c->status, status);
    c->trailers = trailers;
    on_done_task(&c->done);
}

void tc_call_fail(struct tc_call *c, struct tc_status status)
{
    if (c->stage == TC_CALL_DONE) {
        tc_status_fini(&status);
        return;
    }
    detach(c, &status, NULL);
    tc_status_set(&c->status, status);
    tc_loop_defer(c->channel->loop, &c->done);
}

void tc_call_finish_later(struct tc_call *c, struct tc_status status, const struct tc_headers *trailers)
{
    c->trailers = trailers;
    tc_call_fail(c, status);
}

void tc_call_abort(struct tc_call *c, const struct tc_status *status)
{
    tc_call_fail(c, tc_status_ref(status));
}

void tc_call_cancel(struct tc_call *c)
{
    if (c->stage != TC_CALL_DONE) {
        struct tc_status status = tc_status_make(TORC_STATUS_CANCELLED, "cancelled by the application");
        detach(c, &status, NULL);
        tc_status_fini(&status);
    }
    tc_task_cancel(&c->done);
    c->release(c);
}

void tc_call_tell_trackers(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    struct tc_call_tracker *t = c->trackers;
    c->trackers = NULL;
    while (t) {
        struct tc_call_tracker *next = t->next;
        t->on_done(t, status, trailers);
        t = next;
    }
}

void tc_call_fini(struct tc_call *c)
{
    tc_hedge_free(c->hedge);
    c->hedge = NULL;
    tc_call_auth_fini(c);
    tc_status_fini(&c->status);
    tc_rstr_unref(c->peer);
    c->peer = NULL;
}

/* Deadline. */

static void append_pending(const torc_channel *ch, struct tc_buf *b)
{
    struct tc_buf pending = {0};
    if (ch->resolver && ch->resolver->ops->pending)
        ch->resolver->ops->pending(ch->resolver, &pending);
    if (pending.len)
        tc_buf_printf(b, ", which waits for %s", tc_buf_cstr(&pending));
    tc_buf_fini(&pending);
}

static const char *waited_for(const struct tc_call *c, struct tc_buf *b)
{
    const torc_channel *ch = c->channel;
    switch (c->stage) {
    case TC_CALL_NEW:
    case TC_CALL_WAIT_CONFIG:
        tc_buf_printf(b, "the name resolution of " TC_SHOWN, TC_SHOW(ch->target.text));
        append_pending(ch, b);
        if (!tc_status_ok(&ch->resolve_error))
            tc_buf_printf(b, " (last: %s)", tc_status_text(&ch->resolve_error));
        break;
    case TC_CALL_WAIT_FILTER:
        tc_buf_printf(b, "the HTTP filter \"%s\", which delays the call", tc_call_filters_waiting(c));
        break;
    case TC_CALL_WAIT_PICK:
        tc_buf_printf(b, "a connected endpoint of " TC_SHOWN ", which is %s", TC_SHOW(ch->target.text),
                      torc_connectivity_name(ch->state));
        if (!tc_status_ok(&ch->status))
            tc_buf_printf(b, " (%s)", tc_status_text(&ch->status));
        break;
    case TC_CALL_WAIT_AUTH:
        tc_buf_append_str(b, "the call credentials (");
        tc_call_auth_waits_for(c, b);
        tc_buf_append_char(b, ')');
        break;
    case TC_CALL_WAIT_STREAM:
        tc_buf_printf(b, "a free stream on the connection to %s (MAX_CONCURRENT_STREAMS reached)",
                      tc_transport_address(c->transport)->data);
        break;
    case TC_CALL_WAIT_RETRY:
        tc_buf_printf(b, "another attempt (the last: %s: %s)", torc_status_code_name(c->status.code),
                      tc_status_text(&c->status));
        break;
    case TC_CALL_HEDGING:
        tc_buf_printf(b, "the response of %s of its %u attempts", c->committed ? "one" : "any",
                      tc_hedge_attempts(c->hedge));
        break;
    default:
        tc_buf_printf(b, c->headers ? "the end of the response of %s" : "the response of %s", tc_rstr_cstr(c->peer));
        break;
    }
    return tc_buf_cstr(b);
}

struct tc_status tc_call_deadline_status(struct tc_call *c)
{
    struct tc_buf b = {0};
    double seconds = (double)(c->deadline_ns - c->started_ns) / 1e9;
    struct tc_status status =
        tc_status_make(TORC_STATUS_DEADLINE_EXCEEDED, "deadline exceeded after %.3f s while waiting for %s", seconds,
                       waited_for(c, &b));
    tc_buf_fini(&b);
    return status;
}

/* Behind what the connections have taken in: an answer that waited unread comes first. */
static void on_deadline(struct tc_timer *timer)
{
    struct tc_call *c = TC_CONTAINER_OF(timer, struct tc_call, timer);
    tc_loop_defer(c->channel->loop, &c->expired);
}

static void on_expired(struct tc_task *task)
{
    struct tc_call *c = TC_CONTAINER_OF(task, struct tc_call, expired);
    tc_call_fail(c, tc_call_deadline_status(c));
}

static void arm_deadline(struct tc_call *c)
{
    if (c->deadline_ns == UINT64_MAX)
        return;
    uint64_t now = tc_loop_now_ns(c->channel->loop);
    uint64_t left = c->deadline_ns > now ? c->deadline_ns - now : 0;
    tc_timer_start(&c->timer, (left + TC_NS_PER_MS - 1) / TC_NS_PER_MS);
}

/* The config selector. */

static void use_method_config(struct tc_call *c)
{
    const struct tc_method_config *m =
        c->channel->service_config ? tc_service_config_method(c->channel->service_config, c->path) : NULL;
    c->config = (struct tc_call_config){.wait_for_ready = -1};
    if (!m)
        return;
    c->config.timeout_ns = m->timeout_ns;
    c->config.wait_for_ready = m->wait_for_ready;
    c->retry = m->retry;
    if (m->has_max_request_bytes)
        c->max_request_bytes = TC_MIN(c->max_request_bytes, m->max_request_bytes);
    if (m->has_max_response_bytes)
        /* 0 means the channel's here; nobody needs a limit of 0 bytes more than one of 1. */
        c->config.max_response_bytes = TC_MAX(m->max_response_bytes, 1);
}

static bool select_config(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    c->max_request_bytes = ch->opts.max_send_message_bytes;
    if (ch->selector) {
        struct tc_select_args args = {.path = c->path,
                                      .headers = &c->metadata,
                                      .arena = &c->arena,
                                      .rng = tc_loop_rng(ch->loop),
                                      .explain = c->explain};
        struct tc_call_config config = {.wait_for_ready = -1};
        struct tc_status status = ch->selector->ops->select(ch->selector, &args, &config);
        if (!tc_status_ok(&status)) {
            tc_call_fail(c, tc_status_from_control_plane(status));
            return false;
        }
        tc_status_fini(&status);
        c->config = config;
        if (config.retry)
            c->retry = *config.retry;
        if (config.max_request_bytes)
            c->max_request_bytes = TC_MIN(c->max_request_bytes, config.max_request_bytes);
    } else {
        use_method_config(c);
    }
    c->selected = true;
    c->waits = c->wait_for_ready || c->config.wait_for_ready == 1;
    if (ch->opts.disable_retries)
        c->retry.max_attempts = 0;
    c->retry.hedging &= c->retry.max_attempts != 0;
    uint64_t receive = c->max_receive_bytes ? c->max_receive_bytes : ch->opts.max_receive_message_bytes;
    if (c->config.max_response_bytes)
        receive = TC_MIN(receive, c->config.max_response_bytes);
    c->request.max_receive_message_bytes = (size_t)TC_MAX(receive, 1);
    uint64_t timeout = c->config.timeout_ns;
    if (timeout && timeout < UINT64_MAX - c->started_ns && c->started_ns + timeout < c->deadline_ns) {
        c->deadline_ns = c->started_ns + timeout;
        arm_deadline(c);
    }
    return true;
}

void tc_call_resolved(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    if (ch->resolved) {
        if (select_config(c) && (!c->config.filters || tc_call_filters_start(c)))
            tc_call_attempt(c);
        return;
    }
    if (!tc_status_ok(&ch->resolve_error) && !c->wait_for_ready) {
        tc_call_fail(c, tc_status_from_control_plane(tc_status_ref(&ch->resolve_error)));
        return;
    }
    c->stage = TC_CALL_WAIT_CONFIG;
    tc_list_append(&ch->waiting_config, &c->queue);
}

/* The pick. */

void tc_call_attempt(struct tc_call *c)
{
    if (TC_UNLIKELY(c->retry.hedging && !c->dry))
        tc_hedge_start(c);
    else
        tc_call_pick(c);
}

void tc_call_queue_pick(struct tc_call *c)
{
    c->stage = TC_CALL_WAIT_PICK;
    tc_list_append(&c->channel->waiting_pick, &c->queue);
}

/* A81: a rewritten authority is held to what the server could prove when the connection was made. */
static void refuse_authority(struct tc_call *c, struct tc_transport *t)
{
    struct tc_slice name = c->request.authority;
    tc_call_tell_trackers(c, NULL, NULL);
    tc_call_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE,
                                   "the certificate of %s is not valid for the authority \"%.*s\", to which the route "
                                   "rewrites the request's",
                                   tc_transport_address(t)->data, (int)TC_MIN(name.len, (size_t)1024), name.data));
}

static void use_pick(struct tc_call *c, struct tc_pick *pick)
{
    struct tc_transport *t = tc_subchannel_transport(tc_subchannel_innermost(pick->subchannel));
    c->trackers = pick->trackers;
    c->request.authority = pick->authority.len ? pick->authority : tc_rstr_slice(c->channel->authority);
    if (t && pick->authority.len && !tc_h2_conn_is_for(tc_transport_h2(t), pick->authority)) {
        refuse_authority(c, t);
        return;
    }
    if (t) {
        tc_call_open_stream(c, t);
        return;
    }
    /* It was lost, and the policy will hear of it in this turn. */
    tc_call_tell_trackers(c, NULL, NULL);
    tc_call_queue_pick(c);
}

void tc_call_pick(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    if (!c->has_random) {
        c->random = tc_rng_u64(tc_loop_rng(ch->loop));
        c->has_random = true;
    }
    c->trace = (struct tc_pick_trace){.arena = &c->arena};
    struct tc_pick_args args = {
        .path = c->path,
        .headers = &c->metadata,
        .cluster = c->config.cluster,
        .has_hash = c->config.has_hash,
        .hash = c->config.hash,
        .random = c->random,
        .arena = &c->arena,
        .session = c->config.session,
        .auto_host_rewrite = c->config.auto_host_rewrite,
        .trace = c->explain ? &c->trace : NULL,
    };
    if (TC_UNLIKELY(c->dry)) {
        tc_call_explain_pick(c, &args);
        return;
    }
    struct tc_pick pick = {0};
    switch (tc_picker_pick(ch->picker, &args, &pick)) {
    case TC_PICK_COMPLETE:
        use_pick(c, &pick);
        break;
    case TC_PICK_QUEUE:
        tc_call_queue_pick(c);
        break;
    case TC_PICK_FAIL:
        if (!c->waits) {
            struct tc_status status = tc_status_from_control_plane(pick.status);
            /* A6: the retry policy has its say, unlike with DROP. */
            if (!c->is_attempt && tc_call_retry(c, &status, NULL))
                tc_status_fini(&status);
            else
                tc_call_fail(c, status);
            return;
        }
        tc_call_queue_pick(c);
        break;
    case TC_PICK_DROP:
        tc_call_fail(c, tc_status_from_control_plane(pick.status));
        return;
    }
    tc_status_fini(&pick.status);
}

/* The start. */

void tc_call_init(struct tc_call *c, torc_channel *ch)
{
    c->channel = tc_channel_ref(ch);
    c->stage = TC_CALL_NEW;
    tc_list_init(&c->link);
    tc_list_init(&c->queue);
    tc_list_init(&c->capacity.link);
    c->capacity.fn = tc_call_on_capacity;
    tc_timer_init(&c->timer, ch->loop, on_deadline);
    tc_timer_init(&c->retry_timer, ch->loop, tc_call_on_retry_timer);
    tc_task_init(&c->done, on_done_task);
    tc_task_init(&c->dropped, tc_call_on_dropped);
    tc_task_init(&c->expired, on_expired);
    tc_headers_init(&c->metadata, &c->arena);
    c->deadline_ns = UINT64_MAX;
}

static void fill_request(struct tc_call *c)
{
    const torc_channel *ch = c->channel;
    c->request.path = c->path;
    c->request.authority = tc_rstr_slice(ch->authority);
    c->request.user_agent = tc_rstr_slice(ch->user_agent);
    c->request.encoding = c->gzip ? TC_H2_GZIP : TC_H2_IDENTITY;
    c->request.accept_gzip = true;
    c->request.metadata = &c->metadata;
}

void tc_call_begin(struct tc_call *c)
{
    torc_channel *ch = c->channel;
    tc_channel_attach(ch);
    tc_list_append(&ch->calls, &c->link);
    tc_channel_call_began(ch);
    if (ch->ended) {
        tc_call_fail(c, tc_status_ref(&ch->end_status));
        return;
    }
    fill_request(c);
    tc_call_auth_begin(c);
    arm_deadline(c);
    tc_call_resolved(c);
}

void tc_call_begin_attempt(struct tc_call *c, const struct tc_call *parent)
{
    c->path = parent->path;
    c->metadata = parent->metadata;
    c->metadata.cap = c->metadata.len; /* what is added goes elsewhere */
    c->metadata.arena = &c->arena;
    c->gzip = parent->gzip;
    c->explain = parent->explain;
    c->started_ns = parent->started_ns;
    c->deadline_ns = parent->deadline_ns;
    c->waits = parent->waits;
    c->config = parent->config;
    c->config.release = NULL; /* the parent's */
    c->config.filters = NULL;
    if (parent->config.session) {
        /* Each attempt's pick writes its own. */
        c->config.session = tc_arena_alloc(&c->arena, sizeof(*c->config.session));
        *c->config.session = *parent->config.session;
    }
    c->selected = true;
    c->max_request_bytes = parent->max_request_bytes;
    uint32_t previous = c->request.previous_attempts;
    c->request = parent->request;
    c->request.previous_attempts = previous;
    c->request.metadata = &c->metadata;
    c->request.auth = NULL;
    if (parent->auth && parent->auth->own)
        tc_call_auth_use(c, parent->auth->own);
    tc_call_auth_begin(c);
    tc_channel_call_began(c->channel);
    tc_call_pick(c);
}

static void release_private(struct tc_call *c)
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
    c->release = release_private;
    c->events = events;
    c->arg = arg;
    c->path = tc_slice_of(tc_arena_dup(&c->arena, opts->method), opts->method.len);
    for (size_t i = 0; opts->metadata && i < opts->metadata->len; i++)
        tc_headers_add_copy(&c->metadata, opts->metadata->data[i].name, opts->metadata->data[i].value);
    c->wait_for_ready = opts->wait_for_ready;
    c->max_receive_bytes = opts->max_receive_message_bytes;
    c->started_ns = tc_loop_clock_ns(ch->loop);
    if (opts->timeout_ns && opts->timeout_ns < UINT64_MAX - c->started_ns)
        c->deadline_ns = c->started_ns + opts->timeout_ns;
    tc_call_begin(c);
    return c;
}
