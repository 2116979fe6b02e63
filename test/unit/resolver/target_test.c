/* Parsing target URIs, the resolvers' default authorities and errors, resolvers of literals, and the registry.
 *
 * A target's scheme counts as known if the registry has it, or if it is "xds", which api/builtin.c would register.
 * Every function that parses a target frees it. A class that a test registers stays in the registry of the process. One
 * thread; only test_literals has a loop, a manual one. */
#include <string.h>

#include "base/mem.h"
#include "resolver/resolver.h"
#include "support/cmocka.h"

static bool known(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_slice_eq_str(scheme, "xds") || tc_resolver_find(scheme) != NULL;
}

/* Asserts that a target is parsed into these parts. */
static void expect(const char *text, const char *scheme, const char *authority, const char *path)
{
    struct tc_target t;
    assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), 0);
    assert_string_equal(t.text, text);
    assert_string_equal(t.scheme, scheme);
    assert_string_equal(t.authority, authority);
    assert_string_equal(t.path, path);
    tc_target_fini(&t);
}

/* Asserts that `rest` is what follows the scheme and its colon, or the whole of a bare target; NULL: that the target is
 * malformed. */
static void expect_rest(const char *text, const char *rest)
{
    struct tc_target t;
    assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), rest ? 0 : TORC_EINVAL);
    if (!rest)
        return;
    assert_string_equal(t.text + t.rest_at, rest);
    tc_target_fini(&t);
}

static void test_forms(void **state)
{
    (void)state;
    expect("xds:///orders", "xds", "", "orders");
    expect("xds:orders", "xds", "", "orders");
    expect("xds://auth.test/a/b%20c", "xds", "auth.test", "a/b c");
    expect("XDS:///orders", "xds", "", "orders");
    expect("dns:///localhost:80", "dns", "", "localhost:80");
    expect("dns://8.8.8.8/host", "dns", "8.8.8.8", "host");
    expect("dns:host:80", "dns", "", "host:80");
    expect("localhost:50051", "dns", "", "localhost:50051");
    expect("127.0.0.1:80", "dns", "", "127.0.0.1:80");
    expect("[::1]:80", "dns", "", "[::1]:80");
    expect("host", "dns", "", "host");
    expect("ipv4:1.2.3.4:5,6.7.8.9:10", "ipv4", "", "1.2.3.4:5,6.7.8.9:10");
    expect("unix:rel/path", "unix", "", "rel/path");
    expect("unix:///abs/path", "unix", "", "abs/path");
    expect("unix-abstract:name", "unix-abstract", "", "name");
    expect("nobody:///knows", "dns", "", "nobody:///knows");
    expect_rest("xds://auth.test/a/b%20c", "//auth.test/a/b%20c");
    expect_rest("XDS:orders", "orders");
    expect_rest("localhost:50051", "localhost:50051");
    expect_rest("nobody:///knows", "nobody:///knows");
    expect_rest("dns:", NULL);
    expect_rest("dns:443", "443");
}

static void test_malformed(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "xds:", "xds:///", "dns:///%zz", "xds://only-authority", "dns:///a%00b"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_target t;
        char *why = NULL;
        assert_int_equal(tc_target_parse(&t, bad[i], known, NULL, &why), TORC_EINVAL);
        assert_non_null(strstr(why, bad[i]));
        if (strchr(bad[i], '%'))
            assert_non_null(strstr(why, "a percent-encoding in it is malformed or stands for a NUL"));
        tc_free(why);
    }
}

