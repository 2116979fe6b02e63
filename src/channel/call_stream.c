/* The call's attempt on a connection: its stream, the messages both ways, and the transparent retry. */
#include "base/mem.h"
#include "channel/call_struct.h"

static void free_out(struct tc_call *c, struct tc_out *o)
{
    c->kept_bytes -= o->bytes.len;
    if (!c->is_attempt)
        c->channel->kept_bytes -= o->bytes.len;
    tc_rstr_unref(o->owner);
    o->owner = NULL;
    o->next = c->out_free;
    c->out_free = o;
}

void tc_call_free_written(struct tc_call *c)
{
    while (c->out_first && c->out_first != c->out_next) {
        struct tc_out *o = c->out_first;
        c->out_first = o->next;
        free_out(c, o);
    }
    if (!c->out_first)
        c->out_last = NULL;
}

void tc_call_free_messages(struct tc_call *c)
{
    c->out_next = NULL;
    tc_call_free_written(c);
}

bool tc_call_over_buffer(const struct tc_call *c)
{
    const torc_channel *ch = c->channel;
    return c->kept_bytes > ch->opts.retry_buffer_bytes || ch->kept_bytes > ch->opts.channel_retry_buffer_bytes;
}

void tc_call_commit(struct tc_call *c)
{
    c->committed = true;
    tc_call_free_written(c);
}

void tc_call_drop_stream(struct tc_call *c)
{
    if (c->stream)
        tc_h2_stream_cancel(c->stream, 8); /* CANCEL */
    c->stream = NULL;
    c->transport = NULL;
}

/* Sending. */

static int queue_message(struct tc_call *c, struct tc_slice bytes, struct tc_rstr *owner, bool end)
{
    if (c->stage == TC_CALL_DONE || c->sending || c->half_close) {
        tc_rstr_unref(owner);
        return c->stage == TC_CALL_DONE ? TORC_ECLOSED : TORC_ESTATE;
    }
    struct tc_out *o = c->out_free;
    if (o)
        c->out_free = o->next;
    else
        o = tc_arena_alloc(&c->arena, sizeof(*o));
    *o = (struct tc_out){.bytes = bytes, .owner = owner};
    if (c->out_last)
        c->out_last->next = o;
    else
        c->out_first = o;
    c->out_last = o;
    if (!c->out_next)
        c->out_next = o;
    c->kept_bytes += bytes.len;
    if (!c->is_attempt)
        c->channel->kept_bytes += bytes.len;
    c->sending = true;
    c->half_close = end;
    if (c->hedge)
        tc_hedge_send(c->hedge, o);
    else
        tc_call_pump(c);
    return 0;
}

int tc_call_send(struct tc_call *c, struct tc_rstr *message, bool end)
{
    return queue_message(c, tc_rstr_slice(message), message, end);
}

int tc_call_send_borrowed(struct tc_call *c, struct tc_slice message, bool end)
{
    return queue_message(c, message, NULL, end);
}

int tc_call_send_end(struct tc_call *c)
{
    if (c->stage == TC_CALL_DONE)
        return TORC_ECLOSED;
    if (c->half_close)
        return TORC_ESTATE;
    c->half_close = true;
    if (c->hedge)
        tc_hedge_send(c->hedge, NULL);
    else
        tc_call_pump(c);
    return 0;
}

static void on_written(void *arg);

static void too_large(struct tc_call *c, size_t bytes)
{
    tc_call_fail(c, tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, "message to send larger than max (%zu vs. %llu)",
                                   bytes, (unsigned long long)c->max_request_bytes));
}

void tc_call_pump(struct tc_call *c)
{
    if (!c->stream || c->writing || c->end_sent)
        return;
    struct tc_out *o = c->out_next;
    if (!o) {
        if (c->half_close && tc_h2_stream_send_end(c->stream) == 0)
            c->end_sent = true;
        return;
    }
    if (o->bytes.len > c->max_request_bytes) {
        too_large(c, o->bytes.len);
        return;
    }
    bool end = c->half_close && !o->next;
    int rc = tc_h2_stream_send(c->stream, o->bytes, c->gzip, end);
    c->writing = true;
    c->end_sent = end;
    /* The server has ended the stream, and on_done waits for messages that are to be read: nobody misses this one. */
    if (rc != 0)
        tc_loop_defer(c->channel->loop, &c->dropped);
}

void tc_call_on_dropped(struct tc_task *task)
{
    on_written(TC_CONTAINER_OF(task, struct tc_call, dropped));
}

