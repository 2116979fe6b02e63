/* Large meshes over incremental ADS. With 1,000 clusters the tests count the bytes on the wire when one endpoint
 * changes, and when the control plane restarts; state of the world is measured for comparison. Also removal and NACKs
 * over incremental ADS, and 2,001 clusters in state of the world.
 *
 * Each test makes its mesh (kits/mesh.h). Where bytes are counted (struct world), the ADS stream passes a proxy, which
 * has a thread of its own. There the mesh has no backends: an RPC that fails because no route matches shows that the
 * client has all resources. The client runs on the thread of the mesh's runtime. */
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/net/wire_proxy.h"

#include "base/mem.h"

#define CLUSTERS 1000
#define ENDPOINTS 10

/* Appends the ClusterLoadAssignment of cluster "c<cluster>", whose ENDPOINTS addresses begin with 10 and the cluster's
 * number in two bytes. `change`, at most 155, makes the first address differ: its last byte is 100 + change. */
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

/* Puts n clusters c0, c1, ... with endpoints, and a listener "svc" with a route "/sN/" to each cluster. A last route
 * leads everything else to `cluster` (NULL: no such route). */
static void put_mesh(struct kit_mesh *k, size_t n, const char *cluster)
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
    kit_mesh_put(k, "%s", tc_buf_cstr(&b));
    kit_mesh_put_routes(k, "svc", tc_buf_cstr(&routes));
    tc_buf_fini(&routes);
    tc_buf_fini(&b);
}

/* Changes the first endpoint of cluster c7, by append_endpoints's `change`, and waits until the client has accepted the
 * assignment. */
static void change_one(struct kit_mesh *k, size_t change)
{
    struct tc_buf b = {0};
    char *address = tc_asprintf("10.0.7.%zu", 100 + change);
    tc_buf_append_str(&b, "resources:\n");
    append_endpoints(&b, 7, change);
    kit_mesh_put(k, "%s", tc_buf_cstr(&b));
    tc_buf_fini(&b);
    kit_mesh_wait_accepted(k, "ClusterLoadAssignment", "c7", address);
    tc_free(address);
}

struct world {
    struct kit_mesh *k;
    struct wire_proxy *proxy; /* between the client and the control plane */
    char *bootstrap;          /* names the proxy as the xDS server */
    torc_channel *ch;         /* to "svc" */
};

/* Makes a mesh of CLUSTERS clusters and a channel that has all its resources, and sets the proxy's counts to 0. With
 * `incremental` the client uses incremental ADS, otherwise state of the world. */
static struct world open_world(bool incremental)
{
    struct world w = {.k = kit_mesh_new(0)};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    put_mesh(w.k, CLUSTERS, NULL);
    w.proxy = wire_proxy_new(kit_mesh_control_plane(w.k));
    w.bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                              "\"insecure\"}], \"server_features\": [\"%s\"]}], \"node\": {\"id\": \"test-node\"}}",
                              wire_proxy_address(w.proxy), incremental ? "torc.incremental_ads" : "xds_v3");
    o.xds_bootstrap_json = w.bootstrap;
    w.ch = kit_mesh_channel(w.k, "svc", &o);
    /* No route matches the method of the kit's RPC: this failure shows that the config is complete. */
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "No matching route");
    /* Once these changes are accepted, the ACKs of the first responses have passed the proxy, too. */
    change_one(w.k, 1);
    change_one(w.k, 2);
    wire_proxy_take_received(w.proxy);
    wire_proxy_take_sent(w.proxy);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    kit_mesh_free(w->k);
    wire_proxy_free(w->proxy);
    tc_free(w->bootstrap);
}

static void one_endpoint_changes(void **state)
{
    (void)state;
    struct world w = open_world(true);
    for (size_t i = 3; i < 6; i++) {
        change_one(w.k, i);
        uint64_t received = wire_proxy_take_received(w.proxy), sent = wire_proxy_take_sent(w.proxy);
        print_message("one endpoint, incremental: %llu bytes received, %llu sent\n", (unsigned long long)received,
                      (unsigned long long)sent);
        assert_in_range(received + sent, 1, 1999);
    }
    close_world(&w);
}

/* For comparison: in state of the world a response has all assignments, and its ACK all names. */
static void state_of_the_world(void **state)
{
    (void)state;
    struct world w = open_world(false);
    change_one(w.k, 3);
    uint64_t received = wire_proxy_take_received(w.proxy), sent = wire_proxy_take_sent(w.proxy);
    print_message("one endpoint, state of the world: %llu bytes received, %llu sent\n", (unsigned long long)received,
                  (unsigned long long)sent);
    assert_true(received + sent > 50 * 2000);
    close_world(&w);
}

/* On the new stream the client sends the versions that it has, so the control plane sends only what has changed. */
static void control_plane_restarts(void **state)
{
    (void)state;
    struct world w = open_world(true);
    kit_mesh_stop_control_plane(w.k);
    wire_proxy_take_received(w.proxy);
    tc_free(kit_mesh_requests(w.k));
    kit_mesh_start_control_plane(w.k);
    kit_mesh_wait_request(w.k, "initial 1000\nClusterLoadAssignment");
    change_one(w.k, 3);
    uint64_t received = wire_proxy_take_received(w.proxy);
    print_message("after a restart, with one change: %llu bytes received\n", (unsigned long long)received);
    assert_in_range(received, 1, 1999);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "No matching route");
    close_world(&w);
}

/* Removal and invalid resources, over incremental ADS. */
static void removal_and_nack(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}], \"server_features\": [\"torc.incremental_ads\", "
                                  "\"fail_on_data_errors\"]}], \"node\": {\"id\": \"test-node\"}}",
                                  kit_mesh_control_plane(k));
    o.xds_bootstrap_json = bootstrap;
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_listener(k, "svc", "c", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", &o);
    kit_mesh_calls(ch, NULL, 10);
    kit_mesh_put_endpoints(k, "c", "0/a: 1", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    tc_free(kit_mesh_requests(k));
    kit_mesh_put_cluster(k, "c", "lb_policy: RANDOM");
    kit_mesh_wait_request(k, "NACK 3 resource index 0: Cluster \"c\": ");
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_mesh_remove(k, "Listener", "svc");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "LDS resource \"svc\"");
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    torc_channel_free(ch);
    kit_mesh_free(k);
    tc_free(bootstrap);
}

/* A channel with 2,001 clusters, state of the world: RPCs of one cluster go on, without a new connection, while another
 * cluster changes. Then a change of their own cluster arrives. */
static void two_thousand_clusters(void **state)
{
    enum { MANY = 2000 };
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    kit_mesh_put_endpoints(k, "real", "0/a: 0", NULL);
    kit_mesh_put_cluster(k, "real", NULL);
    put_mesh(k, MANY, "real");
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    uint64_t connections = kit_mesh_connections(k, 0);
    for (size_t i = 1; i < 4; i++) {
        change_one(k, i);
        kit_mesh_calls(ch, NULL, 20);
    }
    assert_int_equal(kit_mesh_connections(k, 0), connections);
    kit_mesh_put_endpoints(k, "real", "0/a: 1", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    torc_channel_free(ch);
    kit_mesh_free(k);
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
