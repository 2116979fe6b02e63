/* The composition root: the tables of LB policies and HTTP filters, and the xds resolver. A new LB policy has its line
 * in `factories`, a new HTTP filter in `filters`, a new resolver of a layer above src/resolver in builtin_make. */
#include "api/builtin.h"

#include <pthread.h>

#include "lb/outlier_detection/policy.h"
#include "lb/policies/least_request.h"
#include "lb/policies/pick_first.h"
#include "lb/policies/priority.h"
#include "lb/policies/random_subsetting.h"
#include "lb/policies/round_robin.h"
#include "lb/policies/weighted_target.h"
#include "lb/registry.h"
#if TC_WITH_RING
#include "lb/ring_hash/policy.h"
#endif
#include "lb/weighted_round_robin/policy.h"
#if TC_WITH_XDS
#include "xds/domain/validation_context.h"
#include "xds/filter/fault_filter.h"
#include "xds/filter/session_filter.h"
#include "xds/lb/override_host.h"
#include "xds/lb/policies.h"
#include "xds/resolver/xds_resolver.h"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct tc_lb_factory *factories[] = {
    &tc_pick_first_factory,
    &tc_round_robin_factory,
#if TC_WITH_RING
    &tc_ring_hash_factory,
    &tc_maglev_factory,
#endif
    &tc_outlier_detection_factory,
    &tc_weighted_round_robin_factory,
    &tc_least_request_factory,
    &tc_random_subsetting_factory,
#if TC_WITH_XDS
    &tc_weighted_target_factory,
    &tc_priority_factory,
    &tc_override_host_factory,
    &tc_cluster_manager_factory,
    &tc_cds_factory,
    &tc_cluster_impl_factory,
    &tc_wrr_locality_factory,
#endif
};
static const struct tc_lb_registry policies = {.factories = {.data = factories, .len = TC_ARRAY_LEN(factories)}};

#if TC_WITH_XDS
static const struct tc_http_filter_type *const filters[] = {
    &tc_http_filter_router,
    &tc_http_filter_rbac,
    &tc_http_filter_fault,
    &tc_http_filter_session,
};
#endif

void tc_builtin_add_policies(struct tc_lb_registry *registry)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(factories); i++)
        tc_lb_registry_add(registry, factories[i]);
}

static void builtin_make(void)
{
#if TC_WITH_XDS
    tc_xds_validation_init(&policies, filters, TC_ARRAY_LEN(filters));
    tc_resolver_register(&tc_xds_resolver_class);
#endif
}

void tc_builtin_init(void)
{
    pthread_once(&once, builtin_make);
}

const struct tc_lb_registry *tc_builtin_policies(void)
{
    tc_builtin_init();
    return &policies;
}

#if TC_WITH_XDS
const struct tc_xds_registries *tc_builtin_validation_context(void)
{
    tc_builtin_init();
    return tc_xds_validation_context();
}
#endif
