#include "certificate.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "support/openssl_1_1.h"

static bool add_names(X509 *certificate)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
    bool ok =
        names && X509_add_ext(certificate, names, -1) == 1 &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"Torc bench", -1, -1, 0) == 1 &&
        X509_set_issuer_name(certificate, name) == 1;
    X509_EXTENSION_free(names);
    return ok;
}

static bool fill(X509 *certificate, EVP_PKEY *key)
{
    return X509_set_version(certificate, X509_VERSION_3) == 1 &&
           ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) && X509_set_pubkey(certificate, key) == 1 &&
           add_names(certificate) && X509_sign(certificate, key, EVP_sha256()) > 0;
}

bool certificate_write(FILE *to)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    bool ok = key && certificate && fill(certificate, key) && PEM_write_X509(to, certificate) == 1 &&
              PEM_write_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) == 1 && fflush(to) == 0;
    if (!ok)
        ERR_print_errors_fp(stderr);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return ok;
}
