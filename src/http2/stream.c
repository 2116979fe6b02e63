/* One call on a connection: opening, sending, reading, ending. */
#include "http2/stream.h"

#include "base/mem.h"
#include "http2/internal.h"

#define MAX_SEND_HEADER_BYTES (512u * 1024u)

void tc_h2_stream_init(struct tc_h2_stream *s, struct tc_h2_conn *c, struct tc_arena *arena)
{
    s->c = c;
    s->arena = arena;
    s->id = -1;
    s->grpc_status = -1;
    s->max_header_bytes = c->opts.limits.max_header_list_bytes;
    tc_list_init(&s->ready);
    tc_headers_init(&s->headers, arena);
    tc_headers_init(&s->trailers, arena);
    tc_headers_init(&s->out_trailers, arena);
    tc_h2_decoder_init(&s->decoder, c->opts.limits.max_receive_message_bytes);
    s->decoder.blocks = tc_loop_blocks(c->loop);
    tc_list_append(&c->streams, &s->link);
    c->n_streams++;
}

void tc_h2_stream_ready(struct tc_h2_stream *s)
{
    if (tc_list_linked(&s->ready))
        return;
    tc_list_append(&s->c->ready, &s->ready);
    tc_h2_conn_deliver_later(s->c);
}

/* True while nghttp2 holds the stream. */
static bool live(const struct tc_h2_stream *s)
{
    return s->c && s->c->ng && s->id > 0;
}

static void drop_input(struct tc_h2_stream *s)
{
    s->discard = true;
    tc_buf_fini(&s->pending);
    s->pending_at = 0;
    tc_rstr_unref(s->message);
    s->message = NULL;
    tc_h2_decoder_fini(&s->decoder);
}

void tc_h2_stream_release(struct tc_h2_stream *s)
{
    struct tc_h2_conn *c = s->c;
    if (live(s))
        nghttp2_session_set_stream_user_data(c->ng, s->id, NULL);
    if (c->delivering == s)
        c->delivering = NULL;
    if (c->opened_for == s)
        c->opened_for = NULL;
    tc_list_remove(&s->link);
    tc_list_remove(&s->ready);
    c->n_streams--;
    drop_input(s);
    tc_buf_fini(&s->body);
    tc_rstr_unref(s->out_compressed);
    s->out_compressed = NULL;
    tc_status_fini(&s->outcome);
    tc_status_fini(&s->out_status);
    s->id = -1;
    s->c = NULL;
    if (s->server)
        tc_h2_server_stream_free(c, s);
    tc_h2_conn_release(c);
}

