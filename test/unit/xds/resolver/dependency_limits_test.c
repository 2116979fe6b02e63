/* Resources that could cost the dependency manager much: graphs of aggregates, HTTP filters of many routes, collections
 * of many localities, and many LOGICAL_DNS clusters. The manager and the xDS client are real, and run on a manual loop
 * in one thread (kits/dependency). The test plays the control plane and the DNS resolvers. Two functions are wrapped by
 * the linker: tc_resolver_find, which gives the test's resolvers, and tc_route_table_find, which counts rounds. */
#include "support/case.h"
#include "support/cmocka.h"

#include <string.h>

#include "support/fakes/lb.h"
#include "support/kits/dependency.h"

#include "base/mem.h"
#include "xds/resource/route_match.h"

#define FILTER_TYPE "type.googleapis.com/envoy.extensions.filters."

enum { NAMES = 100 };

/* The resolvers of the clusters, in the order in which they were made. Shutdown does not free them. */
static struct fake_dns {
    struct tc_resolver base;
    unsigned refreshed;
} dns[NAMES];
static unsigned resolvers, rounds;

static void on_start(struct tc_resolver *r)
{
    (void)r;
}

static void on_refresh(struct tc_resolver *r)
{
    TC_CONTAINER_OF(r, struct fake_dns, base)->refreshed++;
}

static struct tc_resolver *create(const struct tc_resolver_class *cls, const struct tc_target *target,
                                  const struct tc_resolver_env *env)
{
    static const struct tc_resolver_ops ops = {
        .start = on_start, .request_reresolution = on_refresh, .shutdown = on_start};
    (void)cls, (void)target;
    assert_true(resolvers < NAMES);
    dns[resolvers] = (struct fake_dns){.base = {&ops, env}};
    return &dns[resolvers++].base;
}

static bool authority(const struct tc_resolver_class *cls, const struct tc_target *target, struct tc_buf *out,
                      char **why)
{
    (void)cls, (void)target, (void)out, (void)why;
    return true;
}

const struct tc_resolver_class *__wrap_tc_resolver_find(struct tc_slice scheme);

const struct tc_resolver_class *__wrap_tc_resolver_find(struct tc_slice scheme)
{
    static const struct tc_resolver_class cls = {.scheme = "dns", .authority = authority, .create = create};
    assert_true(tc_slice_eq_str(scheme, "dns"));
    return &cls;
}

const struct tc_virtual_host *__wrap_tc_route_table_find(const struct tc_route_table *t, struct tc_slice authority);
const struct tc_virtual_host *__real_tc_route_table_find(const struct tc_route_table *t, struct tc_slice authority);

/* Counts the manager's full rounds by their look-ups of the virtual host. */
const struct tc_virtual_host *__wrap_tc_route_table_find(const struct tc_route_table *t, struct tc_slice authority)
{
    rounds++;
    return __real_tc_route_table_find(t, authority);
}

struct world {
    struct kit_dependency k;
    struct tc_resolver_env dns_env;
    struct tc_buf routes, clusters; /* the Listener's routes, and the Clusters: JSON, separated by commas */
};

static void open_world(struct world *w)
{
    *w = (struct world){0};
    resolvers = 0;
    kit_dependency_open(&w->k, NULL, &w->dns_env);
}

static void close_world(struct world *w)
{
    assert_int_equal(w->k.errors, 0);
    kit_dependency_close(&w->k);
    tc_buf_fini(&w->routes);
    tc_buf_fini(&w->clusters);
}

static void respond(struct world *w, const char *type, const char *resources)
{
    struct fake_xds_request *r;
    kit_dependency_respond(&w->k, w->k.server, type, resources);
    while ((r = fake_xds_take(w->k.server)))
        fake_xds_request_free(r);
}

/* --- the control plane's resources --- */

