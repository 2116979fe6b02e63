/* TLS credentials of channels and servers, from texts and from files that are replaced (A65). Any thread. */
#ifndef TC_CREDS_TLS_H
#define TC_CREDS_TLS_H

#include "creds/cert_files.h"
#include "creds/creds.h"
#include "creds/tls_peer.h"
#include "creds/tls_source.h"

struct tc_tls_credentials {
    torc_credentials base;
    struct tc_tls_context *fixed; /* from texts; NULL: the credentials are from files, and `source` has the context */
    struct tc_tls_source source;
    struct tc_tls_hook hook;
};

/* Makes credentials with one reference. Takes over the key. The caller then sets `fixed`, whose reference the
 * credentials own, or initialises `source`. */
struct tc_tls_credentials *tc_tls_credentials_new(struct tc_rstr *key);
/* Copies fn, release and arg of the hook: from then on the credentials call `release` when they are freed. Called last,
 * since `release` must not be called for credentials that could not be made. */
void tc_tls_credentials_set_hook(struct tc_tls_credentials *c, const struct tc_tls_hook *hook);
/* Converts the refresh_interval_ms of complete options (torc/credentials.h) to the refresh_interval_ns of struct
 * tc_cert_paths; -1 becomes UINT64_MAX. */
uint64_t tc_tls_refresh_ns(int64_t refresh_interval_ms);
/* Returns the credentials, whose `source` is set, if their files can be used now; else frees the credentials, and
 * returns NULL with an error (tc_tls_credentials_refuse). */
torc_credentials *tc_tls_credentials_of_files(struct tc_tls_credentials *c, torc_error **error);
/* Stores the error of tc_tls_check if TLS is not available in this process, or else TORC_EINVAL with `why`. Returns
 * NULL. */
torc_credentials *tc_tls_credentials_refuse(torc_error **error, const char *why);

/* Makes channel credentials without a hook, with one reference. Reads nothing yet: until the files have been usable
 * once, handshakes fail with the reason. Without roots the system's roots are used. Certificate and key must both be
 * given, or neither. Never returns NULL. */
torc_credentials *tc_credentials_tls_files(const struct tc_cert_paths *paths);

#endif
