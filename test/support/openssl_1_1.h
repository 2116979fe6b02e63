/* Names of OpenSSL 3 that the tests use, for OpenSSL 1.1.1. There EVP_EC_gen makes P-256 keys only, EVP_PKEY_Q_keygen
 * X25519 keys only. */
#ifndef TC_SUPPORT_OPENSSL_1_1_H
#define TC_SUPPORT_OPENSSL_1_1_H

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
/* Returns a new key, which the caller frees with EVP_PKEY_free; NULL on failure. `bits` counts for RSA alone. */
static inline EVP_PKEY *tc_key_generate(int type, int bits)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(type, NULL);
    if (ctx && EVP_PKEY_keygen_init(ctx) == 1 &&
        (type != EVP_PKEY_RSA || EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, bits) == 1) &&
        (type != EVP_PKEY_EC || EVP_PKEY_CTX_set_ec_paramgen_curve_nid(ctx, NID_X9_62_prime256v1) == 1))
        EVP_PKEY_keygen(ctx, &key);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

#define X509_VERSION_3 2
#define EVP_RSA_gen(bits) tc_key_generate(EVP_PKEY_RSA, bits)
#define EVP_EC_gen(curve) tc_key_generate(EVP_PKEY_EC, 0)
#define SSL_new_session_ticket(ssl) ((void)(ssl), 0) /* 1.1.1 sends tickets only in the handshake */
#define EVP_PKEY_Q_keygen(library, properties, type) tc_key_generate(EVP_PKEY_X25519, 0)
#endif

#endif
