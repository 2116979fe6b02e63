/* A TLS connection as a byte stream, from its handshake on.
 *
 * The same object is the handshake and then the stream:
 *
 *   handshake     handshake_step runs whenever the lower stream has bytes or room, and from `kick` at the start and
 *                 after a pause of the wire, until OpenSSL is done or fails; `timeout` bounds the handshake, if
 *                 timeout_ms is not 0; a failure closes the stream, and fn gets the reason
 *   established   reads and writes go through OpenSSL to the wire (tls/wire.c), which has its own bounds
 *   failed        after the handshake: every read and write returns the same error
 *   closed        close_notify was tried, if the stream was established and had not failed; the stream below is closed;
 *                 a task frees the memory later, since the owner may close from inside this file's own event handlers
 *
 * Once established, `kick` raises READABLE without an event from below in three cases: for bytes that came with the
 * end of the handshake; for bytes, an end or an error that are known when reading is turned on again; and for the rest
 * of a read that the wire paused.
 *
 * Writes: plain bytes are gathered into records of at most RECORD_BYTES, and up to MAX_RECORDS_PER_WRITE records into
 * one write below.
 *
 * The TLS stream owns the stream below from tc_tls_handshake on, and holds a reference to its context. The TLS stream
 * itself belongs to the caller of tc_tls_handshake, and after the handshake to the callee of `fn`. Loop thread only. */
#include <limits.h>

#include "base/fork.h"
#include "base/mem.h"
#include "tls/identity.h"
#include "tls/tls_internal.h"

enum { RECORD_BYTES = 16 * 1024, MAX_RECORDS_PER_WRITE = 4 };

/* Callers see a tls_stream as struct tc_tls_handshake, and after the handshake as the member `bs`. */
struct tls_stream {
    struct tc_bytestream bs;
    struct tc_loop *loop;
    struct tc_tls_context *ctx;
    struct tc_tls_wire wire;
    SSL *ssl;
    char *name;
    struct tc_tls_peer_check check;

    bool established;
    bool reading;
    bool want_write;       /* a write of the owner returned TORC_EAGAIN */
    bool read_waits_write; /* a read of the owner waits until the queued bytes are written */
    ssize_t failed;        /* TORC_E*: the connection cannot be used, bs.error says why; 0: it can */
    struct tc_task kick;   /* without an event from below: a step of the handshake, the failure of one that cannot
                              begin, or READABLE */
    struct tc_task release;

    struct tc_timer timeout;
    uint64_t timeout_ms;
    tc_tls_fn fn;
    void *arg;
    const char *unusable; /* why no handshake can begin, a static text; NULL: one can */
};

static struct tls_stream *stream_of(struct tc_bytestream *bs)
{
    return TC_CONTAINER_OF(bs, struct tls_stream, bs);
}

static void stream_on_release(struct tc_task *task)
{
    struct tls_stream *t = TC_CONTAINER_OF(task, struct tls_stream, release);
    if (tc_foreign_enter()) {
        SSL_free(t->ssl);
        tc_foreign_leave();
    }
    tc_tls_identity_unref(t->bs.tls_peer);
    tc_tls_context_unref(t->ctx);
    tc_buf_fini(&t->check.why);
    tc_tls_wire_fini(&t->wire);
    tc_status_fini(&t->bs.error);
    tc_addr_fini(&t->bs.peer);
    tc_addr_fini(&t->bs.local);
    tc_free(t->name);
    tc_free(t);
}

static void stream_shut(struct tls_stream *t)
{
    if (tc_foreign_enter()) {
        if (t->ssl && t->established && t->failed == 0) {
            SSL_shutdown(t->ssl); /* sends close_notify, as far as the stream below takes it now */
            tc_tls_wire_flush(&t->wire);
        }
        ERR_clear_error();
        tc_foreign_leave();
    }
    t->bs.on_event = NULL;
    tc_timer_stop(&t->timeout);
    tc_task_cancel(&t->kick);
    t->wire.lower->ops->close(t->wire.lower);
    t->wire.lower = NULL;
    tc_loop_defer(t->loop, &t->release);
}

