/* Converts the load balancing of a Cluster into the config that LB policies read (A42, A48, A52): a JSON
 * loadBalancingConfig list of one entry. What a Cluster with only the field lb_policy becomes:
 *     ROUND_ROBIN -> [{"xds_wrr_locality_experimental": {"childPolicy": [{"round_robin": {}}]}}]
 *     LEAST_REQUEST -> as ROUND_ROBIN, with the child {"least_request_experimental": {"choiceCount": 2}}
 *     RING_HASH   -> [{"ring_hash_experimental": {"minRingSize": 1024, "maxRingSize": 8388608}}]
 *     MAGLEV      -> [{"maglev_experimental": {"tableSize": 65537}}]
 * C-core and grpc-go make the same of ROUND_ROBIN and RING_HASH. LEAST_REQUEST is as in grpc-java (grpc-go does not put
 * it below xds_wrr_locality). gRPC does not have MAGLEV: its list is Torc's own.
 *
 * Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_LB_CONFIG_H
#define TC_XDS_RESOURCE_LB_CONFIG_H

#include <jansson.h>

#include "pb/envoy/config/cluster/v3/cluster.pb-c.h"
#include "xds/resource/decoder.h"

/* Numbers of entries in a ring. */
enum {
    TC_XDS_RING_SIZE_MAX = 8388608,
    TC_XDS_RING_SIZE_MIN_DEFAULT = 1024,
};

/* Converts load_balancing_policy if the cluster has it, else lb_policy and its settings; registries.lb_check checks the
 * result. Stores hash policies of the LB policy in `dec`. Returns a new reference; NULL with errors. `aggregate`:
 * lb_policy may be CLUSTER_PROVIDED, which means ROUND_ROBIN. */
json_t *tc_decode_cluster_lb(struct tc_decoder *dec, const Envoy__Config__Cluster__V3__Cluster *m, bool aggregate);

#endif
