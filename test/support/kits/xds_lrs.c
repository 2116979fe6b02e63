/* Prints load reports as one line each, so that a test compares texts. */
#include "support/kits/xds_lrs.h"

#include "support/cmocka.h"

#include "base/mem.h"

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest load_request;
typedef Envoy__Config__Endpoint__V3__ClusterStats cluster_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats locality_stats;

static void print_counts(struct tc_buf *b, uint64_t good, uint64_t bad, uint64_t issued, uint64_t open)
{
    tc_buf_printf(b, "%llu+%llu/%llu~%llu", (unsigned long long)good, (unsigned long long)bad,
                  (unsigned long long)issued, (unsigned long long)open);
}

static void print_metrics(struct tc_buf *b, Envoy__Config__Endpoint__V3__EndpointLoadMetricStats **m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(b, " %s=%g/%llu", m[i]->metric_name, m[i]->total_metric_value,
                      (unsigned long long)m[i]->num_requests_finished_with_metric);
}

static void print_endpoint(struct tc_buf *b, const Envoy__Config__Endpoint__V3__UpstreamEndpointStats *s)
{
    if (s->address->address_case == ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_PIPE)
        tc_buf_printf(b, " [%s ", s->address->pipe->path);
    else
        tc_buf_printf(b, " [%s:%u ", s->address->socket_address->address, s->address->socket_address->port_value);
    print_counts(b, s->total_successful_requests, s->total_error_requests, s->total_issued_requests,
                 s->total_requests_in_progress);
    print_metrics(b, s->load_metric_stats, s->n_load_metric_stats);
    tc_buf_append_str(b, "]");
}

static void print_locality(struct tc_buf *b, const locality_stats *s)
{
    tc_buf_printf(b, " %s:", s->locality->zone);
    print_counts(b, s->total_successful_requests, s->total_error_requests, s->total_issued_requests,
                 s->total_requests_in_progress);
    print_metrics(b, s->load_metric_stats, s->n_load_metric_stats);
    if (s->cpu_utilization)
        tc_buf_printf(b, " cpu=%g/%llu", s->cpu_utilization->total_metric_value,
                      (unsigned long long)s->cpu_utilization->num_requests_finished_with_metric);
    for (size_t i = 0; i < s->n_upstream_endpoint_stats; i++)
        print_endpoint(b, s->upstream_endpoint_stats[i]);
}

static void print_cluster(struct tc_buf *b, const cluster_stats *c)
{
    tc_buf_printf(b, "%s%s%s %lld.%03ds", c->cluster_name, *c->cluster_service_name ? "/" : "", c->cluster_service_name,
                  (long long)c->load_report_interval->seconds, c->load_report_interval->nanos / 1000000);
    for (size_t i = 0; i < c->n_upstream_locality_stats; i++)
        print_locality(b, c->upstream_locality_stats[i]);
    if (c->total_dropped_requests)
        tc_buf_printf(b, " dropped %llu", (unsigned long long)c->total_dropped_requests);
    for (size_t i = 0; i < c->n_dropped_requests; i++)
        tc_buf_printf(b, " %s=%llu", c->dropped_requests[i]->category,
                      (unsigned long long)c->dropped_requests[i]->dropped_count);
    tc_buf_append_char(b, ';');
}

const char *kit_xds_report(struct kit_xds *k)
{
    struct tc_buf b = {0};
    struct tc_rstr *message = fake_xds_lrs_take(k->server);
    if (message) {
        load_request *m = envoy__service__load_stats__v3__load_stats_request__unpack(NULL, message->len,
                                                                                     (const uint8_t *)message->data);
        assert_non_null(m);
        for (size_t i = 0; m->node && i < m->node->n_client_features; i++)
            if (strcmp(m->node->client_features[i], "envoy.lrs.supports_send_all_clusters") == 0)
                tc_buf_printf(&b, "node %s;", m->node->id);
        for (size_t i = 0; i < m->n_cluster_stats; i++)
            print_cluster(&b, m->cluster_stats[i]);
        if (!b.len)
            tc_buf_append_str(&b, "empty");
        envoy__service__load_stats__v3__load_stats_request__free_unpacked(m, NULL);
        tc_rstr_unref(message);
    }
    tc_free(k->text);
    k->text = tc_buf_take(&b);
    return k->text;
}

void kit_xds_lrs_answer(struct kit_xds *k, int64_t seconds, char *name)
{
    Envoy__Service__LoadStats__V3__LoadStatsResponse m = ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_RESPONSE__INIT;
    Google__Protobuf__Duration interval = GOOGLE__PROTOBUF__DURATION__INIT;
    uint8_t bytes[128];
    interval.seconds = seconds;
    m.load_reporting_interval = &interval;
    m.send_all_clusters = name == NULL;
    m.report_endpoint_granularity = k->lrs_endpoints;
    m.n_clusters = name ? 1 : 0;
    m.clusters = &name;
    assert_true(envoy__service__load_stats__v3__load_stats_response__get_packed_size(&m) <= sizeof(bytes));
    size_t n = envoy__service__load_stats__v3__load_stats_response__pack(&m, bytes);
    fake_xds_lrs_send(k->server, tc_slice_of(bytes, n));
    tc_loop_drain(k->loop);
}