/* Continues the handshake, or reads, until OpenSSL has a result or wants bytes or room from below, or the wire pauses.
 * Returns an SSL_ERROR_*, and stores the result of OpenSSL's function in *n. Returns SSL_ERROR_SSL without storing *n
 * if the process is exiting. Each round flushes the wire: OpenSSL may have written messages of the handshake, an alert,
 * or an answer to a key update. */
static int stream_step(struct tls_stream *t, void *buf, size_t len, int *n)
{
    int error = SSL_ERROR_SSL;
    tc_tls_wire_start_step(&t->wire);
    if (!tc_foreign_enter())
        return error;
    do {
        ERR_clear_error();
        *n = t->established ? SSL_read(t->ssl, buf, (int)TC_MIN(len, (size_t)INT_MAX)) : SSL_do_handshake(t->ssl);
        error = *n > 0 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, *n);
        tc_tls_wire_flush(&t->wire);
    } while (error == SSL_ERROR_WANT_WRITE && t->wire.out.len == 0);
    tc_foreign_leave();
    return error;
}

/* --- the handshake --- */

/* Shuts the stream, and then calls fn with an error whose text names the peer and the reason. */
static void handshake_fail(struct tls_stream *t, const char *reason)
{
    char *peer = tc_addr_text(&t->wire.lower->peer);
    struct tc_status error =
        t->name[0]
            ? tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS, "TLS handshake with \"%s\" (%s) failed: %s",
                             t->name, peer, reason)
            : tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS, "TLS handshake with %s failed: %s", peer, reason);
    tc_free(peer);
    stream_shut(t);
    t->fn(t->arg, NULL, &error);
    tc_status_fini(&error);
}

/* Appends the reason why the last operation failed. */
static void stream_append_reason(struct tls_stream *t, struct tc_buf *out)
{
    if (!tc_foreign_enter()) {
        tc_buf_append_str(out, TC_TLS_EXITING);
        return;
    }
    tc_tls_reason(t->ssl, &t->check, &t->wire, out);
    tc_foreign_leave();
}

static void handshake_fail_with_reason(struct tls_stream *t)
{
    struct tc_buf reason = {0};
    stream_append_reason(t, &reason);
    handshake_fail(t, tc_buf_cstr(&reason));
    tc_buf_fini(&reason);
}

/* On a server that asks for certificates, keeps the client's identity. Returns false if tc_tls_identify fails; the
 * handshake has then failed (handshake_fail). */
static bool stream_note_peer(struct tls_stream *t)
{
    struct tc_buf why = {0};
    if (!t->ctx->server || t->ctx->verify == TC_TLS_VERIFY_NONE)
        return true;
    t->bs.tls_peer = tc_tls_identify(&t->bs, &why);
    if (!t->bs.tls_peer)
        handshake_fail(t, tc_buf_cstr(&why));
    tc_buf_fini(&why);
    return t->bs.tls_peer != NULL;
}

static void stream_establish(struct tls_stream *t)
{
    const unsigned char *alpn;
    unsigned alpn_len;
    SSL_get0_alpn_selected(t->ssl, &alpn, &alpn_len);
    if (!tc_slice_eq_str(tc_slice_of(alpn, alpn_len), "h2")) {
        handshake_fail(t, "peer did not negotiate h2 by ALPN");
        return;
    }
    if (!stream_note_peer(t))
        return;
    t->established = true;
    t->wire.messages = 0;
    t->bs.alpn = "h2";
    t->bs.secure = true;
    tc_timer_stop(&t->timeout);
    tc_loop_defer(t->loop, &t->kick);
    t->fn(t->arg, &t->bs, NULL);
}

/* Continues after a pause of the wire: at the end of this turn, or of the next turn if this turn's end has begun. */
static void stream_continue_later(struct tls_stream *t)
{
    tc_loop_at_turn_end(t->loop, &t->kick);
}

static void handshake_step(struct tls_stream *t)
{
    int rc, error = stream_step(t, NULL, 0, &rc);
    if (error == SSL_ERROR_NONE && t->wire.write_error == 0)
        stream_establish(t);
    else if ((error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) || t->wire.write_error != 0)
        handshake_fail_with_reason(t);
    else if (t->wire.paused)
        stream_continue_later(t);
}

