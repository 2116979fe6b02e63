/* TLS over a byte stream: contexts, and handshakes that make a TLS byte stream of a connected one. TLS 1.2 or newer
 * with forward secrecy, ALPN "h2", no renegotiation, no compression, no resumption. Contexts are for any thread; a
 * handshake and its stream belong to one loop's thread. */
#ifndef TC_TLS_TLS_H
#define TC_TLS_TLS_H

#include "base/buf.h"
#include "io/bytestream.h"
#include "io/loop.h"

struct x509_st;       /* OpenSSL's X509 */
struct stack_st_X509; /* OpenSSL's STACK_OF(X509) */

enum tc_tls_verify {
    /* Client: the server's chain, and its name by the subject alternative names (never the common name). Server: the
     * client must send a certificate with a good chain. */
    TC_TLS_VERIFY_FULL,
    /* Client: the chain alone; the verify callback, if any, checks the name. Server: FULL. */
    TC_TLS_VERIFY_CHAIN,
    /* Server: asks for a client's certificate, and checks its chain if one comes. Client: FULL. */
    TC_TLS_VERIFY_OPTIONAL,
    /* Client: the server's certificate is not checked. Server: the client is not asked for one. */
    TC_TLS_VERIFY_NONE,
};

/* Called when the checks that `verify` asks for have passed, except the name constraints of the authorities, which
 * OpenSSL checks last; not called for a client without a certificate. Returns false to refuse the peer, with a reason
 * in `why`. `leaf` is borrowed for the call. `name` is the server name of the handshake; "" on servers, and without
 * one. May be called from any thread that runs a loop, in a foreign section: must not take a tc_lock (base/fork.h). */
typedef bool (*tc_tls_verify_fn)(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why);

/* Returns the roots that must vouch for a peer with this certificate (A87: they depend on its trust domain). The roots
 * must live as long as the context. NULL refuses the peer, with a reason in `why`. A client with TC_TLS_VERIFY_NONE
 * calls it, too, and ignores the result. `leaf` is borrowed for the call. May be called from any thread that runs a
 * loop, in a foreign section: must not take a tc_lock. */
typedef struct stack_st_X509 *(*tc_tls_roots_fn)(void *arg, struct x509_st *leaf, struct tc_buf *why);

/* Texts are only read during tc_tls_context_new. */
struct tc_tls_opts {
    bool server;
    enum tc_tls_verify verify;
    struct tc_slice roots_pem;       /* data NULL: the system's roots */
    struct tc_slice certificate_pem; /* this side's chain, leaf first; servers need one. data NULL: none */
    struct tc_slice private_key_pem; /* with certificate_pem; not encrypted */
    tc_tls_verify_fn verify_fn;      /* NULL: none; not called with TC_TLS_VERIFY_NONE */
    tc_tls_roots_fn roots_fn;        /* used instead of roots_pem; NULL: none */
    void *verify_arg;                /* of both functions; outlives the context, unless verify_arg_free frees it */
    bool one_name;                   /* peer_is accepts the handshake's name alone: a hook has judged the peer for
                                        that name only */
    /* Called with verify_arg when the context is freed, by the thread that drops the last reference; not called when
     * the context could not be made. May be NULL. */
    void (*verify_arg_free)(void *);
};

/* Immutable and shared; any thread. */
struct tc_tls_context;

/* Returns a new context with one reference. Returns NULL with INVALID_ARGUMENT and a text that says which part is bad
 * and why; with UNAVAILABLE when OpenSSL cannot be loaded, or the process is exiting; or with UNIMPLEMENTED in a
 * library without TLS. */
struct tc_tls_context *tc_tls_context_new(const struct tc_tls_opts *opts, struct tc_status *error);
/* Returns false with an error if no context can be made in this process: TORC_EUNSUPPORTED without OpenSSL, TORC_EFORK
 * when the process is exiting. */
bool tc_tls_check(torc_error **error);
struct tc_tls_context *tc_tls_context_ref(struct tc_tls_context *ctx);
void tc_tls_context_unref(struct tc_tls_context *ctx); /* NULL is allowed */

/* A handshake that runs; valid until fn or tc_tls_handshake_cancel is called. */
struct tc_tls_handshake;

/* Called once from the loop, never from inside tc_tls_handshake: with a byte stream that the callee owns (alpn "h2",
 * secure) and NULL; or with NULL and UNAVAILABLE, borrowed for the call, whose text names the peer and the reason. */
typedef void (*tc_tls_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Starts a handshake over `bs`. Takes ownership of `bs`, and closes it if the handshake fails. Takes a reference to the
 * context. server_name (clients alone; copied): a host name or IP literal without port. Host names are sent as SNI. If
 * `verify` checks names, the certificate must be valid for server_name, and the handshake fails without a usable one.
 * timeout_ms 0: none. */
struct tc_tls_handshake *tc_tls_handshake(struct tc_loop *loop, struct tc_tls_context *ctx, struct tc_bytestream *bs,
                                          struct tc_slice server_name, uint64_t timeout_ms, tc_tls_fn fn, void *arg);
/* Ends the handshake and closes the byte stream; fn is not called afterwards. Must not be called once fn was called. */
void tc_tls_handshake_cancel(struct tc_tls_handshake *h);

#endif
