/* The nghttp2 session of a connection: its callbacks, and how it is set up.
 *
 * A callback only records and submits: it calls no owner, ends no connection and frees no session, since nghttp2 is at
 * work above it. (Only the data source of a server's stream calls its owner: on_compressed, packing.c.) A stream whose
 * owner is to be called becomes ready (tc_h2_stream_ready). An event that ends the connection becomes a violation, on
 * which read.c acts: once nghttp2 has taken the bytes that were read or, if nghttp2 was sending, at the connection's
 * next read.
 *
 *   header block   on_begin_headers, on_header, on_frame_recv: of the stream in streams.in_block. A callback must not
 *                  keep a pointer to the stream or to the block's fields: the stream may be released before the block
 *                  ends, and then in_block is NULL while nghttp2 goes on decoding.
 *   DATA           on_data_chunk: given to the stream at once (receive.c).
 *   sending        on_frame_send, on_frame_not_send; message bytes leave through write.c.
 *   the end        on_stream_close: nghttp2 lets go of a stream. Until then the stream counts for
 *                  MAX_CONCURRENT_STREAMS, even if its owner forgot it before (streams.active counts it as well).
 *
 * The session belongs to the connection (c->ng, conn_stop_io). nghttp2 keeps a borrowed pointer to each stream as the
 * stream's user data; it is NULL once the stream is released. Loop thread only. */
#include "base/parse.h"
#include "http2/client_stream_internal.h"
#include "http2/server_stream_internal.h"

enum {
    MAX_DEBUG_TEXT = 256,
    /* CONTINUATION frames of a header block (CVE-2024-28182). nghttp2 1.52 counts a frame again for each piece in which
     * its head arrives, so the limit is more than nghttp2's default of 8. */
    MAX_CONTINUATIONS = 24,
    HEADER_BLOCK_SLACK = 64, /* nghttp2's limit for headers is above our own limit by at least this */
    CONSUME_BYTES = 64 << 10 /* small beside the connection's window of 16 MiB */
};

static struct tc_h2_stream *stream_of(nghttp2_session *ng, int32_t id)
{
    return nghttp2_session_get_stream_user_data(ng, id);
}

static struct tc_slice text_of(const uint8_t *data, size_t len)
{
    return tc_slice_of(data, len);
}

static int session_on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *hd, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    return tc_h2_glitches_on_frame(&c->glitches, ng, hd);
}

static int session_on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = stream_of(ng, frame->hd.stream_id);
    tc_h2_glitches_on_block(&c->glitches, &frame->hd);
    if (tc_h2_conn_serves(c) && !s && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        c->streams.active++;
        /* After the last GOAWAY was submitted, a new request is beyond the last stream that the GOAWAY names: the
         * client may send the request again elsewhere. nghttp2 closes the stream when the GOAWAY leaves. */
        if (!c->ending.last_goaway_sent) {
            s = tc_h2_server_stream_new(c, frame->hd.stream_id);
            nghttp2_session_set_stream_user_data(ng, s->id, s);
            tc_h2_glitches_on_carried(&c->glitches);
        }
    }
    c->streams.in_block = s;
    if (!s)
        return 0;
    s->block.bytes = 0;
    s->block.over = false;
    if (!tc_h2_stream_serves(s))
        tc_h2_response_begin(tc_h2_client_stream_of(s));
    return 0;
}

static int session_on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t namelen,
                             const uint8_t *value, size_t valuelen, uint8_t flags, void *user_data)
{
    (void)ng, (void)frame, (void)flags;
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = c->streams.in_block;
    if (!s || s->recv.discard)
        return tc_h2_glitches_on_dropped(&c->glitches, namelen + valuelen);
    /* The rest of a block beyond the limit is decoded, since the compression state depends on it, and dropped. */
    s->block.bytes += namelen + valuelen + 32;
    if (TC_UNLIKELY(s->block.over || s->block.bytes > s->block.max_bytes)) {
        s->block.over = true;
        int rc = tc_h2_glitches_on_dropped(&c->glitches, namelen + valuelen);
        if (rc && !tc_h2_stream_serves(s)) /* nghttp2 stops inside the block: its end will not be seen */
            tc_h2_response_too_large(tc_h2_client_stream_of(s));
        return rc;
    }
    if (tc_h2_stream_serves(s))
        tc_h2_server_stream_on_header(tc_h2_server_stream_of(s), text_of(name, namelen), text_of(value, valuelen));
    else
        tc_h2_response_on_header(tc_h2_client_stream_of(s), text_of(name, namelen), text_of(value, valuelen));
    return 0;
}