static void handshake_on_timeout(struct tc_timer *timer)
{
    struct tls_stream *t = TC_CONTAINER_OF(timer, struct tls_stream, timeout);
    char *reason = tc_asprintf("timed out after %llu ms", (unsigned long long)t->timeout_ms);
    handshake_fail(t, reason);
    tc_free(reason);
}

/* --- events --- */

static void stream_raise(struct tls_stream *t, unsigned events)
{
    if (!t->reading)
        events &= ~(unsigned)TC_BS_READABLE;
    if (events && t->bs.on_event)
        t->bs.on_event(t->bs.arg, events);
}

static void stream_on_kick(struct tc_task *task)
{
    struct tls_stream *t = TC_CONTAINER_OF(task, struct tls_stream, kick);
    if (t->established)
        stream_raise(t, TC_BS_READABLE);
    else
        handshake_step(t);
}

static void stream_on_lower_event(void *arg, unsigned events)
{
    struct tls_stream *t = arg;
    if (events & TC_BS_WRITABLE) {
        t->wire.blocked = false;
        tc_tls_wire_flush(&t->wire);
    }
    if (!t->established) {
        handshake_step(t);
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
    stream_raise(t, out);
}

/* --- the byte stream --- */

static ssize_t stream_fail(struct tls_stream *t)
{
    ssize_t below = t->wire.read_error ? t->wire.read_error : t->wire.write_error;
    if (below != 0) {
        tc_status_set(&t->bs.error, tc_status_ref(&t->wire.lower->error));
    } else {
        struct tc_buf reason = {0};
        char *peer = tc_addr_text(&t->bs.peer);
        stream_append_reason(t, &reason);
        tc_status_set(&t->bs.error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS,
                                                   "TLS connection with %s failed: %s", peer, tc_buf_cstr(&reason)));
        tc_free(peer);
        tc_buf_fini(&reason);
    }
    t->failed = below != 0 ? below : TORC_EPROTO;
    return t->failed;
}

static ssize_t tls_read(struct tc_bytestream *bs, void *buf, size_t len)
{
    struct tls_stream *t = stream_of(bs);
    if (t->failed != 0)
        return t->failed;
    int n;
    switch (stream_step(t, buf, len, &n)) {
    case SSL_ERROR_NONE:
        t->wire.messages = 0;
        return n;
    case SSL_ERROR_WANT_WRITE:
        t->read_waits_write = true;
        return TORC_EAGAIN;
    case SSL_ERROR_WANT_READ:
        if (t->wire.paused)
            stream_continue_later(t);
        return TORC_EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        t->bs.cut = !t->wire.close_notify;
        return 0;
    case SSL_ERROR_SYSCALL: /* an error of the wire; with OpenSSL 1.1.1 also an end without close_notify */
        if (!t->wire.eof || t->wire.read_error != 0 || t->wire.write_error != 0)
            return stream_fail(t);
        t->bs.cut = true;
        return 0;
    default:
        return stream_fail(t);
    }
}

/* Copies up to RECORD_BYTES out of the iovec, starting at byte *at of element *i, and advances *i and *at. Returns the
 * number of bytes. */
static size_t record_gather(char *record, const struct iovec *iov, int n, int *i, size_t *at)
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
    struct tls_stream *t = stream_of(bs);
    if (t->failed != 0)
        return t->failed;
    tc_tls_wire_flush(&t->wire);
    if (t->wire.write_error != 0)
        return stream_fail(t);
    if (t->wire.out.len > 0) {
        t->want_write = true;
        return TORC_EAGAIN;
    }
    char record[RECORD_BYTES];
    size_t total = 0, at = 0, len;
    int i = 0;
    bool good = tc_foreign_enter(), inside = good;
    for (int r = 0; good && r < MAX_RECORDS_PER_WRITE && (len = record_gather(record, iov, n, &i, &at)) > 0; r++) {
        ERR_clear_error();
        good = SSL_write(t->ssl, record, (int)len) > 0;
        total += len;
    }
    if (inside)
        tc_foreign_leave();
    if (good)
        tc_tls_wire_flush(&t->wire);
    return !good || t->wire.write_error != 0 ? stream_fail(t) : (ssize_t)total;
}

