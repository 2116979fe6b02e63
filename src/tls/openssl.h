/* OpenSSL, loaded when TLS or a key is first needed: it takes more time to load than all the rest of the library, and
 * most programs in a mesh speak in the clear on loopback. In place of OpenSSL's headers; the functions' names mean
 * those of the loaded library. libtorc.so holds openssl_loaded.c; what links its parts, libtorc.a among them, is linked
 * against OpenSSL (openssl_linked.c). */
#ifndef TC_TLS_OPENSSL_H
#define TC_TLS_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* All that is used. */
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
    X(EVP_PKEY_get_base_id)                                                                                            \
    X(EVP_PKEY_up_ref)                                                                                                 \
    X(EVP_sha256)                                                                                                      \
    X(GENERAL_NAMES_free)                                                                                              \
    X(OPENSSL_sk_new_null)                                                                                             \
    X(OPENSSL_sk_num)                                                                                                  \
    X(OPENSSL_sk_pop_free)                                                                                             \
    X(OPENSSL_sk_push)                                                                                                 \
    X(OPENSSL_sk_value)                                                                                                \
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
    X(SSL_get1_peer_certificate)                                                                                       \
    X(SSL_get_error)                                                                                                   \
    X(SSL_get_ex_data)                                                                                                 \
    X(SSL_get_ex_data_X509_STORE_CTX_idx)                                                                              \
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
    X(X509_get0_serialNumber)                                                                                          \
    X(X509_get_ext_d2i)                                                                                                \
    X(X509_get_issuer_name)                                                                                            \
    X(X509_verify_cert)                                                                                                \
    X(X509_verify_cert_error_string)                                                                                   \
    X(d2i_X509)

#define TC_OPENSSL_MEMBER(name) __typeof__(name) *name;
struct tc_openssl {
    TC_OPENSSL_FUNCTIONS(TC_OPENSSL_MEMBER)
};
#undef TC_OPENSSL_MEMBER

extern struct tc_openssl tc_openssl;

/* To be called, from any thread, before the first of OpenSSL's objects is made: contexts, keys, certificates. NULL, or
 * why it cannot be had, for ever. */
const char *tc_openssl_load(void);

