/* A TLS connection as a byte stream, from its handshake on. */
#include <limits.h>

#include "base/mem.h"
#include "tls/internal.h"

/* Plain bytes go into full records, a few of them into one write of the byte stream below. */
enum { RECORD_BYTES = 16 * 1024, MAX_RECORDS_PER_WRITE = 4 };

/* Also the struct tc_tls_handshake that callers see. */
struct tls_stream {
    struct tc_bytestream bs;
    struct tc_loop *loop;
    struct tc_tls_context *ctx;
    struct tc_tls_wire wire;
    SSL *ssl;
    char *name;
    struct tc_tls_peer_check check;

    bool established;
    bool closed; /* only the release is left */
    bool reading;
    bool want_write;       /* a write of the owner returned TORC_EAGAIN */
    bool read_waits_write; /* a read of the owner waits until what is queued was written */
    ssize_t failed;        /* TORC_E*: the connection is of no use any more, bs.error says why */
    struct tc_task kick;   /* the next step of the handshake, or READABLE without an event from below */
    struct tc_task release;

    struct tc_timer timeout;
    uint64_t timeout_ms;
    tc_tls_fn fn;
    void *arg;
};

static struct tls_stream *of(struct tc_bytestream *bs)
{
    return TC_CONTAINER_OF(bs, struct tls_stream, bs);
}

static void on_release(struct tc_task *task)
{
    struct tls_stream *t = TC_CONTAINER_OF(task, struct tls_stream, release);
    SSL_free(t->ssl);
    tc_tls_context_unref(t->ctx);
    tc_buf_fini(&t->check.why);
    tc_tls_wire_fini(&t->wire);
    tc_status_fini(&t->bs.error);
    tc_addr_fini(&t->bs.peer);
    tc_addr_fini(&t->bs.local);
    tc_free(t->name);
    tc_free(t);
}

/* Ends it. The memory goes later, since this may run below one of our own event handlers. */
static void shut(struct tls_stream *t)
{
    if (t->ssl && t->established && t->failed == 0) {
        SSL_shutdown(t->ssl); /* close_notify, as far as the socket takes it now */
        tc_tls_wire_flush(&t->wire);
    }
    ERR_clear_error();
    t->closed = true;
    t->bs.on_event = NULL;
    tc_timer_stop(&t->timeout);
    tc_task_cancel(&t->kick);
    t->wire.lower->ops->close(t->wire.lower);
    t->wire.lower = NULL;
    tc_loop_defer(t->loop, &t->release);
}

/* Handshake. */

static void fail_handshake(struct tls_stream *t, const char *reason)
{
    char *peer = tc_addr_text(&t->wire.lower->peer);
    struct tc_status error =
        t->name[0] ? tc_status_make(TORC_STATUS_UNAVAILABLE, "TLS handshake with \"%s\" (%s) failed: %s", t->name, peer,
                                    reason)
                   : tc_status_make(TORC_STATUS_UNAVAILABLE, "TLS handshake with %s failed: %s", peer, reason);
    tc_free(peer);
    shut(t);
    t->fn(t->arg, NULL, &error);
    tc_status_fini(&error);
}

static void fail_with_reason(struct tls_stream *t)
{
    struct tc_buf reason = {0};
    tc_tls_reason(t->ssl, &t->check, &t->wire, &reason);
    fail_handshake(t, tc_buf_cstr(&reason));
    tc_buf_fini(&reason);
}

static void establish(struct tls_stream *t)
{
    const unsigned char *alpn;
    unsigned alpn_len;
    SSL_get0_alpn_selected(t->ssl, &alpn, &alpn_len);
    if (!tc_slice_eq_str(tc_slice_of(alpn, alpn_len), "h2")) {
        fail_handshake(t, "peer did not negotiate h2 by ALPN");
        return;
    }
    t->established = true;
    t->wire.messages = 0;
    t->bs.alpn = "h2";
    t->bs.secure = true;
    tc_timer_stop(&t->timeout);
    /* Bytes of the peer may have come with the end of its handshake: no event from below will tell of them. */
    tc_loop_defer(t->loop, &t->kick);
    t->fn(t->arg, &t->bs, NULL);
}

/* After a pause: what else is due goes first, and no event from below will tell of what was already read there. */
static void go_on_later(struct tls_stream *t)
{
    tc_loop_at_turn_end(t->loop, &t->kick);
}