static void begin_aggregate(struct world *w, const char *name)
{
    tc_buf_printf(&w->clusters,
                  "%s{'@type': '%s', 'name': '%s', 'clusterType': {'name': 'a', 'typedConfig': {'@type': "
                  "'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig', 'clusters': [",
                  w->clusters.len ? ", " : "", KIT_CDS, name);
}

static void end_aggregate(struct world *w)
{
    tc_buf_append_str(&w->clusters, "]}}}");
}

/* Adds an aggregate of n leaves, "PREFIX0" and so on; if not numbered, of "PREFIX0" n times. */
static void aggregate(struct world *w, const char *name, const char *prefix, bool numbered, size_t n)
{
    begin_aggregate(w, name);
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&w->clusters, "%s'%s%zu'", i ? ", " : "", prefix, numbered ? i : 0);
    end_aggregate(w);
}

static void route(struct world *w, const char *cluster)
{
    tc_buf_printf(&w->routes, "%s{'match': {'prefix': '/%s'}, 'route': {'cluster': '%s'}}", w->routes.len ? ", " : "",
                  cluster, cluster);
}

/* Adds an aggregate of these two clusters (second NULL: of the first alone), and a route to the aggregate. */
static void root(struct world *w, const char *name, const char *first, const char *second)
{
    begin_aggregate(w, name);
    tc_buf_printf(&w->clusters, second ? "'%s', '%s'" : "'%s'", first, second);
    end_aggregate(w);
    route(w, name);
}

/* Adds n aggregates "r0", "r1", ... of the same cluster, and routes to them. */
static void roots(struct world *w, size_t n, const char *child)
{
    for (size_t i = 0; i < n; i++) {
        char *name = tc_asprintf("r%zu", i);
        root(w, name, child, NULL);
        tc_free(name);
    }
}

/* Sends all resources. A leaf cluster without a resource counts as missing after the does-not-exist timer (15 s). */
static void serve(struct world *w)
{
    char *listener = tc_asprintf(KIT_LISTENER("'routeConfig': {'virtualHosts': [{'name': 'v', 'domains': ['*'], "
                                              "'routes': [%s]}]}"),
                                 tc_buf_cstr(&w->routes));
    respond(w, KIT_LDS, listener);
    tc_free(listener);
    /* Each level of clusters is asked for once the level above is known. */
    for (int level = 0; level < 3; level++)
        respond(w, KIT_CDS, tc_buf_cstr(&w->clusters));
    tc_loop_advance(w->k.loop, 15000);
}

/* Asserts how many leaf clusters the cluster has, and the error of its graph ("": none). */
static void expect(const struct world *w, const char *name, size_t leaf_clusters, const char *error)
{
    assert_non_null(w->k.config);
    const struct tc_cluster_config *c = tc_xds_config_cluster(w->k.config, tc_slice_str(name));
    assert_non_null(c);
    assert_string_equal(tc_status_text(&c->leaf_error), error);
    assert_int_equal(c->n_leaf_clusters, leaf_clusters);
}

/* --- tests --- */

static void leaves_of_an_aggregate(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    aggregate(&w, "many", "x", true, 1024);
    aggregate(&w, "two", "y", true, 2);
    root(&w, "alone", "many", NULL);
    root(&w, "again", "many", "many"); /* a leaf that is named twice counts once */
    root(&w, "wide", "many", "two");
    root(&w, "small", "two", NULL);
    serve(&w);
    expect(&w, "alone", 1024, "");
    expect(&w, "again", 1024, "");
    expect(&w, "wide", 0, "aggregate cluster graph for wide exceeds max leaf clusters (1024) (node ID:n1)");
    expect(&w, "small", 2, "");
    close_world(&w);
}

