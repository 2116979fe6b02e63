/* The server's half of a call: its life, and the response.
 *
 * A stream is made when nghttp2 begins to decode a request, and announced to the connection's owner once the request's
 * header block is complete (server_request.c). It ends with on_end (the trailers left, the stream was reset, or the
 * connection went), or without a callback when the owner cancels it or closes the connection. A request that
 * server_request.c rejects is answered without the owner, and a stream that goes before it was announced ends without a
 * callback. Up to MAX_SPARE streams that are over are kept for the next requests, with their arenas, poisoned under the
 * address sanitizer.
 *
 * The response: headers once (`responded`), then messages one at a time, then the status (send.end_wanted), which goes
 * as trailers, or as trailers-only if nothing was sent. write.c has the trailers submitted with the last DATA frame.
 *
 * The owner of a stream is the user of its events (server/call.c); the memory is the connection's. Loop thread only. */
#include "http2/server_stream.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/poison.h"
#include "http2/server_stream_internal.h"

#define LITERAL(text) tc_slice_of(text, sizeof(text) - 1)

enum {
    STATIC_BOTH = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE,
    OWN_FIELDS = 6,
    STACK_FIELDS = 24,
    ARENA_BYTES = 1024,
    MAX_SPARE = 32 /* a connection without streams keeps one (connection.c) */
};

/* --- life --- */

struct tc_h2_stream *tc_h2_server_stream_new(struct tc_h2_conn *c, int32_t id)
{
    struct tc_h2_server_stream *server = c->streams.spare;
    if (server) {
        c->streams.spare = server->next_spare;
        struct tc_arena arena = server->own_arena;
        tc_unpoison(server, sizeof(*server));
        *server = (struct tc_h2_server_stream){.own_arena = arena};
        c->streams.n_spare--;
    } else {
        server = TC_NEW(struct tc_h2_server_stream);
        tc_arena_init(&server->own_arena, ARENA_BYTES, 0);
    }
    struct tc_h2_stream *s = &server->stream;
    s->server = true;
    tc_h2_stream_init(s, c, &server->own_arena);
    tc_headers_init(&server->trailers, &server->own_arena);
    tc_list_init(&server->packing_link);
    s->id = id;
    return s;
}

/* Poisons all but own_arena and next_spare, which a spare stream uses. */
static void server_stream_poison(struct tc_h2_server_stream *s)
{
    tc_poison(s, offsetof(struct tc_h2_server_stream, own_arena));
    tc_poison(&s->on_stream_due, sizeof(*s) - offsetof(struct tc_h2_server_stream, on_stream_due));
}

static void server_stream_fini(struct tc_h2_server_stream *s)
{
    tc_unpoison(s, sizeof(*s));
    tc_arena_fini(&s->own_arena);
    tc_free(s);
}

void tc_h2_server_stream_free(struct tc_h2_conn *c, struct tc_h2_server_stream *s)
{
    tc_status_fini(&s->status);
    tc_h2_packing_end(s);
    if (c->ending.closed || c->streams.n_spare >= MAX_SPARE) {
        server_stream_fini(s);
        return;
    }
    tc_arena_reset(&s->own_arena);
    server_stream_poison(s);
    s->next_spare = c->streams.spare;
    c->streams.spare = s;
    c->streams.n_spare++;
}

void tc_h2_streams_drop_spare(struct tc_h2_conn *c, unsigned keep)
{
    while (c->streams.n_spare > keep) {
        struct tc_h2_server_stream *s = c->streams.spare;
        c->streams.spare = s->next_spare;
        c->streams.n_spare--;
        server_stream_fini(s);
    }
}

void tc_h2_server_stream_set_events(struct tc_h2_stream *s, const struct tc_h2_server_events *events, void *arg)
{
    s->events = &events->stream;
    s->arg = arg;
}

const struct tc_headers *tc_h2_server_stream_request(const struct tc_h2_stream *s)
{
    return &s->headers;
}

uint64_t tc_h2_server_stream_timeout_ns(const struct tc_h2_stream *s)
{
    return TC_CONTAINER_OF(s, const struct tc_h2_server_stream, stream)->timeout_ns;
}

