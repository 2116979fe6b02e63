/* xds_cluster_manager (A31): a child for each cluster, chosen by the cluster that the config selector gave the RPC.
 * Loop thread only. */
#ifndef TC_XDS_LB_CLUSTER_MANAGER_H
#define TC_XDS_LB_CLUSTER_MANAGER_H

#include "lb/child_configs.h"

extern const struct tc_lb_factory tc_cluster_manager_factory;

#endif