/* Sends the PING that measures the path (bdp.h). `len`: the bytes of DATA that brought the PING about. */
static void session_ping_bdp(struct tc_h2_conn *c, size_t len)
{
    if (nghttp2_submit_ping(c->ng, NGHTTP2_FLAG_NONE, tc_h2_ping_bdp))
        return;
    tc_h2_bdp_start(&c->bdp, len, tc_loop_now_ns(c->loop));
    tc_h2_conn_flush_later(c);
}

void tc_h2_session_set_windows(struct tc_h2_conn *c)
{
    nghttp2_settings_entry iv = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->bdp.window_bytes};
    nghttp2_submit_settings(c->ng, NGHTTP2_FLAG_NONE, &iv, 1);
    tc_h2_conn_flush_later(c);
}

static int session_on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                                 void *user_data)
{
    (void)flags;
    struct tc_h2_conn *c = user_data;
    c->glitches.empty_frames = 0;
    /* The connection's window bounds only bytes that are on the way: a stream that nobody reads must not hold back the
     * others. */
    c->unconsumed += (uint32_t)len;
    if (c->unconsumed >= CONSUME_BYTES) {
        if (nghttp2_session_consume_connection(ng, c->unconsumed))
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        c->unconsumed = 0;
    }
    if (tc_h2_bdp_on_data(&c->bdp, len, c->loop))
        session_ping_bdp(c, len);
    struct tc_h2_stream *s = stream_of(ng, id);
    if (s)
        tc_h2_stream_on_data(s, data, len);
    return 0;
}

TC_APART static void session_on_goaway(struct tc_h2_conn *c, const nghttp2_goaway *g)
{
    size_t len = TC_MIN(g->opaque_data_len, (size_t)MAX_DEBUG_TEXT);
    struct tc_slice debug = text_of(g->opaque_data, len);
    tc_buf_clear(&c->scratch);
    tc_grpc_message_encode(&c->scratch, debug);
    c->ending.goaway_received = true;
    c->ending.goaway_in_use |= c->streams.n > 0;
    c->ending.goaway_last_id = g->last_stream_id;
    c->ending.too_many_pings = g->error_code == NGHTTP2_ENHANCE_YOUR_CALM && tc_slice_eq_str(debug, "too_many_pings");
    tc_h2_conn_start_drain(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "%s sent GOAWAY with %s%s%.*s",
                                             tc_h2_conn_serves(c) ? "client" : "server",
                                             nghttp2_http2_strerror(g->error_code), len ? ": " : "",
                                             (int)c->scratch.len, c->scratch.len ? c->scratch.data : ""));
}

TC_APART static void session_on_settings(struct tc_h2_conn *c)
{
    c->settings_seen = true;
    if (!c->ready_notified || c->capacity_wanted)
        tc_h2_conn_deliver_later(c);
}

TC_APART static void session_on_ping(struct tc_h2_conn *c, const nghttp2_ping *ping)
{
    if (!(ping->hd.flags & NGHTTP2_FLAG_ACK)) {
        tc_h2_keepalive_on_ping(c);
    } else if (memcmp(ping->opaque_data, tc_h2_ping_bdp, 8) == 0) {
        if (tc_h2_bdp_on_ack(&c->bdp, tc_loop_now_ns(c->loop)))
            tc_h2_session_set_windows(c);
    } else if (memcmp(ping->opaque_data, tc_h2_ping_drain, 8) == 0 && c->keepalive.age_state == TC_H2_AGE_NOTICE) {
        tc_timer_start(&c->keepalive.age, 0);
    }
}

static void session_on_end_stream(struct tc_h2_stream *s)
{
    s->recv.ended = true;
    if (tc_h2_stream_serves(s))
        tc_h2_stream_ready(s);
    else
        tc_h2_response_on_end(tc_h2_client_stream_of(s));
}

