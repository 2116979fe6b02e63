/* OpenSSL. Included instead of OpenSSL's headers: macros turn the names of its functions into members of tc_openssl.
 * Any thread.
 *
 * libtorc.so and libtorc-testing.so hold openssl_loaded.c, which loads OpenSSL when TLS or a key is first needed:
 * loading OpenSSL takes longer than loading the rest of the library, and most programs in a mesh speak plaintext on
 * loopback. libtorc.a, libtorc-testing.a, the command, the tests, and shared libraries that were built with
 * TORC_LATE_LOADING off hold openssl_linked.c and are linked against OpenSSL. */
#ifndef TC_TLS_OPENSSL_H
#define TC_TLS_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#include "tls/openssl_1_1.h"
#else
#define TC_OPENSSL_RENAMED(X)                                                                                          \
    X(EVP_PKEY_get_base_id)                                                                                            \
    X(SSL_get1_peer_certificate)
#endif

/* Every function that is used, also by macros of OpenSSL's headers. */
#define TC_OPENSSL_FUNCTIONS(X)                                                                                        \
    X(ASN1_STRING_get0_data)                                                                                           \
    X(ASN1_STRING_length)                                                                                              \
    X(BIO_clear_flags)                                                                                                 \
    X(BIO_free)                                                                                                        \
    X(BIO_get_data)                                                                                                    \
    X(BIO_get_new_index)                                                                                               \
    X(BIO_meth_new)                                                                                                    \
    X(BIO_meth_set_ctrl)                                                                                               \
    X(BIO_meth_set_read)                                                                                               \
    X(BIO_meth_set_write)                                                                                              \
    X(BIO_new)                                                                                                         \
    X(BIO_new_mem_buf)                                                                                                 \
    X(BIO_set_data)                                                                                                    \
    X(BIO_set_flags)                                                                                                   \
    X(BIO_set_init)                                                                                                    \
    X(ERR_clear_error)                                                                                                 \
    X(ERR_peek_error)                                                                                                  \
    X(ERR_peek_last_error)                                                                                             \
    X(ERR_reason_error_string)                                                                                         \
    X(EVP_DigestFinal_ex)                                                                                              \
    X(EVP_DigestInit_ex)                                                                                               \
    X(EVP_DigestSign)                                                                                                  \
    X(EVP_DigestSignInit)                                                                                              \
    X(EVP_DigestUpdate)                                                                                                \
    X(EVP_MD_CTX_free)                                                                                                 \
    X(EVP_MD_CTX_new)                                                                                                  \
    X(EVP_PKEY_free)                                                                                                   \
    X(EVP_PKEY_up_ref)                                                                                                 \
    X(EVP_sha256)                                                                                                      \
    X(GENERAL_NAMES_free)                                                                                              \
    X(OPENSSL_init_crypto)                                                                                             \
    X(OPENSSL_sk_new_null)                                                                                             \
    X(OPENSSL_sk_num)                                                                                                  \
    X(OPENSSL_sk_pop_free)                                                                                             \
    X(OPENSSL_sk_push)                                                                                                 \
    X(OPENSSL_sk_value)                                                                                                \
    X(OPENSSL_thread_stop)                                                                                             \
    X(PEM_read_bio_PrivateKey)                                                                                         \
    X(PEM_read_bio_X509)                                                                                               \
    X(SSL_CTX_check_private_key)                                                                                       \
    X(SSL_CTX_ctrl)                                                                                                    \
    X(SSL_CTX_free)                                                                                                    \
    X(SSL_CTX_get_cert_store)                                                                                          \
    X(SSL_CTX_new)                                                                                                     \
    X(SSL_CTX_set_alpn_protos)                                                                                         \
    X(SSL_CTX_set_alpn_select_cb)                                                                                      \
    X(SSL_CTX_set_cert_verify_callback)                                                                                \
    X(SSL_CTX_set_cipher_list)                                                                                         \
    X(SSL_CTX_set_default_verify_paths)                                                                                \
    X(SSL_CTX_set_num_tickets)                                                                                         \
    X(SSL_CTX_set_options)                                                                                             \
    X(SSL_CTX_use_PrivateKey)                                                                                          \
    X(SSL_CTX_use_certificate)                                                                                         \
    X(SSL_ctrl)                                                                                                        \
    X(SSL_do_handshake)                                                                                                \
    X(SSL_free)                                                                                                        \
    X(SSL_get0_alpn_selected)                                                                                          \
    X(SSL_get0_param)                                                                                                  \
    X(SSL_get0_verified_chain)                                                                                         \
    X(SSL_get_error)                                                                                                   \
    X(SSL_get_ex_data)                                                                                                 \
    X(SSL_get_ex_data_X509_STORE_CTX_idx)                                                                              \
    X(SSL_get_peer_cert_chain)                                                                                         \
    X(SSL_get_verify_result)                                                                                           \
    X(SSL_has_pending)                                                                                                 \
    X(SSL_new)                                                                                                         \
    X(SSL_read)                                                                                                        \
    X(SSL_select_next_proto)                                                                                           \
    X(SSL_set_accept_state)                                                                                            \
    X(SSL_set_bio)                                                                                                     \
    X(SSL_set_connect_state)                                                                                           \
    X(SSL_set_ex_data)                                                                                                 \
    X(SSL_set_msg_callback)                                                                                            \
    X(SSL_set_verify)                                                                                                  \
    X(SSL_shutdown)                                                                                                    \
    X(SSL_write)                                                                                                       \
    X(TLS_client_method)                                                                                               \
    X(TLS_server_method)                                                                                               \
    X(X509_NAME_oneline)                                                                                               \
    X(X509_STORE_CTX_get0_cert)                                                                                        \
    X(X509_STORE_CTX_get0_param)                                                                                       \
    X(X509_STORE_CTX_get_current_cert)                                                                                 \
    X(X509_STORE_CTX_get_error)                                                                                        \
    X(X509_STORE_CTX_get_error_depth)                                                                                  \
    X(X509_STORE_CTX_get_ex_data)                                                                                      \
    X(X509_STORE_CTX_set0_trusted_stack)                                                                               \
    X(X509_STORE_CTX_set_error)                                                                                        \
    X(X509_STORE_add_cert)                                                                                             \
    X(X509_STORE_set_flags)                                                                                            \
    X(X509_VERIFY_PARAM_set1_host)                                                                                     \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                                                   \
    X(X509_VERIFY_PARAM_set_flags)                                                                                     \
    X(X509_VERIFY_PARAM_set_hostflags)                                                                                 \
    X(X509_check_host)                                                                                                 \
    X(X509_check_ip_asc)                                                                                               \
    X(X509_free)                                                                                                       \
    X(X509_get_ext_d2i)                                                                                                \
    X(X509_get_issuer_name)                                                                                            \
    X(X509_verify_cert)                                                                                                \
    X(X509_verify_cert_error_string)                                                                                   \
    X(d2i_X509)                                                                                                        \
    X(i2d_X509)                                                                                                        \
    TC_OPENSSL_RENAMED(X)

