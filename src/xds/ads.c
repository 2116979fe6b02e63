/* The ADS stream of one server: when it is opened, when something is sent on it, what its end means. What is said on it
 * is in ads_sotw.c and ads_delta.c. */
#include "xds/client_impl.h"

#include "proto/wire.h"

/* After a response that was refused others have their turn for so many times what it took of the processor, if that was
 * much, up to the limit: who sends such without end is a load, but no more than that. */
#define PAUSE_TIMES 4
#define PAUSE_FROM_NS (20 * TC_NS_PER_MS)
#define PAUSE_MAX_MS 2000

static struct tc_xds_channel *channel_of(struct tc_xds_ads *a)
{
    return TC_CONTAINER_OF(a, struct tc_xds_channel, ads);
}

struct tc_xds_ads_type *tc_xds_ads_type(struct tc_xds_channel *ch, size_t type)
{
    while (ch->ads.types.len <= type)
        (void)tc_vec_push(&ch->ads.types);
    return &ch->ads.types.data[type];
}

static void drop_text(struct tc_rstr **s)
{
    tc_rstr_unref(*s);
    *s = NULL;
}

/* --- subscriptions --- */

void tc_xds_ads_each_entry(struct tc_xds_channel *ch, size_t type,
                           void (*fn)(struct tc_xds_entry *e, uint32_t bit, void *arg), void *arg)
{
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        int index = tc_xds_realm_index(r, ch);
        if (index < 0 || type >= r->entries.len)
            continue;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            fn(e, UINT32_C(1) << index, arg);
        }
    }
}

static void mark_sent(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    (void)arg;
    if (!(e->sending_on & bit))
        return;
    e->sending_on &= ~bit;
    e->sent_on |= bit;
    tc_xds_entry_check_timer(e);
}

static void mark_unsent(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    (void)arg;
    e->sending_on &= ~bit;
    e->sent_on &= ~bit;
    e->held_back &= ~bit;
    tc_xds_entry_check_timer(e);
}

static void forget_dropped(struct tc_xds_ads_type *t)
{
    for (size_t i = 0; i < t->dropped.len; i++)
        tc_rstr_unref(t->dropped.data[i]);
    t->dropped.len = 0;
}

void tc_xds_ads_drop(struct tc_xds_channel *ch, size_t type, struct tc_rstr *name)
{
    *tc_vec_push(&tc_xds_ads_type(ch, type)->dropped) = tc_rstr_ref(name);
}

bool tc_xds_ads_dropped(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name)
{
    if (type >= ch->ads.types.len)
        return false;
    const struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    for (size_t i = 0; i < t->dropped.len; i++)
        if (tc_rstr_eq(t->dropped.data[i], name))
            return true;
    return false;
}

/* --- requests --- */

/* The type whose turn it is, or TC_XDS_NO_TYPE. */
static size_t next_type(const struct tc_xds_ads *a)
{
    size_t best = TC_XDS_NO_TYPE;
    for (size_t i = 0; i < a->types.len; i++)
        if (a->types.data[i].turn && (best == TC_XDS_NO_TYPE || a->types.data[i].turn < a->types.data[best].turn))
            best = i;
    return best;
}

static void send_bytes(struct tc_xds_channel *ch, size_t type, struct tc_buf *b)
{
    struct tc_xds_ads *a = &ch->ads;
    if (!a->sent_node) /* A27: on the first request of a stream; serialised already, it may stand behind the others */
        tc_wire_append(b, a->ops->node_field, tc_rstr_slice(ch->client->bootstrap->node));
    a->sent_node = true;
    a->sending = true;
    a->sending_type = type;
    a->stream->ops->send(a->stream, tc_buf_slice(b));
}

static void send_next(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    size_t type;
    while (a->stream && !a->sending && (type = next_type(a)) != TC_XDS_NO_TYPE) {
        struct tc_buf b = {0};
        a->types.data[type].turn = 0;
        if (a->ops->request(ch, type, &b))
            send_bytes(ch, type, &b);
        forget_dropped(&a->types.data[type]);
        tc_buf_fini(&b);
    }
}

static void on_send_task(struct tc_task *task)
{
    send_next(channel_of(TC_CONTAINER_OF(task, struct tc_xds_ads, send)));
}

