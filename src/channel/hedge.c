/* Hedging (A6): attempts of one call side by side. The next attempt begins after a delay, or when an attempt has failed
 * with a non-fatal status. Loop thread only, except hedge_free.
 *
 * The call ends as the attempt to which it is committed. While it is not committed, it ends as the first attempt that
 * succeeds, fails with a fatal status or is refused on this side; else as the attempt that ended last, once none runs
 * and none will begin.
 *
 * Each attempt is a call of its own (struct tc_call with `parent`), from tc_call_attempt on, with the parent's config.
 * The parent keeps the request messages; attempt_flush gives each attempt the messages that it has not been given yet,
 * one at a time. The parent commits to the first attempt that brings headers ("winner"), or, when the buffers are full,
 * to the attempt that has written most; the other attempts are cancelled.
 *
 * The headers and trailers that an attempt received live in its arena, and the parent shows them to the application, so
 * attempts are freed only with the parent. Messages that the winner received are handed on to the parent. */
#include "channel/hedge.h"

#include "base/mem.h"
#include "channel/attempt.h"
#include "channel/call_setup.h"
#include "channel/messages.h"
#include "lb/session_affinity.h"

struct attempt {
    struct hedge *hedge;
    struct tc_call *call;         /* owned; hedge_free frees it */
    struct tc_send_message *next; /* of the parent's messages; NULL: the attempt was given all */
    uint32_t n_written;
    bool over; /* ended or cancelled: no event of the attempt follows */
};

struct hedge {
    struct tc_hedge base;
    struct tc_call *parent;
    struct tc_timer timer;  /* until the next attempt */
    unsigned n_running;     /* attempts that are not over */
    bool frozen;            /* no further attempt begins */
    struct attempt *winner; /* the attempt that the call is committed to; NULL: none yet */
    struct attempt *last;   /* the attempt that ended last; NULL: none has ended by itself */
    struct attempt attempts[TC_RETRY_MAX_ATTEMPTS];
};

static struct tc_retry_throttle *hedge_throttle(struct hedge *h)
{
    return &h->parent->channel->calls.throttle;
}

static bool hedge_may_begin(const struct hedge *h)
{
    return !h->frozen && !h->winner && h->base.n < h->parent->retry.policy.max_attempts;
}

static void timer_arm(struct hedge *h, uint64_t delay_ms)
{
    if (hedge_may_begin(h))
        tc_timer_start(&h->timer, delay_ms);
    else
        tc_timer_stop(&h->timer);
}

static uint64_t hedge_delay_ms(const struct hedge *h)
{
    uint64_t ns = h->parent->retry.policy.hedging_delay_ns;
    return ns / TC_NS_PER_MS + (ns % TC_NS_PER_MS != 0);
}

/* Gives the attempt the next message, if it can take one. */
static void attempt_flush(struct attempt *a)
{
    struct tc_call *parent = a->hedge->parent, *c = a->call;
    if (a->over || c->stage == TC_CALL_DONE)
        return;
    struct tc_send_message *m = a->next;
    if (m && !c->messages.sending) {
        a->next = m->next;
        bool end = parent->messages.half_close && !m->next;
        if (m->owner && m->plain)
            tc_call_send_plain(c, tc_rstr_ref(m->owner), end);
        else if (m->owner)
            tc_call_send(c, tc_rstr_ref(m->owner), end);
        else
            tc_call_send_borrowed(c, m->bytes, end);
    } else if (!m && parent->messages.half_close && !c->messages.half_close) {
        tc_call_send_end(c);
    }
    if (a->hedge->winner == a) {
        parent->messages.send.next = a->next;
        tc_send_buffer_drop_written(&parent->messages.send);
    }
}

static void attempt_cancel(struct attempt *a)
{
    if (a->over)
        return;
    a->over = true;
    a->hedge->n_running--;
    tc_call_cancel(a->call);
}

static void hedge_read(struct tc_hedge *base);

/* A6: commits the call to this attempt; the other attempts end. */
static void attempt_win(struct attempt *winner)
{
    struct hedge *h = winner->hedge;
    struct tc_call *parent = h->parent;
    h->winner = winner;
    tc_timer_stop(&h->timer);
    for (unsigned i = 0; i < h->base.n; i++)
        if (&h->attempts[i] != winner)
            attempt_cancel(&h->attempts[i]);
    parent->messages.send.next = winner->next;
    tc_call_commit(parent);
    hedge_read(&h->base);
}

/* Copies the attempt's peer, trace and session to the parent. */
static void attempt_adopt(struct attempt *a)
{
    struct tc_call *parent = a->hedge->parent;
    tc_rstr_unref(parent->attempt.peer);
    parent->attempt.peer = tc_rstr_ref(a->call->attempt.peer);
    parent->attempt.trace = a->call->attempt.trace;
    if (parent->config.session)
        *parent->config.session = *a->call->config.session;
}

