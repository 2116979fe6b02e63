/* XdsDependencyManager (gRFC A74).
 *
 * Keeps one watch per resource the channel needs (a "node", dependency_nodes.c) and publishes an immutable XdsConfig
 * once all of them are known. Two ways to produce a config, both run by on_reconcile, a task of the loop's queue:
 *
 *   full round     listener -> route config -> virtual host -> clusters -> EDS (-> LEDS) or DNS, creating
 *                  watches (dependency_walk.c). The clusters, EDS resources and collections that are reached get the
 *                  round's number in `mark`.
 *   quick update   only contents changed (an EDS update, an error beside a value), not which resources are needed: new
 *                  snapshots of the clusters with changed content go into a copy of the last config. Used unless
 *                  `reshape` is set or several clusters share a changed node.
 *
 * A round ends in one of three ways:
 *
 *   COMPLETE   publishes a config, if it differs from the last; frees the nodes with an older mark (mark and sweep)
 *   WAITING    publishes nothing, so that the config in use stays in force; keeps that config's nodes (`in_use`)
 *              whether or not the round reached them. If their watches ended, a server that refuses a resource now
 *              would not send the resource's last good value again (A88).
 *   FAILED     there is nothing to route by: publishes the error, if it differs from the last; drops the config, and
 *              the nodes with an older mark
 *
 * Loop thread only. Flow control: the ADS tokens of responses are held until on_reconcile has taken the responses in
 * and reported the outcome, if there is one. A round that waits releases the tokens, since what it waits for comes in
 * later responses. Read next: dependency_manager_internal.h, dependency_snapshot.c, dependency_status.c (the texts). */
#include "xds/resolver/dependency_manager.h"

#include <stdlib.h>

#include "base/log.h"
#include "xds/resolver/dependency_manager_internal.h"
#include "xds/resource/route_match.h"

enum {
    ROUTES = 65536,         /* the default of the bootstrap's limit */
    FILTERS_OF_A_ROUTE = 16 /* on average, at most */
};

static void manager_release_tokens(struct tc_dependency_manager *m)
{
    for (size_t i = 0; i < m->tokens.len; i++)
        tc_xds_token_unref(m->tokens.data[i]);
    m->tokens.len = 0;
}

/* --- one round --- */

/* Makes m->routes watch the route configuration of that name; NULL: none. Keeps the route configuration of the config
 * in use in former_routes until a round no longer waits. */
static void watch_route_config(struct tc_dependency_manager *m, struct tc_rstr *name)
{
    if (m->routes && name && tc_rstr_eq(m->routes->name, name))
        return;
    struct tc_dep_node *old = m->routes, *former = m->former_routes;
    m->routes = NULL;
    if (former && name && tc_rstr_eq(former->name, name)) {
        m->routes = former;
        m->former_routes = former = NULL;
    }
    if (old && old->in_use && !former)
        m->former_routes = old;
    else
        tc_dep_node_free(old);
    if (name && !m->routes)
        m->routes = tc_dep_node_new(m, &tc_route_config_type, tc_rstr_slice(name));
}

static void route_config_sweep(struct tc_dependency_manager *m, enum tc_dep_outcome outcome)
{
    if (outcome == TC_DEP_WAITING)
        return;
    tc_dep_node_free(m->former_routes);
    m->former_routes = NULL;
    if (m->routes)
        m->routes->in_use = outcome == TC_DEP_COMPLETE;
}

/* Each cluster of each route has a chain of the listener's HTTP filters: two small resources may need a lot of memory.
 * Returns whether there are too many filters, with the error. */
static bool virtual_host_is_too_large(const struct tc_dependency_manager *m, const struct tc_virtual_host *vhost,
                                      size_t filters, struct tc_status *error)
{
    size_t routes = (size_t)tc_xds_client_bootstrap(m->client)->limits.routes, chains = 0;
    size_t most = TC_MAX(routes, (size_t)ROUTES) * FILTERS_OF_A_ROUTE;
    for (size_t i = 0; i < vhost->n_routes; i++)
        chains += TC_MAX(vhost->routes[i].n_weighted, (size_t)1);
    if (chains * filters <= most)
        return false;
    *error = tc_status_make(
        TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
        "%zu clusters of routes, each with %zu HTTP filters, are more than %zu filters in all (node ID:%s)", chains,
        filters, most, tc_rstr_cstr(m->node_id));
    return true;
}

