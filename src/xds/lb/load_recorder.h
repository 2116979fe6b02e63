/* Counts the RPCs of one cluster for load reports (A27, A64, A85): dropped RPCs by category, picked RPCs by locality
 * and by how they end. Loop thread only. */
#ifndef TC_XDS_LB_LOAD_RECORDER_H
#define TC_XDS_LB_LOAD_RECORDER_H

#include "lb/picker.h"
#include "xds/resource/xds_config.h"

struct tc_cluster_load;

/* Returns a recorder with one reference, which counts into the xDS client's store for the cluster's lrs_server. While
 * the client lives, it reports at least until tc_cluster_load_stop. Returns NULL if the cluster has no lrs_server,
 * there is no client, or the client's bootstrap does not have the server; with NULL every function below does nothing.
 * The Cluster resource of `cluster` must not be NULL. Both arguments are borrowed for the call. */
struct tc_cluster_load *tc_cluster_load_new(const struct tc_xds_config *xds, const struct tc_cluster_config *cluster);
/* Ends the recorder's use of the counts (the client reports while there is a use), and gives up the reference of
 * tc_cluster_load_new. Pickers and RPCs that hold other references may go on counting. */
void tc_cluster_load_stop(struct tc_cluster_load *l);
struct tc_cluster_load *tc_cluster_load_ref(struct tc_cluster_load *l);
void tc_cluster_load_unref(struct tc_cluster_load *l);

/* Counts a dropped RPC. category NULL: without a category (circuit breaking). */
void tc_cluster_load_drop(struct tc_cluster_load *l, struct tc_rstr *category);
/* Counts an RPC that was picked for out->subchannel, and adds a tracker that counts its end, behind the trackers of
 * `out`. Counts nothing if the arena has no room for the tracker. */
void tc_cluster_load_track(struct tc_cluster_load *l, const struct tc_pick_args *args, struct tc_pick *out);

#endif
