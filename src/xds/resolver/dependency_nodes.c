/* The resources that a dependency manager watches, and the DNS names of its LOGICAL_DNS clusters.
 *
 * A watcher callback stores the value or the error, keeps the response's token, and schedules a reconcile. The callback
 * also decides whether a quick update suffices. A value that surely leads to the same resources (value_keeps_shape), or
 * an error beside the value of a cluster, an EDS resource or a collection, marks its node `fresh` (quick update). Any
 * other change sets `reshape` (full round). A DNS name without an answer is `awaited`: no config is reported before the
 * first answer. Further answers change the content of their cluster alone. */
#include "base/mem.h"
#include "xds/resolver/dependency_manager_internal.h"

void tc_dep_need_round(struct tc_dependency_manager *m)
{
    m->reshape = true;
    tc_loop_defer(m->loop, &m->task);
}

/* Keeps a reference of the token (NULL: there is none), and schedules a reconcile. */
static void manager_keep_token(struct tc_dependency_manager *m, struct tc_xds_token *token)
{
    if (token) {
        tc_xds_token_ref(token);
        *tc_vec_push(&m->tokens) = token;
    }
    tc_loop_defer(m->loop, &m->task);
}

/* Marks the node `fresh`: only its own content has changed. The set of needed resources stays the same, and so do the
 * clusters that do not use the node. */
static void node_content_changed(struct tc_dep_node *n)
{
    if (n->fresh)
        return;
    n->fresh = true;
    *tc_vec_push(&n->manager->fresh) = n;
}

/* Returns true only if the node leads to the same resources with the new value as with the old one. Does not look into
 * listeners, routes, clusters other than EDS, and EDS with collections: returns false for them. */
static bool value_keeps_shape(const struct tc_dep_node *n, const struct tc_xds_resource *value)
{
    if (!n->value || !value)
        return false;
    if (n->type == &tc_eds_collection_type)
        return true;
    if (n->type == &tc_eds_type)
        return !tc_eds_of(n->value)->n_collections && !tc_eds_of(value)->n_collections;
    if (n->type != &tc_cluster_type)
        return false;
    const struct tc_cluster *before = tc_cluster_of(n->value), *now = tc_cluster_of(value);
    return before->kind == TC_CLUSTER_EDS && now->kind == TC_CLUSTER_EDS && tc_rstr_eq(before->eds_name, now->eds_name);
}

static void node_drop_merged(struct tc_dep_node *n)
{
    if (n->merged)
        tc_xds_resource_unref(&n->merged->base.head);
    n->merged = NULL;
    n->merged_mark = 0;
}

static void on_node_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                            struct tc_xds_token *token)
{
    struct tc_dep_node *n = TC_CONTAINER_OF(w, struct tc_dep_node, watcher);
    if (value_keeps_shape(n, resource))
        node_content_changed(n);
    else
        n->manager->reshape = true;
    node_drop_merged(n);
    tc_xds_resource_unref(n->value);
    n->value = tc_xds_resource_ref(resource);
    tc_status_set(&n->error, error ? tc_status_ref(error) : (struct tc_status){0});
    tc_status_set(&n->ambient, (struct tc_status){0});
    tc_rstr_unref(n->note);
    n->note = resource && n->type == &tc_eds_type ? tc_dep_eds_note(tc_eds_of(resource)) : NULL;
    manager_keep_token(n->manager, token);
}

static void on_node_ambient_error(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_token *token)
{
    struct tc_dep_node *n = TC_CONTAINER_OF(w, struct tc_dep_node, watcher);
    tc_status_set(&n->ambient, tc_status_ref(error));
    if (n->value && n->type != &tc_listener_type && n->type != &tc_route_config_type)
        node_content_changed(n);
    else
        n->manager->reshape = true; /* an error of listener or routes is reported with every cluster */
    manager_keep_token(n->manager, token);
}

static const struct tc_xds_watcher_ops watcher_ops = {.on_changed = on_node_changed,
                                                      .on_ambient_error = on_node_ambient_error};

