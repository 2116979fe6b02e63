/* Frames on their way to the socket: the frames of a turn are gathered, and go out by one write unless they are many.
 *
 * A flush asks nghttp2 for frames until nghttp2 has no more or the gather is full, and writes them. It repeats that
 * until nghttp2 has no more, the socket takes no more, or FLUSH_BYTES or more were gathered. Frames without message
 * bytes, heads of DATA frames and short pieces of messages are copied to the gather's stage. A piece of more than
 * COPY_BYTES is sent from where it lies, without a copy. Bytes that the socket does not take are copied to `unsent`,
 * since the owner of a message may free it once on_written was called. nghttp2 is not asked for further frames until
 * `unsent` is empty. `blocked` is set from the flush that the socket stopped until the socket is writable (read.c): no
 * flush is queued meanwhile.
 *
 * A flush fails the connection if the byte stream or the session fails, if nghttp2 has nothing left to read and to
 * write, or if a drain is complete. Loop thread only. */
#include "http2/server_stream_internal.h"

enum {
    FRAME_BYTES = (16 << 10) + 64, /* nghttp2 gives one frame at a time, of at most this length */
    STAGE_BYTES = 2 * FRAME_BYTES,
    GATHER_IOV = 128,
    FLUSH_BYTES = 1 << 20, /* a flush that has gathered so many ends; the rest goes out after others had their turn */
    COPY_BYTES = 1024
};

/* The frames of one write, on the stack of conn_flush_once. */
struct tc_h2_gather {
    struct iovec iov[GATHER_IOV];   /* pieces of the stage and borrowed pieces of messages, in their order */
    int n;                          /* how many vectors are in use */
    size_t total, stage_len, limit; /* bytes of all vectors; of the stage; `total` at which the gather is full */
    bool full;                      /* nghttp2 may have frames left */
    uint8_t stage[STAGE_BYTES];
};

/* Copies bytes to the stage, which has room for a frame until the gather is full. */
static inline void gather_stage(struct tc_h2_gather *g, const void *data, size_t len)
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

/* Adds a piece of a message: a copy of a short piece; a longer one is borrowed until the gather was written. */
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
    return g->total >= g->limit || g->n >= GATHER_IOV - 4 || g->stage_len > STAGE_BYTES - FRAME_BYTES;
}

ssize_t tc_h2_on_data_source_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                                  nghttp2_data_source *source, void *user_data)
{
    (void)buf, (void)source, (void)user_data;
    struct tc_h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);
    if (!s)
        return NGHTTP2_ERR_DEFERRED;
    size_t left = s->send.active ? TC_H2_PREFIX_LEN + s->send.message.len - s->send.at : 0;
    if (left <= length && s->send.end_wanted) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (tc_h2_stream_serves(s)) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            tc_h2_server_stream_submit_trailers(tc_h2_server_stream_of(s));
        }
    } else if (!s->send.active) {
        s->send.deferred = true;
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
    struct tc_h2_gather *g = c->write.gather;
    struct tc_h2_stream *s = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    if (!s || (length && !s->send.active))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    gather_stage(g, head, 9);
    if (length && s->send.at < TC_H2_PREFIX_LEN) {
        size_t n = TC_MIN(length, TC_H2_PREFIX_LEN - s->send.at);
        gather_stage(g, s->send.prefix + s->send.at, n);
        s->send.at += n;
        length -= n;
    }
    if (length) {
        gather_borrow(g, s->send.message.data + (s->send.at - TC_H2_PREFIX_LEN), length);
        s->send.at += length;
    }
    if (s->send.active && s->send.at == TC_H2_PREFIX_LEN + s->send.message.len) {
        s->send.active = false;
        s->send.on_written_due = true;
        tc_h2_stream_ready(s);
    }
    if (!gather_full(g))
        return 0;
    g->full = true;
    return NGHTTP2_ERR_PAUSE;
}

/* Fills the gather with frames. Returns 0 or an nghttp2 error. */
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

struct tc_status tc_h2_conn_broken(const struct tc_h2_conn *c)
{
    struct tc_status why = tc_status_ref(&c->bs->error);
    if (tc_status_ok(&why)) {
        tc_status_fini(&why);
        why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "connection broken");
    }
    return why;
}

void tc_h2_conn_drop_unsent(struct tc_h2_conn *c)
{
    if (c->secure)
        tc_buf_wipe(&c->write.unsent);
    else
        tc_buf_fini(&c->write.unsent);
    c->write.unsent_at = 0;
}

/* Writes `unsent`: the bytes that the socket did not take last time. Returns 0 when all of it is gone, TORC_EAGAIN, or
 * the error of the byte stream. */
