/* Decodes Cluster resources (CDS) into struct tc_cluster.
 *
 * decode_cluster calls one function after the other for the fields. Each adds its errors at its own path, and decoding
 * goes on, so that a NACK shows all errors of a resource. Where a Cluster field is validated:
 *
 *   name, discovery type, EDS, DNS, aggregate   here
 *   load_balancing_policy, lb_policy      lb_config.c (A52), checked by the LB policies themselves (lb_check)
 *   transport_socket                      transport_socket_decoder.c (A29, A86, A101)
 *   outlier_detection                     outlier_decoder.c (A50)
 *   lrs_server, metrics, circuit breakers, override hosts, HTTP options   here
 *
 * transport_socket_matches is read to be refused. Other fields, such as connect_timeout and metadata, are ignored.
 *
 * A message is in the decoder's scratch arena. What is stored in the struct tc_cluster lives in the resource's arena.
 * Runs on any thread. */
#include <stdlib.h>

#include "base/mem.h"
#include "pb/envoy/config/cluster/v3/cluster.pb-c.h"
#include "pb/envoy/extensions/clusters/aggregate/v3/cluster.pb-c.h"
#include "pb/envoy/extensions/upstreams/http/v3/http_protocol_options.pb-c.h"
#include "xds/resource/cluster.h"
#include "xds/resource/cluster_decoder.h"
#include "xds/resource/decoded.h"
#include "xds/resource/lb_config.h"

typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Cluster__V3__CircuitBreakers__Thresholds Thresholds;
typedef Envoy__Extensions__Clusters__Aggregate__V3__ClusterConfig AggregateConfig;
typedef Envoy__Extensions__Upstreams__Http__V3__HttpProtocolOptions HttpProtocolOptions;

#define DISCOVERY(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__DISCOVERY_TYPE__##x

static void decode_eds(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    const Envoy__Config__Cluster__V3__Cluster__EdsClusterConfig *eds = m->eds_cluster_config;
    out->kind = TC_CLUSTER_EDS;
    tc_validation_push(dec->errors, ".eds_cluster_config");
    if (!eds) {
        tc_validation_add(dec->errors, "field not present");
    } else {
        tc_decode_config_source(dec, ".eds_config", eds->eds_config);
        if (*eds->service_name)
            out->eds_service = tc_resource_arena_rstr(dec->arena, eds->service_name);
        else if (tc_slice_starts(tc_slice_str(m->name), tc_slice_str("xdstp:")))
            tc_validation_add_at(dec->errors, ".service_name", "must be set if Cluster resource has an xdstp name");
    }
    tc_validation_pop(dec->errors);
    out->eds_name = out->eds_service ? out->eds_service : out->name;
}

static void decode_dns_address(struct tc_decoder *dec, const Envoy__Config__Core__V3__SocketAddress *a,
                               struct tc_cluster *out)
{
    struct tc_buf target = {0};
    if (*a->resolver_name)
        tc_validation_add_at(dec->errors, ".resolver_name",
                             "LOGICAL_DNS clusters must NOT have a custom resolver name set");
    tc_decode_nonempty(dec, a->address, ".address");
    if (a->port_specifier_case != ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE)
        tc_validation_add_at(dec->errors, ".port_value", "field not present");
    else if (a->port_value > 65535)
        tc_validation_add_at(dec->errors, ".port_value", "invalid port");
    else {
        bool v6 = strchr(a->address, ':') != NULL;
        tc_buf_printf(&target, v6 ? "[%s]:%u" : "%s:%u", a->address, a->port_value);
        out->dns_target = tc_resource_arena_rstr(dec->arena, tc_buf_cstr(&target));
    }
    tc_buf_fini(&target);
}

