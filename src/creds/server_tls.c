/* TLS credentials of servers, from texts and from files that are replaced.
 *
 * They are channel credentials whose handshakes are a server's: the listener of a server starts one for each connection
 * (server/connection.c). Files are looked at for each handshake, so that a new certificate counts from the next
 * connection on. A context holds the certificate that it was made of; established connections keep theirs. */
#include "base/mem.h"
#include "base/options.h"
#include "base/thread.h"
#include "creds/handshake.h"

struct server_credentials {
    torc_credentials base;
    struct tc_tls_context *fixed; /* from texts; NULL: the credentials are from files, and `source` has the context */
    struct tc_tls_source source;
};

static struct server_credentials *server_of(torc_credentials *base)
{
    return TC_CONTAINER_OF(base, struct server_credentials, base);
}

static struct tc_creds_handshake *server_start(torc_credentials *base, struct tc_loop *loop, struct tc_bytestream *bs,
                                               const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    struct server_credentials *c = server_of(base);
    return c->fixed ? tc_creds_handshake_tls(loop, c->fixed, NULL, bs, peer, fn, arg)
                    : tc_creds_handshake_source(loop, &c->source, NULL, NULL, bs, peer, fn, arg);
}

static void server_free(torc_credentials *base)
{
    struct server_credentials *c = server_of(base);
    if (c->fixed)
        tc_tls_context_unref(c->fixed);
    else
        tc_tls_source_fini(&c->source);
    tc_rstr_unref(c->base.key);
    tc_free(c);
}

static struct server_credentials *server_new(void)
{
    static const struct tc_creds_ops ops = {
        .type = "server_tls", .start = server_start, .cancel = tc_creds_handshake_cancel, .free = server_free};
    struct server_credentials *c = TC_NEW(struct server_credentials);
    tc_ref_init(&c->base.ref);
    c->base.ops = &ops;
    c->base.for_servers = true;
    c->base.scheme = "https";
    c->base.key = tc_rstr_str("server_tls");
    return c;
}

static enum tc_tls_verify verify_of(bool roots, int64_t client_certificates)
{
    if (!roots)
        return TC_TLS_VERIFY_NONE;
    return client_certificates == TORC_CLIENT_CERTIFICATES_OPTIONAL ? TC_TLS_VERIFY_OPTIONAL : TC_TLS_VERIFY_FULL;
}

/* Stores the reason why credentials cannot be made: OpenSSL is missing, or else `why`. */
static void error_set(torc_error **error, const char *why)
{
    if (tc_tls_check(error))
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_TLS, "%s", why);
}

static bool identity_check(const char *certificate, const char *key, const char *roots, int64_t client_certificates,
                           const char *names, torc_error **error)
{
    if (!certificate || !key)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s must be set", names);
    if (client_certificates && !roots)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "client_certificates: there are no roots to verify them with");
    return true;
}

torc_credentials *torc_server_credentials_tls(const struct torc_server_tls_options *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_server_tls_options o;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_SERVER_TLS, &o, given, error) ||
        !identity_check(o.certificate_pem, o.private_key_pem, o.client_roots_pem, o.client_certificates,
                        "options: certificate_pem and private_key_pem", error))
        return NULL;
    struct tc_status fault = {0};
    struct tc_tls_opts opts = {
        .server = true,
        .verify = verify_of(o.client_roots_pem, o.client_certificates),
        .roots_pem = o.client_roots_pem ? tc_slice_str(o.client_roots_pem) : tc_slice_of(NULL, 0),
        .certificate_pem = tc_slice_str(o.certificate_pem),
        .private_key_pem = tc_slice_str(o.private_key_pem),
    };
    struct tc_tls_context *context = tc_tls_context_new(&opts, &fault);
    if (!context) {
        error_set(error, tc_status_text(&fault));
        tc_status_fini(&fault);
        return NULL;
    }
    struct server_credentials *c = server_new();
    c->fixed = context;
    return &c->base;
}

torc_credentials *torc_server_credentials_tls_files(const struct torc_server_tls_files *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_server_tls_files o;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_SERVER_TLS_FILES, &o, given, error) ||
        !identity_check(o.certificate_file, o.private_key_file, o.client_ca_certificate_file, o.client_certificates,
                        "files: certificate_file and private_key_file", error))
        return NULL;
    uint64_t refresh_ms = (uint64_t)o.refresh_interval_ms;
    struct tc_cert_files *files = tc_cert_files_new(&(struct tc_cert_paths){
        .ca_certificate_file = o.client_ca_certificate_file,
        .certificate_file = o.certificate_file,
        .private_key_file = o.private_key_file,
        .refresh_interval_ns =
            refresh_ms < UINT64_MAX / TC_NS_PER_MS ? refresh_ms * TC_NS_PER_MS : UINT64_MAX /* never */,
    });
    struct server_credentials *c = server_new();
    tc_tls_source_init(&c->source, &(struct tc_tls_source_opts){
                                       .server = true,
                                       .verify = verify_of(o.client_ca_certificate_file, o.client_certificates),
                                       .roots = tc_cert_files_have_roots(files) ? files : NULL,
                                       .identity = files,
                                   });
    tc_cert_files_unref(files);
    char *why = NULL;
    struct tc_tls_context *context = tc_tls_source_context(&c->source, NULL, &why);
    if (context) {
        tc_tls_context_unref(context);
        return &c->base;
    }
    error_set(error, why);
    tc_free(why);
    torc_credentials_unref(&c->base);
    return NULL;
}