/* An error about a long target shows only the beginning of the target, and the reason. */
static void test_long(void **state)
{
    (void)state;
    static const char *const starts[] = {"ipv4:", "ipv6:", "unix:/", "foo:", "ipv4://", "unix://"};
    char text[10001];
    for (size_t i = 0; i < TC_ARRAY_LEN(starts); i++) {
        struct tc_target t;
        struct tc_buf out = {0};
        char *why = NULL;
        memset(text, 'a', sizeof(text) - 1);
        memcpy(text, starts[i], strlen(starts[i]));
        text[sizeof(text) - 3] = '/';
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), 0);
        const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str(t.scheme));
        assert_false(cls->authority(cls, &t, &out, &why));
        assert_memory_equal(why + strlen("target \""), starts[i], strlen(starts[i]));
        assert_non_null(strstr(why, "aaa...\": "));
        assert_in_range(strlen(why), 256, 700);
        tc_free(why);
        tc_buf_fini(&out);
        tc_target_fini(&t);
        text[sizeof(text) - 2] = '%';
        assert_int_equal(tc_target_parse(&t, text, known, NULL, &why), TORC_EINVAL);
        assert_in_range(strlen(why), 256, 700);
        tc_free(why);
    }
}

/* Returns the default authority of a target (tc_free), or NULL if its resolver refuses the target. Asserts that the
 * error then contains the target. */
static char *authority_of(const char *text)
{
    struct tc_target t;
    struct tc_buf out = {0};
    char *why = NULL;
    assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), 0);
    const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str(t.scheme));
    bool ok = cls->authority(cls, &t, &out, &why);
    assert_true(ok == (why == NULL));
    if (why)
        assert_non_null(strstr(why, text));
    tc_free(why);
    tc_target_fini(&t);
    return ok ? tc_buf_take(&out) : (tc_buf_fini(&out), NULL);
}

/* Asserts that the target is parsed, and that its resolver refuses it with an error that contains `reason`. */
static void expect_refused(const char *text, const char *reason)
{
    struct tc_target t;
    struct tc_buf out = {0};
    char *why = NULL;
    assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), 0);
    const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str(t.scheme));
    assert_false(cls->authority(cls, &t, &out, &why));
    assert_non_null(strstr(why, reason));
    tc_free(why);
    tc_buf_fini(&out);
    tc_target_fini(&t);
}

static void test_bad_ports_are_named(void **state)
{
    (void)state;
    expect_refused("dns:///foo:99999", "\"dns:///foo:99999\": the port \"99999\" is not a number from 0 to 65535");
    expect_refused("dns:///foo:abc", "the port \"abc\" is not");
    expect_refused("dns:///foo:-1", "the port \"-1\" is not");
    expect_refused("127.0.0.1:99999", "the port \"99999\" is not");
    expect_refused("foo:70000", "the port \"70000\" is not");
    expect_refused("[::1]:x", "the port \"x\" is not");
    /* A target without a host, or one that may be meant as scheme and path: the error does not name a port. */
    expect_refused("foo:abc", "neither host:port nor of a known scheme (");
    expect_refused("http://x", "neither host:port nor of a known scheme (");
    expect_refused(":80", "neither host:port nor of a known scheme (");
}

static void test_bad_addresses_are_named(void **state)
{
    (void)state;
    expect_refused("ipv4:1.2.3.4:5, host:80",
                   "\": \"host:80\" is not an IPv4 address; a port may follow: 192.0.2.1:443");
    expect_refused("ipv4:[::1]", "\"[::1]\" is not an IPv4 address; a port may follow: ");
    expect_refused("ipv6:1.2.3.4", "\"1.2.3.4\" is not an IPv6 address; a port may follow: [2001:db8::1]:443");
    expect_refused("ipv6:[::1", "\"[::1\" is not an IPv6 address; a port may follow: ");
    expect_refused("ipv4:1.2.3.4:99999", "1.2.3.4:99999\": the port \"99999\" is not a number from 0 to 65535");
    expect_refused("ipv4:1.2.3.4:", "1.2.3.4:\": the port \"\" is not a number from 0 to 65535");
    expect_refused("ipv6:[::1]:http", "[::1]:http\": the port \"http\" is not a number from 0 to 65535");
}