static void decode_dns_endpoint(struct tc_decoder *dec, const Envoy__Config__Endpoint__V3__LbEndpoint *e,
                                struct tc_cluster *out)
{
    tc_validation_push(dec->errors, ".lb_endpoints[0].endpoint");
    if (e->host_identifier_case != ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT) {
        tc_validation_add(dec->errors, "field not present");
    } else {
        const Envoy__Config__Core__V3__Address *a = e->endpoint->address;
        tc_validation_push(dec->errors, ".address");
        if (!a) {
            tc_validation_add(dec->errors, "field not present");
        } else {
            tc_validation_push(dec->errors, ".socket_address");
            if (a->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
                tc_validation_add(dec->errors, "field not present");
            else
                decode_dns_address(dec, a->socket_address, out);
            tc_validation_pop(dec->errors);
        }
        tc_validation_pop(dec->errors);
    }
    tc_validation_pop(dec->errors);
}

static void decode_dns(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    out->kind = TC_CLUSTER_LOGICAL_DNS;
    tc_validation_push(dec->errors, ".load_assignment");
    if (!m->load_assignment) {
        tc_validation_add(dec->errors, "field not present");
    } else if (m->load_assignment->n_endpoints != 1) {
        tc_validation_add_at(dec->errors, ".endpoints",
                             "must contain exactly one locality for LOGICAL_DNS cluster, found %zu",
                             m->load_assignment->n_endpoints);
    } else {
        const Envoy__Config__Endpoint__V3__LocalityLbEndpoints *l = m->load_assignment->endpoints[0];
        tc_validation_push(dec->errors, ".endpoints[0]");
        if (l->n_lb_endpoints != 1)
            tc_validation_add_at(dec->errors, ".lb_endpoints",
                                 "must contain exactly one endpoint for LOGICAL_DNS cluster, found %zu",
                                 l->n_lb_endpoints);
        else
            decode_dns_endpoint(dec, l->lb_endpoints[0], out);
        tc_validation_pop(dec->errors);
    }
    tc_validation_pop(dec->errors);
}

static void decode_aggregate(struct tc_decoder *dec, const AggregateConfig *m, struct tc_cluster *out)
{
    out->kind = TC_CLUSTER_AGGREGATE;
    tc_validation_push(dec->errors, ".clusters");
    if (m->n_clusters == 0)
        tc_validation_add(dec->errors, "must be non-empty");
    if (m->n_clusters > dec->limits.aggregate_children) {
        tc_validation_add(dec->errors, "%zu clusters, more than %zu", m->n_clusters, dec->limits.aggregate_children);
    } else {
        struct tc_rstr **children = TC_RESOURCE_ARRAY(dec->arena, m->n_clusters, struct tc_rstr *);
        for (size_t i = 0; i < m->n_clusters; i++)
            children[i] = tc_resource_arena_rstr(dec->arena, m->clusters[i]);
        out->n_children = m->n_clusters;
        out->children = children;
    }
    tc_validation_pop(dec->errors);
}

static void decode_custom_type(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    tc_validation_push(dec->errors, ".cluster_type.typed_config");
    const AggregateConfig *aggregate = TC_DECODE_ANY(
        dec, m->cluster_type->typed_config, &envoy__extensions__clusters__aggregate__v3__cluster_config__descriptor,
        AggregateConfig, "unknown cluster_type extension:");
    if (aggregate)
        decode_aggregate(dec, aggregate, out);
    tc_validation_pop(dec->errors);
}

static void decode_discovery(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    if (m->cluster_discovery_type_case == ENVOY__CONFIG__CLUSTER__V3__CLUSTER__CLUSTER_DISCOVERY_TYPE_CLUSTER_TYPE)
        decode_custom_type(dec, m, out);
    else if (m->cluster_discovery_type_case == ENVOY__CONFIG__CLUSTER__V3__CLUSTER__CLUSTER_DISCOVERY_TYPE__NOT_SET)
        tc_validation_add_at(dec->errors, ".type", "unsupported value STATIC");
    else if (m->type == DISCOVERY(EDS))
        decode_eds(dec, m, out);
    else if (m->type == DISCOVERY(LOGICAL_DNS))
        decode_dns(dec, m, out);
    else
        tc_validation_add_at(
            dec->errors, ".type", "unsupported value %s",
            tc_decode_enum_name(dec, &envoy__config__cluster__v3__cluster__discovery_type__descriptor, (int)m->type));
}

static int compare_by_bytes(const void *a, const void *b)
{
    return tc_slice_cmp(*(const struct tc_slice *)a, *(const struct tc_slice *)b);
}

/* A85: a metric that is listed twice counts once, and an unknown metric is ignored. */
static void decode_metrics(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    static const struct {
        const char *name;
        unsigned bit;
    } fields[] = {{"cpu_utilization", TC_LRS_CPU},
                  {"mem_utilization", TC_LRS_MEM},
                  {"application_utilization", TC_LRS_APPLICATION},
                  {"named_metrics.*", TC_LRS_ALL_NAMED}};
    const struct tc_slice prefix = tc_slice_str("named_metrics.");
    struct tc_slice *names = TC_RESOURCE_ARRAY(dec->arena, m->n_lrs_report_endpoint_metrics, struct tc_slice);
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < m->n_lrs_report_endpoint_metrics; i++) {
        struct tc_slice name = tc_slice_str(m->lrs_report_endpoint_metrics[i]);
        unsigned bit = 0;
        for (size_t j = 0; j < TC_ARRAY_LEN(fields); j++)
            bit |= tc_slice_eq_str(name, fields[j].name) ? fields[j].bit : 0;
        out->lrs_metrics |= bit;
        if (!bit && tc_slice_starts(name, prefix))
            names[n++] = tc_resource_arena_text(dec->arena, m->lrs_report_endpoint_metrics[i] + prefix.len);
    }
    if (n)
        qsort(names, n, sizeof(*names), compare_by_bytes);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !tc_slice_eq(names[i], names[kept - 1]))
            names[kept++] = names[i];
    out->n_lrs_names = kept;
    out->lrs_names = names;
}

