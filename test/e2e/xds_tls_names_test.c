/* TLS by xDS end to end: SNI, SPIFFE, system roots, security that changes, and connections kept apart by security; TLS
 * to the control plane (A65), and a channel's own TLS credentials. Read kits/tls_mesh.h first. xds_tls_test.c has
 * certificates replaced under load and clusters whose TLS must fail.
 *
 * A test with a fixture has one backend, at first behind TLS, and a proxy in front of the backend. The proxy keeps the
 * bytes that pass: some tests look there for a ClientHello or its SNI, or assert that no RPC passed as plaintext. The
 * listener "svc" leads to the cluster "c", which a test replaces. The tests of a channel's own credentials do without
 * xDS: their channels have the proxy's address.
 *
 * The tests run on one thread. The proxy has its own thread, and so have the servers and the channels' runtime. */
#include <openssl/x509.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/kits/tls_mesh.h"
#include "support/net/wire_proxy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#define EXACT "[{exact: b.mesh.test}]"

/* Made by setup, freed by teardown. */
struct fixture {
    struct kit_tls_mesh w;
    struct wire_proxy *proxy; /* in front of backend 0 */
};

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    kit_tls_mesh_init(&f->w, 1, "1s");
    kit_tls_mesh_secure(&f->w, 0, &f->w.server, NULL, NULL);
    f->proxy = wire_proxy_new(kit_mesh_address(f->w.k, 0));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kit_tls_mesh_fini(&f->w);
    wire_proxy_free(f->proxy);
    tc_free(f);
    return 0;
}

/* Puts the cluster "c" at the proxy, with a context of kit_tls_mesh_context. If the channel is not open yet, also puts
 * "good" there and opens the channel. */
static void put(struct fixture *f, const char *roots, const char *sans, const char *more)
{
    char *context = kit_tls_mesh_context(roots, sans, more);
    kit_tls_mesh_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), context);
    if (!f->w.ch) {
        kit_tls_mesh_put_cluster(&f->w, "good", wire_proxy_address(f->proxy), context);
        kit_tls_mesh_open(&f->w);
    }
    tc_free(context);
}

/* A101: which SNI a ClientHello has. A ClientHello is plaintext, and so is its SNI. */
static void sni_is_sent(void **state)
{
    struct fixture *f = *state;
    put(f, "mesh", EXACT, "");
    kit_mesh_calls(f->w.ch, NULL, 1);
    assert_false(wire_proxy_saw(f->proxy, "svc"));
    wire_proxy_forget(f->proxy);
    put(f, "mesh", EXACT, ", sni: sni.mesh.test");
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 60 * TC_NS_PER_S;
         !wire_proxy_saw(f->proxy, "sni.mesh.test") && tc_system_clock.monotonic_ns(NULL) < end;)
        kit_mesh_calls(f->w.ch, NULL, 1);
    assert_true(wire_proxy_saw(f->proxy, "sni.mesh.test"));
    /* The SNI is not in the certificate. */
    put(f, "mesh", EXACT, ", sni: sni.mesh.test, auto_sni_san_validation: true");
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "none of the certificate's subject alternative names");
    kit_tls_mesh_expect_nothing_clear(f->proxy);
    /* The SNI is the endpoint's hostname, which is in the certificate: the matchers do not count. */
    wire_proxy_forget(f->proxy);
    put(f, "mesh", "[{exact: nobody}]", ", sni: sni.mesh.test, auto_host_sni: true, auto_sni_san_validation: true");
    torc_result *r = kit_mesh_call(f->w.ch, NULL, true, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    assert_true(wire_proxy_saw(f->proxy, "b.mesh.test"));
}

/* Returns a SPIFFE trust bundle map with one trust domain, which has one root. The caller frees it with tc_free. */
static char *spiffe_map(const char *domain, const struct kit_cert *root)
{
    unsigned char *der = NULL;
    int len = i2d_X509(root->x509, &der);
    struct tc_buf b = {0};
    assert_true(len > 0);
    tc_buf_printf(&b, "{\"trust_domains\":{\"%s\":{\"keys\":[{\"kty\":\"EC\",\"use\":\"x509-svid\",\"x5c\":[\"",
                  domain);
    tc_base64_encode(&b, der, (size_t)len, true);
    tc_buf_append_str(&b, "\"]}]}}}");
    OPENSSL_free(der);
    return tc_buf_take(&b);
}

