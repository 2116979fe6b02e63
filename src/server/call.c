/* A call of the server.
 *
 * Messages to send wait in the call's queue. The stream takes one at a time, the next with on_written. The status
 * follows the last message.
 *
 * max_queued_bytes bounds the queued bytes of all calls, since a client that does not read makes us hold its messages.
 * Beyond it a stalled call is reset, or else a call of the client that makes us hold the most. A small RPC of another
 * client that takes its messages is not reset. max_unread_bytes bounds what clients send and nobody reads, for example
 * a unary request that its client does not end. Beyond it a call of the client that makes us hold the most ends.
 *
 * A call ends
 *
 *   with its stream (on_end);
 *   at its deadline: the client's deadline resets the stream, the method's sends a status if that is still possible;
 *   when a limit gives it up;
 *   after a reset by tc_server_call_reset, which handlers may call: the loop ends the call later;
 *   with its connection.
 *
 * Only tc_server_call_end frees a call.
 *
 * A unary method's handler is called once the server has read the request and the client has half-closed. Loop thread
 * only, except tc_server_places_give_back. */
#include "server/call.h"

#include "base/mem.h"
#include "http2/server_stream.h"
#include "server/server_internal.h"

/* Ends the call and resets its stream. Takes over the status. */
static void call_cut_off(struct tc_server_call *call, struct tc_status why, uint32_t code)
{
    struct tc_h2_stream *stream = call->stream;
    tc_server_call_end(call, &why);
    tc_status_fini(&why);
    tc_h2_stream_cancel(stream, code);
}

/* Ends the call. The client gets the status, or a reset with `code` if the stream has a message or a status already.
 * Takes over the status. */
static void call_end_by(struct tc_server_call *call, struct tc_status why, uint32_t code)
{
    struct tc_h2_stream *stream = call->stream;
    if (call->current || call->status_sent) {
        call_cut_off(call, why, code);
        return;
    }
    tc_server_call_end(call, &why);
    tc_server_stream_answer(stream, &why);
    tc_status_fini(&why);
}

static void call_on_deadline(struct tc_timer *timer)
{
    struct tc_server_call *call = TC_CONTAINER_OF(timer, struct tc_server_call, deadline);
    if (call->limited)
        call_end_by(call,
                    tc_status_make(TORC_STATUS_DEADLINE_EXCEEDED, TORC_LAYER_LIMIT,
                                   "the RPC took longer than the server allows for its method"),
                    TC_H2_CANCEL);
    else
        call_cut_off(call,
                     tc_status_make(TORC_STATUS_DEADLINE_EXCEEDED, TORC_LAYER_HTTP2, "deadline of the call passed"),
                     TC_H2_CANCEL);
}

static void call_on_end_task(struct tc_task *task)
{
    struct tc_server_call *call = TC_CONTAINER_OF(task, struct tc_server_call, end);
    call_cut_off(call, tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_HTTP2, "call was reset by the server"),
                 call->reset_code);
}

/* Takes the first message off the queue, and sets current_plain for it. Returns its reference, which the caller owns;
 * NULL: the queue is empty. */
static struct tc_rstr *call_pop_message(struct tc_server_call *call)
{
    struct tc_link *link = tc_list_pop(&call->queue);
    if (!link)
        return NULL;
    struct tc_server_out *out = TC_CONTAINER_OF(link, struct tc_server_out, link);
    struct tc_rstr *message = out->message;
    call->current_plain = out->plain;
    tc_free(out);
    return message;
}

/* Counts bytes for the call, its connection, peer and server; a difference below 0 wraps. */
static inline void call_add_queued(struct tc_server_call *call, size_t bytes)
{
    call->queued_bytes += bytes;
    tc_server_hold_bytes(call->conn, TC_SERVER_UNSENT, bytes);
}

/* Counts down bytes that were queued and have left, or are dropped. Moves the call to the end of the server's `unsent`,
 * or takes it off if it queues nothing. */
