#include "channel/hedge.h"

#include "base/mem.h"
#include "channel/call_struct.h"
#include "lb/session.h"

struct attempt {
    struct tc_hedge *hedge;
    struct tc_call *call;
    struct tc_out *next; /* of the parent's messages; NULL: it was given all */
    uint32_t n_written;
    bool over;
};

struct tc_hedge {
    struct tc_call *parent;
    struct tc_timer timer; /* until the next attempt */
    unsigned n, n_running;
    bool frozen; /* no further attempts */
    bool stopped;
    struct attempt *winner; /* the one that the call is committed to */
    struct attempt *last;   /* that failed */
    struct attempt attempts[TC_RETRY_MAX_ATTEMPTS];
};

static struct tc_retry_throttle *throttle_of(struct tc_hedge *h)
{
    return &h->parent->channel->throttle;
}

static bool more(const struct tc_hedge *h)
{
    return !h->frozen && !h->winner && h->n < h->parent->retry.max_attempts;
}

static void arm(struct tc_hedge *h, uint64_t delay_ms)
{
    if (more(h))
        tc_timer_start(&h->timer, delay_ms);
    else
        tc_timer_stop(&h->timer);
}

static uint64_t hedging_delay_ms(const struct tc_hedge *h)
{
    uint64_t ns = h->parent->retry.hedging_delay_ns;
    return ns / TC_NS_PER_MS + (ns % TC_NS_PER_MS != 0);
}

/* Gives the attempt what it can take: one message at a time. */
static void feed(struct attempt *a)
{
    struct tc_call *parent = a->hedge->parent, *c = a->call;
    if (a->over || c->stage == TC_CALL_DONE)
        return;
    struct tc_out *o = a->next;
    if (o && !c->sending) {
        a->next = o->next;
        bool end = parent->half_close && !o->next;
        if (o->owner)
            tc_call_send(c, tc_rstr_ref(o->owner), end);
        else
            tc_call_send_borrowed(c, o->bytes, end);
    } else if (!o && parent->half_close && !c->half_close) {
        tc_call_send_end(c);
    }
    if (a->hedge->winner == a) {
        parent->out_next = a->next;
        tc_call_free_written(parent);
    }
}

static void cancel(struct attempt *a)
{
    if (a->over)
        return;
    a->over = true;
    a->hedge->n_running--;
    tc_call_cancel(a->call);
}

/* A6: the call is this attempt from here on, the others end. */
static void choose(struct attempt *winner)
{
    struct tc_hedge *h = winner->hedge;
    struct tc_call *parent = h->parent;
    h->winner = winner;
    tc_timer_stop(&h->timer);
    for (unsigned i = 0; i < h->n; i++)
        if (&h->attempts[i] != winner)
            cancel(&h->attempts[i]);
    parent->out_next = winner->next;
    tc_call_commit(parent);
    for (uint32_t i = 0; i < parent->reads; i++)
        tc_call_read(winner->call);
}

/* What the parent's end shows is the attempt's; it lives in memory that the parent frees. */
static void adopt(struct attempt *a)
{
    struct tc_call *parent = a->hedge->parent;
    tc_rstr_unref(parent->peer);
    parent->peer = tc_rstr_ref(a->call->peer);
    parent->trace = a->call->trace;
    if (parent->config.session)
        *parent->config.session = *a->call->config.session;
}

static bool start_attempt(struct tc_hedge *h);

static void on_headers(void *arg, const struct tc_headers *headers)
{
    struct attempt *a = arg;
    struct tc_call *parent = a->hedge->parent;
    adopt(a);
    if (!a->hedge->winner)
        choose(a);
    parent->headers = parent->filters ? tc_call_filters_response(parent, headers) : headers;
    if (parent->events->on_headers)
        parent->events->on_headers(parent->arg, parent->headers);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct attempt *a = arg;
    struct tc_call *parent = a->hedge->parent;
    parent->reads--;
    if (parent->events->on_message)
        parent->events->on_message(parent->arg, message);
    else
        tc_rstr_unref(message);
}

static void on_written(void *arg)
{
    struct attempt *a = arg;
    struct tc_call *parent = a->hedge->parent;
    a->n_written++;
    /* A6: no attempt is ahead of the one that just got further than all others, so the call commits to it. */
    if (!a->hedge->winner && a->n_written > parent->n_told && tc_call_over_buffer(parent))
        choose(a);
    feed(a);
    if (a->n_written <= parent->n_told || parent->stage == TC_CALL_DONE)
        return;
    parent->n_told = a->n_written;
    parent->sending = false;
    if (parent->events->on_written)
        parent->events->on_written(parent->arg);
}

