/* A dependency manager over the real xDS client, whose servers the test plays (fakes/xds), on a manual loop. One
 * thread. */
#ifndef TC_SUPPORT_KITS_DEPENDENCY_H
#define TC_SUPPORT_KITS_DEPENDENCY_H

#include "support/fakes/xds.h"
#include "xds/client/client.h"
#include "xds/resolver/dependency_manager.h"

/* Type URLs, and a Listener "l" in proto3 JSON with these routes: "'rds': {...}" for example. */
#define KIT_CONFIG_TYPE(package, name) "type.googleapis.com/envoy.config." package ".v3." name
#define KIT_LDS KIT_CONFIG_TYPE("listener", "Listener")
#define KIT_RDS KIT_CONFIG_TYPE("route", "RouteConfiguration")
#define KIT_CDS KIT_CONFIG_TYPE("cluster", "Cluster")
#define KIT_LEDS KIT_CONFIG_TYPE("endpoint", "LbEndpointCollection")
#define KIT_EDS KIT_CONFIG_TYPE("endpoint", "ClusterLoadAssignment")
#define KIT_LISTENER(routes)                                                                                           \
    "{'@type': '" KIT_LDS "', 'name': 'l', 'apiListener': {'apiListener': {'@type': "                                  \
    "'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', "        \
    "'httpFilters': [{'name': 'router', 'typedConfig': {'@type': "                                                     \
    "'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}], " routes "}}}"
/* More resources in proto3 JSON, and a part of one. All arguments are string literals.
 *
 *   KIT_BY_RDS      a Listener whose routes come by RDS
 *   KIT_ROUTES      a RouteConfiguration of one virtual host
 *   KIT_TO          a route to a cluster, for paths that begin with a slash and the cluster's name
 *   KIT_CLUSTER     an EDS cluster
 *   KIT_ENDPOINTS   a ClusterLoadAssignment of one endpoint: 1.1.1.1 and that port */
#define KIT_BY_RDS(name) KIT_LISTENER("'rds': {'routeConfigName': '" name "', 'configSource': {'ads': {}}}")
#define KIT_ROUTES(name, domain, routes)                                                                               \
    "{'@type': '" KIT_RDS "', 'name': '" name "', 'virtualHosts': [{'name': 'v', 'domains': ['" domain                 \
    "'], 'routes': [" routes "]}]}"
#define KIT_TO(cluster) "{'match': {'prefix': '/" cluster "'}, 'route': {'cluster': '" cluster "'}}"
#define KIT_CLUSTER(name)                                                                                              \
    "{'@type': '" KIT_CDS "', 'name': '" name "', 'type': 'EDS', 'edsClusterConfig': {'edsConfig': {'ads': {}}}}"
#define KIT_ENDPOINTS(name, port)                                                                                      \
    "{'@type': '" KIT_EDS "', 'clusterName': '" name                                                                   \
    "', 'endpoints': [{'loadBalancingWeight': 1, 'locality': {'region': "                                              \
    "'r'}, 'lbEndpoints': [{'endpoint': {'address': {'socketAddress': {'address': '1.1.1.1', 'portValue': " port       \
    "}}}}]}]}"

struct kit_dependency {
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct fake_xds_server *server; /* the first server of the bootstrap */
    struct tc_xds_client *client;
    struct tc_dependency_manager *manager;
    int version;                  /* of the last response; 0: none yet */
    struct tc_xds_config *config; /* the config published last, a reference; kept after an error; NULL: none yet */
    struct tc_status error;       /* the error reported last; kept after a config; OK: none yet */
    unsigned configs, errors;     /* how many came */
};

/* Returns a client of this bootstrap, whose channel_creds may be of any type, with the built-in registries. The caller
 * releases it with tc_xds_client_unref. Fails the test if the bootstrap is invalid. */
struct tc_xds_client *kit_dependency_client(struct tc_loop *loop, struct fake_xds *fake, const char *bootstrap);
/* Fills *k, makes a manager for the Listener "l" and the authority "svc", and runs the loop. bootstrap NULL: one server
 * "s1", node id "n1". dns_env must outlive the manager, and gets its loop here; NULL: LOGICAL_DNS clusters fail. */
void kit_dependency_open(struct kit_dependency *k, const char *bootstrap, struct tc_resolver_env *dns_env);
/* Frees everything in *k: manager, client, fake and loop. */
void kit_dependency_close(struct kit_dependency *k);
/* Sends a response with these resources, in proto3 JSON and separated by commas, and runs the loop. */
void kit_dependency_respond(struct kit_dependency *k, struct fake_xds_server *server, const char *type_url,
                            const char *resources);
/* Sends a response as kit_dependency_respond does, from the first server. */
void kit_dependency_answer(struct kit_dependency *k, const char *type_url, const char *resources);
/* Takes all requests to the first server. Returns the names in the last request for the type, joined by commas (the
 * first 255 bytes), valid until the next call; "": there was no such request, or it has no names. */
const char *kit_dependency_asked(struct kit_dependency *k, const char *type_url);
/* Returns a cluster of the last config, borrowed from it. Fails the test if there is no config or no such cluster. */
struct tc_cluster_config *kit_dependency_cluster(const struct kit_dependency *k, const char *name);
/* Asserts the text of tc_dependency_manager_pending, which names what the config waits for. */
void kit_dependency_assert_pending(const struct kit_dependency *k, const char *text);

#endif
