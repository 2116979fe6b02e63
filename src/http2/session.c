/* The nghttp2 session of a connection and its callbacks, which only record and submit. */
#include "http2/internal.h"

#define MAX_DEBUG_TEXT 256
/* CVE-2024-28182. nghttp2 1.52 counts a frame again for each piece in which its head arrives, so this is more than 8.
 */
#define MAX_CONTINUATIONS 24
/* Of a window of 16 MB: nghttp2 opens it again by halves. */
#define CONSUME_BYTES (64u * 1024u)

static struct tc_h2_stream *stream_of(nghttp2_session *ng, int32_t id)
{
    return nghttp2_session_get_stream_user_data(ng, id);
}

static struct tc_slice text_of(const uint8_t *data, size_t len)
{
    return tc_slice_of(data, len);
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = stream_of(ng, frame->hd.stream_id);
    tc_h2_flood_on_shown(c, &frame->hd);
    if (c->opts.server && !s && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        s = tc_h2_server_stream_new(c, frame->hd.stream_id);
        nghttp2_session_set_stream_user_data(ng, s->id, s);
        tc_h2_flood_on_carried(c);
        c->active++;
    }
    c->in_block = s;
    if (!s)
        return 0;
    s->block_bytes = 0;
    s->block_over = false;
    if (!s->server)
        tc_h2_response_begin(s);
    return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t namelen,
                     const uint8_t *value, size_t valuelen, uint8_t flags, void *user_data)
{
    (void)ng, (void)frame, (void)flags;
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = c->in_block;
    if (!s || s->discard)
        return tc_h2_flood_on_dropped(c, namelen + valuelen);
    /* The rest of a block beyond the limit is decoded, for the compression state, and dropped. */
    s->block_bytes += namelen + valuelen + 32;
    s->block_over |= s->block_bytes > s->max_header_bytes;
    if (s->block_over)
        return tc_h2_flood_on_dropped(c, namelen + valuelen);
    if (s->server)
        tc_h2_server_on_header(s, text_of(name, namelen), text_of(value, valuelen));
    else
        tc_h2_response_on_header(s, text_of(name, namelen), text_of(value, valuelen));
    return 0;
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                         void *user_data)
{
    (void)flags;
    struct tc_h2_conn *c = user_data;
    c->empty_frames = 0;
    /* The connection's window only bounds what is on the way: a stream that nobody reads holds back itself alone. */
    c->unconsumed += (uint32_t)len;
    if (c->unconsumed >= CONSUME_BYTES) {
        if (nghttp2_session_consume_connection(ng, c->unconsumed))
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        c->unconsumed = 0;
    }
    tc_h2_window_on_data(c, len);
    struct tc_h2_stream *s = stream_of(ng, id);
    if (s)
        tc_h2_stream_on_data(s, data, len);
    return 0;
}

static void on_goaway(struct tc_h2_conn *c, const nghttp2_goaway *g)
{
    size_t len = TC_MIN(g->opaque_data_len, (size_t)MAX_DEBUG_TEXT);
    struct tc_slice debug = text_of(g->opaque_data, len);
    tc_buf_clear(&c->scratch);
    tc_grpc_message_encode(&c->scratch, debug);
    c->goaway_seen = true;
    c->goaway_last_id = g->last_stream_id;
    c->too_many_pings = g->error_code == NGHTTP2_ENHANCE_YOUR_CALM && tc_slice_eq_str(debug, "too_many_pings");
    tc_h2_conn_start_drain(c,
                           tc_status_make(TORC_STATUS_UNAVAILABLE, "%s sent GOAWAY with %s%s%.*s",
                                          c->opts.server ? "client" : "server", nghttp2_http2_strerror(g->error_code),
                                          len ? ": " : "", (int)c->scratch.len, c->scratch.len ? c->scratch.data : ""));
}

static void on_settings(struct tc_h2_conn *c)
{
    c->settings_seen = true;
    if (!c->ready_told || c->capacity_wanted)
        tc_h2_conn_deliver_later(c);
}

static void on_ping(struct tc_h2_conn *c, const nghttp2_ping *ping)
{
    if (!(ping->hd.flags & NGHTTP2_FLAG_ACK)) {
        tc_h2_keepalive_on_ping(c);
    } else if (memcmp(ping->opaque_data, tc_h2_ping_bdp, 8) == 0) {
        tc_h2_window_on_ack(c);
    } else if (memcmp(ping->opaque_data, tc_h2_ping_drain, 8) == 0 && c->age_state == TC_H2_AGE_NOTICE) {
        tc_timer_start(&c->age, 0);
    }
}

static void on_end_stream(struct tc_h2_stream *s)
{
    s->remote_ended = true;
    if (s->server)
        tc_h2_stream_ready(s);
    else
        tc_h2_response_on_end(s);
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s;
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        s = c->in_block;
        c->in_block = NULL;
        if (s && s->server)
            tc_h2_server_on_block(s, end);
        else if (s)
            tc_h2_response_on_block(s, end);
        break;
    case NGHTTP2_DATA:
        tc_h2_flood_on_data(c, &frame->data);
        s = end ? stream_of(ng, frame->hd.stream_id) : NULL;
        if (s)
            on_end_stream(s);
        break;
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            on_settings(c);
        break;
    case NGHTTP2_PING:
        on_ping(c, &frame->ping);
        break;
    case NGHTTP2_GOAWAY:
        on_goaway(c, &frame->goaway);
        break;
    default:
        break;
    }
    return 0;
}

