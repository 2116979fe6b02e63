/* The servers of the teardown campaign.
 *
 * A mesh, an HTTP proxy, a metadata server, a name server, certificate files and application credentials, set up once
 * for all teardowns. The proxy, the metadata server and the credentials decide at random whether they answer well,
 * badly or late. teardown_stir changes something at the servers: it sends GOAWAY, starts a backend again, changes
 * resources, certificates, the JWT or the answers for names, or ends the streams of load reports.
 *
 * The test's thread calls all functions but on_connect and on_token, which run on the threads of their servers,
 * report_often and change_loads, which run on the thread of the mesh's servers, and teardown_credentials, which is for
 * any thread. */
#include "support/teardown/world_internal.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "support/openssl_1_1.h"

#define MATCH "[{exact: " TEARDOWN_NAME "}]"

static unsigned chance(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

/* --- servers --- */

/* The proxy's answer. `arg` is the struct teardown. */
static struct http_server_reply on_connect(const char *head, void *arg)
{
    struct tc_rng *rng = &((struct teardown *)arg)->proxy_rng;
    (void)head;
    struct http_server_reply r = {.what = HTTP_SERVER_TUNNEL, .delay_ms = chance(rng, 3)};
    switch (chance(rng, 8)) {
    case 0:
        r.what = HTTP_SERVER_HANG;
        break;
    case 1:
        r.what = HTTP_SERVER_CLOSE;
        break;
    case 2:
        r.what = HTTP_SERVER_ANSWER;
        r.text = tc_strdup("HTTP/1.1 403 Forbidden\r\n\r\n");
        break;
    default:
        r.text = tc_strdup("HTTP/1.1 200 Connection established\r\n\r\n");
        break;
    }
    return r;
}

/* The metadata server's answer. `arg` is the struct teardown. */
static struct http_server_reply on_token(const char *head, void *arg)
{
    struct tc_rng *rng = &((struct teardown *)arg)->metadata_rng;
    (void)head;
    struct http_server_reply r = {.what = HTTP_SERVER_ANSWER, .delay_ms = chance(rng, 4)};
    unsigned how = chance(rng, 8);
    if (how == 0)
        r.what = HTTP_SERVER_HANG;
    else if (how == 1)
        r.what = HTTP_SERVER_CLOSE;
    else if (how == 2)
        r.text = tc_strdup("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    else /* a token of 0 s has expired; a token of 70 s is renewed at its next use */
        r.text = tc_asprintf("HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\r\n"
                             "{\"access_token\": \"a token\", \"expires_in\": %u}",
                             chance(rng, 3) * 70);
    return r;
}

/* Writes token.jwt, a JWT that ends `lifetime_s` seconds from now; negative: it has ended. */
static void write_token(struct teardown *t, int64_t lifetime_s)
{
    struct tc_buf b = {0};
    char claims[64];
    int64_t now_s = tc_system_clock.realtime_ns(tc_system_clock.arg) / (int64_t)TC_NS_PER_S;
    int n = snprintf(claims, sizeof(claims), "{\"exp\":%lld}", (long long)(now_s + lifetime_s));
    tc_buf_append_str(&b, "e30.");
    tc_base64_encode(&b, claims, (size_t)n, false);
    tc_buf_append_str(&b, ".c2ln");
    kit_tls_mesh_write(&t->tls, "token.jwt", tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

/* Writes account.json, a service account with a new RSA key. */
static void write_account(struct teardown *t)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    BIO *bio = BIO_new(BIO_s_mem());
    char *pem;
    assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    long n = BIO_get_mem_data(bio, &pem);
    json_t *account = json_pack("{s:s, s:s%, s:s, s:s}", "type", "service_account", "private_key", pem, (size_t)n,
                                "private_key_id", "k", "client_email", "me@project.test");
    char *text = tc_json_text(account, false);
    kit_tls_mesh_write(&t->tls, "account.json", text);
    tc_free(text);
    json_decref(account);
    BIO_free(bio);
    EVP_PKEY_free(key);
}

static void report_often(struct tc_control_plane *cp, void *arg)
{
    (void)cp;
    tc_lrs_set(arg, &(struct tc_lrs_config){.interval_ms = 5, .send_all_clusters = true});
}

/* Puts a cluster with one endpoint, which is reached through the proxy (A86), with TLS inside the tunnel. */
static void put_proxied(struct teardown *t)
{
    const char *at = kit_mesh_address(t->k, OPEN), *port = strrchr(at, ':') + 1;
    kit_mesh_put(t->k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: proxied\n"
                 "  endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{metadata: "
                 "{typed_filter_metadata: {envoy.http11_proxy_transport_socket.proxy_address: {\"@type\": "
                 "type.googleapis.com/envoy.config.core.v3.Address, socket_address: {address: 127.0.0.1, port_value: "
                 "%s}}}}, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]\n",
                 strrchr(http_server_address(t->proxy), ':') + 1, port);
    kit_mesh_put_cluster(
        t->k, "proxied",
        "lb_policy: ROUND_ROBIN\n  transport_socket: {name: proxy, typed_config: {\"@type\": "
        "type.googleapis.com/envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport, "
        "transport_socket: {name: tls, typed_config: {\"@type\": "
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: "
        "{validation_context: {ca_certificate_provider_instance: {instance_name: roots}, "
        "match_subject_alt_names: " MATCH "}}}}}}");
}

/* Puts a cluster with the endpoint SECURE. roots: the provider of the roots; names: matchers for the server's names, a
 * YAML flow list. */
static void put_secured(struct teardown *t, const char *name, const char *roots, const char *names)
{
    char *context = kit_tls_mesh_context(roots, names, "");
    kit_tls_mesh_put_cluster(&t->tls, name, kit_mesh_address(t->k, SECURE), context);
    tc_free(context);
}

static void put_resources(struct teardown *t)
{
    static const char *const clusters[] = {"ring", "dns", "aggregate", "large", "secured", "late", "proxied"};
    struct kit_mesh *k = t->k;
    kit_mesh_put_endpoints(k, "ring", "0/a: 0, 1", NULL);
    kit_mesh_put_endpoints(k, "large", "0/a: 0, 1", NULL);
    kit_mesh_put_endpoints(k, "held", "0/a: 2", NULL);
    kit_mesh_put_cluster(k, "ring", "lb_policy: RING_HASH\n  lrs_server: {self: {}}");
    kit_mesh_put_cluster(k, "large",
                         "lb_policy: RING_HASH\n  ring_hash_lb_config: {minimum_ring_size: 65536, maximum_ring_size: "
                         "65536}");
    kit_mesh_put_cluster(k, "held", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_dns(k, "dns", "localhost", strrchr(kit_mesh_address(k, PLAIN_A), ':') + 1, "ROUND_ROBIN");
    kit_mesh_put_aggregate(k, "aggregate", "held, ring");
    put_secured(t, "secured", "mesh", MATCH);
    put_secured(t, "late", "late", MATCH);
    put_proxied(t);
    for (size_t i = 0; i < TC_ARRAY_LEN(clusters); i++)
        kit_mesh_put_listener(k, clusters[i], clusters[i], NULL);
    kit_mesh_put_filtered(
        k, "filtered",
        "{name: fault, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, "
        "delay: {fixed_delay: 0.003s, percentage: {numerator: 50}}}},",
        "{match: {prefix: \"/\"}, route: {cluster: ring, retry_policy: {retry_on: unavailable, num_retries: 2}}}");
}

static void make_credentials(struct teardown *t)
{
    struct torc_tls_options o = {TORC_SIZE(torc_tls_options), .roots_pem = t->tls.root.cert_pem};
    t->open = torc_credentials_tls(&o, NULL);
    o.certificate_pem = t->tls.client.cert_pem;
    o.private_key_pem = t->tls.client.key_pem;
    t->mutual = torc_credentials_tls(&o, NULL);
    torc_credentials *insecure = torc_credentials_insecure();
    t->xds = torc_credentials_xds(insecure, NULL);
    torc_credentials_unref(insecure);
    assert_true(t->open && t->mutual && t->xds);
}

struct teardown *teardown_new(void)
{
    struct teardown *t = TC_NEW(struct teardown);
    kit_tls_mesh_init(&t->tls, BACKENDS, "0.02s");
    t->k = t->tls.k;
    tc_rng_init_seed(&t->proxy_rng, 1);
    tc_rng_init_seed(&t->metadata_rng, 2);
    t->proxy = http_server_new(on_connect, t);
    t->metadata = http_server_new(on_token, t);
    t->names = name_server_new();
    name_server_set(t->names, NAMES_TRUE, "127.0.0.1");
    t->answers = answers_new();
    t->renewed = kit_cert_make(&(struct kit_cert_opts){.common_name = "client 2", .issuer = &t->tls.root});
    make_credentials(t);
    kit_mesh_hold(t->k, HELD);
    kit_tls_mesh_secure(&t->tls, SECURE, &t->tls.server, NULL, NULL);
    struct tc_tls_opts open = {.server = true,
                               .verify = TC_TLS_VERIFY_NONE,
                               .certificate_pem = kit_cert_pem(&t->tls.server),
                               .private_key_pem = kit_cert_key(&t->tls.server)};
    kit_mesh_secure(t->k, OPEN, &open);
    kit_mesh_do(t->k, report_often, kit_mesh_lrs(t->k));
    write_token(t, 3600);
    write_account(t);
    put_resources(t);
    torc_channel *ch = kit_mesh_channel(t->k, "ring", NULL);
    kit_mesh_calls(ch, NULL, 1);
    torc_channel_free(ch);
    return t;
}

void teardown_free(struct teardown *t)
{
    torc_credentials_unref(t->mutual);
    torc_credentials_unref(t->open);
    torc_credentials_unref(t->xds);
    answers_free(t->answers);
    name_server_free(t->names);
    static const char *const files[] = {"token.jwt", "account.json"};
    for (size_t i = 0; i < TC_ARRAY_LEN(files); i++) {
        char *path = tc_asprintf("%s/%s", t->tls.folder, files[i]);
        unlink(path);
        tc_free(path);
    }
    kit_tls_mesh_fini(&t->tls);
    http_server_free(t->proxy);
    http_server_free(t->metadata);
    kit_cert_fini(&t->renewed);
    tc_free(t);
}

/* --- changes --- */

/* Replaces the roots, or the certificate and then the key: in between, certificate and key may not match. */
static void rotate(struct teardown *t, struct tc_rng *rng)
{
    const struct kit_cert *cert = chance(rng, 2) ? &t->tls.client : &t->renewed;
    if (chance(rng, 2)) {
        char *both = tc_asprintf("%s%s", t->tls.root.cert_pem, t->tls.other_root.cert_pem);
        kit_tls_mesh_write(&t->tls, "root.pem", chance(rng, 2) ? both : t->tls.root.cert_pem);
        tc_free(both);
    } else {
        kit_tls_mesh_write(&t->tls, "cert.pem", cert->cert_pem);
        kit_tls_mesh_write(&t->tls, "key.pem", cert->key_pem);
    }
}

static void change_loads(struct tc_control_plane *cp, void *arg)
{
    (void)cp;
    tc_lrs_end_streams(arg, TORC_STATUS_UNAVAILABLE, "another server");
}

static void change_resources(struct teardown *t, struct tc_rng *rng)
{
    static const char *const shapes[] = {"0/a: 0, 1", "0/a: 1; 1/b: 0", "0/a: 0*2, 1"};
    switch (chance(rng, 3)) {
    case 0:
        kit_mesh_put_endpoints(t->k, "ring", shapes[chance(rng, 2)], NULL);
        break;
    case 1:
        kit_mesh_put_endpoints(t->k, "large", shapes[chance(rng, 3)], NULL);
        break;
    default:
        put_secured(t, "secured", chance(rng, 4) ? "mesh" : "other", chance(rng, 2) ? MATCH : "[{suffix: .test}]");
        break;
    }
}

void teardown_stir(struct teardown *t, struct tc_rng *rng)
{
    static const enum name_mode modes[] = {NAMES_TRUE, NAMES_TRUE, NAMES_SILENT, NAMES_MISSING, NAMES_TRUNCATED};
    static const int64_t lives_s[] = {3600, 3600, 60, 20, -5};
    switch (chance(rng, 8)) {
    case 0:
        kit_mesh_goaway(t->k, chance(rng, 2) ? PLAIN_A : chance(rng, 2) ? SECURE : OPEN);
        break;
    case 1:
        change_resources(t, rng);
        break;
    case 2:
        kit_mesh_stop(t->k, PLAIN_B);
        kit_mesh_start(t->k, PLAIN_B);
        break;
    case 3:
    case 4:
        rotate(t, rng);
        break;
    case 5:
        write_token(t, lives_s[chance(rng, TC_ARRAY_LEN(lives_s))]);
        break;
    case 6:
        name_server_set(t->names, modes[chance(rng, TC_ARRAY_LEN(modes))], NULL);
        break;
    default:
        kit_mesh_do(t->k, change_loads, kit_mesh_lrs(t->k));
        break;
    }
}

void teardown_settle(struct teardown *t)
{
    answers_settle(t->answers);
}

torc_call_credentials *teardown_credentials(struct teardown *t)
{
    return answers_credentials(t->answers);
}