#define TC_OPENSSL_MEMBER(name) __typeof__(name) *name;
struct tc_openssl {
    TC_OPENSSL_FUNCTIONS(TC_OPENSSL_MEMBER)
};
#undef TC_OPENSSL_MEMBER

/* OpenSSL's functions: constant in openssl_linked.c, and set by tc_openssl_load in openssl_loaded.c. */
extern struct tc_openssl tc_openssl;

/* Loads and initialises OpenSSL, once. Must be called, from any thread, before the first of OpenSSL's objects is made:
 * contexts, keys, certificates. Returns NULL, or the reason (static) why OpenSSL cannot be loaded; later calls return
 * the same.
 *
 * Calls of OpenSSL are made between tc_foreign_enter and tc_foreign_leave (base/fork.h), except calls that only read
 * an SSL of the calling thread's loop (SSL_has_pending, SSL_get0_alpn_selected) or count a reference. OpenSSL frees
 * nothing at exit, unless the application initialised it first; then Torc's exit handler (base/exit.h) runs before
 * OpenSSL's. */
const char *tc_openssl_load(void);
/* For tc_openssl_load: initialises OpenSSL after it was loaded. */
void tc_openssl_init(void);

#ifndef TC_OPENSSL_ITSELF
#include "tls/openssl_names.h" /* made by src/CMakeLists.txt: #define SSL_new tc_openssl.SSL_new, ... */
#if OPENSSL_VERSION_NUMBER < 0x30000000L
#undef EVP_PKEY_get_base_id
#undef SSL_get1_peer_certificate
#define EVP_PKEY_get_base_id tc_openssl.EVP_PKEY_base_id
#define SSL_get1_peer_certificate tc_openssl.SSL_get_peer_certificate
/* In the headers of 1.1.1 these are functions, which would call OpenSSL by its own names instead of tc_openssl. */
#define sk_X509_new_null() ((STACK_OF(X509) *)OPENSSL_sk_new_null())
#define sk_X509_num(sk) OPENSSL_sk_num((const OPENSSL_STACK *)(sk))
#define sk_X509_value(sk, i) ((X509 *)OPENSSL_sk_value((const OPENSSL_STACK *)(sk), (i)))
#define sk_X509_push(sk, x) OPENSSL_sk_push((OPENSSL_STACK *)(sk), (x))
#define sk_X509_pop_free(sk, fn) OPENSSL_sk_pop_free((OPENSSL_STACK *)(sk), (OPENSSL_sk_freefunc)(fn))
#define sk_GENERAL_NAME_num(sk) OPENSSL_sk_num((const OPENSSL_STACK *)(sk))
#define sk_GENERAL_NAME_value(sk, i) ((GENERAL_NAME *)OPENSSL_sk_value((const OPENSSL_STACK *)(sk), (i)))
#endif
#endif

#endif