static void leaves_of_all_aggregates(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    aggregate(&w, "many", "x", true, 1000);
    aggregate(&w, "two", "y", true, 2);
    roots(&w, 66, "many");
    root(&w, "small", "two", NULL);
    route(&w, "plain");
    serve(&w);
    expect(&w, "r0", 1000, "");
    expect(&w, "r64", 1000, "");
    expect(&w, "r65", 0,
           "aggregate cluster graph for r65 exceeds max leaf clusters of all aggregates (65536) (node ID:n1)");
    expect(&w, "small", 2, ""); /* still within the limit */
    expect(&w, "plain", 0, "");
    assert_int_equal(w.k.config->n_clusters, 66 + 3 + 1000 + 2 + 1);
    close_world(&w);
}

/* Each root has one leaf, which is named a thousand times. */
static void names_of_all_aggregates(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    aggregate(&w, "long", "x", false, 1000);
    roots(&w, 263, "long");
    route(&w, "plain");
    serve(&w);
    expect(&w, "r0", 1, "");
    expect(&w, "r260", 1, ""); /* 261 * 1001 names */
    expect(&w, "r261", 0, "aggregate cluster graph for r261 exceeds max names of all aggregates (262144) (node ID:n1)");
    expect(&w, "r262", 0, "aggregate cluster graph for r262 exceeds max names of all aggregates (262144) (node ID:n1)");
    expect(&w, "plain", 0, "");
    close_world(&w);
}

/* Serves a listener with n HTTP filters. */
static void serve_filters(struct world *w, size_t n)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "{'@type': '" KIT_LDS "', 'name': 'l', 'apiListener': {'apiListener': {'@type': '" FILTER_TYPE
                          "network.http_connection_manager.v3.HttpConnectionManager', 'httpFilters': [");
    for (size_t i = 1; i < n; i++)
        tc_buf_printf(&b, "{'name': 'f%zu', 'typedConfig': {'@type': '" FILTER_TYPE "http.fault.v3.HTTPFault'}}, ", i);
    tc_buf_printf(&b,
                  "{'name': 'router', 'typedConfig': {'@type': '" FILTER_TYPE "http.router.v3.Router'}}], "
                  "'routeConfig': {'virtualHosts': [{'name': 'v', 'domains': ['*'], 'routes': [%s]}]}}}}",
                  tc_buf_cstr(&w->routes));
    respond(w, KIT_LDS, tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

/* Each cluster of a route has a chain of its own, of the listener's filters. */
static void filters_of_all_routes(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    for (size_t i = 0; i < 1023; i++)
        route(&w, "c");
    tc_buf_append_str(&w.routes, ", {'match': {'prefix': ''}, 'route': {'weightedClusters': {'clusters': "
                                 "[{'name': 'c', 'weight': 1}, {'name': 'd', 'weight': 1}]}}}");
    serve_filters(&w, 1024);
    assert_int_equal(w.k.errors, 1);
    assert_string_equal(tc_status_text(&w.k.error), "1025 clusters of routes, each with 1024 HTTP filters, are more "
                                                    "than 1048576 filters in all (node ID:n1)");
    serve_filters(&w, 1023);
    tc_loop_advance(w.k.loop, 15000); /* the clusters do not exist */
    assert_int_equal(w.k.errors, 1);
    assert_int_equal(w.k.configs, 1);
    w.k.errors = 0;
    close_world(&w);
}

/* The i-th resolver reports the addresses; NULL: an error. */
static void answer(struct world *w, size_t i, const char *addresses)
{
    struct tc_resolver_result result = {0};
    if (addresses)
        result.endpoints = fake_lb_endpoints(addresses);
    else
        result.status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "injected error");
    assert_true(dns[i].base.env->on_result(dns[i].base.env->arg, &result));
    tc_loop_drain(w->k.loop);
}

/* Adds a LOGICAL_DNS cluster and a route to it. */
static void dns_route(struct world *w, const char *name)
{
    tc_buf_printf(&w->clusters,
                  "%s{'@type': '%s', 'name': '%s', 'type': 'LOGICAL_DNS', 'loadAssignment': {'endpoints': "
                  "[{'lbEndpoints': [{'endpoint': {'address': {'socketAddress': {'address': '%s.test', 'portValue': "
                  "80}}}}]}]}}",
                  w->clusters.len ? ", " : "", KIT_CDS, name, name);
    route(w, name);
}

