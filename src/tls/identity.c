/* Copies a peer's identity out of OpenSSL, so that any thread may read it after the connection has ended.
 *
 * Unless verification is off, the identity has the verified chain instead of what the peer sent. A peer may send any
 * certificate along with its chain; an application that looks for a pinned certificate must find only those that vouch
 * for the peer. */
#include "tls/identity.h"

#include "base/fork.h"
#include "tls/tls_internal.h"

struct tc_tls_identity *tc_tls_identity_ref(struct tc_tls_identity *id)
{
    if (id)
        tc_ref_inc(&id->ref);
    return id;
}

void tc_tls_identity_unref(struct tc_tls_identity *id)
{
    if (!id || !tc_ref_dec(&id->ref))
        return;
    for (size_t i = 0; i < id->certificates.len; i++)
        tc_rstr_unref(id->certificates.data[i]);
    for (size_t i = 0; i < id->names.len; i++)
        tc_rstr_unref(id->names.data[i].text);
    tc_vec_fini(&id->certificates);
    tc_vec_fini(&id->names);
    tc_free(id->server_name);
    tc_free(id);
}

static struct tc_tls_identity *identity_new(void)
{
    struct tc_tls_identity *id = TC_NEW(struct tc_tls_identity);
    tc_ref_init(&id->ref);
    return id;
}

/* Adds a name. Returns true, which ends the search, when there are too many. */
static bool identity_add_name(void *arg, enum tc_san_kind kind, struct tc_slice name)
{
    struct tc_tls_identity *id = arg;
    if (id->names.len == TC_TLS_MAX_NAMES)
        return true;
    *tc_vec_push(&id->names) = (struct tc_tls_name){kind, tc_rstr_new(name.data, name.len)};
    return false;
}

/* Returns false if OpenSSL cannot encode the certificate. */
static bool identity_add_certificate(struct tc_tls_identity *id, X509 *cert)
{
    int len = i2d_X509(cert, NULL);
    if (len <= 0)
        return false;
    unsigned char *der = tc_malloc((size_t)len), *end = der;
    bool ok = i2d_X509(cert, &end) == len;
    if (ok)
        *tc_vec_push(&id->certificates) = tc_rstr_new(der, (size_t)len);
    tc_free(der);
    return ok;
}

/* Fills in certificates and names. Returns false with the reason in `why`; `id` may have some of them then. In a
 * foreign section. */
static bool identity_read(SSL *ssl, const struct tc_tls_context *ctx, struct tc_tls_identity *id, struct tc_buf *why)
{
    ERR_clear_error();
    bool verified = ctx->verify != TC_TLS_VERIFY_NONE;
    STACK_OF(X509) *chain = verified ? SSL_get0_verified_chain(ssl) : SSL_get_peer_cert_chain(ssl);
    int n = chain ? sk_X509_num(chain) : 0;
    bool ok = n > 0 || ctx->server; /* OpenSSL refused clients without a certificate where one is required */
    for (int i = 0; ok && i < n; i++)
        ok = identity_add_certificate(id, sk_X509_value(chain, i));
    bool many = ok && n > 0 && tc_san_find(sk_X509_value(chain, 0), identity_add_name, id, NULL);
    if (many)
        tc_buf_printf(why, "the certificate has more than %d names", TC_TLS_MAX_NAMES);
    else if (!ok)
        tc_buf_append_str(why, "the peer's certificates cannot be read");
    ERR_clear_error();
    return ok && !many;
}

struct tc_tls_identity *tc_tls_identify(struct tc_bytestream *bs, struct tc_buf *why)
{
    const struct tc_tls_context *ctx;
    const char *name;
    SSL *ssl = tc_tls_stream_ssl(bs, &ctx, &name);
    if (!tc_foreign_enter()) {
        tc_buf_append_str(why, TC_TLS_EXITING);
        return NULL;
    }
    struct tc_tls_identity *id = identity_new();
    bool ok = identity_read(ssl, ctx, id, why);
    tc_foreign_leave();
    if (ok) {
        id->server_name = tc_strdup(name);
        return id;
    }
    tc_tls_identity_unref(id);
    return NULL;
}
