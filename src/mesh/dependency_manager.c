#include "mesh/dependency_manager.h"

#include <stdlib.h>

#include "base/log.h"
#include "mesh/dependency_impl.h"

enum {
    MAX_DEPTH = 16,            /* A37 */
    MAX_LEAVES = 1024,         /* of an aggregate; more when its resource may name more */
    MAX_LEAVES_IN_ALL = 65536, /* of all aggregates that are routed to, each counted again below each of them */
    MAX_NAMES_IN_ALL = 262144, /* that are walked for them, those of aggregates and repeated ones, too */
};

/* --- watched resources --- */

static void keep_token(struct tc_dependency_manager *m, struct tc_xds_done *done)
{
    if (done) {
        tc_xds_done_ref(done);
        *tc_vec_push(&m->tokens) = done;
    }
    tc_loop_defer(m->loop, &m->task);
}

static void release_tokens(struct tc_dependency_manager *m)
{
    for (size_t i = 0; i < m->tokens.len; i++)
        tc_xds_done_unref(m->tokens.data[i]);
    m->tokens.len = 0;
}

/* Nothing but the node's own content has changed: what is needed stays the same, and so do all clusters but one. */
static void content_changed(struct tc_dep_node *n)
{
    if (n->fresh)
        return;
    n->fresh = true;
    *tc_vec_push(&n->manager->fresh) = n;
}

/* Whether a new value leaves what the node leads to as it is. */
static bool same_shape(const struct tc_dep_node *n, const struct tc_xds_resource *value)
{
    if (!n->value || !value)
        return false;
    if (n->type == &tc_eds_type)
        return true;
    if (n->type != &tc_cluster_type)
        return false;
    const struct tc_cluster *before = tc_cluster_of(n->value), *now = tc_cluster_of(value);
    return before->kind == TC_CLUSTER_EDS && now->kind == TC_CLUSTER_EDS && tc_rstr_eq(before->eds_name, now->eds_name);
}

static void on_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                       struct tc_xds_done *done)
{
    struct tc_dep_node *n = TC_CONTAINER_OF(w, struct tc_dep_node, watcher);
    if (same_shape(n, resource))
        content_changed(n);
    else
        n->manager->reshape = true;
    tc_xds_resource_unref(n->value);
    n->value = tc_xds_resource_ref(resource);
    tc_status_set(&n->error, error ? tc_status_ref(error) : (struct tc_status){0});
    tc_status_set(&n->ambient, (struct tc_status){0});
    tc_rstr_unref(n->note);
    n->note = resource && n->type == &tc_eds_type ? tc_dep_eds_note(tc_eds_of(resource)) : NULL;
    keep_token(n->manager, done);
}

static void on_ambient_error(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_done *done)
{
    struct tc_dep_node *n = TC_CONTAINER_OF(w, struct tc_dep_node, watcher);
    tc_status_set(&n->ambient, tc_status_ref(error));
    if (n->value && (n->type == &tc_eds_type || n->type == &tc_cluster_type))
        content_changed(n);
    else
        n->manager->reshape = true; /* it is told of with every cluster */
    keep_token(n->manager, done);
}

static const struct tc_xds_watcher_ops watcher_ops = {.on_changed = on_changed, .on_ambient_error = on_ambient_error};

static struct tc_dep_node *node_new(struct tc_dependency_manager *m, const struct tc_xds_resource_type *type,
                                    struct tc_slice name)
{
    struct tc_dep_node *n = TC_NEW(struct tc_dep_node);
    n->watcher.ops = &watcher_ops;
    n->manager = m;
    n->type = type;
    n->name = tc_rstr_new(name.data, name.len);
    tc_list_init(&n->answer);
    tc_xds_client_watch(m->client, type, name, &n->watcher);
    return n;
}

static void stop_dns(struct tc_dep_node *n)
{
    if (!n->dns)
        return;
    tc_list_remove(&n->answer);
    n->manager->unanswered -= n->awaited;
    n->awaited = false;
    tc_dns_watch_free(n->dns);
    tc_rstr_unref(n->dns_target);
    n->dns = NULL;
    n->dns_target = NULL;
}

static void node_free(struct tc_dep_node *n)
{
    if (!n)
        return;
    tc_xds_client_unwatch(n->manager->client, &n->watcher);
    stop_dns(n);
    tc_cluster_config_unref(n->config);
    tc_xds_resource_unref(n->value);
    tc_status_fini(&n->error);
    tc_status_fini(&n->ambient);
    tc_rstr_unref(n->note);
    tc_rstr_unref(n->name);
    tc_free(n);
}

