/* The dependency manager takes in what changed step by step. After any sequence of changes it says what one says that
 * sees the outcome for the first time. */
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "support/fake_xds_transport.h"
#include "support/resource_json.h"

#include "base/mem.h"
#include "base/random.h"
#include "mesh/dependency_manager.h"
#include "mesh/registries.h"

#define TYPE(package, name) "type.googleapis.com/envoy.config." package ".v3." name

enum { CLUSTERS = 5, STEPS = 600, SEQUENCES = 6 };

static const char *const lds = TYPE("listener", "Listener"), *const rds = TYPE("route", "RouteConfiguration"),
                         *const cds = TYPE("cluster", "Cluster"),
                         *const eds = TYPE("endpoint", "ClusterLoadAssignment");

/* What one manager reported last. */
struct view {
    struct tc_dependency_manager *manager;
    struct tc_xds_config *config; /* NULL: an error, or nothing */
    struct tc_status error;
};

struct world {
    struct tc_rng rng;
    struct tc_loop *loop;
    struct tc_fake_xds *fake;
    struct tc_fake_xds_server *server;
    struct tc_xds_client *client;
    struct view steps;
    int version;
    /* What the server has of each cluster: its kind (0: it is deleted), and whose endpoints it names. */
    unsigned kind[CLUSTERS], endpoints_of[CLUSTERS], requests[CLUSTERS];
};

static void on_config(void *arg, struct tc_xds_config *config)
{
    struct view *v = arg;
    tc_xds_config_ref(config);
    tc_xds_config_unref(v->config);
    v->config = config;
    tc_status_set(&v->error, (struct tc_status){0});
}

static void on_error(void *arg, const struct tc_status *error)
{
    struct view *v = arg;
    tc_xds_config_unref(v->config);
    v->config = NULL;
    tc_status_set(&v->error, tc_status_ref(error));
}

static const struct tc_dependency_events events = {.on_config = on_config, .on_error = on_error};

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return strcmp(type, "insecure") == 0;
}

static void view_open(struct view *v, struct world *w)
{
    const struct tc_dependency_opts opts = {.listener = tc_slice_str("l"), .authority = tc_slice_str("svc")};
    *v = (struct view){0};
    v->manager = tc_dependency_manager_new(w->loop, w->client, &opts, &events, v);
    tc_loop_drain(w->loop);
}

static void view_close(struct view *v)
{
    tc_dependency_manager_free(v->manager);
    tc_xds_config_unref(v->config);
    tc_status_fini(&v->error);
}

static void respond(struct world *w, const char *type, const char *resources)
{
    char *json = tc_asprintf("{'versionInfo': '%d', 'nonce': '%d', 'typeUrl': '%s', 'resources': [%s]}", w->version,
                             w->version, type, resources);
    struct tc_buf bytes = tc_test_message("envoy.service.discovery.v3.DiscoveryResponse", json);
    struct tc_fake_xds_request *r;
    w->version++;
    tc_fake_xds_send(w->server, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
    tc_free(json);
    tc_loop_drain(w->loop);
    while ((r = tc_fake_xds_take(w->server)))
        tc_fake_xds_request_free(r);
}

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)tc_rng_below(&w->rng, n);
}

/* --- the server's resources --- */

static void send_listener(struct world *w)
{
    char *json = tc_asprintf(
        "{'@type': '%s', 'name': 'l', 'apiListener': {'apiListener': {'@type': 'type.googleapis.com/"
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', 'httpFilters': [{'name': "
        "'router', 'typedConfig': {'@type': "
        "'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}], "
        "'rds': {'routeConfigName': 'r', 'configSource': {'ads': {}}}}}}",
        lds);
    respond(w, lds, json);
    tc_free(json);
}