static void decode_reporting(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    if (m->lrs_server) {
        out->has_lrs = m->lrs_server->config_source_specifier_case ==
                       ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF;
        if (!out->has_lrs)
            tc_validation_add_at(dec->errors, ".lrs_server", "must be self");
        else if (dec->ctx && dec->ctx->server && dec->ctx->server->key)
            out->lrs_server = tc_resource_arena_rstr(dec->arena, dec->ctx->server->key->data);
    }
    decode_metrics(dec, m, out);
}

/* Returns the first entry of priority DEFAULT, which alone counts (A32, A105), or NULL. */
static const Thresholds *thresholds_of(size_t n, Thresholds *const *list)
{
    for (size_t i = 0; i < n; i++)
        if (list[i]->priority == ENVOY__CONFIG__CORE__V3__ROUTING_PRIORITY__DEFAULT)
            return list[i];
    return NULL;
}

static void decode_circuit_breakers(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    out->max_concurrent_requests = TC_CIRCUIT_BREAKER_DEFAULT;
    out->max_connections = 1;
    if (!m->circuit_breakers)
        return;
    const Thresholds *t = thresholds_of(m->circuit_breakers->n_thresholds, m->circuit_breakers->thresholds);
    if (t && t->max_requests)
        out->max_concurrent_requests = t->max_requests->value;
    t = thresholds_of(m->circuit_breakers->n_per_host_thresholds, m->circuit_breakers->per_host_thresholds);
    if (!t || !t->max_connections || dec->reg->connection_scaling_off)
        return;
    out->max_connections = t->max_connections->value;
    if (out->max_connections == 0)
        tc_validation_add_at(dec->errors, ".circuit_breakers.per_host_thresholds.max_connections",
                             "must be greater than 0");
}