/* A87: the server's certificate is verified against the roots of its trust domain in the SPIFFE trust bundle map. */
static void trust_bundles_count(void **state)
{
    struct fixture *f = *state;
    char *mine = spiffe_map("mesh.test", &f->w.root), *elsewhere = spiffe_map("other.test", &f->w.root),
         *wrong = spiffe_map("mesh.test", &f->w.other_root);
    kit_tls_mesh_write(&f->w, "map.json", elsewhere);
    put(f, "spiffe", "[{prefix: \"spiffe://mesh.test/\"}]", "");
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE,
                          "the trust domain \"mesh.test\" is not in the SPIFFE trust bundle map");
    kit_tls_mesh_write(&f->w, "map.json", wrong);
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "certificate verify failed: self-signed certificate");
    assert_int_equal(kit_mesh_take(f->w.k, 0), 0);
    kit_tls_mesh_write(&f->w, "map.json", mine);
    torc_result *r = kit_mesh_call(f->w.ch, NULL, true, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    /* SAN matchers are still checked. */
    put(f, "spiffe", "[{prefix: \"spiffe://mesh.test/c\"}]", "");
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "is one that the cluster asks for");
    assert_true(wire_proxy_saw(f->proxy, KIT_TLS_MESH_HELLO));
    kit_tls_mesh_expect_nothing_clear(f->proxy);
    tc_free(mine);
    tc_free(elsewhere);
    tc_free(wrong);
}

/* A82: the machine's authorities do not include the test's. */
static void system_roots_are_used(void **state)
{
    struct fixture *f = *state;
    const char *context = "common_tls_context: {validation_context: {system_root_certs: {}}}";
    kit_tls_mesh_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), context);
    kit_tls_mesh_put_cluster(&f->w, "good", wire_proxy_address(f->proxy), context);
    kit_tls_mesh_open(&f->w);
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "certificate verify failed: self-signed certificate");
    assert_true(wire_proxy_saw(f->proxy, KIT_TLS_MESH_HELLO));
    kit_tls_mesh_expect_nothing_clear(f->proxy);
}

/* A change of a cluster's security applies to new RPCs. No RPC fails while the security changes to one that the server
 * meets. */
static void security_changes(void **state)
{
    struct fixture *f = *state;
    put(f, "mesh", "[]", "");
    kit_mesh_calls(f->w.ch, NULL, 5);
    assert_int_equal(kit_mesh_connections(f->w.k, 0), 1);
    put(f, "mesh", EXACT, "");
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 60 * TC_NS_PER_S;
         kit_mesh_connections(f->w.k, 0) < 2 && tc_system_clock.monotonic_ns(NULL) < end;)
        kit_mesh_calls(f->w.ch, NULL, 1);
    kit_mesh_calls(f->w.ch, NULL, 20);
    assert_int_equal(kit_mesh_connections(f->w.k, 0), 2);
    put(f, "mesh", "[{exact: c.mesh.test}]", "");
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "is one that the cluster asks for");
    put(f, "mesh", EXACT, "");
    torc_result *r = kit_mesh_call(f->w.ch, NULL, true, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
}

/* Once a cluster has security, no RPC uses the plaintext connection, even if there is no other connection. */
static void a_secured_cluster_sends_no_plaintext(void **state)
{
    struct fixture *f = *state;
    kit_mesh_secure(f->w.k, 0, NULL);
    kit_tls_mesh_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), NULL);
    kit_tls_mesh_put_cluster(&f->w, "good", kit_mesh_address(f->w.k, 0), NULL);
    kit_tls_mesh_open(&f->w);
    kit_mesh_calls(f->w.ch, NULL, 5);
    kit_mesh_take(f->w.k, 0);
    /* A plaintext RPC would wait in the proxy, and reach the backend once the proxy forwards again. */
    wire_proxy_hold(f->proxy, true);
    put(f, "mesh", EXACT, "");
    wire_proxy_wait_connections(f->proxy, 2);
    torc_result *r = kit_mesh_call(f->w.ch, NULL, false, 300);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    wire_proxy_hold(f->proxy, false);
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "TLS handshake with");
    assert_int_equal(kit_mesh_take(f->w.k, 0), 0);
    kit_mesh_calls(f->w.ch, "to: good", 1);
}