static void dns_routes(struct world *w)
{
    for (size_t i = 0; i < NAMES; i++) {
        char *name = tc_asprintf("d%zu", i);
        dns_route(w, name);
        tc_free(name);
    }
    serve(w);
    assert_int_equal(resolvers, NAMES);
}

/* The routes and all clusters are walked once, when the last name gets its first answer. The answers before and after
 * cause no walk. */
static void answers_of_many_names(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    dns_routes(&w);
    rounds = 0;
    for (size_t i = 1; i < NAMES; i++)
        answer(&w, i, i % 2 ? "1.1.1.1:80" : NULL);
    assert_int_equal(rounds, 0);
    assert_int_equal(w.k.configs, 0);
    answer(&w, 2, "1.1.1.1:80"); /* a second answer for d2, before the first for d0 */
    assert_int_equal(rounds, 0);
    answer(&w, 0, "1.1.1.1:80");
    assert_int_equal(rounds, 1);
    assert_int_equal(w.k.configs, 1);
    assert_int_equal(tc_xds_config_cluster(w.k.config, tc_slice_str("d2"))->dns->n, 1);
    const struct tc_cluster_config *other = tc_xds_config_cluster(w.k.config, tc_slice_str("d3"));
    answer(&w, 0, "2.2.2.2:80");
    assert_int_equal(w.k.configs, 2);
    const struct tc_cluster_config *c = tc_xds_config_cluster(w.k.config, tc_slice_str("d0"));
    assert_int_equal(c->dns->n, 1);
    assert_ptr_equal(tc_xds_config_cluster(w.k.config, tc_slice_str("d3")), other);
    answer(&w, 0, "2.2.2.2:80"); /* nothing new */
    assert_int_equal(w.k.configs, 2);
    answer(&w, 0, NULL);
    assert_int_equal(w.k.configs, 3);
    c = tc_xds_config_cluster(w.k.config, tc_slice_str("d0"));
    assert_int_equal(c->dns->n, 1);
    assert_string_equal(c->resolution_note->data,
                        "DNS resolution failed for d0.test:80: UNAVAILABLE: injected error (node ID:n1)");
    assert_int_equal(rounds, 1);
    close_world(&w);
}

/* Once no route leads to the awaited cluster, the config comes without that cluster. */
static void answer_that_is_no_longer_awaited(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    dns_routes(&w);
    for (size_t i = 1; i < NAMES; i++)
        answer(&w, i, "1.1.1.1:80");
    assert_int_equal(w.k.configs, 0);
    w.routes.len = 0;
    route(&w, "d1");
    serve(&w);
    assert_int_equal(w.k.configs, 1);
    assert_int_equal(w.k.config->n_clusters, 1);
    answer(&w, 1, "2.2.2.2:80");
    assert_int_equal(w.k.configs, 2);
    close_world(&w);
}

/* A74: a re-resolution request is for all clusters. Each resolver is asked at most once for each of its answers,
 * however many requests come. */
static void requests_of_many_clusters(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    dns_routes(&w);
    for (size_t i = 1; i < NAMES; i++)
        answer(&w, i, "1.1.1.1:80");
    for (size_t i = 0; i < NAMES; i++)
        tc_dependency_manager_request_reresolution(w.k.manager);
    assert_int_equal(dns[0].refreshed, 0); /* no answer has come yet */
    for (size_t i = 1; i < NAMES; i++)
        assert_int_equal(dns[i].refreshed, 1);
    answer(&w, 0, "1.1.1.1:80");
    answer(&w, 5, NULL);
    tc_dependency_manager_request_reresolution(w.k.manager);
    tc_dependency_manager_request_reresolution(w.k.manager);
    assert_int_equal(dns[0].refreshed, 1);
    assert_int_equal(dns[5].refreshed, 2);
    assert_int_equal(dns[6].refreshed, 1);
    close_world(&w);
}

