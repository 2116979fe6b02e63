/* The messages of a call, both ways.
 *
 * Sending: one message at a time is under way (`sending`); tc_call_flush gives it to the stream, which takes one at a
 * time as well (`writing`). Until the call is committed (A6: headers or a message came, or the buffers are full)
 * written messages stay in the send buffer, because another attempt may write them again; on_written is called for a
 * message once, by the attempt that gets there first (n_notified).
 *
 * Receiving: `reads` counts the messages that the owner asked for and that have not come; `reads_given` of them were
 * asked of the present stream.
 *
 * A call that hedges has no stream: hedge.c passes messages on to the attempts, and reads to the winner.
 *
 * Interceptors with on_message see a message before it gets to the send buffer, and a received message before the owner
 * gets it. The walk (rpc.h) owns a message until the message has passed; then the send buffer or the owner of the call
 * has it. */
#include "channel/messages.h"

#include "channel/call_internal.h"
#include "channel/deadline.h"

bool tc_call_over_buffer(const struct tc_call *c)
{
    const torc_channel *ch = c->channel;
    return c->messages.send.bytes > (uint64_t)ch->opts.retry_buffer_bytes ||
           ch->calls.kept_bytes > (uint64_t)ch->opts.channel_retry_buffer_bytes;
}

void tc_call_commit(struct tc_call *c)
{
    c->messages.committed = true;
    tc_send_buffer_drop_written(&c->messages.send);
}

/* --- sending --- */

void tc_call_too_large(struct tc_call *c, size_t bytes)
{
    const struct tc_h2_request *r = &c->attempt.request;
    c->attempt.refused = true;
    if (c->attempt.stream && tc_h2_client_stream_sendable(c->attempt.stream) &&
        !tc_h2_client_stream_sent(c->attempt.stream))
        c->attempt.n--;
    /* has_limits is false before the call has its config: the message is too long for gRPC's length prefix. */
    size_t max = r->has_limits ? r->max_send_message_bytes : TC_H2_MESSAGE_MAX;
    tc_call_fail(c, tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                                   "message to send larger than max (%zu vs. %zu)", bytes, max));
}

/* Appends a message to the send buffer, and has the stream or the hedged attempts take it. Takes over the owner. */
static void message_push(struct tc_call *c, struct tc_slice bytes, struct tc_rstr *owner, bool plain, bool end)
{
    struct tc_call_messages *m = &c->messages;
    struct tc_send_message *message = tc_send_buffer_push(&m->send, &c->arena, bytes, owner);
    message->plain = plain;
    m->sending = true;
    m->half_close = end;
    if (c->hedge)
        c->hedge->ops->send(c->hedge, message);
    else
        tc_call_flush(c);
}

/* --- interceptors, both ways --- */

static void on_sent_passed(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call *c = w->owner;
    if (end == TC_WALK_FAILED) {
        tc_call_fail(c, tc_status_ref(&w->failure));
    } else if (end == TC_WALK_PASSED) {
        struct tc_rstr *message = w->message;
        w->message = NULL;
        if (message->len <= TC_H2_MESSAGE_MAX) {
            message_push(c, tc_rstr_slice(message), message, c->rpc->sent_plain, c->rpc->sent_last);
        } else {
            tc_call_too_large(c, message->len);
            tc_rstr_unref(message);
        }
    }
}

void tc_call_send_held(struct tc_call *c)
{
    struct tc_walk *w = &c->rpc->sent;
    if (w->message && c->stage != TC_CALL_DONE)
        on_sent_passed(w, tc_walk_begin(w, c->rpc, TC_HOOK_MESSAGE, false));
}

/* The message passes the interceptors, at once or when the request has passed on_start. Takes over the owner; if there
 * is none, copies the bytes. */