/* Clusters and channels of equal security share a connection; others do not. */
static void connections_are_shared_by_security(void **state)
{
    struct fixture *f = *state;
    put(f, "mesh", EXACT, "");
    kit_mesh_calls(f->w.ch, NULL, 2);
    kit_mesh_calls(f->w.ch, "to: good", 2);
    torc_channel *second = kit_tls_mesh_channel(&f->w, "svc");
    kit_mesh_calls(second, NULL, 2);
    assert_int_equal(kit_mesh_connections(f->w.k, 0), 1);
    torc_channel_free(second);
    char *other = kit_tls_mesh_context("mesh", "[{suffix: .mesh.test}]", "");
    kit_tls_mesh_put_cluster(&f->w, "d", wire_proxy_address(f->proxy), other);
    kit_mesh_put_listener(f->w.k, "svc2", "d", NULL);
    second = kit_tls_mesh_channel(&f->w, "svc2");
    kit_mesh_calls(second, NULL, 2);
    assert_int_equal(kit_mesh_connections(f->w.k, 0), 2);
    torc_channel_free(second);
    /* A cluster without TLS at the same address: the server does not speak plaintext. */
    kit_tls_mesh_put_cluster(&f->w, "e", wire_proxy_address(f->proxy), NULL);
    kit_mesh_put_listener(f->w.k, "svc3", "e", NULL);
    second = kit_tls_mesh_channel(&f->w, "svc3");
    torc_result *r = kit_mesh_call(second, NULL, false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    torc_channel_free(second);
    tc_free(other);
}

/* A65: the control plane's certificate is verified, and the files of the credentials are read again. */
static void the_control_plane_is_behind_tls(void **state)
{
    (void)state;
    struct kit_tls_mesh files;
    kit_tls_mesh_init(&files, 0, "1s");
    struct kit_cert cp =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "cp", .sans = "IP:127.0.0.1", .issuer = &files.root});
    struct tc_tls_opts opts = {
        .server = true,
        .verify = TC_TLS_VERIFY_FULL,
        .roots_pem = kit_cert_pem(&files.root),
        .certificate_pem = kit_cert_pem(&cp),
        .private_key_pem = kit_cert_key(&cp),
    };
    struct kit_mesh *k = kit_mesh_new_secure(1, &opts);
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_listener(k, "svc", "c", NULL);
    const char *d = files.folder;
    char *bootstrap =
        tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": \"tls\", \"config\": "
                    "{\"ca_certificate_file\": \"%s/late.pem\", \"certificate_file\": \"%s/cert.pem\", "
                    "\"private_key_file\": \"%s/key.pem\", \"refresh_interval\": \"1s\"}}]}], "
                    "\"node\": {\"id\": \"test-node\"}}",
                    kit_mesh_control_plane(k), d, d, d);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = bootstrap};
    torc_channel *ch = kit_mesh_channel(k, "svc", &o);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "late.pem\": No such file or directory");
    kit_tls_mesh_write(&files, "late.pem", files.other_root.cert_pem);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "certificate verify failed: self-signed certificate");
    kit_tls_mesh_write(&files, "late.pem", files.root.cert_pem);
    torc_result *r = kit_mesh_call(ch, NULL, true, 60000);
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s", torc_result_text(r));
    torc_result_free(r);
    torc_channel_free(ch);
    kit_mesh_free(k);
    tc_free(bootstrap);
    kit_cert_fini(&cp);
    kit_tls_mesh_fini(&files);
}

