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

/* Makes credentials that need `fixed` or an initialised `source`. Takes over the key. */
struct tc_tls_credentials *tc_tls_credentials_new(struct tc_rstr *key);
/* Sets the hook: from then on the credentials call its release when they are freed. Called last, when the credentials
 * are whole. */
void tc_tls_credentials_set_hook(struct tc_tls_credentials *c, const struct tc_tls_hook *hook);
/* Returns a refresh interval of options (torc/credentials.h), in milliseconds, as struct tc_cert_paths has it. */
uint64_t tc_tls_refresh_ns(int64_t refresh_interval_ms);
/* Returns the credentials if their files can be used now; else frees them, and returns NULL with an error. */
torc_credentials *tc_tls_credentials_of_files(struct tc_tls_credentials *c, torc_error **error);
/* Stores the reason why credentials cannot be made: TLS is not available in this process (tc_tls_check), or else `why`.
 * Returns NULL. */
torc_credentials *tc_tls_credentials_refuse(torc_error **error, const char *why);

/* Certificate and key must both be given, or neither. Without roots the system's roots are used. Until the files
 * have been usable once, handshakes fail with the reason. Never returns NULL. */
torc_credentials *tc_credentials_tls_files(const struct tc_cert_paths *paths);

#endif
