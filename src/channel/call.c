/* A call, from its start to its end. Each stage waits for one thing; any of them may end the call.
 *
 *   NEW            tc_call_begin                                                                      call_start.c
 *    |
 *   WAIT_CONFIG    the resolver's first result, then the config selector (route, cluster, timeout)    call_start.c
 *    |             fails: resolver, config selector (A31), method config
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
 *   DONE           on_done follows or has been called                                                 this file
 *
 * The deadline (deadline.c) and the application (tc_call_cancel) may end a call in any stage. The text of
 * DEADLINE_EXCEEDED says what the stage waited for (explain.c).
 *
 * Two ways to end: tc_call_finish calls on_done from inside and is for events of the stream; tc_call_fail has the
 * serial queue call it, and is safe everywhere else. */
#include "channel/call.h"

#include "channel/call_internal.h"

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
        struct tc_status out = tc_status_make(TORC_STATUS_INTERNAL, status.layer,
                                              "Illegal status code from control plane; original status: %s: %s",
                                              torc_status_code_name(status.code), tc_status_text(&status));
        tc_status_fini(&status);
        return out;
    }
    default:
        return status;
    }
}

static void call_done(struct tc_call *c)
{
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

static void on_done(struct tc_task *task)
{
    call_done(TC_CONTAINER_OF(task, struct tc_call, done));
}

/* Gives back what the config selector holds for the call. explain.c needs the cluster's name beyond that. */
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

/* Takes back everything that reaches out of the call: timers, queues, the stream, and what others hold for it. */
static void call_detach(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers)
{
    c->stage = TC_CALL_DONE;
    tc_timer_stop(&c->deadline.timer);
    tc_timer_stop(&c->retry_timer);
    tc_task_cancel(&c->messages.dropped);
    tc_task_cancel(&c->deadline.expired);
    tc_list_remove(&c->queue.link);
    tc_list_remove(&c->capacity.link);
    if (c->credentials)
        tc_call_credentials_stop(c->credentials);
    if (c->attempt.stream)
        tc_h2_stream_cancel(c->attempt.stream, 8); /* CANCEL */
    c->attempt.stream = NULL;
    c->attempt.transport = NULL;
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
    call_done(c);
}

void tc_call_fail(struct tc_call *c, struct tc_status status)
{
    if (c->stage == TC_CALL_DONE) {
        tc_status_fini(&status);
        return;
    }
    call_detach(c, &status, NULL);
    tc_status_set(&c->status, status);
    tc_task_init(&c->done, on_done);
    tc_loop_defer(c->channel->loop, &c->done);
}

void tc_call_cancel(struct tc_call *c)
{
    if (c->stage != TC_CALL_DONE) {
        struct tc_status status =
            tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_DEADLINE, "cancelled by the application");
        call_detach(c, &status, NULL);
        tc_status_fini(&status);
    } else {
        tc_task_cancel(&c->done);
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
