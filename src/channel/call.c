/* A call, from its start to its end. Each stage waits for one thing; any of them may end the call.
 *
 *   NEW            tc_call_begin                                                                      call_start.c
 *    |
 *   WAIT_CONFIG    the resolver's first result, then the config selector (route, cluster, timeout)    call_start.c
 *    |             fails: resolver, config selector (A31), a timeout of the config that has passed
 *   WAIT_FILTER    an HTTP filter's delay (A33); filters see the call once, before all attempts       call_filters.c
 *    |             fails: filter
 *    +---------> HEDGING: up to five attempts side by side, each a call of its own from WAIT_PICK on  hedge.c
 *    |
 *   WAIT_PICK      a picker that can place the call                                    <---------+    attempt.c
 *    |             fails: LB policy (TRANSIENT_FAILURE without wait-for-ready, drop)             |
 *   WAIT_AUTH      call credentials; then picks again, because the connection may differ         | call_credentials.c
 *    |             fails: credentials, or a connection without transport security                |
 *   WAIT_STREAM    MAX_CONCURRENT_STREAMS of the connection                                      |    attempt.c
 *    |                                                                                           |
 *   RUNNING        the stream: messages both ways                                                |    messages.c
 *    |             fails: server, connection                                                     |
 *    |           transparent retry, or WAIT_RETRY: a backoff (A6) -------------------------------+    retry.c
 *    v
 *   DONE           on_done follows, or the call is gone                                               this file
 *
 * WAIT_INTERCEPTOR stands before WAIT_CONFIG (on_start) and before WAIT_PICK (on_attempt) where a channel has
 * interceptors with these hooks. WAIT_RETRY may also come after a pick that failed (not after a drop), credentials that
 * failed, or an authority that the server did not prove (A81).
 *
 * The deadline (deadline.c), the application (tc_call_cancel) and the end of the channel may end a call in any stage.
 * The text of DEADLINE_EXCEEDED says what the stage waited for (explain.c), or that the deadline passed before the
 * request was sent.
 *
 * Two ways to end with on_done: tc_call_finish calls it from inside and is for events of the stream; tc_call_fail (or
 * tc_call_fail_in_order, for hedging) has the serial queue call it, and is safe everywhere else.
 *
 * With interceptors (rpc.h) a call in DONE may still have its outcome on the way to on_done (`waits_at_end`): the
 * outcome waits behind a received message that an interceptor holds up, or for an on_status. Then the channel lists the
 * call again and the deadline counts. An outcome behind a message is overruled by any tc_call_fail, and by an
 * interceptor that refuses the message. An outcome that waits for an on_status is overruled only when the deadline
 * passes, the application cancels by a status, or the channel ends.
 *
 * The memory is the maker's: `release` is called last, and tc_call_fini, on any thread, comes before the free. */
#include "channel/call.h"

#include "channel/call_internal.h"

struct tc_status tc_status_legal(struct tc_status status, const char *source)
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
            tc_status_make(TORC_STATUS_INTERNAL, status.layer, "Illegal status code from %s; original status: %s: %s",
                           source, torc_status_code_name(status.code), tc_status_text(&status));
        tc_status_fini(&status);
        return out;
    }
    default:
        return status;
    }
}

static void status_settle(struct tc_call *c)
{
    if (c->status.code == TORC_STATUS_OK && c->events->settle)
        c->events->settle(c->arg, &c->status);
}

static void call_done(struct tc_call *c)
{
    status_settle(c);
    struct tc_call_end end = {
        .status = c->status,
        .headers = c->attempt.headers,
        .trailers = c->trailers,
        .peer = c->attempt.peer,
        .attempts = c->attempt.n,
    };
    c->events->on_done(c->arg, &end);
    c->release(c);
}

/* --- the outcome on its way through interceptors --- */

static void outcome_deliver(struct tc_call *c)
{
    tc_rpc_end(c->rpc);
    call_done(c);
}

/* Returns true if no interceptor may hold up the outcome: the deadline has passed, the call was cancelled, or the
 * channel has ended. */
static bool outcome_hurries(const struct tc_call *c)
{
    return c->status.layer == TORC_LAYER_DEADLINE || c->channel->ended;
}

