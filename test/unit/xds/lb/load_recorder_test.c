/* The RPCs that a cluster counts for load reports: picked ones by locality and endpoint, dropped ones, and metrics. The
 * policies from cds down run over fakes/lb.
 *
 * A world has the policy cds, on the fake channel's loop, and an xDS client, whose store has the counts. The tests read
 * the counts from the store (world.counts). No report is sent: the client has a loop of its own, which does not turn
 * before close_world. Each test ends its RPCs with `finish`. Everything runs on the test's thread. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"
#include "support/kits/xds.h"

#include "base/mem.h"

#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "xds/lb/policies.h"

#define LRS ", 'lrsServer': {'self': {}}"

struct world {
    struct kit_xds k;
    struct fake_lb *f;
    struct tc_load_cluster *counts; /* the policies count into this; a reference, not a use */
};

/* Updates the policy with cluster "c". `more`: further members of the Cluster; RPCs are counted if LRS is among them.
 * Takes ownership of eds and dns. dns: the endpoints of a LOGICAL_DNS cluster, with eds NULL; NULL: an EDS cluster. */
static void update(struct world *w, const char *more, const struct tc_eds *eds, struct tc_endpoints *dns)
{
    struct tc_cluster_config *c = kit_config_cluster("c", more, eds);
    struct tc_cluster *data = (struct tc_cluster *)(uintptr_t)c->cluster;
    data->lrs_server = w->k.bootstrap->servers[0].key;
    if (dns) {
        data->kind = TC_CLUSTER_LOGICAL_DNS;
        data->eds_service = NULL;
        c->dns = dns;
    }
    struct tc_xds_config *config = kit_config_config(c, NULL);
    config->client = w->k.client;
    struct tc_rstr *name = tc_rstr_str("c");
    kit_config_update(w->f, tc_child_config_single(&tc_cds_factory, name, NULL), config);
    tc_rstr_unref(name);
}

/* service: the name of the EDS resource; NULL: for LOGICAL_DNS. */
static struct world open_world(const char *service)
{
    struct world w = {.f = NULL};
    kit_xds_init(&w.k, NULL);
    w.f = kit_config_lb("cds_experimental");
    struct tc_rstr *name = tc_rstr_str("c"), *eds = service ? tc_rstr_str(service) : NULL;
    w.counts = tc_xds_client_load(w.k.client, w.k.bootstrap->servers[0].key, name, eds);
    tc_load_cluster_unuse(w.counts);
    tc_rstr_unref(name);
    tc_rstr_unref(eds);
    return w;
}

static void close_world(struct world *w)
{
    kit_config_lb_free(w->f);
    tc_load_cluster_unref(w->counts);
    kit_xds_fini(&w->k);
}

static void ready(struct fake_lb *f, const char *addr)
{
    if (fake_lb_state(f, addr) == TORC_CONNECTIVITY_IDLE)
        fake_lb_set(f, addr, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, addr, TORC_CONNECTIVITY_READY);
}

/* Picks, and expects this result of fake_lb_pick. Returns the RPC's trackers, for `finish`; NULL if there are none. */
static struct tc_call_tracker *pick(struct world *w, const char *want)
{
    assert_string_equal(fake_lb_pick(w->f), want);
    struct tc_call_tracker *trackers = w->f->pick.trackers;
    w->f->pick.trackers = NULL;
    return trackers;
}

/* Ends the RPC of these trackers. code: its status; -1: the pick led to no RPC. trailers may be NULL. */
static void finish(struct tc_call_tracker *t, int code, const struct tc_headers *trailers)
{
    struct tc_status status = {.code = code};
    for (struct tc_call_tracker *next; t; t = next) {
        next = t->next;
        t->on_done(t, code < 0 ? NULL : &status, trailers);
    }
}

/* Returns the locality's counts, borrowed; NULL if there are none. */
static struct tc_load_locality *locality(const struct world *w, const char *sub_zone)
{
    struct tc_load_locality *l = w->counts->localities;
    while (l && strcmp(l->sub_zone->data, sub_zone) != 0)
        l = l->hh.next;
    return l;
}

static void assert_counts(const struct world *w, const char *sub_zone, uint64_t issued, uint64_t good, uint64_t bad,
                          uint64_t open)
{
    const struct tc_load_locality *l = locality(w, sub_zone);
    assert_non_null(l);
    assert_int_equal(l->issued.now, issued);
    assert_int_equal(l->succeeded.now, good);
    assert_int_equal(l->failed.now, bad);
    assert_int_equal(l->in_progress, open);
}