void tc_xds_ads_request(struct tc_xds_channel *ch, size_t type)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_ads_type *t = tc_xds_ads_type(ch, type);
    if (!a->stream)
        return; /* the next stream asks for everything */
    if (!t->turn)
        t->turn = ++a->last_turn;
    if (!a->sending)
        tc_loop_defer(ch->client->loop, &a->send);
}

/* --- the stream --- */

static void forget_stream(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    a->stream = NULL;
    a->sending = false;
    if (a->ahead)
        tc_xds_ahead_abandon(a->ahead);
    a->ahead = NULL;
    if (a->token)
        tc_xds_done_detach(a->token);
    a->token = NULL;
    tc_xds_done_unref(a->acking);
    a->acking = NULL;
    a->gave_versions = a->asked_anew = false;
    tc_timer_stop(&a->quiet);
    tc_timer_stop(&a->pause);
    tc_task_cancel(&a->send);
    for (size_t i = 0; i < a->types.len; i++) {
        struct tc_xds_ads_type *t = &a->types.data[i];
        drop_text(&t->nonce);
        drop_text(&t->nack);
        tc_xds_done_unref(t->ack);
        t->ack = NULL;
        forget_dropped(t);
        t->turn = 0;
        t->requested = false;
        tc_xds_ads_each_entry(ch, i, mark_unsent, NULL);
    }
}

void tc_xds_ads_proved(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    tc_timer_stop(&a->quiet);
    if (!a->seen_response)
        TC_XDS_LOG(INFO, "xds %s: stream answers", tc_rstr_cstr(ch->server->uri));
    a->seen_response = true;
    if (!a->hold_backoff)
        tc_backoff_reset(&a->backoff);
}

void tc_xds_ads_pause(struct tc_xds_channel *ch, uint64_t took_ns)
{
    uint64_t ms = TC_MIN(took_ns * PAUSE_TIMES / TC_NS_PER_MS, PAUSE_MAX_MS);
    if (took_ns >= PAUSE_FROM_NS)
        ch->ads.read_at_ms = tc_loop_clock_ns(ch->client->loop) / TC_NS_PER_MS + ms;
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_done *done = tc_xds_done_new(ch);
    uint64_t began_ns = tc_thread_cpu_ns();
    a->token = done;
    a->refused = false;
    bool known = a->ops->apply(ch, message, done);
    if (!known || a->refused)
        tc_xds_ads_pause(ch, tc_thread_cpu_ns() - began_ns);
    if (known)
        tc_xds_ads_proved(ch);
    tc_rstr_unref(message);
    tc_xds_done_unref(done);
}

/* Now, or when the pause is over. */
static void read_next(struct tc_xds_ads *a, struct tc_loop *loop)
{
    uint64_t now_ms = tc_loop_now_ms(loop);
    if (now_ms < a->read_at_ms)
        tc_timer_start(&a->pause, a->read_at_ms - now_ms);
    else
        a->stream->ops->read(a->stream);
}

static void on_pause(struct tc_timer *timer)
{
    struct tc_xds_ads *a = TC_CONTAINER_OF(timer, struct tc_xds_ads, pause);
    a->stream->ops->read(a->stream);
}

void tc_xds_ads_read(struct tc_xds_channel *ch)
{
    ch->ads.token = NULL;
    if (ch->ads.stream)
        read_next(&ch->ads, ch->client->loop);
}

static void on_sent(void *arg)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_done *acked = a->acking;
    a->sending = false;
    a->acking = NULL;
    tc_xds_ads_each_entry(ch, a->sending_type, mark_sent, NULL);
    if (a->ops->on_sent)
        a->ops->on_sent(ch);
    tc_xds_done_unref(acked);
    send_next(ch);
}

/* A stream that had answered is no failure (A57): the next follows at once, but not more often than the backoff's first
 * step, lest a server that answers and closes be asked without end. */
static uint64_t restart_delay_ms(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    uint64_t now_ms = tc_loop_now_ms(ch->client->loop);
    uint64_t gap_ms = a->backoff.opts.initial_ms;
    bool soon = a->restarted_ms && now_ms < a->restarted_ms + gap_ms;
    uint64_t wait_ms = soon ? a->restarted_ms + gap_ms - now_ms : 0;
    a->restarted_ms = TC_MAX(now_ms + wait_ms, 1);
    return wait_ms;
}

