/* What was received, on its way to the owner: decoding by demand, and the callbacks in their order. */
#include "http2/internal.h"

/* One stream's messages in one go; then the others have their turn. */
#define MESSAGES_AT_ONCE 16
#define CONSUME_BYTES 4096u

/* The stream's window opens by what was taken out of it. nghttp2 opens it by halves, so that it need not hear of every
 * few bytes; of a response in one piece it hears nothing. */
static void consume(struct tc_h2_stream *s, size_t len)
{
    struct tc_h2_conn *c = s->c;
    s->unconsumed += (uint32_t)len;
    if (!s->unconsumed || s->unconsumed < TC_MIN(CONSUME_BYTES, c->bdp.window_bytes / 16) || !c->ng || s->id <= 0 ||
        s->remote_ended)
        return;
    nghttp2_session_consume_stream(c->ng, s->id, s->unconsumed);
    s->unconsumed = 0;
    if (nghttp2_session_want_write(c->ng))
        tc_h2_conn_flush_later(c);
}

/* The stream cannot go on: what was announced cannot come. The outcome of the peer's, if it is there
 * already, does not count. */
static void give_up(struct tc_h2_stream *s, struct tc_status error)
{
    if (s->finished && !s->server) {
        s->discard = true;
        s->from_server = false;
        tc_status_set(&s->outcome, error);
    } else {
        tc_h2_stream_abort(s, error, NGHTTP2_CANCEL);
    }
}

/* A few bytes may become a message of the largest size, and take as long; those that become too much do. */
static void count_inflated(struct tc_h2_stream *s)
{
    size_t bytes = s->message ? s->message->len : s->decoder.max_bytes;
    s->c->inflated += TC_MIN(bytes, (size_t)TC_H2_INFLATED_AT_ONCE);
}

static bool inflated_much(const struct tc_h2_stream *s)
{
    return s->c->inflated >= TC_H2_INFLATED_AT_ONCE;
}

/* Decodes up to one message; how much was used, which is taken out of the window. */
static size_t decode(struct tc_h2_stream *s, const void *data, size_t len)
{
    size_t used = 0;
    struct tc_status error;
    bool before = s->decoder.msg != NULL;
    int rc = tc_h2_decoder_push(&s->decoder, data, len, &used, &s->message, &error);
    if ((rc || s->message) && s->decoder.prefix[0])
        count_inflated(s);
    if (rc) {
        give_up(s, error);
        consume(s, len);
        return len;
    }
    consume(s, used);
    if (s->message) {
        tc_h2_stream_ready(s);
        if (s->c->opened_for == s)
            s->c->opened_for = NULL;
    } else if (!before && s->decoder.msg) {
        tc_h2_window_for_message(s, s->decoder.len - s->decoder.at);
    }
    return used;
}

void tc_h2_stream_pump(struct tc_h2_stream *s)
{
    while (s->wanted && !s->message && !s->discard && s->pending_at < s->pending.len && !inflated_much(s)) {
        s->pending_at += decode(s, s->pending.data + s->pending_at, s->pending.len - s->pending_at);
    }
    if (s->pending_at >= s->pending.len) {
        tc_buf_fini(&s->pending);
        s->pending_at = 0;
    }
}

static void keep_pending(struct tc_h2_stream *s, const uint8_t *data, size_t len)
{
    if (s->pending_at > s->pending.len / 2) {
        tc_buf_consume(&s->pending, s->pending_at);
        s->pending_at = 0;
    }
    if (!tc_buf_try_reserve(&s->pending, len)) {
        consume(s, len);
        give_up(s, tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, "no memory for %zu bytes that wait to be read",
                                  s->pending.len + len));
        return;
    }
    tc_buf_append(&s->pending, data, len);
}

void tc_h2_stream_on_data(struct tc_h2_stream *s, const uint8_t *data, size_t len)
{
    if (s->discard) {
        consume(s, len);
        return;
    }
    if (!s->server && !s->is_grpc) {
        consume(s, len);
        tc_h2_response_on_body(s, data, len);
        return;
    }
    while (len && s->wanted && !s->message && !s->discard && s->pending.len == 0 && !inflated_much(s)) {
        size_t used = decode(s, data, len);
        data += used;
        len -= used;
    }
    if (!len || s->discard)
        return;
    keep_pending(s, data, len);
    if (s->wanted && inflated_much(s))
        tc_h2_stream_ready(s);
}

