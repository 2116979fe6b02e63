/* The attempts of a call: a pick, and a stream on the connection it chose.
 *
 * Fast path: tc_call_attempt -> tc_call_pick -> attempt_use_pick -> attempt_use_transport -> attempt_open_stream ->
 * stream events -> on_done -> tc_call_finish.
 *
 * What leads back to the pick; the trackers of the earlier pick, if it had any, are notified first:
 *   the pick was queued, or it failed and the call waits for ready: the queue has it made again when there is another
 *   picker, or a connection has ended (pick_queue.h);
 *   the connection is gone, or ends: the pick is queued in the same way (pick_give_up). At MAX_CONCURRENT_STREAMS,
 *   however, the call keeps its pick, and waits for a stream (WAIT_STREAM);
 *   call credentials came late: the connection may differ by then;
 *   A6's transparent retry, unless the call is committed: a request that never left is sent again, each time; a request
 *   that left and that the server never processed is sent again once, counted for all attempts of an RPC;
 *   the retry policy, after its backoff (WAIT_RETRY). hedge.c decides what follows a hedged attempt.
 * The two retries begin another attempt (tc_call_attempt), with another `attempt.random`. In the other cases the same
 * attempt picks again, with the random number that it has.
 *
 * An attempt's stream, trackers and walk live in the call's arena. */
#include "channel/attempt.h"

#include "channel/deadline.h"
#include "channel/explain.h"
#include "channel/messages.h"
#include "subchannel/subchannel.h"

static void on_queued_pick(struct tc_queued *q)
{
    tc_call_pick(TC_CONTAINER_OF(q, struct tc_call, queue));
}

static void pick_wait(struct tc_call *c)
{
    c->stage = TC_CALL_WAIT_PICK;
    tc_pick_queue_wait(&c->channel->queue.pick, &c->queue, on_queued_pick);
}

/* The picked connection is gone, or ends: the pick is queued. */
static void pick_give_up(struct tc_call *c)
{
    tc_call_tell_trackers(c, NULL, NULL);
    pick_wait(c);
}

/* Prepares the next attempt: it sends the messages from the first on, draws a random number of its own, and asks the
 * call credentials again. */
static void attempt_reset(struct tc_call *c)
{
    tc_call_messages_rewind(c);
    c->attempt.has_random = false;
    if (c->credentials)
        tc_call_credentials_reset(c->credentials);
}

/* Counts the outcome of an attempt for the throttle. Returns true if the retry policy has another attempt follow the
 * one that ended with `status` (borrowed); then the backoff is running. `trailers`: NULL if the attempt had no
 * stream. */
static bool attempt_retry(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    torc_channel *ch = c->channel;
    if (status->code == TORC_STATUS_OK) {
        tc_retry_throttle_success(&ch->calls.throttle);
        return false;
    }
    struct tc_retry_outcome outcome = {
        .code = status->code,
        .trailers = trailers,
        .resendable = !c->messages.committed && !tc_call_over_buffer(c),
    };
    uint64_t delay_ms;
    if (!tc_retry_next(&c->retry, &ch->calls.throttle, &outcome, tc_loop_rng(ch->loop), &delay_ms))
        return false;
    c->attempt.request.previous_attempts = c->retry.tries;
    tc_call_tell_trackers(c, status, trailers);
    attempt_reset(c);
    tc_status_set(&c->status, tc_status_ref(status));
    c->stage = TC_CALL_WAIT_RETRY;
    tc_timer_start(&c->retry_timer, delay_ms);
    return true;
}

/* Ends an attempt that failed before it had a stream: by the LB policy, call credentials, or a rewritten authority
 * (A81). Takes over the status, whose code is legal (tc_status_legal): the retry policy sees that code (A54). */
static void attempt_fail(struct tc_call *c, struct tc_status status)
{
    if (!c->parent && attempt_retry(c, &status, NULL))
        tc_status_fini(&status);
    else
        tc_call_fail(c, status);
}