static int session_on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s;
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        s = c->streams.in_block;
        c->streams.in_block = NULL;
        if (s && tc_h2_stream_serves(s))
            tc_h2_server_stream_on_block(tc_h2_server_stream_of(s), end);
        else if (s)
            tc_h2_response_on_block(tc_h2_client_stream_of(s), end);
        break;
    case NGHTTP2_DATA:
        tc_h2_glitches_on_data(&c->glitches, &frame->data);
        s = end ? stream_of(ng, frame->hd.stream_id) : NULL;
        if (s)
            session_on_end_stream(s);
        break;
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            session_on_settings(c);
        break;
    case NGHTTP2_PING:
        session_on_ping(c, &frame->ping);
        break;
    case NGHTTP2_GOAWAY:
        session_on_goaway(c, &frame->goaway);
        break;
    default:
        break;
    }
    return 0;
}

static int session_on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user_data)
{
    (void)user_data;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct tc_h2_stream *s = stream_of(ng, frame->hd.stream_id);
    if (s && !tc_h2_stream_serves(s))
        tc_h2_client_stream_finish(tc_h2_client_stream_of(s),
                                   tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                                  "server sent an invalid HTTP/2 header block: %s",
                                                  nghttp2_strerror(error)),
                                   false);
    return 0;
}

static int session_on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = stream_of(ng, id);
    c->streams.active--;
    tc_h2_conn_stream_gone(c);
    if (s && tc_h2_stream_serves(s)) {
        if (!s->send.end_sent && !s->finished) /* finished: this side has given the stream up */
            tc_h2_glitches_on_cancel(&c->glitches);
        tc_h2_server_stream_on_close(tc_h2_server_stream_of(s), code);
    } else if (s)
        tc_h2_client_stream_on_close(tc_h2_client_stream_of(s), code);
    return 0;
}

/* Our GOAWAY for an error becomes the reason why the connection ends, unless a reason is known already. nghttp2 sends
 * such a GOAWAY by itself when the peer breaks a rule of HTTP/2. */
static void session_on_goaway_sent(struct tc_h2_conn *c, const nghttp2_goaway *g)
{
    if (g->error_code == NGHTTP2_NO_ERROR || !tc_status_ok(&c->ending.why))
        return;
    size_t len = TC_MIN(g->opaque_data_len, (size_t)MAX_DEBUG_TEXT);
    tc_status_set(&c->ending.why,
                  tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "connection ended with %s%s%.*s",
                                 nghttp2_http2_strerror(g->error_code), len ? ": " : "", (int)len,
                                 len ? (const char *)g->opaque_data : ""));
}

/* The peer may still send as much as the stream's window permits: the window as nghttp2 knows it, or a larger one that
 * was announced and not acknowledged yet. */
static void session_on_reset_sent(struct tc_h2_conn *c, int32_t id)
{
    int32_t left = nghttp2_session_get_stream_local_window_size(c->ng, id);
    tc_h2_glitches_on_reset(&c->glitches, TC_MAX((uint32_t)TC_MAX(left, 0), c->bdp.window_bytes));
}

static int session_on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        tc_h2_keepalive_on_sent(c);
        tc_h2_keepalive_wake(c);
        s = stream_of(ng, frame->hd.stream_id);
        if (!s)
            break;
        s->send.headers_sent = true;
        if (tc_h2_stream_serves(s) && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
            s->send.end_sent = true;
            /* RFC 9113 8.1: the rest of the request is not wanted. */
            if (!s->recv.ended)
                nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
        }
        break;
    case NGHTTP2_DATA:
        tc_h2_keepalive_on_sent(c);
        tc_h2_glitches_on_carried(&c->glitches);
        break;
    case NGHTTP2_RST_STREAM:
        session_on_reset_sent(c, frame->hd.stream_id);
        s = stream_of(ng, frame->hd.stream_id);
        if (s)
            s->send.reset_sent = true;
        break;
    case NGHTTP2_GOAWAY:
        session_on_goaway_sent(c, &frame->goaway);
        break;
    default:
        break;
    }
    return 0;
}