static bool attempt_start(struct hedge *h);

static void on_headers(void *arg, const struct tc_headers *headers)
{
    struct attempt *a = arg;
    struct tc_call *parent = a->hedge->parent;
    attempt_adopt(a);
    if (!a->hedge->winner)
        attempt_win(a);
    parent->attempt.headers =
        parent->filters ? tc_call_filters_response(parent->filters, headers, parent->attempt.peer) : headers;
    if (parent->events->on_headers)
        parent->events->on_headers(parent->arg, parent->attempt.headers);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct attempt *a = arg;
    tc_call_deliver(a->hedge->parent, message);
}

static void on_written(void *arg)
{
    struct attempt *a = arg;
    struct tc_call *parent = a->hedge->parent;
    a->n_written++;
    /* A6: when the buffers are full, the call commits to the attempt that has written most. */
    if (!a->hedge->winner && a->n_written > parent->messages.n_notified && tc_call_over_buffer(parent))
        attempt_win(a);
    attempt_flush(a);
    if (a->n_written <= parent->messages.n_notified || parent->stage == TC_CALL_DONE)
        return;
    parent->messages.n_notified = a->n_written;
    parent->messages.sending = false;
    if (parent->events->on_written)
        parent->events->on_written(parent->arg);
}

/* Counts an attempt's outcome for the throttle, and sets `frozen` if the server wants no further attempt. Returns false
 * if the outcome ends the call: success, a fatal status, a refusal on this side. Else stores the server's pushback in
 * *delay_ms (0: none, or to try again at once). */
static bool attempt_count(struct attempt *a, const struct tc_call_end *end, uint64_t *delay_ms)
{
    struct hedge *h = a->hedge;
    if (a->call->attempt.refused)
        return false;
    if (end->status.code == TORC_STATUS_OK) {
        tc_retry_throttle_success(hedge_throttle(h));
        return false;
    }
    bool fatal = (h->parent->retry.policy.codes >> end->status.code & 1) == 0;
    enum tc_pushback pushback = tc_retry_pushback(end->trailers, delay_ms);
    if (!fatal || pushback == TC_PUSHBACK_STOP)
        tc_retry_throttle_failure(hedge_throttle(h));
    if (pushback == TC_PUSHBACK_STOP)
        h->frozen = true;
    if (pushback != TC_PUSHBACK_DELAY)
        *delay_ms = 0;
    return !fatal;
}

/* Ends the parent as this attempt ended. */
static void attempt_finish(struct attempt *a)
{
    struct tc_call *parent = a->hedge->parent, *c = a->call;
    const struct tc_headers *trailers = c->trailers;
    attempt_adopt(a);
    if (parent->filters && trailers && !c->attempt.headers)
        trailers = tc_call_filters_response(parent->filters, trailers, parent->attempt.peer);
    parent->trailers = trailers;
    if (parent->stage != TC_CALL_DONE)
        tc_call_fail_in_order(parent, tc_status_ref(&c->status));
}

/* Ends the call with the outcome of the attempt that ended last, if no attempt runs and none will begin. */
static void hedge_finish_if_idle(struct hedge *h)
{
    if (!hedge_may_begin(h))
        tc_timer_stop(&h->timer);
    if (h->n_running == 0 && !tc_timer_active(&h->timer))
        attempt_finish(h->last);
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    struct attempt *a = arg;
    struct hedge *h = a->hedge;
    uint64_t delay_ms = 0;
    a->over = true;
    h->n_running--;
    h->last = a;
    if (!attempt_count(a, end, &delay_ms) || h->winner) {
        attempt_finish(a);
        return;
    }
    /* The next attempt begins at once, or after the server's pushback; later attempts follow after the hedging
     * delay. */
    if (delay_ms)
        timer_arm(h, delay_ms);
    else if (hedge_may_begin(h) && attempt_start(h))
        timer_arm(h, hedge_delay_ms(h));
    hedge_finish_if_idle(h);
}

static const struct tc_call_events attempt_events = {
    .on_headers = on_headers, .on_message = on_message, .on_written = on_written, .on_done = on_done};

/* tc_call.release of an attempt: hedge_free frees it with the parent, which shows what the attempt received. */
static void attempt_keep(struct tc_call *c TC_UNUSED) {}

