/* Makes TLS contexts from PEM texts, with errors that say which part is bad: root certificates, certificate chain,
 * private key.
 *
 * The settings: TLS 1.2 or newer, and with TLS 1.2 only suites with forward secrecy and an AEAD (RFC 9113, 9.2.2); ALPN
 * "h2" and nothing else; no renegotiation, no compression, no tickets, no session cache. A key that is encrypted is
 * refused: OpenSSL would ask for a password on the terminal.
 *
 * Roots that are given are trusted as listed (X509_V_FLAG_PARTIAL_CHAIN): a root may be an intermediate, or the peer's
 * own certificate. If none are given, the system's roots are used, under OpenSSL's usual rules. With roots_fn, or
 * without verification, the context has no roots; verify.c has the use of roots_fn.
 *
 * A context is complete when tc_tls_context_new returns it, and does not change afterwards; it owns its SSL_CTX, and
 * ends with its last reference. Any thread. The static functions run in a foreign section (base/fork.h). */
#include <limits.h>

#include "base/fork.h"
#include "base/mem.h"
#include "tls/tls_internal.h"

/* "h2" as ALPN writes it. */
static const unsigned char alpn_h2[] = {2, 'h', '2'};

/* The most bytes of certificates that a peer may send. Set although it is OpenSSL's default, which could change. */
enum { MAX_CERTIFICATES_BYTES = 100 * 1024 };

/* OpenSSL's password callback. `arg`: a bool that becomes true, or NULL. */
static int refuse_password(char *buf TC_UNUSED, int size TC_UNUSED, int writing TC_UNUSED, void *arg)
{
    if (arg)
        *(bool *)arg = true;
    return -1;
}

/* Returns OpenSSL's reason for the first error in its queue ("malformed" if it has none), and empties the queue. The
 * text is static. */
static const char *error_take_reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return reason ? reason : "malformed";
}

/* Returns a BIO that reads the text, which must outlive the BIO. Returns NULL if the text is longer than INT_MAX bytes,
 * or OpenSSL is out of memory. */
static BIO *pem_bio(struct tc_slice pem)
{
    return pem.len <= INT_MAX ? BIO_new_mem_buf(pem.data ? pem.data : "", (int)pem.len) : NULL;
}

/* Returns the next certificate, which the caller frees. Returns NULL at the end, with *bad false, and at malformed PEM,
 * with *bad true and the reason in OpenSSL's queue. */
static X509 *pem_next_certificate(BIO *bio, bool *bad)
{
    X509 *cert = PEM_read_bio_X509(bio, NULL, refuse_password, NULL);
    if (cert)
        return cert;
    unsigned long code = ERR_peek_last_error();
    *bad = !(ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE);
    if (!*bad)
        ERR_clear_error();
    return NULL;
}

/* Sets *error, which takes over `why`. Returns TORC_EINVAL. */
static int context_fault(struct tc_status *error, struct tc_status why)
{
    tc_status_set(error, why);
    return TORC_EINVAL;
}

/* Hands the certificates of a text to `add`, in their order; `add` takes a reference of its own. `what` names the text
 * in errors. Returns 0, or TORC_EINVAL with *error if the text is malformed or has no certificate, or `add` fails. */
static int context_load_certificates(SSL_CTX *ssl_ctx, struct tc_slice pem, const char *what,
                                     bool (*add)(SSL_CTX *ssl_ctx, X509 *cert, size_t i), struct tc_status *error)
{
    BIO *bio = pem_bio(pem);
    bool bad = bio == NULL;
    size_t n = 0;
    X509 *cert;
    while (!bad && (cert = pem_next_certificate(bio, &bad))) {
        bad = !add(ssl_ctx, cert, n++);
        X509_free(cert);
    }
    BIO_free(bio);
    if (!bad && n > 0)
        return 0;
    return context_fault(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_TLS, "%s: %s", what,
                                               bad ? error_take_reason() : "no PEM certificate found"));
}

static bool root_add(SSL_CTX *ssl_ctx, X509 *cert, size_t i TC_UNUSED)
{
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl_ctx), cert) == 1;
}

/* The first certificate is the context's own; the rest are its chain. */
static bool chain_add(SSL_CTX *ssl_ctx, X509 *cert, size_t i)
{
    return (i == 0 ? SSL_CTX_use_certificate(ssl_ctx, cert) : SSL_CTX_add1_chain_cert(ssl_ctx, cert)) == 1;
}

static int context_load_roots(SSL_CTX *ssl_ctx, struct tc_slice pem, struct tc_status *error)
{
    if (!pem.data) {
        SSL_CTX_set_default_verify_paths(ssl_ctx);
        ERR_clear_error(); /* without roots on the machine handshakes fail, and say why */
        return 0;
    }
    X509_STORE_set_flags(SSL_CTX_get_cert_store(ssl_ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return context_load_certificates(ssl_ctx, pem, "root certificates", root_add, error);
}

static int context_load_key(SSL_CTX *ssl_ctx, struct tc_slice pem, struct tc_status *error)
{
    BIO *bio = pem_bio(pem);
    bool encrypted = false;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, refuse_password, &encrypted) : NULL;
    BIO_free(bio);
    /* SSL_CTX_use_PrivateKey compares the key with a certificate of the key's type, if there is one;
     * SSL_CTX_check_private_key fails if there is none. */
    bool ok = key && SSL_CTX_use_PrivateKey(ssl_ctx, key) == 1 && SSL_CTX_check_private_key(ssl_ctx) == 1;
    EVP_PKEY_free(key);
    if (ok)
        return 0;
    const char *reason = error_take_reason();
    return context_fault(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_TLS, "private key: %s",
                                               encrypted ? "it is encrypted, and such keys are not read" : reason));
}