static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user_data)
{
    (void)user_data;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct tc_h2_stream *s = stream_of(ng, frame->hd.stream_id);
    if (s && !s->server)
        tc_h2_stream_finish(s,
                            tc_status_make(TORC_STATUS_INTERNAL, "server sent an invalid HTTP/2 header block: %s",
                                           nghttp2_strerror(error)),
                            false);
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = stream_of(ng, id);
    c->active--;
    tc_h2_conn_stream_gone(c);
    if (s)
        tc_h2_stream_on_close(s, code);
    return 0;
}

static void on_goaway_sent(struct tc_h2_conn *c, const nghttp2_goaway *g)
{
    if (g->error_code == NGHTTP2_NO_ERROR || !tc_status_ok(&c->why))
        return;
    size_t len = TC_MIN(g->opaque_data_len, (size_t)MAX_DEBUG_TEXT);
    tc_status_set(&c->why, tc_status_make(TORC_STATUS_UNAVAILABLE, "connection ended with %s%s%.*s",
                                          nghttp2_http2_strerror(g->error_code), len ? ": " : "", (int)len,
                                          len ? (const char *)g->opaque_data : ""));
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        tc_h2_keepalive_on_sent(c);
        s = stream_of(ng, frame->hd.stream_id);
        if (!s)
            break;
        s->headers_sent = true;
        if (s->server && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
            s->end_sent = true;
            /* RFC 9113 8.1: the rest of the request is not wanted. */
            if (!s->remote_ended)
                nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
        }
        break;
    case NGHTTP2_DATA:
        tc_h2_keepalive_on_sent(c);
        tc_h2_flood_on_carried(c);
        break;
    case NGHTTP2_RST_STREAM:
        tc_h2_flood_on_reset(c, frame->hd.stream_id);
        s = stream_of(ng, frame->hd.stream_id);
        if (s)
            s->reset_sent = true;
        break;
    case NGHTTP2_GOAWAY:
        on_goaway_sent(c, &frame->goaway);
        break;
    default:
        break;
    }
    return 0;
}

static int on_frame_not_send(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user_data)
{
    (void)user_data;
    struct tc_h2_stream *s = stream_of(ng, frame->hd.stream_id);
    if (!s || frame->hd.type != NGHTTP2_HEADERS || error == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED)
        return 0;
    tc_h2_stream_finish(
        s, tc_status_make(TORC_STATUS_INTERNAL, "headers could not be sent: %s", nghttp2_strerror(error)), false);
    return 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb))
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, tc_h2_on_begin_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(cb, tc_h2_on_send_data);
    return cb;
}

/* The memory of all sessions of a loop is one heap. */
static void *take(size_t size, void *heap)
{
    return tc_heap_take(heap, size);
}

static void *take_zeroed(size_t n, size_t size, void *heap)
{
    return tc_heap_take_zeroed(heap, n, size);
}

static void *grow(void *block, size_t size, void *heap)
{
    return tc_heap_grow(heap, block, size);
}

static void give(void *block, void *heap)
{
    tc_heap_give(heap, block);
}

/* What nghttp2 copies of a request, its compression table and its frames: over TLS there may be tokens in it. */
static void *grow_secret(void *block, size_t size, void *heap)
{
    return tc_heap_grow_secret(heap, block, size);
}

static void give_secret(void *block, void *heap)
{
    tc_heap_give_secret(heap, block);
}

static int new_session(struct tc_h2_conn *c, const nghttp2_session_callbacks *cb)
{
    nghttp2_option *option;
    nghttp2_mem mem = {.mem_user_data = tc_loop_heap(c->loop),
                       .malloc = take,
                       .free = c->secure ? give_secret : give,
                       .calloc = take_zeroed,
                       .realloc = c->secure ? grow_secret : grow};
    int rc = nghttp2_option_new(&option);
    if (rc)
        return rc;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, c->opts.limits.max_queued_control);
    nghttp2_option_set_max_continuations(option, MAX_CONTINUATIONS);
    /* What the peer accepts is checked by its own setting; nghttp2's limit would hide the reason. */
    nghttp2_option_set_max_send_header_block_length(option, 1024 * 1024);
    /* gRPC: surrounding white space in a value may be stripped; it is no reason to lose the field. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
    if (c->opts.server)
        rc = nghttp2_session_server_new3(&c->ng, cb, c, option, &mem);
    else
        rc = nghttp2_session_client_new3(&c->ng, cb, c, option, &mem);
    nghttp2_option_del(option);
    return rc;
}

static void submit_settings(struct tc_h2_conn *c)
{
    nghttp2_settings_entry iv[5];
    size_t n = 0;
    const struct tc_h2_limits *limits = &c->opts.limits;
    if (c->opts.server) {
        iv[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->max_concurrent_streams};
        iv[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1};
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
    nghttp2_session_callbacks *cb = make_callbacks();
    int rc = cb ? new_session(c, cb) : NGHTTP2_ERR_NOMEM;
    nghttp2_session_callbacks_del(cb);
    if (rc) {
        c->ng = NULL;
        return false;
    }
    submit_settings(c);
    return true;
}
