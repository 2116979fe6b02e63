/* The store of loads: its bounds, its keys, and counts of other loops.
 *
 * The tests call the stores themselves: there is no LRS stream, no xDS client and no loop, and a store's time is always
 * 0. `report` takes a report and settles it at once. Where counts come from another loop, a second store stands for
 * that loop, and hand_over carries the counts. A test frees its stores, and releases the clusters and localities that
 * it got; some are released only after their store is freed. Everything runs on the test's thread. */
#include <stdio.h>
#include <time.h>

#include "support/case.h"
#include "support/cmocka.h"

#include "base/mem.h"
#include "xds/load/load_store_internal.h"

/* Moves the counts of one store to another, as remote_load.c does between loops. */
static void hand_over(struct tc_load_store *from, struct tc_load_store *to)
{
    struct tc_arena arena;
    Envoy__Config__Endpoint__V3__ClusterStats **stats;
    const struct tc_load_filter all = {.all = true, .endpoints = true};
    tc_arena_init(&arena, 0, 0);
    size_t n = tc_load_store_take(from, &all, 0, &arena, &stats);
    tc_load_stats_none_in_progress(stats, n);
    tc_load_store_add(to, stats, n, 0);
    tc_load_store_settle(from, true);
    tc_arena_fini(&arena);
}

/* At most 4,096 clusters without a user keep counts that were not reported yet. */
static void idle_clusters_are_bounded(void **state)
{
    (void)state;
    struct tc_load_store *s = tc_load_store_new(NULL, NULL);
    struct tc_rstr *category = tc_rstr_str("throttle");
    for (unsigned i = 0; i < 5000; i++) {
        struct tc_rstr *name = tc_rstr_printf("cluster-%u", i);
        struct tc_load_cluster *c = tc_load_cluster_get(s, name, NULL, 0);
        tc_load_cluster_drop(c, category, 1);
        tc_load_cluster_unuse(c);
        tc_load_cluster_unref(c);
        tc_rstr_unref(name);
        assert_int_equal(s->n_idle, TC_MIN(i + 1, 4096u));
    }
    /* Counts of a cluster that nobody uses here come from another loop. */
    struct tc_load_store *from = tc_load_store_new(NULL, NULL);
    struct tc_load_cluster *c = tc_load_cluster_get(from, category, NULL, 0);
    tc_load_cluster_drop(c, category, 1);
    tc_load_cluster_unref(c);
    hand_over(from, s);
    assert_int_equal(s->n_idle, 4096);
    tc_load_store_free(from);
    tc_rstr_unref(category);
    tc_load_store_free(s);
}

/* A cluster has counts for at most 65,536 endpoints, with at most 16 metrics each. RPCs and metrics beyond these bounds
 * count for the locality alone. An endpoint's metric shares the name object of its locality's metric. */
static void endpoints_are_bounded(void **state)
{
    TC_CASE(LS12);
    (void)state;
    enum { N = 65536, NAMES = 20 };
    struct tc_load_store *s = tc_load_store_new(NULL, NULL);
    struct tc_rstr *name = tc_rstr_str("c");
    tc_load_store_by_endpoint(s, true);
    struct tc_load_cluster *c = tc_load_cluster_get(s, name, NULL, 0);
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct tc_load_locality *l = tc_load_locality_get(c, none, none, none);
    char text[32];
    for (unsigned i = 0; i < N + 2; i++) {
        int n = snprintf(text, sizeof(text), "10.0.%u.%u:%u", i >> 8 & 255, i & 255, 80 + (i >> 16));
        struct tc_load_locality *e = tc_load_endpoint_get(c, l, tc_slice_of(text, (size_t)n));
        assert_true((e == l) == (i >= N));
        tc_load_locality_started(e);
        tc_load_locality_finished(e, true);
        for (int k = 0; i == 0 && k < NAMES; k++) {
            struct tc_slice metric = tc_slice_of(text, (size_t)snprintf(text, sizeof(text), "m%d", k));
            tc_load_locality_metric(e, TC_LOAD_NAMED, metric, 1, 1);
        }
        assert_int_equal(e->metrics.len, e == l ? NAMES : i == 0 ? 16 : 0);
        if (i == 0)
            assert_ptr_equal(e->metrics.data[3].name, l->metrics.data[3].name);
        tc_load_locality_unref(e);
    }
    assert_int_equal(c->n_endpoints, N);
    assert_int_equal(l->succeeded.now, N + 2);
    /* An RPC of an endpoint may end after the store is freed. */
    struct tc_load_locality *e = tc_load_endpoint_get(c, l, tc_slice_str("10.0.0.0:80"));
    tc_load_locality_started(e);
    tc_load_store_free(s);
    assert_false(c->by_endpoint);
    tc_load_locality_unref(l);
    tc_load_cluster_unref(c);
    tc_load_locality_finished(e, true);
    tc_load_locality_unref(e);
    tc_rstr_unref(name);
}

