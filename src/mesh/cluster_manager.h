/* xds_cluster_manager (A31): a child for each cluster, chosen by the cluster that the config selector gave the RPC. */
#ifndef TC_MESH_CLUSTER_MANAGER_H
#define TC_MESH_CLUSTER_MANAGER_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_cluster_manager_class;

struct tc_cluster_manager_child {
    struct tc_rstr *name;
    struct tc_lb_config *config;
};

/* A config with one reference; takes references of its own. Names must differ. n may be 0. */
struct tc_lb_config *tc_cluster_manager_config_new(const struct tc_cluster_manager_child *children, size_t n);

#endif
