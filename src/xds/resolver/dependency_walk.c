/* The walk from routes to clusters, and what each cluster needs (A37, A74).
 *
 * A root is a cluster that a route names or a subscription holds. Its tree is walked depth first. A name that the walk
 * of the root has `seen` already is skipped, since the earliest place counts (A37). Limits: 16 levels with the root,
 * 1024 leaf clusters per root (or the bootstrap's aggregate_clusters, if that is more), 65,536 leaf clusters and
 * 262,144 names for all aggregates of a channel. An aggregate that exceeds a limit fails, and the others stay; but once
 * the names are used up, each aggregate that follows fails. The clusters of the routes are walked first, in the order
 * of the routes, so that it does not depend on chance which aggregate fails.
 *
 * The walk makes the nodes that it needs, and gives them the round's number in `mark`. The manager's tables own the
 * nodes. Loop thread only. */
#include "xds/resolver/dependency_manager_internal.h"

enum {
    MAX_DEPTH = 16,            /* levels of a tree, the root's included (A37) */
    MAX_LEAVES = 1024,         /* leaf clusters of a root; see max_leaf_clusters */
    MAX_LEAVES_IN_ALL = 65536, /* leaf clusters of all root aggregates; one below two roots counts twice */
    MAX_NAMES_IN_ALL = 262144, /* names walked below all roots, repeated ones too */
};

/* Returns how many leaf clusters a root may have: the bootstrap's aggregate_clusters, at least MAX_LEAVES. */
static size_t max_leaf_clusters(const struct tc_dependency_manager *m)
{
    size_t named = (size_t)tc_xds_client_bootstrap(m->client)->limits.aggregate_clusters;
    return TC_MAX(named, (size_t)MAX_LEAVES);
}

/* Counts one more name at `depth` of the tree; the root is not counted. Returns the limit that the tree now exceeds, or
 * TC_DEP_WHOLE. */
static enum tc_dep_excess name_exceeds(struct tc_dependency_manager *m, const struct tc_dep_tree *tree, unsigned depth)
{
    if (depth == 0)
        return TC_DEP_WHOLE;
    if (++m->names > MAX_NAMES_IN_ALL)
        return TC_DEP_ALL_TOO_LARGE;
    if (tree->leaf_clusters.len > max_leaf_clusters(m))
        return TC_DEP_TOO_WIDE;
    return depth >= MAX_DEPTH ? TC_DEP_TOO_DEEP : TC_DEP_WHOLE;
}

/* Marks a cluster, its EDS resource with the collections, and all clusters below it, and resolves the name of a
 * LOGICAL_DNS cluster. Appends the leaf clusters; a cluster without a Cluster resource counts as a leaf cluster. Skips
 * names that the walk has seen already. Sets tree->excess at a limit, and goes no deeper; any limit but the depth ends
 * the whole walk of the root. Returns false if a resource or an address is not known yet. */
static bool walk_cluster(struct tc_dependency_manager *m, struct tc_slice name, unsigned depth,
                         struct tc_dep_tree *tree)
{
    enum tc_dep_excess excess = name_exceeds(m, tree, depth);
    if (excess) {
        tree->excess = TC_MAX(tree->excess, excess);
        return true;
    }
    struct tc_dep_node *n = tc_dep_node_get(m, &m->clusters, &tc_cluster_type, name);
    if (n->seen == m->seen)
        return true;
    n->seen = m->seen;
    n->mark = m->mark;
    if (tc_dep_node_pending(n))
        return false;
    const struct tc_cluster *cluster = n->value ? tc_cluster_of(n->value) : NULL;
    if (!cluster || cluster->kind != TC_CLUSTER_AGGREGATE)
        *tc_vec_push(&tree->leaf_clusters) = tc_rstr_ref(n->name);
    if (!cluster || cluster->kind != TC_CLUSTER_LOGICAL_DNS)
        tc_dep_node_stop_dns(n);
    if (!cluster)
        return true;
    bool complete = true;
    struct tc_dep_node *eds;
    switch (cluster->kind) {
    case TC_CLUSTER_EDS:
        eds = tc_dep_node_get(m, &m->eds, &tc_eds_type, tc_rstr_slice(cluster->eds_name));
        eds->shared = eds->mark == m->mark && (eds->shared || eds->user != n);
        eds->user = n;
        if (eds->mark != m->mark)
            eds->complete = tc_dep_eds_walk(m, eds);
        eds->mark = m->mark;
        complete = eds->complete;
        break;
    case TC_CLUSTER_LOGICAL_DNS:
        complete = tc_dep_node_resolve(m, n, cluster);
        break;
    case TC_CLUSTER_AGGREGATE:
        for (size_t i = 0; i < cluster->n_children && tree->excess <= TC_DEP_TOO_DEEP; i++)
            complete &= walk_cluster(m, tc_rstr_slice(cluster->children[i]), depth + 1, tree);
        break;
    }
    return complete;
}

