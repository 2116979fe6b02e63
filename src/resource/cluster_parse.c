#include <stdlib.h>

#include "base/mem.h"
#include "pb/envoy/config/cluster/v3/cluster.pb-c.h"
#include "pb/envoy/extensions/clusters/aggregate/v3/cluster.pb-c.h"
#include "pb/envoy/extensions/upstreams/http/v3/http_protocol_options.pb-c.h"
#include "resource/cluster.h"
#include "resource/lb_config.h"
#include "resource/outlier_parse.h"
#include "resource/tls_parse.h"

typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Extensions__Clusters__Aggregate__V3__ClusterConfig AggregateConfig;
typedef Envoy__Extensions__Upstreams__Http__V3__HttpProtocolOptions HttpProtocolOptions;

#define DISCOVERY(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__DISCOVERY_TYPE__##x
#define AGGREGATE "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
#define HTTP_OPTIONS "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

static void read_eds(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    const Envoy__Config__Cluster__V3__Cluster__EdsClusterConfig *eds = m->eds_cluster_config;
    out->kind = TC_CLUSTER_EDS;
    tc_faults_push(p->faults, ".eds_cluster_config");
    if (!eds) {
        tc_faults_add(p->faults, "field not present");
    } else {
        if (!eds->eds_config)
            tc_faults_add_at(p->faults, ".eds_config", "field not present");
        else if (!tc_read_is_ads_or_self(eds->eds_config))
            tc_faults_add_at(p->faults, ".eds_config", "must be ads or self");
        if (*eds->service_name)
            out->eds_service = tc_store_rstr(p->store, eds->service_name);
        else if (tc_slice_starts(tc_slice_str(m->name), tc_slice_str("xdstp:")))
            tc_faults_add_at(p->faults, ".service_name", "must be set if Cluster resource has an xdstp name");
    }
    tc_faults_pop(p->faults);
    out->eds_name = out->eds_service ? out->eds_service : out->name;
}

static void read_dns_address(struct tc_reading *p, const Envoy__Config__Core__V3__SocketAddress *a,
                             struct tc_cluster *out)
{
    struct tc_buf target = {0};
    if (*a->resolver_name)
        tc_faults_add_at(p->faults, ".resolver_name", "LOGICAL_DNS clusters must NOT have a custom resolver name set");
    tc_read_nonempty(p, a->address, ".address");
    if (a->port_specifier_case != ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE)
        tc_faults_add_at(p->faults, ".port_value", "field not present");
    else if (a->port_value > 65535)
        tc_faults_add_at(p->faults, ".port_value", "invalid port");
    else {
        bool v6 = strchr(a->address, ':') != NULL;
        tc_buf_printf(&target, v6 ? "[%s]:%u" : "%s:%u", a->address, a->port_value);
        out->dns_target = tc_store_rstr(p->store, tc_buf_cstr(&target));
    }
    tc_buf_fini(&target);
}

