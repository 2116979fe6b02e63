/* The life of a connection.
 *
 *   new       SETTINGS are queued; nghttp2's session exists from here until the connection fails or is closed.
 *   ready     The peer's SETTINGS came. Streams may open.
 *   draining  The peer sent GOAWAY, or we did. A client opens no stream; a server serves requests until its last
 *             GOAWAY. Streams that are open go on. When the last stream has left nghttp2, and all frames are written (a
 *             server's last GOAWAY too, unless the client sent one), the connection fails with the GOAWAY's reason.
 *   failed    Dead: the session and the byte stream are gone, every stream ends, on_closed follows.
 *   closed    The owner called tc_h2_conn_close: no callback but those of a client's streams whose outcome is known.
 *             Freed when the last of these streams is over (tc_h2_conn_release).
 *
 * No callback but on_compressed (server_stream.h) comes from inside a call of the owner or of nghttp2: streams.c
 * delivers from the loop. The connection owns the session, the byte stream and a server's streams; a client's streams
 * lie in their calls' arenas. Loop thread only. */
#include "http2/connection.h"

#include "base/log.h"
#include "base/mem.h"
#include "http2/connection_internal.h"

void tc_h2_opts_init(struct tc_h2_opts *opts, bool server)
{
    *opts = (struct tc_h2_opts){
        .server = server,
        .limits = {.max_receive_message_bytes = 4u * 1024 * 1024,
                   .max_send_message_bytes = SIZE_MAX,
                   .max_header_list_bytes = 16 * 1024,
                   .max_request_header_bytes = 1024 * 1024,
                   .max_concurrent_streams = 100,
                   .initial_window_bytes = 64 * 1024,
                   .max_glitches = 10000,
                   .max_cancels = 1000,
                   .write_bytes = 512 * 1024,
                   .max_queued_control = 1000},
        .keepalive = {.timeout_ms = 20000, .min_interval_ms = 300000},
    };
}

enum {
    QUIET_MS = 1000,
    QUIET_HEAP_BYTES = 64 << 10, /* what all connections of the loop keep for their next calls */
    QUIET_SCRATCH_BYTES = 512
};

static void conn_on_quiet(struct tc_timer *timer);

static void conn_on_flush(struct tc_task *task)
{
    tc_h2_conn_flush(TC_CONTAINER_OF(task, struct tc_h2_conn, write.flush));
}

struct tc_h2_conn *tc_h2_conn_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                  const struct tc_h2_conn_events *events, void *arg)
{
    struct tc_h2_conn *c = TC_NEW(struct tc_h2_conn);
    c->loop = loop;
    c->bs = bs;
    c->opts = *opts;
    c->events = events;
    c->arg = arg;
    c->peer = tc_addr_ref(&bs->peer);
    c->secure = bs->secure;
    c->ending.goaway_last_id = INT32_MAX;
    tc_list_init(&c->streams.all);
    tc_list_init(&c->streams.ready);
    tc_list_init(&c->streams.delivered);
    tc_list_init(&c->streams.resting);
    tc_list_init(&c->streams.packing);
    tc_task_init(&c->deliver, tc_h2_conn_on_deliver);
    tc_task_init(&c->rest, tc_h2_conn_on_rest);
    tc_task_init(&c->write.flush, conn_on_flush);
    tc_task_init(&c->read_more, tc_h2_conn_on_read_more);
    tc_timer_init(&c->quiet, loop, conn_on_quiet);
    tc_h2_bdp_init(&c->bdp, opts->limits.initial_window_bytes, opts->no_bdp);
    tc_h2_glitches_init(&c->glitches, loop,
                        opts->glitch_rate ? tc_h2_glitch_rate_ref(opts->glitch_rate) : tc_h2_glitch_rate_new(),
                        opts->server);
    c->glitches.frames_per_second = opts->limits.max_glitches;
    c->glitches.cancels_per_second = opts->limits.max_cancels;
    c->glitches.max_empty_frames = opts->limits.max_queued_control;
    tc_h2_keepalive_init(c);
    tc_bytestream_set_handler(bs, tc_h2_conn_on_event, c);
    if (tc_h2_session_init(c))
        tc_h2_conn_flush_later(c);
    else
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "HTTP/2 session could not be made"));
    return c;
}

bool tc_h2_conn_secure(const struct tc_h2_conn *c)
{
    return c->secure;
}

bool tc_h2_conn_is_for(const struct tc_h2_conn *c, struct tc_slice authority)
{
    if (!c->bs || !c->bs->ops->peer_is)
        return true;
    return c->bs->ops->peer_is(c->bs, tc_addr_host_of(authority));
}

size_t tc_h2_conn_open_streams(const struct tc_h2_conn *c)
{
    return c->streams.n;
}

