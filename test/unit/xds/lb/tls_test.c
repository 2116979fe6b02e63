/* The credentials of a cluster: providers of the bootstrap, when two clusters share connections, SNI.
 *
 * setup makes a pool, in whose list certificate providers are shared, and a bootstrap, which has nothing but the
 * instances in `providers`; teardown asserts that the list is empty, and frees both. providers_are_checked has
 * bootstraps of its own instead. The certificate files do not exist, and nobody reads them: no connection is made.
 * Clusters are decoded from JSON. sni_is_chosen sets and unsets an environment variable. Everything runs on the test's
 * thread. */
#include "xds/lb/tls.h"

#include <stdlib.h>

#include "base/mem.h"
#include "subchannel/endpoint_security.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"
#include "xds/domain/cert_providers.h"

#define FILE_WATCHER(config) "{\"plugin_name\":\"file_watcher\",\"config\":{" config "}}"

static struct tc_xds_bootstrap *bootstrap_of(const char *providers)
{
    struct tc_xds_bootstrap *b = TC_NEW(struct tc_xds_bootstrap);
    tc_ref_init(&b->ref);
    b->certificate_providers = json_loads(providers, 0, NULL);
    assert_non_null(b->certificate_providers);
    return b;
}

/* Checks a bootstrap with these certificate_providers. text: what the errors contain; "": there are none. */
static void expect_errors(const char *providers, const char *text)
{
    struct tc_xds_bootstrap *b = bootstrap_of(providers);
    struct tc_validation_errors errors = {0};
    tc_cert_providers_check(b, &errors);
    if (*text ? !strstr(tc_validation_text(&errors), text) : tc_validation_any(&errors))
        fail_msg("%s: %s", providers, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    tc_xds_bootstrap_unref(b);
}

static void providers_are_checked(void **state)
{
    (void)state;
    expect_errors("{}", "");
    expect_errors("{\"a\":{\"plugin_name\":\"other\",\"config\":7}}", "");
    expect_errors("{\"a\":" FILE_WATCHER("\"ca_certificate_file\":\"/x\"") "}", "");
    expect_errors("{\"a\":" FILE_WATCHER("\"certificate_file\":\"/x\",\"private_key_file\":\"/y\"") "}", "");
    expect_errors("{\"a\":" FILE_WATCHER("\"spiffe_trust_bundle_map_file\":\"/x\"") "}", "");
    expect_errors("{\"a\":7}", "certificate_providers[\"a\"]: must be an object");
    expect_errors("{\"a\":{}}", "certificate_providers[\"a\"].plugin_name: field not present");
    expect_errors("{\"a\":{\"plugin_name\":\"file_watcher\"}}", "[\"a\"].config: field not present");
    expect_errors("{\"a\":" FILE_WATCHER("") "}", "[\"a\"].config: at least one of certificate_file");
    expect_errors("{\"a\":" FILE_WATCHER("\"certificate_file\":\"/x\"") "}", "must both be set");
    expect_errors("{\"a\":" FILE_WATCHER("\"ca_certificate_file\":\"/x\",\"refresh_interval\":\"soon\"") "}",
                  "config.refresh_interval: \"soon\" is not a duration");
    expect_errors("{\"a\":" FILE_WATCHER("\"ca_certificate_file\":7") "}", "config.ca_certificate_file");
}

#define ROOTS(path) "\"ca_certificate_file\":\"" path "\""
#define IDENTITY "\"certificate_file\":\"/cert\",\"private_key_file\":\"/key\""
#define BOTH FILE_WATCHER(ROOTS("/ca") "," IDENTITY)

static const char providers[] = "{\"mesh\":" BOTH ",\"same\":" BOTH ",\"roots\":" FILE_WATCHER(ROOTS("/roots")) //
    ",\"identity\":" FILE_WATCHER(IDENTITY) ",\"odd\":{\"plugin_name\":\"odd\",\"config\":{}}}";

struct world {
    struct tc_xds_client_pool *pool;
    struct tc_xds_bootstrap *bootstrap;
};

static int setup(void **state)
{
    struct world *w = TC_NEW(struct world);
    w->pool = tc_xds_client_pool_new(NULL);
    w->bootstrap = bootstrap_of(providers);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    assert_true(tc_list_empty(tc_xds_client_pool_cert_providers(w->pool)));
    tc_xds_client_pool_free(w->pool);
    tc_xds_bootstrap_unref(w->bootstrap);
    tc_free(w);
    return 0;
}

static size_t count_providers(struct world *w)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, tc_xds_client_pool_cert_providers(w->pool)) n++;
    return n;
}

