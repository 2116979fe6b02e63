#include <torc/status.h>

#include "resource/filter_parse.h"
#include "resource/matchers_parse.h"
#include "resource/route_parse.h"

typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfiguration;
typedef Envoy__Config__Route__V3__RouteAction RouteAction;
typedef Envoy__Config__Route__V3__RouteAction__HashPolicy HashPolicy;
typedef Envoy__Config__Route__V3__RetryPolicy RetryPolicy;
typedef Envoy__Config__Route__V3__WeightedCluster__ClusterWeight ClusterWeight;

#define CLUSTER(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__CLUSTER_SPECIFIER_##x
#define HASH(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__HASH_POLICY__POLICY_SPECIFIER_##x

#define RETRY_BASE_DEFAULT_MS 25u
#define RETRY_MAX_DEFAULT_MS 250u

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
    return 0; /* A44: others are ignored */
}

static bool read_interval(struct tc_reading *p, const char *field, const Google__Protobuf__Duration *d, uint64_t *ms)
{
    uint64_t ns;
    tc_faults_push(p->faults, "%s", field);
    bool ok = tc_read_duration_ns(p, d, &ns);
    if (ok && ns == 0) {
        tc_faults_add(p->faults, "must be greater than zero");
        ok = false;
    }
    tc_faults_pop(p->faults);
    if (ok)
        *ms = ns < 1000000 ? 1 : ns / 1000000; /* A44: less than 1 ms is treated as 1 ms */
    return ok;
}

static void read_back_off(struct tc_reading *p, const Envoy__Config__Route__V3__RetryPolicy__RetryBackOff *m,
                          struct tc_route_retry *out)
{
    tc_faults_push(p->faults, ".retry_back_off");
    if (read_interval(p, ".base_interval", m->base_interval, &out->base_interval_ms)) {
        out->max_interval_ms = out->base_interval_ms * 10;
        if (m->max_interval && read_interval(p, ".max_interval", m->max_interval, &out->max_interval_ms) &&
            out->max_interval_ms < out->base_interval_ms)
            tc_faults_add_at(p->faults, ".max_interval", "must not be less than base_interval");
    }
    tc_faults_pop(p->faults);
}

const struct tc_route_retry *tc_read_retry_policy(struct tc_reading *p, const RetryPolicy *m)
{
    size_t faults = p->faults->count;
    struct tc_route_retry *out = TC_STORE_NEW(p->store, struct tc_route_retry);
    *out = (struct tc_route_retry){
        .num_retries = 1, .base_interval_ms = RETRY_BASE_DEFAULT_MS, .max_interval_ms = RETRY_MAX_DEFAULT_MS};
    struct tc_slice rest = tc_slice_str(m->retry_on), part;
    bool more = true;
    while (tc_slice_split(&rest, &more, ',', &part))
        out->retry_on |= retry_code(tc_slice_trim(part));
    if (m->num_retries) {
        out->num_retries = m->num_retries->value;
        if (out->num_retries == 0)
            tc_faults_add_at(p->faults, ".num_retries", "must be greater than 0");
    }
    if (m->retry_back_off)
        read_back_off(p, m->retry_back_off, out);
    return p->faults->count == faults ? out : NULL;
}

static bool read_hash_header(struct tc_reading *p, const Envoy__Config__Route__V3__RouteAction__HashPolicy__Header *m,
                             struct tc_hash_policy *out)
{
    size_t faults = p->faults->count;
    char *why = NULL;
    out->kind = TC_HASH_HEADER;
    out->header = tc_read_header_name(p, m->header_name);
    tc_faults_push(p->faults, ".header");
    tc_read_nonempty(p, m->header_name, ".header_name");
    if (m->regex_rewrite) {
        tc_faults_push(p->faults, ".regex_rewrite");
        tc_faults_push(p->faults, ".pattern");
        out->regex = tc_read_regex(p, m->regex_rewrite->pattern);
        tc_faults_pop(p->faults);
        out->rewrite = tc_store_text(p->store, m->regex_rewrite->substitution);
        if (out->regex && !tc_regex_check_rewrite(out->regex, out->rewrite, &why))
            tc_faults_add_at(p->faults, ".substitution", "%s", why);
        tc_free(why);
        tc_faults_pop(p->faults);
    }
    tc_faults_pop(p->faults);
    return p->faults->count == faults;
}

/* False when the policy is left out: A42 lets those that gRPC does not support pass without a result. */
static bool read_hash_policy(struct tc_reading *p, const HashPolicy *m, struct tc_hash_policy *out)
{
    *out = (struct tc_hash_policy){.terminal = m->terminal};
    switch (m->policy_specifier_case) {
    case HASH(HEADER):
        return read_hash_header(p, m->header, out);
    case HASH(FILTER_STATE):
        out->kind = TC_HASH_CHANNEL_ID;
        return strcmp(m->filter_state->key, "io.grpc.channel_id") == 0;
    default:
        return false;
    }
}