size_t tc_h2_conn_held(const struct tc_h2_conn *c)
{
    return c->streams.held;
}

void tc_h2_conn_squeeze(struct tc_h2_conn *c, bool squeezed)
{
    uint32_t before = c->bdp.window_bytes;
    if (!c->ng || squeezed == c->squeezed)
        return;
    c->squeezed = squeezed;
    c->bdp.off = c->opts.no_bdp;
    if (squeezed)
        tc_h2_bdp_squeeze(&c->bdp, c->opts.limits.initial_window_bytes);
    if (c->bdp.window_bytes < before)
        tc_h2_session_set_windows(c);
}

/* If only the last GOAWAY is left to be sent, bounds the wait for that: a peer that does not read must not keep the
 * connection. */
static void conn_await_last(struct tc_h2_conn *c)
{
    if (c->ng && c->ending.last_goaway_sent && !c->streams.active)
        tc_h2_keepalive_await_last(c);
}

uint64_t tc_h2_conn_request_ms(const struct tc_h2_conn *c)
{
    return c->streams.request_ms;
}

bool tc_h2_conn_answered(const struct tc_h2_conn *c)
{
    return c->answered;
}

uint32_t tc_h2_conn_max_streams(const struct tc_h2_conn *c)
{
    return c->ng ? nghttp2_session_get_remote_settings(c->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) : 0;
}

bool tc_h2_conn_lost(const struct tc_h2_conn *c)
{
    return c->ending.failed;
}

bool tc_h2_conn_has_capacity(const struct tc_h2_conn *c)
{
    return c->settings_seen && !c->ending.draining && !c->ending.failed &&
           c->streams.active < tc_h2_conn_max_streams(c);
}

void tc_h2_conn_want_capacity(struct tc_h2_conn *c)
{
    c->capacity_wanted = true;
    if (tc_h2_conn_has_capacity(c))
        tc_h2_conn_deliver_later(c);
}

void tc_h2_conn_stream_gone(struct tc_h2_conn *c)
{
    if (c->capacity_wanted)
        tc_h2_conn_deliver_later(c);
    if (c->streams.active == 0) {
        c->quiet_since_ms = tc_loop_now_ms(c->loop);
        if (!tc_timer_active(&c->quiet))
            tc_timer_start(&c->quiet, QUIET_MS);
        if (c->ending.draining)
            tc_h2_conn_flush_later(c);
        conn_await_last(c);
    }
}

/* A connection without streams gives memory back after QUIET_MS, since calls that follow soon need it again. */
static void conn_on_quiet(struct tc_timer *timer)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(timer, struct tc_h2_conn, quiet);
    if (c->streams.active)
        return;
    uint64_t quiet_ms = tc_loop_now_ms(c->loop) - c->quiet_since_ms;
    if (quiet_ms < QUIET_MS) {
        tc_timer_start(timer, QUIET_MS - quiet_ms);
        return;
    }
    tc_heap_trim(tc_loop_heap(c->loop), QUIET_HEAP_BYTES);
    tc_h2_streams_drop_spare(c, 1);
    if (c->scratch.cap > QUIET_SCRATCH_BYTES)
        tc_buf_fini(&c->scratch);
}

/* Stops reading, writing and the timers; ends the session and closes the byte stream. The streams lose their ids, which
 * belong to the session. */
static void conn_stop_io(struct tc_h2_conn *c)
{
    tc_task_cancel(&c->write.flush);
    tc_task_cancel(&c->read_more);
    tc_h2_keepalive_stop(c);
    tc_timer_stop(&c->quiet);
    tc_h2_streams_detach(c);
    if (c->ng)
        nghttp2_session_del(c->ng);
    c->ng = NULL;
    if (c->bs)
        c->bs->ops->close(c->bs);
    c->bs = NULL;
    tc_h2_conn_drop_unsent(c);
    tc_buf_fini(&c->scratch);
    c->streams.active = 0;
}

/* Logs at INFO, for operators, an end that cut RPCs off, or that the peer's GOAWAY announced while RPCs ran; any other
 * end at DEBUG. */
static void conn_log_end(const struct tc_h2_conn *c, size_t cut_off)
{
    char *peer = tc_addr_text(&c->peer);
    const char *why = tc_status_text(&c->ending.why);
    if (cut_off || c->ending.goaway_in_use)
        TC_LOG(TC_LOG_HTTP2, TORC_LOG_INFO, "%s: connection ended, %zu streams cut off: %s", peer, cut_off, why);
    else
        TC_LOG(TC_LOG_HTTP2, TORC_LOG_DEBUG, "%s: connection ended: %s", peer, why);
    tc_free(peer);
}

