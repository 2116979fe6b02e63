/* The process's validation context: filled in once, before any thread reads it. */
#include "xds/domain/validation_context.h"

#include "lb/registry.h"
#include "xds/domain/cert_providers.h"
#include "xds/resource/registry.h"

static const struct tc_lb_registry *lb;
static struct tc_xds_registries registries;

static bool lb_known(void *arg, const char *name)
{
    (void)arg;
    return tc_lb_registry_find(lb, tc_slice_str(name)) != NULL;
}

static void lb_check(void *arg, const json_t *list, struct tc_validation_errors *errors)
{
    (void)arg;
    struct tc_lb_config *config = tc_lb_parse_list(lb, list, 0, errors);
    tc_lb_config_unref(config);
}

void tc_xds_validation_init(const struct tc_lb_registry *policies, const struct tc_http_filter_type *const *filters,
                            size_t n_filters)
{
    lb = policies;
    tc_xds_registries_init(&registries);
    registries.filters = filters;
    registries.n_filters = n_filters;
    registries.lb_known = lb_known;
    registries.lb_check = lb_check;
    registries.cert_plugin_known = tc_cert_plugin_known;
}

const struct tc_xds_registries *tc_xds_validation_context(void)
{
    return &registries;
}

const struct tc_lb_registry *tc_xds_validation_policies(void)
{
    return lb;
}
