/* Verification of a TLS peer: its name, its chain, and the texts of refusals.
 *
 * OpenSSL verifies the chain, and the name if `verify` checks names (clients alone). For names RFC 9525's rules hold:
 * subject alternative names alone, a wildcard only as a whole label. Two functions of the context, if set, take part:
 *
 *   verify_fn   Looks at a leaf that OpenSSL accepts, but for the name constraints, which OpenSSL checks later. It may
 *               refuse the leaf. It cannot accept what OpenSSL refuses.
 *   roots_fn    The leaf chooses the roots (SPIFFE). A callback then calls OpenSSL's verification with these roots.
 *
 * tc_tls_reason makes one text out of what OpenSSL, verify_fn, roots_fn and the byte stream below report.
 *
 * The state of a verification (struct tc_tls_peer_check) belongs to the stream, and so to the thread of the stream's
 * loop. Functions that call OpenSSL run in a foreign section (base/fork.h). */
#include <arpa/inet.h>

#include "tls/san.h"
#include "tls/tls_internal.h"

/* Keeps the issuer's name if the chain was refused because it leads to none of the roots. OpenSSL escapes bytes that
 * are not printable ASCII. */
static void check_note_issuer(X509_STORE_CTX *store_ctx, struct tc_tls_peer_check *check)
{
    X509 *cert = X509_STORE_CTX_get_current_cert(store_ctx);
    switch (X509_STORE_CTX_get_error(store_ctx)) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        if (cert)
            X509_NAME_oneline(X509_get_issuer_name(cert), check->issuer, sizeof(check->issuer));
        break;
    default:
        break;
    }
}

