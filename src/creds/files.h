/* TLS credentials from files that are read again as time goes by (A65). */
#ifndef TC_CREDS_FILES_H
#define TC_CREDS_FILES_H

#include "creds/cert_files.h"
#include "creds/creds.h"

/* Certificate and key must both be given, or neither; without roots the system's count. A file that cannot be used
 * fails handshakes, with the reason, until it can. Never NULL. */
torc_credentials *tc_credentials_tls_files(const struct tc_cert_paths *paths);

#endif
