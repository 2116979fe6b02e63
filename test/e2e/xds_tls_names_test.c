/* TLS by xDS end to end: SNI, SPIFFE, security that changes and that tells connections apart; TLS towards the control
 * plane (A65), and TLS from files on a channel of its own. */
#include <openssl/x509.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tls_world.h"
#include "support/wire_proxy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#define EXACT "[{exact: b.mesh.test}]"

struct fixture {
    struct tls_world w;
    struct wire_proxy *proxy; /* before backend 0 */
};

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    tls_world_init(&f->w, 1, "1s");
    tls_world_secure(&f->w, 0, &f->w.server, NULL, NULL);
    f->proxy = wire_proxy_new(mesh_kit_address(f->w.k, 0));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tls_world_fini(&f->w);
    wire_proxy_free(f->proxy);
    tc_free(f);
    return 0;
}

/* Both clusters of the listener at the proxy; opens the channel. */
static void put(struct fixture *f, const char *roots, const char *sans, const char *more)
{
    char *context = tls_world_context(roots, sans, more);
    tls_world_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), context);
    if (!f->w.ch) {
        tls_world_put_cluster(&f->w, "good", wire_proxy_address(f->proxy), context);
        tls_world_open(&f->w);
    }
    tc_free(context);
}

/* A101. A ClientHello is in the clear, and its SNI in it. */
static void sni_is_sent(void **state)
{
    struct fixture *f = *state;
    put(f, "mesh", EXACT, "");
    mesh_kit_calls(f->w.ch, NULL, 1);
    assert_false(wire_proxy_saw(f->proxy, "svc"));
    wire_proxy_forget(f->proxy);
    put(f, "mesh", EXACT, ", sni: sni.mesh.test");
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 10 * TC_NS_PER_S;
         !wire_proxy_saw(f->proxy, "sni.mesh.test") && tc_system_clock.monotonic_ns(NULL) < end;)
        mesh_kit_calls(f->w.ch, NULL, 1);
    assert_true(wire_proxy_saw(f->proxy, "sni.mesh.test"));
    /* Not what the certificate says. */
    put(f, "mesh", EXACT, ", sni: sni.mesh.test, auto_sni_san_validation: true");
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "none of the certificate's subject alternative names");
    tls_world_expect_nothing_clear(f->proxy);
    /* The endpoint's hostname, and that is. */
    wire_proxy_forget(f->proxy);
    put(f, "mesh", "[{exact: nobody}]", ", sni: sni.mesh.test, auto_host_sni: true, auto_sni_san_validation: true");
    struct torc_result r = mesh_kit_call(f->w.ch, NULL, true, 10000);
    assert_int_equal(r.code, TORC_STATUS_OK);
    torc_result_fini(&r);
    assert_true(wire_proxy_saw(f->proxy, "b.mesh.test"));
}

static char *spiffe_map(const char *domain, const struct tc_cert *root)
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

/* A87 */
static void trust_bundles_count(void **state)
{
    struct fixture *f = *state;
    char *mine = spiffe_map("mesh.test", &f->w.root), *elsewhere = spiffe_map("other.test", &f->w.root),
         *wrong = spiffe_map("mesh.test", &f->w.other_root);
    tls_world_write(&f->w, "map.json", elsewhere);
    put(f, "spiffe", "[{prefix: \"spiffe://mesh.test/\"}]", "");
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE,
                          "the trust domain \"mesh.test\" is not in the SPIFFE trust bundle map");
    tls_world_write(&f->w, "map.json", wrong);
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "certificate verify failed: self-signed certificate");
    assert_int_equal(mesh_kit_take(f->w.k, 0), 0);
    tls_world_write(&f->w, "map.json", mine);
    struct torc_result r = mesh_kit_call(f->w.ch, NULL, true, 10000);
    assert_int_equal(r.code, TORC_STATUS_OK);
    torc_result_fini(&r);
    /* The names count as ever. */
    put(f, "spiffe", "[{prefix: \"spiffe://mesh.test/c\"}]", "");
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "is one that the cluster asks for");
    assert_true(wire_proxy_saw(f->proxy, TLS_WORLD_HELLO));
    tls_world_expect_nothing_clear(f->proxy);
    tc_free(mine);
    tc_free(elsewhere);
    tc_free(wrong);
}

/* A82: the machine's authorities know nothing of ours. */
static void system_roots_are_used(void **state)
{
    struct fixture *f = *state;
    const char *context = "common_tls_context: {validation_context: {system_root_certs: {}}}";
    tls_world_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), context);
    tls_world_put_cluster(&f->w, "good", wire_proxy_address(f->proxy), context);
    tls_world_open(&f->w);
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "certificate verify failed: self-signed certificate");
    assert_true(wire_proxy_saw(f->proxy, TLS_WORLD_HELLO));
    tls_world_expect_nothing_clear(f->proxy);
}

