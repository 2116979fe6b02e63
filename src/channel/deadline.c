/* The deadline of a call. A timer checks it, and so do the steps that come before the request is sent
 * (tc_call_end_if_late): the start, the config, the opening of a stream. The timer of a busy loop is late. A server
 * that knows the deadline may reset the stream first; attempt.c turns that reset into DEADLINE_EXCEEDED. An RPC that
 * ended before its deadline keeps its outcome, which may wait behind messages that the application takes late
 * (has_ended). */
#include "channel/deadline.h"

#include "channel/explain.h"

/* Returns the seconds from the call's start to its deadline; 0 for a deadline that is not after the start. */
static double seconds_given(const struct tc_call *c)
{
    const struct tc_call_deadline *d = &c->deadline;
    return d->at_ns > d->started_ns ? (double)(d->at_ns - d->started_ns) / 1e9 : 0;
}

struct tc_status tc_call_deadline_status(struct tc_call *c)
{
    struct tc_buf b = {0};
    struct tc_status status = tc_status_make(TORC_STATUS_DEADLINE_EXCEEDED, TORC_LAYER_DEADLINE,
                                             "deadline exceeded after %.3f s while waiting for %s", seconds_given(c),
                                             tc_call_awaited_text(c, &b));
    tc_buf_fini(&b);
    return status;
}

bool tc_call_end_late(struct tc_call *c)
{
    if (TC_LIKELY(tc_loop_now_ns(c->channel->loop) < c->deadline.at_ns))
        return false;
    tc_call_tell_trackers(c, NULL, NULL);
    tc_call_fail(c,
                 c->stage > TC_CALL_WAIT_CONFIG || c->attempt.n > 0
                     ? tc_call_deadline_status(c)
                     : tc_status_make(TORC_STATUS_DEADLINE_EXCEEDED, TORC_LAYER_DEADLINE,
                                      "deadline exceeded after %.3f s, before the request was sent", seconds_given(c)));
    return true;
}

/* Returns true if the RPC has ended, and its outcome waits behind messages that the application has not asked for. The
 * outcome is certain then: a call that is committed makes no further attempt. Returns false while an interceptor delays
 * a received message: the deadline counts for interceptors. */
static bool has_ended(const struct tc_call *c)
{
    const struct tc_call *at = c->hedge ? c->hedge->ops->winner(c->hedge) : c;
    bool held_up = c->rpc && c->rpc->received.message;
    return !held_up && at && at->messages.committed && tc_call_ended(at);
}

static void on_expired(struct tc_task *task)
{
    struct tc_call *c = TC_CONTAINER_OF(task, struct tc_call, deadline.expired);
    if (!has_ended(c))
        tc_call_fail(c, tc_call_deadline_status(c));
}

/* Has on_expired run behind the tasks that are queued already: an answer that has arrived is handled first. */
static void on_timer(struct tc_timer *timer)
{
    struct tc_call *c = TC_CONTAINER_OF(timer, struct tc_call, deadline.timer);
    tc_loop_defer(c->channel->loop, &c->deadline.expired);
}

void tc_call_deadline_init(struct tc_call *c)
{
    c->deadline.at_ns = UINT64_MAX;
    tc_timer_init(&c->deadline.timer, c->channel->loop, on_timer);
    tc_task_init(&c->deadline.expired, on_expired);
}

void tc_call_deadline_arm(struct tc_call *c)
{
    uint64_t now = tc_loop_now_ns(c->channel->loop);
    uint64_t left = c->deadline.at_ns > now ? c->deadline.at_ns - now : 0;
    tc_timer_start(&c->deadline.timer, (left + TC_NS_PER_MS - 1) / TC_NS_PER_MS);
}
