/* OpenSSL's BIO over a byte stream, with bounds on the work that a peer can cause at once.
 *
 *   in    what one read of up to IN_BYTES (a little more than a full record) brought; OpenSSL takes it from there
 *   out   bytes from OpenSSL that the stream below has not taken yet; above OUT_LIMIT_BYTES OpenSSL must wait, so that
 *         answers to key updates cannot pile up
 *
 * A step (tls/stream.c: one handshake step or one read) may take STEP_BYTES, more than any record, so that each step
 * makes progress. When they are used up the wire pauses, and the rest waits for the end of this turn of the loop, or of
 * the next one. Handshake messages received, and alerts sent, are counted; tls/stream.c begins the count again when
 * data comes and when the handshake ends. Above TC_TLS_MAX_MESSAGES a read fails, and the connection with it.
 *
 * A wire is part of its TLS stream, and is for the thread of the stream's loop. The TLS stream owns the byte stream
 * below. */
#include "tls/tls_internal.h"

#include <pthread.h>

#include "base/mem.h"

enum { IN_BYTES = 17 * 1024, OUT_LIMIT_BYTES = 256 * 1024, STEP_BYTES = 256 * 1024 };

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static int wire_write(BIO *bio, const char *data, int len)
{
    struct tc_tls_wire *w = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (w->write_error != 0 || len <= 0)
        return -1;
    if (w->out.len > OUT_LIMIT_BYTES) {
        BIO_set_retry_write(bio);
        return -1;
    }
    tc_buf_append(&w->out, data, (size_t)len);
    return len;
}

/* Fills `in` by one read from below. Returns false when nothing came: the BIO is set to retry, or the lower stream has
 * ended or failed. */
static bool wire_refill(struct tc_tls_wire *w, BIO *bio)
{
    if (w->eof || w->read_error != 0)
        return false;
    if (!w->in)
        w->in = tc_malloc(IN_BYTES);
    ssize_t n = w->lower->ops->read(w->lower, w->in, IN_BYTES);
    if (n > 0) {
        w->in_at = 0;
        w->in_len = (size_t)n;
        return true;
    }
    if (n == 0)
        w->eof = true;
    else if (n == TORC_EAGAIN)
        BIO_set_retry_read(bio);
    else
        w->read_error = n;
    return false;
}

static int wire_read(BIO *bio, char *buf, int len)
{
    struct tc_tls_wire *w = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0)
        return 0;
    if (w->messages > TC_TLS_MAX_MESSAGES)
        return -1;
    if (w->budget == 0) {
        w->paused = true;
        BIO_set_retry_read(bio);
        return -1;
    }
    if (w->in_at == w->in_len && !wire_refill(w, bio))
        return w->eof ? 0 : -1;
    size_t n = TC_MIN(TC_MIN((size_t)len, w->in_len - w->in_at), w->budget);
    memcpy(buf, w->in + w->in_at, n);
    w->in_at += n;
    w->budget -= n;
    return (int)n;
}

static long wire_ctrl(BIO *bio, int cmd, long num TC_UNUSED, void *ptr TC_UNUSED)
{
    struct tc_tls_wire *w = BIO_get_data(bio);
    if (cmd == BIO_CTRL_EOF)
        return w->eof;
    return cmd == BIO_CTRL_FLUSH;
}

static void wire_make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "torc byte stream");
    if (!method)
        return;
    BIO_meth_set_write(method, wire_write);
    BIO_meth_set_read(method, wire_read);
    BIO_meth_set_ctrl(method, wire_ctrl);
}

BIO *tc_tls_wire_bio(struct tc_tls_wire *w)
{
    pthread_once(&method_once, wire_make_method);
    BIO *bio = method ? BIO_new(method) : NULL;
    if (!bio)
        return NULL;
    BIO_set_data(bio, w);
    BIO_set_init(bio, 1);
    return bio;
}

/* Counts handshake messages received, and notes whether the last alert of the peer was close_notify. Alerts that
 * OpenSSL sends count too: it refuses a renegotiation with an alert, and not every version reports the renegotiation as
 * a message. */
static void wire_on_message(int sent, int version TC_UNUSED, int type, const void *data, size_t len, SSL *ssl TC_UNUSED,
                            void *arg)
{
    struct tc_tls_wire *w = arg;
    if (!sent && type == SSL3_RT_ALERT && len == 2)
        w->close_notify = ((const uint8_t *)data)[1] == SSL_AD_CLOSE_NOTIFY;
    if (type == (sent ? SSL3_RT_ALERT : SSL3_RT_HANDSHAKE))
        w->messages++;
}

void tc_tls_wire_count_messages(struct tc_tls_wire *w, SSL *ssl)
{
    SSL_set_msg_callback(ssl, wire_on_message);
    SSL_set_msg_callback_arg(ssl, w);
}

void tc_tls_wire_start_step(struct tc_tls_wire *w)
{
    w->budget = STEP_BYTES;
    w->paused = false;
}

void tc_tls_wire_init(struct tc_tls_wire *w, struct tc_bytestream *lower)
{
    *w = (struct tc_tls_wire){.lower = lower};
}

void tc_tls_wire_fini(struct tc_tls_wire *w)
{
    tc_free(w->in);
    tc_buf_fini(&w->out);
}

void tc_tls_wire_flush(struct tc_tls_wire *w)
{
    while (w->out.len > 0 && !w->blocked && w->write_error == 0) {
        struct iovec iov = {w->out.data, w->out.len};
        ssize_t n = w->lower->ops->writev(w->lower, &iov, 1);
        if (n >= 0)
            tc_buf_consume(&w->out, (size_t)n);
        else if (n == TORC_EAGAIN)
            w->blocked = true;
        else
            w->write_error = n;
    }
}
