/* The config selector of the xds resolver (A31, A42): route, cluster, hash, timeout, retries and HTTP filters of each
 * RPC. Loop thread only. */
#ifndef TC_XDS_RESOLVER_CONFIG_SELECTOR_H
#define TC_XDS_RESOLVER_CONFIG_SELECTOR_H

#include "resolver/config_selector.h"
#include "xds/resource/cluster_ref.h"
#include "xds/resource/xds_config.h"

/* Returns a selector with one reference. The selector keeps only the routing part of `config`, so one selector serves
 * all configs that are equal by tc_xds_config_same_routing. It takes a reference from `clusters` for every cluster that
 * the virtual host's routes name; on_used is called from inside for a cluster that was not in use. channel_id: random,
 * fixed for the channel (filter_state io.grpc.channel_id). */
struct tc_config_selector *tc_xds_selector_new(struct tc_xds_config *config, struct tc_cluster_refs *clusters,
                                               uint64_t channel_id);

#endif
