/* Load reports of clients, as the LRS server of a mesh receives them.
 *
 * on_report runs on the servers' thread and adds each report to `told`; kit_lrs_look copies the sums for the test's
 * thread. Functions of lrs.h reach the LRS server, and the members that on_report uses, by jobs (kit_mesh_do), for
 * which the test's thread waits. With `crash` set, on_report closes the control plane in the turn of the next report,
 * so that a test knows exactly which reports came before the crash. */
#include "support/kits/lrs.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/mesh_internal.h"

#include "base/clock.h"
#include "base/mem.h"

typedef Envoy__Config__Endpoint__V3__ClusterStats cluster_stats;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats locality_stats;
typedef Envoy__Config__Endpoint__V3__UnnamedEndpointLoadMetricStats unnamed_stats;

struct kit_lrs {
    struct kit_mesh *k;
    struct kit_lrs_told told; /* on the servers' thread */
    struct kit_lrs_told copy; /* for the test's thread: the sums at the last kit_lrs_look */
    /* On the servers' thread. The test's thread resets `crashed`, when no report can set it. */
    bool crash, crashed;
    /* The settings to request: set by the test's thread, read by jobs. `hold`: the argument of hold(), and the result
     * of crashed(). */
    uint64_t interval_ms;
    const char *cluster;
    bool endpoints;
    bool hold;
};

uint64_t kit_lrs_now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

/* --- sums, on the servers' thread --- */

static void add_metric(struct kit_lrs_locality *to, const char *name, uint64_t requests, double total)
{
    struct kit_lrs_metric *m = NULL;
    for (size_t i = 0; i < to->n_metrics && !m; i++)
        if (strcmp(to->metrics[i].name, name) == 0)
            m = &to->metrics[i];
    if (!m) {
        CHECK(to->n_metrics < TC_ARRAY_LEN(to->metrics));
        m = &to->metrics[to->n_metrics++];
        snprintf(m->name, sizeof(m->name), "%s", name);
    }
    m->requests += requests;
    m->total += total;
}

static void add_unnamed(struct kit_lrs_locality *to, const char *name, const unnamed_stats *s)
{
    if (s)
        add_metric(to, name, s->num_requests_finished_with_metric, s->total_metric_value);
}

static void add_locality(struct kit_lrs_cluster *c, const locality_stats *s)
{
    const char *name = s->locality->sub_zone;
    struct kit_lrs_locality *to = strcmp(name, "a") == 0 ? &c->a : strcmp(name, "b") == 0 ? &c->b : &c->none;
    CHECK(to != &c->none || (!*s->locality->region && !*s->locality->zone && !*name)); /* else an unknown locality */
    to->success += s->total_successful_requests;
    to->error += s->total_error_requests;
    to->issued += s->total_issued_requests;
    to->in_progress = s->total_requests_in_progress;
    for (size_t i = 0; i < s->n_upstream_endpoint_stats; i++) {
        const Envoy__Config__Endpoint__V3__UpstreamEndpointStats *e = s->upstream_endpoint_stats[i];
        to->endpoint_success += e->total_successful_requests;
        to->endpoint_error += e->total_error_requests;
        to->endpoint_issued += e->total_issued_requests;
        to->endpoint_reports++;
        to->port = e->address->socket_address->port_value;
    }
    add_unnamed(to, "cpu", s->cpu_utilization);
    add_unnamed(to, "mem", s->mem_utilization);
    add_unnamed(to, "application", s->application_utilization);
    for (size_t i = 0; i < s->n_load_metric_stats; i++)
        add_metric(to, s->load_metric_stats[i]->metric_name, s->load_metric_stats[i]->num_requests_finished_with_metric,
                   s->load_metric_stats[i]->total_metric_value);
}

static struct kit_lrs_cluster *cluster_of(struct kit_lrs_told *t, const char *name)
{
    for (size_t i = 0; i < t->n_clusters; i++)
        if (strcmp(t->clusters[i].name, name) == 0)
            return &t->clusters[i];
    CHECK(t->n_clusters < KIT_LRS_MAX);
    snprintf(t->clusters[t->n_clusters].name, sizeof(t->clusters[0].name), "%s", name);
    return &t->clusters[t->n_clusters++];
}

