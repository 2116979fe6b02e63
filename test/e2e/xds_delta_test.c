/* Large meshes. Incremental ADS on the wire: what a change of one endpoint costs in a mesh of 1,000 clusters, and what
 * a restart of the control plane does. */
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/mesh_kit.h"
#include "support/wire_proxy.h"

#include "base/mem.h"

#define CLUSTERS 1000
#define ENDPOINTS 10

static void append_endpoints(struct tc_buf *b, size_t cluster, size_t change)
{
    tc_buf_printf(b,
                  "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                  "  cluster_name: c%zu\n"
                  "  endpoints: [{load_balancing_weight: 1, locality: {region: r, zone: z}, lb_endpoints: [",
                  cluster);
    for (size_t i = 0; i < ENDPOINTS; i++)
        tc_buf_printf(b, "%s{endpoint: {address: {socket_address: {address: 10.%zu.%zu.%zu, port_value: 80}}}}",
                      i ? ", " : "", cluster / 256, cluster % 256, i + (i == 0 ? 100 + change : 1));
    tc_buf_append_str(b, "]}]\n");
}

/* A route and a cluster for each, and a last route to `cluster` for all else (NULL: none). */
static void put_mesh(struct mesh_kit *k, size_t n, const char *cluster)
{
    struct tc_buf routes = {0}, b = {0};
    tc_buf_append_str(&b, "resources:\n");
    for (size_t i = 0; i < n; i++) {
        tc_buf_printf(&b,
                      "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                      "  name: c%zu\n  type: EDS\n  lb_policy: RING_HASH\n"
                      "  ring_hash_lb_config: {minimum_ring_size: 16, maximum_ring_size: 16}\n"
                      "  eds_cluster_config: {eds_config: {ads: {}}}\n",
                      i);
        append_endpoints(&b, i, 0);
        tc_buf_printf(&routes, "%s{match: {prefix: \"/s%zu/\"}, route: {cluster: c%zu}}", i ? ", " : "", i, i);
    }
    if (cluster)
        tc_buf_printf(&routes, ", {match: {prefix: \"\"}, route: {cluster: %s}}", cluster);
    mesh_kit_put(k, "%s", tc_buf_cstr(&b));
    mesh_kit_put_routes(k, "svc", tc_buf_cstr(&routes));
    tc_buf_fini(&routes);
    tc_buf_fini(&b);
}

/* Waits for the client's answer. In the state of the world that has the version: put_mesh made the first. */
static void change_one(struct mesh_kit *k, bool versions, size_t change)
{
    struct tc_buf b = {0};
    char *answer =
        versions ? tc_asprintf("ClusterLoadAssignment %zu ", change + 1) : tc_strdup("ClusterLoadAssignment");
    tc_free(mesh_kit_requests(k));
    tc_buf_append_str(&b, "resources:\n");
    append_endpoints(&b, 7, change);
    mesh_kit_put(k, "%s", tc_buf_cstr(&b));
    tc_buf_fini(&b);
    mesh_kit_wait_request(k, answer);
    tc_free(answer);
}

struct world {
    struct mesh_kit *k;
    struct wire_proxy *proxy;
    char *bootstrap;
    torc_channel *ch;
};

static struct world open_world(bool incremental)
{
    struct world w = {.k = mesh_kit_new(0)};
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    put_mesh(w.k, CLUSTERS, NULL);
    w.proxy = wire_proxy_new(mesh_kit_control_plane(w.k));
    w.bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                              "\"insecure\"}], \"server_features\": [\"%s\"]}], \"node\": {\"id\": \"test-node\"}}",
                              wire_proxy_address(w.proxy), incremental ? "torc.incremental_ads" : "xds_v3");
    o.xds_bootstrap_json = w.bootstrap;
    w.ch = mesh_kit_channel(w.k, "svc", &o);
    /* No route has this prefix: the config is there in full. */
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "No matching route");
    /* What answers the last responses is through as well. */
    change_one(w.k, !incremental, 1);
    change_one(w.k, !incremental, 2);
    wire_proxy_take_received(w.proxy);
    wire_proxy_take_sent(w.proxy);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    mesh_kit_free(w->k);
    wire_proxy_free(w->proxy);
    tc_free(w->bootstrap);
}

