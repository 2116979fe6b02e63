/* Certificates made on the spot, for tests of TLS. */
#ifndef TC_SUPPORT_KITS_CERT_H
#define TC_SUPPORT_KITS_CERT_H

#include "base/slice.h"

struct kit_cert {
    char *cert_pem; /* the certificate alone, without its issuer */
    char *key_pem;
    struct x509_st *x509;
    struct evp_pkey_st *key;
};

struct kit_cert_opts {
    const char *common_name;       /* not NULL */
    const char *sans;              /* subjectAltName as in OpenSSL's config: "DNS:a.test,IP:127.0.0.1"; NULL: none */
    bool ca;                       /* may issue certificates */
    int valid_from_s, valid_to_s;  /* relative to now; both 0: from an hour ago to a day ahead */
    const struct kit_cert *issuer; /* NULL: self-signed */
};

/* Makes a key and a certificate; free them with kit_cert_fini. Everything in opts is borrowed for the call. Fails the
 * test if OpenSSL cannot make them. */
struct kit_cert kit_cert_make(const struct kit_cert_opts *opts);
/* Frees what *cert holds and sets *cert to zero; a zeroed *cert is allowed. */
void kit_cert_fini(struct kit_cert *cert);

/* kit_cert_pem returns the certificate, kit_cert_key its private key, as PEM; borrowed from *cert. */
static inline struct tc_slice kit_cert_pem(const struct kit_cert *cert)
{
    return tc_slice_str(cert->cert_pem);
}

static inline struct tc_slice kit_cert_key(const struct kit_cert *cert)
{
    return tc_slice_str(cert->key_pem);
}

#endif