static int unsent_write(struct tc_h2_conn *c)
{
    while (c->write.unsent_at < c->write.unsent.len) {
        struct iovec iov = {c->write.unsent.data + c->write.unsent_at, c->write.unsent.len - c->write.unsent_at};
        ssize_t n = c->bs->ops->writev(c->bs, &iov, 1);
        if (n <= 0)
            return n == 0 ? TORC_EAGAIN : (int)n;
        c->write.unsent_at += (size_t)n;
    }
    tc_h2_conn_drop_unsent(c);
    return 0;
}

/* Copies the gathered bytes that were not written; `unsent` is empty on entry. Reserves once: a buffer that grows
 * leaves parts of messages behind in freed memory. */
static void unsent_keep(struct tc_h2_conn *c, const struct iovec *iov, const struct iovec *end)
{
    size_t bytes = 0;
    for (const struct iovec *it = iov; it < end; it++)
        bytes += it->iov_len;
    tc_buf_reserve(&c->write.unsent, bytes);
    for (; iov < end; iov++)
        tc_buf_append(&c->write.unsent, iov->iov_base, iov->iov_len);
}

/* Takes n bytes off the front. Returns the first vector that is left. */
static struct iovec *iov_skip(struct iovec *iov, size_t n)
{
    while (n > 0 && n >= iov->iov_len)
        n -= (iov++)->iov_len;
    if (n > 0) {
        iov->iov_base = (char *)iov->iov_base + n;
        iov->iov_len -= n;
    }
    return iov;
}

/* Writes the gathered bytes, or keeps in `unsent` those that the socket does not take. Returns 0, TORC_EAGAIN, or the
 * error of the byte stream. */
static int gather_write(struct tc_h2_conn *c, struct tc_h2_gather *g)
{
    struct iovec *iov = g->iov, *end = g->iov + g->n;
    while (iov < end) {
        ssize_t n = c->bs->ops->writev(c->bs, iov, (int)(end - iov));
        if (n < 0 && n != TORC_EAGAIN)
            return (int)n;
        if (n <= 0) {
            unsent_keep(c, iov, end);
            return TORC_EAGAIN;
        }
        iov = iov_skip(iov, (size_t)n);
    }
    return 0;
}

/* Gathers and writes once. *more: nghttp2 may have frames left. Adds to *bytes what was gathered. Returns 0, an error
 * of the byte stream (TORC_EAGAIN: the rest is in `unsent`), or 1 for an error of nghttp2. */
static int conn_flush_once(struct tc_h2_conn *c, bool *more, size_t *bytes)
{
    struct tc_h2_gather g;
    g.n = 0;
    g.limit = c->opts.limits.write_bytes;
    g.total = g.stage_len = 0;
    g.full = false;
    c->write.gather = &g;
    int rc = gather_frames(c, &g);
    c->write.gather = NULL;
    *more = g.full;
    *bytes += g.total;
    rc = rc < 0 ? 1 : g.total ? gather_write(c, &g) : 0;
    if (c->secure)
        explicit_bzero(g.stage, g.stage_len);
    return rc;
}

void tc_h2_conn_flush(struct tc_h2_conn *c)
{
    if (!c->ng || !c->bs || c->write.in_flush)
        return;
    c->write.in_flush = true;
    size_t bytes = 0;
    bool more = true;
    int rc = unsent_write(c);
    while (rc == 0 && more && bytes < FLUSH_BYTES)
        rc = conn_flush_once(c, &more, &bytes);
    c->write.in_flush = false;
    c->write.blocked = rc == TORC_EAGAIN;
    if (rc == 0 && more)
        tc_h2_conn_flush_later(c);
    if (rc > 0)
        tc_h2_conn_fail(c,
                        tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "HTTP/2 session failed while sending"));
    else if (rc < 0 && rc != TORC_EAGAIN)
        tc_h2_conn_fail(c, tc_h2_conn_broken(c));
    else if (c->ng && !nghttp2_session_want_read(c->ng) && !nghttp2_session_want_write(c->ng) && !c->write.unsent.len)
        tc_h2_conn_fail(c, tc_status_ref(&c->ending.why));
    else if (c->ng && !nghttp2_session_want_read(c->ng))
        tc_h2_keepalive_await_last(c);
    else
        tc_h2_conn_check_drained(c);
}

void tc_h2_conn_flush_later(struct tc_h2_conn *c)
{
    if (c->ng && !c->write.blocked)
        tc_loop_at_turn_end(c->loop, &c->write.flush);
}
