/* Cluster snapshots and XdsConfigs made by hand, for unit tests of src/xds. JSON with ' for ". A text that makes an
 * invalid resource fails the test. */
#ifndef TC_SUPPORT_KITS_CONFIG_H
#define TC_SUPPORT_KITS_CONFIG_H

#include "support/fakes/lb.h"
#include "xds/resource/xds_config.h"

/* Makes an EDS resource "c" from "0/a=1: 1.1.1.1:1*2 1.1.1.1:2#key; 1/b: ...". Localities, separated by ';', are
 * PRIORITY/SUB_ZONE=WEIGHT (weight 1 by default). Endpoints, separated by spaces, are IPV4:PORT, then in this order
 * *WEIGHT, #HASH_KEY, !HEALTH. `more`: further members of the resource (", 'policy': {...}"); NULL: none. Release the
 * result with kit_config_eds_unref, or hand it to kit_config_cluster. */
const struct tc_eds *kit_config_eds(const char *localities, const char *more);
void kit_config_eds_unref(const struct tc_eds *eds);

/* Makes a snapshot of an EDS cluster. `more`: further members of the Cluster (", 'lbPolicy': ..."), or "". Takes
 * ownership of eds (NULL: none). Release the result with tc_cluster_config_unref, or hand it to kit_config_config. */
struct tc_cluster_config *kit_config_cluster(const char *name, const char *more, const struct tc_eds *eds);
/* Makes a config of at most 8 clusters, which must come in the order of their names; NULL ends the list. Takes
 * ownership of the clusters. The node id is "n1". Release the result with tc_xds_config_unref, or hand it to
 * kit_config_update. */
struct tc_xds_config *kit_config_config(struct tc_cluster_config *first, ...) __attribute__((sentinel));
/* Makes a config with a listener and one virtual host, without clusters: HTTP filters before the router ("{...},"),
 * further members of the virtual host ("...,"), its routes, and further members of the HttpConnectionManager
 * (", ..."). Each may be "", none NULL. The node id is "n1". Release the result with tc_xds_config_unref. */
struct tc_xds_config *kit_config_routing(const char *filters, const char *vhost, const char *routes, const char *more);

/* Makes a fake channel with the policy of this name; free it with kit_config_lb_free. */
struct fake_lb *kit_config_lb(const char *policy);
void kit_config_lb_free(struct fake_lb *f);
/* Updates the policy with lb_config, an empty endpoint list, and `config` as the attributes, and runs the loop. Takes
 * ownership of lb_config and `config`. Ignores the status that the policy returns. */
void kit_config_update(struct fake_lb *f, struct tc_lb_config *lb_config, struct tc_xds_config *config);

#endif
