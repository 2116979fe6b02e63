/* Which proxy the environment or the option gives a target, and what a proxied target resolves to.
 *
 * test_environment sets variables of the process's environment, and unsets all of them before and after.
 * test_resolution passes the proxy as the option, so that the environment does not count; the proxy is an IP address,
 * so nothing is looked up. expect_proxy and expect_resolved make and free a target and a class each; expect_resolved
 * also a resolver, and a real loop, which it turns. One thread. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/addr.h"
#include "resolver/builtin.h"
#include "resolver/proxy.h"
#include "support/cmocka.h"

/* Asserts what a proxy's URL gives: host and port, and the value of Proxy-Authorization ("": none). */
static void expect_url(const char *url, const char *host_port, const char *authorization)
{
    struct tc_buf h = {0}, a = {0};
    assert_int_equal(tc_proxy_url_parse(url, &h, &a), 0);
    assert_string_equal(tc_buf_cstr(&h), host_port);
    assert_string_equal(tc_buf_cstr(&a), authorization);
    tc_buf_fini(&h);
    tc_buf_fini(&a);
}

static void test_urls(void **state)
{
    (void)state;
    expect_url("http://proxy.test:3128", "proxy.test:3128", "");
    expect_url("HTTP://proxy.test/", "proxy.test", "");
    expect_url("proxy.test:3128", "proxy.test:3128", "");
    expect_url("http://[::1]:3128/x?y#z", "[::1]:3128", "");
    expect_url("http://user:pass@proxy.test:3128", "proxy.test:3128", "Basic dXNlcjpwYXNz");
    expect_url("http://a%40b:p%3Aq@proxy.test", "proxy.test", "Basic YUBiOnA6cQ==");
    expect_url("http://user@proxy.test", "proxy.test", "Basic dXNlcg==");
    expect_url("http://@proxy.test", "proxy.test", "");
    static const char *const bad[] = {"",
                                      "http://",
                                      "https://proxy.test:3128",
                                      "socks5://p:1",
                                      "http://:80",
                                      "http://u:p@",
                                      "http://a b",
                                      "http://p\r\nX: y",
                                      "http:///x",
                                      "http://%zz@p:80",
                                      "ftp://p"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_buf h = {0}, a = {0};
        if (tc_proxy_url_parse(bad[i], &h, &a) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
        tc_buf_fini(&h);
        tc_buf_fini(&a);
    }
}

static bool exempt(const char *list, const char *host)
{
    return tc_proxy_exempt(tc_slice_str(list), tc_slice_str(host));
}

static void test_exemptions(void **state)
{
    (void)state;
    assert_false(exempt("", "a.test"));
    assert_true(exempt("a.test", "a.test"));
    assert_true(exempt("other, .TEST ", "a.test"));
    assert_true(exempt("*", "a.test"));
    assert_false(exempt(",,", "a.test"));
    assert_false(exempt("a.test.", "a.test"));
    assert_true(exempt("10.0.0.0/8", "10.1.2.3"));
    assert_true(exempt("10.128.0.0/9", "10.129.0.1"));
    assert_false(exempt("10.128.0.0/9", "10.127.0.1"));
    assert_true(exempt("0.0.0.0/0", "10.127.0.1"));
    assert_false(exempt("0.0.0.0/0", "::1"));
    assert_false(exempt("10.0.0.0/33", "10.0.0.1"));
    assert_false(exempt("10.0.0.0/", "10.0.0.1"));
    assert_true(exempt("fd00::/8", "fd12::1"));
    assert_true(exempt("fd12::1", "fd12:0:0::1"));
    assert_false(exempt("fd00::/8", "fe80::1"));
    assert_false(exempt("10.0.0.0/8", "a10.test"));
}

/* Unsets the variables that name proxies or exempt hosts. */
static void clean(void)
{
    static const char *const names[] = {"grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy"};
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

static bool known(void *arg, struct tc_slice scheme)
{
    (void)arg;
    (void)scheme;
    return true;
}

/* Asserts which proxy a target has; "" is none. `option` is the channel's; NULL: the environment decides. */
static void expect_proxy(const char *text, const char *option, const char *wanted)
{
    struct tc_target t;
    struct tc_proxy_class p = {.inner = NULL};
    assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), 0);
    bool proxied = tc_proxy_class_init(&p, &t, &tc_resolver_dns, option);
    if (strcmp(proxied ? p.proxy.path : "", wanted) != 0)
        fail_msg("%s by \"%s\", not \"%s\"", text, proxied ? p.proxy.path : "", wanted);
    tc_proxy_class_fini(&p);
    tc_target_fini(&t);
}

