/* The names that OpenSSL 1.1.1 has for functions which version 3 renamed, and constants that 1.1.1 lacks. Included by
 * tls/openssl.h alone. Only macros; any thread. */
#ifndef TC_TLS_OPENSSL_1_1_H
#define TC_TLS_OPENSSL_1_1_H

#define TC_OPENSSL_RENAMED(X) X(EVP_PKEY_base_id) X(SSL_get_peer_certificate)

/* Version 1.1.1 does not have this option: it reports an end without close_notify as a failed system call without an
 * errno. */
#define SSL_OP_IGNORE_UNEXPECTED_EOF 0
#define SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL 1120

#endif
