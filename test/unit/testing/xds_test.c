/* The control plane of a world (torc/testing.h): the real xDS client over in-process servers.
 *
 * `begin` makes the world, the backends "1" at ONE and "2" at TWO, the resources of `mesh` without endpoints, and the
 * channel to xds:///orders; `end` frees them. The test gives the cluster its endpoints by put_endpoints.
 * test_ends_amid_a_job makes worlds of its own. The client, the servers and background jobs run on the test's thread,
 * inside functions that turn or end the world. */
#include "unit/testing/kit.h"

#define ONE "10.0.0.1:443"
#define TWO "10.0.0.2:443"
#define CLUSTER "type.googleapis.com/envoy.config.cluster.v3.Cluster"

/* xds:///orders, hashed by the header "user" over the endpoints of cluster "orders". */
static const char *const mesh =
    "resources:\n"
    "- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n"
    "  name: orders\n"
    "  api_listener:\n"
    "    api_listener:\n"
    "      \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
    "HttpConnectionManager\n"
    "      http_filters: [{name: router, typed_config: {\"@type\": type.googleapis.com/"
    "envoy.extensions.filters.http.router.v3.Router}}]\n"
    "      route_config:\n"
    "        name: orders\n"
    "        virtual_hosts:\n"
    "        - name: orders\n"
    "          domains: [\"*\"]\n"
    "          routes: [{match: {prefix: \"\"}, route: {cluster: orders, hash_policy: "
    "[{header: {header_name: user}}]}}]\n"
    "- \"@type\": " CLUSTER "\n"
    "  name: orders\n"
    "  type: EDS\n"
    "  eds_cluster_config: {eds_config: {ads: {}}}\n"
    "  lb_policy: RING_HASH\n";

/* Gives the cluster new endpoints: 10.0.0.N for each digit N. */
static void put_endpoints(torc_testing *world, const char *digits)
{
    char text[2048];
    int n = snprintf(text, sizeof(text),
                     "{\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: "
                     "orders, endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [");
    for (const char *d = digits; *d; d++)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "%s{endpoint: {address: {socket_address: {address: 10.0.0.%c, port_value: 443}}}}",
                      d == digits ? "" : ", ", *d);
    snprintf(text + n, sizeof(text) - (size_t)n, "]}]}");
    torc_error *error = NULL;
    int rc = torc_testing_xds_put(world, text, &error);
    assert_string_equal(error ? torc_error_text(error) : "", "");
    assert_int_equal(rc, 0);
}

/* Calls on behalf of a user; stores who answered, or the code and text of a failure. Returns the code. */
static int say_as(torc_channel *channel, int user, char said[128])
{
    char name[16];
    snprintf(name, sizeof(name), "u%d", user);
    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add(metadata, "user", name, strlen(name));
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000, .metadata = metadata};
    int code = say(channel, &o, said);
    torc_metadata_free(metadata);
    return code;
}

/* Stores the digits of the backends that answer users 0 to 19. */
static void owners(torc_channel *channel, char out[21])
{
    char said[128];
    for (int user = 0; user < 20; user++) {
        assert_int_equal(say_as(channel, user, said), TORC_STATUS_OK);
        out[user] = said[0];
    }
    out[20] = 0;
}

static torc_testing *world;
static struct says one, two;
static torc_channel *channel;

static int begin(void **state)
{
    (void)state;
    world = torc_testing_new(3, NULL);
    says_begin(&one, "1", ONE);
    says_begin(&two, "2", TWO);
    assert_int_equal(torc_testing_xds_put(world, mesh, NULL), 0);
    channel = torc_channel_new(NULL, "xds:///orders", NULL, NULL);
    assert_non_null(channel);
    return 0;
}

static int end(void **state)
{
    (void)state;
    torc_channel_free(channel);
    torc_server_free(one.server);
    torc_server_free(two.server);
    assert_int_equal(torc_testing_free(world), 0);
    return 0;
}

/* Two backends share the users; an update takes one backend away, and its users go to the other one, until it is back.
 */
static void test_a_ring(void **state)
{
    (void)state;
    char both[21], again[21], first[21];
    put_endpoints(world, "12");
    owners(channel, both);
    assert_non_null(strchr(both, '1'));
    assert_non_null(strchr(both, '2'));
    owners(channel, again);
    assert_string_equal(both, again);
    put_endpoints(world, "1");
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    owners(channel, first);
    assert_string_equal(first, "11111111111111111111");
    put_endpoints(world, "12");
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    owners(channel, again);
    assert_string_equal(both, again);
}