/* Routes to some of the clusters; sometimes there is no virtual host for us. */
static void send_routes(struct world *w)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b, "{'@type': '%s', 'name': 'r', 'virtualHosts': [{'name': 'v', 'domains': ['%s'], 'routes': [", rds,
                  below(w, 12) ? "*" : "elsewhere");
    for (unsigned i = 0; i < CLUSTERS; i++)
        if (i == 0 || below(w, 3))
            tc_buf_printf(&b, "%s{'match': {'prefix': '/%u'}, 'route': {'cluster': 'c%u'}}", i ? ", " : "", i, i);
    tc_buf_append_str(&b, "]}]}");
    respond(w, rds, tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

/* All that there are. Kind 2 is an aggregate of the others. */
static void send_clusters(struct world *w)
{
    struct tc_buf b = {0};
    for (unsigned i = 0; i < CLUSTERS; i++) {
        const char *comma = b.len ? ", " : "";
        if (w->kind[i] == 1)
            tc_buf_printf(&b,
                          "%s{'@type': '%s', 'name': 'c%u', 'type': 'EDS', 'edsClusterConfig': {'serviceName': 'e%u', "
                          "'edsConfig': {'ads': {}}}, 'circuitBreakers': {'thresholds': [{'maxRequests': %u}]}}",
                          comma, cds, i, w->endpoints_of[i], w->requests[i]);
        else if (w->kind[i] == 2)
            tc_buf_printf(&b,
                          "%s{'@type': '%s', 'name': 'c%u', 'clusterType': {'name': 'a', 'typedConfig': {'@type': "
                          "'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig', 'clusters': "
                          "['c%u', 'c%u']}}}",
                          comma, cds, i, (i + 1) % CLUSTERS, (i + 2) % CLUSTERS);
    }
    respond(w, cds, tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

static void change_cluster(struct world *w)
{
    unsigned i = below(w, CLUSTERS), what = below(w, 12);
    if (what == 0)
        w->kind[i] = 0;
    else if (what == 1 && i == 0) /* one only: no cycles */
        w->kind[i] = 2;
    else
        w->kind[i] = 1;
    if (what < 4)
        w->endpoints_of[i] = below(w, CLUSTERS);
    else
        w->requests[i] = below(w, 1000);
    send_clusters(w);
}

/* One or several at once; some are empty, some are refused. */
static void change_endpoints(struct world *w)
{
    struct tc_buf b = {0};
    unsigned first = below(w, CLUSTERS), n = below(w, 4) ? 1 : 1 + below(w, CLUSTERS - 1);
    for (unsigned k = 0; k < n; k++) {
        tc_buf_printf(&b, "%s{'@type': '%s', 'clusterName': 'e%u'", k ? ", " : "", eds, (first + k) % CLUSTERS);
        if (below(w, 6))
            tc_buf_printf(&b,
                          ", 'endpoints': [{'loadBalancingWeight': 1, 'locality': {'region': 'r'}, 'lbEndpoints': "
                          "[{'endpoint': {'address': {'socketAddress': {'address': '1.1.1.1', 'portValue': %u}}}}]}]",
                          below(w, 8) ? 1 + below(w, 60000) : 99999);
        tc_buf_append_str(&b, "}");
    }
    respond(w, eds, tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

static void step(struct world *w)
{
    unsigned what = below(w, 20);
    if (what == 0)
        send_routes(w);
    else if (what < 8)
        change_cluster(w);
    else
        change_endpoints(w);
}

/* --- the two --- */

static void assert_same(const struct view *a, const struct view *b)
{
    assert_int_equal(a->error.code, b->error.code);
    assert_string_equal(tc_status_text(&a->error), tc_status_text(&b->error));
    /* Who has a config keeps it while what a change needs is still to come. */
    if (!b->config)
        return;
    assert_non_null(a->config);
    assert_true(tc_xds_config_same_routing(a->config, b->config));
    assert_int_equal(a->config->n_clusters, b->config->n_clusters);
    for (size_t i = 0; i < a->config->n_clusters; i++)
        assert_true(tc_cluster_config_eq(a->config->clusters[i], b->config->clusters[i]));
}

static void any_steps(void **state)
{
    (void)state;
    unsigned seen = 0;
    for (unsigned s = 0; s < SEQUENCES; s++) {
        struct world w = {.version = 1};
        struct tc_status why = {0};
        struct tc_xds_client_opts opts;
        tc_rng_init_seed(&w.rng, s);
        w.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
        w.fake = tc_fake_xds_new(w.loop);
        w.server = tc_fake_xds_server(w.fake, "s1");
        struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(
            tc_slice_str("{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": \"insecure\"}]}], "
                         "\"node\": {\"id\": \"n1\"}}"),
            supported, NULL, &why);
        assert_non_null(b);
        tc_xds_client_opts_init(&opts);
        opts.registries = tc_mesh_registries();
        w.client = tc_xds_client_new(w.loop, b, tc_fake_xds_factory(w.fake), &opts);
        tc_xds_bootstrap_unref(b);
        view_open(&w.steps, &w);
        for (unsigned i = 0; i < CLUSTERS; i++) {
            w.kind[i] = 1;
            w.endpoints_of[i] = i;
        }
        send_listener(&w);
        send_routes(&w);
        send_clusters(&w);
        for (unsigned i = 0; i < STEPS / SEQUENCES; i++) {
            struct view whole;
            step(&w);
            view_open(&whole, &w);
            assert_same(&w.steps, &whole);
            seen += whole.config != NULL;
            view_close(&whole);
            tc_loop_drain(w.loop);
        }
        view_close(&w.steps);
        tc_xds_client_unref(w.client);
        tc_loop_drain(w.loop);
        tc_fake_xds_free(w.fake);
        tc_loop_free(w.loop);
    }
    assert_true(seen > STEPS / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
