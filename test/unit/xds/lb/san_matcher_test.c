/* Certificates that a cluster's matchers accept (A29), and the role of SNI (A101). */
#include "xds/lb/san_matcher.h"

#include "base/buf.h"
#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/cert.h"

#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        .data = (s), .len = sizeof(s) - 1                                                                              \
    }

static bool matches(enum tc_string_match_kind how, const char *text, enum tc_san_kind kind, const char *name)
{
    struct tc_string_matcher m = {.kind = how, .text = tc_slice_str(text)};
    if (how == TC_MATCH_REGEX) {
        char *why = NULL;
        m.regex = tc_regex_new(m.text, NULL, &why);
        assert_non_null(m.regex);
    }
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    bool ok = tc_san_matches(&m, kind, tc_slice_str(name), &steps);
    if (m.regex)
        tc_regex_free(m.regex);
    return ok;
}

static void names_are_matched(void **state)
{
    (void)state;
    assert_true(matches(TC_MATCH_EXACT, "a.test", TC_SAN_DNS, "A.test"));
    assert_true(matches(TC_MATCH_EXACT, "a.test", TC_SAN_DNS, "*.test"));
    assert_false(matches(TC_MATCH_EXACT, "a.b.test", TC_SAN_DNS, "*.test"));
    /* Wildcards count in DNS names of certificates alone; an asterisk in a matcher is not a wildcard. */
    assert_false(matches(TC_MATCH_EXACT, "a.test", TC_SAN_URI, "*.test"));
    assert_false(matches(TC_MATCH_EXACT, "*.test", TC_SAN_DNS, "a.test"));
    assert_true(matches(TC_MATCH_EXACT, "spiffe://a/b", TC_SAN_URI, "spiffe://a/b"));
    assert_false(matches(TC_MATCH_EXACT, "spiffe://a/b", TC_SAN_URI, "spiffe://A/b"));
    assert_true(matches(TC_MATCH_EXACT, "2001:db8::1", TC_SAN_IP, "2001:db8::1"));
    assert_true(matches(TC_MATCH_EXACT, "me@a.test", TC_SAN_EMAIL, "me@a.test"));
    assert_true(matches(TC_MATCH_PREFIX, "spiffe://a/", TC_SAN_URI, "spiffe://a/b"));
    assert_true(matches(TC_MATCH_SUFFIX, ".test", TC_SAN_DNS, "*.test"));
    assert_true(matches(TC_MATCH_CONTAINS, "10.", TC_SAN_IP, "10.0.0.1"));
    assert_true(matches(TC_MATCH_REGEX, "a[0-9]+\\.test", TC_SAN_DNS, "a17.test"));
    assert_false(matches(TC_MATCH_REGEX, "a[0-9]+\\.test", TC_SAN_DNS, "xa17.test"));
    assert_false(matches(TC_MATCH_REGEX, ".*", TC_SAN_DNS, ""));
    struct tc_string_matcher prefix = {.kind = TC_MATCH_PREFIX, .text = tc_slice_str("a.test")};
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    assert_false(tc_san_matches(&prefix, TC_SAN_DNS, tc_slice_of("a.test\0.b.test", 14), &steps));
}

/* Makes a certificate with these subject alternative names (kits/cert.h; NULL: none) and checks it. sni: the name that
 * was sent; "": none. text: what the reason of a refusal contains. */
static bool check(const struct tc_san_check *c, const char *sans, const char *sni, const char *text)
{
    struct kit_cert cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "cn.test", .sans = sans});
    struct tc_buf why = {0};
    bool ok = tc_san_check(c, cert.x509, tc_slice_str(sni), &why);
    if (!strstr(tc_buf_cstr(&why), text))
        fail_msg("%s", tc_buf_cstr(&why));
    assert_int_equal(ok, why.len == 0);
    tc_buf_fini(&why);
    kit_cert_fini(&cert);
    return ok;
}

