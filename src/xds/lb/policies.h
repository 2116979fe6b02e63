/* The LB policies of xDS, from the top of a channel's tree down. xds_override_host, below xds_cluster_impl, is in
 * override_host.h. Policies: loop thread only; configs: any thread. */
#ifndef TC_XDS_LB_POLICIES_H
#define TC_XDS_LB_POLICIES_H

#include "lb/child_configs.h"

/* xds_cluster_manager (A31): a child for each cluster, chosen by the cluster that the config selector gave the RPC. The
 * config comes from tc_child_configs_new: the name of each cluster, and the config of its child. */
extern const struct tc_lb_factory tc_cluster_manager_factory;

/* cds (A74, A75): one cluster of the XdsConfig in the update's attributes. A leaf cluster becomes
 *     outlier_detection -> xds_cluster_impl -> xds_override_host -> priority -> for each priority the policy that the
 *     cluster asks for;
 * an aggregate becomes priority -> a cds for each leaf cluster.
 *
 * The config comes from tc_child_config_single: the cluster's name, and the config of the policy to use instead of the
 * one that the cluster asks for (A75's backward compatibility), or NULL. */
extern const struct tc_lb_factory tc_cds_factory;

/* xds_cluster_impl (A37, A74, A75): EDS drops, circuit breaking (A32) and load reports, for all RPCs of a cluster. The
 * limits come from the XdsConfig in the update's attributes. The config comes from tc_child_config_single: the
 * cluster's name, and the child's config. */
extern const struct tc_lb_factory tc_cluster_impl_factory;

/* xds_wrr_locality (A28, A52): picks a locality by its weight, then an endpoint in the locality by the child policy.
 * Its child is a weighted_target over the localities of the endpoint list. The config comes from tc_child_config_single
 * without a name: the config of the policy for each locality. */
extern const struct tc_lb_factory tc_wrr_locality_factory;

#endif
