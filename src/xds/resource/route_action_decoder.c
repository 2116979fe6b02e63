/* Decodes what a route does with an RPC: clusters and their weights (A28), hash policies (A42), retries (A44), timeouts
 * (A31), rewriting of the authority (A81, only from a trusted server).
 *
 * A route whose cluster specifier gRPC does not support is left out without an error (A28): other clients may need the
 * route, and gRPC can use the rest of the table. A route whose specifier is a plugin is left out as well; the plugin
 * must be in the table's list.
 *
 * What the decoded route points at is kept by the resource's arena. An error is added at its path, and decoding goes
 * on; tc_decode_end then drops the resource. Runs on any thread. */
#include <stdlib.h>

#include <torc/status.h>

#include "xds/resource/http_filter_decoder.h"
#include "xds/resource/route_config_decoder.h"

typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfiguration;
typedef Envoy__Config__Route__V3__RouteAction RouteAction;
typedef Envoy__Config__Route__V3__RouteAction__HashPolicy HashPolicy;
typedef Envoy__Config__Route__V3__RetryPolicy RetryPolicy;
typedef Envoy__Config__Route__V3__WeightedCluster__ClusterWeight ClusterWeight;
typedef Envoy__Config__Route__V3__ClusterSpecifierPlugin ClusterSpecifierPlugin;

#define CLUSTER(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__CLUSTER_SPECIFIER_##x
#define HASH(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__HASH_POLICY__POLICY_SPECIFIER_##x

enum {
    RETRY_BASE_DEFAULT_MS = 25,
    RETRY_MAX_DEFAULT_MS = 250,
};

/* Returns the bit of a code in retry_on; 0 if A44 does not have the code. */
static uint32_t retry_code(struct tc_slice name)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {
        {"cancelled", TORC_STATUS_CANCELLED},     {"deadline-exceeded", TORC_STATUS_DEADLINE_EXCEEDED},
        {"internal", TORC_STATUS_INTERNAL},       {"resource-exhausted", TORC_STATUS_RESOURCE_EXHAUSTED},
        {"unavailable", TORC_STATUS_UNAVAILABLE},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(codes); i++)
        if (tc_slice_eq_str(name, codes[i].name))
            return 1u << codes[i].code;
    return 0; /* A44: other codes are ignored */
}

/* Stores the duration in *ms, rounded down. Returns false with an error if it is absent, invalid or 0. */
static bool decode_interval(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d,
                            uint64_t *ms)
{
    uint64_t ns;
    if (!tc_decode_duration_ns(dec, field, d, &ns))
        return false;
    if (ns == 0) {
        tc_validation_add_at(dec->errors, field, "must be greater than zero");
        return false;
    }
    *ms = ns < 1000000 ? 1 : ns / 1000000; /* less than 1 ms counts as 1 ms */
    return true;
}

static void decode_back_off(struct tc_decoder *dec, const Envoy__Config__Route__V3__RetryPolicy__RetryBackOff *m,
                            struct tc_route_retry *out)
{
    tc_validation_push(dec->errors, ".retry_back_off");
    if (decode_interval(dec, ".base_interval", m->base_interval, &out->base_interval_ms)) {
        out->max_interval_ms = out->base_interval_ms * 10;
        if (m->max_interval && decode_interval(dec, ".max_interval", m->max_interval, &out->max_interval_ms) &&
            out->max_interval_ms < out->base_interval_ms)
            tc_validation_add_at(dec->errors, ".max_interval", "must not be less than base_interval");
    }
    tc_validation_pop(dec->errors);
}

const struct tc_route_retry *tc_decode_retry_policy(struct tc_decoder *dec, const RetryPolicy *m)
{
    size_t errors = dec->errors->count;
    struct tc_route_retry *out = TC_RESOURCE_NEW(dec->arena, struct tc_route_retry);
    *out = (struct tc_route_retry){
        .num_retries = 1, .base_interval_ms = RETRY_BASE_DEFAULT_MS, .max_interval_ms = RETRY_MAX_DEFAULT_MS};
    struct tc_slice rest = tc_slice_str(m->retry_on), part;
    bool more = true;
    while (tc_slice_split(&rest, &more, ',', &part))
        out->retry_on |= retry_code(tc_slice_trim(part));
    if (m->num_retries) {
        out->num_retries = m->num_retries->value;
        if (out->num_retries == 0)
            tc_validation_add_at(dec->errors, ".num_retries", "must be greater than 0");
    }
    if (m->retry_back_off)
        decode_back_off(dec, m->retry_back_off, out);
    return dec->errors->count == errors ? out : NULL;
}

