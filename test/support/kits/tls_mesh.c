/* A mesh with clusters behind TLS.
 *
 * Certificate files lie in a temporary folder; the bootstrap names a provider for each use of them. A test replaces a
 * file by rename, as an agent of a mesh does; the providers read it at their next refresh.
 * kit_tls_mesh_expect_nothing_clear looks through the bytes that a wire_proxy kept.
 *
 * A kit_tls_mesh owns its kit_mesh, channel, folder and certificates until kit_tls_mesh_fini. Every function runs on
 * the test's thread; servers and `verify` functions run on the servers' thread of the kit_mesh. */
#include "support/kits/tls_mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/mem.h"

/* Returns the path of a file of the folder. The caller frees it with tc_free. */
static char *path_of(const struct kit_tls_mesh *w, const char *name)
{
    return tc_asprintf("%s/%s", w->folder, name);
}

void kit_tls_mesh_write(const struct kit_tls_mesh *w, const char *name, const char *content)
{
    char *path = path_of(w, name), *draft = path_of(w, "draft");
    FILE *f = fopen(draft, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(content, 1, strlen(content), f), strlen(content));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(draft, path), 0);
    tc_free(path);
    tc_free(draft);
}

static void make_bootstrap(struct kit_tls_mesh *w, const char *refresh)
{
    const char *d = w->folder;
    struct tc_buf b = {0};
    tc_buf_printf(
        &b,
        "{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": \"insecure\"}], "
        "\"server_features\": [\"xds_v3\"]}], \"node\": {\"id\": \"test-node\"}, "
        "\"certificate_providers\": {"
        "\"mesh\": {\"plugin_name\": \"file_watcher\", \"config\": {\"ca_certificate_file\": \"%s/root.pem\", "
        "\"certificate_file\": \"%s/cert.pem\", \"private_key_file\": \"%s/key.pem\", "
        "\"refresh_interval\": \"%s\"}}, ",
        kit_mesh_control_plane(w->k), d, d, d, refresh);
    static const char *const others[][3] = {{"other", "ca_certificate_file", "other.pem"},
                                            {"roots", "ca_certificate_file", "root.pem"},
                                            {"late", "ca_certificate_file", "late.pem"},
                                            {"spiffe", "spiffe_trust_bundle_map_file", "map.json"}};
    for (size_t i = 0; i < TC_ARRAY_LEN(others); i++)
        tc_buf_printf(&b,
                      "\"%s\": {\"plugin_name\": \"file_watcher\", \"config\": {\"%s\": \"%s/%s\", "
                      "\"refresh_interval\": \"%s\"}}, ",
                      others[i][0], others[i][1], d, others[i][2], refresh);
    tc_buf_append_str(&b, "\"strange\": {\"plugin_name\": \"stranger\", \"config\": {}}}}");
    w->bootstrap = tc_buf_take(&b);
}

void kit_tls_mesh_init(struct kit_tls_mesh *w, size_t n, const char *refresh_interval)
{
    *w = (struct kit_tls_mesh){.k = kit_mesh_new(n)};
    snprintf(w->folder, sizeof(w->folder), "/tmp/torc-tls-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    w->root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    w->other_root = kit_cert_make(&(struct kit_cert_opts){.common_name = "other root", .ca = true});
    w->server = kit_cert_make(&(struct kit_cert_opts){
        .common_name = "b", .sans = "DNS:b.mesh.test,URI:spiffe://mesh.test/b", .issuer = &w->root});
    w->client = kit_cert_make(&(struct kit_cert_opts){.common_name = "client", .issuer = &w->root});
    kit_tls_mesh_write(w, "root.pem", w->root.cert_pem);
    kit_tls_mesh_write(w, "other.pem", w->other_root.cert_pem);
    kit_tls_mesh_write(w, "cert.pem", w->client.cert_pem);
    kit_tls_mesh_write(w, "key.pem", w->client.key_pem);
    make_bootstrap(w, refresh_interval);
}

void kit_tls_mesh_fini(struct kit_tls_mesh *w)
{
    static const char *const names[] = {"root.pem", "other.pem", "cert.pem", "key.pem", "late.pem", "map.json"};
    if (w->ch)
        torc_channel_free(w->ch);
    kit_mesh_free(w->k);
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        char *path = path_of(w, names[i]);
        unlink(path);
        tc_free(path);
    }
    assert_int_equal(rmdir(w->folder), 0);
    kit_cert_fini(&w->root);
    kit_cert_fini(&w->other_root);
    kit_cert_fini(&w->server);
    kit_cert_fini(&w->client);
    tc_free(w->bootstrap);
}