static bool node_pending(const struct tc_dep_node *n)
{
    return !n->value && tc_status_ok(&n->error);
}

static struct tc_dep_node *table_get(struct tc_dependency_manager *m, struct tc_dep_node **table,
                                     const struct tc_xds_resource_type *type, struct tc_slice name)
{
    struct tc_dep_node *n = NULL;
    HASH_FIND(hh, *table, name.data, name.len, n);
    if (!n) {
        n = node_new(m, type, name);
        HASH_ADD_KEYPTR(hh, *table, n->name->data, n->name->len, n);
    }
    return n;
}

/* Ends what this round did not need. */
static void table_sweep(struct tc_dep_node **table, uint64_t mark)
{
    struct tc_dep_node *n, *next;
    HASH_ITER(hh, *table, n, next)
    {
        if (n->mark == mark)
            continue;
        HASH_DEL(*table, n);
        node_free(n);
    }
}

/* --- what is needed --- */

static void need_round(struct tc_dependency_manager *m)
{
    m->reshape = true;
    tc_loop_defer(m->loop, &m->task);
}

/* The last answer that a config waits for makes a round. Later ones are their clusters' own matter; while the config
 * waits for something else, the round that this will make sees them, too. */
static void on_dns(void *arg)
{
    struct tc_dep_node *n = arg;
    struct tc_dependency_manager *m = n->manager;
    if (!tc_list_linked(&n->answer))
        tc_list_append(&m->answered, &n->answer);
    if (n->awaited) {
        n->awaited = false;
        if (--m->unanswered == 0)
            need_round(m);
    } else if (!m->reshape) {
        content_changed(n);
        tc_loop_defer(m->loop, &m->task);
    }
}

static bool has_answer(const struct tc_dep_node *n)
{
    return tc_dns_watch_endpoints(n->dns) || !tc_status_ok(tc_dns_watch_error(n->dns));
}

static bool need_dns(struct tc_dependency_manager *m, struct tc_dep_node *n, const struct tc_cluster *cluster)
{
    if (n->dns && !tc_rstr_eq(n->dns_target, cluster->dns_target))
        stop_dns(n);
    if (!n->dns && m->dns_env) {
        n->dns_target = tc_rstr_ref(cluster->dns_target);
        n->dns = tc_dns_watch_new(m->dns_env, cluster->dns_target->data, on_dns, n);
        n->awaited = !has_answer(n);
        m->unanswered += n->awaited;
    }
    return !n->dns || has_answer(n);
}

static size_t most_leaves(const struct tc_dependency_manager *m)
{
    size_t named = (size_t)tc_xds_client_bootstrap(m->client)->limits.aggregate_clusters;
    return TC_MAX(named, (size_t)MAX_LEAVES);
}

/* What the root's tree is too much of, one more name at that depth counted; WHOLE: nothing. */
static enum tc_dep_excess one_more(struct tc_dependency_manager *m, const struct tc_dep_tree *tree, unsigned depth)
{
    if (depth == 0)
        return TC_DEP_WHOLE;
    if (++m->names > MAX_NAMES_IN_ALL)
        return TC_DEP_ALL_TOO_LARGE;
    if (tree->leaves.len > most_leaves(m))
        return TC_DEP_TOO_WIDE;
    return depth >= MAX_DEPTH ? TC_DEP_TOO_DEEP : TC_DEP_WHOLE;
}

/* Marks a cluster and all below it, unless that is too much. Appends its leaves (skipping what this root has shown
 * already: A37, the earliest place counts). False while something is still to come. */
static bool need_cluster(struct tc_dependency_manager *m, struct tc_slice name, unsigned depth,
                         struct tc_dep_tree *tree)
{
    enum tc_dep_excess excess = one_more(m, tree, depth);
    if (excess) {
        tree->excess = TC_MAX(tree->excess, excess);
        return true;
    }
    struct tc_dep_node *n = table_get(m, &m->clusters, &tc_cluster_type, name);
    if (n->seen == m->seen)
        return true;
    n->seen = m->seen;
    n->mark = m->mark;
    if (node_pending(n))
        return false;
    const struct tc_cluster *cluster = n->value ? tc_cluster_of(n->value) : NULL;
    if (!cluster || cluster->kind != TC_CLUSTER_AGGREGATE)
        *tc_vec_push(&tree->leaves) = tc_rstr_ref(n->name);
    if (!cluster || cluster->kind != TC_CLUSTER_LOGICAL_DNS)
        stop_dns(n);
    if (!cluster)
        return true;
    bool complete = true;
    struct tc_dep_node *eds;
    switch (cluster->kind) {
    case TC_CLUSTER_EDS:
        eds = table_get(m, &m->eds, &tc_eds_type, tc_rstr_slice(cluster->eds_name));
        eds->shared = eds->mark == m->mark && (eds->shared || eds->user != n);
        eds->user = n;
        eds->mark = m->mark;
        complete = !node_pending(eds);
        break;
    case TC_CLUSTER_LOGICAL_DNS:
        complete = need_dns(m, n, cluster);
        break;
    case TC_CLUSTER_AGGREGATE:
        for (size_t i = 0; i < cluster->n_children && tree->excess <= TC_DEP_TOO_DEEP; i++)
            complete &= need_cluster(m, tc_rstr_slice(cluster->children[i]), depth + 1, tree);
        break;
    }
    return complete;
}

