/* Names in certificates: their kinds, and the hosts that a DNS name covers. */
#include "tls/san.h"

#include <openssl/x509.h>

#include "base/buf.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"

static bool covers(const char *pattern, const char *host)
{
    return tc_san_covers(tc_slice_str(pattern), tc_slice_str(host));
}

static void names_cover_hosts(void **state)
{
    (void)state;
    assert_true(covers("a.test", "a.test"));
    assert_true(covers("A.Test", "a.tEST"));
    assert_true(covers("a.test.", "a.test"));
    assert_true(covers("a.test", "a.test."));
    assert_true(covers("*.test.example", "a.test.example"));
    assert_true(covers("*.test.example", "A.TEST.example."));
    assert_true(covers("*.test", "a.test"));
}

static void names_do_not_cover_more(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"a.test", "b.test"},
        {"a.test", ""},
        {"", "a.test"},
        {".a.test", "a.test"},
        {".a.test", ".a.test"},
        {"*.test", ".test"},
        {"*.test", "test"},
        {"*.test", "a.b.test"},
        {"*", "test"},
        {"*.", "test"},
        {"*.", "test."},
        {"*", "*"},
        {"*..test", "a..test"},
        {"a*.test", "ab.test"},
        {"*a.test", "ba.test"},
        {"a.*.test", "a.b.test"},
        {"*.*.test", "a.b.test"},
        {"**.test", "a.test"},
        {"*.test*", "a.test"},
        {"x*.example.test", "xy.example.test"},
        {"*.test.example", "a.test"},
        {"*.test", "a.testy"},
        {"*.0.0.1", "10.0.0.1"},
        {"a..test", "a..test"},
        {"a.test..", "a.test."},
        {"a.test..", "a.test.."},
        {".", "."},
        {"*.test", "..test"},
        {"*.test..", "a.test.."},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(pairs); i++)
        if (covers(pairs[i][0], pairs[i][1]))
            fail_msg("\"%s\" covers \"%s\"", pairs[i][0], pairs[i][1]);
}

struct listing {
    struct tc_buf text;
    const char *until; /* the name that ends the search; NULL: none */
};

static bool on_name(void *arg, enum tc_san_kind kind, struct tc_slice name)
{
    static const char *const kinds[] = {"DNS", "URI", "EMAIL", "IP"};
    struct listing *l = arg;
    tc_buf_printf(&l->text, "%s:%.*s ", kinds[kind], (int)name.len, name.data);
    return l->until && tc_slice_eq_str(name, l->until);
}

/* Asserts that a certificate with these subject alternative names (OpenSSL's syntax; NULL: none) is listed as `text`,
 * which has `count` names. The listing ends after the name `until`; NULL: after the last one. */
static void expect_names(const char *sans, const char *until, const char *text, size_t count)
{
    struct kit_cert cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "cn.test", .sans = sans});
    struct listing l = {.until = until};
    size_t n = 99;
    assert_int_equal(tc_san_find(cert.x509, on_name, &l, &n), until != NULL);
    assert_string_equal(tc_buf_cstr(&l.text), text);
    assert_int_equal(n, count);
    tc_buf_fini(&l.text);
    kit_cert_fini(&cert);
}

static void all_kinds_are_listed(void **state)
{
    (void)state;
    expect_names("DNS:a.test,URI:spiffe://a/b,email:me@a.test,IP:10.1.2.3,IP:2001:DB8:0:0:0:0:0:1,RID:1.2.3.4", NULL,
                 "DNS:a.test URI:spiffe://a/b EMAIL:me@a.test IP:10.1.2.3 IP:2001:db8::1 ", 5);
    expect_names("DNS:a.test,DNS:b.test,DNS:c.test", "b.test", "DNS:a.test DNS:b.test ", 2);
    expect_names(NULL, NULL, "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_cover_hosts),
        cmocka_unit_test(names_do_not_cover_more),
        cmocka_unit_test(all_kinds_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