TC_APART static void message_intercept(struct tc_call *c, struct tc_slice bytes, struct tc_rstr *owner, bool plain,
                                       bool end)
{
    torc_rpc *rpc = c->rpc;
    c->messages.sending = true;
    rpc->sent.message = owner ? owner : tc_rstr_new(bytes.data, bytes.len);
    rpc->sent.owner = c;
    rpc->sent.resumed = on_sent_passed;
    rpc->sent_plain = plain;
    rpc->sent_last = end;
    if (rpc->begun)
        tc_call_send_held(c);
}

/* Takes over the reference. */
static void message_give(struct tc_call *c, struct tc_rstr *message)
{
    if (c->events->on_message)
        c->events->on_message(c->arg, message);
    else
        tc_rstr_unref(message);
}

static void on_received_passed(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call *c = w->owner;
    if (end == TC_WALK_WAITS) {
        /* The timer may have fired without ending the call, because only the application was late (has_ended in
         * deadline.c). The deadline counts for interceptors, so the timer starts again. */
        if (c->stage != TC_CALL_DONE && c->deadline.at_ns <= tc_loop_now_ns(c->channel->loop))
            tc_call_deadline_arm(c);
        return;
    }
    if (end == TC_WALK_PASSED) {
        struct tc_rstr *message = w->message;
        w->message = NULL;
        message_give(c, message);
    }
    const struct tc_status *failure = end == TC_WALK_FAILED ? &w->failure : NULL;
    if (c->stage == TC_CALL_DONE && c->rpc->waits_at_end)
        tc_call_outcome_next(c, failure);
    else if (failure)
        tc_call_fail(c, tc_status_ref(failure));
    else if (c->hedge)
        c->hedge->ops->read(c->hedge);
    else
        tc_call_flush_reads(c);
}

/* Takes over the reference. */
TC_APART static void message_intercept_received(struct tc_call *c, struct tc_rstr *message)
{
    struct tc_walk *w = &c->rpc->received;
    w->message = message;
    w->owner = c;
    w->resumed = on_received_passed;
    on_received_passed(w, tc_walk_begin(w, c->rpc, TC_HOOK_MESSAGE, true));
}

void tc_call_deliver(struct tc_call *c, struct tc_rstr *message)
{
    c->messages.reads--;
    c->messages.reads_given--;
    if (TC_LIKELY(!c->rpc) || !tc_rpc_has(c->rpc, TC_HOOK_MESSAGE)) {
        message_give(c, message);
        return;
    }
    message_intercept_received(c, message);
}

/* --- sending --- */

/* Takes over the owner, also on failure; NULL: the bytes live as long as the call. */
static int message_send(struct tc_call *c, struct tc_slice bytes, struct tc_rstr *owner, bool plain, bool end)
{
    struct tc_call_messages *m = &c->messages;
    if (c->stage == TC_CALL_DONE || m->sending || m->half_close) {
        tc_rstr_unref(owner);
        return c->stage == TC_CALL_DONE ? TORC_ECLOSED : TORC_ESTATE;
    }
    if (bytes.len > TC_H2_MESSAGE_MAX) {
        tc_call_too_large(c, bytes.len);
        tc_rstr_unref(owner);
        return TORC_ELIMIT;
    }
    if (TC_UNLIKELY(c->rpc != NULL) && tc_rpc_has(c->rpc, TC_HOOK_MESSAGE))
        message_intercept(c, bytes, owner, plain, end);
    else
        message_push(c, bytes, owner, plain, end);
    return 0;
}

int tc_call_send(struct tc_call *c, struct tc_rstr *message, bool end)
{
    return message_send(c, tc_rstr_slice(message), message, false, end);
}

int tc_call_send_plain(struct tc_call *c, struct tc_rstr *message, bool end)
{
    return message_send(c, tc_rstr_slice(message), message, true, end);
}

int tc_call_send_borrowed(struct tc_call *c, struct tc_slice message, bool end)
{
    return message_send(c, message, NULL, false, end);
}