/* Instances with the same files share a provider, whatever their names. */
static void providers_are_shared(void **state)
{
    struct world *w = *state;
    char *why = NULL;
    struct tc_cert_provider *a =
        tc_cert_provider_get(tc_xds_client_pool_cert_providers(w->pool), w->bootstrap, "mesh", &why);
    struct tc_cert_provider *b =
        tc_cert_provider_get(tc_xds_client_pool_cert_providers(w->pool), w->bootstrap, "same", &why);
    struct tc_cert_provider *c =
        tc_cert_provider_get(tc_xds_client_pool_cert_providers(w->pool), w->bootstrap, "roots", &why);
    assert_non_null(a);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_int_equal(count_providers(w), 2);
    tc_cert_provider_unref(a);
    tc_cert_provider_unref(c);
    assert_int_equal(count_providers(w), 1);
    tc_cert_provider_unref(b);
    static const char *const bad[][2] = {
        {"none", "certificate provider instance \"none\" is not in the xDS bootstrap"},
        {"odd", "certificate provider instance \"odd\": plugin \"odd\" is not supported"}};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        assert_null(tc_cert_provider_get(tc_xds_client_pool_cert_providers(w->pool), w->bootstrap, bad[i][0], &why));
        assert_string_equal(why, bad[i][1]);
        tc_free(why);
    }
}

#define VALIDATION(instance, more)                                                                                     \
    "'common_tls_context':{'validation_context':{'ca_certificate_provider_instance':{'instance_name':'" instance       \
    "'}" more "}}"

/* Returns the TLS of a cluster "c", for tc_cluster_tls_free, or NULL with *why. tls: members of its
 * UpstreamTlsContext. */
static struct tc_cluster_tls *tls_of(struct world *w, const char *tls, struct tc_status *why)
{
    const struct tc_xds_decode_context ctx = {.bootstrap = w->bootstrap};
    char *json =
        tc_asprintf("{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'ads':{}}},'transport_socket':"
                    "{'typed_config':{'@type':'type.googleapis.com/"
                    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',%s}}}",
                    tls);
    struct tc_xds_resource *r = kit_resource_valid(&tc_cluster_type, &ctx, json);
    struct tc_cluster_tls *t = tc_cluster_tls_new(w->pool, w->bootstrap, tc_cluster_of(r), why);
    tc_xds_resource_unref(r);
    tc_free(json);
    return t;
}

static void expect_alike(struct world *w, const char *one, const char *two, bool alike)
{
    struct tc_cluster_tls *a = tls_of(w, one, NULL), *b = tls_of(w, two, NULL);
    assert_true(a && b);
    if (tc_cluster_tls_eq(a, b) != alike)
        fail_msg("%s and %s", one, two);
    tc_cluster_tls_free(a);
    tc_cluster_tls_free(b);
}

static void equal_security_is_known(void **state)
{
    struct world *w = *state;
    expect_alike(w, VALIDATION("mesh", ""), VALIDATION("mesh", ""), true);
    expect_alike(w, VALIDATION("mesh", ""), VALIDATION("same", ""), true);
    expect_alike(w, VALIDATION("mesh", ""), VALIDATION("roots", ""), false);
    expect_alike(w, VALIDATION("mesh", ""),
                 "'common_tls_context':{'tls_certificate_provider_instance':{'instance_name':'mesh'},"
                 "'validation_context':{'ca_certificate_provider_instance':{'instance_name':'mesh'}}}",
                 false);
    expect_alike(w, VALIDATION("mesh", ""), "'common_tls_context':{'validation_context':{'system_root_certs':{}}}",
                 false);
    expect_alike(w, VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'a'}]"),
                 VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'a'}]"), true);
    expect_alike(w, VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'a'}]"),
                 VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'b'}]"), false);
    expect_alike(w, VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'a'}]"),
                 VALIDATION("mesh", ",'match_subject_alt_names':[{'prefix':'a'}]"), false);
    expect_alike(w, VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'a'},{'exact':'b'}]"),
                 VALIDATION("mesh", ",'match_subject_alt_names':[{'exact':'ab'}]"), false);
    expect_alike(w, VALIDATION("mesh", ""), VALIDATION("mesh", "") ",'sni':'a.test'", false);
    expect_alike(w, VALIDATION("mesh", ""), VALIDATION("mesh", "") ",'auto_host_sni':true", false);
    expect_alike(w, VALIDATION("mesh", ""), VALIDATION("mesh", "") ",'auto_sni_san_validation':true", false);
    assert_true(tc_cluster_tls_eq(NULL, NULL));
}

