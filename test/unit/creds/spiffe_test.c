/* SPIFFE ids and trust bundle maps (A87).
 *
 * Ids are texts, and maps are parsed from JSON texts. expect_roots asks a map for the roots of a peer: a leaf
 * certificate with the given names, which tc_spiffe_map_roots does not verify. The certificates of the maps are `root`
 * and `other`, which all tests share; base64_of makes the text that stands in a map. One thread. */
#include "creds/spiffe.h"

#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "base/parse.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"

static struct kit_cert root, other;

static int setup(void **state)
{
    (void)state;
    root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    other = kit_cert_make(&(struct kit_cert_opts){.common_name = "other", .ca = true});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_cert_fini(&root);
    kit_cert_fini(&other);
    return 0;
}

static void ids_are_taken_apart(void **state)
{
    (void)state;
    static const char *const good[][2] = {{"spiffe://a.test/b/c", "a.test"},
                                          {"spiffe://a-b_c.9/X", "a-b_c.9"},
                                          {"spiffe://a", "a"},
                                          {"spiffe://a/...", "a"}};
    static const char *const bad[][2] = {
        {"", "does not begin"},
        {"https://a/b", "does not begin"},
        {"SPIFFE://a/b", "does not begin"},
        {"spiffe://", "trust domain is empty"},
        {"spiffe:///b", "trust domain is empty"},
        {"spiffe://A/b", "trust domain has characters"},
        {"spiffe://u@a/b", "trust domain has characters"},
        {"spiffe://a:1/b", "trust domain has characters"},
        {"spiffe://a?x/b", "trust domain has characters"},
        {"spiffe://a/", "empty segment"},
        {"spiffe://a//b", "empty segment"},
        {"spiffe://a/b/", "empty segment"},
        {"spiffe://a/./b", "relative segment"},
        {"spiffe://a/..", "relative segment"},
        {"spiffe://a/b%20", "path has characters"},
        {"spiffe://a/b?c", "path has characters"},
        {"spiffe://a/b#c", "path has characters"},
    };
    struct tc_slice domain;
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        assert_null(tc_spiffe_id_parse(tc_slice_str(good[i][0]), &domain));
        assert_true(tc_slice_eq_str(domain, good[i][1]));
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        const char *why = tc_spiffe_id_parse(tc_slice_str(bad[i][0]), &domain);
        if (!why || !strstr(why, bad[i][1]))
            fail_msg("\"%s\": %s", bad[i][0], why ? why : "taken");
    }
    /* A trust domain has at most 255 bytes, an id at most 2048. */
    char long_id[2050];
    memset(long_id, 'a', sizeof(long_id));
    memcpy(long_id, "spiffe://", 9);
    assert_non_null(strstr(tc_spiffe_id_parse(tc_slice_of(long_id, 9 + 256), &domain), "255"));
    assert_null(tc_spiffe_id_parse(tc_slice_of(long_id, 9 + 255), &domain));
    long_id[10] = '/';
    assert_null(tc_spiffe_id_parse(tc_slice_of(long_id, 2048), &domain));
    assert_non_null(strstr(tc_spiffe_id_parse(tc_slice_of(long_id, 2049), &domain), "2048"));
}

/* Returns the DER of a certificate in base64 (tc_free). */
static char *base64_of(const struct kit_cert *cert)
{
    unsigned char *der = NULL;
    int len = i2d_X509(cert->x509, &der);
    struct tc_buf b = {0};
    assert_true(len > 0);
    tc_base64_encode(&b, der, (size_t)len, true);
    OPENSSL_free(der);
    return tc_buf_take(&b);
}

/* Returns the map with one reference; fails the test if it is refused. */
static struct tc_spiffe_map *parse(const char *json)
{
    struct tc_validation_errors errors = {0};
    struct tc_spiffe_map *m = tc_spiffe_map_parse(tc_slice_str(json), &errors);
    if (!m)
        fail_msg("%s", tc_validation_text(&errors));
    tc_validation_fini(&errors);
    return m;
}

/* Expects that the map is refused, with this part of the errors. */
static void refused(const char *json, const char *text)
{
    struct tc_validation_errors errors = {0};
    assert_null(tc_spiffe_map_parse(tc_slice_str(json), &errors));
    if (!strstr(tc_validation_text(&errors), text))
        fail_msg("%s: %s", json, tc_validation_text(&errors));
    tc_validation_fini(&errors);
}

/* Expects that tc_spiffe_map_roots gives a leaf with these names (NULL: without names) a list of n roots, which may be
 * empty; n -1: NULL, and a reason that contains `text`. */
static void expect_roots(const struct tc_spiffe_map *m, const char *sans, int n, const char *text)
{
    struct kit_cert leaf = kit_cert_make(&(struct kit_cert_opts){.common_name = "leaf", .sans = sans, .issuer = &root});
    struct tc_buf why = {0};
    STACK_OF(X509) *roots = tc_spiffe_map_roots(m, leaf.x509, &why);
    assert_int_equal(roots ? sk_X509_num(roots) : -1, n);
    assert_non_null(strstr(tc_buf_cstr(&why), text));
    tc_buf_fini(&why);
    kit_cert_fini(&leaf);
}

