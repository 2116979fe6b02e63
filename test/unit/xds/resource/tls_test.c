/* A Cluster's transport_socket: UpstreamTlsContext (A29, A82, A101), alone or in the socket of HTTP/1.1 proxies (A86),
 * and the errors of refused ones.
 *
 * Each test decodes Clusters from proto3 JSON, in which ' stands for " (kits/resource.h). The tests share the decode
 * context `ctx`, whose bootstrap has the certificate provider instances "p" and "q". `ctx` has no registries, so the
 * instances need no plugin. plugins_must_be_known has a context with registries, and gives "q" a plugin meanwhile. */
#include "xds/resource/cluster.h"
#include "xds/resource/registry.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "base/mem.h"

#define TYPE "type.googleapis.com/"
#define SOCKET(type, more)                                                                                             \
    "{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'ads':{}}},"                                         \
    "'transport_socket':{'typed_config':{'@type':'" TYPE type "'" more "}}}"
#define UPSTREAM "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
#define TLS(more) SOCKET(UPSTREAM, ",'common_tls_context':{" more "}")
#define VALIDATION(more) TLS("'validation_context':{'ca_certificate_provider_instance':{'instance_name':'p'}" more "}")

static struct tc_xds_bootstrap bootstrap;
static const struct tc_xds_decode_context ctx = {.bootstrap = &bootstrap};

static int setup(void **state)
{
    (void)state;
    bootstrap.certificate_providers = json_pack("{s:{},s:{}}", "p", "q");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(bootstrap.certificate_providers);
    return 0;
}

static void refused(const char *json, const char *fault)
{
    kit_resource_refused(&tc_cluster_type, &ctx, json, fault);
}

static void instances_are_read(void **state)
{
    (void)state;
    struct tc_xds_resource *r = kit_resource_valid(
        &tc_cluster_type, &ctx,
        TLS("'tls_certificate_provider_instance':{'instance_name':'q','certificate_name':'id'},'validation_context':{"
            "'ca_certificate_provider_instance':{'instance_name':'p','certificate_name':'ca'},"
            "'match_subject_alt_names':[{'exact':'a'},{'safe_regex':{'regex':'b+'}},{'suffix':'C','ignore_case':true}]"
            "}"));
    const struct tc_upstream_tls *tls = tc_cluster_of(r)->tls;
    assert_string_equal(tls->ca_instance->data, "p");
    assert_true(tc_slice_eq_str(tls->ca_cert_name, "ca"));
    assert_string_equal(tls->identity_instance->data, "q");
    assert_true(tc_slice_eq_str(tls->identity_cert_name, "id"));
    assert_false(tls->system_root_certs);
    assert_int_equal(tls->n_san_matchers, 3);
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    assert_true(tc_string_matcher_match(&tls->san_matchers[0], tc_slice_str("a"), &steps));
    assert_true(tc_string_matcher_match(&tls->san_matchers[1], tc_slice_str("bbb"), &steps));
    assert_true(tc_string_matcher_match(&tls->san_matchers[2], tc_slice_str("xc"), &steps));
    tc_xds_resource_unref(r);
    r = kit_resource_valid(&tc_cluster_type, &ctx, TLS("'validation_context':{'system_root_certs':{}}"));
    assert_true(tc_cluster_of(r)->tls->system_root_certs);
    assert_null(tc_cluster_of(r)->tls->identity_instance);
    tc_xds_resource_unref(r);
}

/* A101: reads `sni` (at most 255 bytes), `auto_host_sni` (the endpoint's hostname is the SNI) and
 * `auto_sni_san_validation` (the certificate must have the SNI as a name). */
static void sni_is_read(void **state)
{
    (void)state;
    char name[257], *json;
    struct tc_xds_resource *r = kit_resource_valid(
        &tc_cluster_type, &ctx,
        SOCKET(UPSTREAM, ",'sni':'a.test','auto_host_sni':true,'auto_sni_san_validation':true,'common_tls_context':{"
                         "'validation_context':{'system_root_certs':{}}}"));
    const struct tc_upstream_tls *tls = tc_cluster_of(r)->tls;
    assert_true(tc_slice_eq_str(tls->sni, "a.test") && tls->auto_host_sni && tls->auto_sni_san_validation);
    tc_xds_resource_unref(r);
    memset(name, 'a', sizeof(name));
    for (size_t len = 255; len <= 256; len++) {
        name[len] = '\0';
        json = tc_asprintf(
            SOCKET(UPSTREAM, ",'sni':'%s','common_tls_context':{'validation_context':{'system_root_certs':{}}}"), name);
        if (len == 255)
            tc_xds_resource_unref(kit_resource_valid(&tc_cluster_type, &ctx, json));
        else
            refused(json, "field transport_socket.typed_config.sni: is longer than 255 bytes");
        tc_free(json);
        name[len] = 'a';
    }
}