/* --- roots --- */

static size_t excess_limit(const struct tc_dependency_manager *m, enum tc_dep_excess excess)
{
    return excess == TC_DEP_TOO_DEEP        ? MAX_DEPTH
           : excess == TC_DEP_TOO_WIDE      ? max_leaf_clusters(m)
           : excess == TC_DEP_ALL_TOO_WIDE  ? MAX_LEAVES_IN_ALL
           : excess == TC_DEP_ALL_TOO_LARGE ? MAX_NAMES_IN_ALL
                                            : 0;
}

static void leaf_list_fini(tc_leaf_cluster_vec *leaf_clusters)
{
    for (size_t i = 0; i < leaf_clusters->len; i++)
        tc_rstr_unref(leaf_clusters->data[i]);
    tc_vec_fini(leaf_clusters);
}

/* Counts the leaf clusters of a root that is an aggregate towards the limit of all aggregates. If the root exceeds a
 * limit, counts nothing, and sets tree->excess unless the walk has set it. */
static void aggregate_count_leaves(struct tc_dependency_manager *m, struct tc_dep_tree *tree)
{
    if (!tree->excess && tree->leaf_clusters.len > max_leaf_clusters(m))
        tree->excess = TC_DEP_TOO_WIDE;
    if (!tree->excess && m->leaf_clusters + tree->leaf_clusters.len > MAX_LEAVES_IN_ALL)
        tree->excess = TC_DEP_ALL_TOO_WIDE;
    if (!tree->excess)
        m->leaf_clusters += tree->leaf_clusters.len;
}

/* Marks a root's tree and, if the tree is complete, refreshes the root's snapshot. routed: a route names the root.
 * Returns false if the tree is not complete. Returns true for a root that this round has walked already. */
static bool walk_root(struct tc_dependency_manager *m, struct tc_slice name, bool routed)
{
    struct tc_dep_node *n = tc_dep_node_get(m, &m->clusters, &tc_cluster_type, name);
    if (routed)
        n->route_mark = m->mark;
    if (n->root_mark == m->mark)
        return true;
    n->root_mark = m->mark;
    m->seen++;
    struct tc_dep_tree tree = {0};
    bool complete = walk_cluster(m, name, 0, &tree);
    if (n->value && tc_cluster_of(n->value)->kind == TC_CLUSTER_AGGREGATE)
        aggregate_count_leaves(m, &tree);
    if (complete)
        tc_dep_refresh_root(m, n, &tree, excess_limit(m, tree.excess));
    leaf_list_fini(&tree.leaf_clusters);
    return complete;
}

static bool walk_route(struct tc_dependency_manager *m, const struct tc_route *route)
{
    bool complete = true;
    if (route->kind == TC_ROUTE_CLUSTER)
        complete = walk_root(m, tc_rstr_slice(route->cluster), true);
    for (size_t i = 0; route->kind == TC_ROUTE_WEIGHTED && i < route->n_weighted; i++)
        complete &= walk_root(m, tc_rstr_slice(route->weighted[i].name), true);
    return complete;
}

bool tc_dep_walk(struct tc_dependency_manager *m, const struct tc_virtual_host *vhost)
{
    bool complete = true;
    for (size_t i = 0; vhost && i < vhost->n_routes; i++)
        complete &= walk_route(m, &vhost->routes[i]);
    struct tc_dep_node *n, *next;
    HASH_ITER(hh, m->clusters, n, next)
    if (n->subscriptions)
        complete &= walk_root(m, tc_rstr_slice(n->name), false);
    return complete;
}