static void certificates_are_checked(void **state)
{
    (void)state;
    const struct tc_string_matcher matchers[] = {{.kind = TC_MATCH_EXACT, .text = TEXT("a.test")},
                                                 {.kind = TC_MATCH_PREFIX, .text = TEXT("spiffe://a/")}};
    const struct tc_san_check none = {0}, two = {.n = 2, .matchers = matchers};
    assert_true(check(&none, NULL, "", ""));
    assert_true(check(&none, "DNS:x.test", "y.test", ""));
    assert_true(check(&two, "DNS:x.test,DNS:a.test", "", ""));
    assert_true(check(&two, "DNS:x.test,URI:spiffe://a/b", "", ""));
    assert_false(check(&two, NULL, "", "has no subject alternative names"));
    assert_false(check(&two, "RID:1.2.3.4", "", "has no subject alternative names"));
    assert_false(
        check(&two, "DNS:cn.test,IP:10.0.0.1", "", "(\"cn.test\", \"10.0.0.1\") is one that the cluster asks"));
    assert_false(check(&two, "DNS:1.test,DNS:2.test,DNS:3.test,DNS:4.test,DNS:5.test", "", "\"4.test\", ...)"));
}

/* A101: with by_sni, a certificate must cover the SNI that was sent. The matchers count only if no SNI was sent. */
static void sni_is_checked(void **state)
{
    (void)state;
    const struct tc_string_matcher matcher = {.kind = TC_MATCH_EXACT, .text = TEXT("a.test")};
    const struct tc_san_check by_sni = {.n = 1, .matchers = &matcher, .by_sni = true}, sni_alone = {.by_sni = true};
    assert_true(check(&by_sni, "DNS:b.test", "b.test", ""));
    assert_true(check(&sni_alone, "DNS:*.test", "b.test", ""));
    assert_false(check(&by_sni, "DNS:a.test", "b.test", "(\"a.test\")"));
    assert_false(check(&sni_alone, "URI:b.test", "b.test", "(\"b.test\")"));
    assert_true(check(&by_sni, "DNS:a.test", "", ""));
    assert_false(check(&by_sni, "DNS:b.test", "", "(\"b.test\")"));
    assert_true(check(&sni_alone, NULL, "", ""));
}

/* The CPU time of a check is bounded, for many matchers with many names and for long texts. */
static void matching_is_bounded(void **state)
{
    (void)state;
    enum { MATCHERS = 65536, NAMES = 1000, LONG = 60000, MAX_CPU_MS = 1000 };
    struct tc_string_matcher *many = tc_calloc(MATCHERS, sizeof(*many));
    struct tc_buf sans = {0}, text = {0};
    for (size_t i = 0; i < MATCHERS; i++)
        many[i] = (struct tc_string_matcher){.kind = TC_MATCH_EXACT, .text = tc_slice_str("a.test")};
    for (size_t i = 0; i < NAMES; i++)
        tc_buf_printf(&sans, "%sDNS:n%zu", i ? "," : "", i);
    const struct tc_san_check each = {.n = MATCHERS, .matchers = many};
    struct footprint begin = footprint_begin();
    assert_false(check(&each, tc_buf_cstr(&sans), "", "is one that the cluster asks for"));
    for (size_t i = 0; i < LONG; i++)
        tc_buf_append_char(&text, 'a');
    tc_buf_append_char(&text, 'b');
    const struct tc_string_matcher part = {
        .kind = TC_MATCH_CONTAINS, .ignore_case = true, .text = tc_slice_of(text.data + LONG / 2, LONG / 2 + 1)};
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    assert_true(tc_san_matches(&part, TC_SAN_URI, tc_buf_slice(&text), &steps));
    assert_false(tc_san_matches(&part, TC_SAN_URI, tc_slice_of(text.data, LONG), &steps));
    if (FOOTPRINT_MEASURED)
        assert_true(footprint_since(&begin).cpu_ms < MAX_CPU_MS);
    tc_buf_fini(&text);
    tc_buf_fini(&sans);
    tc_free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_matched),
        cmocka_unit_test(certificates_are_checked),
        cmocka_unit_test(sni_is_checked),
        cmocka_unit_test(matching_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
