/* cds (A74, A75): one cluster out of the XdsConfig in its attributes. A leaf becomes
 *     outlier_detection -> xds_cluster_impl -> xds_override_host -> priority -> for each priority the policy that the
 *     cluster asks for;
 * an aggregate becomes priority -> a cds for each leaf. */
#ifndef TC_MESH_CDS_H
#define TC_MESH_CDS_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_cds_class;

/* A config with one reference; takes references of its own. `lb`: used in place of what the cluster asks for; NULL:
 * none (A75's backward compatibility). */
struct tc_lb_config *tc_cds_config_new(struct tc_rstr *cluster, struct tc_lb_config *lb);

#endif
