/* XdsConfig (A74): everything that a channel needs to route and balance, as one immutable snapshot. The dependency
 * manager makes it, the resolver hands it down, and policies find it as the attributes of their updates. Any thread. */
#ifndef TC_XDS_RESOURCE_XDS_CONFIG_H
#define TC_XDS_RESOURCE_XDS_CONFIG_H

#include "base/status.h"
#include "lb/endpoint.h"
#include "xds/resource/cluster.h"
#include "xds/resource/endpoints.h"
#include "xds/resource/listener.h"
#include "xds/resource/route_config.h"

struct tc_xds_client_pool;
struct tc_xds_client;

/* One cluster, an immutable snapshot. While nothing about the cluster changes, successive configs hold the same
 * snapshot: readers compare pointers. The snapshot holds references of all that it points at. */
struct tc_cluster_config {
    struct tc_ref ref;
    struct tc_rstr *name;
    struct tc_status status;          /* why there is no Cluster resource; OK: there is one */
    const struct tc_cluster *cluster; /* owned by reference; NULL with a status */
    const struct tc_eds *eds;         /* EDS: owned by reference; NULL: none, see resolution_note */
    struct tc_endpoints *dns;         /* LOGICAL_DNS: a list of one endpoint, or of none; NULL: see resolution_note */
    struct tc_rstr *resolution_note;  /* goes into the texts of failed RPCs (A88); never NULL */
    /* AGGREGATE: its leaf clusters in order, each once (A37). If there are none, leaf_error says why. An aggregate that
     * only stands below another aggregate has neither. */
    size_t n_leaf_clusters;
    struct tc_rstr **leaf_clusters;
    struct tc_status leaf_error;
    /* A31: the cluster has no Cluster resource (`status` says why), and no route names it. RPCs that were routed to the
     * cluster before are dropped, wait-for-ready ones among them. */
    bool dropped;
};

struct tc_xds_config {
    struct tc_ref ref;
    const struct tc_listener *listener;   /* owned by reference */
    const struct tc_route_config *routes; /* owned by reference; NULL: inline in the listener */
    const struct tc_virtual_host *vhost;  /* a virtual host of `routes` or of the listener */
    size_t n_clusters;
    struct tc_cluster_config **clusters; /* references, sorted by name */
    struct tc_rstr *node_id;             /* a reference */
    /* Has the load reports and the bootstrap; borrowed, valid until the resolver shuts down; NULL in tests. */
    struct tc_xds_client *client;
    /* Has the certificate providers; borrowed, freed after the runtime's channels are shut; NULL in tests. */
    struct tc_xds_client_pool *pool;
};

/* Take and give up a reference; NULL is allowed. */
struct tc_cluster_config *tc_cluster_config_ref(struct tc_cluster_config *c);
void tc_cluster_config_unref(struct tc_cluster_config *c);
/* Returns whether both say the same: resources and DNS answers are compared by pointer, texts by value. Either may be
 * NULL. */
bool tc_cluster_config_eq(const struct tc_cluster_config *a, const struct tc_cluster_config *b);

/* Take and give up a reference; NULL is allowed. */
struct tc_xds_config *tc_xds_config_ref(struct tc_xds_config *c);
void tc_xds_config_unref(struct tc_xds_config *c);
/* Returns whether both have the same resources, virtual host and cluster snapshots, by pointer. Either may be NULL. */
bool tc_xds_config_eq(const struct tc_xds_config *a, const struct tc_xds_config *b);
/* Returns whether both configs route RPCs alike: listener, route configuration and virtual host are the same
 * objects. */
bool tc_xds_config_same_routing(const struct tc_xds_config *a, const struct tc_xds_config *b);
/* Returns a copy with one reference, which shares the resources and the cluster snapshots. */
struct tc_xds_config *tc_xds_config_copy(const struct tc_xds_config *c);
/* Returns a copy without the clusters, with one reference: for a reader that only routes, and must not keep old
 * endpoints in memory. */
struct tc_xds_config *tc_xds_config_routing(const struct tc_xds_config *c);
/* Returns the cluster, borrowed from the config; NULL when the config has none of that name. */
struct tc_cluster_config *tc_xds_config_cluster(const struct tc_xds_config *c, struct tc_slice name);
/* Returns the cluster, borrowed from the config, or NULL. For a caller that asks for one cluster in each config. Tries
 * index *place first: the cluster's index in the last config, or any number. If the cluster is found, *place becomes
 * its index in this config. */
struct tc_cluster_config *tc_xds_config_cluster_at(const struct tc_xds_config *c, struct tc_slice name, size_t *place);

/* Returns the text with " (node ID:<id>)" behind it, or a copy if the text has "node ID:" already; a new reference. */
struct tc_rstr *tc_with_node_id(struct tc_slice text, const struct tc_rstr *node_id);

#endif