static void read_dns_endpoint(struct tc_reading *p, const Envoy__Config__Endpoint__V3__LbEndpoint *e,
                              struct tc_cluster *out)
{
    tc_faults_push(p->faults, ".lb_endpoints[0].endpoint");
    if (e->host_identifier_case != ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT) {
        tc_faults_add(p->faults, "field not present");
    } else {
        const Envoy__Config__Core__V3__Address *a = e->endpoint->address;
        tc_faults_push(p->faults, ".address");
        if (!a) {
            tc_faults_add(p->faults, "field not present");
        } else {
            tc_faults_push(p->faults, ".socket_address");
            if (a->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
                tc_faults_add(p->faults, "field not present");
            else
                read_dns_address(p, a->socket_address, out);
            tc_faults_pop(p->faults);
        }
        tc_faults_pop(p->faults);
    }
    tc_faults_pop(p->faults);
}

static void read_dns(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    out->kind = TC_CLUSTER_LOGICAL_DNS;
    tc_faults_push(p->faults, ".load_assignment");
    if (!m->load_assignment) {
        tc_faults_add(p->faults, "field not present");
    } else if (m->load_assignment->n_endpoints != 1) {
        tc_faults_add_at(p->faults, ".endpoints",
                         "must contain exactly one locality for LOGICAL_DNS cluster, found %zu",
                         m->load_assignment->n_endpoints);
    } else {
        const Envoy__Config__Endpoint__V3__LocalityLbEndpoints *l = m->load_assignment->endpoints[0];
        tc_faults_push(p->faults, ".endpoints[0]");
        if (l->n_lb_endpoints != 1)
            tc_faults_add_at(p->faults, ".lb_endpoints",
                             "must contain exactly one endpoint for LOGICAL_DNS cluster, found %zu", l->n_lb_endpoints);
        else
            read_dns_endpoint(p, l->lb_endpoints[0], out);
        tc_faults_pop(p->faults);
    }
    tc_faults_pop(p->faults);
}

static void read_aggregate(struct tc_reading *p, struct tc_slice bytes, struct tc_cluster *out)
{
    out->kind = TC_CLUSTER_AGGREGATE;
    const AggregateConfig *m =
        TC_READ(p, &envoy__extensions__clusters__aggregate__v3__cluster_config__descriptor, AggregateConfig, bytes);
    if (!m)
        return;
    tc_faults_push(p->faults, ".clusters");
    if (m->n_clusters == 0)
        tc_faults_add(p->faults, "must be non-empty");
    if (m->n_clusters > p->limits.aggregate_children) {
        tc_faults_add(p->faults, "%zu clusters, more than %zu", m->n_clusters, p->limits.aggregate_children);
    } else {
        struct tc_rstr **children = TC_STORE_ARRAY(p->store, m->n_clusters, struct tc_rstr *);
        for (size_t i = 0; i < m->n_clusters; i++)
            children[i] = tc_store_rstr(p->store, m->clusters[i]);
        out->n_children = m->n_clusters;
        out->children = children;
    }
    tc_faults_pop(p->faults);
}

static void read_custom_type(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    struct tc_any any;
    tc_faults_push(p->faults, ".cluster_type.typed_config");
    if (tc_read_any(p, m->cluster_type->typed_config, &any)) {
        if (tc_slice_eq_str(any.name, AGGREGATE))
            read_aggregate(p, any.bytes, out);
        else
            tc_faults_add(p->faults, "unknown cluster_type extension: %s", tc_read_clip(p, any.name));
    }
    tc_faults_pop(p->faults);
}

static void read_discovery(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    if (m->cluster_discovery_type_case == ENVOY__CONFIG__CLUSTER__V3__CLUSTER__CLUSTER_DISCOVERY_TYPE_CLUSTER_TYPE)
        read_custom_type(p, m, out);
    else if (m->cluster_discovery_type_case == ENVOY__CONFIG__CLUSTER__V3__CLUSTER__CLUSTER_DISCOVERY_TYPE__NOT_SET)
        tc_faults_add_at(p->faults, ".type", "unsupported value STATIC");
    else if (m->type == DISCOVERY(EDS))
        read_eds(p, m, out);
    else if (m->type == DISCOVERY(LOGICAL_DNS))
        read_dns(p, m, out);
    else
        tc_faults_add_at(
            p->faults, ".type", "unsupported value %s",
            tc_read_enum_name(p, &envoy__config__cluster__v3__cluster__discovery_type__descriptor, (int)m->type));
}

static int by_bytes(const void *a, const void *b)
{
    return tc_slice_cmp(*(const struct tc_slice *)a, *(const struct tc_slice *)b);
}

/* A85: of what is listed twice one counts, and what is not known is ignored. */
static void read_metrics(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    static const struct {
        const char *name;
        unsigned bit;
    } fields[] = {{"cpu_utilization", TC_LRS_CPU},
                  {"mem_utilization", TC_LRS_MEM},
                  {"application_utilization", TC_LRS_APPLICATION},
                  {"named_metrics.*", TC_LRS_ALL_NAMED}};
    const struct tc_slice prefix = tc_slice_str("named_metrics.");
    struct tc_slice *names = TC_STORE_ARRAY(p->store, m->n_lrs_report_endpoint_metrics, struct tc_slice);
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < m->n_lrs_report_endpoint_metrics; i++) {
        struct tc_slice name = tc_slice_str(m->lrs_report_endpoint_metrics[i]);
        unsigned bit = 0;
        for (size_t j = 0; j < TC_ARRAY_LEN(fields); j++)
            bit |= tc_slice_eq_str(name, fields[j].name) ? fields[j].bit : 0;
        out->lrs_metrics |= bit;
        if (!bit && tc_slice_starts(name, prefix))
            names[n++] = tc_store_text(p->store, m->lrs_report_endpoint_metrics[i] + prefix.len);
    }
    if (n)
        qsort(names, n, sizeof(*names), by_bytes);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !tc_slice_eq(names[i], names[kept - 1]))
            names[kept++] = names[i];
    out->n_lrs_names = kept;
    out->lrs_names = names;
}

static void read_reporting(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    if (m->lrs_server) {
        out->has_lrs = m->lrs_server->config_source_specifier_case ==
                       ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF;
        if (!out->has_lrs)
            tc_faults_add_at(p->faults, ".lrs_server", "must be self");
        else if (p->ctx->server && p->ctx->server->key)
            out->lrs_server = tc_store_rstr(p->store, p->ctx->server->key->data);
    }
    read_metrics(p, m, out);
}

static void read_circuit_breakers(const Cluster *m, struct tc_cluster *out)
{
    out->max_concurrent_requests = TC_CIRCUIT_BREAKER_DEFAULT;
    for (size_t i = 0; m->circuit_breakers && i < m->circuit_breakers->n_thresholds; i++) {
        const Envoy__Config__Cluster__V3__CircuitBreakers__Thresholds *t = m->circuit_breakers->thresholds[i];
        if (t->priority != ENVOY__CONFIG__CORE__V3__ROUTING_PRIORITY__DEFAULT)
            continue;
        if (t->max_requests)
            out->max_concurrent_requests = t->max_requests->value;
        return; /* A32: the first of them counts */
    }
}