/* Returns the virtual host to route by. Returns NULL with the reason in *error if there is none. Returns NULL and
 * leaves *error unchanged while resources are not known yet. */
static const struct tc_virtual_host *find_virtual_host(struct tc_dependency_manager *m, struct tc_status *error)
{
    const struct tc_listener *listener = m->listener->value ? tc_listener_of(m->listener->value) : NULL;
    watch_route_config(m, listener && listener->is_api ? listener->rds_name : NULL);
    if (!listener) {
        if (!tc_dep_node_pending(m->listener))
            *error = tc_dep_failure(m->listener);
        return NULL;
    }
    if (!listener->is_api) {
        *error = tc_dep_socket_listener(m);
        return NULL;
    }
    if (m->routes && !m->routes->value) {
        if (!tc_dep_node_pending(m->routes))
            *error = tc_dep_failure(m->routes);
        return NULL;
    }
    const struct tc_route_table *table = m->routes ? &tc_route_config_of(m->routes->value)->table : listener->routes;
    const struct tc_virtual_host *vhost = tc_route_table_find(table, tc_rstr_slice(m->authority));
    if (!vhost)
        *error = tc_dep_no_vhost(m, table, m->routes ? m->routes->name : listener->routes_name);
    else if (virtual_host_is_too_large(m, vhost, listener->n_filters, error))
        vhost = NULL;
    return vhost;
}

static int cluster_config_by_name(const void *a, const void *b)
{
    const struct tc_cluster_config *const *x = a, *const *y = b;
    return strcmp((*x)->name->data, (*y)->name->data);
}

/* Returns a config of all clusters in the table, one reference. Called after the sweep of a COMPLETE round: every
 * resource is known. */
static struct tc_xds_config *config_build(struct tc_dependency_manager *m, const struct tc_virtual_host *vhost)
{
    struct tc_xds_config *c = TC_NEW(struct tc_xds_config);
    struct tc_dep_node *n, *next;
    tc_ref_init(&c->ref);
    c->listener = tc_listener_of(tc_xds_resource_ref(m->listener->value));
    c->routes = m->routes ? tc_route_config_of(tc_xds_resource_ref(m->routes->value)) : NULL;
    c->vhost = vhost;
    c->node_id = tc_rstr_ref(m->node_id);
    c->pool = m->pool;
    c->client = m->client;
    c->clusters = tc_calloc(HASH_COUNT(m->clusters), sizeof(*c->clusters));
    HASH_ITER(hh, m->clusters, n, next)
    {
        if (n->root_mark != m->mark)
            tc_dep_refresh_inner(m, n);
        c->clusters[c->n_clusters++] = tc_cluster_config_ref(n->config);
    }
    if (c->n_clusters)
        qsort(c->clusters, c->n_clusters, sizeof(*c->clusters), cluster_config_by_name);
    return c;
}

/* Reports the error, if it differs from the last report, and drops the config. Takes ownership of the error. */
static void manager_report_error(struct tc_dependency_manager *m, struct tc_status error)
{
    if (tc_status_eq(&error, &m->error)) {
        tc_status_fini(&error);
        return;
    }
    TC_LOG(TC_LOG_MESH, TORC_LOG_WARN, "%s: %s", m->authority->data, tc_status_text(&error));
    tc_xds_config_unref(m->config);
    m->config = NULL;
    tc_status_set(&m->error, error);
    m->events->on_error(m->arg, &m->error);
}

/* Reports the config, if it differs from the last report. Takes over the reference. */
static void manager_report_config(struct tc_dependency_manager *m, struct tc_xds_config *config)
{
    if (tc_xds_config_eq(config, m->config)) {
        tc_xds_config_unref(config);
        return;
    }
    tc_xds_config_unref(m->config);
    m->config = config;
    tc_status_set(&m->error, (struct tc_status){0});
    m->events->on_config(m->arg, config);
}