/* What a cluster's security changes to holds for new RPCs; while the change is on its way none fails. */
static void security_changes(void **state)
{
    struct fixture *f = *state;
    put(f, "mesh", "[]", "");
    mesh_kit_calls(f->w.ch, NULL, 5);
    assert_int_equal(mesh_kit_connections(f->w.k, 0), 1);
    put(f, "mesh", EXACT, "");
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 10 * TC_NS_PER_S;
         mesh_kit_connections(f->w.k, 0) < 2 && tc_system_clock.monotonic_ns(NULL) < end;)
        mesh_kit_calls(f->w.ch, NULL, 1);
    mesh_kit_calls(f->w.ch, NULL, 20);
    assert_int_equal(mesh_kit_connections(f->w.k, 0), 2);
    put(f, "mesh", "[{exact: c.mesh.test}]", "");
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "is one that the cluster asks for");
    put(f, "mesh", EXACT, "");
    struct torc_result r = mesh_kit_call(f->w.ch, NULL, true, 10000);
    assert_int_equal(r.code, TORC_STATUS_OK);
    torc_result_fini(&r);
}

/* From the moment that a cluster has security, nothing goes over what had none, though no other connection is there. */
static void nothing_goes_in_the_clear_any_more(void **state)
{
    struct fixture *f = *state;
    mesh_kit_secure(f->w.k, 0, NULL);
    tls_world_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), NULL);
    tls_world_put_cluster(&f->w, "good", mesh_kit_address(f->w.k, 0), NULL);
    tls_world_open(&f->w);
    mesh_kit_calls(f->w.ch, NULL, 5);
    mesh_kit_take(f->w.k, 0);
    /* What is held up goes on later: an RPC in the clear would come to the backend then. */
    wire_proxy_hold(f->proxy, true);
    put(f, "mesh", EXACT, "");
    wire_proxy_wait_connections(f->proxy, 2);
    struct torc_result r = mesh_kit_call(f->w.ch, NULL, false, 300);
    assert_int_equal(r.code, TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_fini(&r);
    wire_proxy_hold(f->proxy, false);
    mesh_kit_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "TLS handshake with");
    assert_int_equal(mesh_kit_take(f->w.k, 0), 0);
    mesh_kit_calls(f->w.ch, "to: good", 1); /* stays as it was told */
}

/* One connection for clusters and channels of equal security, and none for others. */
static void connections_are_shared_by_security(void **state)
{
    struct fixture *f = *state;
    put(f, "mesh", EXACT, "");
    mesh_kit_calls(f->w.ch, NULL, 2);
    mesh_kit_calls(f->w.ch, "to: good", 2);
    torc_channel *second = tls_world_channel(&f->w, "svc");
    mesh_kit_calls(second, NULL, 2);
    assert_int_equal(mesh_kit_connections(f->w.k, 0), 1);
    torc_channel_free(second);
    char *other = tls_world_context("mesh", "[{suffix: .mesh.test}]", "");
    tls_world_put_cluster(&f->w, "d", wire_proxy_address(f->proxy), other);
    mesh_kit_put_listener(f->w.k, "svc2", "d", NULL);
    second = tls_world_channel(&f->w, "svc2");
    mesh_kit_calls(second, NULL, 2);
    assert_int_equal(mesh_kit_connections(f->w.k, 0), 2);
    torc_channel_free(second);
    /* The same address in the clear, which the server does not have. */
    tls_world_put_cluster(&f->w, "e", wire_proxy_address(f->proxy), NULL);
    mesh_kit_put_listener(f->w.k, "svc3", "e", NULL);
    second = tls_world_channel(&f->w, "svc3");
    struct torc_result r = mesh_kit_call(second, NULL, false, 10000);
    assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
    torc_result_fini(&r);
    torc_channel_free(second);
    tc_free(other);
}

/* A65: the control plane's certificate is checked, and the files are read again. */
static void the_control_plane_is_behind_tls(void **state)
{
    (void)state;
    struct tls_world files;
    tls_world_init(&files, 0, "1s");
    struct tc_cert cp =
        tc_cert_make(&(struct tc_cert_opts){.common_name = "cp", .sans = "IP:127.0.0.1", .issuer = &files.root});
    struct tc_tls_opts opts = {
        .server = true,
        .verify = TC_TLS_VERIFY_FULL,
        .roots_pem = tc_cert_pem(&files.root),
        .certificate_pem = tc_cert_pem(&cp),
        .private_key_pem = tc_cert_key(&cp),
    };
    struct mesh_kit *k = mesh_kit_new_secure(1, &opts);
    mesh_kit_put_endpoints(k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    mesh_kit_put_listener(k, "svc", "c", NULL);
    const char *d = files.folder;
    char *bootstrap =
        tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": \"tls\", \"config\": "
                    "{\"ca_certificate_file\": \"%s/late.pem\", \"certificate_file\": \"%s/cert.pem\", "
                    "\"private_key_file\": \"%s/key.pem\", \"refresh_interval\": \"1s\"}}]}], "
                    "\"node\": {\"id\": \"test-node\"}}",
                    mesh_kit_control_plane(k), d, d, d);
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.xds_bootstrap_json = bootstrap;
    torc_channel *ch = mesh_kit_channel(k, "svc", &o);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "late.pem\": No such file or directory");
    tls_world_write(&files, "late.pem", files.other_root.cert_pem);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "certificate verify failed: self-signed certificate");
    tls_world_write(&files, "late.pem", files.root.cert_pem);
    struct torc_result r = mesh_kit_call(ch, NULL, true, 10000);
    if (r.code != TORC_STATUS_OK)
        fail_msg("%s", r.message);
    torc_result_fini(&r);
    torc_channel_free(ch);
    mesh_kit_free(k);
    tc_free(bootstrap);
    tc_cert_fini(&cp);
    tls_world_fini(&files);
}

