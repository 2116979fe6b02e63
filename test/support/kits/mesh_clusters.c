/* kit_mesh: clusters other than EDS. */
#include "support/kits/mesh.h"

void kit_mesh_put_aggregate(struct kit_mesh *k, const char *name, const char *children)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: %s\n"
                 "  lb_policy: CLUSTER_PROVIDED\n"
                 "  cluster_type:\n"
                 "    name: envoy.clusters.aggregate\n"
                 "    typed_config:\n"
                 "      \"@type\": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig\n"
                 "      clusters: [%s]\n",
                 name, children);
}

void kit_mesh_put_dns(struct kit_mesh *k, const char *name, const char *host, const char *port, const char *policy)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: %s\n"
                 "  type: LOGICAL_DNS\n"
                 "  lb_policy: %s\n"
                 "  load_assignment:\n"
                 "    endpoints:\n"
                 "    - lb_endpoints:\n"
                 "      - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n",
                 name, policy, host, port);
}