static void tls_set_reading(struct tc_bytestream *bs, bool on)
{
    struct tls_stream *t = stream_of(bs);
    t->reading = on;
    t->wire.lower->ops->set_reading(t->wire.lower, on);
    if (on && (SSL_has_pending(t->ssl) || tc_tls_wire_pending(&t->wire) || t->failed != 0))
        tc_loop_defer(t->loop, &t->kick);
}

static void tls_close(struct tc_bytestream *bs)
{
    stream_shut(stream_of(bs));
}

/* Returns a copy of the name (tc_free) without brackets around it and without a dot at its end; "" for a name with a
 * NUL. */
static char *name_plain(struct tc_slice name)
{
    if (name.len >= 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
        name = tc_slice_of(name.data + 1, name.len - 2);
    if (name.len > 1 && name.data[name.len - 1] == '.')
        name.len--;
    if (name.len > 0 && memchr(name.data, 0, name.len))
        name.len = 0;
    return name.len > 0 ? tc_slice_dup(name) : tc_strdup("");
}

static bool tls_peer_is(struct tc_bytestream *bs, struct tc_slice host)
{
    struct tls_stream *t = stream_of(bs);
    char *name = name_plain(host);
    bool own = !t->ctx->one_name || tc_slice_ieq(tc_slice_str(name), tc_slice_str(t->name));
    bool inside = own && tc_foreign_enter(), ok = inside && tc_tls_peer_is(t->ssl, t->ctx, name);
    if (inside)
        tc_foreign_leave();
    tc_free(name);
    return ok;
}

static const struct tc_bytestream_ops tls_ops = {tls_read, tls_writev, tls_set_reading, tls_close, tls_peer_is};

SSL *tc_tls_stream_ssl(struct tc_bytestream *bs, const struct tc_tls_context **ctx, const char **name)
{
    const struct tls_stream *t = stream_of(bs);
    *ctx = t->ctx;
    *name = t->name;
    return t->ssl;
}

static const char *stream_make_ssl_inside(struct tls_stream *t)
{
    ERR_clear_error();
    t->ssl = SSL_new(t->ctx->ssl_ctx);
    BIO *bio = t->ssl ? tc_tls_wire_bio(&t->wire) : NULL;
    if (!bio)
        return TC_TLS_REFUSED;
    SSL_set_bio(t->ssl, bio, bio);
    tc_tls_wire_count_messages(&t->wire, t->ssl);
    return tc_tls_prepare(t->ssl, &t->check);
}

/* Returns NULL, or the reason why no handshake can begin, a static text. */
static const char *stream_make_ssl(struct tls_stream *t)
{
    if (!tc_foreign_enter())
        return TC_TLS_EXITING;
    const char *why = stream_make_ssl_inside(t);
    tc_foreign_leave();
    return why;
}

static void stream_on_unusable(struct tc_task *task)
{
    struct tls_stream *t = TC_CONTAINER_OF(task, struct tls_stream, kick);
    handshake_fail(t, t->unusable);
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
    t->name = name_plain(ctx->server ? tc_slice_str("") : server_name);
    t->check = (struct tc_tls_peer_check){.ctx = ctx, .name = t->name};
    t->reading = true;
    t->timeout_ms = timeout_ms;
    t->fn = fn;
    t->arg = arg;
    t->unusable = stream_make_ssl(t);
    tc_task_init(&t->kick, t->unusable ? stream_on_unusable : stream_on_kick);
    tc_task_init(&t->release, stream_on_release);
    tc_timer_init(&t->timeout, loop, handshake_on_timeout);
    if (timeout_ms > 0)
        tc_timer_start(&t->timeout, timeout_ms);
    /* An event may come before `kick`: it must not begin a handshake that checks nothing. */
    tc_bytestream_set_handler(bs, t->unusable ? NULL : stream_on_lower_event, t);
    tc_loop_defer(loop, &t->kick);
    return (struct tc_tls_handshake *)t;
}

void tc_tls_handshake_cancel(struct tc_tls_handshake *h)
{
    stream_shut((struct tls_stream *)h);
}
