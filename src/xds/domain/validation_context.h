/* What the validation of resources asks of the process: which LB policies, HTTP filters and certificate providers there
 * are. */
#ifndef TC_XDS_DOMAIN_VALIDATION_CONTEXT_H
#define TC_XDS_DOMAIN_VALIDATION_CONTEXT_H

#include "lb/policy.h"
#include "xds/resource/registry_types.h"

/* Fills in the context: resources may name these policies. Called once by api/builtin.c, before anything reads it. */
void tc_xds_validation_init(const struct tc_lb_registry *policies);
/* Returns the process's context. Any thread, after tc_xds_validation_init. */
const struct tc_xds_registries *tc_xds_validation_context(void);
/* Its LB policies: all built-in ones. Any thread. */
const struct tc_lb_registry *tc_xds_validation_policies(void);

#endif
