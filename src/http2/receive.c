/* DATA on its way to messages, by demand.
 *
 * Bytes that were not asked for wait undecoded in `pending`, and the stream's window is smaller by their number. Bytes
 * that are asked for are decoded at once, without a copy to `pending`, unless older bytes or a decoded message wait. At
 * most one decoded message waits, in recv.message. The stream owns the message until the delivery gives it to the
 * owner.
 *
 * stream_consume tells nghttp2 how many bytes were taken; nghttp2 sends WINDOW_UPDATE once half of the window was
 * taken. When the window has no room for the rest of a message that was asked for, stream_open_window enlarges it, up
 * to TC_H2_MAX_WINDOW, for one stream of a connection at a time.
 *
 * Inflated bytes count for the loop's ration (io/ration.h): a few compressed bytes must not hold up the loop. Once the
 * ration is used up, the bytes of streams whose encoding is gzip wait in `pending`.
 *
 * The functions run inside of nghttp2's callbacks (session.c), of the delivery (streams.c), and of the end of a
 * connection. So they call no owner and free no stream: a failure drops the input, and sets a client's outcome or sends
 * a server's status. Loop thread only. */
#include "http2/client_stream_internal.h"
#include "http2/server_stream_internal.h"

enum { CONSUME_BYTES = 4096 };

/* Gives bytes back to the stream's window. Small amounts are collected first, since nghttp2 sends WINDOW_UPDATE only
 * for half of the window; so a small response gives nothing back. */
static void stream_consume(struct tc_h2_stream *s, size_t len)
{
    struct tc_h2_conn *c = s->c;
    s->recv.unconsumed += (uint32_t)len;
    if (!s->recv.unconsumed || s->recv.unconsumed < TC_MIN(CONSUME_BYTES, c->bdp.window_bytes / 16) || !c->ng ||
        s->id <= 0 || s->recv.ended)
        return;
    nghttp2_session_consume_stream(c->ng, s->id, s->recv.unconsumed);
    s->recv.unconsumed = 0;
    if (nghttp2_session_want_write(c->ng))
        tc_h2_conn_flush_later(c);
}

/* Opens the stream's window for the `rest`, in bytes, of a message that the owner asked for, unless the window of
 * another stream of the connection is open for such a rest: several streams keep the connection busy anyway, and few
 * bytes under way fit the processor's caches. */
static void stream_open_window(struct tc_h2_stream *s, size_t rest)
{
    struct tc_h2_conn *c = s->c;
    if (!c->ng || s->id <= 0 || s->recv.ended || c->squeezed || (c->streams.opened_for && c->streams.opened_for != s))
        return;
    int32_t left = nghttp2_session_get_stream_local_window_size(c->ng, s->id);
    int32_t wanted = (int32_t)TC_MIN(rest, (size_t)TC_H2_MAX_WINDOW);
    if (left < 0 || wanted <= left)
        return;
    c->streams.opened_for = s;
    /* All bytes that came so far were taken: those that stream_consume has collected are given back too. */
    nghttp2_session_consume_stream(c->ng, s->id, s->recv.unconsumed);
    s->recv.unconsumed = 0;
    left = nghttp2_session_get_stream_local_window_size(c->ng, s->id);
    if (wanted > left)
        nghttp2_submit_window_update(c->ng, NGHTTP2_FLAG_NONE, s->id, wanted - left);
    tc_h2_conn_flush_later(c);
}

/* Ends the stream: a message is malformed or too large, or there is no memory for received bytes. Takes over the
 * status. */
static void stream_give_up(struct tc_h2_stream *s, struct tc_status status)
{
    if (tc_h2_stream_serves(s))
        tc_h2_server_stream_abort(tc_h2_server_stream_of(s), status);
    else
        tc_h2_client_stream_give_up(tc_h2_client_stream_of(s), status);
}

/* Counts a compressed message for the ration: a small one can inflate to the maximum size, which costs as much as
 * receiving that. A compressed message that was rejected counts as one of the maximum size. */
static void stream_count_inflated(struct tc_h2_stream *s)
{
    tc_ration_use(tc_loop_ration(s->c->loop), s->recv.message ? s->recv.message->len : s->recv.decoder.max_bytes);
}

