/* TLS channel credentials from files that are replaced (A65). Any thread. */
#ifndef TC_CREDS_TLS_H
#define TC_CREDS_TLS_H

#include "creds/cert_files.h"
#include "creds/creds.h"

/* Certificate and key must both be given, or neither. Without roots the system's roots are used. While a file cannot be
 * used, handshakes fail with the reason. Never returns NULL. */
torc_credentials *tc_credentials_tls_files(const struct tc_cert_paths *paths);

#endif