static void count_one(struct tc_load_cluster *c, const char *name)
{
    struct tc_load_locality *l = tc_load_locality_get(c, tc_slice_str("r"), tc_slice_str(name), tc_slice_str(""));
    tc_load_locality_started(l);
    tc_load_locality_finished(l, true);
    tc_load_locality_unref(l);
    struct tc_rstr *category = tc_rstr_str(name);
    tc_load_cluster_drop(c, category, 1);
    tc_rstr_unref(category);
}

/* Takes a report, and asserts how many localities, categories and drops it has. Returns the RPCs of the locality
 * without names. */
static uint64_t report(struct tc_load_store *s, size_t localities, size_t categories, uint64_t drops)
{
    struct tc_arena arena;
    Envoy__Config__Endpoint__V3__ClusterStats **stats;
    const struct tc_load_filter all = {.all = true};
    uint64_t nameless = 0;
    tc_arena_init(&arena, 0, 0);
    assert_int_equal(tc_load_store_take(s, &all, 0, &arena, &stats), 1);
    assert_int_equal(stats[0]->n_upstream_locality_stats, localities);
    assert_int_equal(stats[0]->n_dropped_requests, categories);
    assert_int_equal(stats[0]->total_dropped_requests, drops);
    for (size_t i = 0; i < localities; i++)
        if (!*stats[0]->upstream_locality_stats[i]->locality->region)
            nameless += stats[0]->upstream_locality_stats[i]->total_successful_requests;
    tc_load_store_settle(s, true);
    tc_arena_fini(&arena);
    return nameless;
}

/* A control plane renames localities and categories again and again between two reports. A cluster keeps at most 65,536
 * localities, 1,024 categories and 16 MiB of names. RPCs beyond these bounds count without names. */
static void names_are_bounded(void **state)
{
    (void)state;
    enum { N = 65536, MANY = N + 10, BYTES = 1 << 20, LONG = 10 };
    struct tc_load_store *s = tc_load_store_new(NULL, NULL);
    struct tc_rstr *name = tc_rstr_str("c");
    struct tc_load_cluster *c = tc_load_cluster_get(s, name, NULL, 0);
    char text[32], *large = tc_calloc(BYTES + 1, 1);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "n%u", i);
        count_one(c, text);
    }
    assert_int_equal(report(s, N + 1, 1024, MANY), MANY - N);
    assert_int_equal(c->name_bytes, 0);
    /* Each name is kept as a locality's and as a category's. 16 MiB hold seven such pairs and one more locality. */
    memset(large, 'x', BYTES);
    for (unsigned i = 0; i < LONG; i++) {
        large[0] = (char)('a' + i);
        count_one(c, large);
    }
    assert_int_equal(report(s, 8 + 1, 7, LONG), LONG - 8);
    assert_int_equal(c->name_bytes, 0);
    count_one(c, "as before");
    assert_int_equal(report(s, 1, 1, 1), 0);
    tc_free(large);
    tc_rstr_unref(name);
    tc_load_cluster_unuse(c);
    tc_load_cluster_unref(c);
    tc_load_store_free(s);
}

/* Adds a report of another loop with every kind of address. A report has no form for a vsock address, so the RPC to
 * that address counts for the locality alone. */