static void step_handshake(struct tls_stream *t)
{
    int rc, error;
    tc_tls_wire_start_step(&t->wire);
    do {
        ERR_clear_error();
        rc = SSL_do_handshake(t->ssl);
        error = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, rc);
        tc_tls_wire_flush(&t->wire); /* an alert too */
    } while (error == SSL_ERROR_WANT_WRITE && t->wire.out.len == 0);
    if (rc == 1 && t->wire.write_error == 0)
        establish(t);
    else if ((error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) || t->wire.write_error != 0)
        fail_with_reason(t);
    else if (t->wire.paused)
        go_on_later(t);
}

static void on_timeout(struct tc_timer *timer)
{
    struct tls_stream *t = TC_CONTAINER_OF(timer, struct tls_stream, timeout);
    char *reason = tc_asprintf("timed out after %llu ms", (unsigned long long)t->timeout_ms);
    fail_handshake(t, reason);
    tc_free(reason);
}

/* Events. */

static void raise_event(struct tls_stream *t, unsigned events)
{
    if (!t->reading)
        events &= ~(unsigned)TC_BS_READABLE;
    if (events && t->bs.on_event)
        t->bs.on_event(t->bs.arg, events);
}

static void on_kick(struct tc_task *task)
{
    struct tls_stream *t = TC_CONTAINER_OF(task, struct tls_stream, kick);
    if (t->established)
        raise_event(t, TC_BS_READABLE);
    else
        step_handshake(t);
}

static void on_lower_event(void *arg, unsigned events)
{
    struct tls_stream *t = arg;
    if (events & TC_BS_WRITABLE) {
        t->wire.blocked = false;
        tc_tls_wire_flush(&t->wire);
    }
    if (!t->established) {
        step_handshake(t);
        return;
    }
    unsigned out = events & TC_BS_READABLE;
    bool writable = t->wire.out.len == 0 || t->wire.write_error != 0;
    if (writable && t->want_write) {
        t->want_write = false;
        out |= TC_BS_WRITABLE;
    }
    if (writable && t->read_waits_write) {
        t->read_waits_write = false;
        out |= TC_BS_READABLE;
    }
    raise_event(t, out);
}

/* The byte stream. */

static ssize_t fail_stream(struct tls_stream *t)
{
    ssize_t below = t->wire.read_error ? t->wire.read_error : t->wire.write_error;
    if (below != 0) {
        ERR_clear_error();
        tc_status_set(&t->bs.error, tc_status_ref(&t->wire.lower->error));
    } else {
        struct tc_buf reason = {0};
        char *peer = tc_addr_text(&t->bs.peer);
        tc_tls_reason(t->ssl, &t->check, &t->wire, &reason);
        tc_status_set(&t->bs.error, tc_status_make(TORC_STATUS_UNAVAILABLE, "TLS connection with %s failed: %s", peer,
                                                   tc_buf_cstr(&reason)));
        tc_free(peer);
        tc_buf_fini(&reason);
    }
    t->failed = below != 0 ? below : TORC_EPROTO;
    return t->failed;
}

static ssize_t tls_read(struct tc_bytestream *bs, void *buf, size_t len)
{
    struct tls_stream *t = of(bs);
    if (t->failed != 0)
        return t->failed;
    int n, error;
    tc_tls_wire_start_step(&t->wire);
    do {
        ERR_clear_error();
        n = SSL_read(t->ssl, buf, (int)TC_MIN(len, (size_t)INT_MAX));
        error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, n);
        tc_tls_wire_flush(&t->wire); /* an answer to a key update, or an alert */
    } while (error == SSL_ERROR_WANT_WRITE && t->wire.out.len == 0);
    switch (error) {
    case SSL_ERROR_NONE:
        t->wire.messages = 0;
        return n;
    case SSL_ERROR_WANT_WRITE:
        t->read_waits_write = true;
        return TORC_EAGAIN;
    case SSL_ERROR_WANT_READ:
        if (t->wire.paused)
            go_on_later(t);
        return TORC_EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        t->bs.cut = !t->wire.close_notify;
        return 0;
    default:
        return fail_stream(t);
    }
}

/* Copies up to RECORD_BYTES out of the iovec from position *i, *at on. */
static size_t gather(char *record, const struct iovec *iov, int n, int *i, size_t *at)
{
    size_t len = 0;
    while (*i < n && len < RECORD_BYTES) {
        size_t part = TC_MIN(iov[*i].iov_len - *at, RECORD_BYTES - len);
        if (part > 0)
            memcpy(record + len, (const char *)iov[*i].iov_base + *at, part);
        len += part;
        *at += part;
        if (*at == iov[*i].iov_len) {
            (*i)++;
            *at = 0;
        }
    }
    return len;
}

