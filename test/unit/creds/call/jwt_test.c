/* JWTs: reading the expiry (creds/call/jwt.h), signing (jwt_sign.h), and the content of a file that holds a JWT
 * (jwt_file.h).
 *
 * token_of makes a JWT of a payload, with a made-up signature: no function under test checks signatures. test_sign
 * verifies a signature with OpenSSL, and reads the parts of the token back with part_of. One thread; no file is
 * read. */
#include <openssl/pem.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "creds/call/jwt.h"
#include "creds/call/jwt_file.h"
#include "creds/call/jwt_sign.h"
#include "support/cmocka.h"
#include "support/openssl_1_1.h"

/* Returns a JWT with this payload, the header {} and the signature "sig" (tc_free). */
static char *token_of(const char *payload)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "e30.");
    size_t at = b.len;
    tc_base64_encode(&b, payload, strlen(payload), false);
    for (; at < b.len; at++)
        b.data[at] = (char)(b.data[at] == '+' ? '-' : b.data[at] == '/' ? '_' : b.data[at]);
    tc_buf_append_str(&b, ".c2ln");
    return tc_buf_take(&b);
}

static void expect_exp(const char *payload, int64_t wanted)
{
    char *token = token_of(payload);
    int64_t exp = 0;
    const char *why = "";
    assert_int_equal(tc_jwt_expiry(tc_slice_str(token), &exp, &why), 0);
    assert_int_equal(exp, wanted);
    tc_free(token);
}

static void expect_fault(struct tc_slice token, const char *part)
{
    int64_t exp = 42;
    const char *why = "";
    assert_int_equal(tc_jwt_expiry(token, &exp, &why), TORC_EPARSE);
    assert_int_equal(exp, 42);
    assert_non_null(strstr(why, part));
}

static void expect_payload_fault(const char *payload, const char *part)
{
    char *token = token_of(payload);
    expect_fault(tc_slice_str(token), part);
    tc_free(token);
}

static void test_expiry(void **state)
{
    (void)state;
    expect_exp("{\"exp\":1700000000}", 1700000000);
    expect_exp("{\"a\":\"\xc3\xbf\xc3\xbf\xc3\xbf>>>???\",\"exp\":1700000000.75}", 1700000000);
    expect_exp("{\"exp\":1e300}", INT64_C(253402300799));
    /* RFC 7519, section 3.1: the example's exp. */
    int64_t exp;
    const char *why;
    const char *rfc = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
                      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
                      "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_int_equal(tc_jwt_expiry(tc_slice_str(rfc), &exp, &why), 0);
    assert_int_equal(exp, 1300819380);
}

static void test_faults(void **state)
{
    (void)state;
    expect_fault(tc_slice_of(NULL, 0), "three parts");
    expect_fault(tc_slice_str("a.b"), "three parts");
    expect_fault(tc_slice_str("a.b.c.d"), "three parts");
    expect_fault(tc_slice_str("a..c"), "base64url");
    expect_fault(tc_slice_str("a.e30=.c"), "base64url");
    expect_fault(tc_slice_str("a.e+/w.c"), "base64url");
    expect_fault(tc_slice_str("a.e.c"), "base64url");
    expect_payload_fault("{", "not a JSON object");
    expect_payload_fault("[1]", "not a JSON object");
    expect_payload_fault("{}", "no number \"exp\"");
    expect_payload_fault("{\"exp\":\"1700000000\"}", "no number \"exp\"");
    expect_payload_fault("{\"exp\":0}", "not positive");
    expect_payload_fault("{\"exp\":-7}", "not positive");
}