/* A channel's own TLS credentials: after their files are replaced, RPCs move to a new connection, and none fails. */
static void files_of_a_channel_are_replaced(void **state)
{
    struct fixture *f = *state;
    struct kit_cert named =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .sans = "IP:127.0.0.1", .issuer = &f->w.root});
    struct kit_cert renewed = kit_cert_make(&(struct kit_cert_opts){.common_name = "client 2", .issuer = &f->w.root});
    kit_tls_mesh_secure(&f->w, 0, &named, NULL, NULL);
    char *ca = tc_asprintf("%s/root.pem", f->w.folder), *cert = tc_asprintf("%s/cert.pem", f->w.folder),
         *key = tc_asprintf("%s/key.pem", f->w.folder);
    struct torc_tls_files files = {TORC_SIZE(torc_tls_files), .ca_certificate_file = ca, .certificate_file = cert,
                                   .private_key_file = key, .refresh_interval_ms = 1000};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options),
                                     .credentials = torc_credentials_tls_files(&files, NULL)};
    assert_non_null(o.credentials);
    torc_channel *ch = torc_channel_new(kit_mesh_runtime(f->w.k), wire_proxy_address(f->proxy), &o, NULL);
    assert_non_null(ch);
    kit_mesh_calls(ch, NULL, 5);
    kit_tls_mesh_write(&f->w, "key.pem", renewed.key_pem);
    kit_tls_mesh_write(&f->w, "cert.pem", renewed.cert_pem);
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 60 * TC_NS_PER_S;
         kit_mesh_connections(f->w.k, 0) < 2 && tc_system_clock.monotonic_ns(NULL) < end;)
        kit_mesh_calls(ch, NULL, 1);
    kit_mesh_calls(ch, NULL, 5);
    assert_int_equal(kit_mesh_connections(f->w.k, 0), 2);
    torc_channel_free(ch);
    torc_credentials_unref(o.credentials);
    tc_free(ca);
    tc_free(cert);
    tc_free(key);
    kit_cert_fini(&named);
    kit_cert_fini(&renewed);
}

/* A channel's own TLS credentials, in four of the failing cases of xds_tls_test.c. No plaintext is sent. */
static void a_channels_tls_fails_closed(void **state)
{
    struct fixture *f = *state;
    const struct kit_cert *root = &f->w.root;
    struct kit_cert expired = kit_cert_make(&(struct kit_cert_opts){
        .common_name = "b", .sans = "DNS:b.mesh.test", .issuer = root, .valid_from_s = -7200, .valid_to_s = -3600});
    const struct {
        const struct kit_cert *server; /* NULL: no TLS */
        const struct kit_cert *roots;
        const char *authority, *reason;
    } rows[] = {
        {&f->w.server, root, "other.mesh.test", "the certificate is not valid for \"other.mesh.test\""},
        {&expired, root, "b.mesh.test", "certificate verify failed: certificate has expired"},
        {&f->w.server, &f->w.other_root, "b.mesh.test", "the authority \"/CN=root\" is not among the roots"},
        {NULL, root, "b.mesh.test", "TLS handshake with"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        if (rows[i].server)
            kit_tls_mesh_secure(&f->w, 0, rows[i].server, NULL, NULL);
        else
            kit_mesh_secure(f->w.k, 0, NULL);
        wire_proxy_forget(f->proxy);
        struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = rows[i].roots->cert_pem,
                                     .certificate_pem = f->w.client.cert_pem, .private_key_pem = f->w.client.key_pem};
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_tls(&t, NULL),
                                         .authority = rows[i].authority};
        torc_channel *ch = torc_channel_new(kit_mesh_runtime(f->w.k), wire_proxy_address(f->proxy), &o, NULL);
        assert_non_null(ch);
        kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, rows[i].reason);
        assert_int_equal(kit_mesh_take(f->w.k, 0), 0);
        assert_true(wire_proxy_saw(f->proxy, KIT_TLS_MESH_HELLO));
        kit_tls_mesh_expect_nothing_clear(f->proxy);
        torc_channel_free(ch);
        torc_credentials_unref(o.credentials);
    }
    kit_cert_fini(&expired);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sni_is_sent),
        TEST(trust_bundles_count),
        TEST(system_roots_are_used),
        TEST(security_changes),
        TEST(a_secured_cluster_sends_no_plaintext),
        TEST(connections_are_shared_by_security),
        cmocka_unit_test(the_control_plane_is_behind_tls),
        TEST(files_of_a_channel_are_replaced),
        TEST(a_channels_tls_fails_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
