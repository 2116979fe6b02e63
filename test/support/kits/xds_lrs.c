/* Prints load reports as one line each, so that a test compares texts. */
#include "support/kits/xds_lrs.h"

#include "support/cmocka.h"

#include "base/mem.h"

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest load_request;
typedef Envoy__Config__Endpoint__V3__ClusterStats cluster_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats locality_stats;

static void print_locality(struct tc_buf *b, const locality_stats *s)
{
    tc_buf_printf(b, " %s:%llu+%llu/%llu~%llu", s->locality->zone, (unsigned long long)s->total_successful_requests,
                  (unsigned long long)s->total_error_requests, (unsigned long long)s->total_issued_requests,
                  (unsigned long long)s->total_requests_in_progress);
    for (size_t i = 0; i < s->n_load_metric_stats; i++)
        tc_buf_printf(b, " %s=%g/%llu", s->load_metric_stats[i]->metric_name,
                      s->load_metric_stats[i]->total_metric_value,
                      (unsigned long long)s->load_metric_stats[i]->num_requests_finished_with_metric);
    if (s->cpu_utilization)
        tc_buf_printf(b, " cpu=%g/%llu", s->cpu_utilization->total_metric_value,
                      (unsigned long long)s->cpu_utilization->num_requests_finished_with_metric);
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
    m.n_clusters = name ? 1 : 0;
    m.clusters = &name;
    assert_true(envoy__service__load_stats__v3__load_stats_response__get_packed_size(&m) <= sizeof(bytes));
    size_t n = envoy__service__load_stats__v3__load_stats_response__pack(&m, bytes);
    fake_xds_lrs_send(k->server, tc_slice_of(bytes, n));
    tc_loop_drain(k->loop);
}
