/* The names that OpenSSL 1.1.1 has for functions which version 3 renamed. Included by tls/openssl.h alone. */
#ifndef TC_TLS_OPENSSL_1_1_H
#define TC_TLS_OPENSSL_1_1_H

#define TC_OPENSSL_RENAMED(X) X(EVP_PKEY_base_id) X(SSL_get_peer_certificate)

#endif