/* A backend dies: its users go to the other one. They come back when the backend is up and the backoff is over. */
static void test_failover(void **state)
{
    (void)state;
    char both[21], rest[21], again[21];
    put_endpoints(world, "12");
    owners(channel, both);
    assert_int_equal(torc_testing_set_host(world, TWO, TORC_TESTING_REFUSES), 0);
    assert_int_equal(torc_testing_cut(world, TWO), 1);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    owners(channel, rest);
    assert_string_equal(rest, "11111111111111111111");
    assert_int_equal(torc_testing_set_host(world, TWO, TORC_TESTING_UP), 0);
    assert_int_equal(torc_testing_advance(world, 150000), 0);
    owners(channel, again);
    assert_string_equal(both, again);
}

/* The control plane refuses connections: a channel keeps its resources, and calls of a new channel fail with the
 * reason. */
static void test_no_control_plane(void **state)
{
    (void)state;
    char said[128];
    put_endpoints(world, "12");
    assert_int_equal(say_as(channel, 1, said), TORC_STATUS_OK);
    assert_int_equal(torc_testing_set_host(world, torc_testing_xds_address(world), TORC_TESTING_REFUSES), 0);
    assert_true(torc_testing_cut(world, torc_testing_xds_address(world)) >= 1);
    assert_int_equal(torc_testing_advance(world, 1200000), 0);
    assert_int_equal(say_as(channel, 1, said), TORC_STATUS_OK);
    torc_channel *late = torc_channel_new(NULL, "xds:///payments", NULL, NULL);
    assert_non_null(late);
    assert_int_equal(say_as(late, 1, said), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(said, "failed to connect to all addresses"));
    torc_channel_free(late);
}

/* The error for a text that is not a resource says where the text is wrong. If a Cluster was removed before the channel
 * asks for it, RPCs fail after the 15 s of A57. */
static void test_resources(void **state)
{
    (void)state;
    char said[128];
    torc_error *error = NULL;
    assert_int_equal(torc_testing_xds_put(world, "resources: [{\"@type\": nothing}]", &error), TORC_EPARSE);
    assert_non_null(strstr(torc_error_text(error), "resources"));
    torc_error_free(error);
    error = NULL;
    assert_int_equal(torc_testing_xds_put(world, NULL, &error), TORC_EINVAL);
    assert_non_null(strstr(torc_error_text(error), "text"));
    torc_error_free(error);
    error = NULL;
    assert_int_equal(torc_testing_xds_put(NULL, mesh, &error), TORC_EINVAL);
    torc_error_free(error);
    assert_int_equal(torc_testing_xds_remove(world, CLUSTER, "nobody"), TORC_ENOTFOUND);
    assert_int_equal(torc_testing_xds_remove(world, CLUSTER, NULL), TORC_EINVAL);
    assert_null(torc_testing_xds_address(NULL));
    put_endpoints(world, "1");
    assert_int_equal(torc_testing_xds_remove(world, CLUSTER, "orders"), 0);
    assert_int_equal(say_as(channel, 1, said), TORC_STATUS_UNAVAILABLE); /* after A57's 15 s */
    assert_non_null(strstr(said, "does not exist"));
    assert_int_equal(torc_time_ms(), 16000);
}

static const char *const large_ring = "{\"@type\": " CLUSTER ", name: orders, type: EDS, "
                                      "eds_cluster_config: {eds_config: {ads: {}}}, lb_policy: RING_HASH, "
                                      "ring_hash_lb_config: {minimum_ring_size: 40000}}";

static int left;

/* Counts `left` down, once a step. Returns 1 when none was left. */
static int are_done(void *arg)
{
    (void)arg;
    return left-- == 0;
}

/* Ends the world after 0, 1, 2, ... steps, as far as there are steps within a second. The ring has more than 32,768
 * entries, so a background job builds it. When the world ends while the job is pending, the job must not leak:
 * LeakSanitizer or valgrind would report a leak. */
static void test_ends_amid_a_job(void **state)
{
    (void)state;
    int steps = 0, rc = 0;
    for (; rc == 0; steps++) {
        world = torc_testing_new(3, NULL);
        says_begin(&one, "1", ONE);
        assert_int_equal(torc_testing_xds_put(world, mesh, NULL), 0);
        assert_int_equal(torc_testing_xds_put(world, large_ring, NULL), 0);
        put_endpoints(world, "1");
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                         .ring_size_cap = 65536};
        channel = torc_channel_new(NULL, "xds:///orders", &o, NULL);
        assert_non_null(channel);
        torc_channel_state(channel, true);
        left = steps;
        rc = torc_testing_run_until(world, are_done, NULL, 1000);
        torc_channel_free(channel);
        torc_server_free(one.server);
        assert_int_equal(torc_testing_free(world), 0);
    }
    assert_int_equal(rc, TORC_ETIMEDOUT);
    assert_true(steps > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_ring, begin, end),
        cmocka_unit_test_setup_teardown(test_failover, begin, end),
        cmocka_unit_test_setup_teardown(test_no_control_plane, begin, end),
        cmocka_unit_test_setup_teardown(test_resources, begin, end),
        cmocka_unit_test(test_ends_amid_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
