/* torc bootstrap: makes a bootstrap from options, for any control plane, for Istio's agent or for Traffic Director.
 *
 * Uses no network: options and environment variables give what other bootstrap generators ask a metadata server for.
 * --istio reads the variables that Istio's injection sets (istio_id).
 *
 * A function that returns a json_t returns a new reference. The result is not checked here: bootstrap.c passes it to
 * bootstrap_check. */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/random.h"
#include "bootstrap/bootstrap.h"
#include "cli.h"
#include "request/placeholders.h"

#define NAME BOOTSTRAP_NAME

#define ISTIO_AGENT "unix:///etc/istio/proxy/XDS"
#define ISTIO_CERTS "/var/lib/istio/data/"
#define GKE_SERVER "trafficdirector.googleapis.com:443"
#define GKE_CERTS "/var/run/secrets/workload-spiffe-credentials/"

static json_t *credentials(const struct bootstrap_args *a)
{
    const char *type = a->creds ? a->creds : a->ca || a->cert ? "tls" : a->gke ? "google_default" : "insecure";
    json_t *entry = json_pack("{s:s}", "type", type), *config = json_object();
    const char *const files[][2] = {
        {"ca_certificate_file", a->ca}, {"certificate_file", a->cert}, {"private_key_file", a->key}};
    for (size_t i = 0; i < TC_ARRAY_LEN(files); i++)
        if (files[i][1])
            json_object_set_new(config, files[i][0], json_string(files[i][1]));
    if (json_object_size(config))
        json_object_set(entry, "config", config);
    json_decref(config);
    return json_pack("[o]", entry);
}

static json_t *server(const struct bootstrap_args *a, const char *uri)
{
    json_t *features = json_array(), *out = json_pack("{s:s, s:o}", "server_uri", uri, "channel_creds", credentials(a));
    if (a->istio || a->gke)
        json_array_append_new(features, json_string("xds_v3"));
    for (size_t i = 0; i < a->features.len; i++)
        json_array_append_new(features, json_string(a->features.data[i]));
    if (json_array_size(features))
        json_object_set(out, "server_features", features);
    json_decref(features);
    return out;
}

static json_t *servers(const struct bootstrap_args *a)
{
    json_t *list = json_array();
    for (size_t i = 0; i < a->servers.len; i++)
        json_array_append_new(list, server(a, a->servers.data[i]));
    if (!a->servers.len)
        json_array_append_new(list, server(a, a->istio ? ISTIO_AGENT : GKE_SERVER));
    return list;
}

/* Returns a new certificate_providers object: one instance of file_watcher, with files in `folder`. */
static json_t *provider(const char *instance, const char *folder, const char *cert, const char *key, const char *ca,
                        const char *interval)
{
    json_t *config = json_object();
    const char *const files[][2] = {{"certificate_file", cert}, {"private_key_file", key}, {"ca_certificate_file", ca}};
    for (size_t i = 0; i < TC_ARRAY_LEN(files); i++)
        json_object_set_new(config, files[i][0], json_sprintf("%s%s", folder, files[i][1]));
    json_object_set_new(config, "refresh_interval", json_string(interval));
    return json_pack("{s:{s:s, s:o}}", instance, "plugin_name", "file_watcher", "config", config);
}

/* Appends the node id in Istio's form: sidecar~ADDRESS~POD.NAMESPACE~NAMESPACE.svc.cluster.local. Returns 0, or
 * CLI_USAGE with the error printed if the environment lacks a variable or one is not UTF-8. */
static int istio_id(struct tc_buf *out)
{
    static const char *const names[] = {"INSTANCE_IP", "POD_NAME", "POD_NAMESPACE"};
    const char *values[TC_ARRAY_LEN(names)];
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        values[i] = getenv(names[i]);
        if (!values[i] || !*values[i])
            return cli_usage(NAME,
                             "--istio: the environment has no %s, as Istio's injection sets it; give --node-id "
                             "sidecar~ADDRESS~POD.NAMESPACE~NAMESPACE.svc.cluster.local",
                             names[i]);
        if (!tc_utf8_valid(tc_slice_str(values[i])))
            return cli_usage(NAME, "--istio: %s is not UTF-8: '%s'", names[i], values[i]);
    }
    tc_buf_printf(out, "sidecar~%s~%s.%s~%s.svc.cluster.local", values[0], values[1], values[2], values[2]);
    return 0;
}

