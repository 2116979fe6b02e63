/* A81 with fallback (A71): routes rewrite the :authority if the server that serves them now is trusted, even if both
 * servers send the same bytes. */
#include "support/cmocka.h"
#include "support/kits/dependency.h"

#define INSECURE "\"channel_creds\": [{\"type\": \"insecure\"}]"
#define BOOTSTRAP                                                                                                      \
    "{\"xds_servers\": ["                                                                                              \
    "{\"server_uri\": \"trusted\", " INSECURE ", \"server_features\": [\"trusted_xds_server\"]}, "                     \
    "{\"server_uri\": \"other\", " INSECURE "}], \"node\": {\"id\": \"n1\"}}"
#define TABLE                                                                                                          \
    "'name': 'r', 'virtualHosts': [{'name': 'v', 'domains': ['*'], 'routes': [{'match': {'prefix': '/'}, "             \
    "'route': {'cluster': 'c', 'autoHostRewrite': true}}]}]"
#define CLUSTER "{'@type': '" KIT_CDS "', 'name': 'c', 'type': 'EDS', 'edsClusterConfig': {'edsConfig': {'ads': {}}}}"
#define ENDPOINTS                                                                                                      \
    "{'@type': '" KIT_EDS                                                                                              \
    "', 'clusterName': 'c', 'endpoints': [{'loadBalancingWeight': 1, 'locality': {'region': 'r'}, "                    \
    "'lbEndpoints': [{'endpoint': {'address': {'socketAddress': {'address': '1.1.1.1', 'portValue': 1}}}}]}]}"

/* The resources that a control plane sends before the clusters: the routes by RDS, or inline in the Listener. */
struct routes {
    const char *listener, *table; /* table NULL: inline */
};

static const struct routes by_rds = {
    KIT_LISTENER("'rds': {'routeConfigName': 'r', 'configSource': {'ads': {}}}"),
    "{'@type': '" KIT_RDS "', " TABLE "}",
};
static const struct routes inlined = {KIT_LISTENER("'routeConfig': {" TABLE "}"), NULL};

static struct kit_dependency w;
static struct fake_xds_server *trusted, *other;

static int open_world(void **state)
{
    (void)state;
    kit_dependency_open(&w, BOOTSTRAP, NULL);
    trusted = w.server;
    other = fake_xds_server(w.fake, "other");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    assert_int_equal(w.errors, 0);
    kit_dependency_close(&w);
    return 0;
}

static void respond_routes(struct fake_xds_server *s, const struct routes *r)
{
    kit_dependency_respond(&w, s, KIT_LDS, r->listener);
    if (r->table)
        kit_dependency_respond(&w, s, KIT_RDS, r->table);
}

static void respond_cluster(struct fake_xds_server *s)
{
    kit_dependency_respond(&w, s, KIT_CDS, CLUSTER);
    kit_dependency_respond(&w, s, KIT_EDS, ENDPOINTS);
}

static bool rewrites(void)
{
    assert_non_null(w.config);
    return w.config->vhost->routes[0].auto_host_rewrite;
}

static void trusted_server_goes_down(void)
{
    fake_xds_fail(trusted, "down");
    tc_loop_drain(w.loop);
    assert_true(other->open);
}

static void rewriting_ends_with_trust(const struct routes *r)
{
    respond_routes(trusted, r);
    trusted_server_goes_down();
    respond_routes(other, r);
    respond_cluster(other);
    assert_false(rewrites());
}

static void rewriting_begins_with_trust(const struct routes *r)
{
    trusted_server_goes_down();
    respond_routes(other, r);
    respond_cluster(other);
    assert_false(rewrites());
    fake_xds_connect(trusted);
    respond_routes(trusted, r);
    respond_cluster(trusted);
    assert_false(other->open);
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