static void on_retry_timer(struct tc_timer *timer)
{
    tc_call_attempt(TC_CONTAINER_OF(timer, struct tc_call, retry_timer));
}

/* --- the stream --- */

static void on_headers(void *arg, const struct tc_headers *headers)
{
    struct tc_call *c = arg;
    c->attempt.headers = c->filters ? tc_call_filters_response(c->filters, headers, c->attempt.peer) : headers;
    tc_call_commit(c);
    tc_call_tell_wire(c, TORC_WIRE_HEADERS, 0, TORC_STATUS_OK);
    if (c->events->on_headers)
        c->events->on_headers(c->arg, c->attempt.headers);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct tc_call *c = arg;
    struct tc_call *rpc = c->parent ? c->parent : c;
    c->attempt.stream = NULL;
    tc_call_tell_wire(c, TORC_WIRE_ENDED, 0, outcome->status.code);
    if (outcome->unprocessed && !c->messages.committed && (outcome->unsent || !rpc->retried)) {
        rpc->retried |= !outcome->unsent;
        c->attempt.n -= outcome->unsent;
        tc_call_tell_trackers(c, &outcome->status, NULL);
        attempt_reset(c);
        tc_call_attempt(c);
        return;
    }
    c->attempt.refused |= outcome->rejected;
    if (!c->parent && !c->attempt.refused && attempt_retry(c, &outcome->status, outcome->trailers))
        return;
    /* The server knows the deadline too, and may reset the stream before the timer fires here. */
    bool deadline = outcome->status.code == TORC_STATUS_CANCELLED && !outcome->from_server &&
                    tc_loop_now_ns(c->channel->loop) >= c->deadline.at_ns;
    const struct tc_headers *trailers = outcome->trailers;
    if (c->filters && outcome->trailers_only)
        trailers = tc_call_filters_response(c->filters, trailers, c->attempt.peer);
    tc_call_finish(c, deadline ? tc_call_deadline_status(c) : tc_status_ref(&outcome->status), trailers);
}

static const struct tc_h2_client_events stream_events = {
    .stream = {.on_message = tc_call_on_message, .on_written = tc_call_on_written},
    .on_headers = on_headers,
    .on_done = on_done,
};

static void on_credentials(void *arg, const struct tc_status *error)
{
    if (error)
        attempt_fail(arg, tc_status_legal(tc_status_ref(error), "call credentials"));
    else
        tc_call_pick(arg);
}

/* Returns true if the request has the call credentials it needs. Otherwise the call waits and will pick again, the
 * attempt has failed (attempt_fail), or the call has (the connection has no transport security). */
static bool credentials_ready(struct tc_call *c, const struct tc_transport *t)
{
    struct tc_call_credentials *cc = c->credentials;
    struct tc_status error = {0};
    if (!tc_h2_conn_secure(tc_transport_h2(t))) {
        tc_call_tell_trackers(c, NULL, NULL);
        tc_call_fail(c, tc_status_make(TORC_STATUS_UNAUTHENTICATED, TORC_LAYER_CREDENTIALS,
                                       "call credentials are not sent over the connection to %s, which has no "
                                       "transport security",
                                       tc_transport_address(t)->data));
        return false;
    }
    cc->on_answer = on_credentials;
    cc->arg = c;
    int rc = tc_call_credentials_get(cc, tc_rstr_slice(c->channel->authority), c->asked.path, &error);
    if (rc != 0) /* the backend is not to blame: its trackers see a pick without an RPC */
        tc_call_tell_trackers(c, NULL, NULL);
    if (rc == TORC_EAGAIN)
        c->stage = TC_CALL_WAIT_AUTH;
    else if (rc != 0)
        attempt_fail(c, tc_status_legal(error, "call credentials"));
    return rc == 0;
}

