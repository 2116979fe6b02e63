/* The inside of the dependency manager: the resources that it watches, and how they become texts and cluster
 * snapshots. Loop thread only. */
#ifndef TC_XDS_RESOLVER_DEPENDENCY_MANAGER_INTERNAL_H
#define TC_XDS_RESOLVER_DEPENDENCY_MANAGER_INTERNAL_H

#include "base/list.h"
#include "base/table.h"
#include "base/vec.h"
#include "xds/resolver/dependency_manager.h"
#include "xds/resolver/dns_watch.h"

/* One watched resource. Neither value nor error: nothing is known yet. */
struct tc_dep_node {
    struct tc_xds_watcher watcher;
    struct tc_dependency_manager *manager;
    const struct tc_xds_resource_type *type;
    struct tc_rstr *name;
    struct tc_xds_resource *value;
    struct tc_status error;   /* instead of a value */
    struct tc_status ambient; /* beside a value (A88) */
    uint64_t mark;            /* number of the last round that needed the resource; not of listener and routes */
    uint64_t seen;            /* clusters: number of the last root whose tree had it (manager's `seen`) */
    uint64_t root_mark;       /* clusters: number of the last round in which it was a root */
    bool in_use;              /* the config in use was made from it; not of the listener */
    bool fresh;               /* only its content has changed since the last reconcile; in the manager's `fresh` */
    /* EDS and collections. user: borrowed; may dangle while the manager's `reshape` is set. */
    struct tc_rstr *note;     /* EDS: what the value lacks, for resolution notes; NULL: nothing */
    struct tc_dep_node *user; /* EDS: a cluster with these endpoints; collection: an EDS node that names it */
    bool shared, complete;    /* shared: has several users. complete (EDS): it and its collections are known */
    struct tc_eds *merged;    /* the value with the endpoints of its collections (dependency_collections.c); or NULL */
    uint64_t merged_mark;     /* number of the round in which `merged` was last compared; 0: compare again */
    /* Clusters. awaited: `dns` has no answer yet: no config is reported. stale: a quick update renews the snapshot. */
    unsigned subscriptions;
    uint64_t route_mark;        /* number of the last round in which a route named it */
    struct tc_dns_watch *dns;   /* LOGICAL_DNS; NULL: none */
    struct tc_rstr *dns_target; /* the name that `dns` resolves */
    struct tc_link answer;      /* on the manager's list `answered` */
    bool awaited, stale;
    struct tc_cluster_config *config; /* the last snapshot; NULL: none yet */
    UT_hash_handle hh;
};

struct tc_dependency_manager {
    struct tc_loop *loop;
    struct tc_xds_client *client;
    struct tc_rstr *authority;
    const struct tc_resolver_env *dns_env;
    struct tc_xds_client_pool *pool;
    struct tc_rstr *node_id;
    const struct tc_dependency_events *events;
    void *arg;
    struct tc_dep_node *listener;
    struct tc_dep_node *routes;            /* NULL: the listener is unknown, or has no RDS name */
    struct tc_dep_node *former_routes;     /* of the config in use, while a round waits for another; NULL: none */
    struct tc_dep_node *clusters;          /* uthash by name */
    struct tc_dep_node *eds, *collections; /* uthash by name */
    size_t n_collections;                  /* marked in this round */
    TC_VEC(struct tc_xds_token *) tokens;  /* of the responses that the next reconcile takes in; references */
    TC_VEC(struct tc_dep_node *) fresh;    /* nodes whose `fresh` is set */
    bool reshape;                          /* the next reconcile is a full round, not a quick update */
    struct tc_link answered;               /* LOGICAL_DNS nodes whose last query has an answer */
    size_t unanswered;                     /* LOGICAL_DNS nodes that are `awaited` */
    struct tc_task task;                   /* on_reconcile */
    uint64_t mark, seen;                   /* numbers of the last round, and of the last root */
    /* Of the aggregates that this round has walked: leaf clusters of those within their limits, and names of all. */
    size_t leaf_clusters, names;
    struct tc_xds_config *config; /* of the last report; NULL: there was none, or it was an error */
    struct tc_status error;       /* of the last report; OK: there was none, or it was `config` */
    bool freed;                   /* tc_dependency_manager_free was called; on_reconcile frees the manager */
    bool reporting;               /* on_reconcile runs */
};

typedef TC_VEC(struct tc_rstr *) tc_leaf_cluster_vec;

/* The limit that an aggregate's graph exceeds; of several, the last in this list. ALL_TOO_WIDE only if no other. */
enum tc_dep_excess { TC_DEP_WHOLE, TC_DEP_TOO_DEEP, TC_DEP_TOO_WIDE, TC_DEP_ALL_TOO_WIDE, TC_DEP_ALL_TOO_LARGE };

/* The leaf clusters of a root. */
struct tc_dep_tree {
    tc_leaf_cluster_vec leaf_clusters; /* in order, each once */
    enum tc_dep_excess excess;
};

/* The outcome of a full round: an error to report, nothing to report yet, a config. */
enum tc_dep_outcome { TC_DEP_FAILED, TC_DEP_WAITING, TC_DEP_COMPLETE };

