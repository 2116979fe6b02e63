/* The resources of dependency_steps_test as proto3 JSON. */
#include "support/kits/dependency_steps.h"

#include "base/buf.h"

#define OF_A "xdstp://a/envoy.config."

const char *const kit_steps_types[TYPES] = {KIT_LDS, KIT_RDS, KIT_CDS, KIT_EDS, KIT_LEDS};
const char *const kit_steps_clusters[CLUSTERS] = {
    "c0", "c1", "c2", "c3", "c4", OF_A "cluster.v3.Cluster/c5", OF_A "cluster.v3.Cluster/c6"};
static const char *const eds_names[CLUSTERS] = {"e0",
                                                "e1",
                                                "e2",
                                                "e3",
                                                "e4",
                                                OF_A "endpoint.v3.ClusterLoadAssignment/e5",
                                                OF_A "endpoint.v3.ClusterLoadAssignment/e6"};

/* Names of collections: endpoints of one locality as a resource of its own (LEDS, A95). */
static const char *const collection_names[CLUSTERS] = {"l0",
                                                       "l1",
                                                       "l2",
                                                       "l3",
                                                       "l4",
                                                       OF_A "endpoint.v3.LbEndpointCollection/l5",
                                                       OF_A "endpoint.v3.LbEndpointCollection/l6"};

static void put_listener(struct tc_buf *b, const struct kit_steps_resource *r)
{
    tc_buf_printf(b,
                  "'name': 'l', 'apiListener': {'apiListener': {'@type': 'type.googleapis.com/"
                  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', "
                  "'httpFilters': [%s], 'rds': {'routeConfigName': 'r', 'configSource': {'ads': {}}}}}",
                  r->refused ? ""
                             : "{'name': 'router', 'typedConfig': {'@type': "
                               "'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}");
}

static void put_routes(struct tc_buf *b, const struct kit_steps_resource *r)
{
    tc_buf_printf(b, "'name': 'r', 'virtualHosts': [{'name': 'v', 'domains': ['%s'], 'routes': [",
                  r->refused        ? "a*b"
                  : r->served.roots ? "*"
                                    : "elsewhere");
    bool first = true;
    for (unsigned i = 0; i < CLUSTERS; i++)
        if (r->served.roots & 1U << i) {
            tc_buf_printf(b, "%s{'match': {'prefix': '/%u'}, 'route': {'cluster': '%s'}}", first ? "" : ", ", i,
                          kit_steps_clusters[i]);
            first = false;
        }
    tc_buf_append_str(b, "]}]");
}

static void put_cluster(struct tc_buf *b, const struct kit_steps_resource *r)
{
    const struct kit_steps_value *v = &r->served;
    tc_buf_printf(b, "'name': '%s', 'circuitBreakers': {'thresholds': [{'maxRequests': %u}]}, ",
                  kit_steps_clusters[r->number], v->requests);
    if (v->kind == BY_EDS) {
        tc_buf_printf(b, "'type': 'EDS', %s'edsClusterConfig': {'serviceName': '%s', 'edsConfig': {'ads': {}}}",
                      r->refused ? "'lbPolicy': 'RANDOM', " : "", eds_names[v->eds]);
    } else if (v->kind == BY_DNS) {
        tc_buf_printf(b,
                      "'type': 'LOGICAL_DNS', 'loadAssignment': {'clusterName': 'd', 'endpoints': [{'lbEndpoints': "
                      "[{'endpoint': {'address': {'socketAddress': {'address': '%s', 'portValue': 1}}}}]}]}",
                      r->refused ? "" : "h.test");
    } else {
        tc_buf_append_str(b, "'clusterType': {'name': 'a', 'typedConfig': {'@type': 'type.googleapis.com/"
                             "envoy.extensions.clusters.aggregate.v3.ClusterConfig', 'clusters': [");
        for (unsigned i = 0; i < v->n_children && !r->refused; i++)
            tc_buf_printf(b, "%s'%s'", i ? ", " : "", kit_steps_clusters[v->children[i]]);
        tc_buf_append_str(b, "]}}");
    }
}

static void put_endpoints(struct tc_buf *b, const struct kit_steps_resource *r)
{
    unsigned port = r->refused ? 99999 : r->served.port;
    const char *comma = "";
    tc_buf_printf(b, "'clusterName': '%s', 'endpoints': [", eds_names[r->number]);
    if (port) {
        tc_buf_printf(b,
                      "{'loadBalancingWeight': 1, 'locality': {'region': 'r'}, 'lbEndpoints': "
                      "[{'endpoint': {'address': {'socketAddress': {'address': '1.1.1.1', 'portValue': %u}}}}]}",
                      port);
        comma = ", ";
    }
    for (unsigned i = 0; i < r->served.n_collections; i++, comma = ", ")
        tc_buf_printf(b,
                      "%s{'loadBalancingWeight': 1, 'locality': {'region': 's%u'}, 'ledsClusterLocalityConfig': "
                      "{'ledsConfig': {'self': {}}, 'ledsCollectionName': '%s'}}",
                      comma, i, collection_names[r->served.collections[i]]);
    tc_buf_append_str(b, "]");
}

static void put_collection(struct tc_buf *b, const struct kit_steps_resource *r)
{
    tc_buf_append_str(b, "'entries': [");
    if (r->served.port)
        tc_buf_printf(
            b,
            "{'inlineEntry': {'resource': {'@type': 'type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint', "
            "'endpoint': {'address': {'socketAddress': {'address': '1.1.1.2', 'portValue': %u}}}}}}",
            r->refused ? 99999 : r->served.port);
    else if (r->refused)
        tc_buf_append_str(b, "{}");
    tc_buf_append_str(b, "]");
}

const char *kit_steps_name(const struct kit_steps_resource *r)
{
    return r->type == LDS   ? "l"
           : r->type == RDS ? "r"
           : r->type == CDS ? kit_steps_clusters[r->number]
           : r->type == EDS ? eds_names[r->number]
                            : collection_names[r->number];
}

void kit_steps_put(struct tc_buf *b, const struct kit_steps_resource *r)
{
    static void (*const put[TYPES])(struct tc_buf *, const struct kit_steps_resource *) = {
        put_listener, put_routes, put_cluster, put_endpoints, put_collection};
    tc_buf_printf(b, "{'@type': '%s', ", kit_steps_types[r->type]);
    put[r->type](b, r);
    tc_buf_append_str(b, "}");
}
