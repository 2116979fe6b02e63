/* Bytes in and out: reading sized to the load, and one gathered write for all frames of a turn. */
#include "base/log.h"
#include "http2/internal.h"

/* What is read before others have their turn. */
#define READS_AT_ONCE 16
#define BYTES_AT_ONCE (512u * 1024u)
/* nghttp2 gives one frame at a time, at most this long. */
#define FRAME_BYTES (16u * 1024u + 64u)
#define STAGE_BYTES (2 * FRAME_BYTES)
#define GATHER_BYTES (512u * 1024u)
#define GATHER_IOV 128
#define FLUSH_BYTES (1024u * 1024u)
/* Messages up to this size are copied behind their frame header; larger ones are sent from where they lie. */
#define COPY_BYTES 1024u

struct tc_h2_gather {
    struct iovec iov[GATHER_IOV];
    int n;
    size_t total, stage_len;
    bool full;
    uint8_t stage[STAGE_BYTES];
};

static void gather_stage(struct tc_h2_gather *g, const void *data, size_t len)
{
    uint8_t *at = g->stage + g->stage_len;
    memcpy(at, data, len);
    g->stage_len += len;
    g->total += len;
    struct iovec *last = g->n ? &g->iov[g->n - 1] : NULL;
    if (last && (uint8_t *)last->iov_base + last->iov_len == at)
        last->iov_len += len;
    else
        g->iov[g->n++] = (struct iovec){at, len};
}

static void gather_borrow(struct tc_h2_gather *g, const void *data, size_t len)
{
    if (len <= COPY_BYTES) {
        if (len)
            gather_stage(g, data, len);
        return;
    }
    g->iov[g->n++] = (struct iovec){(void *)(uintptr_t)data, len};
    g->total += len;
}

static bool gather_full(const struct tc_h2_gather *g)
{
    return g->total >= GATHER_BYTES || g->n >= GATHER_IOV - 4 || g->stage_len > STAGE_BYTES - FRAME_BYTES;
}

ssize_t tc_h2_on_data_source_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                                  nghttp2_data_source *source, void *user_data)
{
    (void)buf, (void)source, (void)user_data;
    struct tc_h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);
    if (!s)
        return NGHTTP2_ERR_DEFERRED;
    size_t left = s->sending ? TC_H2_PREFIX_LEN + s->out.len - s->out_at : 0;
    if (left <= length && s->end_wanted) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->server) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            tc_h2_server_submit_trailers(s);
        } else {
            s->end_sent = true;
        }
    } else if (!s->sending) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    return (ssize_t)TC_MIN(left, length);
}

int tc_h2_on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head, size_t length,
                       nghttp2_data_source *source, void *user_data)
{
    (void)source;
    struct tc_h2_conn *c = user_data;
    struct tc_h2_gather *g = c->gather;
    struct tc_h2_stream *s = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    if (!s || (length && !s->sending))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    gather_stage(g, head, 9);
    if (length && s->out_at < TC_H2_PREFIX_LEN) {
        size_t n = TC_MIN(length, TC_H2_PREFIX_LEN - s->out_at);
        gather_stage(g, s->out_prefix + s->out_at, n);
        s->out_at += n;
        length -= n;
    }
    if (length) {
        gather_borrow(g, s->out.data + (s->out_at - TC_H2_PREFIX_LEN), length);
        s->out_at += length;
    }
    if (s->sending && s->out_at == TC_H2_PREFIX_LEN + s->out.len) {
        s->sending = false;
        s->written_due = true;
        tc_h2_stream_ready(s);
    }
    if (!gather_full(g))
        return 0;
    g->full = true;
    return NGHTTP2_ERR_PAUSE;
}

/* Fills the gather with frames; an nghttp2 error or 0. */
static int gather_frames(struct tc_h2_conn *c, struct tc_h2_gather *g)
{
    const uint8_t *data;
    while (!g->full) {
        ssize_t n = nghttp2_session_mem_send(c->ng, &data);
        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        if ((size_t)n > STAGE_BYTES - g->stage_len)
            return NGHTTP2_ERR_BUFFER_ERROR;
        gather_stage(g, data, (size_t)n);
        g->full = g->full || gather_full(g);
    }
    return 0;
}