static int session_on_frame_not_send(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user_data)
{
    (void)user_data;
    struct tc_h2_stream *s = stream_of(ng, frame->hd.stream_id);
    if (!s || frame->hd.type != NGHTTP2_HEADERS || error == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED)
        return 0;
    struct tc_status why = tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "headers could not be sent: %s",
                                          nghttp2_strerror(error));
    if (tc_h2_stream_serves(s)) {
        tc_h2_stream_set_outcome(s, why);
        tc_h2_stream_submit_reset(s, NGHTTP2_INTERNAL_ERROR); /* else the client waits until its deadline */
    } else {
        tc_h2_client_stream_finish(tc_h2_client_stream_of(s), why, false);
    }
    return 0;
}

static nghttp2_session_callbacks *session_callbacks_new(void)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb))
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, session_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, session_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, session_on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, session_on_frame_recv);
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, session_on_begin_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, session_on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, session_on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, session_on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, session_on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(cb, tc_h2_on_send_data);
    return cb;
}

/* Makes c->ng. Returns 0 or an nghttp2 error.
 *
 * All sessions of a loop share one heap. Over TLS, nghttp2's copies of requests, compression table and frames may hold
 * tokens: they are wiped. */
static int session_new(struct tc_h2_conn *c, const nghttp2_session_callbacks *cb)
{
    nghttp2_option *option;
    nghttp2_mem mem = {.mem_user_data = tc_loop_heap(c->loop),
                       .malloc = tc_heap_take,
                       .free = c->secure ? tc_heap_give_secret : tc_heap_give,
                       .calloc = tc_heap_take_zeroed,
                       .realloc = c->secure ? tc_heap_grow_secret : tc_heap_grow};
    int rc = nghttp2_option_new(&option);
    if (rc)
        return rc;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, c->opts.limits.max_queued_control);
#if TC_HAS_RESET_RATE_LIMIT
    /* Turns off nghttp2's own limit, which counts resets of streams that we have ended, too. glitches.c counts resets
     * that cancel RPCs. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
#endif
#if TC_HAS_MAX_CONTINUATIONS
    nghttp2_option_set_max_continuations(option, MAX_CONTINUATIONS);
#endif
    /* The peer's setting and our own limit are checked before a request is submitted: nghttp2's check would hide the
     * reason. A request that passes our check passes nghttp2's, too: nghttp2 estimates the request's block at
     * less than the header list's size, or at a few bytes more. */
    nghttp2_option_set_max_send_header_block_length(
        option, TC_MAX(c->opts.limits.max_request_header_bytes, (size_t)1024 * 1024) + HEADER_BLOCK_SLACK);
#if NGHTTP2_VERSION_NUM >= 0x013200 /* earlier versions do not look at white space */
    /* gRPC strips white space around a value; nghttp2 would drop or reject such a field. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
#endif
    if (tc_h2_conn_serves(c))
        rc = nghttp2_session_server_new3(&c->ng, cb, c, option, &mem);
    else
        rc = nghttp2_session_client_new3(&c->ng, cb, c, option, &mem);
    nghttp2_option_del(option);
    return rc;
}

/* RFC 9218 2.1; nghttp2 has had the name since 1.48. */
enum { SETTINGS_NO_RFC7540_PRIORITIES = 9 };

static void session_submit_settings(struct tc_h2_conn *c)
{
    nghttp2_settings_entry iv[5];
    size_t n = 0;
    const struct tc_h2_limits *limits = &c->opts.limits;
    if (tc_h2_conn_serves(c)) {
        iv[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->max_concurrent_streams};
        iv[n++] = (nghttp2_settings_entry){SETTINGS_NO_RFC7540_PRIORITIES, 1};
    } else {
        iv[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    }
    iv[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->bdp.window_bytes};
    iv[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                                       (uint32_t)TC_MIN(limits->max_header_list_bytes, (size_t)UINT32_MAX)};
    nghttp2_submit_settings(c->ng, NGHTTP2_FLAG_NONE, iv, n);
    nghttp2_session_set_local_window_size(c->ng, NGHTTP2_FLAG_NONE, 0, (int32_t)TC_H2_MAX_WINDOW);
}

bool tc_h2_session_init(struct tc_h2_conn *c)
{
    nghttp2_session_callbacks *cb = session_callbacks_new();
    int rc = cb ? session_new(c, cb) : NGHTTP2_ERR_NOMEM;
    nghttp2_session_callbacks_del(cb);
    if (rc) {
        c->ng = NULL;
        return false;
    }
    session_submit_settings(c);
    return true;
}