/* A29: if a provider instance is named, other kinds of certificates are ignored. */
static void an_instance_goes_before_other_certificates(void **state)
{
    (void)state;
    struct tc_xds_resource *r =
        kit_resource_valid(&tc_cluster_type, &ctx,
                           TLS("'validation_context':{'ca_certificate_provider_instance':{'instance_name':'p'}},"
                               "'tls_certificates':[{}],'tls_certificate_sds_secret_configs':[{'name':'x'}],"
                               "'tls_certificate_provider_instance':{'instance_name':'q'}"));
    assert_string_equal(tc_cluster_of(r)->tls->identity_instance->data, "q");
    tc_xds_resource_unref(r);
}

static bool plugin_known(void *arg, const char *plugin)
{
    (void)arg;
    return strcmp(plugin, "known") == 0;
}

static void plugins_must_be_known(void **state)
{
    (void)state;
    struct tc_xds_registries registries;
    tc_xds_registries_init(&registries);
    registries.cert_plugin_known = plugin_known;
    const struct tc_xds_decode_context with = {.bootstrap = &bootstrap, .registries = &registries};
    json_object_set_new(json_object_get(bootstrap.certificate_providers, "q"), "plugin_name", json_string("known"));
    kit_resource_refused(
        &tc_cluster_type, &with, VALIDATION(""),
        "ca_certificate_provider_instance.instance_name: certificate provider instance \"p\" has the plugin "
        "\"\", which is not supported");
    tc_xds_resource_unref(
        kit_resource_valid(&tc_cluster_type, &with,
                           TLS("'validation_context':{'ca_certificate_provider_instance':{'instance_name':'q'}}")));
    json_object_del(json_object_get(bootstrap.certificate_providers, "q"), "plugin_name");
}

/* Two deprecated fields may still name a provider instance: tls_certificate_certificate_provider_instance, and
 * validation_context_certificate_provider_instance in a combined_validation_context. */
static void deprecated_fields_are_read(void **state)
{
    (void)state;
    struct tc_xds_resource *r = kit_resource_valid(
        &tc_cluster_type, &ctx,
        TLS("'tls_certificate_certificate_provider_instance':{'instance_name':'q'},'combined_validation_context':{"
            "'default_validation_context':{'match_subject_alt_names':[{'prefix':'a'}]},"
            "'validation_context_certificate_provider_instance':{'instance_name':'p'}}"));
    const struct tc_upstream_tls *tls = tc_cluster_of(r)->tls;
    assert_string_equal(tls->ca_instance->data, "p");
    assert_string_equal(tls->identity_instance->data, "q");
    assert_int_equal(tls->n_san_matchers, 1);
    tc_xds_resource_unref(r);
}