/* The status of a byte stream that failed. */
static struct tc_status stream_error(struct tc_h2_conn *c)
{
    struct tc_status why = tc_status_ref(&c->bs->error);
    if (tc_status_ok(&why)) {
        tc_status_fini(&why);
        why = tc_status_make(TORC_STATUS_UNAVAILABLE, "connection broken");
    }
    return why;
}

void tc_h2_conn_drop_left(struct tc_h2_conn *c)
{
    if (c->secure)
        tc_buf_wipe(&c->left);
    else
        tc_buf_fini(&c->left);
    c->left_at = 0;
}

/* Writes what the socket did not take last time. 0 when all of it is gone, TORC_EAGAIN, or the byte stream's error. */
static int write_left(struct tc_h2_conn *c)
{
    while (c->left_at < c->left.len) {
        struct iovec iov = {c->left.data + c->left_at, c->left.len - c->left_at};
        ssize_t n = c->bs->ops->writev(c->bs, &iov, 1);
        if (n <= 0)
            return n == 0 ? TORC_EAGAIN : (int)n;
        c->left_at += (size_t)n;
    }
    tc_h2_conn_drop_left(c);
    return 0;
}

/* Nothing is left from before. In one piece of memory, of which no part is given up on the way. */
static void keep_left(struct tc_h2_conn *c, const struct iovec *iov, const struct iovec *end)
{
    size_t bytes = 0;
    for (const struct iovec *it = iov; it < end; it++)
        bytes += it->iov_len;
    tc_buf_reserve(&c->left, bytes);
    for (; iov < end; iov++)
        tc_buf_append(&c->left, iov->iov_base, iov->iov_len);
}

/* Takes n bytes off the front; what is first then. */
static struct iovec *skip(struct iovec *iov, size_t n)
{
    while (n > 0 && n >= iov->iov_len)
        n -= (iov++)->iov_len;
    if (n > 0) {
        iov->iov_base = (char *)iov->iov_base + n;
        iov->iov_len -= n;
    }
    return iov;
}

static int write_gathered(struct tc_h2_conn *c, struct tc_h2_gather *g)
{
    struct iovec *iov = g->iov, *end = g->iov + g->n;
    while (iov < end) {
        ssize_t n = c->bs->ops->writev(c->bs, iov, (int)(end - iov));
        if (n < 0 && n != TORC_EAGAIN)
            return (int)n;
        if (n <= 0) {
            /* The messages are the callers' and may go when they are told: what is left is copied. */
            keep_left(c, iov, end);
            return TORC_EAGAIN;
        }
        iov = skip(iov, (size_t)n);
    }
    return 0;
}

/* One gather and its write. *more: nghttp2 has frames left. An error of the byte stream, or 1 for nghttp2's. */
static int flush_once(struct tc_h2_conn *c, bool *more, size_t *bytes)
{
    struct tc_h2_gather g;
    g.n = 0;
    g.total = g.stage_len = 0;
    g.full = false;
    c->gather = &g;
    int rc = gather_frames(c, &g);
    c->gather = NULL;
    *more = g.full;
    *bytes += g.total;
    rc = rc < 0 ? 1 : g.total ? write_gathered(c, &g) : 0;
    if (c->secure)
        explicit_bzero(g.stage, g.stage_len);
    return rc;
}

void tc_h2_conn_flush(struct tc_h2_conn *c)
{
    if (!c->ng || !c->bs || c->in_flush)
        return;
    c->in_flush = true;
    size_t bytes = 0;
    bool more = true;
    int rc = write_left(c);
    while (rc == 0 && more && bytes < FLUSH_BYTES)
        rc = flush_once(c, &more, &bytes);
    c->in_flush = false;
    c->write_blocked = rc == TORC_EAGAIN;
    if (rc == 0 && more)
        tc_h2_conn_flush_later(c);
    if (rc > 0)
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_INTERNAL, "HTTP/2 session failed while sending"));
    else if (rc < 0 && rc != TORC_EAGAIN)
        tc_h2_conn_fail(c, stream_error(c));
    else if (c->ng && !nghttp2_session_want_read(c->ng) && !nghttp2_session_want_write(c->ng) && !c->left.len)
        tc_h2_conn_fail(c, tc_status_ref(&c->why));
    else
        tc_h2_conn_check_drained(c);
}