static void test_file_content(void **state)
{
    (void)state;
    char *token = token_of("{\"exp\":1700000000}");
    char *text = tc_asprintf("\n %s \r\n", token);
    struct tc_token out = {0};
    tc_jwt_file_token("/f", tc_slice_str(text), &out);
    assert_non_null(out.metadata);
    assert_int_equal(out.expires_ns, INT64_C(1700000000) * (int64_t)TC_NS_PER_S);
    assert_int_equal(out.metadata->n, 1);
    assert_string_equal(out.metadata->fields[0].name->data, "authorization");
    assert_memory_equal(out.metadata->fields[0].value->data, "Bearer ", 7);
    assert_string_equal(out.metadata->fields[0].value->data + 7, token);
    tc_auth_metadata_unref(out.metadata);
    tc_free(text);

    /* A signature that would end the header line. */
    text = tc_asprintf("%s\nx: y", token);
    out = (struct tc_token){0};
    tc_jwt_file_token("/f", tc_slice_str(text), &out);
    assert_null(out.metadata);
    assert_int_equal(out.error.code, TORC_STATUS_UNAUTHENTICATED);
    assert_non_null(strstr(tc_status_text(&out.error), "/f"));
    /* The token stays out of messages. */
    assert_null(strstr(tc_status_text(&out.error), token));
    tc_status_fini(&out.error);
    tc_free(text);

    out = (struct tc_token){0};
    tc_jwt_file_token("/f", tc_slice_str(""), &out);
    assert_int_equal(out.error.code, TORC_STATUS_UNAUTHENTICATED);
    tc_status_fini(&out.error);

    /* Beyond the range of nanoseconds. */
    tc_free(token);
    token = token_of("{\"exp\":99999999999}");
    out = (struct tc_token){0};
    tc_jwt_file_token("/f", tc_slice_str(token), &out);
    assert_int_equal(out.expires_ns, INT64_MAX);
    tc_auth_metadata_unref(out.metadata);
    tc_free(token);
}

/* Returns the JSON of part i of a JWT: 0 the header, 1 the payload. A new reference. */
static json_t *part_of(const char *token, int i)
{
    struct tc_slice rest = tc_slice_str(token), part;
    bool more = true;
    for (int k = 0; k <= i; k++)
        assert_true(tc_slice_split(&rest, &more, '.', &part));
    struct tc_buf text = {0}, raw = {0};
    tc_buf_append_slice(&text, part);
    for (size_t k = 0; k < text.len; k++)
        text.data[k] = (char)(text.data[k] == '-' ? '+' : text.data[k] == '_' ? '/' : text.data[k]);
    assert_int_equal(tc_base64_decode(&raw, tc_buf_slice(&text)), 0);
    json_t *v = tc_json_parse(tc_buf_slice(&raw), NULL);
    assert_non_null(v);
    tc_buf_fini(&text);
    tc_buf_fini(&raw);
    return v;
}

static void expect_member(const json_t *v, const char *key, const char *wanted)
{
    assert_string_equal(json_string_value(json_object_get(v, key)), wanted);
}

static void test_sign(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_RSA_gen(2048);
    struct tc_jwt_claims claims = {.key_id = "k1",
                                   .issuer = "me@project.test",
                                   .audience = "https://orders.test/",
                                   .issued_s = 1700000000,
                                   .expires_s = 1700003600};
    struct tc_buf out = {0};
    assert_int_equal(tc_jwt_sign(&out, key, &claims), 0);
    const char *token = tc_buf_cstr(&out);
    json_t *header = part_of(token, 0), *payload = part_of(token, 1);
    expect_member(header, "alg", "RS256");
    expect_member(header, "typ", "JWT");
    expect_member(header, "kid", "k1");
    expect_member(payload, "iss", "me@project.test");
    expect_member(payload, "sub", "me@project.test");
    expect_member(payload, "aud", "https://orders.test/");
    assert_int_equal(json_integer_value(json_object_get(payload, "iat")), 1700000000);
    json_decref(header);
    json_decref(payload);
    int64_t exp;
    const char *why;
    assert_int_equal(tc_jwt_expiry(tc_buf_slice(&out), &exp, &why), 0);
    assert_int_equal(exp, 1700003600);

    /* OpenSSL verifies the signature. */
    const char *dot = strrchr(token, '.');
    struct tc_buf text = {0}, signature = {0};
    tc_buf_append_str(&text, dot + 1);
    for (size_t k = 0; k < text.len; k++)
        text.data[k] = (char)(text.data[k] == '-' ? '+' : text.data[k] == '_' ? '/' : text.data[k]);
    assert_int_equal(tc_base64_decode(&signature, tc_buf_slice(&text)), 0);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(md, (const unsigned char *)signature.data, signature.len,
                                      (const unsigned char *)token, (size_t)(dot - token)),
                     1);
    EVP_MD_CTX_free(md);
    tc_buf_fini(&text);
    tc_buf_fini(&signature);
    tc_buf_fini(&out);
    EVP_PKEY_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_file_content),
        cmocka_unit_test(test_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
