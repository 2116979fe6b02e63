/* The inside of contexts and streams, for the files of src/tls: context.c, identity.c, stream.c, verify.c, wire.c. A
 * stream belongs to its loop's thread; contexts are for any thread. */
#ifndef TC_TLS_TLS_INTERNAL_H
#define TC_TLS_TLS_INTERNAL_H

#include "base/ref.h"
#include "tls/openssl.h"
#include "tls/tls.h"

/* Why TLS fails when tc_foreign_enter refused. */
#define TC_TLS_EXITING "the process is exiting"

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

/* Returns the SSL of a byte stream of tc_tls_fn, its context and the name of its handshake, borrowed. */
SSL *tc_tls_stream_ssl(struct tc_bytestream *bs, const struct tc_tls_context **ctx, const char **name);

/* The most TLS messages that a peer may send in a row without data. A handshake has about seven; then come a few
 * tickets, and a key update now and then. OpenSSL takes in any number of them in one SSL_read. */
enum { TC_TLS_MAX_MESSAGES = 64 };

/* The wire of a BIO: the byte stream below, and the bytes between the byte stream and OpenSSL. */
struct tc_tls_wire {
    struct tc_bytestream *lower;
    char *in; /* received, not yet decrypted: in[in_at, in_len) */
    size_t in_at, in_len;
    struct tc_buf out;   /* encrypted, not yet written */
    bool blocked;        /* WRITABLE of `lower` will come */
    bool eof;            /* lower ended */
    ssize_t read_error;  /* TORC_E* of lower's read; 0: none */
    ssize_t write_error; /* TORC_E* of lower's write; 0: none */
    size_t budget;       /* bytes that OpenSSL may still take in this step */
    bool paused;         /* the budget was met: the rest waits for the next step */
    bool close_notify;   /* the peer's last alert was close_notify */
    unsigned messages;   /* handshake messages received and alerts sent since data last came, or since the handshake
                            ended; above TC_TLS_MAX_MESSAGES nothing more is read */
};

void tc_tls_wire_init(struct tc_tls_wire *w, struct tc_bytestream *lower);
void tc_tls_wire_fini(struct tc_tls_wire *w);
/* Returns a BIO over the wire, for SSL_set_bio, which takes it over; NULL if OpenSSL is out of memory. */
BIO *tc_tls_wire_bio(struct tc_tls_wire *w);
/* Counts the TLS messages of the SSL that has this BIO in w->messages. */
void tc_tls_wire_count_messages(struct tc_tls_wire *w, SSL *ssl);
/* Called before each step of OpenSSL that reads: gives the step its budget. */
void tc_tls_wire_start_step(struct tc_tls_wire *w);
/* Writes queued bytes as far as the byte stream takes them. An error goes to w->write_error. */
void tc_tls_wire_flush(struct tc_tls_wire *w);
/* Returns true when a read would find bytes, an end or an error without an event of the byte stream. */
static inline bool tc_tls_wire_pending(const struct tc_tls_wire *w)
{
    return w->in_at < w->in_len || w->paused || w->eof || w->read_error != 0;
}

/* The connection's side of the verification, for OpenSSL's verify callback; the SSL's app data. */
struct tc_tls_peer_check {
    const struct tc_tls_context *ctx;
    const char *name;  /* "" on servers */
    struct tc_buf why; /* the verify callback's reason */
    char issuer[128];  /* the issuer whose root is missing, "/CN=ca", cut at this length; "": none */
};

/* Sets the verification of a context with roots_fn; does nothing to others. */
void tc_tls_prepare_context(struct tc_tls_context *ctx);
/* Puts side, name check, SNI and the verify callback into a fresh SSL, and `check` as its app data. Returns false if
 * the name is to be checked and is not one of a certificate (tc_tls_is_name), or OpenSSL refuses a setting. */
bool tc_tls_prepare(SSL *ssl, struct tc_tls_peer_check *check);
/* Returns true for an IP literal and for the name of a host (tls/san.h). */
bool tc_tls_is_name(const char *name);
/* Client: returns whether the certificate of the finished handshake is valid for another name too; true on servers, and
 * where names are not checked. */
bool tc_tls_peer_is(SSL *ssl, const struct tc_tls_context *ctx, const char *name);
/* Appends the reason why the last operation on the SSL failed, and empties OpenSSL's queue of errors. */
void tc_tls_reason(SSL *ssl, const struct tc_tls_peer_check *check, const struct tc_tls_wire *wire, struct tc_buf *out);

#endif
