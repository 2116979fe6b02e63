/* The client's half of a call: opening it, and how it ends.
 *
 * A call has one outcome, and the first one counts. It comes from the response (client_response.c), a failure found on
 * this side (finish, abort), RST_STREAM or GOAWAY (on_close), or the end of the connection (on_conn_lost). Two failures
 * replace an earlier outcome: a message that cannot be taken (give_up), and an OK response that ends within a message.
 *
 * on_done comes after the owner has asked for, and got, all whole messages that arrived before the end, unless give_up
 * dropped them. So a call may outlive nghttp2's stream, the byte stream, and the owner's use of the connection.
 *
 * The stream lies in the call's arena. tc_h2_stream_release takes the stream off the connection before on_done, at a
 * cancel, or at tc_h2_conn_close if the outcome is not known; s->c is NULL from then on. Loop thread only. */
#include "http2/client_stream.h"

#include "http2/client_stream_internal.h"
#include "http2/status_mapping.h"

/* --- opening --- */

static struct tc_h2_stream *stream_open_error(int rc, int *error)
{
    *error = rc;
    return NULL;
}

/* Returns true if the request's headers exceed our own limit or the peer's (RFC 9113 10.5.1), with a status in *why
 * that the caller owns. */
static bool request_too_large(struct tc_h2_conn *c, const struct tc_h2_request *request, struct tc_status *why)
{
    size_t theirs = nghttp2_session_get_remote_settings(c->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
    size_t ours = c->opts.limits.max_request_header_bytes;
    size_t size = tc_h2_request_size(request);
    if (size <= TC_MIN(theirs, ours))
        return false;
    *why =
        tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT, "request headers larger than %s (%zu vs. %zu)",
                       theirs <= ours ? "the server takes" : "max_request_header_bytes", size, TC_MIN(theirs, ours));
    return true;
}

struct tc_h2_stream *tc_h2_client_stream_open(struct tc_h2_conn *c, const struct tc_h2_request *request,
                                              struct tc_arena *arena, const struct tc_h2_client_events *events,
                                              void *arg, int *error)
{
    if (!c->ng || c->ending.draining || c->opts.server)
        return stream_open_error(TORC_ECLOSED, error);
    if (!tc_h2_conn_has_capacity(c)) {
        c->capacity_wanted = true;
        return stream_open_error(TORC_EAGAIN, error);
    }
    struct tc_h2_client_stream *client = tc_arena_calloc(arena, 1, sizeof(*client));
    if (!client)
        return stream_open_error(TORC_ELIMIT, error);
    struct tc_h2_stream *s = &client->stream;
    tc_h2_stream_init(s, c, arena);
    tc_headers_init(&client->trailers, arena);
    client->grpc_status = TC_H2_STATUS_NONE;
    s->events = &events->stream;
    s->arg = arg;
    s->send.encoding = request->encoding;
    client->aside = request->aside;
    if (request->has_limits) {
        s->recv.decoder.max_bytes = request->max_receive_message_bytes;
        s->send.max_bytes = request->max_send_message_bytes;
    }
    struct tc_status why;
    if (request_too_large(c, request, &why)) {
        client->unsendable = true;
        tc_h2_stream_drop_input(s);
        tc_h2_client_stream_finish(client, why, false);
        return s;
    }
    if (tc_h2_request_submit(client, request)) {
        /* Stream numbers are used up. */
        tc_h2_stream_release(s);
        tc_h2_conn_drain(c, "out of stream numbers");
        return stream_open_error(TORC_ECLOSED, error);
    }
    c->streams.active++;
    tc_h2_conn_flush_later(c);
    return s;
}

int tc_h2_client_stream_send_end(struct tc_h2_stream *s)
{
    if (!tc_h2_stream_live(s) || s->finished || s->send.end_wanted || s->server)
        return TORC_ESTATE;
    s->send.end_wanted = true;
    tc_h2_stream_resume(s);
    return 0;
}

bool tc_h2_client_stream_sent(const struct tc_h2_stream *s)
{
    return s->send.headers_sent;
}

bool tc_h2_client_stream_finished(const struct tc_h2_stream *s)
{
    return s->finished;
}

bool tc_h2_client_stream_sendable(const struct tc_h2_stream *s)
{
    return !TC_CONTAINER_OF(s, const struct tc_h2_client_stream, stream)->unsendable;
}

/* --- the end --- */

void tc_h2_client_stream_stop_sending(struct tc_h2_client_stream *client)
{
    struct tc_h2_stream *s = &client->stream;
    if (!s->send.active)
        return;
    s->send.active = false;
    s->send.on_written_due = s->send.headers_sent; /* else another attempt may write the message */
    tc_h2_stream_reset(s, NGHTTP2_NO_ERROR);
    tc_h2_stream_ready(s);
}

void tc_h2_client_stream_finish(struct tc_h2_client_stream *s, struct tc_status status, bool from_server)
{
    if (!tc_h2_stream_set_outcome(&s->stream, status))
        return;
    s->from_server = from_server;
    /* RFC 9113 8.1: the response may end before the request; the window for the request's rest may never open. */
    if (s->stream.recv.ended)
        tc_h2_client_stream_stop_sending(s);
}