static void manager_destroy(struct tc_dependency_manager *m);

static void manager_forget_fresh(struct tc_dependency_manager *m)
{
    for (size_t i = 0; i < m->fresh.len; i++)
        m->fresh.data[i]->fresh = false;
    m->fresh.len = 0;
}

/* Returns the cluster of a fresh node: the node itself, or the one cluster that gets its endpoints from the node.
 * Returns NULL if several clusters do. */
static struct tc_dep_node *cluster_of_node(struct tc_dep_node *fresh)
{
    struct tc_dep_node *n = fresh;
    while (n && (n->type == &tc_eds_type || n->type == &tc_eds_collection_type))
        n = n->shared ? NULL : n->user;
    return n;
}

/* Reports the last config with the fresh nodes' new content, if that differs. Looks at the fresh nodes alone, and takes
 * the other clusters from the last config. Returns false if a full round is needed. */
static bool quick_update(struct tc_dependency_manager *m)
{
    bool differs = false;
    if (m->reshape || !m->config)
        return false;
    for (size_t i = 0; i < m->fresh.len; i++)
        if (!cluster_of_node(m->fresh.data[i]))
            return false;
    for (size_t i = 0; i < m->fresh.len; i++) {
        cluster_of_node(m->fresh.data[i])->stale = true;
        if (m->fresh.data[i]->type == &tc_eds_collection_type)
            m->fresh.data[i]->user->merged_mark = 0; /* `merged` is to be compared again */
    }
    for (size_t i = 0; i < m->fresh.len; i++) {
        struct tc_dep_node *n = cluster_of_node(m->fresh.data[i]);
        if (!n->stale) /* done already: one cluster may have thousands of collections */
            continue;
        n->stale = false;
        const struct tc_cluster_config *before = n->config;
        tc_dep_refresh_content(m, n);
        differs |= n->config != before;
    }
    struct tc_xds_config *c = differs ? tc_xds_config_copy(m->config) : NULL;
    for (size_t i = 0; c && i < m->fresh.len; i++) {
        const struct tc_dep_node *n = cluster_of_node(m->fresh.data[i]);
        size_t place = SIZE_MAX;
        tc_cluster_config_unref(tc_xds_config_cluster_at(c, tc_rstr_slice(n->name), &place));
        c->clusters[place] = tc_cluster_config_ref(n->config);
    }
    manager_forget_fresh(m);
    if (c)
        manager_report_config(m, c);
    return true;
}

/* Walks the dependencies again. Reports a config if all are known, or the error if there is nothing to route by. */
static void full_round(struct tc_dependency_manager *m)
{
    struct tc_status error = {0};
    m->mark++;
    m->leaf_clusters = m->names = m->n_collections = 0;
    const struct tc_virtual_host *vhost = find_virtual_host(m, &error);
    bool complete = tc_dep_walk(m, vhost);
    enum tc_dep_outcome outcome = !tc_status_ok(&error) ? TC_DEP_FAILED
                                  : vhost && complete   ? TC_DEP_COMPLETE
                                                        : TC_DEP_WAITING;
    manager_forget_fresh(m);
    tc_dep_nodes_sweep(&m->clusters, m->mark, outcome);
    tc_dep_nodes_sweep(&m->eds, m->mark, outcome);
    tc_dep_nodes_sweep(&m->collections, m->mark, outcome);
    route_config_sweep(m, outcome);
    m->reshape = true;
    if (outcome == TC_DEP_FAILED) {
        manager_report_error(m, error);
    } else if (outcome == TC_DEP_COMPLETE) {
        m->reshape = false;
        manager_report_config(m, config_build(m, vhost));
    }
}

static void on_reconcile(struct tc_task *task)
{
    struct tc_dependency_manager *m = TC_CONTAINER_OF(task, struct tc_dependency_manager, task);
    m->reporting = true;
    if (!quick_update(m))
        full_round(m);
    m->reporting = false;
    if (m->freed)
        manager_destroy(m);
    else
        manager_release_tokens(m);
}

/* --- from outside --- */