static void counts_of_another_loop(void **state)
{
    TC_CASE(LS13);
    (void)state;
    static const char *const addresses[] = {"10.0.0.1:80", "[2001:db8::1]:443", "unix:/run/x", "unix-abstract:x",
                                            "vsock:3:5"};
    struct tc_load_store *from = tc_load_store_new(NULL, NULL), *to = tc_load_store_new(NULL, NULL);
    struct tc_rstr *name = tc_rstr_str("c");
    struct tc_load_cluster *a = tc_load_cluster_get(from, name, NULL, 0), *b = tc_load_cluster_get(to, name, NULL, 0);
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct tc_load_locality *l = tc_load_locality_get(a, none, none, none);
    for (size_t i = 0; i < TC_ARRAY_LEN(addresses); i++) {
        struct tc_load_locality *e = tc_load_endpoint_get(a, l, tc_slice_str(addresses[i]));
        tc_load_locality_started(e);
        tc_load_locality_metric(e, TC_LOAD_NAMED, tc_slice_str("m"), 1, 2);
        tc_load_locality_unref(e);
    }
    hand_over(from, to);
    struct tc_load_locality *sum = b->localities;
    assert_int_equal(sum->in_progress, TC_ARRAY_LEN(addresses));
    assert_int_equal(sum->metrics.data[0].requests.now, TC_ARRAY_LEN(addresses));
    assert_int_equal(b->n_endpoints, TC_ARRAY_LEN(addresses) - 1);
    for (size_t i = 0; i < b->n_endpoints; i++) {
        struct tc_load_locality *e = tc_load_endpoint_get(b, sum, tc_slice_str(addresses[i]));
        assert_int_equal(e->in_progress, 1);
        assert_int_equal(e->issued.now, 1);
        assert_true(e->metrics.data[0].sum == 2);
        tc_load_locality_unref(e);
    }
    /* The end of an RPC whose start did not count for the endpoint. */
    Envoy__Config__Endpoint__V3__UpstreamEndpointStats endpoint =
                                                           ENVOY__CONFIG__ENDPOINT__V3__UPSTREAM_ENDPOINT_STATS__INIT,
                                                       *endpoints = &endpoint;
    Envoy__Config__Endpoint__V3__UpstreamLocalityStats locality =
                                                           ENVOY__CONFIG__ENDPOINT__V3__UPSTREAM_LOCALITY_STATS__INIT,
                                                       *localities = &locality;
    Envoy__Config__Endpoint__V3__ClusterStats cluster = ENVOY__CONFIG__ENDPOINT__V3__CLUSTER_STATS__INIT,
                                              *clusters = &cluster;
    Envoy__Config__Core__V3__Locality names = ENVOY__CONFIG__CORE__V3__LOCALITY__INIT;
    Envoy__Config__Core__V3__Address address = ENVOY__CONFIG__CORE__V3__ADDRESS__INIT;
    Envoy__Config__Core__V3__SocketAddress ip = ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__INIT;
    ip.address = (char *)(uintptr_t) "10.0.0.2";
    address.address_case = ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS;
    address.socket_address = &ip;
    endpoint.address = &address;
    endpoint.total_error_requests = locality.total_error_requests = 1;
    locality.locality = &names;
    locality.upstream_endpoint_stats = &endpoints;
    locality.n_upstream_endpoint_stats = 1;
    cluster.cluster_name = name->data;
    cluster.upstream_locality_stats = &localities;
    cluster.n_upstream_locality_stats = 1;
    tc_load_store_add(to, &clusters, 1, 0);
    struct tc_load_locality *e = tc_load_endpoint_get(b, sum, tc_slice_str("10.0.0.2:0"));
    assert_int_equal(e->failed.now, 1);
    assert_int_equal(e->in_progress, 0);
    tc_load_locality_unref(e);
    /* The end of an RPC whose locality is new to the store. */
    struct tc_load_store *fresh = tc_load_store_new(NULL, NULL);
    tc_load_store_add(fresh, &clusters, 1, 0);
    struct tc_load_cluster *c = tc_load_cluster_get(fresh, name, NULL, 0);
    assert_int_equal(c->localities->failed.now, 1);
    assert_int_equal(c->localities->in_progress, 0);
    tc_load_cluster_unref(c);
    tc_load_store_free(fresh);
    tc_load_locality_unref(l);
    tc_load_cluster_unref(a);
    tc_load_cluster_unref(b);
    tc_load_store_free(from);
    tc_load_store_free(to);
    tc_rstr_unref(name);
}