/* Returns false with errors. */
static bool decode_hash_header(struct tc_decoder *dec,
                               const Envoy__Config__Route__V3__RouteAction__HashPolicy__Header *m,
                               struct tc_hash_policy *out)
{
    size_t errors = dec->errors->count;
    char *why = NULL;
    out->kind = TC_HASH_HEADER;
    out->header = tc_decode_header_name(dec, m->header_name);
    tc_validation_push(dec->errors, ".header");
    tc_decode_nonempty(dec, m->header_name, ".header_name");
    if (m->regex_rewrite) {
        tc_validation_push(dec->errors, ".regex_rewrite");
        out->regex = tc_decode_regex(dec, ".pattern", m->regex_rewrite->pattern);
        out->rewrite = tc_resource_arena_text(dec->arena, m->regex_rewrite->substitution);
        if (out->regex && !tc_regex_check_rewrite(out->regex, out->rewrite, &why))
            tc_validation_add_at(dec->errors, ".substitution", "%s", why);
        tc_free(why);
        tc_validation_pop(dec->errors);
    }
    tc_validation_pop(dec->errors);
    return dec->errors->count == errors;
}

/* Returns false if the policy is left out: it is invalid, or of a kind that A42 ignores and not terminal. */
static bool decode_hash_policy(struct tc_decoder *dec, const HashPolicy *m, struct tc_hash_policy *out)
{
    *out = (struct tc_hash_policy){.terminal = m->terminal};
    switch (m->policy_specifier_case) {
    case HASH(HEADER):
        return decode_hash_header(dec, m->header, out);
    case HASH(FILTER_STATE):
        out->kind = strcmp(m->filter_state->key, "io.grpc.channel_id") == 0 ? TC_HASH_CHANNEL_ID : TC_HASH_NOTHING;
        break;
    default:
        out->kind = TC_HASH_NOTHING;
        break;
    }
    return out->kind != TC_HASH_NOTHING || out->terminal;
}

size_t tc_decode_hash_policies(struct tc_decoder *dec, size_t n, HashPolicy *const *list,
                               const struct tc_hash_policy **out)
{
    if (n > TC_HASH_POLICIES_MAX) {
        tc_validation_add_at(dec->errors, ".hash_policy", "%zu hash policies, more than %d", n, TC_HASH_POLICIES_MAX);
        return 0;
    }
    struct tc_hash_policy *policies = TC_RESOURCE_ARRAY(dec->arena, n, struct tc_hash_policy);
    size_t used = 0;
    for (size_t i = 0; i < n && !dec->reg->ring_hash_off; i++) {
        tc_validation_push(dec->errors, ".hash_policy[%zu]", i);
        if (decode_hash_policy(dec, list[i], &policies[used]))
            used++;
        tc_validation_pop(dec->errors);
    }
    *out = policies;
    return used;
}

/* A28: a cluster of weight 0 is left out, after its fields are checked. */
static void decode_weighted(struct tc_decoder *dec, const Envoy__Config__Route__V3__WeightedCluster *m,
                            struct tc_route *out)
{
    size_t n = 0;
    struct tc_weighted_cluster *clusters = TC_RESOURCE_ARRAY(dec->arena, m->n_clusters, struct tc_weighted_cluster);
    tc_validation_push(dec->errors, ".weighted_clusters");
    for (size_t i = 0; i < m->n_clusters; i++) {
        const ClusterWeight *c = m->clusters[i];
        struct tc_weighted_cluster *to = &clusters[n];
        tc_validation_push(dec->errors, ".clusters[%zu]", i);
        tc_decode_nonempty(dec, c->name, ".name");
        if (!c->weight)
            tc_validation_add_at(dec->errors, ".weight", "field not present");
        TC_DECODE_FILTER_OVERRIDES(dec, c, &to->overrides);
        tc_validation_pop(dec->errors);
        if (!c->weight || c->weight->value == 0)
            continue;
        to->name = tc_resource_arena_rstr(dec->arena, c->name);
        to->weight = c->weight->value;
        out->total_weight += to->weight;
        n++;
    }
    if (n == 0)
        tc_validation_add(dec->errors, "no valid clusters specified");
    if (out->total_weight > UINT32_MAX)
        tc_validation_add(dec->errors, "sum of cluster weights exceeds uint32 max");
    tc_validation_pop(dec->errors);
    out->kind = TC_ROUTE_WEIGHTED;
    out->n_weighted = n;
    out->weighted = clusters;
}