int tc_call_send_end(struct tc_call *c)
{
    if (c->stage == TC_CALL_DONE)
        return TORC_ECLOSED;
    if (c->messages.half_close)
        return TORC_ESTATE;
    if (TC_UNLIKELY(c->rpc != NULL) && c->rpc->sent.message) { /* goes behind the message that interceptors hold */
        bool before = c->rpc->sent_last;
        c->rpc->sent_last = true;
        return before ? TORC_ESTATE : 0;
    }
    c->messages.half_close = true;
    if (c->hedge)
        c->hedge->ops->send(c->hedge, NULL);
    else
        tc_call_flush(c);
    return 0;
}

void tc_call_flush(struct tc_call *c)
{
    struct tc_call_messages *m = &c->messages;
    struct tc_h2_stream *stream = c->attempt.stream;
    if (!stream || m->writing || m->end_sent)
        return;
    const struct tc_send_message *message = m->send.next;
    if (!message) {
        if (m->half_close && tc_h2_client_stream_send_end(stream) == 0)
            m->end_sent = true;
        return;
    }
    bool end = m->half_close && !message->next;
    int rc = tc_h2_stream_send(stream, message->bytes, c->asked.gzip && !message->plain, end);
    if (rc == TORC_ELIMIT) {
        tc_call_too_large(c, tc_h2_stream_rejected_bytes(stream));
        return;
    }
    m->writing = true;
    m->end_sent = end;
    /* The stream is over, and reports that when the received messages have been read. The message counts as
     * written. */
    if (rc != 0)
        tc_loop_defer(c->channel->loop, &m->dropped);
}

void tc_call_on_written(void *arg)
{
    struct tc_call *c = arg;
    struct tc_call_messages *m = &c->messages;
    m->writing = false;
    tc_call_tell_wire(c, TORC_WIRE_SENT, m->send.next->bytes.len, TORC_STATUS_OK);
    m->send.next = m->send.next->next;
    m->n_written++;
    if (!m->committed && tc_call_over_buffer(c))
        tc_call_commit(c);
    else if (m->committed)
        tc_send_buffer_drop_written(&m->send);
    bool notified = m->n_written <= m->n_notified;
    tc_call_flush(c);
    if (notified || c->stage == TC_CALL_DONE)
        return;
    m->n_notified = m->n_written;
    m->sending = false;
    if (c->events->on_written)
        c->events->on_written(c->arg);
}

static void on_dropped(struct tc_task *task)
{
    tc_call_on_written(TC_CONTAINER_OF(task, struct tc_call, messages.dropped));
}

void tc_call_messages_init(struct tc_call *c)
{
    tc_task_init(&c->messages.dropped, on_dropped);
    if (!c->parent) /* what hedged attempts keep are references to the parent's messages */
        c->messages.send.channel_bytes = &c->channel->calls.kept_bytes;
}

void tc_call_messages_rewind(struct tc_call *c)
{
    struct tc_call_messages *m = &c->messages;
    m->send.next = m->send.first;
    m->n_written = 0;
    m->writing = false;
    m->end_sent = false;
    m->reads_given = 0;
    tc_task_cancel(&m->dropped);
}

/* --- receiving --- */

void tc_call_flush_reads(struct tc_call *c)
{
    while (c->attempt.stream && c->messages.reads_given < c->messages.reads && tc_call_may_read(c)) {
        c->messages.reads_given++;
        tc_h2_stream_read(c->attempt.stream);
    }
}

void tc_call_read(struct tc_call *c, uint32_t n)
{
    if (c->stage == TC_CALL_DONE || n > UINT32_MAX - c->messages.reads)
        return;
    c->messages.reads += n;
    if (c->hedge)
        c->hedge->ops->read(c->hedge);
    else
        tc_call_flush_reads(c);
}

void tc_call_on_message(void *arg, struct tc_rstr *message)
{
    struct tc_call *c = arg;
    if (!c->messages.committed)
        tc_call_commit(c);
    tc_call_tell_wire(c, TORC_WIRE_RECEIVED, message->len, TORC_STATUS_OK);
    tc_call_deliver(c, message);
}
