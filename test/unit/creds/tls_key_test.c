/* The keys of TLS credentials that are made from texts decide whether connections are shared. Keys are equal for equal
 * texts, and only for those. If OpenSSL makes no SHA-256 (no_digest), no two credentials have equal keys. */
#define TC_OPENSSL_ITSELF /* EVP_DigestFinal_ex is not a macro here, but the name of a member of tc_openssl */
#include "base/mem.h"
#include "creds/creds.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"
#include "tls/openssl.h"

static int no_digest(EVP_MD_CTX *ctx, unsigned char *md, unsigned *len)
{
    (void)ctx;
    (void)md;
    (void)len;
    return 0;
}

static torc_credentials *make(const char *roots)
{
    struct torc_tls_options o = {TORC_SIZE(torc_tls_options), .roots_pem = roots};
    torc_credentials *c = torc_credentials_tls(&o, NULL);
    assert_non_null(c);
    return c;
}

static bool same_key(const char *a, const char *b)
{
    torc_credentials *one = make(a), *two = make(b);
    bool same = tc_rstr_eq(one->key, two->key);
    torc_credentials_unref(one);
    torc_credentials_unref(two);
    return same;
}

static void test_keys(void **state)
{
    (void)state;
    struct kit_cert a = kit_cert_make(&(struct kit_cert_opts){.common_name = "a", .ca = true});
    struct kit_cert b = kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .ca = true});
    assert_true(same_key(a.cert_pem, a.cert_pem));
    assert_false(same_key(a.cert_pem, b.cert_pem));
    assert_false(same_key(a.cert_pem, NULL));
    tc_openssl.EVP_DigestFinal_ex = no_digest;
    assert_false(same_key(a.cert_pem, b.cert_pem));
    assert_false(same_key(a.cert_pem, NULL));
    assert_false(same_key(a.cert_pem, a.cert_pem)); /* not shared, which is always safe */
    kit_cert_fini(&a);
    kit_cert_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
