/* The validation context of the process: which LB policies, HTTP filters and certificate provider plugins resources may
 * name. Set up once, then constant, for any thread. */
#ifndef TC_XDS_DOMAIN_VALIDATION_CONTEXT_H
#define TC_XDS_DOMAIN_VALIDATION_CONTEXT_H

#include "lb/policy.h"
#include "xds/resource/registry_types.h"

/* Fills in the context: resources may name these LB policies and HTTP filters, which are borrowed for good. Reads the
 * environment (tc_xds_registries_init). Called once by api/builtin.c, before anything reads the context. */
void tc_xds_validation_init(const struct tc_lb_registry *policies, const struct tc_http_filter_type *const *filters,
                            size_t n_filters);
/* Returns the process's context, static. Any thread, after tc_xds_validation_init. */
const struct tc_xds_registries *tc_xds_validation_context(void);
/* Returns the LB policies that resources may name: all built-in ones. Any thread, after tc_xds_validation_init. */
const struct tc_lb_registry *tc_xds_validation_policies(void);

#endif
