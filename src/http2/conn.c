/* The life of a connection: made, ready, draining, dead, closed; and the order in which its owner is told. */
#include "http2/conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "http2/internal.h"

void tc_h2_opts_init(struct tc_h2_opts *opts, bool server)
{
    *opts = (struct tc_h2_opts){
        .server = server,
        .limits = {.max_receive_message_bytes = 4u * 1024 * 1024,
                   .max_send_message_bytes = SIZE_MAX,
                   .max_header_list_bytes = 16 * 1024,
                   .max_concurrent_streams = 100,
                   .initial_window_bytes = 64 * 1024,
                   .max_bare_frames = 10000,
                   .max_queued_control = 1000},
        .keepalive = {.timeout_ms = 20000, .min_interval_ms = 300000},
    };
}

#define QUIET_MS 1000
/* What the loop's connections together keep for their next calls when one has gone quiet. */
#define QUIET_HEAP_BYTES (64u * 1024u)

static void on_deliver(struct tc_task *task);
static void on_quiet(struct tc_timer *timer);

static void on_flush(struct tc_task *task)
{
    tc_h2_conn_flush(TC_CONTAINER_OF(task, struct tc_h2_conn, flush));
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
    c->local = tc_addr_ref(&bs->local);
    c->secure = bs->secure;
    c->goaway_last_id = INT32_MAX;
    tc_list_init(&c->streams);
    tc_list_init(&c->ready);
    tc_task_init(&c->deliver, on_deliver);
    tc_task_init(&c->flush, on_flush);
    tc_task_init(&c->more, tc_h2_conn_on_more);
    tc_timer_init(&c->quiet, loop, on_quiet);
    tc_h2_window_init(c);
    tc_h2_flood_init(c);
    tc_h2_keepalive_init(c);
    tc_bytestream_set_handler(bs, tc_h2_conn_on_event, c);
    if (tc_h2_session_init(c))
        tc_h2_conn_flush_later(c);
    else
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_INTERNAL, "HTTP/2 session could not be made"));
    return c;
}

const struct tc_addr *tc_h2_conn_peer(const struct tc_h2_conn *c)
{
    return &c->peer;
}

const struct tc_addr *tc_h2_conn_local(const struct tc_h2_conn *c)
{
    return &c->local;
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
    return c->n_streams;
}