/* --- cluster snapshots --- */

static size_t limit_of(const struct tc_dependency_manager *m, enum tc_dep_excess excess)
{
    return excess == TC_DEP_TOO_DEEP        ? MAX_DEPTH
           : excess == TC_DEP_TOO_WIDE      ? most_leaves(m)
           : excess == TC_DEP_ALL_TOO_WIDE  ? MAX_LEAVES_IN_ALL
           : excess == TC_DEP_ALL_TOO_LARGE ? MAX_NAMES_IN_ALL
                                            : 0;
}

static struct tc_endpoints *dns_endpoints(const struct tc_dep_node *n)
{
    return n->dns ? tc_endpoints_ref(tc_dns_watch_endpoints(n->dns)) : NULL;
}

static struct tc_cluster_config *snapshot(const struct tc_dependency_manager *m, const struct tc_dep_node *n)
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
            c->eds = tc_eds_of(tc_xds_resource_ref(eds->value));
        if (c->cluster->kind == TC_CLUSTER_LOGICAL_DNS)
            c->dns = dns_endpoints(n);
    } else {
        c->status = tc_dep_failure(n);
    }
    c->resolution_note = tc_dep_resolution_note(m, n, eds);
    return c;
}

/* Gives the node a snapshot of how it is now; the last one when nothing about it changed. Takes over the leaves. */
static void refresh(const struct tc_dependency_manager *m, struct tc_dep_node *n, struct tc_dep_tree *tree)
{
    struct tc_cluster_config *c = snapshot(m, n);
    bool aggregate = c->cluster && c->cluster->kind == TC_CLUSTER_AGGREGATE;
    if (aggregate && tree && !tree->excess && tree->leaves.len) {
        c->leaves = tree->leaves.data;
        c->n_leaves = tree->leaves.len;
        tree->leaves = (tc_leaf_vec){0};
    } else if (aggregate && tree) {
        c->leaf_error = tc_dep_leaf_error(n, tree->excess, limit_of(m, tree->excess));
    }
    if (tc_cluster_config_eq(c, n->config)) {
        tc_cluster_config_unref(c);
        return;
    }
    tc_cluster_config_unref(n->config);
    n->config = c;
}

static void leaves_fini(tc_leaf_vec *leaves)
{
    for (size_t i = 0; i < leaves->len; i++)
        tc_rstr_unref(leaves->data[i]);
    tc_vec_fini(leaves);
}

/* An aggregate whose tree is known, among those before it. One that fails takes nothing from those after it. */
static void count_leaves(struct tc_dependency_manager *m, struct tc_dep_tree *tree)
{
    if (!tree->excess && tree->leaves.len > most_leaves(m))
        tree->excess = TC_DEP_TOO_WIDE;
    if (!tree->excess && m->leaves + tree->leaves.len > MAX_LEAVES_IN_ALL)
        tree->excess = TC_DEP_ALL_TOO_WIDE;
    if (!tree->excess)
        m->leaves += tree->leaves.len;
}

/* Marks a root's tree and, when that is complete, refreshes the root. */
static bool need_root(struct tc_dependency_manager *m, struct tc_slice name)
{
    struct tc_dep_node *n = table_get(m, &m->clusters, &tc_cluster_type, name);
    if (n->root_mark == m->mark)
        return true;
    n->root_mark = m->mark;
    m->seen++;
    struct tc_dep_tree tree = {0};
    bool complete = need_cluster(m, name, 0, &tree);
    if (n->value && tc_cluster_of(n->value)->kind == TC_CLUSTER_AGGREGATE)
        count_leaves(m, &tree);
    if (complete)
        refresh(m, n, &tree);
    leaves_fini(&tree.leaves);
    return complete;
}