static int context_load_identity(SSL_CTX *ssl_ctx, const struct tc_tls_opts *opts, struct tc_status *error)
{
    if (!opts->certificate_pem.data != !opts->private_key_pem.data)
        return context_fault(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_TLS,
                                                   "certificate and private key must be given together"));
    if (!opts->certificate_pem.data && opts->server)
        return context_fault(
            error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_TLS, "a server needs a certificate"));
    if (!opts->certificate_pem.data)
        return 0;
    int rc = context_load_certificates(ssl_ctx, opts->certificate_pem, "certificate chain", chain_add, error);
    return rc ? rc : context_load_key(ssl_ctx, opts->private_key_pem, error);
}

static int select_alpn(SSL *ssl TC_UNUSED, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                       unsigned in_len, void *arg TC_UNUSED)
{
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, alpn_h2, sizeof(alpn_h2), in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool context_configure(SSL_CTX *ssl_ctx, bool server)
{
    SSL_CTX_set_options(ssl_ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ssl_ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ssl_ctx, 0);
    SSL_CTX_set_max_cert_list(ssl_ctx, MAX_CERTIFICATES_BYTES);
    if (SSL_CTX_set_min_proto_version(ssl_ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ssl_ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        return false;
    if (server)
        SSL_CTX_set_alpn_select_cb(ssl_ctx, select_alpn, NULL);
    else if (SSL_CTX_set_alpn_protos(ssl_ctx, alpn_h2, sizeof(alpn_h2)) != 0)
        return false;
    return true;
}

static struct tc_tls_context *context_make(const struct tc_tls_opts *opts, struct tc_status *error)
{
    ERR_clear_error();
    SSL_CTX *ssl_ctx = SSL_CTX_new(opts->server ? TLS_server_method() : TLS_client_method());
    struct tc_tls_context *ctx = NULL;
    if (!ssl_ctx || !context_configure(ssl_ctx, opts->server)) {
        tc_status_set(error,
                      tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_TLS, "OpenSSL: %s", error_take_reason()));
        goto done;
    }
    if (context_load_identity(ssl_ctx, opts, error) != 0)
        goto done;
    if (opts->verify != TC_TLS_VERIFY_NONE && !opts->roots_fn &&
        context_load_roots(ssl_ctx, opts->roots_pem, error) != 0)
        goto done;
    ctx = TC_NEW(struct tc_tls_context);
    tc_ref_init(&ctx->ref);
    ctx->ssl_ctx = ssl_ctx;
    ctx->server = opts->server;
    ctx->verify = opts->verify;
    ctx->verify_fn = opts->verify_fn;
    ctx->roots_fn = opts->roots_fn;
    ctx->verify_arg = opts->verify_arg;
    ctx->one_name = opts->one_name;
    ctx->verify_arg_free = opts->verify_arg_free;
    tc_tls_prepare_context(ctx);
    ssl_ctx = NULL;
done:
    SSL_CTX_free(ssl_ctx);
    ERR_clear_error();
    return ctx;
}

struct tc_tls_context *tc_tls_context_new(const struct tc_tls_opts *opts, struct tc_status *error)
{
    const char *missing = tc_openssl_load();
    bool inside = !missing && tc_foreign_enter();
    if (!inside) {
        tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_TLS, "TLS is not available: %s",
                                            missing ? missing : TC_TLS_EXITING));
        return NULL;
    }
    struct tc_tls_context *ctx = context_make(opts, error);
    tc_foreign_leave();
    return ctx;
}

bool tc_tls_check(torc_error **error)
{
    const char *missing = tc_openssl_load();
    if (missing)
        return tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_TLS, "TLS is not available: %s", missing);
    if (!tc_foreign_enter())
        return tc_error_set(error, TORC_EFORK, TORC_LAYER_TLS, "TLS is not available: %s", TC_TLS_EXITING);
    tc_foreign_leave();
    return true;
}

struct tc_tls_context *tc_tls_context_ref(struct tc_tls_context *ctx)
{
    tc_ref_inc(&ctx->ref);
    return ctx;
}

void tc_tls_context_unref(struct tc_tls_context *ctx)
{
    if (!ctx || !tc_ref_dec(&ctx->ref))
        return;
    if (tc_foreign_enter()) {
        SSL_CTX_free(ctx->ssl_ctx);
        tc_foreign_leave();
    }
    if (ctx->verify_arg_free)
        ctx->verify_arg_free(ctx->verify_arg);
    tc_free(ctx);
}
