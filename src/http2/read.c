/* Bytes from the socket to nghttp2, in turns: a peer that sends faster than we read must not keep the loop from other
 * connections.
 *
 * nghttp2's callbacks must not end the connection. They record a violation (glitches.violation), which ends the
 * connection here: once nghttp2 has taken the bytes that were read or, if nghttp2 was sending, at the next read. The
 * number of queued frames is checked here too: a peer that makes us answer (PING, SETTINGS) and does not read loses the
 * connection.
 *
 * A connection that ends here is not freed: c->bs and c->ng become NULL, and the owner hears of it later, from the
 * loop. Loop thread only. */
#include "http2/connection_internal.h"

enum {
    /* limits of one conn_read, before other connections have their turn */
    READS_AT_ONCE = 16,
    BYTES_AT_ONCE = 512 << 10,
    NO_TLS = 255 /* of tls_bytes: the first bytes were not those of a TLS alert */
};

static void conn_fail_receive(struct tc_h2_conn *c, int error)
{
    uint32_t code = error == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR;
    tc_h2_conn_terminate(c, code, nghttp2_strerror(error));
}

/* Ends the connection for a violation, a full queue, the end of the session, or a drain that is complete. Otherwise has
 * nghttp2's frames sent. */
static void conn_after_receive(struct tc_h2_conn *c)
{
    if (c->glitches.violation) {
        tc_h2_conn_terminate(c, c->glitches.error_code, c->glitches.violation);
        return;
    }
    if (c->write.blocked && nghttp2_session_get_outbound_queue_size(c->ng) >
                                c->opts.limits.max_queued_control + 4 * c->streams.active + 16) {
        tc_h2_conn_fail(
            c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "peer makes us answer and does not read"));
        return;
    }
    if (nghttp2_session_want_write(c->ng))
        tc_h2_conn_flush_later(c);
    else if (!nghttp2_session_want_read(c->ng) && !c->write.unsent.len)
        tc_h2_conn_fail(c, tc_status_ref(&c->ending.why));
    else
        tc_h2_conn_check_drained(c);
}

/* OpenSSL's servers send no alert to a client that does not speak TLS: they close the connection. */
static const char *eof_detail(const struct tc_h2_conn *c)
{
    if (c->bs->cut)
        return " without TLS close_notify";
    return c->settings_seen || c->opts.server || c->secure ? "" : " (it may want TLS)";
}

static void conn_on_eof(struct tc_h2_conn *c, ssize_t n)
{
    if (n < 0)
        tc_h2_conn_fail(c, tc_h2_conn_broken(c));
    else if (c->ending.draining)
        tc_h2_conn_fail(c, tc_status_ref(&c->ending.why));
    else
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "connection closed by the %s%s%s",
                                          c->opts.server ? "client" : "server",
                                          c->settings_seen ? "" : " before its HTTP/2 settings", eof_detail(c)));
}

/* Returns true if the first bytes are a TLS alert: the server expects TLS and answers our preface with an alert. HTTP/2
 * settings cannot begin like that: they would be longer than the largest frame that we take. */
static bool conn_sees_tls(struct tc_h2_conn *c, const uint8_t *data, size_t len)
{
    static const uint8_t alert[] = {21, 3};
    if (c->settings_seen || c->opts.server || c->tls_bytes == NO_TLS)
        return false;
    for (size_t i = 0; i < len && c->tls_bytes < sizeof(alert); i++) {
        if (data[i] != alert[c->tls_bytes]) {
            c->tls_bytes = NO_TLS;
            return false;
        }
        c->tls_bytes++;
    }
    return c->tls_bytes == sizeof(alert);
}

/* Hands bytes to nghttp2. Returns false if they ended the connection. */
static bool conn_receive(struct tc_h2_conn *c, const uint8_t *data, size_t len)
{
    if (conn_sees_tls(c, data, len)) {
        tc_h2_conn_fail(
            c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "the server speaks TLS instead of HTTP/2"));
        return false;
    }
    tc_h2_keepalive_on_read(c);
    tc_h2_glitches_on_bytes(&c->glitches, data, len);
    ssize_t rc = nghttp2_session_mem_recv(c->ng, data, len);
    if (rc < 0) {
        conn_fail_receive(c, (int)rc);
        return false;
    }
    if (c->glitches.hidden > 0)
        tc_h2_glitches_on_hidden(&c->glitches, !nghttp2_session_want_read(c->ng));
    return true;
}

/* Reads until a read brings nothing, a limit is reached, or a violation is recorded. Returns the last read's result,
 * above 0 if there may be more to read; 1 without a read if a violation was recorded before. *alive is false if the
 * bytes ended the connection. */
static ssize_t conn_read_some(struct tc_h2_conn *c, bool *alive)
{
    uint8_t *room = tc_loop_read_room(c->loop);
    size_t taken = 0;
    ssize_t n = 1;
    *alive = true;
    for (int i = 0; i < READS_AT_ONCE && taken < BYTES_AT_ONCE && !c->glitches.violation; i++) {
        n = c->bs->ops->read(c->bs, room, TC_MIN(TC_LOOP_READ_BYTES, BYTES_AT_ONCE - taken));
        if (n <= 0 || !(*alive = conn_receive(c, room, (size_t)n)))
            break;
        taken += (size_t)n;
    }
    return n;
}

static void conn_read(struct tc_h2_conn *c)
{
    bool alive;
    ssize_t n = conn_read_some(c, &alive);
    if (!alive)
        return;
    if (n == TORC_EAGAIN || n > 0)
        conn_after_receive(c);
    else
        conn_on_eof(c, n);
    /* The rest is read at the end of the turn, or of the next turn if this is the end of one. */
    if (n > 0 && c->bs)
        tc_loop_at_turn_end(c->loop, &c->read_more);
}

void tc_h2_conn_on_read_more(struct tc_task *task)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(task, struct tc_h2_conn, read_more);
    if (c->bs)
        conn_read(c);
}

void tc_h2_conn_on_event(void *arg, unsigned events)
{
    struct tc_h2_conn *c = arg;
    if (events & TC_BS_WRITABLE) {
        c->write.blocked = false;
        tc_h2_conn_flush_later(c);
    }
    if ((events & TC_BS_READABLE) && c->bs && !tc_task_pending(&c->read_more))
        conn_read(c);
}