/* Appends the node id in Traffic Director's form, with a random UUID. */
static int gke_id(const struct bootstrap_args *a, struct tc_buf *out)
{
    struct placeholders uuid = {0};
    struct tc_rng rng;
    int rc = placeholders_parse(NAME, "", tc_slice_str("{uuid}"), true, &uuid);
    tc_rng_init_system(&rng);
    tc_buf_printf(out, "projects/%s/networks/%s/nodes/", a->project, a->network);
    placeholders_append(&uuid, 0, &rng, out);
    placeholders_fini(&uuid);
    return rc;
}

/* Appends the node id: that of --node-id, else that of --istio or --gke, else the machine's name. */
static int make_id(const struct bootstrap_args *a, struct tc_buf *out)
{
    char host[256] = "";
    if (a->node_id)
        tc_buf_append_str(out, a->node_id);
    else if (a->istio)
        return istio_id(out);
    else if (a->gke)
        return gke_id(a, out);
    else if (gethostname(host, sizeof(host) - 1) != 0 || !*host)
        return cli_usage(NAME, "this machine has no name: give --node-id");
    else if (!tc_utf8_valid(tc_slice_str(host)))
        return cli_usage(NAME, "this machine's name is not UTF-8: give --node-id");
    tc_buf_append_str(out, host);
    return 0;
}

static int add_locality(const char *text, json_t *node)
{
    static const char *const names[] = {"region", "zone", "sub_zone"};
    struct tc_slice rest = tc_slice_str(text), part;
    json_t *locality = json_object();
    bool more = true;
    for (size_t i = 0; i < TC_ARRAY_LEN(names) && tc_slice_split(&rest, &more, '/', &part); i++)
        if (part.len)
            json_object_set_new(locality, names[i], json_stringn(part.data, part.len));
    json_object_set_new(node, "locality", locality);
    return more ? cli_usage(NAME, "--locality: '%s' does not have the form REGION[/ZONE[/SUB_ZONE]]", text) : 0;
}

static int add_metadata(const struct bootstrap_args *a, json_t *node)
{
    json_t *metadata = json_object();
    int rc = 0;
    if (a->istio)
        json_object_set_new(metadata, "GENERATOR", json_string("grpc"));
    if (a->gke) {
        json_object_set_new(metadata, "TRAFFICDIRECTOR_GCP_PROJECT_NUMBER", json_string(a->project));
        json_object_set_new(metadata, "TRAFFICDIRECTOR_NETWORK_NAME", json_string(a->network));
    }
    for (size_t i = 0; i < a->metadata.len && rc == 0; i++) {
        const char *text = a->metadata.data[i], *equals = strchr(text, '=');
        if (!equals || equals == text) {
            rc = cli_usage(NAME, "--metadata: '%s' does not have the form NAME=VALUE", text);
        } else {
            char *name = tc_slice_dup(tc_slice_of(text, (size_t)(equals - text)));
            json_object_set_new(metadata, name, json_string(equals + 1));
            tc_free(name);
        }
    }
    if (json_object_size(metadata))
        json_object_set(node, "metadata", metadata);
    json_decref(metadata);
    return rc;
}

/* Returns 0 or CLI_USAGE. *out is a new reference in both cases. */
static int make_node(const struct bootstrap_args *a, json_t **out)
{
    struct tc_buf id = {0};
    int rc = make_id(a, &id);
    json_t *node = json_pack("{s:s}", "id", tc_buf_cstr(&id));
    tc_buf_fini(&id);
    if (a->node_cluster || a->gke)
        json_object_set_new(node, "cluster", json_string(a->node_cluster ? a->node_cluster : "cluster"));
    if (rc == 0 && a->locality)
        rc = add_locality(a->locality, node);
    if (rc == 0)
        rc = add_metadata(a, node);
    *out = node;
    return rc;
}

int bootstrap_make(const struct bootstrap_args *a, json_t **out)
{
    json_t *node, *root = json_object();
    json_object_set_new(root, "xds_servers", servers(a));
    int rc = make_node(a, &node);
    json_object_set_new(root, "node", node);
    if (a->istio || a->gke) {
        json_t *providers = a->istio
                                ? provider("default", ISTIO_CERTS, "cert-chain.pem", "key.pem", "root-cert.pem", "900s")
                                : provider("google_cloud_private_spiffe", GKE_CERTS, "certificates.pem",
                                           "private_key.pem", "ca_certificates.pem", "600s");
        json_object_set_new(root, "certificate_providers", providers);
        json_object_set_new(root, "server_listener_resource_name_template",
                            json_string(a->istio ? "xds.istio.io/grpc/lds/inbound/%s"
                                                 : "grpc/server?xds.resource.listening_address=%s"));
    }
    *out = root;
    return rc;
}
