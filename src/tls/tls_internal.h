/* The inside of contexts and streams, for the files of src/tls: context.c, identity.c, stream.c, verify.c, wire.c. A
 * stream belongs to its loop's thread; contexts are for any thread. */
#ifndef TC_TLS_TLS_INTERNAL_H
#define TC_TLS_TLS_INTERNAL_H

#include "base/ref.h"
#include "tls/openssl.h"
#include "tls/tls.h"

/* Why TLS fails when tc_foreign_enter refused. */
#define TC_TLS_EXITING "the process is exiting"
/* Why TLS fails when OpenSSL cannot make an SSL or a BIO, or refuses a setting of the SSL, for want of memory for
 * instance. */
#define TC_TLS_REFUSED "OpenSSL refused the connection's settings"

struct tc_tls_context {
    struct tc_ref ref;
    SSL_CTX *ssl_ctx;
    bool server;
    enum tc_tls_verify verify;
    tc_tls_verify_fn verify_fn;
    tc_tls_roots_fn roots_fn;
    void *verify_arg;
    bool one_name;
    void (*verify_arg_free)(void *arg);
};

/* Returns the SSL of a TLS byte stream, and stores its context and the server name of its handshake; all borrowed. */
SSL *tc_tls_stream_ssl(struct tc_bytestream *bs, const struct tc_tls_context **ctx, const char **name);

/* The most TLS messages in a row without data (`messages` of the wire). A handshake has about seven; then come a few
 * tickets, and a key update now and then. One SSL_read would take any number of them. */
enum { TC_TLS_MAX_MESSAGES = 64 };

/* The wire of a BIO: the byte stream below, and the bytes between the byte stream and OpenSSL. */
struct tc_tls_wire {
    struct tc_bytestream *lower; /* borrowed: the TLS stream owns it; NULL once it is closed */
    char *in;                    /* received, not yet decrypted: in[in_at, in_len); NULL before the first read */
    size_t in_at, in_len;
    struct tc_buf out;   /* encrypted, not yet written */
    bool blocked;        /* WRITABLE of `lower` will come */
    bool eof;            /* lower ended */
    ssize_t read_error;  /* TORC_E* of lower's read; 0: none */
    ssize_t write_error; /* TORC_E* of lower's write; 0: none */
    size_t budget;       /* bytes that OpenSSL may still take in this step */
    bool paused;         /* the budget is used up: the rest waits for the next step */
    bool close_notify;   /* the peer's last alert was close_notify */
    unsigned messages;   /* handshake messages received and alerts sent since the handshake began, since it ended, or
                            since data last came; above TC_TLS_MAX_MESSAGES a read fails, and the connection with it */
};

void tc_tls_wire_init(struct tc_tls_wire *w, struct tc_bytestream *lower);
void tc_tls_wire_fini(struct tc_tls_wire *w);
/* Returns a BIO over the wire, for SSL_set_bio, which takes the BIO over; NULL if OpenSSL is out of memory. The wire
 * must outlive the BIO's use. */
BIO *tc_tls_wire_bio(struct tc_tls_wire *w);
/* Sets the SSL's message callback, which adds to w->messages and keeps w->close_notify up to date. The stream sets
 * w->messages to 0. */
void tc_tls_wire_count_messages(struct tc_tls_wire *w, SSL *ssl);
/* Called before each step of OpenSSL that reads: gives the step its budget. */
void tc_tls_wire_start_step(struct tc_tls_wire *w);
/* Writes the bytes in `out` as far as the byte stream takes them. An error goes to w->write_error. */
void tc_tls_wire_flush(struct tc_tls_wire *w);
/* Returns true when a read may find bytes, an end or an error without an event of the byte stream. */
static inline bool tc_tls_wire_pending(const struct tc_tls_wire *w)
{
    return w->in_at < w->in_len || w->paused || w->eof || w->read_error != 0;
}

/* The state of one connection's verification: the SSL's app data, which OpenSSL's callbacks read and write. */
struct tc_tls_peer_check {
    const struct tc_tls_context *ctx;
    const char *name;  /* the server name; "" on servers, and without one; borrowed */
    struct tc_buf why; /* the reason of verify_fn or roots_fn */
    char issuer[128];  /* the issuer whose root is missing, as "/CN=ca", truncated to fit; "": none */
};

/* Makes the context's verification use roots_fn, unless roots_fn is NULL. */
void tc_tls_prepare_context(struct tc_tls_context *ctx);
/* Sets up a fresh SSL: its side, name check, SNI, verify callback and app data (`check`, which must outlive the SSL).
 * Returns NULL; or the reason, a static text, if OpenSSL refuses a setting, or if `verify` checks names and the name is
 * neither an IP literal nor one that tc_san_is_host accepts. */
const char *tc_tls_prepare(SSL *ssl, struct tc_tls_peer_check *check);
/* Client: returns whether the server's certificate is valid for `name` too. Returns true on servers, and where `verify`
 * does not check names. Called after the handshake. */
bool tc_tls_peer_is(SSL *ssl, const struct tc_tls_context *ctx, const char *name);
/* Appends the reason why the last operation on the SSL failed, and empties OpenSSL's queue of errors. */
void tc_tls_reason(SSL *ssl, const struct tc_tls_peer_check *check, const struct tc_tls_wire *wire, struct tc_buf *out);

#endif
