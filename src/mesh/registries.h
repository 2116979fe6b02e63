/* What the validation of resources asks of the mesh: which LB policies and HTTP filters there are. */
#ifndef TC_MESH_REGISTRIES_H
#define TC_MESH_REGISTRIES_H

#include "lb/policy.h"
#include "resource/registry.h"

/* Shared by the process, made on first use; any thread. */
const struct tc_xds_registries *tc_mesh_registries(void);
/* All of Torc's own LB policies. */
const struct tc_lb_registry *tc_mesh_lb_registry(void);

#endif