/* A channel of its own: the same files, the same replacement of its connection. */
static void files_of_a_channel_are_replaced(void **state)
{
    struct fixture *f = *state;
    struct tc_cert named =
        tc_cert_make(&(struct tc_cert_opts){.common_name = "b", .sans = "IP:127.0.0.1", .issuer = &f->w.root});
    struct tc_cert renewed = tc_cert_make(&(struct tc_cert_opts){.common_name = "client 2", .issuer = &f->w.root});
    tls_world_secure(&f->w, 0, &named, NULL, NULL);
    char *ca = tc_asprintf("%s/root.pem", f->w.folder), *cert = tc_asprintf("%s/cert.pem", f->w.folder),
         *key = tc_asprintf("%s/key.pem", f->w.folder), *why = NULL;
    struct torc_tls_files files;
    torc_tls_files_init(&files);
    files.ca_certificate_file = ca;
    files.certificate_file = cert;
    files.private_key_file = key;
    files.refresh_interval_ms = 1000;
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.credentials = torc_credentials_tls_files(&files, &why);
    assert_non_null(o.credentials);
    torc_channel *ch = torc_channel_new(mesh_kit_runtime(f->w.k), wire_proxy_address(f->proxy), &o, &why);
    assert_non_null(ch);
    mesh_kit_calls(ch, NULL, 5);
    tls_world_write(&f->w, "key.pem", renewed.key_pem);
    tls_world_write(&f->w, "cert.pem", renewed.cert_pem);
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 10 * TC_NS_PER_S;
         mesh_kit_connections(f->w.k, 0) < 2 && tc_system_clock.monotonic_ns(NULL) < end;)
        mesh_kit_calls(ch, NULL, 1);
    mesh_kit_calls(ch, NULL, 5);
    assert_int_equal(mesh_kit_connections(f->w.k, 0), 2);
    torc_channel_free(ch);
    torc_credentials_unref(o.credentials);
    tc_free(ca);
    tc_free(cert);
    tc_free(key);
    tc_cert_fini(&named);
    tc_cert_fini(&renewed);
}

/* Credentials of a channel's own: the same bad cases, and nothing leaves in the clear in any. */
static void a_channels_tls_fails_closed(void **state)
{
    struct fixture *f = *state;
    const struct tc_cert *root = &f->w.root;
    struct tc_cert expired = tc_cert_make(&(struct tc_cert_opts){
        .common_name = "b", .sans = "DNS:b.mesh.test", .issuer = root, .valid_from_s = -7200, .valid_to_s = -3600});
    const struct {
        const struct tc_cert *server; /* NULL: no TLS */
        const struct tc_cert *roots;
        const char *authority, *reason;
    } rows[] = {
        {&f->w.server, root, "other.mesh.test", "the certificate is not valid for \"other.mesh.test\""},
        {&expired, root, "b.mesh.test", "certificate verify failed: certificate has expired"},
        {&f->w.server, &f->w.other_root, "b.mesh.test", "the authority \"/CN=root\" is not among the roots"},
        {NULL, root, "b.mesh.test", "TLS handshake with"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct torc_tls_options t;
        struct torc_channel_options o;
        if (rows[i].server)
            tls_world_secure(&f->w, 0, rows[i].server, NULL, NULL);
        else
            mesh_kit_secure(f->w.k, 0, NULL);
        wire_proxy_forget(f->proxy);
        torc_tls_options_init(&t);
        t.roots_pem = rows[i].roots->cert_pem;
        t.certificate_pem = f->w.client.cert_pem;
        t.private_key_pem = f->w.client.key_pem;
        torc_channel_options_init(&o);
        o.credentials = torc_credentials_tls(&t, NULL);
        o.authority = rows[i].authority;
        torc_channel *ch = torc_channel_new(mesh_kit_runtime(f->w.k), wire_proxy_address(f->proxy), &o, NULL);
        assert_non_null(ch);
        mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, rows[i].reason);
        assert_int_equal(mesh_kit_take(f->w.k, 0), 0);
        assert_true(wire_proxy_saw(f->proxy, TLS_WORLD_HELLO));
        tls_world_expect_nothing_clear(f->proxy);
        torc_channel_free(ch);
        torc_credentials_unref(o.credentials);
    }
    tc_cert_fini(&expired);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sni_is_sent),
        TEST(trust_bundles_count),
        TEST(system_roots_are_used),
        TEST(security_changes),
        TEST(nothing_goes_in_the_clear_any_more),
        TEST(connections_are_shared_by_security),
        cmocka_unit_test(the_control_plane_is_behind_tls),
        TEST(files_of_a_channel_are_replaced),
        TEST(a_channels_tls_fails_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
