/* A81 with fallback (A71): routes rewrite the :authority while the server that serves them is trusted, and only then,
 * although both servers send the same bytes. The dependency manager and the xDS client are real, and run on a manual
 * loop in one thread (kits/dependency). The test plays both servers, of which the bootstrap trusts the first. */
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

/* The resources that a control plane sends before the clusters: the routes by RDS, or inline in the Listener. */
struct routes {
    const char *listener, *table; /* table NULL: inline */
};

static const struct routes by_rds = {
    KIT_BY_RDS("r"),
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
    kit_dependency_respond(&w, s, KIT_CDS, KIT_CLUSTER("c"));
    kit_dependency_respond(&w, s, KIT_EDS, KIT_ENDPOINTS("c", "1"));
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

/* The routes of the other server do not rewrite. The trusted server sends no cluster: a client that misses nothing does
 * not fall back (A71). */
static void fall_back(const struct routes *r)
{
    respond_routes(trusted, r);
    trusted_server_goes_down();
    respond_routes(other, r);
    respond_cluster(other);
    assert_false(rewrites());
}

/* When the trusted server is back, its routes rewrite. */
static void return_to_trust(const struct routes *r)
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

static void fallback_by_rds(void **state)
{
    (void)state;
    fall_back(&by_rds);
}

static void fallback_inline(void **state)
{
    (void)state;
    fall_back(&inlined);
}

static void return_by_rds(void **state)
{
    (void)state;
    return_to_trust(&by_rds);
}

static void return_inline(void **state)
{
    (void)state;
    return_to_trust(&inlined);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(fallback_by_rds), TEST(fallback_inline), TEST(return_by_rds),
                                       TEST(return_inline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