static int compare_plugins(const void *a, const void *b)
{
    const ClusterSpecifierPlugin *const *x = a, *const *y = b;
    return strcmp((*x)->extension ? (*x)->extension->name : "", (*y)->extension ? (*y)->extension->name : "");
}

static bool plugin_known(const RouteConfiguration *m, char *name)
{
    Envoy__Config__Core__V3__TypedExtensionConfig extension = {.name = name};
    ClusterSpecifierPlugin plugin = {.extension = &extension}, *key = &plugin;
    return m->n_cluster_specifier_plugins &&
           bsearch(&key, m->cluster_specifier_plugins, m->n_cluster_specifier_plugins, sizeof(key), compare_plugins);
}

void tc_decode_sort_plugins(const RouteConfiguration *m)
{
    if (m->n_cluster_specifier_plugins)
        qsort(m->cluster_specifier_plugins, m->n_cluster_specifier_plugins, sizeof(*m->cluster_specifier_plugins),
              compare_plugins);
}

/* Returns false when the route is left out. */
static bool decode_cluster(struct tc_decoder *dec, const RouteConfiguration *m, const RouteAction *a,
                           struct tc_route *out)
{
    switch (a->cluster_specifier_case) {
    case CLUSTER(CLUSTER):
        out->kind = TC_ROUTE_CLUSTER;
        out->cluster = tc_resource_arena_rstr(dec->arena, a->cluster);
        tc_decode_nonempty(dec, a->cluster, ".cluster");
        return true;
    case CLUSTER(WEIGHTED_CLUSTERS):
        decode_weighted(dec, a->weighted_clusters, out);
        return true;
    case CLUSTER(CLUSTER_SPECIFIER_PLUGIN):
        /* A listed plugin is optional, or decode_plugins has added an error: the route is left out. */
        if (!plugin_known(m, a->cluster_specifier_plugin))
            tc_validation_add_at(dec->errors, ".cluster_specifier_plugin",
                                 "unknown cluster specifier plugin name \"%s\"",
                                 tc_decode_clip(dec, tc_slice_str(a->cluster_specifier_plugin)));
        return false;
    default: /* A28: cluster_header, newer kinds, or none */
        return false;
    }
}

static void decode_max_stream_duration(struct tc_decoder *dec, const RouteAction *a, struct tc_route *out)
{
    const Envoy__Config__Route__V3__RouteAction__MaxStreamDuration *m = a->max_stream_duration;
    if (!m)
        return;
    /* A31: grpc_timeout_header_max has precedence over max_stream_duration. */
    const Google__Protobuf__Duration *d = m->grpc_timeout_header_max;
    const char *field = d ? ".max_stream_duration.grpc_timeout_header_max" : ".max_stream_duration.max_stream_duration";
    if (!d)
        d = m->max_stream_duration;
    if (d)
        out->has_max_stream_duration = tc_decode_duration_ns(dec, field, d, &out->max_stream_duration_ns);
}

bool tc_decode_is_trusted(const struct tc_decoder *dec)
{
    return dec->ctx && dec->ctx->server && dec->ctx->server->trusted_xds_server;
}

bool tc_decode_route_action(struct tc_decoder *dec, const RouteConfiguration *m, const RouteAction *a,
                            struct tc_route *out)
{
    bool used = decode_cluster(dec, m, a, out);
    if (!used)
        return false;
    decode_max_stream_duration(dec, a, out);
    out->n_hash_policies = tc_decode_hash_policies(dec, a->n_hash_policy, a->hash_policy, &out->hash_policies);
    if (a->retry_policy) {
        tc_validation_push(dec->errors, ".retry_policy");
        out->retry = tc_decode_retry_policy(dec, a->retry_policy);
        tc_validation_pop(dec->errors);
    }
    /* A81: honoured only when the bootstrap trusts the server. */
    out->auto_host_rewrite = a->host_rewrite_specifier_case ==
                                 ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__HOST_REWRITE_SPECIFIER_AUTO_HOST_REWRITE &&
                             a->auto_host_rewrite->value && tc_decode_is_trusted(dec);
    return true;
}
