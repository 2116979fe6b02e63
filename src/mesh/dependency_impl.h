/* What the files of the dependency manager share: the resources that it watches, and how they become texts and cluster
 * snapshots. */
#ifndef TC_MESH_DEPENDENCY_IMPL_H
#define TC_MESH_DEPENDENCY_IMPL_H

#include <uthash.h>

#include "base/list.h"
#include "base/vec.h"
#include "mesh/dependency_manager.h"
#include "mesh/dns_watch.h"

/* One watched resource. Neither value nor error: nothing is known yet. */
struct tc_dep_node {
    struct tc_xds_watcher watcher;
    struct tc_dependency_manager *manager;
    const struct tc_xds_resource_type *type;
    struct tc_rstr *name;
    struct tc_xds_resource *value;
    struct tc_status error;   /* in place of a value */
    struct tc_status ambient; /* beside it (A88) */
    uint64_t mark;            /* of the round that last needed it */
    uint64_t seen;            /* of the root whose tree was walked last (clusters) */
    uint64_t root_mark;       /* of the round in which it was a root (clusters) */
    bool fresh;               /* its content has changed since the last report, and nothing else about it */
    /* EDS. */
    struct tc_rstr *note;     /* what is wrong with the value; NULL: nothing */
    struct tc_dep_node *user; /* a cluster that has these endpoints */
    bool shared;              /* others have them, too */
    /* Clusters. */
    unsigned subscriptions;
    struct tc_dns_watch *dns;         /* LOGICAL_DNS */
    struct tc_rstr *dns_target;       /* what it resolves */
    struct tc_link answer;            /* on the manager's list `answered` */
    bool awaited;                     /* nothing is reported before its first answer */
    struct tc_cluster_config *config; /* as last reported */
    UT_hash_handle hh;
};

struct tc_dependency_manager {
    struct tc_loop *loop;
    struct tc_xds_client *client;
    struct tc_rstr *authority;
    const struct tc_resolver_env *dns_env;
    struct tc_mesh_domain *domain;
    struct tc_rstr *node_id;
    const struct tc_dependency_events *events;
    void *arg;
    struct tc_dep_node *listener;
    struct tc_dep_node *routes;          /* NULL: not by RDS */
    struct tc_dep_node *clusters;        /* uthash by name */
    struct tc_dep_node *eds;             /* likewise */
    TC_VEC(struct tc_xds_done *) tokens; /* of responses whose consequences were not drawn yet */
    TC_VEC(struct tc_dep_node *) fresh;  /* those that are */
    bool reshape;                        /* more has changed than the fresh nodes' content */
    struct tc_link answered;             /* LOGICAL_DNS: those that were not asked anew since their last answer */
    size_t unanswered;                   /* LOGICAL_DNS: those that are awaited */
    struct tc_task task;                 /* reconcile */
    uint64_t mark, seen;
    size_t leaves, names;         /* of the aggregates that this round has walked: those of good ones, those of all */
    struct tc_xds_config *config; /* as last reported */
    struct tc_status error;       /* as last reported; OK: config was */
    bool freed;                   /* during a report */
    bool reporting;
};

typedef TC_VEC(struct tc_rstr *) tc_leaf_vec;

/* What is too much about the graph of an aggregate; a later one counts for more. */
enum tc_dep_excess { TC_DEP_WHOLE, TC_DEP_TOO_DEEP, TC_DEP_TOO_WIDE, TC_DEP_ALL_TOO_WIDE, TC_DEP_ALL_TOO_LARGE };

/* What a root leads to. */
struct tc_dep_tree {
    tc_leaf_vec leaves; /* in order, each once */
    enum tc_dep_excess excess;
};

/* UNAVAILABLE with a text that names the resource, what is wrong, and the node; for a node with an error. */
struct tc_status tc_dep_failure(const struct tc_dep_node *n);
/* UNAVAILABLE, with the node's id: why an aggregate has no leaves to use. */
struct tc_status tc_dep_leaf_error(const struct tc_dep_node *n, enum tc_dep_excess excess, size_t limit);
/* What an EDS resource lacks: "EDS resource n contains no localities"; NULL: nothing. */
struct tc_rstr *tc_dep_eds_note(const struct tc_eds *eds);
/* The text for failures of one cluster's RPCs (A74, A88). `eds` is the node of its endpoints or NULL. */
struct tc_rstr *tc_dep_resolution_note(const struct tc_dependency_manager *m, const struct tc_dep_node *cluster,
                                       const struct tc_dep_node *eds);

#endif