/* OpenSSL's verify callback. Called for each certificate that is good, the leaf last, and with `ok` 0 at an error. */
static int ssl_on_verify(int ok, X509_STORE_CTX *store_ctx)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store_ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tc_tls_peer_check *check = ssl ? SSL_get_app_data(ssl) : NULL;
    if (!ok && check)
        check_note_issuer(store_ctx, check);
    if (!ok || !check)
        return 0;
    if (X509_STORE_CTX_get_error_depth(store_ctx) != 0 || !check->ctx->verify_fn)
        return 1;
    X509 *leaf = X509_STORE_CTX_get_current_cert(store_ctx);
    if (check->ctx->verify_fn(check->ctx->verify_arg, leaf, check->name, &check->why))
        return 1;
    X509_STORE_CTX_set_error(store_ctx, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

/* OpenSSL calls this function instead of X509_verify_cert. It chooses the roots by the leaf, then calls
 * X509_verify_cert. */
static int verify_with_chosen_roots(X509_STORE_CTX *store_ctx, void *arg)
{
    const struct tc_tls_context *ctx = arg;
    SSL *ssl = X509_STORE_CTX_get_ex_data(store_ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tc_tls_peer_check *check = ssl ? SSL_get_app_data(ssl) : NULL;
    X509 *leaf = X509_STORE_CTX_get0_cert(store_ctx);
    STACK_OF(X509) *roots = check && leaf ? ctx->roots_fn(ctx->verify_arg, leaf, &check->why) : NULL;
    if (!roots) {
        X509_STORE_CTX_set_error(store_ctx, X509_V_ERR_APPLICATION_VERIFICATION);
        return 0;
    }
    X509_STORE_CTX_set0_trusted_stack(store_ctx, roots);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(store_ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return X509_verify_cert(store_ctx);
}

void tc_tls_prepare_context(struct tc_tls_context *ctx)
{
    if (ctx->roots_fn)
        SSL_CTX_set_cert_verify_callback(ctx->ssl_ctx, verify_with_chosen_roots, ctx);
}

static bool name_is_ip(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static bool name_is_usable(const char *name)
{
    return name_is_ip(name) || tc_san_is_host(tc_slice_str(name));
}

#define HOST_FLAGS (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

bool tc_tls_peer_is(SSL *ssl, const struct tc_tls_context *ctx, const char *name)
{
    if (ctx->server || ctx->verify == TC_TLS_VERIFY_CHAIN || ctx->verify == TC_TLS_VERIFY_NONE)
        return true;
    X509 *leaf = name_is_usable(name) ? SSL_get1_peer_certificate(ssl) : NULL;
    if (!leaf)
        return false;
    int ok = name_is_ip(name) ? X509_check_ip_asc(leaf, name, 0) : X509_check_host(leaf, name, 0, HOST_FLAGS, NULL);
    X509_free(leaf);
    return ok == 1;
}

/* Returns NULL, or the reason why the name cannot be used. */
static const char *ssl_prepare_name(SSL *ssl, const struct tc_tls_peer_check *check)
{
    bool ip = name_is_ip(check->name), named = name_is_usable(check->name);
    /* RFC 6066, section 3: SNI has host names, not IP literals. */
    if (named && !ip && SSL_set_tlsext_host_name(ssl, check->name) != 1)
        return TC_TLS_REFUSED;
    if (check->ctx->verify == TC_TLS_VERIFY_CHAIN || check->ctx->verify == TC_TLS_VERIFY_NONE)
        return NULL;
    if (!named)
        return check->name[0] ? "the name is not one of a host that a certificate could be for"
                              : "there is no server name to verify";
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, HOST_FLAGS);
    int ok =
        ip ? X509_VERIFY_PARAM_set1_ip_asc(param, check->name) : X509_VERIFY_PARAM_set1_host(param, check->name, 0);
    return ok == 1 ? NULL : TC_TLS_REFUSED;
}

const char *tc_tls_prepare(SSL *ssl, struct tc_tls_peer_check *check)
{
    SSL_set_app_data(ssl, check);
    int mode = check->ctx->verify == TC_TLS_VERIFY_NONE ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
    if (check->ctx->server && mode == SSL_VERIFY_PEER && check->ctx->verify != TC_TLS_VERIFY_OPTIONAL)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_set_verify(ssl, mode, mode == SSL_VERIFY_NONE ? NULL : ssl_on_verify);
    if (check->ctx->server) {
        SSL_set_accept_state(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl_prepare_name(ssl, check);
}

static void reason_append_verify(long result, const struct tc_tls_peer_check *check, struct tc_buf *out)
{
    tc_buf_append_str(out, "certificate verify failed: ");
    if (check->why.len > 0) {
        tc_buf_append(out, check->why.data, check->why.len);
        return;
    }
    /* OpenSSL before 3 begins this text with a capital. */
    tc_buf_append_str(out, result == X509_V_ERR_HOSTNAME_MISMATCH ? "hostname mismatch"
                                                                  : X509_verify_cert_error_string(result));
    if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH)
        tc_buf_printf(out, ": the certificate is not valid for \"%s\"", check->name);
    else if (check->issuer[0])
        tc_buf_printf(out, ": the authority \"%s\" is not among the roots", check->issuer);
}

void tc_tls_reason(SSL *ssl, const struct tc_tls_peer_check *check, const struct tc_tls_wire *wire, struct tc_buf *out)
{
    unsigned long code = ERR_peek_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    int reason = ERR_GET_REASON(code);
    long verified = SSL_get_verify_result(ssl);
    if (wire->messages > TC_TLS_MAX_MESSAGES)
        tc_buf_printf(out, "too many TLS messages without data (more than %d)", TC_TLS_MAX_MESSAGES);
    else if (check->ctx->verify != TC_TLS_VERIFY_NONE && verified != X509_V_OK)
        reason_append_verify(verified, check, out);
    else if (code && ERR_GET_LIB(code) == ERR_LIB_SSL &&
             (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_BAD_RECORD_TYPE || reason == SSL_R_HTTP_REQUEST ||
              reason == SSL_R_HTTPS_PROXY_REQUEST))
        tc_buf_printf(out, "what came is not TLS: the peer may speak plaintext (%s)", text ? text : "no reason");
    else if (code && ERR_GET_LIB(code) == ERR_LIB_SSL &&
             (reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL || reason == SSL_R_NO_APPLICATION_PROTOCOL))
        tc_buf_append_str(out, "peer did not negotiate h2 by ALPN");
    else if (text)
        tc_buf_append_str(out, text);
    else if (wire->read_error != 0 || wire->write_error != 0)
        tc_buf_append_str(out, tc_status_text(&wire->lower->error));
    else if (wire->eof)
        tc_buf_append_str(out, "the peer closed the connection");
    else
        tc_buf_append_str(out, "TLS failed");
    ERR_clear_error();
}