void kit_tls_mesh_secure(struct kit_tls_mesh *w, size_t i, const struct kit_cert *cert, tc_tls_verify_fn verify,
                         void *arg)
{
    struct tc_tls_opts opts = {
        .server = true,
        .verify = TC_TLS_VERIFY_FULL,
        .roots_pem = kit_cert_pem(&w->root),
        .certificate_pem = kit_cert_pem(cert),
        .private_key_pem = kit_cert_key(cert),
        .verify_fn = verify,
        .verify_arg = arg,
    };
    kit_mesh_secure(w->k, i, &opts);
}

void kit_tls_mesh_put_cluster(struct kit_tls_mesh *w, const char *name, const char *address, const char *tls)
{
    const char *colon = strchr(address, ':');
    assert_non_null(colon);
    kit_mesh_put(w->k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: %s\n"
                 "  endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{endpoint: {hostname: "
                 "b.mesh.test, address: {socket_address: {address: \"%.*s\", port_value: %s}}}}]}]\n",
                 name, (int)(colon - address), address, colon + 1);
    char *socket =
        tls ? tc_asprintf("\n  transport_socket: {name: envoy.transport_sockets.tls, typed_config: {\"@type\": "
                          "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, "
                          "%s}}",
                          tls)
            : tc_strdup("");
    char *more = tc_asprintf("lb_policy: ROUND_ROBIN%s", socket);
    kit_mesh_put_cluster(w->k, name, more);
    tc_free(socket);
    tc_free(more);
}

char *kit_tls_mesh_context(const char *roots, const char *sans, const char *more)
{
    return tc_asprintf("common_tls_context: {tls_certificate_provider_instance: {instance_name: mesh}, "
                       "validation_context: {ca_certificate_provider_instance: {instance_name: %s}, "
                       "match_subject_alt_names: %s}}%s",
                       roots, sans, more);
}

void kit_tls_mesh_put_listener(struct kit_tls_mesh *w)
{
    kit_mesh_put_routes(w->k, "svc",
                        "{match: {prefix: \"\", headers: [{name: to, string_match: {exact: good}}]}, route: {cluster: "
                        "good}}, {match: {prefix: \"\"}, route: {cluster: c}}");
}

torc_channel *kit_tls_mesh_channel(struct kit_tls_mesh *w, const char *name)
{
    torc_credentials *insecure = torc_credentials_insecure(), *xds = torc_credentials_xds(insecure, NULL);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = xds,
                                     .xds_bootstrap_json = w->bootstrap};
    torc_channel *ch = kit_mesh_channel(w->k, name, &o);
    torc_credentials_unref(xds);
    torc_credentials_unref(insecure);
    return ch;
}

void kit_tls_mesh_open(struct kit_tls_mesh *w)
{
    kit_tls_mesh_put_listener(w);
    w->ch = kit_tls_mesh_channel(w, "svc");
}

void kit_tls_mesh_expect_nothing_clear(struct wire_proxy *p)
{
    assert_false(wire_proxy_saw(p, "PRI * HTTP/2.0"));
    assert_false(wire_proxy_saw(p, "test.Service"));
    assert_false(wire_proxy_saw(p, "x-backend"));
    assert_false(wire_proxy_saw(p, "hello"));
}
