/* The LB policies of xDS, in the order in which they stand above one another; override_host.h has the one below
 * xds_cluster_impl. Policies: loop thread only; configs: any thread. */
#ifndef TC_XDS_LB_POLICIES_H
#define TC_XDS_LB_POLICIES_H

#include "lb/child_configs.h"

/* xds_cluster_manager (A31): a child for each cluster, chosen by the cluster that the config selector gave the RPC. */
extern const struct tc_lb_factory tc_cluster_manager_factory;

/* cds (A74, A75): one cluster out of the XdsConfig in its attributes. A leaf cluster becomes
 *     outlier_detection -> xds_cluster_impl -> xds_override_host -> priority -> for each priority the policy that the
 *     cluster asks for;
 * an aggregate becomes priority -> a cds for each leaf cluster.
 *
 * Its config is tc_child_config_single's: the cluster's name, and a config for the policy to use instead of the one
 * that the cluster asks for (A75's backward compatibility; NULL: the cluster's). */
extern const struct tc_lb_factory tc_cds_factory;

/* xds_cluster_impl (A37, A74, A75): EDS drops, circuit breaking (A32) and load reports, for all RPCs of a cluster. The
 * limits come from the XdsConfig in the update's attributes. Its config is tc_child_config_single's: the cluster's
 * name, and the child's config. */
extern const struct tc_lb_factory tc_cluster_impl_factory;

/* xds_wrr_locality: picks a locality by its weight, then an endpoint in it by the child policy (A28, A52): a
 * weighted_target over the localities that the endpoint list is made of. */
extern const struct tc_lb_factory tc_wrr_locality_factory;

#endif