static void call_unqueue(struct tc_server_call *call, size_t bytes)
{
    struct tc_server *s = call->conn->server;
    call_add_queued(call, -TC_MIN(bytes, call->queued_bytes));
    tc_list_remove(&call->unsent);
    if (!call->queued_bytes)
        return;
    call->moved_ms = tc_loop_now_ms(s->loop);
    tc_list_append(&s->unsent, &call->unsent);
}

static void call_give_up(struct tc_server_call *call)
{
    call_unqueue(call, call->queued_bytes);
    tc_server_call_reset(call, TC_H2_ENHANCE_YOUR_CALM);
}

static size_t call_held(const struct tc_server_call *call, enum tc_server_held kind)
{
    return kind == TC_SERVER_UNSENT ? call->queued_bytes : tc_h2_stream_held(call->stream);
}

/* Returns the connection's call that holds the most; among equals `first` (may be NULL) if it is a call of the
 * connection. Returns NULL if there is no call. */
static struct tc_server_call *call_fullest(const struct tc_server_conn *conn, struct tc_server_call *first,
                                           enum tc_server_held kind)
{
    struct tc_server_call *fullest = first && first->conn == conn ? first : NULL;
    TC_LIST_FOREACH(it, &conn->calls)
    {
        struct tc_server_call *call = TC_CONTAINER_OF(it, struct tc_server_call, link);
        if (!fullest || call_held(call, kind) > call_held(fullest, kind))
            fullest = call;
    }
    return fullest;
}

bool tc_server_call_give_up_unread(struct tc_server_conn *conn)
{
    struct tc_server_call *call = call_fullest(conn, NULL, TC_SERVER_UNREAD);
    if (!call || !call_held(call, TC_SERVER_UNREAD))
        return false;
    call_end_by(call,
                tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                               "the server holds too many bytes of requests that are not read"),
                TC_H2_ENHANCE_YOUR_CALM);
    tc_server_hold_bytes(conn, TC_SERVER_UNREAD, tc_h2_conn_held(conn->h2) - conn->held[TC_SERVER_UNREAD]);
    return true;
}

/* Counts bytes that `call` has queued: a message, or the compressed form of `current`. If all calls together queue too
 * much, resets calls that have waited for their client the longest, or calls of the client that makes us hold the most.
 */
static void call_count_queued(struct tc_server_call *call, size_t bytes)
{
    struct tc_server *s = call->conn->server;
    uint64_t now_ms = tc_loop_now_ms(s->loop);
    if (!call->queued_bytes) {
        call->moved_ms = now_ms;
        tc_list_append(&s->unsent, &call->unsent);
    }
    call_add_queued(call, bytes);
    while (!call->ending && tc_server_holds_too_much(s, TC_SERVER_UNSENT, s->opts.max_queued_bytes)) {
        struct tc_server_call *first = TC_CONTAINER_OF(s->unsent.next, struct tc_server_call, unsent);
        if (now_ms - first->moved_ms < TC_SERVER_STALLED_MS)
            first = call_fullest(tc_server_conn_fullest(call->conn, TC_SERVER_UNSENT), call, TC_SERVER_UNSENT);
        call_give_up(first);
    }
}

static void call_drop_messages(struct tc_server_call *call)
{
    struct tc_rstr *message;
    while ((message = call_pop_message(call)))
        tc_rstr_unref(message);
    tc_rstr_clear(&call->current);
    call_unqueue(call, call->queued_bytes);
}

