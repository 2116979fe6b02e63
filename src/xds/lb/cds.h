/* cds (A74, A75): one cluster out of the XdsConfig in its attributes. A leaf cluster becomes
 *     outlier_detection -> xds_cluster_impl -> xds_override_host -> priority -> for each priority the policy that the
 *     cluster asks for;
 * an aggregate becomes priority -> a cds for each leaf cluster. Loop thread only. */
#ifndef TC_XDS_LB_CDS_H
#define TC_XDS_LB_CDS_H

#include "lb/child_configs.h"

/* Its config is tc_child_config_single's: the cluster's name, and a config for the policy to use instead of the one
 * that the cluster asks for (A75's backward compatibility; NULL: the cluster's). */
extern const struct tc_lb_factory tc_cds_factory;

#endif