static void what_is_not_supported_is_refused(void **state)
{
    TC_CASE(CD18);
    (void)state;
    refused("{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'ads':{}}},'transport_socket':{'name':'x'}}",
            "field transport_socket.typed_config: field not present");
    refused(SOCKET("envoy.config.cluster.v3.Cluster", ""), "unsupported transport socket type");
    refused(SOCKET(UPSTREAM, ""), "field transport_socket.typed_config.common_tls_context: field not present");
    refused(TLS(""), "no CA certificate provider instance configured");
    refused(TLS("'validation_context':{}"), "no CA certificate provider instance configured");
    refused(TLS("'validation_context':{'ca_certificate_provider_instance':{'instance_name':'nope'}}"),
            "ca_certificate_provider_instance.instance_name: unrecognized certificate provider instance name \"nope\"");
    refused(TLS("'validation_context_sds_secret_config':{'name':'x'}"), "sds_secret_config: feature unsupported");
    refused(TLS("'tls_certificate_sds_secret_configs':[{'name':'x'}]"), "sds_secret_configs: feature unsupported");
    refused(TLS("'tls_certificates':[{}]"), "tls_certificates: feature unsupported");
    refused(TLS("'tls_params':{}"), "tls_params: feature unsupported");
    refused(TLS("'custom_handshaker':{'name':'x'}"), "custom_handshaker: feature unsupported");
    refused(VALIDATION(",'verify_certificate_spki':['x']"),
            "validation_context.verify_certificate_spki: feature unsupported");
    refused(VALIDATION(",'verify_certificate_hash':['x']"), "verify_certificate_hash: feature unsupported");
    refused(VALIDATION(",'require_signed_certificate_timestamp':true"), "timestamp: feature unsupported");
    refused(VALIDATION(",'crl':{'filename':'x'}"), "crl: feature unsupported");
    refused(VALIDATION(",'custom_validator_config':{'name':'x'}"), "custom_validator_config: feature unsupported");
    refused("{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'ads':{}}},'transport_socket_matches':[{}]}",
            "field transport_socket_matches: feature unsupported");
}

static void san_matchers_are_checked(void **state)
{
    TC_CASE(CD19);
    (void)state;
    refused(VALIDATION(",'match_subject_alt_names':[{'prefix':''}]"),
            "match_subject_alt_names[0].prefix: must be non-empty");
    refused(VALIDATION(",'match_subject_alt_names':[{'suffix':''}]"),
            "match_subject_alt_names[0].suffix: must be non-empty");
    refused(VALIDATION(",'match_subject_alt_names':[{'contains':''}]"), "[0].contains: must be non-empty");
    refused(VALIDATION(",'match_subject_alt_names':[{'safe_regex':{'regex':'['}}]"),
            "[0].safe_regex.regex: errors compiling");
    refused(VALIDATION(",'match_subject_alt_names':[{'safe_regex':{}}]"), "[0].safe_regex.regex: must be non-empty");
    refused(VALIDATION(",'match_subject_alt_names':[{}]"), "[0]: invalid string matcher");
}

#define WRAPPED(inner) SOCKET("envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport", inner)
#define INNER(type, more) ",'transport_socket':{'name':'x','typed_config':{'@type':'" TYPE type "'" more "}}"
#define VALIDATED                                                                                                      \
    ",'common_tls_context':{'validation_context':{'ca_certificate_provider_instance':{'instance_name':'p'}}}"

/* A86: the socket of HTTP/1.1 proxies stands alone or around a TLS socket, and around nothing else. */
static void http_connect(void **state)
{
    (void)state;
    struct tc_xds_resource *r = kit_resource_valid(&tc_cluster_type, &ctx, WRAPPED(""));
    assert_true(tc_cluster_of(r)->http_connect);
    assert_null(tc_cluster_of(r)->tls);
    tc_xds_resource_unref(r);
    r = kit_resource_valid(&tc_cluster_type, &ctx, WRAPPED(INNER(UPSTREAM, VALIDATED)));
    assert_true(tc_cluster_of(r)->http_connect);
    assert_string_equal(tc_cluster_of(r)->tls->ca_instance->data, "p");
    tc_xds_resource_unref(r);
    r = kit_resource_valid(&tc_cluster_type, &ctx, VALIDATION(""));
    assert_false(tc_cluster_of(r)->http_connect);
    tc_xds_resource_unref(r);
    refused(WRAPPED(INNER(UPSTREAM, "")),
            "field transport_socket.typed_config.transport_socket.typed_config.common_tls_context: field not present");
    refused(WRAPPED(INNER("envoy.config.cluster.v3.Cluster", "")), "unsupported transport socket type");
    refused(WRAPPED(INNER("envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport", "")),
            "unsupported transport socket type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_connect),
        cmocka_unit_test(instances_are_read),
        cmocka_unit_test(sni_is_read),
        cmocka_unit_test(an_instance_goes_before_other_certificates),
        cmocka_unit_test(plugins_must_be_known),
        cmocka_unit_test(deprecated_fields_are_read),
        cmocka_unit_test(what_is_not_supported_is_refused),
        cmocka_unit_test(san_matchers_are_checked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