void tc_h2_conn_fail(struct tc_h2_conn *c, struct tc_status why)
{
    if (c->ending.failed || c->ending.closed) {
        tc_status_fini(&why);
        return;
    }
    if (tc_status_ok(&why)) {
        tc_status_fini(&why);
        why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "connection closed");
    }
    c->ending.failed = true;
    tc_status_set(&c->ending.why, why);
    conn_stop_io(c);
    conn_log_end(c, tc_h2_streams_lose(c));
    tc_h2_conn_deliver_later(c);
}

/* Returns the stream number for our last GOAWAY. Requests with higher numbers are not served from now on. */
static int32_t conn_fix_last_id(struct tc_h2_conn *c)
{
    if (!c->ending.last_goaway_sent)
        c->ending.last_id = nghttp2_session_get_last_proc_stream_id(c->ng);
    c->ending.last_goaway_sent = true;
    return c->ending.last_id;
}

void tc_h2_conn_terminate(struct tc_h2_conn *c, uint32_t h2_error, const char *debug_text)
{
    if (!c->ng)
        return;
    nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, conn_fix_last_id(c), h2_error, (const uint8_t *)debug_text,
                          strlen(debug_text));
    tc_h2_conn_flush(c);
    tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "connection ended with %s: %s",
                                      nghttp2_http2_strerror(h2_error), debug_text));
}

void tc_h2_conn_start_drain(struct tc_h2_conn *c, struct tc_status why)
{
    bool first = !c->ending.draining;
    c->ending.draining = true;
    /* A graceful GOAWAY may be followed by one with a cause: the last reason is the most exact. */
    tc_status_set(&c->ending.why, why);
    if (first) {
        c->ending.on_draining_due = true;
        tc_h2_conn_deliver_later(c);
    }
}

void tc_h2_conn_check_drained(struct tc_h2_conn *c)
{
    if (c->ending.draining && c->ng && c->streams.active == 0 &&
        (!c->opts.server || c->ending.last_goaway_sent || c->ending.goaway_received) &&
        !nghttp2_session_want_write(c->ng) && c->write.unsent.len == 0)
        tc_h2_conn_fail(c, tc_status_ref(&c->ending.why));
}

void tc_h2_conn_send_last_goaway(struct tc_h2_conn *c)
{
    if (!c->ng || c->ending.last_goaway_sent)
        return;
    nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, conn_fix_last_id(c), NGHTTP2_NO_ERROR,
                          (const uint8_t *)c->ending.text, c->ending.text ? strlen(c->ending.text) : 0);
    conn_await_last(c);
    tc_h2_conn_flush_later(c);
}

void tc_h2_conn_drain(struct tc_h2_conn *c, const char *debug_text)
{
    if (!c->ng || c->ending.goaway_sent)
        return;
    c->ending.goaway_sent = true;
    tc_h2_conn_start_drain(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "connection draining%s%s",
                                             debug_text && *debug_text ? ": " : "", debug_text ? debug_text : ""));
    if (c->opts.server) {
        /* RFC 9113 6.8: the first GOAWAY rejects nothing, so that requests on their way are still taken; the second one
         * names the last stream (keepalive.c). nghttp2 sends the first one without a text. */
        c->ending.text = debug_text;
        nghttp2_submit_shutdown_notice(c->ng);
        nghttp2_submit_ping(c->ng, NGHTTP2_FLAG_NONE, tc_h2_ping_drain);
        tc_h2_keepalive_await_notice(c);
    } else {
        nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, (const uint8_t *)debug_text,
                              debug_text ? strlen(debug_text) : 0);
    }
    tc_h2_conn_flush_later(c);
}

void tc_h2_conn_close(struct tc_h2_conn *c)
{
    if (c->ending.closed)
        return;
    if (c->ng && c->bs && !c->write.in_flush) {
        /* A server's graceful end takes two GOAWAYs: the one that names the last stream may not be submitted yet. */
        if (!c->ending.goaway_received && (c->opts.server || !c->ending.goaway_sent))
            tc_h2_conn_send_last_goaway(c);
        tc_h2_conn_flush(c);
    }
    c->ending.closed = true;
    c->busy++;
    conn_stop_io(c);
    tc_h2_streams_drop(c);
    c->busy--;
    tc_h2_conn_release(c);
}

void tc_h2_conn_release(struct tc_h2_conn *c)
{
    if (!c->ending.closed || c->busy || !tc_list_empty(&c->streams.all))
        return;
    tc_task_cancel(&c->deliver);
    tc_task_cancel(&c->rest);
    tc_h2_streams_drop_spare(c, 0);
    tc_h2_glitch_rate_unref(c->glitches.rate);
    tc_status_fini(&c->ending.why);
    tc_addr_fini(&c->peer);
    tc_free(c);
}