void tc_server_call_end(struct tc_server_call *call, const struct tc_status *why)
{
    struct tc_server_conn *conn = call->conn;
    tc_list_remove(&call->link);
    tc_timer_stop(&call->deadline);
    tc_task_cancel(&call->end);
    tc_server_tally_add(conn->server->tally, TORC_SERVER_OPEN_CALLS, -1ULL);
    call->method->calls--;
    tc_server_places_give_back(&call->places);
    call_unqueue(call, call->queued_bytes);
    call->ending = true;
    if (why && call->events && call->events->on_end)
        call->events->on_end(call->arg, why);
    call_drop_messages(call);
    tc_rstr_unref(call->request);
    tc_status_fini(&call->status);
    tc_arena_fini(&call->arena);
    tc_free(call);
    if (tc_list_empty(&conn->calls))
        tc_server_conn_quiet(conn);
}

/* The next message is too large: the call ends with RESOURCE_EXHAUSTED instead of this message and all later ones. */
static void call_reject_message(struct tc_server_call *call)
{
    size_t max = TC_MIN(call->conn->server->opts.http2.limits.max_send_message_bytes, (size_t)TC_H2_MESSAGE_MAX);
    struct tc_status status =
        tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_HTTP2,
                       "message to send larger than max (%zu vs. %zu)", tc_h2_stream_rejected_bytes(call->stream), max);
    call_drop_messages(call);
    call->trailers.len = 0;
    call->finish = call->rejected = true;
    tc_status_set(&call->status, status);
}

/* Hands the stream the next message unless it has one, and behind the last message the status: both leave in one write.
 * Returns false if the stream has no message and the call is not finished. */
static bool call_send_next(struct tc_server_call *call)
{
    if (!call->current && (call->current = call_pop_message(call)) &&
        tc_h2_server_stream_send(call->stream, tc_rstr_slice(call->current), call->compress && !call->current_plain) ==
            TORC_ELIMIT)
        call_reject_message(call);
    if (!call->ending && call->finish && !call->status_sent && tc_list_empty(&call->queue)) {
        call->status_sent = true;
        tc_h2_server_stream_send_status(call->stream, &call->status, &call->trailers);
    }
    return call->current || call->finish;
}

/* The current message has left: sends the next one. If none is queued and the call is not finished, calls the owner's
 * on_written. */
static void call_on_written(void *arg)
{
    struct tc_server_call *call = arg;
    tc_server_conn_moved(call->conn);
    if (call->current) {
        call->conn->served++;
        size_t len = call->current->len;
        call_unqueue(call, tc_server_message_cost(len) + call->compressed_bytes);
        call->compressed_bytes = 0;
        tc_rstr_clear(&call->current);
        if (!call->ending && call->events && call->events->on_sent)
            call->events->on_sent(call->arg, len);
    }
    if (!call->ending && !call_send_next(call) && call->events && call->events->on_written)
        call->events->on_written(call->arg);
}

/* Keeps the request of a unary call until the client half-closes. A second message ends the call. */
static void call_on_unary_message(struct tc_server_call *call, struct tc_rstr *message)
{
    if (call->request) {
        tc_rstr_unref(message);
        tc_server_call_finish(call, TORC_STATUS_INTERNAL, TC_SERVER_TWO_REQUESTS, NULL);
        return;
    }
    call->request = message;
    tc_h2_stream_keep(call->stream, message->len);
    tc_h2_stream_read(call->stream);
}

static void call_on_message(void *arg, struct tc_rstr *message)
{
    struct tc_server_call *call = arg;
    tc_server_conn_moved(call->conn);
    if (!call->ending && call->method->unary)
        call_on_unary_message(call, message);
    else if (!call->ending && call->events && call->events->on_message)
        call->events->on_message(call->arg, message);
    else
        tc_rstr_unref(message);
}

static void call_on_half_close(void *arg)
{
    struct tc_server_call *call = arg;
    if (call->ending)
        return;
    if (!call->method->unary) {
        if (call->events && call->events->on_half_close)
            call->events->on_half_close(call->arg);
    } else if (!call->request) {
        tc_server_call_finish(call, TORC_STATUS_INTERNAL, TC_SERVER_NO_REQUEST, NULL);
    } else {
        struct tc_rstr *request = call->request;
        call->request = NULL;
        tc_h2_stream_keep(call->stream, 0);
        call->method->unary(call->method->arg, call, request);
        tc_rstr_unref(request);
    }
}

