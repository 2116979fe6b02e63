/* The registries of a decode context: their defaults, and lookups in them. Any thread. */
#ifndef TC_XDS_RESOURCE_REGISTRY_H
#define TC_XDS_RESOURCE_REGISTRY_H

#include "xds/resource/registry_types.h"

/* Sets the defaults, and reads the switches from the environment. */
void tc_xds_registries_init(struct tc_xds_registries *r);
/* Returns the registries of a decode context, borrowed; the defaults if the context is NULL or has no registries. */
const struct tc_xds_registries *tc_xds_registries_of(const struct tc_xds_decode_context *ctx);
/* Returns the filter type by the name of its config or override message; NULL: unknown. */
const struct tc_http_filter_type *tc_xds_registries_filter(const struct tc_xds_registries *r, struct tc_slice name);
/* Returns whether an LB policy of that name exists; true if the registries have no lb_known. */
bool tc_xds_registries_lb_known(const struct tc_xds_registries *r, const char *name);

#endif
