/* What libtorc finds of the mesh without naming it (channel/builtin.h). */
#include "channel/builtin.h"
#include "mesh/cds.h"
#include "mesh/cluster_impl.h"
#include "mesh/cluster_manager.h"
#include "mesh/wrr_locality.h"
#include "mesh/xds_resolver.h"

void tc_builtin_init(void)
{
    tc_resolver_register(&tc_xds_resolver_class);
}

void tc_builtin_lb_add(struct tc_lb_registry *registry)
{
    static const struct tc_lb_class *const classes[] = {
        &tc_cluster_manager_class,
        &tc_cds_class,
        &tc_cluster_impl_class,
        &tc_wrr_locality_class,
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(classes); i++)
        tc_lb_registry_add(registry, classes[i]);
}