static void add_cluster(struct kit_lrs_told *t, const cluster_stats *s)
{
    struct kit_lrs_cluster *c = cluster_of(t, s->cluster_name);
    uint64_t ns = (uint64_t)s->load_report_interval->seconds * TC_NS_PER_S + (uint64_t)s->load_report_interval->nanos;
    snprintf(c->service, sizeof(c->service), "%s", s->cluster_service_name);
    for (size_t i = 0; i < s->n_upstream_locality_stats; i++)
        add_locality(c, s->upstream_locality_stats[i]);
    c->dropped += s->total_dropped_requests;
    for (size_t i = 0; i < s->n_dropped_requests; i++)
        *(strcmp(s->dropped_requests[i]->category, "lb") == 0 ? &c->dropped_lb : &c->dropped_other) +=
            s->dropped_requests[i]->dropped_count;
    c->reports++;
    c->interval_ns += ns;
    c->widest_ns = TC_MAX(c->widest_ns, ns);
}

static void close_control_plane(struct kit_mesh *k)
{
    tc_server_stop_listening(k->control_plane.server);
    tc_server_close_connections(k->control_plane.server);
}

static void on_report(void *arg, const struct tc_lrs_report *r)
{
    struct kit_lrs *l = arg;
    struct kit_lrs_told *t = &l->told;
    t->faults += r->first != (r->request->node != NULL) || !tc_slice_eq_str(r->node_id, KIT_MESH_NODE);
    if (r->first)
        return;
    t->reports++;
    t->empty += r->request->n_cluster_stats == 0;
    for (size_t i = 0; i < t->n_clusters; i++)
        t->clusters[i].a.in_progress = t->clusters[i].b.in_progress = t->clusters[i].none.in_progress = 0;
    for (size_t i = 0; i < r->request->n_cluster_stats; i++)
        add_cluster(t, r->request->cluster_stats[i]);
    if (l->crash) {
        l->crash = false;
        l->crashed = true;
        close_control_plane(l->k);
    }
}

static void ask(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    (void)cp;
    tc_lrs_set(kit_mesh_lrs(l->k), &(struct tc_lrs_config){.interval_ms = l->interval_ms,
                                                           .send_all_clusters = !l->cluster,
                                                           .clusters = &l->cluster,
                                                           .n_clusters = l->cluster ? 1 : 0,
                                                           .endpoint_granularity = l->endpoints});
}

static void observe(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    ask(cp, l);
    tc_lrs_observe(kit_mesh_lrs(l->k), on_report, l);
}

static void ignore(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    (void)cp;
    tc_lrs_observe(kit_mesh_lrs(l->k), NULL, NULL);
}

static void hold(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    (void)cp;
    tc_lrs_set_mute(kit_mesh_lrs(l->k), l->hold);
    if (l->hold)
        tc_lrs_end_streams(kit_mesh_lrs(l->k), TORC_STATUS_UNAVAILABLE, "restart");
}

static void crash(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    (void)cp;
    l->crash = true;
}

static void copy(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    (void)cp;
    l->told.streams = tc_lrs_streams(kit_mesh_lrs(l->k));
    l->told.streams_so_far = (size_t)tc_lrs_streams_so_far(kit_mesh_lrs(l->k));
    l->copy = l->told;
}

/* --- on the test's thread --- */

struct kit_lrs *kit_lrs_new(struct kit_mesh *k, uint64_t interval_ms)
{
    struct kit_lrs *l = TC_NEW(struct kit_lrs);
    l->k = k;
    l->interval_ms = interval_ms;
    kit_mesh_do(k, observe, l);
    return l;
}

void kit_lrs_free(struct kit_lrs *l)
{
    kit_mesh_do(l->k, ignore, l);
    assert_int_equal(kit_lrs_look(l)->faults, 0);
    tc_free(l);
}

void kit_lrs_ask(struct kit_lrs *l, uint64_t interval_ms, const char *cluster)
{
    l->interval_ms = interval_ms;
    l->cluster = cluster;
    kit_mesh_do(l->k, ask, l);
}

void kit_lrs_ask_endpoints(struct kit_lrs *l, bool endpoints)
{
    l->endpoints = endpoints;
    kit_mesh_do(l->k, ask, l);
}

