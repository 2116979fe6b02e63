/* The flows of the teardown campaign: the settings of a channel in each.
 *
 * A flow is a function that fills in a struct plan (target, options, credentials), with a random choice where it has
 * one. The table `flows` has them all; `in_vain` marks the flows on which no RPC can succeed. teardown/world.c has the
 * servers.
 *
 * teardown_channel chooses a flow by its weight, has it fill in a plan, makes the channel, and frees what the plan owns
 * (`target`, `own`). All other pointers that a flow sets are borrowed: of struct teardown, of the caller, or static.
 * The test's thread runs everything but teardown_count, which is for any thread and counts in atomics, and
 * count_streams, which runs on the thread of the mesh's servers while the test's thread waits. */
#include <string.h>

#include "support/cmocka.h"
#include "support/teardown/world_internal.h"

#include "base/mem.h"

static unsigned chance(struct tc_rng *rng, unsigned n)
{
    return (unsigned)tc_rng_below(rng, n);
}

/* A flow's choices for a channel. */
struct plan {
    struct teardown *t;
    struct tc_rng *rng;
    const char *csds; /* see teardown_channel; may be NULL */
    struct torc_channel_options o;
    char *target;          /* owned; set by each flow */
    torc_credentials *own; /* made for this channel; unreferenced once the channel holds them. NULL: none */
};

static void to_backend(struct plan *p, unsigned i)
{
    p->target = tc_asprintf("ipv4:%s", kit_mesh_address(p->t->k, i));
    if (i == SECURE || i == OPEN)
        p->o.authority = TEARDOWN_NAME;
}

static void to_listener(struct plan *p, const char *name)
{
    p->target = tc_asprintf("xds:///%s", name);
    if (chance(p->rng, 2))
        p->o.credentials = p->t->xds;
}

static void flow_ring(struct plan *p)
{
    to_listener(p, "ring"); /* its cluster has load reports */
}

static void flow_aggregate(struct plan *p)
{
    to_listener(p, "aggregate");
}

static void flow_logical_dns(struct plan *p)
{
    to_listener(p, "dns");
}

static void flow_filtered(struct plan *p)
{
    to_listener(p, "filtered");
}

static void flow_no_listener(struct plan *p)
{
    to_listener(p, "gone");
}

/* A ring large enough to be built off the loop. */
static void flow_large_ring(struct plan *p)
{
    to_listener(p, "large");
    p->o.ring_size_cap = 65536;
}

static void flow_xds_tls(struct plan *p)
{
    to_listener(p, "secured");
    p->o.credentials = p->t->xds;
}

static void flow_late_provider(struct plan *p)
{
    to_listener(p, "late");
    p->o.credentials = p->t->xds;
}

static void flow_xds_proxy(struct plan *p)
{
    to_listener(p, "proxied");
    p->o.credentials = p->t->xds;
}

static void flow_retries(struct plan *p)
{
    p->o.service_config_json =
        "{\"loadBalancingConfig\":[{\"round_robin\":{}}],\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{"
        "\"maxAttempts\":3,\"initialBackoff\":\"0.002s\",\"maxBackoff\":\"0.01s\",\"backoffMultiplier\":2,"
        "\"retryableStatusCodes\":[\"UNAVAILABLE\"]}}]}";
    p->target =
        tc_asprintf("ipv4:%s,%s,127.0.0.1:1", kit_mesh_address(p->t->k, PLAIN_A), kit_mesh_address(p->t->k, PLAIN_B));
}

static void flow_hedges(struct plan *p)
{
    p->o.service_config_json = "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,"
                               "\"hedgingDelay\":\"0.001s\",\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}";
    to_backend(p, PLAIN_A);
}

static void flow_hosts_file(struct plan *p)
{
    p->target = tc_asprintf("dns:///localhost:%s", strrchr(kit_mesh_address(p->t->k, PLAIN_B), ':') + 1);
}