static void read_hash_policies(struct tc_reading *p, const RouteAction *a, struct tc_route *out)
{
    if (a->n_hash_policy > TC_HASH_POLICIES_MAX) {
        tc_faults_add_at(p->faults, ".hash_policy", "%zu hash policies, more than %d", a->n_hash_policy,
                         TC_HASH_POLICIES_MAX);
        return;
    }
    struct tc_hash_policy *policies = TC_STORE_ARRAY(p->store, a->n_hash_policy, struct tc_hash_policy);
    size_t n = 0;
    for (size_t i = 0; i < a->n_hash_policy && !p->reg->ring_hash_off; i++) {
        tc_faults_push(p->faults, ".hash_policy[%zu]", i);
        if (read_hash_policy(p, a->hash_policy[i], &policies[n]))
            n++;
        tc_faults_pop(p->faults);
    }
    out->n_hash_policies = n;
    out->hash_policies = policies;
}

static void read_weighted(struct tc_reading *p, const Envoy__Config__Route__V3__WeightedCluster *m,
                          struct tc_route *out)
{
    size_t n = 0;
    struct tc_weighted_cluster *clusters = TC_STORE_ARRAY(p->store, m->n_clusters, struct tc_weighted_cluster);
    tc_faults_push(p->faults, ".weighted_clusters");
    for (size_t i = 0; i < m->n_clusters; i++) {
        const ClusterWeight *c = m->clusters[i];
        struct tc_weighted_cluster *to = &clusters[n];
        tc_faults_push(p->faults, ".clusters[%zu]", i);
        tc_read_nonempty(p, c->name, ".name");
        if (!c->weight)
            tc_faults_add_at(p->faults, ".weight", "field not present");
        TC_READ_FILTER_OVERRIDES(p, c, &to->overrides);
        tc_faults_pop(p->faults);
        if (!c->weight || c->weight->value == 0)
            continue;
        to->name = tc_store_rstr(p->store, c->name);
        to->weight = c->weight->value;
        out->total_weight += to->weight;
        n++;
    }
    if (n == 0)
        tc_faults_add(p->faults, "no valid clusters specified");
    if (out->total_weight > UINT32_MAX)
        tc_faults_add(p->faults, "sum of cluster weights exceeds uint32 max");
    tc_faults_pop(p->faults);
    out->kind = TC_ROUTE_WEIGHTED;
    out->n_weighted = n;
    out->weighted = clusters;
}

static bool plugin_known(const RouteConfiguration *m, const char *name)
{
    for (size_t i = 0; i < m->n_cluster_specifier_plugins; i++) {
        const Envoy__Config__Core__V3__TypedExtensionConfig *e = m->cluster_specifier_plugins[i]->extension;
        if (e && strcmp(e->name, name) == 0)
            return true;
    }
    return false;
}

/* False when the route is left out. */
static bool read_cluster(struct tc_reading *p, const RouteConfiguration *m, const RouteAction *a, struct tc_route *out)
{
    switch (a->cluster_specifier_case) {
    case CLUSTER(CLUSTER):
        out->kind = TC_ROUTE_CLUSTER;
        out->cluster = tc_store_rstr(p->store, a->cluster);
        tc_read_nonempty(p, a->cluster, ".cluster");
        return true;
    case CLUSTER(WEIGHTED_CLUSTERS):
        read_weighted(p, a->weighted_clusters, out);
        return true;
    case CLUSTER(CLUSTER_SPECIFIER_PLUGIN):
        /* Every plugin that the configuration could name is optional and unsupported: the route is left out. */
        if (!plugin_known(m, a->cluster_specifier_plugin))
            tc_faults_add_at(p->faults, ".cluster_specifier_plugin", "unknown cluster specifier plugin name \"%s\"",
                             tc_read_clip(p, tc_slice_str(a->cluster_specifier_plugin)));
        return false;
    default: /* A28: cluster_header and what is newer */
        return false;
    }
}

static void read_max_stream_duration(struct tc_reading *p, const RouteAction *a, struct tc_route *out)
{
    const Envoy__Config__Route__V3__RouteAction__MaxStreamDuration *m = a->max_stream_duration;
    if (!m)
        return;
    /* A31: grpc_timeout_header_max counts before max_stream_duration. */
    const Google__Protobuf__Duration *d = m->grpc_timeout_header_max;
    const char *field = d ? "grpc_timeout_header_max" : "max_stream_duration";
    if (!d)
        d = m->max_stream_duration;
    if (!d)
        return;
    tc_faults_push(p->faults, ".max_stream_duration.%s", field);
    out->has_max_stream_duration = tc_read_duration_ns(p, d, &out->max_stream_duration_ns);
    tc_faults_pop(p->faults);
}

bool tc_read_route_action(struct tc_reading *p, const RouteConfiguration *m, const RouteAction *a, struct tc_route *out)
{
    bool used = read_cluster(p, m, a, out);
    if (!used)
        return false;
    read_max_stream_duration(p, a, out);
    read_hash_policies(p, a, out);
    if (a->retry_policy) {
        tc_faults_push(p->faults, ".retry_policy");
        out->retry = tc_read_retry_policy(p, a->retry_policy);
        tc_faults_pop(p->faults);
    }
    /* A81: honoured only when the bootstrap trusts the server. */
    out->auto_host_rewrite = a->host_rewrite_specifier_case ==
                                 ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__HOST_REWRITE_SPECIFIER_AUTO_HOST_REWRITE &&
                             a->auto_host_rewrite->value && p->ctx && p->ctx->server &&
                             p->ctx->server->trusted_xds_server;
    return true;
}