bool tc_h2_conn_has_capacity(const struct tc_h2_conn *c)
{
    return c->ng && c->settings_seen && !c->draining && !c->failed &&
           c->active < nghttp2_session_get_remote_settings(c->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

void tc_h2_conn_deliver_later(struct tc_h2_conn *c)
{
    tc_loop_defer(c->loop, &c->deliver);
}

void tc_h2_conn_stream_gone(struct tc_h2_conn *c)
{
    if (c->capacity_wanted)
        tc_h2_conn_deliver_later(c);
    if (c->active == 0) {
        c->quiet_since_ms = tc_loop_now_ms(c->loop);
        if (!tc_timer_active(&c->quiet))
            tc_timer_start(&c->quiet, QUIET_MS);
        if (c->draining)
            tc_h2_conn_flush_later(c);
    }
}

/* A connection that does nothing keeps little memory. Not at once: calls that follow each other need it again. */
static void on_quiet(struct tc_timer *timer)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(timer, struct tc_h2_conn, quiet);
    if (c->active)
        return;
    uint64_t quiet_ms = tc_loop_now_ms(c->loop) - c->quiet_since_ms;
    if (quiet_ms < QUIET_MS) {
        tc_timer_start(timer, QUIET_MS - quiet_ms);
        return;
    }
    tc_heap_trim(tc_loop_heap(c->loop), QUIET_HEAP_BYTES);
    tc_h2_server_drop_spare(c, 1);
    if (c->scratch.cap > 512)
        tc_buf_fini(&c->scratch);
}

/* No more bytes in either direction, no timers; the streams know nothing of nghttp2 any more. */
static void stop_io(struct tc_h2_conn *c)
{
    tc_task_cancel(&c->flush);
    tc_task_cancel(&c->more);
    tc_h2_keepalive_stop(c);
    tc_timer_stop(&c->quiet);
    TC_LIST_FOREACH(it, &c->streams)
    TC_CONTAINER_OF(it, struct tc_h2_stream, link)->id = -1;
    if (c->ng)
        nghttp2_session_del(c->ng);
    c->ng = NULL;
    if (c->bs)
        c->bs->ops->close(c->bs);
    c->bs = NULL;
    tc_h2_conn_drop_left(c);
    tc_buf_fini(&c->scratch);
    c->active = 0;
}

void tc_h2_conn_fail(struct tc_h2_conn *c, struct tc_status why)
{
    if (c->failed || c->closed) {
        tc_status_fini(&why);
        return;
    }
    if (tc_status_ok(&why)) {
        tc_status_fini(&why);
        why = tc_status_make(TORC_STATUS_UNAVAILABLE, "connection closed");
    }
    TC_LOG(TC_LOG_HTTP2, TORC_LOG_DEBUG, "connection ended: %s", tc_status_text(&why));
    c->failed = true;
    tc_status_set(&c->why, why);
    stop_io(c);
    struct tc_link *next;
    for (struct tc_link *it = c->streams.next; it != &c->streams; it = next) {
        next = it->next;
        tc_h2_stream_on_conn_lost(TC_CONTAINER_OF(it, struct tc_h2_stream, link));
    }
    tc_h2_conn_deliver_later(c);
}

void tc_h2_conn_terminate(struct tc_h2_conn *c, uint32_t h2_error, const char *debug_text)
{
    if (!c->ng)
        return;
    int32_t last = nghttp2_session_get_last_proc_stream_id(c->ng);
    nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, last, h2_error, (const uint8_t *)debug_text, strlen(debug_text));
    tc_h2_conn_flush(c);
    tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, "connection ended with %s: %s",
                                      nghttp2_http2_strerror(h2_error), debug_text));
}

void tc_h2_conn_start_drain(struct tc_h2_conn *c, struct tc_status why)
{
    bool first = !c->draining;
    c->draining = true;
    /* The last reason is the most exact: a graceful GOAWAY may be followed by one with a cause. */
    tc_status_set(&c->why, why);
    if (first) {
        c->drain_due = true;
        tc_h2_conn_deliver_later(c);
    }
}

void tc_h2_conn_check_drained(struct tc_h2_conn *c)
{
    if (c->draining && c->ng && c->active == 0 && (!c->opts.server || c->goaway_last || c->goaway_seen) &&
        !nghttp2_session_want_write(c->ng) && c->left.len == 0)
        tc_h2_conn_fail(c, tc_status_ref(&c->why));
}

void tc_h2_conn_send_last_goaway(struct tc_h2_conn *c)
{
    if (!c->ng || c->goaway_last)
        return;
    c->goaway_last = true;
    nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(c->ng), NGHTTP2_NO_ERROR,
                          NULL, 0);
    tc_h2_conn_flush_later(c);
}

void tc_h2_conn_drain(struct tc_h2_conn *c, const char *debug_text)
{
    if (!c->ng || c->drain_sent)
        return;
    c->drain_sent = true;
    tc_h2_conn_start_drain(c, tc_status_make(TORC_STATUS_UNAVAILABLE, "connection draining%s%s",
                                             debug_text && *debug_text ? ": " : "", debug_text ? debug_text : ""));
    if (c->opts.server) {
        /* RFC 9113 6.8: first a GOAWAY that refuses nothing, and what was on its way is still taken. */
        nghttp2_submit_shutdown_notice(c->ng);
        nghttp2_submit_ping(c->ng, NGHTTP2_FLAG_NONE, tc_h2_ping_drain);
        tc_h2_keepalive_await_notice(c);
    } else {
        nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, (const uint8_t *)debug_text,
                              debug_text ? strlen(debug_text) : 0);
    }
    tc_h2_conn_flush_later(c);
}