static void flow_name_server(struct plan *p)
{
    p->target = tc_asprintf("dns://%s/shop.test.:%s", name_server_address(p->t->names),
                            strrchr(kit_mesh_address(p->t->k, PLAIN_B), ':') + 1);
    p->o.dns_min_interval_ms = 1;
}

static void flow_silent_backend(struct plan *p)
{
    to_backend(p, HELD);
}

static void flow_nobody(struct plan *p)
{
    p->target = tc_strdup("ipv4:127.0.0.1:1");
}

static void flow_tls(struct plan *p)
{
    to_backend(p, SECURE);
    p->o.credentials = p->t->mutual;
}

/* Returns the path of a file in the mesh's folder. The caller frees it with tc_free. */
static char *path_of(const struct teardown *t, const char *name)
{
    return tc_asprintf("%s/%s", t->tls.folder, name);
}

static void flow_tls_files(struct plan *p)
{
    char *ca = path_of(p->t, "root.pem"), *cert = path_of(p->t, "cert.pem"), *key = path_of(p->t, "key.pem");
    struct torc_tls_files files = {TORC_SIZE(torc_tls_files), .ca_certificate_file = ca, .certificate_file = cert,
                                   .private_key_file = key, .refresh_interval_ms = 20};
    to_backend(p, SECURE);
    p->own = torc_credentials_tls_files(&files, NULL);
    tc_free(ca);
    tc_free(cert);
    tc_free(key);
}

static void flow_proxy(struct plan *p)
{
    static const unsigned backends[] = {PLAIN_A, PLAIN_B, OPEN};
    unsigned i = backends[chance(p->rng, 3)];
    p->target = tc_asprintf("dns:///" TEARDOWN_NAME ":%s", strrchr(kit_mesh_address(p->t->k, i), ':') + 1);
    p->o.http_proxy = http_server_address(p->t->proxy); /* teardown_channel adds "http://" */
    if (i == OPEN)
        p->o.credentials = p->t->open;
    p->o.authority = TEARDOWN_NAME;
}

/* TLS to OPEN, with these call credentials. Takes over the caller's reference to `call`. */
static void compose(struct plan *p, torc_call_credentials *call)
{
    to_backend(p, OPEN);
    p->own = torc_credentials_composite(p->t->open, call, NULL);
    torc_call_credentials_unref(call);
}

static void flow_plugin(struct plan *p)
{
    compose(p, answers_credentials(p->t->answers));
}

static void flow_jwt_file(struct plan *p)
{
    char *path = path_of(p->t, "token.jwt");
    compose(p, torc_call_credentials_jwt_token_file(path, NULL));
    tc_free(path);
}

/* TLS to OPEN, with Google's default credentials: of this file (NULL: of the metadata server). */
static void google(struct plan *p, const char *credentials_file)
{
    torc_error *error = NULL;
    struct torc_google_options o = {TORC_SIZE(torc_google_options), .roots_pem = p->t->tls.root.cert_pem,
                                    .metadata_host = http_server_address(p->t->metadata),
                                    .credentials_file = credentials_file};
    to_backend(p, OPEN);
    p->own = torc_credentials_google_default(&o, &error);
    if (!p->own)
        fail_msg("%s", torc_error_text(error));
}

static void flow_metadata_server(struct plan *p)
{
    google(p, NULL);
}

static void flow_service_account(struct plan *p)
{
    char *path = path_of(p->t, "account.json");
    google(p, path);
    tc_free(path);
}

static void flow_csds(struct plan *p)
{
    p->target = tc_asprintf("ipv4:%s", p->csds ? p->csds : "127.0.0.1:1");
}