/* Returns true if the outcome must wait because an interceptor holds up a received message: the status comes after the
 * messages. */
static bool outcome_is_behind(const struct tc_call *c)
{
    return c->rpc->received.message && !outcome_hurries(c);
}

/* Has the outcome wait. Meanwhile the deadline counts, and the channel lists the call. */
static void outcome_wait(struct tc_call *c)
{
    uint64_t at = c->deadline.at_ns, now = tc_loop_now_ns(c->channel->loop), left = at > now ? at - now : 0;
    c->rpc->waits_at_end = true;
    tc_list_append(&c->channel->calls.all, &c->member.link);
    if (at != UINT64_MAX)
        tc_timer_start(&c->deadline.timer, (left + TC_NS_PER_MS - 1) / TC_NS_PER_MS);
}

static void outcome_stop_waiting(struct tc_call *c)
{
    c->rpc->waits_at_end = false;
    tc_list_remove(&c->member.link);
    tc_timer_stop(&c->deadline.timer);
    tc_task_cancel(&c->deadline.expired);
}

static void on_outcome_passed(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call *c = w->owner;
    outcome_stop_waiting(c);
    if (end == TC_WALK_WAITS)
        outcome_wait(c);
    else
        outcome_deliver(c);
}

/* Calls on_done, or waits: on_outcome_passed or tc_call_outcome_next follows. */
static void outcome_go_on(struct tc_call *c)
{
    torc_rpc *rpc = c->rpc;
    if (outcome_is_behind(c)) {
        outcome_wait(c);
        return;
    }
    tc_walk_stop(&rpc->received);
    enum tc_walk_end end;
    rpc->main.hurried = outcome_hurries(c);
    if (rpc->ending) {
        end = tc_walk_go_on(&rpc->main);
    } else {
        status_settle(c);
        rpc->main.owner = c;
        rpc->main.resumed = on_outcome_passed;
        end = tc_walk_begin(&rpc->main, rpc, TC_HOOK_STATUS, true);
    }
    if (end == TC_WALK_WAITS)
        outcome_wait(c);
    else
        outcome_deliver(c);
}

/* Takes over the status, which replaces an outcome that waits. */
static void outcome_overrule(struct tc_call *c, struct tc_status status)
{
    outcome_stop_waiting(c);
    tc_walk_let_go(&c->rpc->main);
    tc_walk_stop(&c->rpc->received);
    tc_status_set(&c->status, status);
    c->trailers = NULL;
    c->rpc->shown_trailers = NULL;
    tc_loop_defer(c->channel->loop, &c->done);
}

void tc_call_outcome_next(struct tc_call *c, const struct tc_status *failure)
{
    if (failure) {
        outcome_overrule(c, tc_status_ref(failure));
        return;
    }
    outcome_stop_waiting(c);
    outcome_go_on(c);
}

static void on_done(struct tc_task *task)
{
    struct tc_call *c = TC_CONTAINER_OF(task, struct tc_call, done);
    if (TC_UNLIKELY(c->rpc != NULL))
        outcome_go_on(c);
    else
        call_done(c);
}

void tc_call_tell_wire_now(struct tc_call *c, int event, size_t bytes, int code)
{
    struct tc_sight *sight = tc_rpc_sight(c->parent ? c->parent->rpc : c->rpc, TC_HOOK_WIRE);
    sight->wire = (struct torc_wire){
        .event = event,
        .attempt = c->attempt.number,
        .peer = tc_arena_dup(&sight->texts, tc_rstr_slice(c->attempt.peer)),
        .bytes = bytes,
        .code = code,
    };
}

/* --- the end --- */

/* Gives back what the config selector holds for the call. explain.c needs the cluster's name afterwards. */
static void config_release(struct tc_call *c)
{
    if (!c->config.release)
        return;
    if (TC_UNLIKELY(c->asked.explain)) {
        const char *name = tc_arena_dup(&c->arena, c->config.cluster);
        c->config.cluster = tc_slice_of(name, name ? c->config.cluster.len : 0);
    }
    c->config.release(c->config.hold);
    c->config.release = NULL;
}

/* Stops timers and waits, cancels the stream and the hedged attempts, notifies the trackers of the pick, and releases
 * the filters and the config. The call leaves the channel's list, and is in DONE. Borrows `status` and `trailers` (may
 * be NULL), which are for the trackers. */