static ssize_t tls_writev(struct tc_bytestream *bs, const struct iovec *iov, int n)
{
    struct tls_stream *t = of(bs);
    if (t->failed != 0)
        return t->failed;
    tc_tls_wire_flush(&t->wire);
    if (t->wire.write_error != 0)
        return fail_stream(t);
    if (t->wire.out.len > 0) {
        t->want_write = true;
        return TORC_EAGAIN;
    }
    char record[RECORD_BYTES];
    size_t total = 0, at = 0, len;
    int i = 0;
    for (int r = 0; r < MAX_RECORDS_PER_WRITE && (len = gather(record, iov, n, &i, &at)) > 0; r++) {
        ERR_clear_error();
        int written = SSL_write(t->ssl, record, (int)len);
        if (written <= 0)
            return fail_stream(t);
        total += len;
    }
    tc_tls_wire_flush(&t->wire);
    return t->wire.write_error != 0 ? fail_stream(t) : (ssize_t)total;
}

static void tls_set_reading(struct tc_bytestream *bs, bool on)
{
    struct tls_stream *t = of(bs);
    t->reading = on;
    t->wire.lower->ops->set_reading(t->wire.lower, on);
    if (on && (SSL_has_pending(t->ssl) || tc_tls_wire_pending(&t->wire) || t->failed != 0))
        tc_loop_defer(t->loop, &t->kick);
}

static void tls_close(struct tc_bytestream *bs)
{
    shut(of(bs));
}

/* The name as the certificate has it: no brackets around IPv6, no dot of the root. */
static char *plain_name(struct tc_slice name)
{
    if (name.len >= 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
        name = tc_slice_of(name.data + 1, name.len - 2);
    if (name.len > 1 && name.data[name.len - 1] == '.')
        name.len--;
    if (name.len > 0 && memchr(name.data, 0, name.len))
        name.len = 0; /* no name has a NUL */
    return name.len > 0 ? tc_slice_dup(name) : tc_strdup("");
}

static bool tls_peer_is(struct tc_bytestream *bs, struct tc_slice host)
{
    struct tls_stream *t = of(bs);
    char *name = plain_name(host);
    bool ok = tc_tls_peer_is(t->ssl, t->ctx, name);
    tc_free(name);
    return ok;
}

static const struct tc_bytestream_ops tls_ops = {tls_read, tls_writev, tls_set_reading, tls_close, tls_peer_is};

/* False: OpenSSL would not have it. */
static bool make_ssl(struct tls_stream *t)
{
    ERR_clear_error();
    t->ssl = SSL_new(t->ctx->ssl_ctx);
    BIO *bio = t->ssl ? tc_tls_wire_bio(&t->wire) : NULL;
    if (!bio)
        return false;
    SSL_set_bio(t->ssl, bio, bio);
    tc_tls_wire_count_messages(&t->wire, t->ssl);
    return tc_tls_prepare(t->ssl, &t->check);
}

static void on_unusable(struct tc_task *task)
{
    struct tls_stream *t = TC_CONTAINER_OF(task, struct tls_stream, kick);
    ERR_clear_error();
    fail_handshake(t, t->name[0] || t->ctx->server ? "OpenSSL refused the connection's settings"
                                                   : "there is no server name to verify");
}

struct tc_tls_handshake *tc_tls_handshake(struct tc_loop *loop, struct tc_tls_context *ctx, struct tc_bytestream *bs,
                                          struct tc_slice server_name, uint64_t timeout_ms, tc_tls_fn fn, void *arg)
{
    struct tls_stream *t = TC_NEW(struct tls_stream);
    t->bs.ops = &tls_ops;
    t->bs.peer = tc_addr_ref(&bs->peer);
    t->bs.local = tc_addr_ref(&bs->local);
    t->loop = loop;
    t->ctx = tc_tls_context_ref(ctx);
    tc_tls_wire_init(&t->wire, bs);
    t->name = plain_name(ctx->server ? tc_slice_str("") : server_name);
    t->check = (struct tc_tls_peer_check){.ctx = ctx, .name = t->name};
    t->reading = true;
    t->timeout_ms = timeout_ms;
    t->fn = fn;
    t->arg = arg;
    tc_task_init(&t->kick, make_ssl(t) ? on_kick : on_unusable);
    tc_task_init(&t->release, on_release);
    tc_timer_init(&t->timeout, loop, on_timeout);
    if (timeout_ms > 0)
        tc_timer_start(&t->timeout, timeout_ms);
    tc_bytestream_set_handler(bs, on_lower_event, t);
    tc_loop_defer(loop, &t->kick);
    return (struct tc_tls_handshake *)t;
}

void tc_tls_handshake_cancel(struct tc_tls_handshake *h)
{
    shut((struct tls_stream *)h);
}
