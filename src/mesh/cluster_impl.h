/* xds_cluster_impl: what holds for all of a cluster's RPCs (A37, A74, A75): EDS drops and circuit breaking (A32). What
 * the limits are it reads from the XdsConfig in its attributes. */
#ifndef TC_MESH_CLUSTER_IMPL_H
#define TC_MESH_CLUSTER_IMPL_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_cluster_impl_class;

/* A config with one reference; takes references of its own. */
struct tc_lb_config *tc_cluster_impl_config_new(struct tc_rstr *cluster, struct tc_lb_config *child);

#endif