static void roots_are_those_of_the_trust_domain(void **state)
{
    (void)state;
    char *a = base64_of(&root), *b = base64_of(&other);
    char *json =
        tc_asprintf("{\"trust_domains\":{\"b.test\":{\"keys\":[{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[\"%s\"],"
                    "\"crv\":\"P-256\"},{\"kty\":\"RSA\",\"use\":\"x509-svid\",\"x5c\":[\"%s\"]}]},"
                    "\"a.test\":{\"spiffe_sequence\":7,\"spiffe_refresh_hint\":5,\"keys\":[{\"kty\":\"EC\","
                    "\"use\":\"x509-svid\",\"x5c\":[\"%s\"]}]},\"none.test\":{\"keys\":[]}}}",
                    a, b, a);
    struct tc_spiffe_map *m = parse(json);
    expect_roots(m, "URI:spiffe://a.test/x", 1, "");
    expect_roots(m, "DNS:x.test,URI:spiffe://b.test/x", 2, "");
    expect_roots(m, "URI:spiffe://none.test/x", 0, "");
    expect_roots(m, "URI:spiffe://c.test/x", -1, "trust domain \"c.test\" is not in the SPIFFE trust bundle map");
    expect_roots(m, "URI:spiffe://a.tes/x", -1, "trust domain \"a.tes\" is not");
    expect_roots(m, "DNS:a.test", -1, "it has 0 URIs among its names");
    expect_roots(m, NULL, -1, "it has 0 URIs among its names");
    expect_roots(m, "URI:spiffe://a.test/x,URI:spiffe://a.test/y", -1, "it has 2 URIs among its names");
    expect_roots(m, "URI:https://a.test/x", -1, "\"https://a.test/x\" is not a SPIFFE id: it does not begin with");
    tc_spiffe_map_unref(m);
    m = parse("{\"trust_domains\":{}}");
    expect_roots(m, "URI:spiffe://a.test/x", -1, "is not in the SPIFFE trust bundle map");
    tc_spiffe_map_unref(m);
    tc_free(json);
    tc_free(a);
    tc_free(b);
}

/* A NUL does not end a name: the bytes after the NUL belong to the name. */
static void an_id_with_a_nul_is_none(void **state)
{
    (void)state;
    static const char id[] = "spiffe://a.test/x\0.evil";
    struct kit_cert leaf = kit_cert_make(&(struct kit_cert_opts){.common_name = "leaf", .issuer = &root});
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    assert_int_equal(ASN1_STRING_set(text, id, sizeof(id) - 1), 1);
    GENERAL_NAME_set0_value(name, GEN_URI, text);
    assert_true(sk_GENERAL_NAME_push(names, name) > 0);
    assert_int_equal(X509_add1_ext_i2d(leaf.x509, NID_subject_alt_name, names, 0, X509V3_ADD_REPLACE), 1);
    GENERAL_NAMES_free(names);
    char *a = base64_of(&root);
    char *json = tc_asprintf("{\"trust_domains\":{\"a.test\":{\"keys\":[{\"kty\":\"EC\",\"use\":\"x509-svid\","
                             "\"x5c\":[\"%s\"]}]}}}",
                             a);
    struct tc_spiffe_map *m = parse(json);
    struct tc_buf why = {0};
    expect_roots(m, "URI:spiffe://a.test/x", 1, "");
    assert_null(tc_spiffe_map_roots(m, leaf.x509, &why));
    assert_non_null(strstr(tc_buf_cstr(&why), "the path has characters other than"));
    tc_buf_fini(&why);
    tc_spiffe_map_unref(m);
    tc_free(json);
    tc_free(a);
    kit_cert_fini(&leaf);
}

#define DOMAIN(bundle) "{\"trust_domains\":{\"a.test\":" bundle "}}"
#define KEY(key) DOMAIN("{\"keys\":[" key "]}")

/* A87: one bad entry refuses the whole map. */
static void bad_maps_are_refused(void **state)
{
    (void)state;
    refused("{", "not JSON");
    refused("[]", "must be an object");
    refused("{}", "trust_domains: field not present");
    refused("{\"trust_domains\":[]}", "trust_domains: ");
    refused("{\"trust_domains\":{\"A\":{\"keys\":[]}}}", "trust_domains[\"A\"]: the trust domain has characters");
    refused("{\"trust_domains\":{\"\":{\"keys\":[]}}}", "the trust domain is empty");
    refused(DOMAIN("7"), "trust_domains[\"a.test\"]: must be an object");
    refused(DOMAIN("{}"), "trust_domains[\"a.test\"].keys: field not present");
    refused(DOMAIN("{\"keys\":{}}"), ".keys: ");
    refused(DOMAIN("{\"keys\":[],\"spiffe_sequence\":\"x\"}"), ".spiffe_sequence: ");
    refused(KEY("7"), ".keys[0]: must be an object");
    refused(KEY("{\"use\":\"x509-svid\",\"x5c\":[\"AA\"]}"), ".keys[0].kty: must be RSA or EC");
    refused(KEY("{\"kty\":\"oct\",\"use\":\"x509-svid\",\"x5c\":[\"AA\"]}"), ".kty: must be RSA or EC");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"jwt-svid\",\"x5c\":[\"AA\"]}"), ".use: must be x509-svid");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\"}"), ".x5c: must be one certificate");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[]}"), ".x5c: must be one certificate");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[\"AA\",\"AA\"]}"), ".x5c: must be one certificate");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[7]}"), ".x5c: must be one certificate");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[\"!\"]}"), ".x5c: is not an X.509 certificate");
    refused(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[\"AAAA\"]}"), ".x5c: is not an X.509 certificate");
    char *a = base64_of(&root);
    char *twice = tc_asprintf(KEY("{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[\"%s\"]},{\"kty\":\"EC\"}"), a);
    refused(twice, ".keys[1].use");
    tc_free(twice);
    tc_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_taken_apart),
        cmocka_unit_test(roots_are_those_of_the_trust_domain),
        cmocka_unit_test(an_id_with_a_nul_is_none),
        cmocka_unit_test(bad_maps_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