/* Copies the parent's request and config to the attempt. */
static void attempt_inherit(struct tc_call *c, const struct tc_call *parent)
{
    c->asked = parent->asked;
    c->asked.metadata.cap = c->asked.metadata.len; /* full: added headers go to an array of the attempt's own */
    c->asked.metadata.arena = &c->arena;
    c->deadline.started_ns = parent->deadline.started_ns;
    c->deadline.at_ns = parent->deadline.at_ns;
    c->waits = parent->waits;
    c->config = parent->config;
    c->config.release = NULL; /* the parent releases the config */
    c->config.filters = NULL;
    if (parent->config.session) {
        /* Each attempt's pick writes to a session of its own. */
        c->config.session = tc_arena_alloc(&c->arena, sizeof(*c->config.session));
        *c->config.session = *parent->config.session;
    }
    uint32_t previous = c->attempt.request.previous_attempts;
    c->attempt.request = parent->attempt.request;
    c->attempt.request.previous_attempts = previous;
    c->attempt.request.metadata = &c->asked.metadata;
    c->attempt.request.auth = NULL;
    if (parent->credentials && parent->credentials->own)
        tc_call_use_credentials(c, parent->credentials->own);
}

/* Begins an attempt. Returns false if the throttle forbids it (A6); no further attempt begins then. */
static bool attempt_start(struct hedge *h)
{
    struct tc_call *parent = h->parent;
    if (h->base.n > 0 && !tc_retry_throttle_open(hedge_throttle(h))) {
        h->frozen = true;
        return false;
    }
    struct attempt *a = &h->attempts[h->base.n];
    struct tc_call *c = TC_NEW(struct tc_call);
    tc_arena_init(&c->arena, 0, 0);
    c->parent = parent;
    tc_call_init(c, parent->channel);
    c->release = attempt_keep;
    c->events = &attempt_events;
    c->arg = a;
    c->attempt.request.previous_attempts = h->base.n;
    *a = (struct attempt){.hedge = h, .call = c, .next = parent->messages.send.first};
    h->base.n++;
    h->n_running++;
    attempt_inherit(c, parent);
    tc_call_setup_credentials(c);
    tc_channel_call_began(c->channel);
    tc_call_attempt(c);
    attempt_flush(a);
    return true;
}

/* Begins the attempt that is due, or all attempts that may begin if the delay is 0. */
static void hedge_go_on(struct hedge *h)
{
    uint64_t delay_ms = hedge_delay_ms(h);
    while (hedge_may_begin(h) && attempt_start(h) && delay_ms == 0) {
    }
    timer_arm(h, delay_ms);
}

static void on_timer(struct tc_timer *timer)
{
    struct hedge *h = TC_CONTAINER_OF(timer, struct hedge, timer);
    hedge_go_on(h);
    hedge_finish_if_idle(h);
}

static struct hedge *of_base(struct tc_hedge *base)
{
    return TC_CONTAINER_OF(base, struct hedge, base);
}

static void hedge_send(struct tc_hedge *base, struct tc_send_message *message)
{
    struct hedge *h = of_base(base);
    for (unsigned i = 0; i < h->base.n; i++) {
        struct attempt *a = &h->attempts[i];
        if (message && !a->next)
            a->next = message;
        attempt_flush(a);
    }
}

static void hedge_read(struct tc_hedge *base)
{
    struct hedge *h = of_base(base);
    struct tc_call_messages *m = &h->parent->messages;
    while (h->winner && !h->winner->over && m->reads_given < m->reads && tc_call_may_read(h->parent)) {
        m->reads_given++;
        tc_call_read(h->winner->call, 1);
    }
}

static void hedge_stop(struct tc_hedge *base)
{
    struct hedge *h = of_base(base);
    tc_timer_stop(&h->timer);
    for (unsigned i = 0; i < h->base.n; i++) {
        attempt_cancel(&h->attempts[i]);
        h->parent->attempt.n += h->attempts[i].call->attempt.n;
    }
}

static void hedge_free(struct tc_hedge *base)
{
    struct hedge *h = of_base(base);
    for (unsigned i = 0; i < h->base.n; i++) {
        struct tc_call *c = h->attempts[i].call;
        torc_channel *ch = c->channel;
        tc_call_fini(c);
        tc_arena_fini(&c->arena);
        tc_free(c);
        tc_channel_unref(ch);
    }
}

static const struct tc_call *hedge_winner(const struct tc_hedge *base)
{
    const struct attempt *a = TC_CONTAINER_OF(base, const struct hedge, base)->winner;
    return a ? a->call : NULL;
}

static const struct tc_hedge_ops hedge_ops = {
    .send = hedge_send, .read = hedge_read, .stop = hedge_stop, .winner = hedge_winner, .free = hedge_free};

void tc_hedge_start(struct tc_call *c)
{
    struct hedge *h = tc_arena_calloc(&c->arena, 1, sizeof(*h));
    h->base.ops = &hedge_ops;
    h->parent = c;
    tc_timer_init(&h->timer, c->channel->loop, on_timer);
    c->hedge = &h->base;
    c->stage = TC_CALL_HEDGING;
    hedge_go_on(h);
}