static const struct {
    const char *name;
    unsigned weight; /* of the sum of all weights: the flow's share of the channels */
    bool in_vain;    /* no RPC can succeed */
    void (*plan)(struct plan *p);
} flows[TEARDOWN_FLOWS] = {
    {"ring, load reports", 3, false, flow_ring},
    {"aggregate", 2, false, flow_aggregate},
    {"logical DNS", 2, false, flow_logical_dns},
    {"filters, retries of a route", 2, false, flow_filtered},
    {"no listener", 1, true, flow_no_listener},
    {"large ring", 2, false, flow_large_ring},
    {"xds TLS", 4, false, flow_xds_tls},
    {"xds TLS, certificates are late", 1, true, flow_late_provider},
    {"xds TLS by a proxy", 3, false, flow_xds_proxy},
    {"retries", 2, false, flow_retries},
    {"hedges", 2, false, flow_hedges},
    {"hosts file", 1, false, flow_hosts_file},
    {"name server", 3, false, flow_name_server},
    {"silent backend", 1, true, flow_silent_backend},
    {"nobody", 1, true, flow_nobody},
    {"TLS", 2, false, flow_tls},
    {"TLS of files", 2, false, flow_tls_files},
    {"proxy", 3, false, flow_proxy},
    {"credentials of the application", 3, false, flow_plugin},
    {"JWT file", 3, false, flow_jwt_file},
    {"tokens of a metadata server", 3, false, flow_metadata_server},
    {"tokens signed by a service account", 2, false, flow_service_account},
    {"CSDS of its own runtime", 2, false, flow_csds},
};

/* Returns the number of a random flow. */
static size_t choose(struct tc_rng *rng)
{
    unsigned total = 0, i = 0;
    for (; i < TEARDOWN_FLOWS; i++)
        total += flows[i].weight;
    unsigned at = chance(rng, total);
    for (i = 0; at >= flows[i].weight; i++)
        at -= flows[i].weight;
    return i;
}

torc_channel *teardown_channel(struct teardown *t, torc_runtime *rt, const char *csds, struct tc_rng *rng, size_t *out)
{
    struct plan p = {.t = t, .rng = rng, .csds = csds};
    size_t flow = *out = choose(rng);
    t->opened[flow]++;
    p.o = (struct torc_channel_options){TORC_SIZE(torc_channel_options),
                                        .credentials = torc_credentials_insecure(),
                                        .xds_bootstrap_json = t->tls.bootstrap,
                                        .backoff_initial_ms = 5,
                                        .backoff_max_ms = 20,
                                        .connect_timeout_ms = chance(rng, 2) ? 5 : 20000};
    flows[flow].plan(&p);
    char *proxy = p.o.http_proxy ? tc_asprintf("http://%s", p.o.http_proxy) : NULL;
    torc_error *error = NULL;
    p.o.http_proxy = proxy;
    if (p.own)
        p.o.credentials = p.own;
    torc_channel *ch = torc_channel_new(rt, p.target, &p.o, &error);
    if (!ch)
        fail_msg("%s: %s", flows[flow].name, torc_error_text(error));
    torc_credentials_unref(p.own);
    tc_free(proxy);
    tc_free(p.target);
    return ch;
}

void teardown_count(struct teardown *t, size_t flow, int code)
{
    atomic_fetch_add(code == TORC_STATUS_OK ? &t->succeeded[flow] : &t->failed[flow], 1);
}

static void count_streams(struct tc_control_plane *cp, void *arg)
{
    struct teardown *t = arg;
    (void)cp;
    t->load_streams = tc_lrs_streams_so_far(kit_mesh_lrs(t->k));
}

void teardown_report(struct teardown *t)
{
    kit_mesh_do(t->k, count_streams, t);
    print_message("%8llu streams of load reports\n", (unsigned long long)t->load_streams);
    for (size_t i = 0; i < TEARDOWN_FLOWS; i++)
        print_message("%8llu channels, %8llu RPCs succeeded, %8llu failed: %s\n", (unsigned long long)t->opened[i],
                      (unsigned long long)t->succeeded[i], (unsigned long long)t->failed[i], flows[i].name);
    for (size_t i = 0; i < TEARDOWN_FLOWS; i++)
        if (t->opened[i] > 300 && !flows[i].in_vain && t->succeeded[i] == 0)
            fail_msg("no RPC ever succeeded: %s", flows[i].name);
}