static void one_endpoint_changes(void **state)
{
    (void)state;
    struct world w = open_world(true);
    for (size_t i = 3; i < 6; i++) {
        change_one(w.k, false, i);
        uint64_t received = wire_proxy_take_received(w.proxy), sent = wire_proxy_take_sent(w.proxy);
        print_message("one endpoint, incremental: %llu bytes received, %llu sent\n", (unsigned long long)received,
                      (unsigned long long)sent);
        assert_in_range(received + sent, 1, 1999);
    }
    close_world(&w);
}

/* What it is measured against: state of the world has all names in each answer. */
static void state_of_the_world(void **state)
{
    (void)state;
    struct world w = open_world(false);
    change_one(w.k, true, 3);
    uint64_t received = wire_proxy_take_received(w.proxy), sent = wire_proxy_take_sent(w.proxy);
    print_message("one endpoint, state of the world: %llu bytes received, %llu sent\n", (unsigned long long)received,
                  (unsigned long long)sent);
    assert_true(received + sent > 50 * 2000);
    close_world(&w);
}

static void control_plane_restarts(void **state)
{
    (void)state;
    struct world w = open_world(true);
    mesh_kit_stop_control_plane(w.k);
    wire_proxy_take_received(w.proxy);
    tc_free(mesh_kit_requests(w.k));
    mesh_kit_start_control_plane(w.k);
    mesh_kit_wait_request(w.k, "initial 1000\nClusterLoadAssignment");
    change_one(w.k, false, 3);
    uint64_t received = wire_proxy_take_received(w.proxy);
    print_message("after a restart, with one change: %llu bytes received\n", (unsigned long long)received);
    assert_in_range(received, 1, 1999);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "No matching route");
    close_world(&w);
}

/* Removal, and what is invalid, as they come over this form. */
static void removal_and_nack(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(2);
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}], \"server_features\": [\"torc.incremental_ads\", "
                                  "\"fail_on_data_errors\"]}], \"node\": {\"id\": \"test-node\"}}",
                                  mesh_kit_control_plane(k));
    o.xds_bootstrap_json = bootstrap;
    mesh_kit_put_endpoints(k, "c", "0/a: 0", NULL);
    mesh_kit_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    mesh_kit_put_listener(k, "svc", "c", NULL);
    torc_channel *ch = mesh_kit_channel(k, "svc", &o);
    mesh_kit_calls(ch, NULL, 10);
    mesh_kit_put_endpoints(k, "c", "0/a: 1", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    tc_free(mesh_kit_requests(k));
    mesh_kit_put_cluster(k, "c", "lb_policy: MAGLEV");
    mesh_kit_wait_request(k, "NACK 3 resource index 0: Cluster \"c\": ");
    mesh_kit_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    mesh_kit_wait_backend(k, ch, NULL, 1);
    mesh_kit_remove(k, "Listener", "svc");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "LDS resource \"svc\"");
    mesh_kit_put_listener(k, "svc", "c", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    torc_channel_free(ch);
    mesh_kit_free(k);
    tc_free(bootstrap);
}

/* A channel with a config of 2,000 clusters more, state of the world: RPCs of one go on while others change, and its
 * own change gets through. */
static void two_thousand_clusters(void **state)
{
    enum { MANY = 2000 };
    (void)state;
    struct mesh_kit *k = mesh_kit_new(2);
    mesh_kit_put_endpoints(k, "real", "0/a: 0", NULL);
    mesh_kit_put_cluster(k, "real", NULL);
    put_mesh(k, MANY, "real");
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    uint64_t connections = mesh_kit_connections(k, 0);
    for (size_t i = 1; i < 4; i++) {
        change_one(k, false, i);
        mesh_kit_calls(ch, NULL, 20);
    }
    assert_int_equal(mesh_kit_connections(k, 0), connections);
    mesh_kit_put_endpoints(k, "real", "0/a: 1", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    torc_channel_free(ch);
    mesh_kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_endpoint_changes),   cmocka_unit_test(state_of_the_world),
        cmocka_unit_test(control_plane_restarts), cmocka_unit_test(removal_and_nack),
        cmocka_unit_test(two_thousand_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
