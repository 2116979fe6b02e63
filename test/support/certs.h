/* Certificates made on the spot, for tests of TLS. */
#ifndef TC_SUPPORT_CERTS_H
#define TC_SUPPORT_CERTS_H

#include "base/slice.h"

struct tc_cert {
    char *cert_pem; /* the certificate alone */
    char *key_pem;
    struct x509_st *x509;
    struct evp_pkey_st *key;
};

struct tc_cert_opts {
    const char *common_name;
    const char *sans; /* as OpenSSL's config has them: "DNS:a.test,IP:127.0.0.1"; NULL: none */
    bool ca;
    int valid_from_s, valid_to_s; /* from now; both 0: an hour back to a day ahead */
    const struct tc_cert *issuer; /* NULL: self-signed */
};

/* Fails the test when OpenSSL does not make it. */
struct tc_cert tc_cert_make(const struct tc_cert_opts *opts);
void tc_cert_fini(struct tc_cert *cert);

static inline struct tc_slice tc_cert_pem(const struct tc_cert *cert)
{
    return tc_slice_str(cert->cert_pem);
}

static inline struct tc_slice tc_cert_key(const struct tc_cert *cert)
{
    return tc_slice_str(cert->key_pem);
}

#endif