static bool need_route(struct tc_dependency_manager *m, const struct tc_route *route)
{
    bool complete = true;
    if (route->kind == TC_ROUTE_CLUSTER)
        complete = need_root(m, tc_rstr_slice(route->cluster));
    for (size_t i = 0; route->kind == TC_ROUTE_WEIGHTED && i < route->n_weighted; i++)
        complete &= need_root(m, tc_rstr_slice(route->weighted[i].name));
    return complete;
}

static bool need_clusters(struct tc_dependency_manager *m, const struct tc_virtual_host *vhost)
{
    bool complete = true;
    for (size_t i = 0; vhost && i < vhost->n_routes; i++)
        complete &= need_route(m, &vhost->routes[i]);
    struct tc_dep_node *n, *next;
    HASH_ITER(hh, m->clusters, n, next)
    if (n->subscriptions)
        complete &= need_root(m, tc_rstr_slice(n->name));
    return complete;
}

/* --- one round --- */

/* Watches the route configuration of that name and no other; NULL: none. */
static void need_routes(struct tc_dependency_manager *m, struct tc_rstr *name)
{
    if (m->routes && (!name || !tc_rstr_eq(m->routes->name, name))) {
        node_free(m->routes);
        m->routes = NULL;
    }
    if (name && !m->routes)
        m->routes = node_new(m, &tc_route_config_type, tc_rstr_slice(name));
}

static struct tc_status failure(const struct tc_dependency_manager *m, struct tc_rstr *text)
{
    struct tc_status status = {TORC_STATUS_UNAVAILABLE, tc_with_node_id(tc_rstr_slice(text), m->node_id)};
    tc_rstr_unref(text);
    return status;
}

/* The virtual host to route by. NULL: with *error saying why there is none, or because it is still to come. */
static const struct tc_virtual_host *find_vhost(struct tc_dependency_manager *m, struct tc_status *error)
{
    const struct tc_listener *listener = m->listener->value ? tc_listener_of(m->listener->value) : NULL;
    need_routes(m, listener && listener->is_api ? listener->rds_name : NULL);
    if (!listener) {
        if (!node_pending(m->listener))
            *error = tc_dep_failure(m->listener);
        return NULL;
    }
    if (!listener->is_api) {
        *error = failure(m, tc_rstr_printf("LDS resource \"%s\" is a socket listener, not an API listener",
                                           m->listener->name->data));
        return NULL;
    }
    if (m->routes && !m->routes->value) {
        if (!node_pending(m->routes))
            *error = tc_dep_failure(m->routes);
        return NULL;
    }
    const struct tc_route_table *table = m->routes ? &tc_route_config_of(m->routes->value)->table : listener->routes;
    const struct tc_virtual_host *vhost = tc_route_table_find(table, tc_rstr_slice(m->authority));
    if (!vhost)
        *error =
            failure(m, tc_rstr_printf("no virtual host for \"%s\" in route configuration \"%s\"", m->authority->data,
                                      tc_rstr_cstr(m->routes ? m->routes->name : listener->routes_name)));
    return vhost;
}

static int by_name(const void *a, const void *b)
{
    const struct tc_cluster_config *const *x = a, *const *y = b;
    return strcmp((*x)->name->data, (*y)->name->data);
}

static struct tc_xds_config *build(struct tc_dependency_manager *m, const struct tc_virtual_host *vhost)
{
    struct tc_xds_config *c = TC_NEW(struct tc_xds_config);
    struct tc_dep_node *n, *next;
    tc_ref_init(&c->ref);
    c->listener = tc_listener_of(tc_xds_resource_ref(m->listener->value));
    c->routes = m->routes ? tc_route_config_of(tc_xds_resource_ref(m->routes->value)) : NULL;
    c->vhost = vhost;
    c->node_id = tc_rstr_ref(m->node_id);
    c->domain = m->domain;
    c->client = m->client;
    c->clusters = tc_calloc(HASH_COUNT(m->clusters), sizeof(*c->clusters));
    HASH_ITER(hh, m->clusters, n, next)
    {
        if (n->root_mark != m->mark)
            refresh(m, n, NULL);
        c->clusters[c->n_clusters++] = tc_cluster_config_ref(n->config);
    }
    if (c->n_clusters)
        qsort(c->clusters, c->n_clusters, sizeof(*c->clusters), by_name);
    return c;
}

