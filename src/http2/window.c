/* Stream windows as large as the path carries: the bytes that come between a ping and its answer are the
 * bandwidth-delay product; when they fill the window, the window doubles. And a stream's own as large as the largest
 * message that was asked for: what is wanted as a whole need not come by halves of a window. */
#include "http2/internal.h"

#define MIN_DELAY_MS 100
#define MAX_DELAY_MS 10000
#define MAX_STREAM_WINDOW (16u * 1024u * 1024u)

void tc_h2_window_init(struct tc_h2_conn *c)
{
    uint32_t window = c->opts.limits.initial_window_bytes;
    c->bdp.window_bytes = TC_MIN(TC_MAX(window, 1u), MAX_STREAM_WINDOW);
    c->bdp.delay_ms = MIN_DELAY_MS;
}

void tc_h2_window_on_data(struct tc_h2_conn *c, size_t len)
{
    struct tc_h2_bdp *b = &c->bdp;
    if (c->opts.no_bdp || b->window_bytes >= MAX_STREAM_WINDOW)
        return;
    if (b->running) {
        b->bytes += len;
        return;
    }
    /* Small answers tell nothing of the path, and a ping for each would cost more than they do. */
    if (len < 1024 || tc_loop_now_ms(c->loop) < b->not_before_ms)
        return;
    if (nghttp2_submit_ping(c->ng, NGHTTP2_FLAG_NONE, tc_h2_ping_bdp))
        return;
    b->running = true;
    b->bytes = len;
    b->sent_ns = tc_loop_now_ns(c->loop);
    tc_h2_conn_flush_later(c);
}

static void grow(struct tc_h2_conn *c)
{
    struct tc_h2_bdp *b = &c->bdp;
    b->window_bytes = (uint32_t)TC_MIN((uint64_t)b->window_bytes * 2, (uint64_t)MAX_STREAM_WINDOW);
    nghttp2_settings_entry iv = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, b->window_bytes};
    nghttp2_submit_settings(c->ng, NGHTTP2_FLAG_NONE, &iv, 1);
    tc_h2_conn_flush_later(c);
}

void tc_h2_window_on_ack(struct tc_h2_conn *c)
{
    struct tc_h2_bdp *b = &c->bdp;
    if (!b->running)
        return;
    b->running = false;
    bool grew = false;
    uint64_t now_ns = tc_loop_now_ns(c->loop), took_ns = TC_MAX(now_ns - b->sent_ns, UINT64_C(1));
    double bandwidth = (double)b->bytes * 1e9 / (double)took_ns;
    if (b->bytes >= (uint64_t)b->window_bytes * 2 / 3 && bandwidth > b->bandwidth) {
        b->bandwidth = bandwidth;
        b->delay_ms = MIN_DELAY_MS;
        grow(c);
        grew = true;
    } else {
        b->delay_ms = TC_MIN(b->delay_ms * 2, (uint64_t)MAX_DELAY_MS);
    }
    /* What comes within a round trip of a growth was sent into the smaller window, and could not fill the larger. */
    b->not_before_ms = grew ? (now_ns + took_ns) / TC_NS_PER_MS : now_ns / TC_NS_PER_MS + b->delay_ms;
}

void tc_h2_window_for_message(struct tc_h2_stream *s, size_t rest)
{
    nghttp2_session *ng = s->c->ng;
    if (!ng || s->id <= 0 || s->remote_ended || (s->c->opened_for && s->c->opened_for != s))
        return;
    int32_t left = nghttp2_session_get_stream_local_window_size(ng, s->id);
    int32_t wanted = (int32_t)TC_MIN(rest, (size_t)MAX_STREAM_WINDOW);
    if (left < 0 || wanted <= left)
        return;
    s->c->opened_for = s;
    /* This also gives back what came so far: all of it was taken. */
    nghttp2_session_consume_stream(ng, s->id, s->unconsumed);
    s->unconsumed = 0;
    left = nghttp2_session_get_stream_local_window_size(ng, s->id);
    if (wanted > left)
        nghttp2_submit_window_update(ng, NGHTTP2_FLAG_NONE, s->id, wanted - left);
    tc_h2_conn_flush_later(s->c);
}
