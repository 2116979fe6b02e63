/* The config of a policy that has children and few settings of its own: priority, weighted_target, xds_cluster_manager;
 * with one element, cds, xds_cluster_impl, xds_wrr_locality and random_subsetting. Immutable and counted, any
 * thread. */
#ifndef TC_LB_CHILD_CONFIGS_H
#define TC_LB_CHILD_CONFIGS_H

#include "lb/policy.h"

struct tc_child_config {
    struct tc_rstr *name;        /* the child's; of cds and xds_cluster_impl the cluster's; else NULL */
    struct tc_lb_config *config; /* the child's; of cds what an aggregate sets (A75), NULL: the cluster's own policy */
    uint32_t weight;             /* weighted_target's, >= 1; random_subsetting's size; 0 for the others */
    bool ignore_reresolution_requests; /* priority's (A37) */
};

struct tc_child_configs {
    struct tc_lb_config base; /* first */
    size_t n;
    struct tc_child_config at[];
};

/* Returns a config with one reference. Takes references of its own to names and configs. Names must differ. */
struct tc_lb_config *tc_child_configs_new(const struct tc_lb_factory *factory, const struct tc_child_config *children,
                                          size_t n);
/* Returns the config of a policy with one child, with one reference; `name` is the policy's cluster, NULL if the policy
 * has none. */
static inline struct tc_lb_config *tc_child_config_single(const struct tc_lb_factory *factory, struct tc_rstr *name,
                                                          struct tc_lb_config *child)
{
    return tc_child_configs_new(factory, &(struct tc_child_config){.name = name, .config = child}, 1);
}
/* Frees an array of n elements that a parser collected, with the references in it. */
void tc_child_config_list_free(struct tc_child_config *children, size_t n);

static inline const struct tc_child_configs *tc_child_configs(const struct tc_lb_config *config)
{
    return TC_CONTAINER_OF(config, const struct tc_child_configs, base);
}

/* Returns the one element of a config that has one. */
static inline const struct tc_child_config *tc_child_config_of(const struct tc_lb_config *config)
{
    return &tc_child_configs(config)->at[0];
}

/* For the factory: free_config and equal_config. */
void tc_child_configs_free(struct tc_lb_config *config);
bool tc_child_configs_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