static void decode_override_host(const Cluster *m, struct tc_cluster *out)
{
    out->override_host_status = TC_OVERRIDE_HOST_DEFAULT;
    if (!m->common_lb_config || !m->common_lb_config->override_host_status)
        return;
    const Envoy__Config__Core__V3__HealthStatusSet *set = m->common_lb_config->override_host_status;
    out->override_host_status = 0;
    for (size_t i = 0; i < set->n_statuses; i++) /* A55: other statuses are ignored */
        if (set->statuses[i] == ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__UNKNOWN ||
            set->statuses[i] == ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__HEALTHY ||
            set->statuses[i] == ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__DRAINING)
            out->override_host_status |= 1u << (unsigned)set->statuses[i];
}

static void decode_upstream_config(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    out->idle_timeout_ms = TC_IDLE_TIMEOUT_DEFAULT_MS;
    if (!m->upstream_config)
        return;
    tc_validation_push(dec->errors, ".upstream_config.typed_config");
    const HttpProtocolOptions *o =
        TC_DECODE_ANY(dec, m->upstream_config->typed_config,
                      &envoy__extensions__upstreams__http__v3__http_protocol_options__descriptor, HttpProtocolOptions,
                      "unsupported upstream config type");
    if (o && o->common_http_protocol_options && o->common_http_protocol_options->idle_timeout)
        tc_decode_duration_ms(dec, ".common_http_protocol_options.idle_timeout",
                              o->common_http_protocol_options->idle_timeout, &out->idle_timeout_ms);
    tc_validation_pop(dec->errors);
}

static void decode_cluster(struct tc_decoder *dec, const Cluster *m, struct tc_cluster *out)
{
    tc_decode_nonempty(dec, m->name, ".name");
    decode_discovery(dec, m, out);
    bool aggregate = out->kind == TC_CLUSTER_AGGREGATE;
    if (!aggregate || dec->reg->aggregate_lb) /* A75: an aggregate's own policy is ignored */
        out->lb_config = tc_resource_arena_keep_json(dec->arena, tc_decode_cluster_lb(dec, m, aggregate));
    out->hash_policies = dec->hash_policies;
    out->n_hash_policies = dec->n_hash_policies;
    if (m->n_transport_socket_matches)
        tc_validation_add_at(dec->errors, ".transport_socket_matches", "feature unsupported");
    if (m->transport_socket)
        out->tls = tc_decode_transport_socket(dec, m->transport_socket, &out->http_connect);
    if (m->outlier_detection)
        out->outlier = tc_decode_outlier(dec, m->outlier_detection);
    decode_reporting(dec, m, out);
    decode_circuit_breakers(dec, m, out);
    decode_override_host(m, out);
    decode_upstream_config(dec, m, out);
}

/* lrs_server "self" means the server that sent the resource: resources with an lrs_server are not equal if two servers
 * sent them, though their bytes are equal. */
static bool cluster_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_decoded_equal(a, b) && tc_rstr_eq(tc_cluster_of(a)->lrs_server, tc_cluster_of(b)->lrs_server);
}

static struct tc_xds_resource *cluster_decode(const struct tc_xds_resource_type *type,
                                              const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                              struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_cluster *c = TC_NEW(struct tc_cluster);
    struct tc_decoder dec;
    tc_decode_begin(&dec, &c->base, type, ctx, bytes, errors);
    const Cluster *m = TC_DECODE(&dec, &envoy__config__cluster__v3__cluster__descriptor, Cluster, bytes);
    c->name = tc_decode_take_name(&dec, m ? m->name : NULL, bytes, name);
    if (m)
        decode_cluster(&dec, m, c);
    return tc_decode_end(&dec, &c->base, bytes);
}

const struct tc_xds_resource_type tc_cluster_type = {
    .type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    .short_name = "Cluster",
    .any_thread = true,
    .all_resources_required_in_sotw = true,
    .decode = cluster_decode,
    .peek_name = tc_decode_peek_name,
    .slow = tc_decode_may_be_slow, /* SAN matchers and hash policies may have regexes */
    .equal = cluster_equal,
    .free = tc_decoded_free,
};
