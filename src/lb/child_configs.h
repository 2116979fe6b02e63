/* The config of a policy that has children and few settings of its own. Configs of priority, weighted_target and
 * xds_cluster_manager have an element for each child; those of cds, xds_cluster_impl, xds_wrr_locality and
 * random_subsetting have one element. A config owns a reference to each name and child config. Immutable and counted,
 * any thread. */
#ifndef TC_LB_CHILD_CONFIGS_H
#define TC_LB_CHILD_CONFIGS_H

#include "lb/policy.h"

struct tc_child_config {
    /* The child's name; cds, xds_cluster_impl: the cluster's name; xds_wrr_locality, random_subsetting: NULL. */
    struct tc_rstr *name;
    /* The child's config. cds: the LB policy that an aggregate sets for its leaf clusters (A75), or NULL for the
     * policy of the cluster. */
    struct tc_lb_config *config;
    uint32_t weight;                   /* weighted_target: >= 1; random_subsetting: the subset's size; else 0 */
    bool ignore_reresolution_requests; /* priority only (A37) */
};

struct tc_child_configs {
    struct tc_lb_config base; /* first */
    size_t n;
    struct tc_child_config at[];
};

/* Returns a config with one reference and a copy of the n elements. Takes references of its own to names and child
 * configs. Names must differ. */
struct tc_lb_config *tc_child_configs_new(const struct tc_lb_factory *factory, const struct tc_child_config *children,
                                          size_t n);
/* Returns a config of one element, with one reference. `name` is the policy's cluster, or NULL if the policy has none;
 * `child` may be NULL for cds. Takes references of its own to both. */
static inline struct tc_lb_config *tc_child_config_single(const struct tc_lb_factory *factory, struct tc_rstr *name,
                                                          struct tc_lb_config *child)
{
    return tc_child_configs_new(factory, &(struct tc_child_config){.name = name, .config = child}, 1);
}
/* Frees an array of n elements that a parser collected, and releases its references. NULL is allowed if n is 0. */
void tc_child_config_list_free(struct tc_child_config *children, size_t n);

static inline const struct tc_child_configs *tc_child_configs(const struct tc_lb_config *config)
{
    return TC_CONTAINER_OF(config, const struct tc_child_configs, base);
}

/* Returns the element of a config that has exactly one element; borrowed from the config. */
static inline const struct tc_child_config *tc_child_config_of(const struct tc_lb_config *config)
{
    return &tc_child_configs(config)->at[0];
}

/* The factory's free_config and equal_config. */
void tc_child_configs_free(struct tc_lb_config *config);
bool tc_child_configs_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
