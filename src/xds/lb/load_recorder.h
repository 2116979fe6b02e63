/* Counts the RPCs of one cluster for load reports (A27, A64, A85): dropped ones by category, others by the locality of
 * the picked endpoint and by how they end. Loop thread only. */
#ifndef TC_XDS_LB_LOAD_RECORDER_H
#define TC_XDS_LB_LOAD_RECORDER_H

#include "lb/picker.h"
#include "xds/resource/xds_config.h"

struct tc_cluster_load;

/* Returns a recorder with one reference. It counts into the xDS client's store for the cluster's lrs_server, to which
 * the client reports until tc_cluster_load_stop. Returns NULL if the cluster has no lrs_server, there is no client, or
 * the client's bootstrap does not have the server; with NULL every function below does nothing. */
struct tc_cluster_load *tc_cluster_load_new(const struct tc_xds_config *xds, const struct tc_cluster_config *cluster);
/* Ends the reports and gives up a reference. Pickers and RPCs that hold another one may go on counting. */
void tc_cluster_load_stop(struct tc_cluster_load *l);
struct tc_cluster_load *tc_cluster_load_ref(struct tc_cluster_load *l);
void tc_cluster_load_unref(struct tc_cluster_load *l);

/* Counts a dropped RPC. category may be NULL. */
void tc_cluster_load_drop(struct tc_cluster_load *l, struct tc_rstr *category);
/* Counts an RPC that was picked for out->subchannel, and adds a tracker behind all others. Counts nothing if the arena
 * has no room for the tracker. */
void tc_cluster_load_track(struct tc_cluster_load *l, const struct tc_pick_args *args, struct tc_pick *out);

#endif