static void on_status(void *arg, const struct tc_status *status, bool local)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    if (!a->ahead) {
        tc_xds_ads_ended(ch, status, local);
        return;
    }
    /* What came before the end counts: first that. */
    a->stream = NULL;
    tc_task_cancel(&a->send);
    tc_timer_stop(&a->quiet);
    tc_xds_ahead_end(a->ahead, status, local);
}

void tc_xds_ads_ended(struct tc_xds_channel *ch, const struct tc_status *status, bool local)
{
    struct tc_xds_ads *a = &ch->ads;
    const char *uri = tc_rstr_cstr(ch->server->uri), *code = torc_status_code_name(status->code);
    bool seen = a->seen_response;
    /* Not what a server may have run out of: that is its own affair (A57). */
    bool too_large = seen && local && status->code == TORC_STATUS_RESOURCE_EXHAUSTED;
    forget_stream(ch);
    a->hold_backoff = too_large || (a->hold_backoff && !seen);
    if (seen && !too_large) {
        tc_backoff_reset(&a->backoff);
        TC_XDS_LOG(INFO, "xds %s: stream ended with %s: %s", uri, code, tc_status_text(status));
        uint64_t wait_ms = restart_delay_ms(ch);
        if (wait_ms)
            tc_timer_start(&a->retry, wait_ms);
        else
            tc_loop_defer(ch->client->loop, &a->restart);
        return;
    }
    tc_timer_start(&a->retry, tc_backoff_next_ms(&a->backoff, tc_loop_rng(ch->client->loop)));
    tc_xds_channel_fail(ch, tc_status_make(TORC_STATUS_UNAVAILABLE,
                                           "xDS channel for server %s: xDS call failed%s; status: %s: %s (node ID:%s)",
                                           uri, seen ? "" : " with no responses received", code, tc_status_text(status),
                                           tc_xds_node_id(ch->client)));
}

static const struct tc_xds_stream_events stream_events = {
    .on_message = on_message,
    .on_sent = on_sent,
    .on_status = on_status,
};

void tc_xds_ads_start(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (a->stream || a->ahead || tc_timer_active(&a->retry) || tc_task_pending(&a->restart))
        return;
    a->sent_node = a->seen_response = false;
    a->stream = ch->transport->ops->open(ch->transport, a->ops->method, &stream_events, ch);
    read_next(a, ch->client->loop);
    for (size_t type = 0; type < ch->client->types.len; type++)
        tc_xds_ads_request(ch, type);
}

static void on_restart(struct tc_task *task)
{
    tc_xds_ads_start(channel_of(TC_CONTAINER_OF(task, struct tc_xds_ads, restart)));
}

static void on_retry(struct tc_timer *timer)
{
    tc_xds_ads_start(channel_of(TC_CONTAINER_OF(timer, struct tc_xds_ads, retry)));
}

void tc_xds_ads_reset_backoff(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    tc_backoff_reset(&a->backoff);
    if (tc_timer_active(&a->retry)) {
        tc_timer_stop(&a->retry);
        tc_loop_defer(ch->client->loop, &a->restart);
    }
}

void tc_xds_ads_init(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    a->ops = ch->server->incremental ? &tc_xds_ads_delta : &tc_xds_ads_sotw;
    tc_backoff_init(&a->backoff, &ch->client->opts.backoff);
    tc_timer_init(&a->quiet, ch->client->loop, tc_xds_ads_on_quiet);
    tc_timer_init(&a->retry, ch->client->loop, on_retry);
    tc_timer_init(&a->pause, ch->client->loop, on_pause);
    tc_task_init(&a->send, on_send_task);
    tc_task_init(&a->restart, on_restart);
}

void tc_xds_ads_fini(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_stream *stream = a->stream;
    forget_stream(ch);
    if (stream)
        stream->ops->cancel(stream);
    if (a->box) {
        tc_mailbox_close(a->box);
        tc_mailbox_unref(a->box);
    }
    a->box = NULL;
    tc_timer_stop(&a->retry);
    tc_task_cancel(&a->restart);
    for (size_t i = 0; i < a->types.len; i++) {
        drop_text(&a->types.data[i].version);
        tc_vec_fini(&a->types.data[i].dropped);
    }
    tc_vec_fini(&a->types);
}
