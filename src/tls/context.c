#include <limits.h>

#include "base/mem.h"
#include "tls/internal.h"

/* The only protocol that is offered and taken, as ALPN writes it. */
static const unsigned char alpn_h2[] = {2, 'h', '2'};

/* Of the certificates that a peer sends, all in one message; OpenSSL's default, which is ours whatever it becomes. */
enum { MAX_CERTIFICATES_BYTES = 100 * 1024 };

/* `arg`: a bool that becomes true, or NULL. */
static int refuse_password(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing;
    if (arg)
        *(bool *)arg = true;
    return -1; /* OpenSSL would ask on the terminal */
}

static const char *take_reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return reason ? reason : "malformed";
}

static BIO *pem_bio(struct tc_slice pem)
{
    return pem.len <= INT_MAX ? BIO_new_mem_buf(pem.data ? pem.data : "", (int)pem.len) : NULL;
}

/* The next certificate; NULL at the end (*bad false) or at something malformed. */
static X509 *next_certificate(BIO *bio, bool *bad)
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

static int load_roots(SSL_CTX *ssl_ctx, struct tc_slice pem, struct tc_status *error)
{
    if (!pem.data) {
        SSL_CTX_set_default_verify_paths(ssl_ctx);
        ERR_clear_error(); /* a machine without roots trusts nobody; the handshake says so */
        return 0;
    }
    X509_STORE *store = SSL_CTX_get_cert_store(ssl_ctx);
    /* A root may be an intermediate or the peer's own certificate: whoever is listed is trusted. */
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    BIO *bio = pem_bio(pem);
    bool bad = bio == NULL;
    size_t n = 0;
    X509 *cert;
    while (!bad && (cert = next_certificate(bio, &bad))) {
        bad = X509_STORE_add_cert(store, cert) != 1;
        X509_free(cert);
        n++;
    }
    BIO_free(bio);
    if (bad || n == 0) {
        tc_status_set(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "root certificates: %s",
                                            bad ? take_reason() : "no PEM certificate found"));
        return TORC_EINVAL;
    }
    return 0;
}

static int load_chain(SSL_CTX *ssl_ctx, struct tc_slice pem, struct tc_status *error)
{
    BIO *bio = pem_bio(pem);
    bool bad = bio == NULL;
    size_t n = 0;
    X509 *cert;
    while (!bad && (cert = next_certificate(bio, &bad))) {
        bad = (n == 0 ? SSL_CTX_use_certificate(ssl_ctx, cert) : SSL_CTX_add1_chain_cert(ssl_ctx, cert)) != 1;
        X509_free(cert);
        n++;
    }
    BIO_free(bio);
    if (bad || n == 0) {
        tc_status_set(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "certificate chain: %s",
                                            bad ? take_reason() : "no PEM certificate found"));
        return TORC_EINVAL;
    }
    return 0;
}

static int load_key(SSL_CTX *ssl_ctx, struct tc_slice pem, struct tc_status *error)
{
    BIO *bio = pem_bio(pem);
    bool encrypted = false;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, refuse_password, &encrypted) : NULL;
    BIO_free(bio);
    /* Compares it with the certificate too. */
    bool ok = key && SSL_CTX_use_PrivateKey(ssl_ctx, key) == 1 && SSL_CTX_check_private_key(ssl_ctx) == 1;
    EVP_PKEY_free(key);
    if (!ok) {
        const char *reason = take_reason();
        tc_status_set(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "private key: %s",
                                            encrypted ? "it is encrypted, and such keys are not read" : reason));
        return TORC_EINVAL;
    }
    return 0;
}

static int load_identity(SSL_CTX *ssl_ctx, const struct tc_tls_opts *opts, struct tc_status *error)
{
    if (!opts->certificate_pem.data != !opts->private_key_pem.data) {
        tc_status_set(
            error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "certificate and private key must be given together"));
        return TORC_EINVAL;
    }
    if (!opts->certificate_pem.data) {
        if (!opts->server)
            return 0;
        tc_status_set(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "a server needs a certificate"));
        return TORC_EINVAL;
    }
    int rc = load_chain(ssl_ctx, opts->certificate_pem, error);
    return rc ? rc : load_key(ssl_ctx, opts->private_key_pem, error);
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                       unsigned in_len, void *arg)
{
    (void)ssl, (void)arg;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, alpn_h2, sizeof(alpn_h2), in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool configure(SSL_CTX *ssl_ctx, bool server)
{
    SSL_CTX_set_options(ssl_ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ssl_ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ssl_ctx, 0);
    SSL_CTX_set_max_cert_list(ssl_ctx, MAX_CERTIFICATES_BYTES);
    /* RFC 9113 9.2.2: with TLS 1.2 only what has forward secrecy and an AEAD. */
    if (SSL_CTX_set_min_proto_version(ssl_ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ssl_ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        return false;
    if (server)
        SSL_CTX_set_alpn_select_cb(ssl_ctx, select_alpn, NULL);
    else if (SSL_CTX_set_alpn_protos(ssl_ctx, alpn_h2, sizeof(alpn_h2)) != 0)
        return false;
    return true;
}

struct tc_tls_context *tc_tls_context_new(const struct tc_tls_opts *opts, struct tc_status *error)
{
    const char *missing = tc_openssl_load();
    if (missing) {
        tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, "TLS is not available: %s", missing));
        return NULL;
    }
    ERR_clear_error();
    SSL_CTX *ssl_ctx = SSL_CTX_new(opts->server ? TLS_server_method() : TLS_client_method());
    struct tc_tls_context *ctx = NULL;
    if (!ssl_ctx || !configure(ssl_ctx, opts->server)) {
        tc_status_set(error, tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "OpenSSL: %s", take_reason()));
        goto done;
    }
    if (load_identity(ssl_ctx, opts, error) != 0)
        goto done;
    if (opts->verify != TC_TLS_VERIFY_NONE && !opts->roots_fn && load_roots(ssl_ctx, opts->roots_pem, error) != 0)
        goto done;
    ctx = TC_NEW(struct tc_tls_context);
    tc_ref_init(&ctx->ref);
    ctx->ssl_ctx = ssl_ctx;
    ctx->server = opts->server;
    ctx->verify = opts->verify;
    ctx->verify_fn = opts->verify_fn;
    ctx->roots_fn = opts->roots_fn;
    ctx->verify_arg = opts->verify_arg;
    ctx->verify_arg_free = opts->verify_arg_free;
    tc_tls_prepare_context(ctx);
    ssl_ctx = NULL;
done:
    SSL_CTX_free(ssl_ctx);
    ERR_clear_error();
    return ctx;
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
    SSL_CTX_free(ctx->ssl_ctx);
    if (ctx->verify_arg_free)
        ctx->verify_arg_free(ctx->verify_arg);
    tc_free(ctx);
}