static void attempt_open_stream(struct tc_call *c, struct tc_transport *t)
{
    struct tc_call_attempt *a = &c->attempt;
    uint64_t now = tc_loop_now_ns(c->channel->loop);
    int error = 0;
    if (tc_call_end_if_late(c) || (c->credentials && !credentials_ready(c, t)))
        return;
    a->request.timeout_ns = c->deadline.at_ns == UINT64_MAX ? 0 : c->deadline.at_ns - now;
    a->stream = tc_transport_open(t, &a->request, &c->arena, &stream_events, c, &error);
    if (!a->stream) {
        if (error == TORC_EAGAIN) {
            c->stage = TC_CALL_WAIT_STREAM;
            tc_transport_wait(t, &c->capacity);
        } else {
            pick_give_up(c);
            /* The connection ends. Its subchannel may have others, and stay READY: no other picker follows. */
            tc_pick_queue_wake(&c->channel->queue);
        }
        return;
    }
    c->stage = TC_CALL_RUNNING;
    a->n += tc_h2_client_stream_sendable(a->stream);
    tc_rstr_unref(a->peer);
    a->peer = tc_rstr_ref(tc_transport_address(t));
    tc_call_tell_wire(c, TORC_WIRE_OPENED, 0, TORC_STATUS_OK);
    tc_call_flush(c);
    if (c->messages.reads_given < c->messages.reads)
        tc_call_flush_reads(c);
}

/* --- the pick --- */

/* A81: a rewritten authority must be one that the server proved when the connection was made. */
static void authority_refuse(struct tc_call *c, struct tc_transport *t)
{
    struct tc_slice name = c->attempt.request.authority;
    tc_call_tell_trackers(c, NULL, NULL);
    attempt_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS,
                                   "the certificate of %s is not valid for the authority \"%.*s\", to which the route "
                                   "rewrites the request's",
                                   tc_transport_address(t)->data, (int)TC_MIN(name.len, (size_t)1024), name.data));
}

static void attempt_use_transport(struct tc_call *c, struct tc_transport *t)
{
    struct tc_slice authority = c->attempt.request.authority;
    if (authority.data != c->channel->authority->data && !tc_h2_conn_is_for(tc_transport_h2(t), authority))
        authority_refuse(c, t);
    else
        attempt_open_stream(c, t);
}

static void attempt_use_pick(struct tc_call *c, const struct tc_pick *pick)
{
    struct tc_transport *t = tc_subchannel_transport(tc_subchannel_innermost(pick->subchannel));
    c->attempt.trackers = pick->trackers;
    c->attempt.request.authority = pick->authority.len ? pick->authority : tc_rstr_slice(c->channel->authority);
    if (t)
        attempt_use_transport(c, t);
    else
        pick_give_up(c); /* the connection was lost, and the policy is notified in this loop turn */
}

static void on_capacity(struct tc_capacity_wait *wait, struct tc_transport *t)
{
    struct tc_call *c = TC_CONTAINER_OF(wait, struct tc_call, capacity);
    if (t) {
        attempt_use_transport(c, t);
    } else {
        pick_give_up(c);
        tc_pick_queue_wake(&c->channel->queue);
    }
}

/* Asks the picker with a trace, and records the pick for the interceptors. */
TC_APART static enum tc_pick_kind pick_watched(struct tc_call *c, struct tc_pick_args *args, struct tc_pick *pick)
{
    static const int outcomes[] = {[TC_PICK_COMPLETE] = TORC_PICK_COMPLETE,
                                   [TC_PICK_QUEUE] = TORC_PICK_QUEUE,
                                   [TC_PICK_FAIL] = TORC_PICK_FAIL,
                                   [TC_PICK_DROP] = TORC_PICK_DROP};
    struct tc_sight *sight = tc_rpc_sight(c->parent ? c->parent->rpc : c->rpc, TC_HOOK_PICK);
    struct tc_arena *texts = &sight->texts;
    struct tc_pick_trace trace = {.arena = texts};
    if (!args->trace)
        args->trace = &trace;
    const struct tc_pick_trace *t = args->trace;
    enum tc_pick_kind kind = tc_picker_pick(c->channel->lb.picker, args, pick);
    sight->pick = (struct torc_pick){
        .outcome = outcomes[kind],
        .attempt = c->attempt.number,
        .endpoint = tc_arena_dup(texts, t->endpoint),
        .policy = tc_arena_dup(texts, t->policy),
        .cluster = tc_arena_dup(texts, t->cluster.len ? t->cluster : c->config.cluster),
        .code = pick->status.code,
        .text = tc_arena_dup(texts, tc_rstr_slice(pick->status.text)),
    };
    return kind;
}