/* An RPC starts, a report goes out, and then the start is revoked: the next report counts the RPC as failed. */
static void revoked_after_a_report(void **state)
{
    (void)state;
    struct tc_load_store *from = tc_load_store_new(NULL, NULL), *to = tc_load_store_new(NULL, NULL);
    struct tc_rstr *name = tc_rstr_str("c");
    struct tc_load_cluster *a = tc_load_cluster_get(from, name, NULL, 0), *b = tc_load_cluster_get(to, name, NULL, 0);
    const struct tc_slice none = tc_slice_of(NULL, 0);
    struct tc_load_locality *l = tc_load_locality_get(a, none, none, none);
    struct tc_load_locality *e = tc_load_endpoint_get(a, l, tc_slice_str("10.0.0.1:80"));
    tc_load_locality_started(e);
    hand_over(from, to);
    struct tc_load_locality *there = b->localities;
    assert_int_equal(there->in_progress, 1);
    tc_load_locality_revoked(e);
    assert_int_equal(l->in_progress, 0);
    hand_over(from, to);
    assert_int_equal(there->in_progress, 0);
    assert_int_equal(there->endpoints->in_progress, 0);
    assert_int_equal(there->failed.now, 1);
    /* A start that was in no report leaves no counts. */
    tc_load_locality_started(e);
    tc_load_locality_revoked(e);
    assert_int_equal(l->issued.now, 0);
    assert_int_equal(l->failed.now, 0);
    tc_load_locality_unref(e);
    tc_load_locality_unref(l);
    tc_load_cluster_unref(a);
    tc_load_cluster_unref(b);
    tc_load_store_free(from);
    tc_load_store_free(to);
    tc_rstr_unref(name);
}

/* Returns a cluster that is in use. The caller gives it back with unload. */
static struct tc_load_cluster *load(struct tc_load_store *s, struct tc_rstr *cluster, struct tc_rstr *service)
{
    return tc_load_cluster_get(s, cluster, service, 0);
}

static void unload(struct tc_load_cluster *c)
{
    tc_load_cluster_unuse(c);
    tc_load_cluster_unref(c);
}

/* Each of many clusters, with names of one length, has loads of its own, and is found again. */
static void thousands_of_clusters(void **state)
{
    (void)state;
    struct tc_load_store *s = tc_load_store_new(NULL, NULL);
    struct tc_rstr *service = tc_rstr_str("service");
    enum { N = 20000 };
    static struct tc_load_cluster *clusters[N];
    clock_t before = clock();
    for (unsigned i = 0; i < N; i++) {
        struct tc_rstr *name = tc_rstr_printf("cluster-%05u", i);
        clusters[i] = load(s, name, service);
        struct tc_load_cluster *again = load(s, name, service);
        assert_ptr_equal(again, clusters[i]);
        unload(again);
        tc_rstr_unref(name);
    }
    for (unsigned i = 0; i < N; i++)
        unload(clusters[i]);
    tc_rstr_unref(service);
    tc_load_store_free(s);
    /* Comparing every name with every other one would be 4e8 comparisons, and take seconds. */
    assert_true(clock() - before < CLOCKS_PER_SEC);
}

static void names_do_not_run_together(void **state)
{
    (void)state;
    struct tc_load_store *s = tc_load_store_new(NULL, NULL);
    struct tc_rstr *a = tc_rstr_str("a"), *ab = tc_rstr_str("ab"), *b = tc_rstr_str("b"), *bc = tc_rstr_str("bc"),
                   *c = tc_rstr_str("c"), *abc = tc_rstr_str("abc"), *none = tc_rstr_str("");
    struct tc_load_cluster *all[] = {load(s, a, bc),     load(s, ab, c), load(s, abc, NULL),
                                     load(s, none, abc), load(s, a, b),  load(s, b, a)};
    for (size_t i = 0; i < TC_ARRAY_LEN(all); i++)
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(all[i], all[j]);
    struct tc_load_cluster *same = load(s, abc, none); /* an absent service and a service without a name are the same */
    assert_ptr_equal(same, all[2]);
    unload(same);
    for (size_t i = 0; i < TC_ARRAY_LEN(all); i++)
        unload(all[i]);
    struct tc_rstr *names[] = {a, ab, b, bc, c, abc, none};
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
        tc_rstr_unref(names[i]);
    tc_load_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_clusters_are_bounded), cmocka_unit_test(endpoints_are_bounded),
        cmocka_unit_test(counts_of_another_loop),    cmocka_unit_test(revoked_after_a_report),
        cmocka_unit_test(names_are_bounded),         cmocka_unit_test(thousands_of_clusters),
        cmocka_unit_test(names_do_not_run_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
