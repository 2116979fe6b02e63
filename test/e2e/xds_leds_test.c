/* Endpoints in collections (LEDS, A95), over both forms of ADS. Two localities, of priorities 0 and 1, have a
 * collection each; RPCs follow the changes of the first. Each test has a mesh of three backends (kits/mesh.h). */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/mem.h"

/* Puts the collection `name` with these entries (YAML flow maps, separated by commas; "": none). */
static void put_collection(struct kit_mesh *k, const char *name, const char *entries)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n"
                 "  name: %s\n"
                 "  resource:\n"
                 "    \"@type\": type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection\n"
                 "    entries: [%s]\n",
                 name, entries);
}

/* Puts the collection `name` with backend i as its one endpoint. */
static void put_backend(struct kit_mesh *k, const char *name, size_t i)
{
    const char *port = strchr(kit_mesh_address(k, i), ':') + 1;
    char *entry = tc_asprintf("{inline_entry: {resource: {\"@type\": "
                              "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint, endpoint: {address: "
                              "{socket_address: {address: 127.0.0.1, port_value: %s}}}}}}",
                              port);
    put_collection(k, name, entry);
    tc_free(entry);
}

/* Waits until backend i answers, then asserts that it gets all of 20 calls. */
static void assert_serves(struct kit_mesh *k, torc_channel *ch, size_t i)
{
    kit_mesh_wait_backend(k, ch, NULL, i);
    kit_mesh_take(k, i);
    kit_mesh_calls(ch, NULL, 20);
    assert_int_equal(kit_mesh_take(k, i), 20);
}

static void rpcs_go_where_collections_say(bool incremental)
{
    struct kit_mesh *k = kit_mesh_new(3);
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}], \"server_features\": [\"%s\"]}], \"node\": {\"id\": \"test-node\"}}",
                                  kit_mesh_control_plane(k), incremental ? "torc.incremental_ads" : "xds_v3");
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    o.xds_bootstrap_json = bootstrap;
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_put(k, "resources:\n"
                    "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                    "  cluster_name: c\n"
                    "  endpoints:\n"
                    "  - {load_balancing_weight: 1, locality: {region: a}, leds_cluster_locality_config: "
                    "{leds_config: {self: {}}, leds_collection_name: first}}\n"
                    "  - {load_balancing_weight: 1, locality: {region: b}, priority: 1, leds_cluster_locality_config: "
                    "{leds_config: {self: {}}, leds_collection_name: second}}\n");
    put_backend(k, "first", 0);
    put_backend(k, "second", 1);
    torc_channel *ch = kit_mesh_channel(k, "svc", &o);
    assert_serves(k, ch, 0);
    put_backend(k, "first", 2);
    assert_serves(k, ch, 2);
    put_collection(k, "first", ""); /* the next priority serves */
    assert_serves(k, ch, 1);
    put_collection(k, "first", "{}"); /* refused: nothing changes */
    kit_mesh_wait_request(k, "field entries[0].inline_entry: field not present");
    assert_serves(k, ch, 1);
    put_backend(k, "first", 0);
    assert_serves(k, ch, 0);
    torc_channel_free(ch);
    tc_free(bootstrap);
    kit_mesh_free(k);
}

static void state_of_the_world(void **state)
{
    TC_CASE(ED27);
    (void)state;
    rpcs_go_where_collections_say(false);
}

static void incremental(void **state)
{
    TC_CASE(ED27);
    (void)state;
    rpcs_go_where_collections_say(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(state_of_the_world), cmocka_unit_test(incremental)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