static void call_detach(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    c->stage = TC_CALL_DONE;
    tc_timer_stop(&c->deadline.timer);
    tc_timer_stop(&c->retry_timer);
    tc_task_cancel(&c->messages.dropped);
    tc_task_cancel(&c->deadline.expired);
    tc_list_remove(&c->queue.link);
    tc_list_remove(&c->capacity.link);
    if (TC_UNLIKELY(c->rpc != NULL))
        tc_rpc_stop(c->rpc, false);
    if (TC_UNLIKELY(c->attempt.walk != NULL))
        tc_walk_stop(c->attempt.walk);
    if (c->credentials)
        tc_call_credentials_stop(c->credentials);
    if (c->attempt.stream) {
        tc_h2_stream_cancel(c->attempt.stream, 8); /* CANCEL */
        tc_call_tell_wire(c, TORC_WIRE_ENDED, 0, status->code);
    }
    c->attempt.stream = NULL;
    tc_send_buffer_clear(&c->messages.send);
    if (c->hedge)
        c->hedge->ops->stop(c->hedge);
    tc_call_tell_trackers(c, status, trailers);
    if (c->filters)
        tc_call_filters_end(c->filters);
    tc_filter_chain_unref(c->config.filters);
    c->config.filters = NULL;
    config_release(c);
    tc_list_remove(&c->member.link);
    tc_channel_call_ended(c->channel);
}

void tc_call_finish(struct tc_call *c, struct tc_status status, const struct tc_headers *trailers)
{
    call_detach(c, &status, trailers);
    tc_status_set(&c->status, status);
    c->trailers = trailers;
    if (TC_LIKELY(c->rpc == NULL)) {
        call_done(c);
        return;
    }
    tc_task_init(&c->done, on_done);
    outcome_go_on(c);
}

void tc_call_fail_in_order(struct tc_call *c, struct tc_status status)
{
    call_detach(c, &status, NULL);
    tc_status_set(&c->status, status);
    tc_task_init(&c->done, on_done);
    if (TC_UNLIKELY(c->rpc != NULL) && outcome_is_behind(c))
        outcome_wait(c);
    else
        tc_loop_defer(c->channel->loop, &c->done);
}

void tc_call_fail(struct tc_call *c, struct tc_status status)
{
    if (TC_UNLIKELY(c->rpc != NULL)) {
        if (c->rpc->waits_at_end && (!c->rpc->ending || status.layer == TORC_LAYER_DEADLINE || c->channel->ended)) {
            outcome_overrule(c, status);
            return;
        }
        if (c->stage != TC_CALL_DONE)
            tc_walk_stop(&c->rpc->received);
    }
    if (c->stage == TC_CALL_DONE)
        tc_status_fini(&status);
    else
        tc_call_fail_in_order(c, status);
}

bool tc_call_ended(const struct tc_call *c)
{
    return c->attempt.stream && tc_h2_client_stream_finished(c->attempt.stream);
}

void tc_call_cancel(struct tc_call *c)
{
    if (c->stage != TC_CALL_DONE) {
        struct tc_status status =
            tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_DEADLINE, "cancelled by the application");
        call_detach(c, &status, NULL);
        tc_status_set(&c->status, status);
    } else {
        tc_task_cancel(&c->done);
    }
    if (TC_UNLIKELY(c->rpc != NULL)) {
        outcome_stop_waiting(c);
        tc_rpc_stop(c->rpc, true);
        tc_rpc_end(c->rpc);
    }
    c->release(c);
}

void tc_call_tell_trackers(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    struct tc_call_tracker *t = c->attempt.trackers;
    c->attempt.trackers = NULL;
    while (t) {
        struct tc_call_tracker *next = t->next;
        t->on_done(t, status, trailers);
        t = next;
    }
}

void tc_call_fini(struct tc_call *c)
{
    if (c->hedge)
        c->hedge->ops->free(c->hedge);
    c->hedge = NULL;
    if (c->credentials)
        tc_call_credentials_fini(c->credentials);
    c->credentials = NULL;
    tc_status_fini(&c->status);
    tc_rstr_unref(c->attempt.peer);
    c->attempt.peer = NULL;
}