static void read_override_host(const Cluster *m, struct tc_cluster *out)
{
    out->override_host_status = TC_OVERRIDE_HOST_DEFAULT;
    if (!m->common_lb_config || !m->common_lb_config->override_host_status)
        return;
    const Envoy__Config__Core__V3__HealthStatusSet *set = m->common_lb_config->override_host_status;
    out->override_host_status = 0;
    for (size_t i = 0; i < set->n_statuses; i++) /* A55: others are ignored */
        if (set->statuses[i] == ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__UNKNOWN ||
            set->statuses[i] == ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__HEALTHY ||
            set->statuses[i] == ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__DRAINING)
            out->override_host_status |= 1u << (unsigned)set->statuses[i];
}

static void read_upstream_config(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    struct tc_any any;
    out->idle_timeout_ms = TC_IDLE_TIMEOUT_DEFAULT_MS;
    if (!m->upstream_config)
        return;
    tc_faults_push(p->faults, ".upstream_config.typed_config");
    if (tc_read_any(p, m->upstream_config->typed_config, &any)) {
        const HttpProtocolOptions *o = NULL;
        if (!tc_slice_eq_str(any.name, HTTP_OPTIONS))
            tc_faults_add(p->faults, "unsupported upstream config type %s", tc_read_clip(p, any.name));
        else
            o = TC_READ(p, &envoy__extensions__upstreams__http__v3__http_protocol_options__descriptor,
                        HttpProtocolOptions, any.bytes);
        if (o && o->common_http_protocol_options && o->common_http_protocol_options->idle_timeout) {
            tc_faults_push(p->faults, ".common_http_protocol_options.idle_timeout");
            tc_read_duration_ms(p, o->common_http_protocol_options->idle_timeout, &out->idle_timeout_ms);
            tc_faults_pop(p->faults);
        }
    }
    tc_faults_pop(p->faults);
}

static void read_cluster(struct tc_reading *p, const Cluster *m, struct tc_cluster *out)
{
    tc_read_nonempty(p, m->name, ".name");
    json_t *lb = NULL;
    read_discovery(p, m, out);
    lb = tc_read_cluster_lb(p, m, out->kind == TC_CLUSTER_AGGREGATE);
    out->lb_config = tc_store_keep_json(p->store, lb);
    if (m->n_transport_socket_matches)
        tc_faults_add_at(p->faults, ".transport_socket_matches", "feature unsupported");
    if (m->transport_socket)
        out->tls = tc_read_transport_socket(p, m->transport_socket, &out->http_connect);
    if (m->outlier_detection)
        out->outlier = tc_read_outlier(p, m->outlier_detection);
    read_reporting(p, m, out);
    read_circuit_breakers(m, out);
    read_override_host(m, out);
    read_upstream_config(p, m, out);
}

static void cluster_free(struct tc_xds_resource *r)
{
    struct tc_cluster *c = (struct tc_cluster *)(void *)r;
    tc_store_fini(&c->store);
    tc_free(c);
}

/* `self` in lrs_server is whichever server it is from. */
static bool cluster_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_slice_eq(tc_cluster_of(a)->store.bytes, tc_cluster_of(b)->store.bytes) &&
           tc_rstr_eq(tc_cluster_of(a)->lrs_server, tc_cluster_of(b)->lrs_server);
}

static struct tc_xds_resource *cluster_decode(const struct tc_xds_resource_type *type,
                                              const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                              struct tc_rstr **name, struct tc_faults *faults)
{
    size_t before = faults->count;
    struct tc_cluster *c = TC_NEW(struct tc_cluster);
    struct tc_reading r;
    tc_ref_init(&c->head.ref);
    c->head.type = type;
    tc_store_init(&c->store);
    tc_read_init(&r, ctx, &c->store, bytes.len, faults);
    const Cluster *m = TC_READ(&r, &envoy__config__cluster__v3__cluster__descriptor, Cluster, bytes);
    if (m) {
        c->name = tc_store_rstr(&c->store, m->name);
        *name = tc_rstr_ref(c->name);
        read_cluster(&r, m, c);
    } else {
        *name = tc_read_name(bytes);
    }
    tc_read_fini(&r);
    if (faults->count == before) {
        tc_store_set_bytes(&c->store, bytes);
        return &c->head;
    }
    cluster_free(&c->head);
    return NULL;
}

const struct tc_xds_resource_type tc_cluster_type = {
    .type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    .short_name = "Cluster",
    .any_thread = true,
    .all_resources_required_in_sotw = true,
    .decode = cluster_decode,
    .peek_name = tc_read_peek_name,
    .slow = tc_read_may_be_slow, /* the names that a certificate may have */
    .equal = cluster_equal,
    .free = cluster_free,
};
