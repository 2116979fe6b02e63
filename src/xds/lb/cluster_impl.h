/* xds_cluster_impl (A37, A74, A75): EDS drops, circuit breaking (A32) and load reports, for all RPCs of a cluster. The
 * limits come from the XdsConfig in the update's attributes. Loop thread only. */
#ifndef TC_XDS_LB_CLUSTER_IMPL_H
#define TC_XDS_LB_CLUSTER_IMPL_H

#include "lb/child_configs.h"

/* Its config is tc_child_config_single's: the cluster's name, and the child's config. */
extern const struct tc_lb_factory tc_cluster_impl_factory;

#endif