struct tc_dep_node *tc_dep_node_new(struct tc_dependency_manager *m, const struct tc_xds_resource_type *type,
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

void tc_dep_node_stop_dns(struct tc_dep_node *n)
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

void tc_dep_node_free(struct tc_dep_node *n)
{
    if (!n)
        return;
    tc_xds_client_unwatch(n->manager->client, &n->watcher);
    tc_dep_node_stop_dns(n);
    tc_cluster_config_unref(n->config);
    node_drop_merged(n);
    tc_xds_resource_unref(n->value);
    tc_status_fini(&n->error);
    tc_status_fini(&n->ambient);
    tc_rstr_unref(n->note);
    tc_rstr_unref(n->name);
    tc_free(n);
}

bool tc_dep_node_pending(const struct tc_dep_node *n)
{
    return !n->value && tc_status_ok(&n->error);
}

struct tc_dep_node *tc_dep_node_get(struct tc_dependency_manager *m, struct tc_dep_node **table,
                                    const struct tc_xds_resource_type *type, struct tc_slice name)
{
    struct tc_dep_node *n = NULL;
    HASH_FIND(hh, *table, name.data, name.len, n);
    if (!n) {
        n = tc_dep_node_new(m, type, name);
        HASH_ADD_KEYPTR(hh, *table, n->name->data, n->name->len, n);
    }
    return n;
}

/* --- DNS names --- */

/* The first answer for the last node that is `awaited` schedules a full round. A further answer for a node changes its
 * cluster's content alone (quick update). While `reshape` is set (a full round is scheduled, or the last one waits or
 * failed), a further answer schedules nothing: the next full round reads the answer. */
static void on_dns_answer(void *arg)
{
    struct tc_dep_node *n = arg;
    struct tc_dependency_manager *m = n->manager;
    if (!tc_list_linked(&n->answer))
        tc_list_append(&m->answered, &n->answer);
    if (n->awaited) {
        n->awaited = false;
        if (--m->unanswered == 0)
            tc_dep_need_round(m);
    } else if (!m->reshape) {
        node_content_changed(n);
        tc_loop_defer(m->loop, &m->task);
    }
}

static bool dns_has_answer(const struct tc_dep_node *n)
{
    return tc_dns_watch_endpoints(n->dns) || !tc_status_ok(tc_dns_watch_error(n->dns));
}

bool tc_dep_node_resolve(struct tc_dependency_manager *m, struct tc_dep_node *n, const struct tc_cluster *cluster)
{
    if (n->dns && !tc_rstr_eq(n->dns_target, cluster->dns_target))
        tc_dep_node_stop_dns(n);
    if (!n->dns && m->dns_env) {
        n->dns_target = tc_rstr_ref(cluster->dns_target);
        n->dns = tc_dns_watch_new(m->dns_env, cluster->dns_target->data, on_dns_answer, n);
        n->awaited = !dns_has_answer(n);
        m->unanswered += n->awaited;
    }
    return !n->dns || dns_has_answer(n);
}

/* --- the sweep --- */

/* Ends the watches that this round did not need. While the round waits for a resource, the config in use stays, and its
 * watches stay with it: a server that refuses a resource now, or cannot be reached, would not send its last good value
 * again. */
void tc_dep_nodes_sweep(struct tc_dep_node **table, uint64_t mark, enum tc_dep_outcome outcome)
{
    struct tc_dep_node *n, *next;
    HASH_ITER(hh, *table, n, next)
    {
        if (n->mark == mark) {
            n->in_use = outcome == TC_DEP_COMPLETE || (outcome == TC_DEP_WAITING && n->in_use);
        } else if (outcome == TC_DEP_WAITING && n->in_use) {
            if (n->awaited) /* a name that the config in use does not know */
                tc_dep_node_stop_dns(n);
        } else {
            HASH_DEL(*table, n);
            tc_dep_node_free(n);
        }
    }
}