static void on_written(void *arg)
{
    struct tc_call *c = arg;
    c->writing = false;
    c->out_next = c->out_next->next;
    c->n_written++;
    if (!c->committed && tc_call_over_buffer(c))
        tc_call_commit(c);
    else if (c->committed)
        tc_call_free_written(c);
    bool told = c->n_written <= c->n_told;
    tc_call_pump(c);
    if (told || c->stage == TC_CALL_DONE)
        return;
    c->n_told = c->n_written;
    c->sending = false;
    if (c->events->on_written)
        c->events->on_written(c->arg);
}

/* Receiving. */

void tc_call_pump_reads(struct tc_call *c)
{
    while (c->stream && c->reads_given < c->reads) {
        c->reads_given++;
        tc_h2_stream_read(c->stream);
    }
}

void tc_call_read(struct tc_call *c)
{
    if (c->stage == TC_CALL_DONE || c->reads == UINT32_MAX)
        return;
    c->reads++;
    if (c->hedge)
        tc_hedge_read(c->hedge);
    else
        tc_call_pump_reads(c);
}

static void on_headers(void *arg, const struct tc_headers *headers)
{
    struct tc_call *c = arg;
    c->headers = c->filters ? tc_call_filters_response(c, headers) : headers;
    tc_call_commit(c);
    if (c->events->on_headers)
        c->events->on_headers(c->arg, c->headers);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_call *c = arg;
    if (!c->committed)
        tc_call_commit(c);
    c->reads--;
    c->reads_given--;
    if (c->events->on_message)
        c->events->on_message(c->arg, message);
    else
        tc_rstr_unref(message);
}

void tc_call_reset_attempt(struct tc_call *c)
{
    c->out_next = c->out_first;
    c->n_written = 0;
    c->writing = false;
    c->end_sent = false;
    c->reads_given = 0;
    tc_call_auth_reset(c);
    tc_task_cancel(&c->dropped);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct tc_call *c = arg;
    c->stream = NULL;
    c->transport = NULL;
    if (outcome->unprocessed && !c->committed && (outcome->unsent || !c->retried)) {
        /* A6's transparent retries: what never left goes again, and what the server never saw once more, whatever the
         * retry policy. */
        c->retried |= !outcome->unsent;
        c->attempts -= outcome->unsent;
        tc_call_tell_trackers(c, &outcome->status, NULL);
        tc_call_reset_attempt(c);
        tc_call_pick(c);
        return;
    }
    if (!c->is_attempt && tc_call_retry(c, &outcome->status, outcome->trailers))
        return;
    /* The server knows the deadline too and may reset the stream before our timer fires. */
    bool deadline = outcome->status.code == TORC_STATUS_CANCELLED && !outcome->from_server &&
                    tc_loop_now_ns(c->channel->loop) >= c->deadline_ns;
    const struct tc_headers *trailers = outcome->trailers;
    if (c->filters && outcome->trailers_only)
        trailers = tc_call_filters_response(c, trailers);
    tc_call_finish(c, deadline ? tc_call_deadline_status(c) : tc_status_ref(&outcome->status), trailers);
}

static const struct tc_h2_stream_events stream_events = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_written = on_written,
    .on_done = on_done,
};

/* Opening. */

/* The pick led nowhere; what follows is another one. */
static void give_up_pick(struct tc_call *c)
{
    c->transport = NULL;
    tc_call_tell_trackers(c, NULL, NULL);
    tc_call_queue_pick(c);
}

void tc_call_open_stream(struct tc_call *c, struct tc_transport *t)
{
    uint64_t now = tc_loop_now_ns(c->channel->loop);
    int error = 0;
    if (c->auth && !tc_call_authorize(c, t))
        return;
    c->request.timeout_ns = 0;
    if (c->deadline_ns != UINT64_MAX)
        c->request.timeout_ns = c->deadline_ns > now ? c->deadline_ns - now : 1;
    c->request.scheme = tc_slice_str(tc_transport_scheme(t));
    c->transport = t;
    c->stream = tc_transport_open(t, &c->request, &c->arena, &stream_events, c, &error);
    if (!c->stream) {
        if (error == TORC_EAGAIN) {
            c->stage = TC_CALL_WAIT_STREAM;
            tc_transport_wait(t, &c->capacity);
        } else {
            give_up_pick(c);
        }
        return;
    }
    c->stage = TC_CALL_RUNNING;
    c->attempts++;
    tc_rstr_unref(c->peer);
    c->peer = tc_rstr_ref(tc_transport_address(t));
    tc_call_pump(c);
    tc_call_pump_reads(c);
}

void tc_call_on_capacity(struct tc_capacity_wait *wait, bool gone)
{
    struct tc_call *c = TC_CONTAINER_OF(wait, struct tc_call, capacity);
    if (gone) {
        give_up_pick(c);
        tc_pick_queue_wake(c->channel);
    } else {
        tc_call_open_stream(c, c->transport);
    }
}