/* 5 clusters of 16,384 localities, each locality with a collection of its own: 65,536 of these collections are asked
 * for. */
static void collections_of_a_channel(void **state)
{
    TC_CASE(ED28);
    (void)state;
    enum { N = 5, LOCALITIES = 16384, MOST = 65536 };
    struct kit_dependency w;
    struct tc_buf routes = {0}, clusters = {0};
    kit_dependency_open(&w, NULL, NULL);
    for (int i = 0; i < N; i++) {
        tc_buf_printf(&routes, "%s{'match': {'prefix': '/%d'}, 'route': {'cluster': 'c%d'}}", i ? ", " : "", i, i);
        tc_buf_printf(&clusters,
                      "%s{'@type': '" KIT_CDS "', 'name': 'c%d', 'type': 'EDS', 'edsClusterConfig': {'edsConfig': "
                      "{'ads': {}}}}",
                      i ? ", " : "", i);
    }
    kit_dependency_respond(&w, w.server, KIT_LDS,
                           KIT_LISTENER("'rds': {'routeConfigName': 'r', 'configSource': {'ads': {}}}"));
    char *table = tc_asprintf("{'@type': '" KIT_RDS "', 'name': 'r', 'virtualHosts': [{'name': 'v', 'domains': ['*'], "
                              "'routes': [%s]}]}",
                              tc_buf_cstr(&routes));
    kit_dependency_respond(&w, w.server, KIT_RDS, table);
    kit_dependency_respond(&w, w.server, KIT_CDS, tc_buf_cstr(&clusters));
    for (int i = 0; i < N; i++) {
        struct tc_buf eds = {0};
        tc_buf_printf(&eds, "{'@type': '" KIT_EDS "', 'clusterName': 'c%d', 'endpoints': [", i);
        for (int k = 0; k < LOCALITIES; k++)
            tc_buf_printf(&eds,
                          "%s{'loadBalancingWeight': 1, 'locality': {'region': '%d'}, 'ledsClusterLocalityConfig': "
                          "{'ledsConfig': {'self': {}}, 'ledsCollectionName': 'l%d-%d'}}",
                          k ? "," : "", k, i, k);
        tc_buf_append_str(&eds, "]}");
        kit_dependency_respond(&w, w.server, KIT_EDS, tc_buf_cstr(&eds));
        tc_buf_fini(&eds);
    }
    struct tc_buf pending = {0}, more = {0};
    tc_dependency_manager_pending(w.manager, &pending);
    tc_buf_printf(&more, " and %d more", MOST - 4);
    assert_non_null(strstr(tc_buf_cstr(&pending), tc_buf_cstr(&more)));
    tc_loop_advance(w.loop, 15000);
    const struct tc_cluster_config *c = tc_xds_config_cluster(w.config, tc_slice_str("c4"));
    assert_non_null(
        strstr(c->resolution_note->data, "LEDS resource \"l4-0\" is beyond the limit of endpoints or of collections"));
    c = tc_xds_config_cluster(w.config, tc_slice_str("c3"));
    assert_non_null(strstr(c->resolution_note->data, "LEDS resource \"l3-0\" does not exist"));
    tc_free(table);
    tc_buf_fini(&routes);
    tc_buf_fini(&clusters);
    tc_buf_fini(&pending);
    tc_buf_fini(&more);
    kit_dependency_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_of_an_aggregate),    cmocka_unit_test(leaves_of_all_aggregates),
        cmocka_unit_test(names_of_all_aggregates),   cmocka_unit_test(filters_of_all_routes),
        cmocka_unit_test(answers_of_many_names),     cmocka_unit_test(answer_that_is_no_longer_awaited),
        cmocka_unit_test(requests_of_many_clusters), cmocka_unit_test(collections_of_a_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