/* Decodes up to one message. Returns how many bytes were used, which go back to the window. */
static size_t stream_decode(struct tc_h2_stream *s, const void *data, size_t len)
{
    size_t used = 0;
    struct tc_status error;
    bool before = s->recv.decoder.msg != NULL;
    int rc = tc_h2_decoder_push(&s->recv.decoder, data, len, &used, &s->recv.message, &error);
    if ((rc || s->recv.message) && s->recv.decoder.prefix[0])
        stream_count_inflated(s);
    if (rc) {
        stream_give_up(s, error);
        stream_consume(s, len);
        return len;
    }
    stream_consume(s, used);
    if (s->recv.message) {
        tc_h2_stream_ready(s);
        if (s->c->streams.opened_for == s)
            s->c->streams.opened_for = NULL;
    } else if (!before && s->recv.decoder.msg) {
        stream_open_window(s, s->recv.decoder.len - s->recv.decoder.at);
    }
    return used;
}

void tc_h2_stream_decode_pending(struct tc_h2_stream *s)
{
    struct tc_h2_pending *pending = &s->recv.pending;
    while (s->recv.wanted && !s->recv.message && pending->data && !tc_h2_stream_must_rest(s)) {
        struct tc_slice bytes = tc_h2_pending_bytes(pending);
        size_t used = stream_decode(s, bytes.data, bytes.len);
        /* After a failure stream_give_up has dropped `pending`. */
        tc_h2_pending_skip(pending, pending->data ? used : 0);
    }
}

void tc_h2_stream_end_input(struct tc_h2_stream *s)
{
    struct tc_h2_decoder *d = &s->recv.decoder;
    struct tc_slice bytes = tc_h2_pending_bytes(&s->recv.pending);
    size_t at = 0, whole = 0, have = d->have, body = d->msg ? d->len - d->at : 0;
    uint8_t prefix[TC_H2_PREFIX_LEN];
    s->recv.discard = true;
    /* Goes from message to message, beginning with the one that the decoder has begun, without decoding. `whole` is
     * where the last whole message ends in `bytes`. */
    memcpy(prefix, d->prefix, sizeof(prefix));
    while (bytes.len - at >= TC_H2_PREFIX_LEN - have) {
        if (have < TC_H2_PREFIX_LEN) {
            memcpy(prefix + have, (const char *)bytes.data + at, TC_H2_PREFIX_LEN - have);
            at += TC_H2_PREFIX_LEN - have;
            body = tc_h2_prefix_len(prefix);
        }
        if (bytes.len - at < body)
            break;
        whole = at += body;
        have = 0;
    }
    if (!whole)
        tc_h2_decoder_fini(d);
    tc_h2_pending_cut(&s->recv.pending, whole);
}

static void stream_keep_pending(struct tc_h2_stream *s, const uint8_t *data, size_t len)
{
    size_t waiting = tc_h2_pending_bytes(&s->recv.pending).len;
    if (tc_h2_pending_add(&s->recv.pending, data, len))
        return;
    stream_consume(s, len);
    stream_give_up(s, tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                                     "no memory for %zu bytes that wait to be read", waiting + len));
}

void tc_h2_stream_on_data(struct tc_h2_stream *s, const uint8_t *data, size_t len)
{
    if (s->recv.discard) {
        stream_consume(s, len);
        return;
    }
    if (!s->is_grpc && !tc_h2_stream_serves(s)) {
        stream_consume(s, len);
        tc_h2_response_on_body(tc_h2_client_stream_of(s), data, len);
        return;
    }
    while (len && s->recv.wanted && !s->recv.message && !s->recv.discard && !s->recv.pending.data &&
           !tc_h2_stream_must_rest(s)) {
        size_t used = stream_decode(s, data, len);
        data += used;
        len -= used;
    }
    if (len && !s->recv.discard) {
        stream_keep_pending(s, data, len);
        if (s->recv.wanted && tc_h2_stream_must_rest(s))
            tc_h2_stream_rest(s);
    }
    tc_h2_stream_held_changed(s);
}
