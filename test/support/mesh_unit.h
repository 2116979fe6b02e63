/* Cluster snapshots and XdsConfigs by hand, for unit tests of the mesh. JSON with ' for ". */
#ifndef TC_SUPPORT_MESH_UNIT_H
#define TC_SUPPORT_MESH_UNIT_H

#include "mesh/config.h"
#include "support/fake_lb.h"

/* An EDS resource "c" out of "0/a=1: 1.1.1.1:1*2 1.1.1.1:2#key; 1/b: ..." (localities PRIORITY/SUB_ZONE=WEIGHT by ';',
 * endpoints by spaces, *WEIGHT, #HASH_KEY, !HEALTH). `more`: further members of the resource (", 'policy': {...}"). */
const struct tc_eds *mesh_unit_eds(const char *localities, const char *more);
void mesh_unit_eds_unref(const struct tc_eds *eds);

/* A snapshot of an EDS cluster; `more`: further members of the Cluster (", 'lbPolicy': ..."). Takes over eds (NULL:
 * none). */
struct tc_cluster_config *mesh_unit_cluster(const char *name, const char *more, const struct tc_eds *eds);
/* A config of those clusters, up to a NULL, which it takes over. Node id "n1". */
struct tc_xds_config *mesh_unit_config(struct tc_cluster_config *first, ...) __attribute__((sentinel));
/* A config that routes and nothing else: HTTP filters in front of the router ("{...},"), further members of the one
 * virtual host ("...,"), its routes, further members of the HttpConnectionManager (", ..."). Node id "n1". */
struct tc_xds_config *mesh_unit_routing(const char *filters, const char *vhost, const char *routes, const char *more);

/* A fake channel with a policy of the mesh. */
struct fake_lb *mesh_unit_lb(const char *policy);
void mesh_unit_lb_free(struct fake_lb *f);
/* Updates the policy with the config as attributes, and runs what that caused. Takes over both. */
void mesh_unit_update(struct fake_lb *f, struct tc_lb_config *lb_config, struct tc_xds_config *config);

#endif