/* Streams whose outcome is known live on until it was told; the others end here without a word. */
static void drop_streams(struct tc_h2_conn *c)
{
    struct tc_link *next;
    for (struct tc_link *it = c->streams.next; it != &c->streams; it = next) {
        next = it->next;
        struct tc_h2_stream *s = TC_CONTAINER_OF(it, struct tc_h2_stream, link);
        if (s->server || !s->finished || !s->remote_ended)
            tc_h2_stream_release(s);
        else
            tc_h2_stream_stop_sending(s);
    }
}

void tc_h2_conn_close(struct tc_h2_conn *c)
{
    if (c->closed)
        return;
    if (c->ng && c->bs && !c->in_flush) {
        if (!c->drain_sent && !c->goaway_seen)
            nghttp2_submit_goaway(c->ng, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(c->ng),
                                  NGHTTP2_NO_ERROR, NULL, 0);
        tc_h2_conn_flush(c);
    }
    c->closed = true;
    c->busy++;
    stop_io(c);
    drop_streams(c);
    c->busy--;
    tc_h2_conn_release(c);
}

void tc_h2_conn_release(struct tc_h2_conn *c)
{
    if (!c->closed || c->busy || !tc_list_empty(&c->streams))
        return;
    tc_task_cancel(&c->deliver);
    tc_h2_server_drop_spare(c, 0);
    tc_status_fini(&c->why);
    tc_addr_fini(&c->peer);
    tc_addr_fini(&c->local);
    tc_free(c);
}

/* What concerns the connection as a whole, before its streams. */
static void deliver_conn(struct tc_h2_conn *c)
{
    if (c->settings_seen && !c->ready_told && !c->failed && !c->closed) {
        c->ready_told = true;
        if (c->events->on_ready)
            c->events->on_ready(c->arg);
    }
    if (c->drain_due && !c->closed) {
        c->drain_due = false;
        struct tc_status why = tc_status_ref(&c->why);
        if (c->events->on_draining)
            c->events->on_draining(c->arg, &why, c->too_many_pings);
        tc_status_fini(&why);
    }
    if (c->capacity_wanted && !c->closed && tc_h2_conn_has_capacity(c)) {
        c->capacity_wanted = false;
        if (c->events->on_capacity)
            c->events->on_capacity(c->arg);
    }
}

static void deliver_closed(struct tc_h2_conn *c)
{
    if (!c->failed || c->closed || c->closed_told)
        return;
    c->closed_told = true;
    struct tc_status why = tc_status_ref(&c->why);
    if (c->events->on_closed)
        c->events->on_closed(c->arg, &why);
    tc_status_fini(&why);
}

/* What is still to be delivered: at once, or when others had their turn. */
static void deliver_rest(struct tc_h2_conn *c)
{
    if (tc_list_empty(&c->ready))
        return;
    if (c->inflated < TC_H2_INFLATED_AT_ONCE) {
        tc_h2_conn_deliver_later(c);
        return;
    }
    c->resting = true;
    tc_task_cancel(&c->deliver);
    tc_loop_at_turn_end(c->loop, &c->deliver);
}

static void on_deliver(struct tc_task *task)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(task, struct tc_h2_conn, deliver);
    if (c->resting)
        c->inflated = 0;
    c->resting = false;
    c->busy++;
    deliver_conn(c);
    struct tc_link batch;
    tc_list_init(&batch);
    tc_list_splice(&batch, &c->ready);
    struct tc_link *link;
    while ((link = tc_list_pop(&batch)))
        tc_h2_stream_deliver(TC_CONTAINER_OF(link, struct tc_h2_stream, ready));
    deliver_closed(c);
    c->busy--;
    deliver_rest(c);
    tc_h2_conn_release(c);
}