static bool input_left(const struct tc_h2_stream *s)
{
    return s->message != NULL || s->pending_at < s->pending.len;
}

static bool gone(const struct tc_h2_conn *c, const struct tc_h2_stream *s)
{
    return c->delivering != s;
}

/* False when the stream went. */
static bool deliver_messages(struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && s->wanted && !s->discard; i++) {
        tc_h2_stream_pump(s);
        if (!s->message)
            break;
        struct tc_rstr *message = s->message;
        s->message = NULL;
        s->wanted--;
        if (!s->events->on_message) {
            tc_rstr_unref(message);
            continue;
        }
        s->events->on_message(s->arg, message);
        if (gone(c, s))
            return false;
    }
    if (s->wanted && input_left(s))
        tc_h2_stream_ready(s);
    return true;
}

/* Server: the client has sent its last message. */
static bool deliver_half_close(struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    if (!s->server || !s->remote_ended || !s->wanted || s->half_close_told || s->discard || s->finished ||
        input_left(s))
        return true;
    if (!tc_h2_decoder_idle(&s->decoder)) {
        tc_h2_stream_abort(s, tc_status_make(TORC_STATUS_INTERNAL, "request ends within a message"), NGHTTP2_NO_ERROR);
        return true;
    }
    s->half_close_told = true;
    if (s->events->on_half_close)
        s->events->on_half_close(s->arg);
    return !gone(c, s);
}

static void tell_done(struct tc_h2_stream *s)
{
    struct tc_h2_conn *c = s->c;
    if (!s->discard && tc_status_ok(&s->outcome) && !tc_h2_decoder_idle(&s->decoder)) {
        tc_status_set(&s->outcome, tc_status_make(TORC_STATUS_INTERNAL, "response ends within a message"));
        s->from_server = false;
    }
    struct tc_h2_outcome outcome = {.status = s->outcome,
                                    .trailers = &s->trailers,
                                    .unprocessed = s->unprocessed,
                                    .unsent = s->unprocessed && !s->headers_sent,
                                    .from_server = s->from_server,
                                    .trailers_only = s->trailers_only};
    s->outcome = (struct tc_status){0};
    const struct tc_h2_stream_events *events = s->events;
    void *arg = s->arg;
    if (c->ng && s->id > 0) {
        /* The server is done and we were not: nothing more is sent. */
        nghttp2_submit_rst_stream(c->ng, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
        tc_h2_conn_flush_later(c);
    }
    tc_h2_stream_release(s);
    if (events->on_done)
        events->on_done(arg, &outcome);
    tc_status_fini(&outcome.status);
}

static void tell_end(struct tc_h2_stream *s)
{
    struct tc_status why = s->outcome;
    s->outcome = (struct tc_status){0};
    if (s->events && s->events->on_end)
        s->events->on_end(s->arg, &why);
    tc_status_fini(&why);
}

static bool announce(struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    s->announce = false;
    if (c->events->on_stream)
        c->events->on_stream(c->arg, s);
    if (gone(c, s))
        return false;
    if (s->events)
        return true;
    tc_h2_stream_cancel(s, NGHTTP2_INTERNAL_ERROR);
    return false;
}

static bool deliver_headers_and_writes(struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    if (s->headers_due) {
        s->headers_due = false;
        if (s->events->on_headers)
            s->events->on_headers(s->arg, &s->headers);
        if (gone(c, s))
            return false;
    }
    if (s->written_due) {
        s->written_due = false;
        /* A client's end may wait for messages that nobody asked for yet: the writer hears of its message before. */
        if (s->events->on_written && !(s->server && s->finished))
            s->events->on_written(s->arg);
    }
    return !gone(c, s);
}

void tc_h2_stream_deliver(struct tc_h2_stream *s)
{
    struct tc_h2_conn *c = s->c;
    c->delivering = s;
    if (s->announce && !announce(c, s))
        return;
    if (s->refused)
        return;
    if (s->server && s->finished) {
        tell_end(s);
        if (!gone(c, s))
            tc_h2_stream_release(s);
        return;
    }
    if (!deliver_headers_and_writes(c, s) || !deliver_messages(c, s) || !deliver_half_close(c, s))
        return;
    if (!s->server && s->finished && (s->discard || !input_left(s)))
        tell_done(s);
    else
        c->delivering = NULL;
}