static void test_environment(void **state)
{
    (void)state;
    clean();
    expect_proxy("dns:///a.test:1", NULL, "");
    setenv("http_proxy", "http://three:3", 1);
    expect_proxy("dns:///a.test:1", NULL, "three:3");
    expect_proxy("dns:///a.test", NULL, "three:3");
    setenv("https_proxy", "http://two:2", 1);
    expect_proxy("dns:///a.test:1", NULL, "two:2");
    setenv("grpc_proxy", "http://one:1", 1);
    expect_proxy("dns:///a.test:1", NULL, "one:1");
    expect_proxy("ipv4:10.0.0.1:80", NULL, "one:1");
    expect_proxy("ipv6:[fd00::1]:80", NULL, "one:1");
    /* Targets of other schemes, of several addresses, and of this machine have no proxy. */
    expect_proxy("unix:/tmp/x", NULL, "");
    expect_proxy("xds:///a.test", NULL, "");
    expect_proxy("ipv4:10.0.0.1:80,10.0.0.2:80", NULL, "");
    expect_proxy("dns:///localhost:80", NULL, "");
    expect_proxy("dns:///127.0.0.1:80", NULL, "");
    expect_proxy("ipv4:127.9.9.9:80", NULL, "");
    expect_proxy("ipv6:[::1]:80", NULL, "");
    /* The option overrides the environment, and has no exemptions. */
    expect_proxy("dns:///a.test:1", "http://mine:9", "mine:9");
    expect_proxy("dns:///127.0.0.1:80", "http://mine:9", "mine:9");
    expect_proxy("dns:///a.test:1", "", "");
    setenv("no_proxy", "a.test,10.0.0.0/24", 1);
    expect_proxy("dns:///a.test:1", NULL, "");
    expect_proxy("dns:///b.test:1", NULL, "one:1");
    expect_proxy("ipv4:10.0.0.1:80", NULL, "");
    expect_proxy("ipv4:10.0.1.1:80", NULL, "one:1");
    setenv("no_grpc_proxy", "b.test", 1);
    expect_proxy("dns:///a.test:1", NULL, "one:1");
    expect_proxy("dns:///b.test:1", NULL, "");
    /* An empty or malformed variable means no proxy, and hides the variables after it. */
    setenv("grpc_proxy", "", 1);
    expect_proxy("dns:///a.test:1", NULL, "");
    setenv("grpc_proxy", "https://one:1", 1);
    expect_proxy("dns:///a.test:1", NULL, "");
    setenv("grpc_proxy", "http://one:port", 1);
    expect_proxy("dns:///a.test:1", NULL, "");
    clean();
}

/* Set by on_result: the number of results; and of the last result its address, the target that the proxy is asked for,
 * and the value of Proxy-Authorization. */
struct seen {
    int results;
    char target[64], authorization[64], addr[64];
};

static bool on_result(void *arg, struct tc_resolver_result *r)
{
    struct seen *s = arg;
    s->results++;
    assert_non_null(r->endpoints);
    assert_int_equal(r->endpoints->n, 1);
    const struct tc_addr *a = &r->endpoints->at[0]->addrs[0];
    char *text = tc_addr_text(a);
    snprintf(s->addr, sizeof(s->addr), "%s", text);
    tc_free(text);
    assert_int_equal(a->proxy_hop->proxy.len, 0);
    snprintf(s->target, sizeof(s->target), "%s", tc_rstr_cstr(a->proxy_hop->target));
    snprintf(s->authorization, sizeof(s->authorization), "%s", tc_rstr_cstr(a->proxy_hop->authorization));
    tc_resolver_result_fini(r);
    return true;
}

/* Resolves the target `text` with the proxy `url`, which must name 127.0.0.1:3128. Asserts that the result is this
 * address, and that the proxy is asked for `target` with this authorization ("": none). Asserts as well that the
 * channel's authority stays that of the target, unless `target` is percent-encoded. */
static void expect_resolved(const char *text, const char *url, const char *target, const char *authorization)
{
    struct tc_loop *loop = tc_loop_new(NULL);
    struct seen seen = {0};
    struct tc_resolver_env env = {.loop = loop, .backoff = tc_backoff_default, .on_result = on_result, .arg = &seen};
    struct tc_target t;
    struct tc_proxy_class p = {.inner = NULL};
    struct tc_buf authority = {0};
    assert_int_equal(tc_target_parse(&t, text, known, NULL, NULL), 0);
    assert_true(tc_proxy_class_init(&p, &t, &tc_resolver_dns, url));
    assert_true(p.base.authority(&p.base, &t, &authority, NULL));
    if (!strchr(target, '%'))
        assert_string_equal(tc_buf_cstr(&authority), t.path);
    struct tc_resolver *r = p.base.create(&p.base, &t, &env);
    r->ops->start(r);
    while (seen.results == 0)
        tc_loop_turn(loop, 1000);
    assert_string_equal(seen.addr, "127.0.0.1:3128");
    assert_string_equal(seen.target, target);
    assert_string_equal(seen.authorization, authorization);
    r->ops->request_reresolution(r);
    r->ops->reset_backoff(r);
    r->ops->shutdown(r);
    tc_buf_fini(&authority);
    tc_proxy_class_fini(&p);
    tc_target_fini(&t);
    tc_loop_free(loop);
}

static void test_resolution(void **state)
{
    (void)state;
    /* Only the proxy resolves the target's name. */
    expect_resolved("dns:///backend.invalid:50051", "http://127.0.0.1:3128", "backend.invalid:50051", "");
    expect_resolved("dns:///backend.invalid", "http://u:p@127.0.0.1:3128", "backend.invalid:443", "Basic dTpw");
    expect_resolved("dns:///[fd00::1]", "http://127.0.0.1:3128", "[fd00::1]:443", "");
    expect_resolved("dns:///[fd00::1]:80", "http://127.0.0.1:3128", "[fd00::1]:80", "");
    expect_resolved("dns:///fd00::1", "http://127.0.0.1:3128", "[fd00::1]:443", "");
    /* A target cannot add lines to the request. */
    expect_resolved("dns:///a%0D%0AContent-Length:5", "http://127.0.0.1:3128", "a%0D%0AContent-Length:5", "");
    expect_resolved("dns:///a%20b%0D%0A", "http://127.0.0.1:3128", "a%20b%0D%0A:443", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_exemptions),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_resolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