static void call_on_compressed(void *arg, size_t bytes)
{
    struct tc_server_call *call = arg;
    if (call->ending)
        return;
    call->compressed_bytes = bytes;
    call_count_queued(call, bytes);
}

static void call_on_end(void *arg, const struct tc_status *why)
{
    struct tc_server_call *call = arg;
    struct tc_status sent = tc_status_ref(call->rejected && tc_status_ok(why) ? &call->status : why);
    tc_server_call_end(call, &sent);
    tc_status_fini(&sent);
}

static const struct tc_h2_server_events stream_events = {
    .stream = {.on_message = call_on_message, .on_written = call_on_written},
    .on_half_close = call_on_half_close,
    .on_end = call_on_end,
    .on_compressed = call_on_compressed,
};

/* Returns the client's timeout, or the method's if that is shorter or the client has none; sets `limited` for the
 * method's. 0: neither has one. */
static uint64_t call_timeout_ns(struct tc_server_call *call)
{
    uint64_t asked_ns = tc_h2_server_stream_timeout_ns(call->stream), most_ms = call->method->limits.max_timeout_ms;
    uint64_t most_ns = TC_MIN(most_ms, UINT64_MAX / TC_NS_PER_MS) * TC_NS_PER_MS;
    call->limited = most_ns && (!asked_ns || most_ns < asked_ns);
    return call->limited ? most_ns : asked_ns;
}

void tc_server_stream_answer(struct tc_h2_stream *stream, const struct tc_status *status)
{
    static const struct tc_h2_server_events no_events;
    tc_h2_server_stream_set_events(stream, &no_events, NULL);
    tc_h2_server_stream_send_status(stream, status, NULL);
}

void tc_server_call_begin(struct tc_server_conn *conn, struct tc_h2_stream *stream, struct tc_server_method *method)
{
    struct tc_loop *loop = conn->server->loop;
    struct tc_server_call *call = TC_NEW(struct tc_server_call);
    call->conn = conn;
    call->stream = stream;
    call->method = method;
    call->places.calls = method->limits.max_calls ? method->limits.shared_calls : NULL;
    if ((call->places.handlers = conn->handlers))
        tc_ref_inc(conn->handlers);
    tc_arena_init(&call->arena, 0, 0);
    tc_headers_init(&call->trailers, &call->arena);
    tc_list_init(&call->queue);
    tc_list_init(&call->unsent);
    tc_list_append(&conn->calls, &call->link);
    tc_timer_init(&call->deadline, loop, call_on_deadline);
    tc_task_init(&call->end, call_on_end_task);
    tc_server_tally_add(conn->server->tally, TORC_SERVER_OPEN_CALLS, 1);
    tc_h2_server_stream_set_events(stream, &stream_events, call);
    uint64_t timeout_ns = call_timeout_ns(call);
    if (method->limits.max_receive_message_bytes)
        tc_h2_server_stream_limit_messages(stream, method->limits.max_receive_message_bytes);
    uint64_t now_ns = tc_loop_now_ns(loop);
    call->deadline_ns = timeout_ns && timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
    if (timeout_ns)
        tc_timer_start(&call->deadline, (timeout_ns - 1) / TC_NS_PER_MS + 1);
    if (method->unary)
        tc_h2_stream_read(stream);
    else
        method->fn(method->arg, call);
}

void tc_server_call_set_events(struct tc_server_call *call, const struct tc_server_call_events *events, void *arg)
{
    call->events = events;
    call->arg = arg;
}

void tc_server_call_take_places(struct tc_server_call *call, struct tc_server_places *places)
{
    *places = call->places;
    call->places = (struct tc_server_places){0};
}

