/* Sharing of xDS clients among the targets of a runtime: which targets share a client, and what a listing of the
 * clients shows.
 *
 * Each test has a runtime whose loop the caller turns, and a pool that the runtime does not know; tear_down frees both.
 * No test turns the loop, and nothing connects: the servers of the bootstraps need not exist. `get` returns a
 * reference, and each test releases its references. */
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"

#include "base/mem.h"
#include "runtime/runtime.h"
#include "xds/domain/client_pool.h"

#define SERVER(uri) "{\"server_uri\": \"" uri "\", \"channel_creds\": [{\"type\": \"insecure\"}]}"
#define NODE "\"node\": {\"id\": \"n\"}"

static const char one_server[] = "{\"xds_servers\": [" SERVER("127.0.0.1:1") "], " NODE "}";
static const char no_credentials[] = "{\"xds_servers\": [{\"server_uri\": \"127.0.0.1:1\"}], " NODE "}";
static const char two_servers[] = "{\"xds_servers\": [" SERVER("127.0.0.1:1") "," SERVER("127.0.0.1:2") "], " NODE "}";
static const char one_alone[] =
    "{\"xds_servers\": [" SERVER("127.0.0.1:1") "], \"torc.share_client\": false, " NODE "}";
static const char two_shared[] =
    "{\"xds_servers\": [" SERVER("127.0.0.1:1") "," SERVER("127.0.0.1:2") "], "
                                                                          "\"torc.share_client\": true, " NODE "}";
static const char mixed[] = "{\"xds_servers\": [" SERVER("127.0.0.1:1") "," SERVER(
    "127.0.0.1:2") "], \"authorities\": {\"x\": "
                   "{\"xds_servers\": [" SERVER("127.0.0.1:3") "]}}, " NODE "}";

static torc_runtime *rt;
static struct tc_xds_client_pool *d;
static struct tc_resolver_env env; /* of the next `get`, which sets xds_bootstrap_json */

static int set_up(void **state)
{
    (void)state;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    d = tc_xds_client_pool_new(rt);
    env = (struct tc_resolver_env){
        .loop = tc_runtime_loop(rt), .runtime = rt, .xds_resource_timeout_ms = 15000, .backoff = tc_backoff_default};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tc_xds_client_pool_free(d);
    torc_runtime_free(rt);
    return 0;
}

/* Returns the target's client, a reference. Fails the test if there is an error. */
static struct tc_pool_client *get(const char *bootstrap, const char *target)
{
    struct tc_status error = {0};
    env.xds_bootstrap_json = bootstrap;
    struct tc_pool_client *c = tc_pool_client_get(d, &env, tc_slice_str(target), &error);
    if (!c)
        fail_msg("%s", tc_status_text(&error));
    return c;
}

/* Appends "[scope]" to arg, a struct tc_buf. */
static void scopes(void *arg, const struct tc_xds_client *client, struct tc_slice scope)
{
    (void)client;
    tc_buf_printf(arg, "[%.*s]", (int)scope.len, scope.data ? scope.data : "");
}

static void assert_scopes(const char *wanted)
{
    struct tc_buf b = {0};
    tc_xds_client_pool_each(d, scopes, &b);
    assert_string_equal(tc_buf_cstr(&b), wanted);
    tc_buf_fini(&b);
}

static void by_the_number_of_servers(void **state)
{
    (void)state;
    static const struct {
        const char *bootstrap, *scopes;
        bool shared;
    } cases[] = {
        {one_server, "[xds:///a xds:///b]", true},
        {two_servers, "[xds:///a][xds:///b]", false},
        {one_alone, "[xds:///a][xds:///b]", false},
        {two_shared, "[xds:///a xds:///b]", true},
        {mixed, "[xds:///a xds:///b][xds:///a][xds:///b]", false},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        struct tc_pool_client *a = get(cases[i].bootstrap, "xds:///a"), *b = get(cases[i].bootstrap, "xds:///b");
        struct tc_pool_client *again = get(cases[i].bootstrap, "xds:///a");
        assert_ptr_equal(a, again);
        assert_ptr_not_equal(a, b);
        assert_int_equal(a->client == b->client, cases[i].shared);
        assert_scopes(cases[i].scopes);
        tc_pool_client_release(again);
        tc_pool_client_release(a);
        tc_pool_client_release(b);
        assert_scopes("");
    }
}

static void by_bootstrap_and_options(void **state)
{
    (void)state;
    struct tc_pool_client *a = get(one_server, "xds:///a"), *b = get(one_alone, "xds:///b");
    assert_ptr_not_equal(a->client, b->client);
    env.xds_resource_timeout_ms = 1;
    struct tc_pool_client *c = get(one_server, "xds:///c");
    assert_ptr_not_equal(a->client, c->client);
    tc_pool_client_release(a);
    tc_pool_client_release(b);
    tc_pool_client_release(c);
}

/* The channel's credentials count only if a server of the bootstrap has none of its own. */
static void by_credentials(void **state)
{
    (void)state;
    torc_error *error = NULL;
    torc_credentials *insecure = torc_credentials_insecure(), *tls = torc_credentials_tls(NULL, &error);
    const char *const bootstraps[] = {one_server, no_credentials};
    for (size_t i = 0; i < TC_ARRAY_LEN(bootstraps); i++) {
        env.credentials = insecure;
        struct tc_pool_client *a = get(bootstraps[i], "xds:///a");
        env.credentials = tls;
        struct tc_pool_client *b = get(bootstraps[i], "xds:///b");
        assert_int_equal(a->client == b->client, i == 0);
        tc_pool_client_release(a);
        tc_pool_client_release(b);
    }
    torc_credentials_unref(insecure);
    torc_credentials_unref(tls);
}

static void a_long_scope_is_cut(void **state)
{
    (void)state;
    enum { N = 100 };
    struct tc_pool_client *c[N];
    char target[201];
    memset(target, 'x', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    for (size_t i = 0; i < N; i++) {
        target[0] = (char)('0' + i / 10);
        target[1] = (char)('0' + i % 10);
        c[i] = get(one_server, target);
    }
    struct tc_buf b = {0};
    tc_xds_client_pool_each(d, scopes, &b);
    assert_in_range(b.len, TC_CLIENT_SCOPE_BYTES - 400, TC_CLIENT_SCOPE_BYTES + 10);
    assert_true(tc_slice_ends(tc_buf_slice(&b), tc_slice_str("xx ...]")));
    tc_buf_fini(&b);
    for (size_t i = 0; i < N; i++)
        tc_pool_client_release(c[i]);
}

/* Clients may be released after their pool is freed. */
static void pool_first(void **state)
{
    (void)state;
    struct tc_pool_client *a = get(one_server, "xds:///a"), *b = get(mixed, "xds:///b");
    tc_xds_client_pool_free(d);
    assert_null(a->pool);
    assert_null(b->pool);
    tc_pool_client_release(a);
    tc_pool_client_release(b);
    d = tc_xds_client_pool_new(rt);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(by_the_number_of_servers),
        TEST(by_bootstrap_and_options),
        TEST(by_credentials),
        TEST(a_long_scope_is_cut),
        TEST(pool_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