static void providers_must_have_what_is_asked_of_them(void **state)
{
    struct world *w = *state;
    struct tc_status why = {0};
    assert_null(tls_of(w, VALIDATION("identity", ""), &why));
    assert_int_equal(why.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&why),
                        "cluster \"c\": TLS: certificate provider instance \"identity\" has no ca_certificate_file");
    tc_status_fini(&why);
    assert_null(tls_of(w,
                       "'common_tls_context':{'tls_certificate_provider_instance':{'instance_name':'roots'},"
                       "'validation_context':{'ca_certificate_provider_instance':{'instance_name':'roots'}}}",
                       &why));
    assert_string_equal(tc_status_text(&why),
                        "cluster \"c\": TLS: certificate provider instance \"roots\" has no certificate_file");
    tc_status_fini(&why);
}

/* Asserts that the endpoint gets this SNI (A101; empty: none). more: further members of the UpstreamTlsContext. */
static void expect_sni(struct world *w, const char *more, const char *hostname, const char *authority, const char *sni)
{
    char *tls = tc_asprintf(VALIDATION("mesh", "") "%s", more);
    struct tc_cluster_tls *t = tls_of(w, tls, NULL);
    struct tc_addr addr;
    assert_int_equal(tc_addr_parse(&addr, tc_slice_str("10.0.0.1:80")), 0);
    struct tc_endpoint *e = tc_endpoint_new(&addr, 1);
    e->hostname = hostname ? tc_rstr_str(hostname) : NULL;
    e->weight = 7;
    struct tc_endpoint *out = tc_cluster_tls_endpoint(t, e, tc_slice_str(authority));
    assert_string_equal(tc_security_of(out)->server_name->data, sni);
    assert_string_equal(tc_security_of(out)->creds->scheme, "https");
    assert_true(tc_endpoint_same_addrs(out, e));
    assert_int_equal(out->weight, 7);
    tc_cluster_tls_free(t); /* `out` holds the credentials */
    tc_endpoint_unref(out);
    tc_endpoint_unref(e);
    tc_addr_fini(&addr);
    tc_free(tls);
}

static void sni_is_chosen(void **state)
{
    struct world *w = *state;
    expect_sni(w, "", "b.test", "svc", "");
    expect_sni(w, ",'sni':'a.test'", "b.test", "svc", "a.test");
    expect_sni(w, ",'sni':'a.test','auto_host_sni':true", "b.test", "svc", "b.test");
    expect_sni(w, ",'auto_host_sni':true", "b.test:443", "svc", "b.test");
    expect_sni(w, ",'sni':'a.test','auto_host_sni':true", NULL, "svc", "a.test");
    expect_sni(w, ",'sni':'a.test','auto_host_sni':true", "10.0.0.1", "svc", "a.test");
    expect_sni(w, ",'auto_host_sni':true", "[::1]:443", "svc", "");
    expect_sni(w, ",'auto_host_sni':true", NULL, "svc", "");
    setenv("GRPC_USE_CHANNEL_AUTHORITY_IF_NO_SNI_APPLICABLE", "true", 1);
    expect_sni(w, "", "b.test", "svc:1", "svc");
    expect_sni(w, ",'sni':'a.test'", "b.test", "svc", "a.test");
    expect_sni(w, ",'auto_sni_san_validation':true", "b.test", "svc", "");
    unsetenv("GRPC_USE_CHANNEL_AUTHORITY_IF_NO_SNI_APPLICABLE");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(providers_are_checked),         TEST(providers_are_shared), TEST(equal_security_is_known),
        TEST(providers_must_have_what_is_asked_of_them), TEST(sni_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