void tc_call_pick(struct tc_call *c)
{
    struct tc_call_attempt *a = &c->attempt;
    torc_channel *ch = c->channel;
    if (!a->has_random) {
        a->random = tc_rng_u64(tc_loop_rng(ch->loop));
        a->has_random = true;
    }
    if (TC_UNLIKELY(c->asked.explain))
        a->trace = (struct tc_pick_trace){.arena = &c->arena};
    struct tc_pick_args args = tc_call_pick_args(c, c->asked.explain ? &a->trace : NULL);
    if (TC_UNLIKELY(c->asked.dry)) {
        tc_call_explain_pick(c, &args);
        return;
    }
    struct tc_pick pick = {0};
    switch (TC_UNLIKELY(c->asked.watch_picks) ? pick_watched(c, &args, &pick)
                                              : tc_picker_pick(ch->lb.picker, &args, &pick)) {
    case TC_PICK_COMPLETE:
        attempt_use_pick(c, &pick);
        break;
    case TC_PICK_QUEUE:
        pick_wait(c);
        break;
    case TC_PICK_FAIL:
        if (!c->waits) {
            /* A6: the retry policy decides about FAIL, but not about DROP. */
            attempt_fail(c, tc_status_legal(pick.status, "LB pick"));
            return;
        }
        pick_wait(c);
        break;
    case TC_PICK_DROP:
        tc_call_fail(c, tc_status_legal(pick.status, "LB drop"));
        return;
    }
    tc_status_fini(&pick.status);
}

/* --- the begin of an attempt --- */

static void on_attempt_passed(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call *c = w->owner;
    if (end == TC_WALK_FAILED) {
        c->attempt.refused = true; /* under hedging this ends the whole RPC */
        tc_call_fail(c, tc_status_ref(&w->failure));
    } else if (end == TC_WALK_PASSED) {
        tc_call_pick(c);
    }
}

/* Counts an attempt of an RPC with interceptors, and has it pass their on_attempt. */
TC_APART static void attempt_intercept(struct tc_call *c, torc_rpc *rpc)
{
    struct tc_call_attempt *a = &c->attempt;
    a->number = ++rpc->attempts;
    if (!tc_rpc_has(rpc, TC_HOOK_ATTEMPT)) {
        tc_call_pick(c);
        return;
    }
    if (!a->walk)
        a->walk = tc_arena_calloc(&c->arena, 1, sizeof(*a->walk));
    a->walk->number = a->number;
    a->walk->owner = c;
    a->walk->resumed = on_attempt_passed;
    c->stage = TC_CALL_WAIT_INTERCEPTOR;
    tc_walk_begin_later(a->walk, rpc, TC_HOOK_ATTEMPT, false);
}

void tc_call_attempt(struct tc_call *c)
{
    torc_rpc *rpc = c->parent ? c->parent->rpc : c->rpc;
    if (TC_UNLIKELY(rpc != NULL))
        attempt_intercept(c, rpc);
    else
        tc_call_pick(c);
}

void tc_call_attempt_init(struct tc_call *c)
{
    tc_list_init(&c->queue.link);
    tc_list_init(&c->capacity.link);
    c->capacity.fn = on_capacity;
    tc_timer_init(&c->retry_timer, c->channel->loop, on_retry_timer);
}