void tc_server_places_give_back(struct tc_server_places *places)
{
    if (places->calls)
        atomic_fetch_sub(places->calls, 1);
    if (places->handlers && tc_ref_dec(places->handlers))
        tc_free(places->handlers);
    *places = (struct tc_server_places){0};
}

struct tc_slice tc_server_call_path(const struct tc_server_call *call)
{
    const struct tc_header *h = tc_headers_find(tc_h2_server_stream_request(call->stream), tc_slice_str(":path"));
    return h ? h->value : tc_slice_of(NULL, 0);
}

const char *tc_server_call_peer(const struct tc_server_call *call)
{
    return call->conn->addr_text;
}

bool tc_server_call_secure(const struct tc_server_call *call)
{
    return call->conn->secure;
}

struct tc_tls_identity *tc_server_call_tls_peer(const struct tc_server_call *call)
{
    return call->conn->tls_peer;
}

void *tc_server_call_owner(const struct tc_server_call *call)
{
    return call->conn->server->opts.owner;
}

uint64_t tc_server_call_deadline_ns(const struct tc_server_call *call)
{
    return call->deadline_ns;
}

const struct tc_headers *tc_server_call_metadata(const struct tc_server_call *call)
{
    return tc_h2_server_stream_request(call->stream);
}

struct tc_arena *tc_server_call_arena(struct tc_server_call *call)
{
    return &call->arena;
}

void tc_server_call_keep(struct tc_server_call *call, size_t bytes)
{
    tc_h2_stream_keep(call->stream, bytes);
}

void tc_server_call_read(struct tc_server_call *call)
{
    if (!call->ending)
        tc_h2_stream_read(call->stream);
}

void tc_server_call_send_headers(struct tc_server_call *call, const struct tc_headers *headers,
                                 enum tc_h2_encoding encoding)
{
    if (call->ending || tc_h2_server_stream_send_headers(call->stream, headers, encoding))
        return;
    call->compress = encoding != TC_H2_IDENTITY;
}

static void call_queue(struct tc_server_call *call, struct tc_rstr *message, bool plain)
{
    if (call->ending || call->finish)
        return;
    struct tc_server_out *out = TC_NEW(struct tc_server_out);
    out->message = tc_rstr_ref(message);
    out->plain = plain;
    tc_list_append(&call->queue, &out->link);
    call_count_queued(call, tc_server_message_cost(message->len));
    if (!call->ending)
        call_send_next(call);
}

void tc_server_call_send_ref(struct tc_server_call *call, struct tc_rstr *message)
{
    call_queue(call, message, false);
}

void tc_server_call_send_plain(struct tc_server_call *call, struct tc_rstr *message)
{
    call_queue(call, message, true);
}

void tc_server_call_send(struct tc_server_call *call, struct tc_slice message)
{
    struct tc_rstr *copy = tc_rstr_new(message.data, message.len);
    tc_server_call_send_ref(call, copy);
    tc_rstr_unref(copy);
}

size_t tc_server_call_queued_bytes(const struct tc_server_call *call)
{
    return call->queued_bytes;
}

void tc_server_call_finish(struct tc_server_call *call, int code, const char *text, const struct tc_headers *trailers)
{
    if (call->ending || call->finish)
        return;
    call->finish = true;
    call->status =
        text && *text ? tc_status_make(code, TORC_LAYER_HTTP2, "%s", text) : (struct tc_status){.code = code};
    for (size_t i = 0; trailers && i < trailers->len; i++)
        tc_headers_add_copy(&call->trailers, trailers->data[i].name, trailers->data[i].value);
    call_send_next(call);
}

void tc_server_call_reply(struct tc_server_call *call, struct tc_slice message)
{
    tc_server_call_send(call, message);
    tc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

void tc_server_call_reset(struct tc_server_call *call, uint32_t h2_error)
{
    if (call->ending)
        return;
    call->ending = true;
    call->reset_code = h2_error;
    tc_loop_defer(call->conn->server->loop, &call->end);
}
