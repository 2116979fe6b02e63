/* The snapshots of clusters that the dependency manager puts into its configs. A snapshot that equals the node's last
 * one is dropped: readers compare pointers, so an update of one cluster leaves the policies of the others alone. */
#include "base/mem.h"
#include "xds/resolver/dependency_manager_internal.h"

/* Returns a reference; NULL: there is no good answer. */
static struct tc_endpoints *node_dns_endpoints(const struct tc_dep_node *n)
{
    return n->dns ? tc_endpoints_ref(tc_dns_watch_endpoints(n->dns)) : NULL;
}

/* Returns a new snapshot of what the node holds, one reference. An aggregate's leaf clusters are left to the caller. */
static struct tc_cluster_config *cluster_snapshot(const struct tc_dependency_manager *m, const struct tc_dep_node *n)
{
    struct tc_cluster_config *c = TC_NEW(struct tc_cluster_config);
    struct tc_dep_node *eds = NULL;
    tc_ref_init(&c->ref);
    c->name = tc_rstr_ref(n->name);
    if (n->value) {
        c->cluster = tc_cluster_of(tc_xds_resource_ref(n->value));
        if (c->cluster->kind == TC_CLUSTER_EDS)
            HASH_FIND(hh, m->eds, c->cluster->eds_name->data, c->cluster->eds_name->len, eds);
        if (eds && eds->value)
            c->eds = tc_eds_of(
                tc_xds_resource_ref((struct tc_xds_resource *)(uintptr_t)&tc_dep_eds_complete(m, eds)->base.head));
        if (c->cluster->kind == TC_CLUSTER_LOGICAL_DNS)
            c->dns = node_dns_endpoints(n);
    } else {
        c->status = tc_dep_failure(n);
        c->dropped = n->subscriptions && n->route_mark != m->mark;
    }
    c->resolution_note = tc_dep_resolution_note(m, n, eds);
    return c;
}

static bool config_is_aggregate(const struct tc_cluster_config *c)
{
    return c->cluster && c->cluster->kind == TC_CLUSTER_AGGREGATE;
}

/* Stores the snapshot, unless it equals the node's last one. Takes over the reference. */
static void node_set_config(struct tc_dep_node *n, struct tc_cluster_config *c)
{
    if (tc_cluster_config_eq(c, n->config)) {
        tc_cluster_config_unref(c);
        return;
    }
    tc_cluster_config_unref(n->config);
    n->config = c;
}

void tc_dep_refresh_root(const struct tc_dependency_manager *m, struct tc_dep_node *n, struct tc_dep_tree *tree,
                         size_t limit)
{
    struct tc_cluster_config *c = cluster_snapshot(m, n);
    if (config_is_aggregate(c) && !tree->excess && tree->leaf_clusters.len) {
        c->leaf_clusters = tree->leaf_clusters.data;
        c->n_leaf_clusters = tree->leaf_clusters.len;
        tree->leaf_clusters = (tc_leaf_cluster_vec){0};
    } else if (config_is_aggregate(c)) {
        c->leaf_error = tc_dep_leaf_error(n, tree->excess, limit);
    }
    node_set_config(n, c);
}

void tc_dep_refresh_inner(const struct tc_dependency_manager *m, struct tc_dep_node *n)
{
    node_set_config(n, cluster_snapshot(m, n));
}

void tc_dep_refresh_content(const struct tc_dependency_manager *m, struct tc_dep_node *n)
{
    struct tc_cluster_config *c = cluster_snapshot(m, n);
    if (config_is_aggregate(c)) {
        c->leaf_clusters = tc_calloc(n->config->n_leaf_clusters, sizeof(*c->leaf_clusters));
        while (c->n_leaf_clusters < n->config->n_leaf_clusters) {
            c->leaf_clusters[c->n_leaf_clusters] = tc_rstr_ref(n->config->leaf_clusters[c->n_leaf_clusters]);
            c->n_leaf_clusters++;
        }
        c->leaf_error = tc_status_ref(&n->config->leaf_error);
    }
    node_set_config(n, c);
}
