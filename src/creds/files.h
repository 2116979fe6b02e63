/* TLS credentials from files that are read again as time goes by (A65, A29's file watcher). */
#ifndef TC_CREDS_FILES_H
#define TC_CREDS_FILES_H

#include "creds/creds.h"

struct tc_tls_files {
    const char *ca_certificate_file; /* NULL: the system's roots */
    const char *certificate_file;    /* with private_key_file; NULL: none */
    const char *private_key_file;
    uint64_t refresh_interval_ns;
};

/* NULL with the reason in *why (tc_free) when a file cannot be read or used. Paths are copied. */
torc_credentials *tc_credentials_tls_files(const struct tc_tls_files *files, char **why);

#endif
