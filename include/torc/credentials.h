/* Channel credentials. SPDX-License-Identifier: Apache-2.0
 *
 * Immutable and shared; a channel keeps its own reference. Any thread. */
#ifndef TORC_CREDENTIALS_H
#define TORC_CREDENTIALS_H

#include <stddef.h>

#include <torc/error.h>
#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct torc_credentials torc_credentials;

struct torc_tls_options {
    size_t size;
    const char *roots_pem;       /* trusted roots, PEM; NULL: the system's */
    const char *certificate_pem; /* the client's chain, PEM, with private_key_pem; NULL: none */
    const char *private_key_pem;
};

TORC_API void torc_tls_options_init(struct torc_tls_options *options);

/* No transport security. */
TORC_API torc_credentials *torc_credentials_insecure(void);
/* TLS 1.2 or newer, ALPN h2, the server's name checked against the channel's authority. The texts are copied. NULL when
 * one of them is malformed; *why (may be NULL) then says which and why, in memory for free(). */
TORC_API torc_credentials *torc_credentials_tls(const struct torc_tls_options *options, char **why);
TORC_API torc_credentials *torc_credentials_ref(torc_credentials *credentials);
/* NULL is allowed. */
TORC_API void torc_credentials_unref(torc_credentials *credentials);

#ifdef __cplusplus
}
#endif
#endif
