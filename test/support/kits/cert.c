/* EC keys (P-256) and certificates made with OpenSSL. A certificate is signed by its issuer, or self-signed. */
#include "support/kits/cert.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "support/cmocka.h"
#include "support/openssl_1_1.h"

/* Adds an extension in the syntax of OpenSSL's config. Fails the test if OpenSSL rejects it. */
static void add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(ext);
    assert_int_equal(X509_add_ext(x509, ext, -1), 1);
    X509_EXTENSION_free(ext);
}

/* Returns the content as a text, for tc_free, and frees the BIO. `written`: what the function that wrote to the BIO
 * returned. */
static char *bio_text(BIO *bio, int written)
{
    char *data;
    assert_int_equal(written, 1);
    long len = BIO_get_mem_data(bio, &data);
    assert_true(len > 0);
    char *text = tc_strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

static void set_serial(X509 *x509)
{
    unsigned char bytes[8];
    assert_int_equal(RAND_bytes(bytes, sizeof(bytes)), 1);
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    assert_non_null(number);
    assert_non_null(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)));
    BN_free(number);
}

struct kit_cert kit_cert_make(const struct kit_cert_opts *opts)
{
    struct kit_cert cert = {0};
    cert.key = EVP_EC_gen("P-256");
    cert.x509 = X509_new();
    assert_true(cert.key && cert.x509);
    X509 *issuer = opts->issuer ? opts->issuer->x509 : cert.x509;
    bool dated = opts->valid_from_s != 0 || opts->valid_to_s != 0;
    assert_int_equal(X509_set_version(cert.x509, X509_VERSION_3), 1);
    set_serial(cert.x509);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert.x509), dated ? opts->valid_from_s : -3600));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert.x509), dated ? opts->valid_to_s : 86400));
    assert_int_equal(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.x509), "CN", MBSTRING_ASC,
                                                (const unsigned char *)opts->common_name, -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(cert.x509, X509_get_subject_name(issuer)), 1);
    assert_int_equal(X509_set_pubkey(cert.x509, cert.key), 1);
    add_extension(cert.x509, issuer, NID_basic_constraints, opts->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (opts->ca)
        add_extension(cert.x509, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (opts->sans)
        add_extension(cert.x509, issuer, NID_subject_alt_name, opts->sans);
    assert_true(X509_sign(cert.x509, opts->issuer ? opts->issuer->key : cert.key, EVP_sha256()) > 0);

    BIO *bio = BIO_new(BIO_s_mem());
    cert.cert_pem = bio_text(bio, PEM_write_bio_X509(bio, cert.x509));
    bio = BIO_new(BIO_s_mem());
    cert.key_pem = bio_text(bio, PEM_write_bio_PrivateKey(bio, cert.key, NULL, NULL, 0, NULL, NULL));
    return cert;
}

void kit_cert_fini(struct kit_cert *cert)
{
    tc_free(cert->cert_pem);
    tc_free(cert->key_pem);
    X509_free(cert->x509);
    EVP_PKEY_free(cert->key);
    *cert = (struct kit_cert){0};
}