/* --- nodes (dependency_nodes.c) --- */

/* Starts to watch the resource. The caller owns the node. */
struct tc_dep_node *tc_dep_node_new(struct tc_dependency_manager *m, const struct tc_xds_resource_type *type,
                                    struct tc_slice name);
/* Ends the watch and frees the node. NULL is allowed. */
void tc_dep_node_free(struct tc_dep_node *n);
/* Returns whether neither a value nor an error of the resource is known yet. */
bool tc_dep_node_pending(const struct tc_dep_node *n);
/* Returns the node of that name in a table, which owns it. Makes the node if it does not exist. */
struct tc_dep_node *tc_dep_node_get(struct tc_dependency_manager *m, struct tc_dep_node **table,
                                    const struct tc_xds_resource_type *type, struct tc_slice name);
/* Frees the nodes that the round `mark` did not reach. A round that waits keeps the nodes of the config in use. */
void tc_dep_nodes_sweep(struct tc_dep_node **table, uint64_t mark, enum tc_dep_outcome outcome);
/* Resolves the DNS name of a LOGICAL_DNS cluster. Returns whether an answer is known; true also if dns_env is NULL. */
bool tc_dep_node_resolve(struct tc_dependency_manager *m, struct tc_dep_node *n, const struct tc_cluster *cluster);
void tc_dep_node_stop_dns(struct tc_dep_node *n); /* n->dns may be NULL */
/* Schedules a full round. */
void tc_dep_need_round(struct tc_dependency_manager *m);

/* --- the walk (dependency_walk.c) --- */

/* Marks all clusters that the routes of the virtual host (NULL: none) or a subscription need, and refreshes the
 * snapshots of the roots whose trees are complete. Returns whether all trees are. */
bool tc_dep_walk(struct tc_dependency_manager *m, const struct tc_virtual_host *vhost);

/* --- collections of endpoints (dependency_collections.c) --- */

/* Marks the collections of an EDS resource. Returns whether the resource and all its collections are known. */
bool tc_dep_eds_walk(struct tc_dependency_manager *m, struct tc_dep_node *eds);
/* Returns an EDS node's value (not NULL) with its collections' endpoints, borrowed. With collections, renews `note`. */
const struct tc_eds *tc_dep_eds_complete(const struct tc_dependency_manager *m, struct tc_dep_node *eds);

/* --- snapshots (dependency_snapshot.c) and texts (dependency_status.c) --- */

/* Give a cluster's node a new snapshot, or leave the old one if nothing differs. root: after the walk of the root's
 * tree, whose leaf clusters the snapshot may take over; `limit` is the number that tree->excess exceeds. inner: for a
 * cluster that is not a root; such an aggregate gets no leaf clusters. content: the tree has not changed since the last
 * round, so an aggregate's leaf clusters stay. */
void tc_dep_refresh_root(const struct tc_dependency_manager *m, struct tc_dep_node *n, struct tc_dep_tree *tree,
                         size_t limit);
void tc_dep_refresh_inner(const struct tc_dependency_manager *m, struct tc_dep_node *n);
void tc_dep_refresh_content(const struct tc_dependency_manager *m, struct tc_dep_node *n);
/* Counts the node (NULL: none) in *count if its resource or its addresses are not known yet; appends the first few. */
enum { TC_DEP_MAX_NAMED_PENDING = 4 };
void tc_dep_append_pending(struct tc_buf *out, const struct tc_dep_node *n, size_t *count);
/* Return an UNAVAILABLE whose text names the xDS node. failure: for a resource with an error. socket_listener: the
 * listener is for servers. no_vhost: no virtual host of the table is for our authority; the text has the ambient errors
 * of listener and routes, which may explain an empty table. leaf_error: an aggregate has no leaf clusters, or exceeds a
 * limit, whose number is `limit`. */
struct tc_status tc_dep_failure(const struct tc_dep_node *n);
struct tc_status tc_dep_socket_listener(const struct tc_dependency_manager *m);
struct tc_status tc_dep_no_vhost(const struct tc_dependency_manager *m, const struct tc_route_table *table,
                                 const struct tc_rstr *routes_name);
struct tc_status tc_dep_leaf_error(const struct tc_dep_node *n, enum tc_dep_excess excess, size_t limit);
/* Return a text about what an EDS resource lacks ("EDS resource n contains no localities"), or NULL. collections_note
 * adds the errors of at most TC_DEP_MAX_NAMED_PENDING of its collections. */
struct tc_rstr *tc_dep_eds_note(const struct tc_eds *eds);
struct tc_rstr *tc_dep_collections_note(const struct tc_dependency_manager *m, const struct tc_eds *merged);
/* Returns the text for failures of a cluster's RPCs (A74, A88), never NULL. `eds`: node of its endpoints, or NULL. */
struct tc_rstr *tc_dep_resolution_note(const struct tc_dependency_manager *m, const struct tc_dep_node *cluster,
                                       const struct tc_dep_node *eds);

#endif
