/* What is counted of one cluster's RPCs for load reports (A27, A64, A85): what was dropped, and by the locality of the
 * endpoint that was picked what became of the others. */
#ifndef TC_MESH_CLUSTER_LOAD_H
#define TC_MESH_CLUSTER_LOAD_H

#include "lb/picker.h"
#include "mesh/config.h"

struct tc_cluster_load;

/* Counts into the xDS client's store for the cluster's lrs_server, and makes it report, until tc_cluster_load_stop.
 * NULL: the cluster has none. Every function below takes NULL for nothing to be counted. */
struct tc_cluster_load *tc_cluster_load_new(const struct tc_xds_config *xds, const struct tc_cluster_config *cluster);
/* No more reason to report, and one reference less: whoever holds another (pickers, RPCs) may go on to count. */
void tc_cluster_load_stop(struct tc_cluster_load *l);
struct tc_cluster_load *tc_cluster_load_ref(struct tc_cluster_load *l);
void tc_cluster_load_unref(struct tc_cluster_load *l);

/* An RPC was dropped; NULL: by no category. */
void tc_cluster_load_drop(struct tc_cluster_load *l, struct tc_rstr *category);
/* An RPC was given to out->subchannel: adds a tracker, last of all. */
void tc_cluster_load_track(struct tc_cluster_load *l, const struct tc_pick_args *args, struct tc_pick *out);

#endif