void tc_h2_stream_stop_sending(struct tc_h2_stream *s)
{
    if (!s->sending)
        return;
    s->sending = false;
    s->written_due = true;
    if (live(s)) {
        nghttp2_submit_rst_stream(s->c->ng, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
        tc_h2_conn_flush_later(s->c);
    }
    tc_h2_stream_ready(s);
}

void tc_h2_stream_finish(struct tc_h2_stream *s, struct tc_status status, bool from_server)
{
    if (s->finished) {
        tc_status_fini(&status);
        return;
    }
    s->finished = true;
    s->from_server = from_server;
    s->outcome = status;
    tc_h2_stream_ready(s);
    /* RFC 9113 8.1: the response may end before the request, and the window for its rest may never open. */
    if (!s->server && s->remote_ended)
        tc_h2_stream_stop_sending(s);
}

void tc_h2_stream_abort(struct tc_h2_stream *s, struct tc_status status, uint32_t h2_error)
{
    drop_input(s);
    if (s->server) {
        if (!s->end_wanted)
            tc_h2_stream_send_status(s, &status, NULL);
        tc_status_fini(&status);
        return;
    }
    if (live(s)) {
        nghttp2_submit_rst_stream(s->c->ng, NGHTTP2_FLAG_NONE, s->id, h2_error);
        tc_h2_conn_flush_later(s->c);
    }
    tc_h2_stream_finish(s, status, false);
}

/* nghttp2 has let go of a stream, or the connection is gone: what was under way comes to nothing. */
static void lost(struct tc_h2_stream *s, struct tc_status status, bool unprocessed)
{
    s->id = -1;
    if (s->finished && !s->server)
        tc_h2_stream_stop_sending(s);
    s->sending = false;
    if (s->refused) {
        tc_status_fini(&status);
        tc_h2_stream_release(s);
        return;
    }
    if (!s->finished) {
        drop_input(s);
        s->unprocessed = unprocessed;
    }
    tc_h2_stream_finish(s, status, false);
}

void tc_h2_stream_on_conn_lost(struct tc_h2_stream *s)
{
    lost(s, tc_status_ref(&s->c->why), !s->headers_sent);
}

static struct tc_status server_end(const struct tc_h2_stream *s, uint32_t h2_error)
{
    if (s->end_sent)
        return (struct tc_status){0};
    return tc_status_make(TORC_STATUS_CANCELLED, "stream reset with %s", nghttp2_http2_strerror(h2_error));
}

void tc_h2_stream_on_close(struct tc_h2_stream *s, uint32_t h2_error)
{
    struct tc_h2_conn *c = s->c;
    if (s->server) {
        lost(s, server_end(s, h2_error), false);
    } else if (s->finished) {
        lost(s, (struct tc_status){0}, false);
    } else if (c->goaway_seen && h2_error == NGHTTP2_REFUSED_STREAM &&
               (s->id > c->goaway_last_id || !s->headers_sent)) {
        lost(s, tc_status_ref(&c->why), true);
    } else if (s->reset_sent) {
        lost(s,
             tc_status_make(TORC_STATUS_INTERNAL, "server broke the rules of HTTP/2: %s",
                            nghttp2_http2_strerror(h2_error)),
             false);
    } else {
        lost(s, tc_h2_status_from_rst(h2_error), h2_error == NGHTTP2_REFUSED_STREAM);
    }
}

static struct tc_h2_stream *open_error(int rc, int *error)
{
    *error = rc;
    return NULL;
}

/* RFC 9113 10.5.1: what the peer said that it would not take is not sent. */
static bool too_large(struct tc_h2_conn *c, const struct tc_h2_request *request, struct tc_status *why)
{
    size_t limit = nghttp2_session_get_remote_settings(c->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
    limit = TC_MIN(limit, (size_t)MAX_SEND_HEADER_BYTES);
    /* The estimate is a little high: look closer only where it matters. */
    size_t size = tc_h2_request_size(request);
    if (size <= limit)
        return false;
    *why = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, "request headers larger than the server takes (%zu vs. %zu)",
                          size, limit);
    return true;
}

struct tc_h2_stream *tc_h2_stream_open(struct tc_h2_conn *c, const struct tc_h2_request *request,
                                       struct tc_arena *arena, const struct tc_h2_stream_events *events, void *arg,
                                       int *error)
{
    if (!c->ng || c->draining || c->opts.server)
        return open_error(TORC_ECLOSED, error);
    if (!tc_h2_conn_has_capacity(c)) {
        c->capacity_wanted = true;
        return open_error(TORC_EAGAIN, error);
    }
    struct tc_h2_stream *s = tc_arena_calloc(arena, 1, sizeof(*s));
    if (!s)
        return open_error(TORC_ELIMIT, error);
    tc_h2_stream_init(s, c, arena);
    s->events = events;
    s->arg = arg;
    s->encoding = request->encoding;
    if (request->max_receive_message_bytes)
        s->decoder.max_bytes = request->max_receive_message_bytes;
    struct tc_status why;
    if (too_large(c, request, &why)) {
        drop_input(s);
        tc_h2_stream_finish(s, why, false);
        return s;
    }
    if (tc_h2_request_submit(s, request)) {
        /* Stream numbers are used up. */
        tc_h2_stream_release(s);
        tc_h2_conn_drain(c, "out of stream numbers");
        return open_error(TORC_ECLOSED, error);
    }
    c->active++;
    tc_h2_keepalive_wake(c);
    tc_h2_conn_flush_later(c);
    return s;
}

void tc_h2_stream_set_events(struct tc_h2_stream *s, const struct tc_h2_stream_events *events, void *arg)
{
    s->events = events;
    s->arg = arg;
}

struct tc_h2_conn *tc_h2_stream_conn(const struct tc_h2_stream *s)
{
    return s->c;
}

void tc_h2_stream_resume(struct tc_h2_stream *s)
{
    if (s->deferred)
        nghttp2_session_resume_data(s->c->ng, s->id);
    s->deferred = false;
    tc_h2_conn_flush_later(s->c);
}

int tc_h2_stream_send(struct tc_h2_stream *s, struct tc_slice message, bool compress, bool end)
{
    if (!live(s) || s->finished || s->sending || s->end_wanted)
        return TORC_ESTATE;
    if (message.len > s->c->opts.limits.max_send_message_bytes || message.len > UINT32_MAX)
        return TORC_ELIMIT;
    if (s->server && !s->responded)
        tc_h2_stream_send_headers(s, NULL, TC_H2_IDENTITY);
    tc_rstr_unref(s->out_compressed);
    s->out_compressed = compress && s->encoding == TC_H2_GZIP ? tc_h2_gzip(message) : NULL;
    s->out = s->out_compressed ? tc_rstr_slice(s->out_compressed) : message;
    tc_h2_prefix(s->out_prefix, s->out_compressed != NULL, s->out.len);
    s->out_at = 0;
    s->sending = true;
    s->end_wanted = end && !s->server;
    tc_h2_stream_resume(s);
    return 0;
}

int tc_h2_stream_send_end(struct tc_h2_stream *s)
{
    if (!live(s) || s->finished || s->end_wanted || s->server)
        return TORC_ESTATE;
    s->end_wanted = true;
    tc_h2_stream_resume(s);
    return 0;
}

void tc_h2_stream_read(struct tc_h2_stream *s)
{
    if (!s->c)
        return;
    s->wanted++;
    if (s->pending.len || s->message || s->finished || s->remote_ended)
        tc_h2_stream_ready(s);
}

void tc_h2_stream_cancel(struct tc_h2_stream *s, uint32_t h2_error)
{
    if (!s->c)
        return;
    if (live(s)) {
        nghttp2_submit_rst_stream(s->c->ng, NGHTTP2_FLAG_NONE, s->id, h2_error);
        tc_h2_conn_flush_later(s->c);
    }
    tc_h2_stream_release(s);
}
