/* XdsConfig snapshots: references, copies, equality, lookup; and the node ID in texts of errors.
 *
 * Shared parts are compared by pointer: the dependency manager keeps the old snapshot of a cluster while nothing about
 * the cluster changes. Clusters are sorted by name. A reader that asks each config for the same cluster remembers the
 * cluster's place (tc_xds_config_cluster_at), which saves the search while the place stays.
 *
 * A config holds references of its resources and snapshots; it borrows the client and the pool. Any thread may hold,
 * read and release a config. */
#include "xds/resource/xds_config.h"

#include "base/mem.h"

struct tc_cluster_config *tc_cluster_config_ref(struct tc_cluster_config *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

/* Snapshots point to const resources; the reference count in the head changes nonetheless. */
static void resource_release(const struct tc_xds_resource *r)
{
    tc_xds_resource_unref((struct tc_xds_resource *)(void *)r);
}

void tc_cluster_config_unref(struct tc_cluster_config *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    tc_rstr_unref(c->name);
    tc_status_fini(&c->status);
    if (c->cluster)
        resource_release(&c->cluster->base.head);
    if (c->eds)
        resource_release(&c->eds->base.head);
    tc_endpoints_unref(c->dns);
    tc_rstr_unref(c->resolution_note);
    for (size_t i = 0; i < c->n_leaf_clusters; i++)
        tc_rstr_unref(c->leaf_clusters[i]);
    tc_free(c->leaf_clusters);
    tc_status_fini(&c->leaf_error);
    tc_free(c);
}

bool tc_cluster_config_eq(const struct tc_cluster_config *a, const struct tc_cluster_config *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->dropped != b->dropped || a->cluster != b->cluster || a->eds != b->eds || a->dns != b->dns ||
        a->n_leaf_clusters != b->n_leaf_clusters || !tc_rstr_eq(a->name, b->name) ||
        !tc_status_eq(&a->status, &b->status) || !tc_rstr_eq(a->resolution_note, b->resolution_note) ||
        !tc_status_eq(&a->leaf_error, &b->leaf_error))
        return false;
    for (size_t i = 0; i < a->n_leaf_clusters; i++)
        if (!tc_rstr_eq(a->leaf_clusters[i], b->leaf_clusters[i]))
            return false;
    return true;
}

struct tc_xds_config *tc_xds_config_ref(struct tc_xds_config *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void tc_xds_config_unref(struct tc_xds_config *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    for (size_t i = 0; i < c->n_clusters; i++)
        tc_cluster_config_unref(c->clusters[i]);
    tc_free(c->clusters);
    if (c->routes)
        resource_release(&c->routes->base.head);
    if (c->listener)
        resource_release(&c->listener->base.head);
    tc_rstr_unref(c->node_id);
    tc_free(c);
}

static const struct tc_xds_resource *resource_keep(const struct tc_xds_resource *r)
{
    return tc_xds_resource_ref((struct tc_xds_resource *)(void *)r);
}

struct tc_xds_config *tc_xds_config_routing(const struct tc_xds_config *c)
{
    struct tc_xds_config *copy = TC_NEW(struct tc_xds_config);
    *copy = *c;
    tc_ref_init(&copy->ref);
    copy->n_clusters = 0;
    copy->clusters = NULL;
    resource_keep(&c->listener->base.head);
    if (c->routes)
        resource_keep(&c->routes->base.head);
    tc_rstr_ref(c->node_id);
    return copy;
}

struct tc_xds_config *tc_xds_config_copy(const struct tc_xds_config *c)
{
    struct tc_xds_config *copy = tc_xds_config_routing(c);
    copy->n_clusters = c->n_clusters;
    copy->clusters = tc_calloc(c->n_clusters, sizeof(*copy->clusters));
    for (size_t i = 0; i < c->n_clusters; i++)
        copy->clusters[i] = tc_cluster_config_ref(c->clusters[i]);
    return copy;
}

bool tc_xds_config_same_routing(const struct tc_xds_config *a, const struct tc_xds_config *b)
{
    return a->listener == b->listener && a->routes == b->routes && a->vhost == b->vhost;
}

bool tc_xds_config_eq(const struct tc_xds_config *a, const struct tc_xds_config *b)
{
    if (a == b)
        return true;
    if (!a || !b || !tc_xds_config_same_routing(a, b) || a->n_clusters != b->n_clusters)
        return false;
    for (size_t i = 0; i < a->n_clusters; i++)
        if (a->clusters[i] != b->clusters[i])
            return false;
    return true;
}

struct tc_cluster_config *tc_xds_config_cluster_at(const struct tc_xds_config *c, struct tc_slice name, size_t *place)
{
    size_t low = 0, high = c->n_clusters;
    if (*place < high && tc_slice_eq(name, tc_rstr_slice(c->clusters[*place]->name)))
        return c->clusters[*place];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int cmp = tc_slice_cmp(name, tc_rstr_slice(c->clusters[mid]->name));
        if (cmp == 0) {
            *place = mid;
            return c->clusters[mid];
        }
        if (cmp < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

struct tc_cluster_config *tc_xds_config_cluster(const struct tc_xds_config *c, struct tc_slice name)
{
    size_t place = SIZE_MAX;
    return tc_xds_config_cluster_at(c, name, &place);
}

struct tc_rstr *tc_with_node_id(struct tc_slice text, const struct tc_rstr *node_id)
{
    if (tc_slice_find(text, tc_slice_str("node ID:")) >= 0)
        return tc_rstr_new(text.data, text.len);
    return tc_rstr_printf("%.*s (node ID:%s)", (int)TC_MIN(text.len, (size_t)INT32_MAX), text.data ? text.data : "",
                          tc_rstr_cstr(node_id));
}