static void test_authorities(void **state)
{
    (void)state;
    static const struct {
        const char *target, *authority;
    } cases[] = {
        {"ipv4:1.2.3.4:5,6.7.8.9:10", "1.2.3.4:5"},
        {"ipv4:1.2.3.4", "1.2.3.4:443"},
        {"ipv6:[::1]:80", "[::1]:80"},
        {"ipv6:[::1]", "[::1]:443"},
        {"unix:a/b", "localhost"},
        {"unix-abstract:x", "localhost"},
        {"vsock:2:1024", "localhost"},
        {"vsock:2:4294967294", "localhost"},
        {"vsock:4294967295:1", NULL},
        {"vsock:2", NULL},
        {"vsock://a/2:3", NULL},
        {"fd:1000000", NULL},
        {"dns:///host:80", "host:80"},
        {"host", "host"},
        {"[::1]:80", "[::1]:80"},
        {"ipv4:host:80", NULL},
        {"ipv4:[::1]:80", NULL},
        {"ipv4:1.2.3.4:99999", NULL},
        {"ipv4://auth/1.2.3.4:5", NULL},
        {"ipv6:1.2.3.4:80", NULL},
        {"unix://auth/path", NULL},
        {"dns:///host:port", NULL},
        {"dns:///:80", NULL},
        {"dns:///[::1", NULL},
        {"nobody:///knows", NULL},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        char *got = authority_of(cases[i].target);
        if (cases[i].authority)
            assert_string_equal(got, cases[i].authority);
        else
            assert_null(got);
        tc_free(got);
    }
}

/* Set by on_result. */
struct seen {
    size_t results, n; /* n: the endpoints of the last result */
    char *first;       /* the address of the last result's first endpoint (tc_free) */
};

static bool on_result(void *arg, struct tc_resolver_result *r)
{
    struct seen *seen = arg;
    seen->results++;
    seen->n = r->endpoints->n;
    tc_free(seen->first);
    seen->first = tc_addr_text(&r->endpoints->at[0]->addrs[0]);
    tc_resolver_result_fini(r);
    return true;
}

static void test_literals(void **state)
{
    (void)state;
    static const struct {
        const char *target, *first;
        size_t n;
    } cases[] = {
        {"ipv4:1.2.3.4:5,6.7.8.9:10", "1.2.3.4:5", 2},
        {"ipv6:[::1]:80", "[::1]:80", 1},
        {"unix:///tmp/s", "unix:/tmp/s", 1},
        {"unix:rel", "unix:rel", 1},
        {"unix-abstract:n", "unix-abstract:n", 1},
        {"vsock:2:01024", "vsock:2:1024", 1},
        {"fd:3", "fd:3", 1},
    };
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        struct seen seen = {0};
        struct tc_resolver_env env = {.loop = loop, .on_result = on_result, .arg = &seen};
        struct tc_target t;
        assert_int_equal(tc_target_parse(&t, cases[i].target, known, NULL, NULL), 0);
        const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str(t.scheme));
        struct tc_resolver *r = cls->create(cls, &t, &env);
        r->ops->start(r);
        assert_int_equal(seen.results, 0); /* a result comes in a turn of the loop */
        tc_loop_drain(loop);
        assert_int_equal(seen.results, 1);
        assert_int_equal(seen.n, cases[i].n);
        assert_string_equal(seen.first, cases[i].first);
        r->ops->request_reresolution(r);
        tc_loop_drain(loop);
        r->ops->shutdown(r);
        assert_int_equal(seen.results, 1);
        tc_free(seen.first);
        tc_target_fini(&t);
    }
    tc_loop_free(loop);
}

static void test_registry(void **state)
{
    (void)state;
    static const struct tc_resolver_class mine = {.scheme = "mine"};
    static const struct tc_resolver_class dns = {.scheme = "dns"};
    assert_null(tc_resolver_find(tc_slice_str("mine")));
    assert_int_equal(tc_resolver_register(&mine), 0);
    assert_int_equal(tc_resolver_register(&mine), TORC_EEXIST);
    assert_int_equal(tc_resolver_register(&dns), TORC_EEXIST);
    assert_ptr_equal(tc_resolver_find(tc_slice_str("mine")), &mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),       cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_authorities), cmocka_unit_test(test_literals),
        cmocka_unit_test(test_registry),    cmocka_unit_test(test_bad_ports_are_named),
        cmocka_unit_test(test_long),        cmocka_unit_test(test_bad_addresses_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