struct tc_dependency_manager *tc_dependency_manager_new(struct tc_loop *loop, struct tc_xds_client *client,
                                                        const struct tc_dependency_opts *opts,
                                                        const struct tc_dependency_events *events, void *arg)
{
    struct tc_dependency_manager *m = TC_NEW(struct tc_dependency_manager);
    m->loop = loop;
    m->client = client;
    m->authority = tc_rstr_new(opts->authority.data, opts->authority.len);
    m->dns_env = opts->dns;
    m->pool = opts->pool;
    m->node_id = tc_rstr_ref(tc_xds_client_bootstrap(client)->node_id);
    m->events = events;
    m->arg = arg;
    tc_task_init(&m->task, on_reconcile);
    tc_list_init(&m->answered);
    m->reshape = true;
    m->listener = tc_dep_node_new(m, &tc_listener_type, opts->listener);
    return m;
}

static void manager_destroy(struct tc_dependency_manager *m)
{
    m->mark++;
    tc_dep_nodes_sweep(&m->clusters, m->mark, TC_DEP_FAILED);
    tc_dep_nodes_sweep(&m->eds, m->mark, TC_DEP_FAILED);
    tc_dep_nodes_sweep(&m->collections, m->mark, TC_DEP_FAILED);
    tc_dep_node_free(m->routes);
    tc_dep_node_free(m->former_routes);
    tc_dep_node_free(m->listener);
    manager_release_tokens(m);
    tc_vec_fini(&m->tokens);
    tc_vec_fini(&m->fresh);
    tc_xds_config_unref(m->config);
    tc_status_fini(&m->error);
    tc_rstr_unref(m->authority);
    tc_rstr_unref(m->node_id);
    tc_free(m);
}

void tc_dependency_manager_free(struct tc_dependency_manager *m)
{
    if (!m)
        return;
    tc_task_cancel(&m->task);
    m->freed = true;
    if (!m->reporting)
        manager_destroy(m);
}

void tc_dependency_manager_subscribe(struct tc_dependency_manager *m, struct tc_slice cluster)
{
    struct tc_dep_node *n = tc_dep_node_get(m, &m->clusters, &tc_cluster_type, cluster);
    if (n->subscriptions++ == 0 && !n->config)
        tc_dep_need_round(m);
}

void tc_dependency_manager_unsubscribe(struct tc_dependency_manager *m, struct tc_slice cluster)
{
    struct tc_dep_node *n = NULL;
    HASH_FIND(hh, m->clusters, cluster.data, cluster.len, n);
    if (n && n->subscriptions && --n->subscriptions == 0)
        tc_dep_need_round(m);
}

void tc_dependency_manager_request_reresolution(struct tc_dependency_manager *m)
{
    struct tc_link asked, *link;
    tc_list_init(&asked);
    tc_list_splice(&asked, &m->answered);
    while ((link = tc_list_pop(&asked)))
        tc_dns_watch_refresh(TC_CONTAINER_OF(link, struct tc_dep_node, answer)->dns);
}

void tc_dependency_manager_reset_backoff(struct tc_dependency_manager *m)
{
    for (struct tc_dep_node *n = m->clusters; n; n = n->hh.next)
        if (n->dns)
            tc_dns_watch_reset_backoff(n->dns);
}

void tc_dependency_manager_pending(const struct tc_dependency_manager *m, struct tc_buf *out)
{
    size_t count = 0;
    tc_dep_append_pending(out, m->listener, &count);
    tc_dep_append_pending(out, m->routes, &count);
    for (const struct tc_dep_node *n = m->clusters; n; n = n->hh.next)
        tc_dep_append_pending(out, n, &count);
    for (const struct tc_dep_node *n = m->eds; n; n = n->hh.next)
        tc_dep_append_pending(out, n, &count);
    for (const struct tc_dep_node *n = m->collections; n; n = n->hh.next)
        tc_dep_append_pending(out, n, &count);
    if (count > TC_DEP_MAX_NAMED_PENDING)
        tc_buf_printf(out, " and %zu more", count - TC_DEP_MAX_NAMED_PENDING);
}