void tc_h2_conn_flush_later(struct tc_h2_conn *c)
{
    if (c->ng && !c->write_blocked)
        tc_loop_at_turn_end(c->loop, &c->flush);
}

static void fail_receive(struct tc_h2_conn *c, int error)
{
    uint32_t code = error == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR;
    tc_h2_conn_terminate(c, code, nghttp2_strerror(error));
}

/* After bytes were taken in: what came of them. */
static void after_receive(struct tc_h2_conn *c)
{
    if (c->terminate_text) {
        tc_h2_conn_terminate(c, c->terminate_code, c->terminate_text);
        return;
    }
    /* What a peer makes us queue is bounded while it does not read. */
    if (c->write_blocked &&
        nghttp2_session_get_outbound_queue_size(c->ng) > c->opts.limits.max_queued_control + 4 * c->active + 16) {
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, "peer makes us answer and does not read"));
        return;
    }
    if (nghttp2_session_want_write(c->ng))
        tc_h2_conn_flush_later(c);
    else if (!nghttp2_session_want_read(c->ng))
        tc_h2_conn_fail(c, tc_status_ref(&c->why));
    else
        tc_h2_conn_check_drained(c);
}

static void end_of_bytes(struct tc_h2_conn *c, ssize_t n)
{
    if (n < 0)
        tc_h2_conn_fail(c, stream_error(c));
    else if (c->draining)
        tc_h2_conn_fail(c, tc_status_ref(&c->why));
    else
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, "connection closed by the %s%s%s",
                                          c->opts.server ? "client" : "server",
                                          c->settings_seen ? "" : " before its HTTP/2 settings",
                                          c->bs->cut ? " without TLS close_notify" : ""));
}

/* Takes in what was read; false when that ended the connection. */
static bool take_in(struct tc_h2_conn *c, const uint8_t *data, size_t len)
{
    tc_h2_keepalive_on_read(c);
    tc_h2_flood_on_bytes(c, data, len);
    ssize_t rc = nghttp2_session_mem_recv(c->ng, data, len);
    if (rc < 0) {
        fail_receive(c, (int)rc);
        return false;
    }
    if (c->heads.hidden > 0)
        tc_h2_flood_on_hidden(c);
    return true;
}

/* Reads until there is no more or others have their turn. The last read's result; *alive is false when what came ended
 * the connection. */
static ssize_t read_some(struct tc_h2_conn *c, bool *alive)
{
    uint8_t *room = tc_loop_read_room(c->loop);
    size_t taken = 0;
    ssize_t n = 1;
    *alive = true;
    for (int i = 0; i < READS_AT_ONCE && taken < BYTES_AT_ONCE && !c->terminate_text; i++) {
        n = c->bs->ops->read(c->bs, room, TC_MIN(TC_LOOP_READ_BYTES, BYTES_AT_ONCE - taken));
        if (n <= 0 || !(*alive = take_in(c, room, (size_t)n)))
            break;
        taken += (size_t)n;
    }
    return n;
}

static void read_more(struct tc_h2_conn *c)
{
    bool alive;
    ssize_t n = read_some(c, &alive);
    if (!alive)
        return;
    if (n == TORC_EAGAIN || n > 0)
        after_receive(c);
    else
        end_of_bytes(c, n);
    /* After this turn: a peer that sends faster than we read must not keep the loop from others. */
    if (n > 0 && c->bs)
        tc_loop_at_turn_end(c->loop, &c->more);
}

void tc_h2_conn_on_more(struct tc_task *task)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(task, struct tc_h2_conn, more);
    if (c->bs)
        read_more(c);
}

void tc_h2_conn_on_event(void *arg, unsigned events)
{
    struct tc_h2_conn *c = arg;
    if (events & TC_BS_WRITABLE) {
        c->write_blocked = false;
        tc_h2_conn_flush_later(c);
    }
    if ((events & TC_BS_READABLE) && c->bs && !tc_task_pending(&c->more))
        read_more(c);
}