static void report_error(struct tc_dependency_manager *m, struct tc_status error)
{
    if (tc_status_eq(&error, &m->error)) {
        tc_status_fini(&error);
        return;
    }
    TC_LOG(TC_LOG_MESH, TORC_LOG_WARN, "%s", tc_status_text(&error));
    tc_xds_config_unref(m->config);
    m->config = NULL;
    tc_status_set(&m->error, error);
    m->events->on_error(m->arg, &m->error);
}

static void report_config(struct tc_dependency_manager *m, struct tc_xds_config *config)
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

static void destroy(struct tc_dependency_manager *m);

static void forget_fresh(struct tc_dependency_manager *m)
{
    for (size_t i = 0; i < m->fresh.len; i++)
        m->fresh.data[i]->fresh = false;
    m->fresh.len = 0;
}

/* The cluster that a fresh node is, or has its endpoints from it. */
static struct tc_dep_node *cluster_of(struct tc_dep_node *fresh)
{
    return fresh->type == &tc_eds_type ? fresh->user : fresh;
}

/* Reports the last config with the fresh nodes' content, at the cost of those nodes; false: it takes a whole round. */
static bool renew(struct tc_dependency_manager *m)
{
    bool differs = false;
    if (m->reshape || !m->config)
        return false;
    for (size_t i = 0; i < m->fresh.len; i++)
        if (m->fresh.data[i]->type == &tc_eds_type && m->fresh.data[i]->shared)
            return false;
    for (size_t i = 0; i < m->fresh.len; i++) {
        struct tc_dep_node *n = cluster_of(m->fresh.data[i]);
        const struct tc_cluster_config *before = n->config;
        refresh(m, n, NULL);
        differs |= n->config != before;
    }
    struct tc_xds_config *c = differs ? tc_xds_config_copy(m->config) : NULL;
    for (size_t i = 0; c && i < m->fresh.len; i++) {
        const struct tc_dep_node *n = cluster_of(m->fresh.data[i]);
        size_t place = SIZE_MAX;
        tc_cluster_config_unref(tc_xds_config_cluster_at(c, tc_rstr_slice(n->name), &place));
        c->clusters[place] = tc_cluster_config_ref(n->config);
    }
    forget_fresh(m);
    if (c)
        report_config(m, c);
    return true;
}

/* Finds out anew what is needed; reports once all of it is there. */
static void whole_round(struct tc_dependency_manager *m)
{
    struct tc_status error = {0};
    m->mark++;
    m->leaves = m->names = 0;
    const struct tc_virtual_host *vhost = find_vhost(m, &error);
    bool complete = need_clusters(m, vhost);
    forget_fresh(m);
    table_sweep(&m->clusters, m->mark);
    table_sweep(&m->eds, m->mark);
    m->reshape = true;
    if (!tc_status_ok(&error)) {
        report_error(m, error);
    } else if (vhost && complete) {
        m->reshape = false;
        report_config(m, build(m, vhost));
    }
}

static void reconcile(struct tc_task *task)
{
    struct tc_dependency_manager *m = TC_CONTAINER_OF(task, struct tc_dependency_manager, task);
    m->reporting = true;
    if (!renew(m))
        whole_round(m);
    m->reporting = false;
    if (m->freed)
        destroy(m);
    else
        release_tokens(m);
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
    m->domain = opts->domain;
    m->node_id = tc_rstr_ref(tc_xds_client_bootstrap(client)->node_id);
    m->events = events;
    m->arg = arg;
    tc_task_init(&m->task, reconcile);
    tc_list_init(&m->answered);
    m->reshape = true;
    m->listener = node_new(m, &tc_listener_type, opts->listener);
    return m;
}

static void destroy(struct tc_dependency_manager *m)
{
    m->mark++;
    table_sweep(&m->clusters, m->mark);
    table_sweep(&m->eds, m->mark);
    node_free(m->routes);
    node_free(m->listener);
    release_tokens(m);
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
        destroy(m);
}

void tc_dependency_manager_subscribe(struct tc_dependency_manager *m, struct tc_slice cluster)
{
    struct tc_dep_node *n = table_get(m, &m->clusters, &tc_cluster_type, cluster);
    if (n->subscriptions++ == 0 && !n->config)
        need_round(m);
}

void tc_dependency_manager_unsubscribe(struct tc_dependency_manager *m, struct tc_slice cluster)
{
    struct tc_dep_node *n = NULL;
    HASH_FIND(hh, m->clusters, cluster.data, cluster.len, n);
    if (n && n->subscriptions && --n->subscriptions == 0)
        need_round(m);
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