uint16_t kit_lrs_backend_port(const struct kit_lrs *l, size_t backend)
{
    return ntohs(l->k->backends[backend].addr.sa.in.sin_port);
}

void kit_lrs_hold(struct kit_lrs *l, bool held)
{
    l->hold = held;
    kit_mesh_do(l->k, hold, l);
}

const struct kit_lrs_told *kit_lrs_look(struct kit_lrs *l)
{
    kit_mesh_do(l->k, copy, l);
    return &l->copy;
}

/* A job, on the servers' thread. */
static void crashed(struct tc_control_plane *cp, void *arg)
{
    struct kit_lrs *l = arg;
    (void)cp;
    l->hold = l->crashed;
}

void kit_lrs_crash_after_report(struct kit_lrs *l)
{
    uint64_t until = kit_lrs_now_ns() + 60 * TC_NS_PER_S;
    kit_mesh_do(l->k, crash, l);
    for (l->hold = false; !l->hold;) {
        kit_mesh_do(l->k, crashed, l);
        if (kit_lrs_now_ns() > until)
            fail_msg("no report came");
    }
    l->crashed = false;
}

const struct kit_lrs_cluster *kit_lrs_told_cluster(const struct kit_lrs_told *t, const char *name)
{
    static const struct kit_lrs_cluster none;
    for (size_t i = 0; i < t->n_clusters; i++)
        if (strcmp(t->clusters[i].name, name) == 0)
            return &t->clusters[i];
    return &none;
}

const struct kit_lrs_metric *kit_lrs_metric(const struct kit_lrs_locality *l, const char *name)
{
    static const struct kit_lrs_metric none;
    for (size_t i = 0; i < l->n_metrics; i++)
        if (strcmp(l->metrics[i].name, name) == 0)
            return &l->metrics[i];
    return &none;
}

/* --- callers --- */

void kit_lrs_calls(torc_channel *ch, size_t n, struct kit_lrs_seen *seen)
{
    for (size_t i = 0; i < n; i++) {
        torc_result *r;
        bool fail = i % 4 == 3;
        r = torc_unary(ch, fail ? "/torc.test.Backend/Fail" : "/test.Service/Method", fail ? "5" : "hello",
                       fail ? 1 : 5, NULL);
        if (torc_result_code(r) == TORC_STATUS_OK)
            seen->ok++;
        else if (torc_result_code(r) == TORC_STATUS_NOT_FOUND)
            seen->failed++;
        else if (torc_result_code(r) == TORC_STATUS_UNAVAILABLE && strstr(torc_result_text(r), "EDS-configured drop"))
            seen->dropped++;
        else if (torc_result_code(r) == TORC_STATUS_UNAVAILABLE && strstr(torc_result_text(r), "circuit breaker drop"))
            seen->broken++;
        else { /* no fail_msg: this may be a thread of the test */
            fprintf(stderr, "call %zu: %s: %s\n", i, torc_status_code_name(torc_result_code(r)), torc_result_text(r));
            abort();
        }
        torc_result_free(r);
    }
}

static void on_hang_done(torc_stream *call, const torc_result *result, void *arg)
{
    (void)call;
    (void)result;
    (void)arg;
}

/* Returns the number of calls that all backends have received. */
static uint64_t handled(struct kit_mesh *k)
{
    uint64_t n = 0;
    for (size_t i = 0; i < k->n; i++)
        n += kit_mesh_handled(k, i);
    return n;
}

torc_stream *kit_lrs_hang(struct kit_mesh *k, torc_channel *ch)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_done = on_hang_done};
    uint64_t until = kit_lrs_now_ns() + 60 * TC_NS_PER_S, before = handled(k);
    torc_stream *call = torc_stream_start(ch, "/torc.test.Backend/Hang", NULL, &events, NULL, NULL);
    assert_non_null(call);
    assert_int_equal(torc_stream_send(call, "", 0, TORC_SEND_LAST, 0), 0);
    while (handled(k) == before)
        if (kit_lrs_now_ns() > until)
            fail_msg("the call reached no backend");
    return call;
}

void kit_lrs_hang_end(torc_stream *call)
{
    torc_stream_cancel(call);
    torc_stream_free(call);
}