#ifndef TC_OPENSSL_ITSELF
#define ASN1_STRING_get0_data tc_openssl.ASN1_STRING_get0_data
#define ASN1_STRING_length tc_openssl.ASN1_STRING_length
#define BIO_clear_flags tc_openssl.BIO_clear_flags
#define BIO_free tc_openssl.BIO_free
#define BIO_get_data tc_openssl.BIO_get_data
#define BIO_get_new_index tc_openssl.BIO_get_new_index
#define BIO_meth_new tc_openssl.BIO_meth_new
#define BIO_meth_set_ctrl tc_openssl.BIO_meth_set_ctrl
#define BIO_meth_set_read tc_openssl.BIO_meth_set_read
#define BIO_meth_set_write tc_openssl.BIO_meth_set_write
#define BIO_new tc_openssl.BIO_new
#define BIO_new_mem_buf tc_openssl.BIO_new_mem_buf
#define BIO_set_data tc_openssl.BIO_set_data
#define BIO_set_flags tc_openssl.BIO_set_flags
#define BIO_set_init tc_openssl.BIO_set_init
#define ERR_clear_error tc_openssl.ERR_clear_error
#define ERR_peek_error tc_openssl.ERR_peek_error
#define ERR_peek_last_error tc_openssl.ERR_peek_last_error
#define ERR_reason_error_string tc_openssl.ERR_reason_error_string
#define EVP_DigestFinal_ex tc_openssl.EVP_DigestFinal_ex
#define EVP_DigestInit_ex tc_openssl.EVP_DigestInit_ex
#define EVP_DigestSign tc_openssl.EVP_DigestSign
#define EVP_DigestSignInit tc_openssl.EVP_DigestSignInit
#define EVP_DigestUpdate tc_openssl.EVP_DigestUpdate
#define EVP_MD_CTX_free tc_openssl.EVP_MD_CTX_free
#define EVP_MD_CTX_new tc_openssl.EVP_MD_CTX_new
#define EVP_PKEY_free tc_openssl.EVP_PKEY_free
#define EVP_PKEY_get_base_id tc_openssl.EVP_PKEY_get_base_id
#define EVP_PKEY_up_ref tc_openssl.EVP_PKEY_up_ref
#define EVP_sha256 tc_openssl.EVP_sha256
#define GENERAL_NAMES_free tc_openssl.GENERAL_NAMES_free
#define OPENSSL_sk_new_null tc_openssl.OPENSSL_sk_new_null
#define OPENSSL_sk_num tc_openssl.OPENSSL_sk_num
#define OPENSSL_sk_pop_free tc_openssl.OPENSSL_sk_pop_free
#define OPENSSL_sk_push tc_openssl.OPENSSL_sk_push
#define OPENSSL_sk_value tc_openssl.OPENSSL_sk_value
#define PEM_read_bio_PrivateKey tc_openssl.PEM_read_bio_PrivateKey
#define PEM_read_bio_X509 tc_openssl.PEM_read_bio_X509
#define SSL_CTX_check_private_key tc_openssl.SSL_CTX_check_private_key
#define SSL_CTX_ctrl tc_openssl.SSL_CTX_ctrl
#define SSL_CTX_free tc_openssl.SSL_CTX_free
#define SSL_CTX_get_cert_store tc_openssl.SSL_CTX_get_cert_store
#define SSL_CTX_new tc_openssl.SSL_CTX_new
#define SSL_CTX_set_alpn_protos tc_openssl.SSL_CTX_set_alpn_protos
#define SSL_CTX_set_alpn_select_cb tc_openssl.SSL_CTX_set_alpn_select_cb
#define SSL_CTX_set_cert_verify_callback tc_openssl.SSL_CTX_set_cert_verify_callback
#define SSL_CTX_set_cipher_list tc_openssl.SSL_CTX_set_cipher_list
#define SSL_CTX_set_default_verify_paths tc_openssl.SSL_CTX_set_default_verify_paths
#define SSL_CTX_set_num_tickets tc_openssl.SSL_CTX_set_num_tickets
#define SSL_CTX_set_options tc_openssl.SSL_CTX_set_options
#define SSL_CTX_use_PrivateKey tc_openssl.SSL_CTX_use_PrivateKey
#define SSL_CTX_use_certificate tc_openssl.SSL_CTX_use_certificate
#define SSL_ctrl tc_openssl.SSL_ctrl
#define SSL_do_handshake tc_openssl.SSL_do_handshake
#define SSL_free tc_openssl.SSL_free
#define SSL_get0_alpn_selected tc_openssl.SSL_get0_alpn_selected
#define SSL_get0_param tc_openssl.SSL_get0_param
#define SSL_get1_peer_certificate tc_openssl.SSL_get1_peer_certificate
#define SSL_get_error tc_openssl.SSL_get_error
#define SSL_get_ex_data tc_openssl.SSL_get_ex_data
#define SSL_get_ex_data_X509_STORE_CTX_idx tc_openssl.SSL_get_ex_data_X509_STORE_CTX_idx
#define SSL_get_verify_result tc_openssl.SSL_get_verify_result
#define SSL_has_pending tc_openssl.SSL_has_pending
#define SSL_new tc_openssl.SSL_new
#define SSL_read tc_openssl.SSL_read
#define SSL_select_next_proto tc_openssl.SSL_select_next_proto
#define SSL_set_accept_state tc_openssl.SSL_set_accept_state
#define SSL_set_bio tc_openssl.SSL_set_bio
#define SSL_set_connect_state tc_openssl.SSL_set_connect_state
#define SSL_set_ex_data tc_openssl.SSL_set_ex_data
#define SSL_set_msg_callback tc_openssl.SSL_set_msg_callback
#define SSL_set_verify tc_openssl.SSL_set_verify
#define SSL_shutdown tc_openssl.SSL_shutdown
#define SSL_write tc_openssl.SSL_write
#define TLS_client_method tc_openssl.TLS_client_method
#define TLS_server_method tc_openssl.TLS_server_method
#define X509_NAME_oneline tc_openssl.X509_NAME_oneline
#define X509_STORE_CTX_get0_cert tc_openssl.X509_STORE_CTX_get0_cert
#define X509_STORE_CTX_get0_param tc_openssl.X509_STORE_CTX_get0_param
#define X509_STORE_CTX_get_current_cert tc_openssl.X509_STORE_CTX_get_current_cert
#define X509_STORE_CTX_get_error tc_openssl.X509_STORE_CTX_get_error
#define X509_STORE_CTX_get_error_depth tc_openssl.X509_STORE_CTX_get_error_depth
#define X509_STORE_CTX_get_ex_data tc_openssl.X509_STORE_CTX_get_ex_data
#define X509_STORE_CTX_set0_trusted_stack tc_openssl.X509_STORE_CTX_set0_trusted_stack
#define X509_STORE_CTX_set_error tc_openssl.X509_STORE_CTX_set_error
#define X509_STORE_add_cert tc_openssl.X509_STORE_add_cert
#define X509_STORE_set_flags tc_openssl.X509_STORE_set_flags
#define X509_VERIFY_PARAM_set1_host tc_openssl.X509_VERIFY_PARAM_set1_host
#define X509_VERIFY_PARAM_set1_ip_asc tc_openssl.X509_VERIFY_PARAM_set1_ip_asc
#define X509_VERIFY_PARAM_set_flags tc_openssl.X509_VERIFY_PARAM_set_flags
#define X509_VERIFY_PARAM_set_hostflags tc_openssl.X509_VERIFY_PARAM_set_hostflags
#define X509_check_host tc_openssl.X509_check_host
#define X509_check_ip_asc tc_openssl.X509_check_ip_asc
#define X509_free tc_openssl.X509_free
#define X509_get0_serialNumber tc_openssl.X509_get0_serialNumber
#define X509_get_ext_d2i tc_openssl.X509_get_ext_d2i
#define X509_get_issuer_name tc_openssl.X509_get_issuer_name
#define X509_verify_cert tc_openssl.X509_verify_cert
#define X509_verify_cert_error_string tc_openssl.X509_verify_cert_error_string
#define d2i_X509 tc_openssl.d2i_X509
#endif

#endif