/* Counts an outcome and says whether attempts may go on after it. */
static bool may_go_on(struct tc_hedge *h, const struct tc_call_end *end, uint64_t *delay_ms)
{
    if (end->status.code == TORC_STATUS_OK) {
        tc_retry_throttle_success(throttle_of(h));
        return false;
    }
    bool fatal = (h->parent->retry.codes >> end->status.code & 1) == 0;
    enum tc_pushback pushback = tc_retry_pushback(end->trailers, delay_ms);
    if (!fatal || pushback == TC_PUSHBACK_STOP)
        tc_retry_throttle_failure(throttle_of(h));
    if (pushback == TC_PUSHBACK_STOP)
        h->frozen = true;
    if (pushback != TC_PUSHBACK_DELAY)
        *delay_ms = 0;
    return !fatal;
}

/* The parent ends as this attempt did. */
static void finish(struct attempt *a)
{
    struct tc_call *parent = a->hedge->parent, *c = a->call;
    const struct tc_headers *trailers = c->trailers;
    adopt(a);
    if (parent->filters && trailers && !c->headers)
        trailers = tc_call_filters_response(parent, trailers);
    tc_call_finish_later(parent, tc_status_ref(&c->status), trailers);
}

/* Nothing runs and nothing will: the call failed as its last attempt did. */
static void finish_if_idle(struct tc_hedge *h)
{
    if (!more(h))
        tc_timer_stop(&h->timer);
    if (h->n_running == 0 && !tc_timer_active(&h->timer))
        finish(h->last);
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    struct attempt *a = arg;
    struct tc_hedge *h = a->hedge;
    uint64_t delay_ms = 0;
    a->over = true;
    h->n_running--;
    h->last = a;
    if (!may_go_on(h, end, &delay_ms) || h->winner) {
        finish(a);
        return;
    }
    /* The next at once, or when the server wants it; those behind it keep their distance. */
    if (delay_ms)
        arm(h, delay_ms);
    else if (more(h) && start_attempt(h))
        arm(h, hedging_delay_ms(h));
    finish_if_idle(h);
}

static const struct tc_call_events attempt_events = {
    .on_headers = on_headers, .on_message = on_message, .on_written = on_written, .on_done = on_done};

/* The parent frees it: what it received is the parent's too. */
static void keep(struct tc_call *c)
{
    (void)c;
}

/* False when the throttle forbids it, for good: that many failures mean that servers suffer (A6). */
static bool start_attempt(struct tc_hedge *h)
{
    struct tc_call *parent = h->parent;
    if (h->n > 0 && !tc_retry_throttle_open(throttle_of(h))) {
        h->frozen = true;
        return false;
    }
    struct attempt *a = &h->attempts[h->n];
    struct tc_call *c = TC_NEW(struct tc_call);
    tc_arena_init(&c->arena, 0, 0);
    tc_call_init(c, parent->channel);
    c->is_attempt = true;
    c->release = keep;
    c->events = &attempt_events;
    c->arg = a;
    c->request.previous_attempts = h->n;
    *a = (struct attempt){.hedge = h, .call = c, .next = parent->out_first};
    h->n++;
    h->n_running++;
    tc_call_begin_attempt(c, parent);
    feed(a);
    return true;
}

/* Attempts that are due; with a delay of nothing, all. */
static void go_on(struct tc_hedge *h)
{
    uint64_t delay_ms = hedging_delay_ms(h);
    while (more(h) && start_attempt(h) && delay_ms == 0) {
    }
    arm(h, delay_ms);
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_hedge *h = TC_CONTAINER_OF(timer, struct tc_hedge, timer);
    go_on(h);
    finish_if_idle(h);
}

void tc_hedge_start(struct tc_call *c)
{
    struct tc_hedge *h = tc_arena_calloc(&c->arena, 1, sizeof(*h));
    h->parent = c;
    tc_timer_init(&h->timer, c->channel->loop, on_timer);
    c->hedge = h;
    c->stage = TC_CALL_HEDGING;
    go_on(h);
}

void tc_hedge_send(struct tc_hedge *h, struct tc_out *message)
{
    for (unsigned i = 0; i < h->n && !h->stopped; i++) {
        struct attempt *a = &h->attempts[i];
        if (message && !a->next)
            a->next = message;
        feed(a);
    }
}

void tc_hedge_read(struct tc_hedge *h)
{
    if (h->winner && !h->winner->over)
        tc_call_read(h->winner->call);
}

void tc_hedge_stop(struct tc_hedge *h)
{
    h->stopped = true;
    tc_timer_stop(&h->timer);
    for (unsigned i = 0; i < h->n; i++) {
        cancel(&h->attempts[i]);
        h->parent->attempts += h->attempts[i].call->attempts;
    }
}

void tc_hedge_free(struct tc_hedge *h)
{
    for (unsigned i = 0; h && i < h->n; i++) {
        struct tc_call *c = h->attempts[i].call;
        torc_channel *ch = c->channel;
        tc_call_fini(c);
        tc_arena_fini(&c->arena);
        tc_free(c);
        tc_channel_unref(ch);
    }
}

unsigned tc_hedge_attempts(const struct tc_hedge *h)
{
    return h->n;
}
