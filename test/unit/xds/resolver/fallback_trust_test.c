/* A81 over fallback (A71): whether routes rewrite the authority follows the server that serves them now, also where
 * two servers of different trust send the same bytes. */
#include "support/cmocka.h"
#include "support/fakes/xds.h"
#include "support/kits/resource.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "xds/client/local_client.h"
#include "xds/resolver/dependency_manager.h"

#define INSECURE "\"channel_creds\": [{\"type\": \"insecure\"}]"
#define BOOTSTRAP                                                                                                      \
    "{\"xds_servers\": ["                                                                                              \
    "{\"server_uri\": \"trusted\", " INSECURE ", \"server_features\": [\"trusted_xds_server\"]}, "                     \
    "{\"server_uri\": \"other\", " INSECURE "}], \"node\": {\"id\": \"n1\"}}"
#define TYPE(package, name) "type.googleapis.com/envoy.config." package ".v3." name
#define LDS TYPE("listener", "Listener")
#define RDS TYPE("route", "RouteConfiguration")
#define CDS TYPE("cluster", "Cluster")
#define EDS TYPE("endpoint", "ClusterLoadAssignment")
#define HCM                                                                                                            \
    "'@type': "                                                                                                        \
    "'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',"         \
    "'httpFilters': [{'name': 'router', 'typedConfig': {'@type': "                                                     \
    "'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]"
#define LISTENER(routes) "{'@type': '" LDS "', 'name': 'l', 'apiListener': {'apiListener': {" HCM ", " routes "}}}"
#define TABLE                                                                                                          \
    "'name': 'r', 'virtualHosts': [{'name': 'v', 'domains': ['*'], 'routes': [{'match': {'prefix': '/'}, "             \
    "'route': {'cluster': 'c', 'autoHostRewrite': true}}]}]"
#define CLUSTER "{'@type': '" CDS "', 'name': 'c', 'type': 'EDS', 'edsClusterConfig': {'edsConfig': {'ads': {}}}}"
#define ENDPOINTS                                                                                                      \
    "{'@type': '" EDS "', 'clusterName': 'c', 'endpoints': [{'loadBalancingWeight': 1, 'locality': {'region': 'r'}, "  \
    "'lbEndpoints': [{'endpoint': {'address': {'socketAddress': {'address': '1.1.1.1', 'portValue': 1}}}}]}]}"

/* What a control plane sends before the clusters: the routes by RDS, or inline in the Listener. */
struct routes {
    const char *listener, *table; /* table NULL: inline */
};

static const struct routes by_rds = {
    LISTENER("'rds': {'routeConfigName': 'r', 'configSource': {'ads': {}}}"),
    "{'@type': '" RDS "', " TABLE "}",
};
static const struct routes inlined = {LISTENER("'routeConfig': {" TABLE "}"), NULL};

static struct world {
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct fake_xds_server *trusted, *other;
    struct tc_xds_client *client;
    struct tc_dependency_manager *manager;
    struct tc_xds_config *config; /* the last one published */
    int version;
} w;

static void on_config(void *arg, struct tc_xds_config *config)
{
    (void)arg;
    tc_xds_config_ref(config);
    tc_xds_config_unref(w.config);
    w.config = config;
}

static void on_error(void *arg, const struct tc_status *error)
{
    (void)arg;
    fail_msg("%s", tc_status_text(error));
}

static const struct tc_dependency_events events = {.on_config = on_config, .on_error = on_error};

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)type;
    (void)config;
    return true;
}

static int open_world(void **state)
{
    (void)state;
    struct tc_status why = {0};
    struct tc_xds_client_opts opts;
    w = (struct world){0};
    w.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    w.fake = fake_xds_new(w.loop);
    w.trusted = fake_xds_server(w.fake, "trusted");
    w.other = fake_xds_server(w.fake, "other");
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_str(BOOTSTRAP), supported, NULL, &why);
    assert_non_null(b);
    tc_xds_client_opts_init(&opts);
    opts.registries = tc_builtin_validation_context();
    w.client = tc_xds_local_client_new(w.loop, b, fake_xds_factory(w.fake), &opts);
    tc_xds_bootstrap_unref(b);
    struct tc_dependency_opts mopts = {.listener = tc_slice_str("l"), .authority = tc_slice_str("svc")};
    w.manager = tc_dependency_manager_new(w.loop, w.client, &mopts, &events, NULL);
    tc_loop_drain(w.loop);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    tc_dependency_manager_free(w.manager);
    tc_xds_client_unref(w.client);
    tc_loop_drain(w.loop);
    fake_xds_free(w.fake);
    tc_loop_free(w.loop);
    tc_xds_config_unref(w.config);
    return 0;
}

static void respond(struct fake_xds_server *s, const char *type, const char *resource)
{
    w.version++;
    char *json = tc_asprintf("{'versionInfo': '%d', 'nonce': '%d', 'typeUrl': '%s', 'resources': [%s]}", w.version,
                             w.version, type, resource);
    struct tc_buf bytes = kit_resource_message("envoy.service.discovery.v3.DiscoveryResponse", json);
    fake_xds_send(s, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
    tc_free(json);
    tc_loop_drain(w.loop);
}

static void respond_routes(struct fake_xds_server *s, const struct routes *r)
{
    respond(s, LDS, r->listener);
    if (r->table)
        respond(s, RDS, r->table);
}

static void respond_cluster(struct fake_xds_server *s)
{
    respond(s, CDS, CLUSTER);
    respond(s, EDS, ENDPOINTS);
}

static bool rewrites(void)
{
    assert_non_null(w.config);
    return w.config->vhost->routes[0].auto_host_rewrite;
}

static void trusted_server_goes_down(void)
{
    fake_xds_fail(w.trusted, "down");
    tc_loop_drain(w.loop);
    assert_true(w.other->open);
}

static void rewriting_ends_with_trust(const struct routes *r)
{
    respond_routes(w.trusted, r);
    trusted_server_goes_down();
    respond_routes(w.other, r);
    respond_cluster(w.other);
    assert_false(rewrites());
}

static void rewriting_begins_with_trust(const struct routes *r)
{
    trusted_server_goes_down();
    respond_routes(w.other, r);
    respond_cluster(w.other);
    assert_false(rewrites());
    fake_xds_connect(w.trusted);
    respond_routes(w.trusted, r);
    respond_cluster(w.trusted);
    assert_false(w.other->open);
    assert_true(rewrites());
}

static void ends_by_rds(void **state)
{
    (void)state;
    rewriting_ends_with_trust(&by_rds);
}

static void ends_inline(void **state)
{
    (void)state;
    rewriting_ends_with_trust(&inlined);
}

static void begins_by_rds(void **state)
{
    (void)state;
    rewriting_begins_with_trust(&by_rds);
}

static void begins_inline(void **state)
{
    (void)state;
    rewriting_begins_with_trust(&inlined);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(ends_by_rds), TEST(ends_inline), TEST(begins_by_rds), TEST(begins_inline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