void tc_h2_client_stream_abort(struct tc_h2_client_stream *s, struct tc_status status, uint32_t h2_error)
{
    tc_h2_stream_end_input(&s->stream);
    tc_h2_stream_reset(&s->stream, h2_error);
    tc_h2_client_stream_finish(s, status, false);
}

void tc_h2_client_stream_give_up(struct tc_h2_client_stream *s, struct tc_status status)
{
    tc_h2_stream_drop_input(&s->stream);
    if (s->stream.finished) {
        s->from_server = false;
        tc_status_set(&s->stream.outcome, status);
    } else {
        tc_h2_client_stream_abort(s, status, NGHTTP2_CANCEL);
    }
}

/* nghttp2 has let go of the stream, or the connection is gone: ends sending and receiving. Makes `status` and
 * `unprocessed` the outcome unless it is set already. Takes over the status. */
static void client_stream_lost(struct tc_h2_client_stream *client, struct tc_status status, bool unprocessed)
{
    struct tc_h2_stream *s = &client->stream;
    s->id = -1;
    /* on_done may wait for messages that are read later: on_written does not wait for them. */
    tc_h2_client_stream_stop_sending(client);
    if (!s->finished)
        client->unprocessed = unprocessed;
    if (!s->recv.ended)
        tc_h2_stream_end_input(s);
    tc_h2_client_stream_finish(client, status, false);
}

void tc_h2_client_stream_on_conn_lost(struct tc_h2_client_stream *s)
{
    client_stream_lost(s, tc_status_ref(&s->stream.c->ending.why), !s->stream.send.headers_sent);
}

void tc_h2_client_stream_on_close(struct tc_h2_client_stream *client, uint32_t h2_error)
{
    const struct tc_h2_stream *s = &client->stream;
    const struct tc_h2_ending *ending = &s->c->ending;
    bool refused = h2_error == NGHTTP2_REFUSED_STREAM;
    if (s->finished)
        client_stream_lost(client, (struct tc_status){0}, false);
    else if (ending->goaway_received && refused && (s->id > ending->goaway_last_id || !s->send.headers_sent))
        client_stream_lost(client, tc_status_ref(&ending->why), true);
    else if (s->send.reset_sent) /* by nghttp2 itself: our own resets come with an outcome */
        client_stream_lost(client,
                           tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                          "server broke the rules of HTTP/2: %s", nghttp2_http2_strerror(h2_error)),
                           false);
    else
        client_stream_lost(client, tc_h2_status_from_rst(h2_error), refused);
}

/* --- delivery --- */

static const struct tc_h2_client_events *client_events_of(const struct tc_h2_stream *s)
{
    return TC_CONTAINER_OF(s->events, const struct tc_h2_client_events, stream);
}

TC_APART static void client_stream_deliver_done(struct tc_h2_client_stream *client)
{
    struct tc_h2_stream *s = &client->stream;
    if (!s->recv.discard && tc_status_ok(&s->outcome) && !tc_h2_decoder_idle(&s->recv.decoder)) {
        tc_status_set(&s->outcome,
                      tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "response ends within a message"));
        client->from_server = false;
    }
    struct tc_h2_outcome outcome = {.status = s->outcome,
                                    .trailers = &client->trailers,
                                    .unprocessed = client->unprocessed,
                                    .unsent = client->unprocessed && !s->send.headers_sent,
                                    .rejected = client->unsendable,
                                    .from_server = client->from_server,
                                    .trailers_only = client->trailers_only};
    s->outcome = (struct tc_status){0};
    const struct tc_h2_client_events *events = client_events_of(s);
    void *arg = s->arg;
    /* If nghttp2 still holds the stream, the request is not complete, or a reset is queued: nothing more is sent. */
    tc_h2_stream_reset(s, NGHTTP2_NO_ERROR);
    tc_h2_stream_release(s);
    if (events->on_done)
        events->on_done(arg, &outcome);
    tc_status_fini(&outcome.status);
}

void tc_h2_client_stream_deliver(struct tc_h2_client_stream *client)
{
    struct tc_h2_stream *s = &client->stream;
    struct tc_h2_conn *c = s->c;
    c->streams.delivering = s;
    if (client->on_headers_due) {
        client->on_headers_due = false;
        if (client_events_of(s)->on_headers)
            client_events_of(s)->on_headers(s->arg, &s->headers);
        if (tc_h2_stream_went(c, s))
            return;
    }
    /* on_done may wait for messages that nobody asked for yet: on_written does not wait for them. */
    if (!tc_h2_stream_deliver_written(c, s))
        return;
    if (s->recv.wanted && tc_h2_stream_input_left(s) && !tc_h2_stream_deliver_messages(c, s))
        return;
    if (s->finished && !tc_h2_stream_input_left(s))
        client_stream_deliver_done(client);
    else
        c->streams.delivering = NULL;
}