static void by_locality_of_the_pick(void **state)
{
    TC_CASE(LS01);
    TC_CASE(LS09);
    (void)state;
    struct world w = open_world("c");
    update(&w, LRS, kit_config_eds("0/a: 1.1.1.1:1; 1/b: 2.2.2.2:2", NULL), NULL);
    assert_int_equal(w.counts->users, 1);
    ready(w.f, "1.1.1.1:1");
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_OK, NULL);
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_NOT_FOUND, NULL);
    finish(pick(&w, "1.1.1.1:1"), -1, NULL); /* the pick led to no RPC */
    struct tc_call_tracker *open = pick(&w, "1.1.1.1:1");
    assert_counts(&w, "a", 3, 1, 1, 1);
    assert_null(locality(&w, "b"));
    /* The locality is removed while an RPC is in flight, and another one takes its place. */
    update(&w, LRS, kit_config_eds("0/b: 2.2.2.2:2", NULL), NULL);
    ready(w.f, "2.2.2.2:2");
    finish(pick(&w, "2.2.2.2:2"), TORC_STATUS_OK, NULL);
    assert_counts(&w, "b", 1, 1, 0, 0);
    finish(open, TORC_STATUS_OK, NULL);
    assert_counts(&w, "a", 3, 2, 1, 0);
    assert_int_equal(w.counts->users, 1);
    /* After lrs_server is removed, RPCs in flight are counted, and new ones are not. */
    open = pick(&w, "2.2.2.2:2");
    update(&w, "", kit_config_eds("0/b: 2.2.2.2:2", NULL), NULL);
    assert_int_equal(w.counts->users, 0);
    finish(pick(&w, "2.2.2.2:2"), TORC_STATUS_OK, NULL);
    finish(open, TORC_STATUS_OK, NULL);
    assert_counts(&w, "b", 2, 2, 0, 0);
    close_world(&w);
}

/* Once the server has asked for loads by endpoint, new RPCs are counted by the address that was picked. RPCs that
 * started before are not. */
static void by_endpoint_of_the_pick(void **state)
{
    TC_CASE(LS11);
    (void)state;
    struct world w = open_world("c");
    update(&w, LRS, kit_config_eds("0/a: 1.1.1.1:1", NULL), NULL);
    ready(w.f, "1.1.1.1:1");
    struct tc_call_tracker *before = pick(&w, "1.1.1.1:1");
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_OK, NULL);
    assert_null(locality(&w, "a")->endpoints); /* nobody asked */
    tc_load_store_by_endpoint(w.counts->store, true);
    struct tc_call_tracker *open = pick(&w, "1.1.1.1:1");
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_OK, NULL);
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_INTERNAL, NULL);
    finish(pick(&w, "1.1.1.1:1"), -1, NULL);
    finish(before, TORC_STATUS_OK, NULL);
    assert_counts(&w, "a", 5, 3, 1, 1);
    struct tc_load_locality *e = locality(&w, "a")->endpoints;
    assert_int_equal(HASH_COUNT(e), 1);
    assert_string_equal(e->address->data, "1.1.1.1:1");
    assert_int_equal(e->issued.now, 3);
    assert_int_equal(e->succeeded.now, 1);
    assert_int_equal(e->failed.now, 1);
    assert_int_equal(e->in_progress, 1);
    /* The endpoint goes while its RPC is under way. */
    update(&w, LRS, kit_config_eds("0/b: 2.2.2.2:2", NULL), NULL);
    tc_load_store_by_endpoint(w.counts->store, false);
    finish(open, TORC_STATUS_OK, NULL);
    assert_int_equal(e->succeeded.now, 2);
    assert_counts(&w, "a", 5, 4, 1, 0);
    ready(w.f, "2.2.2.2:2");
    finish(pick(&w, "2.2.2.2:2"), TORC_STATUS_OK, NULL);
    assert_null(locality(&w, "b")->endpoints);
    close_world(&w);
}

static void drops(void **state)
{
    TC_CASE(LS06);
    (void)state;
    struct world w = open_world("c");
    update(&w, LRS ", 'circuitBreakers': {'thresholds': [{'maxRequests': 1}]}", kit_config_eds("0/a: 1.1.1.1:1", NULL),
           NULL);
    ready(w.f, "1.1.1.1:1");
    struct tc_call_tracker *open = pick(&w, "1.1.1.1:1");
    pick(&w, "DROP");
    pick(&w, "DROP");
    assert_int_equal(w.counts->dropped.now, 2); /* without a category */
    assert_int_equal(w.counts->drops.len, 0);
    update(&w, LRS,
           kit_config_eds("0/a: 1.1.1.1:1",
                          ", 'policy': {'dropOverloads': [{'category': 'lb', 'dropPercentage': {'numerator': 100}}]}"),
           NULL);
    pick(&w, "DROP");
    assert_int_equal(w.counts->dropped.now, 3);
    assert_int_equal(w.counts->drops.len, 1);
    assert_string_equal(w.counts->drops.data[0].category->data, "lb");
    assert_int_equal(w.counts->drops.data[0].count.now, 1);
    assert_counts(&w, "a", 1, 0, 0, 1); /* dropped RPCs were not issued */
    finish(open, TORC_STATUS_OK, NULL);
    close_world(&w);
}

