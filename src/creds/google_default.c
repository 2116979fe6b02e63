/* "google_default": a composite of TLS and of application default credentials on each RPC.
 *
 * GRPC_DEFAULT_SSL_ROOTS_FILE_PATH replaces the system's roots: for the channel's TLS, unless the options have
 * roots_pem, and for token requests of an authorized user. Torc reads this variable, and those of creds/call/adc.c,
 * when the credentials are made, and never again. */
#include <stdlib.h>

#include "base/file.h"
#include "base/options.h"
#include "base/thread.h"
#include "creds/call/adc.h"
#include "creds/creds.h"
#include "tls/tls.h"

#define MAX_ROOTS_BYTES (16u * 1024u * 1024u)

/* Makes the channel's TLS. The roots come from roots_pem; if roots_pem is NULL, from roots_file; if both are NULL, from
 * the system. Returns NULL with an error if that fails. */
static torc_credentials *google_tls_new(const char *roots_pem, const char *roots_file, torc_error **error)
{
    char scratch[128];
    struct torc_tls_options options = {TORC_SIZE(torc_tls_options), .roots_pem = roots_pem};
    if (roots_pem || !roots_file)
        return torc_credentials_tls(&options, error);
    struct tc_buf text = {0};
    torc_credentials *c = NULL;
    const char *what;
    int err = tc_file_read(roots_file, MAX_ROOTS_BYTES, &text, &what, scratch);
    options.roots_pem = tc_buf_cstr(&text);
    if (err == 0)
        c = torc_credentials_tls(&options, error);
    else
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_TLS, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: " TC_SHOWN ": %s",
                     TC_SHOW(roots_file), what);
    tc_buf_fini(&text);
    return c;
}

torc_credentials *torc_credentials_google_default(const struct torc_google_options *given, torc_error **error)
{
    TC_NO_CANCEL;
    char *why = NULL;
    struct torc_google_options o;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_GOOGLE, &o, given, error) || !tc_tls_check(error))
        return NULL;
    const char *roots_file = getenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");
    struct tc_adc_opts adc = {.credentials_file = o.credentials_file,
                              .metadata_host = o.metadata_host,
                              .roots_file = roots_file && *roots_file ? roots_file : NULL};
    torc_call_credentials *call = tc_adc_find(&adc, &why);
    if (!call)
        tc_error_take(error, TORC_EINVAL, TORC_LAYER_CREDENTIALS, why);
    torc_credentials *tls = call ? google_tls_new(o.roots_pem, adc.roots_file, error) : NULL;
    torc_credentials *both = tls ? torc_credentials_composite(tls, call, error) : NULL;
    torc_credentials_unref(tls);
    torc_call_credentials_unref(call);
    return both;
}
