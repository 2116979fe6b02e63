/* TLS credentials of servers, from texts and from files that are replaced.
 *
 * A server starts one handshake for each connection that it accepts (server/connection.c). Files are looked at for each
 * handshake, so that a new certificate counts from the next connection on. Established connections keep the context,
 * and so the certificate, that they began with. */
#include "base/mem.h"
#include "base/options.h"
#include "base/thread.h"
#include "creds/tls.h"

static struct tc_tls_credentials *server_new(void)
{
    struct tc_tls_credentials *c = tc_tls_credentials_new(tc_rstr_str("server_tls"));
    c->base.for_servers = true;
    return c;
}

static enum tc_tls_verify verify_of(bool roots, int64_t client_certificates)
{
    if (!roots)
        return TC_TLS_VERIFY_NONE;
    return client_certificates == TORC_CLIENT_CERTIFICATES_OPTIONAL ? TC_TLS_VERIFY_OPTIONAL : TC_TLS_VERIFY_FULL;
}

/* Returns false with an error if the certificate or the key is missing, or options for clients need roots that are not
 * there. `names` is what the error calls the certificate and the key. */
static bool identity_check(const char *certificate, const char *key, const char *roots, int64_t client_certificates,
                           torc_tls_verify_fn verify, const char *names, torc_error **error)
{
    if (!certificate || !key)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s must be set", names);
    if (client_certificates && !roots)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "client_certificates: there are no roots to verify them with");
    if (verify && !roots)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "verify: there are no roots, so no client shows a certificate to look at");
    return true;
}

torc_credentials *torc_server_credentials_tls(const struct torc_server_tls_options *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_server_tls_options o;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_SERVER_TLS, &o, given, error) ||
        !identity_check(o.certificate_pem, o.private_key_pem, o.client_roots_pem, o.client_certificates, o.verify,
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
        tc_tls_credentials_refuse(error, tc_status_text(&fault));
        tc_status_fini(&fault);
        return NULL;
    }
    struct tc_tls_credentials *c = server_new();
    c->fixed = context;
    tc_tls_credentials_set_hook(c, &(struct tc_tls_hook){NULL, o.verify, o.verify_release, o.verify_arg, 0});
    return &c->base;
}

torc_credentials *torc_server_credentials_tls_files(const struct torc_server_tls_files *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_server_tls_files o;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_SERVER_TLS_FILES, &o, given, error) ||
        !identity_check(o.certificate_file, o.private_key_file, o.client_ca_certificate_file, o.client_certificates,
                        o.verify, "files: certificate_file and private_key_file", error))
        return NULL;
    struct tc_cert_files *files = tc_cert_files_new(&(struct tc_cert_paths){
        .ca_certificate_file = o.client_ca_certificate_file,
        .certificate_file = o.certificate_file,
        .private_key_file = o.private_key_file,
        .refresh_interval_ns = tc_tls_refresh_ns(o.refresh_interval_ms),
    });
    struct tc_tls_credentials *c = server_new();
    tc_tls_source_init(&c->source, &(struct tc_tls_source_opts){
                                       .server = true,
                                       .verify = verify_of(o.client_ca_certificate_file, o.client_certificates),
                                       .roots = tc_cert_files_have_roots(files) ? files : NULL,
                                       .identity = files,
                                   });
    tc_cert_files_unref(files);
    if (!tc_tls_credentials_of_files(c, error))
        return NULL;
    tc_tls_credentials_set_hook(c, &(struct tc_tls_hook){NULL, o.verify, o.verify_release, o.verify_arg, 0});
    return &c->base;
}