static void dns_has_no_locality(void **state)
{
    TC_CASE(DN03);
    (void)state;
    struct world w = open_world(NULL);
    update(&w, LRS, NULL, fake_lb_endpoints("1.1.1.1:1"));
    ready(w.f, "1.1.1.1:1");
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_OK, NULL);
    assert_counts(&w, "", 1, 1, 0, 0);
    assert_string_equal(locality(&w, "")->region->data, "");
    close_world(&w);
}

/* --- metrics --- */

/* Returns trailers with an ORCA report; they live in the arena. */
static struct tc_headers orca_trailers(struct tc_arena *arena)
{
    typedef Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry entry;
    Xds__Data__Orca__V3__OrcaLoadReport m = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__INIT;
    entry entries[2], *list[2];
    struct tc_headers trailers;
    for (int i = 0; i < 2; i++) {
        xds__data__orca__v3__orca_load_report__named_metrics_entry__init(&entries[i]);
        entries[i].key = i ? "queue" : "cost";
        entries[i].value = i ? 7 : 2.5;
        list[i] = &entries[i];
    }
    m.cpu_utilization = 0.5;
    m.mem_utilization = 0.25;
    m.application_utilization = 0.75;
    m.named_metrics = list;
    m.n_named_metrics = 2;
    size_t n = xds__data__orca__v3__orca_load_report__get_packed_size(&m);
    uint8_t *bytes = tc_arena_alloc(arena, n);
    xds__data__orca__v3__orca_load_report__pack(&m, bytes);
    tc_headers_init(&trailers, arena);
    tc_headers_add(&trailers, tc_slice_str("endpoint-load-metrics-bin"), tc_slice_of(bytes, n));
    return trailers;
}

/* Ends an RPC whose backend reports metrics. list: the member of the Cluster that lists the wanted metrics, or "".
 * want: "KIND NAME SUM" for each metric that is counted, joined by ", ". KIND is the number of enum tc_load_metric, and
 * NAME is empty unless KIND is TC_LOAD_NAMED. */
static void metrics_case(const char *list, const char *want)
{
    struct world w = open_world("c");
    struct tc_arena arena;
    struct tc_buf got = {0};
    tc_arena_init(&arena, 0, 0);
    struct tc_headers trailers = orca_trailers(&arena);
    char *more = tc_asprintf(LRS "%s", list);
    update(&w, more, kit_config_eds("0/a: 1.1.1.1:1", NULL), NULL);
    ready(w.f, "1.1.1.1:1");
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_OK, &trailers);
    const struct tc_load_locality *l = locality(&w, "a");
    for (size_t i = 0; i < l->metrics.len; i++)
        tc_buf_printf(&got, "%s%d %s %g", i ? ", " : "", (int)l->metrics.data[i].kind,
                      tc_rstr_cstr(l->metrics.data[i].name), l->metrics.data[i].sum);
    assert_string_equal(tc_buf_cstr(&got), want);
    tc_buf_fini(&got);
    tc_free(more);
    close_world(&w);
    tc_arena_fini(&arena);
}

static void metrics_as_listed(void **state)
{
    TC_CASE(LS10);
    (void)state;
    metrics_case("", "");
    metrics_case(", 'lrsReportEndpointMetrics': ['cpu_utilization', 'nonsense', 'named_metrics.queue']",
                 "0  0.5, 3 named_metrics.queue 7");
    metrics_case(", 'lrsReportEndpointMetrics': ['mem_utilization', 'application_utilization', 'named_metrics.x']",
                 "1  0.25, 2  0.75");
    metrics_case(", 'lrsReportEndpointMetrics': ['named_metrics.queue', 'named_metrics.*']",
                 "3 named_metrics.cost 2.5, 3 named_metrics.queue 7");
}

static void unreadable_metrics(void **state)
{
    (void)state;
    struct world w = open_world("c");
    struct tc_arena arena;
    struct tc_headers trailers;
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&trailers, &arena);
    tc_headers_add(&trailers, tc_slice_str("endpoint-load-metrics-bin"), tc_slice_str("\x09\x01"));
    update(&w, LRS ", 'lrsReportEndpointMetrics': ['cpu_utilization']", kit_config_eds("0/a: 1.1.1.1:1", NULL), NULL);
    ready(w.f, "1.1.1.1:1");
    finish(pick(&w, "1.1.1.1:1"), TORC_STATUS_OK, &trailers);
    assert_counts(&w, "a", 1, 1, 0, 0);
    assert_int_equal(locality(&w, "a")->metrics.len, 0);
    close_world(&w);
    tc_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_locality_of_the_pick), cmocka_unit_test(drops),
        cmocka_unit_test(dns_has_no_locality),     cmocka_unit_test(metrics_as_listed),
        cmocka_unit_test(unreadable_metrics),      cmocka_unit_test(by_endpoint_of_the_pick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