void tc_h2_server_stream_limit_messages(struct tc_h2_stream *s, size_t max_bytes)
{
    s->recv.decoder.max_bytes = max_bytes;
}

void tc_h2_stream_keep(struct tc_h2_stream *s, size_t bytes)
{
    s->recv.kept = bytes;
    tc_h2_stream_held_changed(s);
}

size_t tc_h2_stream_held(const struct tc_h2_stream *s)
{
    return s->recv.held;
}

/* --- the response --- */

/* Stores the fields of the response headers that are not metadata. Returns their number. */
static size_t response_fields(nghttp2_nv *nva, enum tc_h2_encoding encoding)
{
    size_t n = 0;
    nva[n++] = tc_h2_nv(LITERAL(":status"), LITERAL("200"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL("content-type"), LITERAL("application/grpc"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL("grpc-accept-encoding"), LITERAL("identity,gzip"), STATIC_BOTH);
    if (encoding == TC_H2_GZIP)
        nva[n++] = tc_h2_nv(LITERAL("grpc-encoding"), LITERAL("gzip"), STATIC_BOTH);
    return n;
}

/* Stores grpc-status, and grpc-message if the status has a text. Returns their number. The fields borrow from `code`
 * and from the scratch buffer, in which scratch_room has made room. */
static size_t status_fields(struct tc_h2_conn *c, nghttp2_nv *nva, const struct tc_status *status, char code[16])
{
    size_t n = 0;
    struct tc_slice value = LITERAL("0");
    if (!tc_status_ok(status))
        value.data = code, value.len = (size_t)snprintf(code, 16, "%d", status->code);
    nva[n++] = tc_h2_nv(LITERAL("grpc-status"), value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    if (status->text && status->text->len) {
        size_t at = c->scratch.len;
        tc_grpc_message_encode(&c->scratch, tc_rstr_slice(status->text));
        nva[n++] = tc_h2_nv(LITERAL("grpc-message"), tc_slice_of(c->scratch.data + at, c->scratch.len - at),
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
    }
    return n;
}

/* Returns room for our own fields and the fields of h: the caller's array `stack`, or a larger array, which the caller
 * frees. `h` may be NULL. */
static nghttp2_nv *fields_room(nghttp2_nv *stack, const struct tc_headers *h)
{
    size_t more = h ? h->len : 0;
    return more <= STACK_FIELDS - OWN_FIELDS ? stack : tc_reallocarray(NULL, more + OWN_FIELDS, sizeof(*stack));
}

/* Empties the scratch buffer and reserves room for encoded binary values and the status text: they must not move while
 * fields point to them. */
static void scratch_room(struct tc_h2_conn *c, const struct tc_headers *h, const struct tc_status *status)
{
    tc_buf_clear(&c->scratch);
    tc_buf_reserve(&c->scratch, tc_h2_metadata_scratch(h) + (status && status->text ? 3 * status->text->len : 0) + 1);
}

/* Logs once for a connection: a client that takes few bytes must not fill the log. */
static void fields_log_too_large(struct tc_h2_conn *c, const struct tc_status *why)
{
    if (c->too_large_logged || !tc_log_enabled(TC_LOG_HTTP2, TORC_LOG_WARN))
        return;
    c->too_large_logged = true;
    char *peer = tc_addr_text(&c->peer);
    TC_LOG(TC_LOG_HTTP2, TORC_LOG_WARN, "%s: RPC reset with INTERNAL_ERROR: %s", peer, tc_status_text(why));
    tc_free(peer);
}

/* Returns true if the fields fit the client's MAX_HEADER_LIST_SIZE. Otherwise logs that, sets the outcome, resets the
 * stream, and returns false. */
static bool fields_allowed(struct tc_h2_stream *s, const nghttp2_nv *nva, size_t n)
{
    uint32_t max = nghttp2_session_get_remote_settings(s->c->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += nva[i].namelen + nva[i].valuelen + 32;
    if (bytes <= max)
        return true;
    struct tc_status why = tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                          "headers larger than the client takes (%zu vs. %u)", bytes, max);
    fields_log_too_large(s->c, &why);
    tc_h2_stream_set_outcome(s, why);
    tc_h2_stream_submit_reset(s, NGHTTP2_INTERNAL_ERROR);
    return false;
}

static void server_stream_submit_trailers_only(struct tc_h2_server_stream *s, const struct tc_status *status,
                                               const struct tc_headers *trailers)
{
    nghttp2_nv stack[STACK_FIELDS], *nva = fields_room(stack, trailers);
    char code[16];
    s->responded = s->stream.send.end_wanted = true;
    scratch_room(s->stream.c, trailers, status);
    size_t n = response_fields(nva, TC_H2_IDENTITY);
    n += status_fields(s->stream.c, nva + n, status, code);
    n += tc_h2_metadata_encode(&s->stream.c->scratch, trailers, nva + n);
    if (fields_allowed(&s->stream, nva, n))
        nghttp2_submit_response(s->stream.c->ng, s->stream.id, nva, n, NULL);
    tc_h2_conn_flush_later(s->stream.c);
    if (nva != stack)
        tc_free(nva);
}

void tc_h2_server_stream_submit_trailers(struct tc_h2_server_stream *s)
{
    nghttp2_nv stack[STACK_FIELDS], *nva = fields_room(stack, &s->trailers);
    char code[16];
    scratch_room(s->stream.c, &s->trailers, &s->status);
    size_t n = status_fields(s->stream.c, nva, &s->status, code);
    n += tc_h2_metadata_encode(&s->stream.c->scratch, &s->trailers, nva + n);
    if (fields_allowed(&s->stream, nva, n))
        nghttp2_submit_trailer(s->stream.c->ng, s->stream.id, nva, n);
    if (nva != stack)
        tc_free(nva);
}

int tc_h2_server_stream_send_headers(struct tc_h2_stream *s, const struct tc_headers *headers,
                                     enum tc_h2_encoding encoding)
{
    struct tc_h2_server_stream *server = tc_h2_server_stream_of(s);
    if (!tc_h2_stream_live(s) || server->responded || s->send.end_wanted)
        return TORC_ESTATE;
    nghttp2_nv stack[STACK_FIELDS], *nva = fields_room(stack, headers);
    server->responded = true;
    s->send.encoding = server->accepts_gzip ? encoding : TC_H2_IDENTITY;
    scratch_room(s->c, headers, NULL);
    size_t n = response_fields(nva, s->send.encoding);
    n += tc_h2_metadata_encode(&s->c->scratch, headers, nva + n);
    nghttp2_data_provider body = {.read_callback =
                                      s->send.encoding == TC_H2_GZIP ? tc_h2_packing_read : tc_h2_on_data_source_read};
    if (fields_allowed(s, nva, n))
        nghttp2_submit_response(s->c->ng, s->id, nva, n, &body);
    tc_h2_conn_flush_later(s->c);
    if (nva != stack)
        tc_free(nva);
    return 0;
}

int tc_h2_server_stream_send(struct tc_h2_stream *s, struct tc_slice message, bool compress)
{
    int rc = tc_h2_stream_send(s, message, compress, false);
    if (rc == 0 && compress && s->send.encoding == TC_H2_GZIP)
        tc_h2_packing_begin(tc_h2_server_stream_of(s));
    /* After a message that was rejected no headers are sent: the status may still go as trailers-only. */
    if (rc == 0 && !tc_h2_server_stream_of(s)->responded)
        tc_h2_server_stream_send_headers(s, NULL, TC_H2_IDENTITY);
    return rc;
}

int tc_h2_server_stream_send_status(struct tc_h2_stream *s, const struct tc_status *status,
                                    const struct tc_headers *trailers)
{
    struct tc_h2_server_stream *server = tc_h2_server_stream_of(s);
    if (!tc_h2_stream_live(s) || s->send.end_wanted)
        return TORC_ESTATE;
    tc_h2_stream_drop_input(s);
    if (!server->responded) {
        server_stream_submit_trailers_only(server, status, trailers);
        return 0;
    }
    server->status = tc_status_ref(status);
    for (size_t i = 0; trailers && i < trailers->len; i++)
        tc_headers_add_copy(&server->trailers, trailers->data[i].name, trailers->data[i].value);
    s->send.end_wanted = true;
    tc_h2_stream_resume(s);
    return 0;
}

/* --- the end --- */

void tc_h2_server_stream_abort(struct tc_h2_server_stream *s, struct tc_status status)
{
    tc_h2_stream_drop_input(&s->stream);
    if (s->stream.send.end_wanted || tc_h2_server_stream_send_status(&s->stream, &status, NULL) != 0) {
        tc_status_fini(&status);
        return;
    }
    s->aborted = true;
    tc_status_set(&s->status, status);
}

void tc_h2_server_stream_on_lost(struct tc_h2_server_stream *server, struct tc_status status)
{
    struct tc_h2_stream *s = &server->stream;
    s->id = -1;
    s->send.active = false;
    tc_h2_packing_end(server);
    if (server->rejected) {
        tc_status_fini(&status);
        tc_h2_stream_release(s);
        return;
    }
    tc_h2_stream_drop_input(s);
    if (!s->finished)
        tc_list_remove(&s->ready); /* the end is delivered at once, even if the stream rests */
    tc_h2_stream_set_outcome(s, status);
}

void tc_h2_server_stream_on_close(struct tc_h2_server_stream *s, uint32_t h2_error)
{
    struct tc_status status = {0};
    if (!s->stream.send.end_sent)
        status = tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_HTTP2, "stream reset with %s",
                                nghttp2_http2_strerror(h2_error));
    else if (s->aborted)
        status = tc_status_ref(&s->status);
    tc_h2_server_stream_on_lost(s, status);
}

/* --- delivery --- */

static const struct tc_h2_server_events *server_events_of(const struct tc_h2_stream *s)
{
    return TC_CONTAINER_OF(s->events, const struct tc_h2_server_events, stream);
}

/* Returns false if the stream went. */
static bool server_stream_deliver_request(struct tc_h2_server_stream *server)
{
    struct tc_h2_stream *s = &server->stream;
    struct tc_h2_conn *c = s->c;
    server->on_stream_due = false;
    if (c->events->on_stream)
        c->events->on_stream(c->arg, s);
    if (tc_h2_stream_went(c, s))
        return false;
    if (s->events)
        return true;
    tc_h2_stream_cancel(s, NGHTTP2_INTERNAL_ERROR);
    return false;
}

TC_APART static void server_stream_deliver_end(struct tc_h2_server_stream *server)
{
    struct tc_h2_stream *s = &server->stream;
    struct tc_h2_conn *c = s->c;
    struct tc_status why = s->outcome;
    s->outcome = (struct tc_status){0};
    if (s->events && server_events_of(s)->on_end)
        server_events_of(s)->on_end(s->arg, &why);
    tc_status_fini(&why);
    if (!tc_h2_stream_went(c, s))
        tc_h2_stream_release(s);
}

/* Calls on_half_close, once, after the client's last message. Aborts a call whose request ends within a message. */
static void server_stream_deliver_half_close(struct tc_h2_server_stream *server)
{
    struct tc_h2_stream *s = &server->stream;
    const struct tc_h2_receiver *recv = &s->recv;
    if (!recv->ended || !recv->wanted || recv->discard || s->finished || server->half_close_notified ||
        tc_h2_stream_input_left(s))
        return;
    if (!tc_h2_decoder_idle(&recv->decoder)) {
        tc_h2_server_stream_abort(
            server, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "request ends within a message"));
        return;
    }
    server->half_close_notified = true;
    if (server_events_of(s)->on_half_close)
        server_events_of(s)->on_half_close(s->arg);
}

void tc_h2_server_stream_deliver(struct tc_h2_server_stream *server)
{
    struct tc_h2_stream *s = &server->stream;
    struct tc_h2_conn *c = s->c;
    c->streams.delivering = s;
    if (server->on_stream_due && !server_stream_deliver_request(server))
        return;
    if (server->rejected)
        return;
    if (s->finished) {
        server_stream_deliver_end(server);
        return;
    }
    if (!tc_h2_stream_deliver_written(c, s))
        return;
    if (s->recv.wanted && tc_h2_stream_input_left(s) && !tc_h2_stream_deliver_messages(c, s))
        return;
    server_stream_deliver_half_close(server);
    c->streams.delivering = NULL;
}
