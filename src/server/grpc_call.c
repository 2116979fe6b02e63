/* One call of the server: a queue of messages before the stream, unary calls, deadlines. */
#include "base/mem.h"
#include "server/grpc_internal.h"

#define CANCEL 8u

static void on_deadline(struct tc_timer *timer)
{
    struct tc_server_call *call = TC_CONTAINER_OF(timer, struct tc_server_call, deadline);
    struct tc_h2_stream *stream = call->stream;
    struct tc_status why = tc_status_make(TORC_STATUS_DEADLINE_EXCEEDED, "deadline of the call passed");
    tc_server_call_end(call, &why);
    tc_status_fini(&why);
    tc_h2_stream_cancel(stream, CANCEL);
}

static void on_end_task(struct tc_task *task)
{
    struct tc_server_call *call = TC_CONTAINER_OF(task, struct tc_server_call, end);
    struct tc_h2_stream *stream = call->stream;
    uint32_t code = call->reset_code;
    struct tc_status why = tc_status_make(TORC_STATUS_CANCELLED, "call was reset by the server");
    tc_server_call_end(call, &why);
    tc_status_fini(&why);
    tc_h2_stream_cancel(stream, code);
}

static struct tc_rstr *pop_message(struct tc_server_call *call)
{
    struct tc_link *link = tc_list_pop(&call->queue);
    if (!link)
        return NULL;
    struct tc_server_out *out = TC_CONTAINER_OF(link, struct tc_server_out, link);
    struct tc_rstr *message = out->message;
    tc_free(out);
    return message;
}

void tc_server_call_end(struct tc_server_call *call, const struct tc_status *why)
{
    tc_list_remove(&call->link);
    tc_timer_stop(&call->deadline);
    tc_task_cancel(&call->end);
    call->conn->server->counts.open_calls--;
    call->ending = true;
    if (why && call->events && call->events->on_end)
        call->events->on_end(call->arg, why);
    struct tc_rstr *message;
    while ((message = pop_message(call)))
        tc_rstr_unref(message);
    tc_rstr_unref(call->current);
    tc_rstr_unref(call->request);
    tc_status_fini(&call->status);
    tc_arena_fini(&call->arena);
    tc_free(call);
}

/* Hands the next message to the stream, and with the last one the status, that both leave together. False when there
 * was nothing. */
static bool send_next(struct tc_server_call *call)
{
    if (!call->current && (call->current = pop_message(call)) &&
        tc_h2_stream_send(call->stream, tc_rstr_slice(call->current), call->compress, false) == TORC_ELIMIT)
        tc_server_call_reset(call, 2 /* INTERNAL_ERROR */);
    if (!call->ending && call->finish && !call->status_sent && tc_list_empty(&call->queue)) {
        call->status_sent = true;
        tc_h2_stream_send_status(call->stream, &call->status, &call->trailers);
    }
    return call->current || call->finish;
}

static void on_written(void *arg)
{
    struct tc_server_call *call = arg;
    if (call->current) {
        call->queued_bytes -= call->current->len;
        tc_rstr_unref(call->current);
        call->current = NULL;
    }
    if (!call->ending && !send_next(call) && call->events && call->events->on_written)
        call->events->on_written(call->arg);
}

static void on_unary_message(struct tc_server_call *call, struct tc_rstr *message)
{
    if (call->request) {
        tc_rstr_unref(message);
        tc_server_call_finish(call, TORC_STATUS_INTERNAL, "unary request of more than one message", NULL);
        return;
    }
    call->request = message;
    tc_h2_stream_read(call->stream);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_server_call *call = arg;
    if (!call->ending && call->method->unary)
        on_unary_message(call, message);
    else if (!call->ending && call->events && call->events->on_message)
        call->events->on_message(call->arg, message);
    else
        tc_rstr_unref(message);
}

static void on_half_close(void *arg)
{
    struct tc_server_call *call = arg;
    if (call->ending)
        return;
    if (!call->method->unary) {
        if (call->events && call->events->on_half_close)
            call->events->on_half_close(call->arg);
    } else if (!call->request) {
        tc_server_call_finish(call, TORC_STATUS_INTERNAL, "unary request without a message", NULL);
    } else {
        struct tc_rstr *request = call->request;
        call->request = NULL;
        call->method->unary(call->method->arg, call, request);
        tc_rstr_unref(request);
    }
}

static void on_end(void *arg, const struct tc_status *why)
{
    tc_server_call_end(arg, why);
}

static const struct tc_h2_stream_events stream_events = {
    .on_message = on_message, .on_half_close = on_half_close, .on_written = on_written, .on_end = on_end};

void tc_server_call_begin(struct tc_server_conn *conn, struct tc_h2_stream *stream,
                          const struct tc_server_method *method)
{
    struct tc_loop *loop = conn->server->loop;
    struct tc_server_call *call = TC_NEW(struct tc_server_call);
    call->conn = conn;
    call->stream = stream;
    call->method = method;
    tc_arena_init(&call->arena, 0, 0);
    tc_headers_init(&call->trailers, &call->arena);
    tc_list_init(&call->queue);
    tc_list_append(&conn->calls, &call->link);
    tc_timer_init(&call->deadline, loop, on_deadline);
    tc_task_init(&call->end, on_end_task);
    conn->server->counts.open_calls++;
    tc_h2_stream_set_events(stream, &stream_events, call);
    uint64_t timeout_ns = tc_h2_stream_timeout_ns(stream);
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

struct tc_slice tc_server_call_path(const struct tc_server_call *call)
{
    const struct tc_header *h = tc_headers_find(tc_h2_stream_request(call->stream), tc_slice_str(":path"));
    return h ? h->value : tc_slice_of(NULL, 0);
}

const struct tc_headers *tc_server_call_metadata(const struct tc_server_call *call)
{
    return tc_h2_stream_request(call->stream);
}

const struct tc_addr *tc_server_call_peer(const struct tc_server_call *call)
{
    return tc_h2_conn_peer(call->conn->h2);
}

uint64_t tc_server_call_connection(const struct tc_server_call *call)
{
    return call->conn->id;
}

struct tc_arena *tc_server_call_arena(struct tc_server_call *call)
{
    return &call->arena;
}

struct tc_server *tc_server_call_server(const struct tc_server_call *call)
{
    return call->conn->server;
}

void tc_server_call_read(struct tc_server_call *call)
{
    if (!call->ending)
        tc_h2_stream_read(call->stream);
}

void tc_server_call_send_headers(struct tc_server_call *call, const struct tc_headers *headers,
                                 enum tc_h2_encoding encoding)
{
    if (call->ending || tc_h2_stream_send_headers(call->stream, headers, encoding))
        return;
    call->compress = encoding != TC_H2_IDENTITY;
}

void tc_server_call_send_ref(struct tc_server_call *call, struct tc_rstr *message)
{
    if (call->ending || call->finish)
        return;
    struct tc_server_out *out = TC_NEW(struct tc_server_out);
    out->message = tc_rstr_ref(message);
    call->queued_bytes += message->len;
    tc_list_append(&call->queue, &out->link);
    send_next(call);
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
    call->status = text && *text ? tc_status_make(code, "%s", text) : (struct tc_status){.code = code};
    for (size_t i = 0; trailers && i < trailers->len; i++)
        tc_headers_add_copy(&call->trailers, trailers->data[i].name, trailers->data[i].value);
    send_next(call);
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
