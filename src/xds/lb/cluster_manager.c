/* xds_cluster_manager (A31): a child for each cluster of the route configuration.
 *
 * The config selector chooses the cluster of an RPC. The pick finds the cluster's child by name in the table, with one
 * hash lookup. The policy changes the table in place, so a report of one child costs O(1).
 *
 * A cluster that left the route configuration stays in the LB config while RPCs hold it. Once its Cluster resource is
 * gone, too, the XdsConfig marks it as dropped, and not even a wait-for-ready RPC waits for it. An update with an error
 * updates no child, and fails the RPCs whose cluster has no child. Every update ends the children that its config does
 * not name.
 *
 * The policy and its pickers hold references of the table, so that a picker may outlive the policy. The policy ends all
 * children, and leaves the table empty. Policies and pickers: loop thread only; configs: any thread. Read
 * manager_update and manager_pick first. */
#include "xds/lb/policies.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/children.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"
#include "lb/registry.h"
#include "xds/resource/xds_config.h"

/* --- config --- */

/* {"childPolicy": [...]}. Returns the child's config with one reference; NULL with errors. */
static struct tc_lb_config *parse_cluster_child(const json_t *json, const struct tc_lb_registry *registry,
                                                unsigned depth, struct tc_validation_errors *errors)
{
    if (json_is_object(json))
        return tc_lb_parse_child(registry, json, "childPolicy", depth, errors);
    tc_validation_add(errors, "must be an object");
    return NULL;
}

/* {"children": {"name": {"childPolicy": [...]}}} */
static struct tc_lb_config *manager_parse_config(const struct tc_lb_factory *factory, const json_t *json,
                                                 const struct tc_lb_registry *registry, unsigned depth,
                                                 struct tc_validation_errors *errors)
{
    (void)factory;
    const json_t *object = NULL;
    TC_VEC(struct tc_child_config) children = {0};
    struct tc_lb_config *config = NULL;
    size_t before = errors->count;
    const char *name;
    json_t *value;
    tc_json_get_obj(json, "children", &object, errors);
    json_object_foreach((json_t *)object, name, value)
    {
        tc_validation_push_key(errors, ".children", name);
        struct tc_lb_config *child = parse_cluster_child(value, registry, depth, errors);
        tc_validation_pop(errors);
        if (child)
            *tc_vec_push(&children) = (struct tc_child_config){.name = tc_rstr_str(name), .config = child};
    }
    if (errors->count == before)
        config = tc_child_configs_new(&tc_cluster_manager_factory, children.data, children.len);
    tc_child_config_list_free(children.data, children.len);
    return config;
}

/* --- picker --- */

struct cluster_child {
    struct tc_named_child base;
    size_t place; /* the cluster's index in the last XdsConfig: the next search begins there */
    bool dropped; /* no route has the cluster, and there is no Cluster resource (tc_cluster_config.dropped) */
};

/* The policy writes the table, its pickers read it. Empty after the policy's shutdown. */
struct cluster_table {
    struct tc_lref ref;
    struct tc_children children;
};

struct manager_picker {
    struct tc_picker base;
    struct cluster_table *table; /* a reference */
    struct tc_status error;      /* fails the RPCs whose cluster has no child; OK: see manager_pick */
};

static void cluster_table_unref(struct cluster_table *t)
{
    if (tc_lref_dec(&t->ref))
        tc_free(t);
}

static void trace_cluster(struct tc_pick_trace *t, const struct tc_named_child *c)
{
    t->cluster = tc_arena_copy(t->arena, tc_rstr_slice(c->name));
    t->error = (struct tc_slice){0};
    if (c->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        t->error = tc_arena_copy(t->arena, tc_slice_str(tc_status_text(&c->status)));
    t->has_state = true;
    t->state = c->state;
}

static enum tc_pick_kind manager_pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct manager_picker *p = TC_CONTAINER_OF(base, struct manager_picker, base);
    struct tc_named_child *c = NULL;
    if (args->cluster.len)
        c = tc_children_find(&p->table->children, args->cluster);
    if (c) {
        if (TC_UNLIKELY(args->trace != NULL))
            trace_cluster(args->trace, c);
        enum tc_pick_kind kind = tc_picker_pick(c->picker, args, out);
        /* A31: a wait-for-ready RPC must not wait for a deleted cluster: it would hold the cluster for ever. */
        return kind == TC_PICK_FAIL && TC_CONTAINER_OF(c, struct cluster_child, base)->dropped ? TC_PICK_DROP : kind;
    }
    if (!tc_status_ok(&p->error)) {
        out->status = tc_status_ref(&p->error);
        return TC_PICK_FAIL;
    }
    /* A31: cannot happen while the config selector holds the clusters that it chose. */
    out->status =
        tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_XDS, "xds_cluster_manager: unknown cluster \"%.*s\"",
                       (int)TC_MIN(args->cluster.len, (size_t)256), args->cluster.len ? args->cluster.data : "");
    return TC_PICK_DROP;
}

static void manager_picker_free(struct tc_picker *base)
{
    struct manager_picker *p = TC_CONTAINER_OF(base, struct manager_picker, base);
    cluster_table_unref(p->table);
    tc_status_fini(&p->error);
    tc_free(p);
}

static const struct tc_picker_ops manager_picker_ops = {.pick = manager_pick, .free = manager_picker_free};

/* --- policy --- */

struct manager {
    struct tc_lb_policy base;
    struct cluster_table *table;                  /* a reference */
    size_t count[TORC_CONNECTIVITY_SHUTDOWN + 1]; /* children by state */
    struct tc_lb_config *config;                  /* of the last update, a reference; NULL: none yet */
    struct cluster_child **by_config;             /* the child of each entry of `config`; the table owns the children */
    struct tc_status error;                       /* the resolver's error; OK: it has a config */
    bool updating;                                /* in an update, or shut down: reports of children publish nothing */
};

static struct manager *manager_of(const struct tc_children *set)
{
    return TC_CONTAINER_OF(set->policy, struct manager, base);
}

/* Returns TRANSIENT_FAILURE while the resolver is in error or there is no child; else the best state of all children:
 * READY, CONNECTING, IDLE, TRANSIENT_FAILURE, in this order (A28). */
static enum torc_connectivity aggregate_state(const struct manager *m)
{
    if (!tc_status_ok(&m->error))
        return TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    return m->count[TORC_CONNECTIVITY_READY]        ? TORC_CONNECTIVITY_READY
           : m->count[TORC_CONNECTIVITY_CONNECTING] ? TORC_CONNECTIVITY_CONNECTING
           : m->count[TORC_CONNECTIVITY_IDLE]       ? TORC_CONNECTIVITY_IDLE
                                                    : TORC_CONNECTIVITY_TRANSIENT_FAILURE;
}

/* Publishes the state and a new picker over the same table; queued RPCs then pick again. */
static void manager_publish(struct manager *m)
{
    struct tc_status none = {0};
    const struct tc_status *why = &none;
    struct manager_picker *p = TC_NEW(struct manager_picker);
    tc_picker_init(&p->base, &manager_picker_ops);
    p->table = m->table;
    tc_lref_inc(&m->table->ref);
    enum torc_connectivity state = aggregate_state(m);
    if (!tc_status_ok(&m->error)) {
        p->error = tc_status_ref(&m->error);
        why = &m->error;
    } else if (!m->table->children.first) {
        none = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "no children in xds_cluster_manager policy");
        p->error = tc_status_ref(&none);
        why = &none;
    } else if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
        why = &m->table->children.first->status;
    }
    tc_lb_update_state(m->base.helper, state, why, &p->base);
    tc_status_fini(&none);
}

static void on_cluster_new(struct tc_named_child *c)
{
    manager_of(c->set)->count[c->state]++;
}

static void on_cluster_end(struct tc_named_child *c)
{
    manager_of(c->set)->count[c->state]--;
}

static void on_cluster_state(struct tc_named_child *c, enum torc_connectivity before)
{
    struct manager *m = manager_of(c->set);
    m->count[before]--;
    m->count[c->state]++;
    if (!m->updating && m->base.helper)
        manager_publish(m);
}

static const struct tc_children_ops cluster_ops = {
    .child_size = sizeof(struct cluster_child),
    .helper = {.update_state = tc_children_update_state},
    .on_new = on_cluster_new,
    .on_state = on_cluster_state,
    .on_end = on_cluster_end,
};

/* Lists the children that the config names, makes those that do not exist, and fills in by_config. Returns false, and
 * does nothing, if the config is the same object as in the last update. */
static bool manager_take_config(struct manager *m, struct tc_lb_config *base)
{
    const struct tc_child_configs *config = tc_child_configs(base);
    if (base == m->config)
        return false;
    tc_children_begin_update(&m->table->children);
    tc_free(m->by_config);
    m->by_config = tc_calloc(config->n, sizeof(struct cluster_child *));
    for (size_t i = 0; i < config->n; i++)
        m->by_config[i] =
            TC_CONTAINER_OF(tc_children_list(&m->table->children, config->at[i].name), struct cluster_child, base);
    tc_lb_config_ref(base);
    tc_lb_config_unref(m->config);
    m->config = base;
    return true;
}

static bool cluster_is_dropped(struct cluster_child *c, const struct tc_xds_config *xds)
{
    const struct tc_cluster_config *now =
        xds ? tc_xds_config_cluster_at(xds, tc_rstr_slice(c->base.name), &c->place) : NULL;
    return now && now->dropped;
}

/* Updates all children, unless the update has an error; the child's update finds out whether its cluster changed.
 * Returns the first refusal of a child, or OK. */
static struct tc_status manager_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    const struct tc_child_configs *config = tc_child_configs(update->config);
    struct tc_status result = {0};
    m->updating = true;
    tc_status_set(&m->error, update->endpoints_error ? tc_status_ref(update->endpoints_error) : (struct tc_status){0});
    bool changed = manager_take_config(m, update->config);
    /* With an error the resolver has no config: the clusters that RPCs still hold stay as they are. */
    for (size_t i = 0; i < config->n && tc_status_ok(&m->error); i++) {
        struct tc_lb_update down = *update;
        down.config = config->at[i].config;
        m->by_config[i]->dropped = cluster_is_dropped(m->by_config[i], update->attributes);
        struct tc_status status = tc_graceful_switch_update(m->by_config[i]->base.policy, &down);
        if (tc_status_ok(&result))
            result = status;
        else
            tc_status_fini(&status);
    }
    if (changed)
        tc_children_sweep(&m->table->children, 0);
    m->updating = false;
    manager_publish(m);
    return result;
}

static void manager_exit_idle(struct tc_lb_policy *base)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    for (struct tc_named_child *c = m->table->children.first; c; c = c->hh.next)
        tc_graceful_switch_exit_idle(c->policy);
}

static void manager_reset_backoff(struct tc_lb_policy *base)
{
    tc_children_reset_backoff(&TC_CONTAINER_OF(base, struct manager, base)->table->children);
}

static void manager_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    tc_describe_open(d, "clusters", '[');
    for (struct tc_named_child *c = m->table->children.first; c; c = c->hh.next) {
        tc_describe_open(d, NULL, '{');
        tc_describe_text(d, "name", tc_rstr_slice(c->name));
        tc_named_child_describe_state(c, c->state, d);
        tc_graceful_switch_describe(c->policy, d, "child");
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void manager_shutdown(struct tc_lb_policy *base)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    if (!base->helper)
        return;
    m->updating = true;
    tc_children_end(&m->table->children);
    tc_free(m->by_config);
    tc_lb_config_unref(m->config);
    cluster_table_unref(m->table);
    tc_status_fini(&m->error);
    tc_lb_policy_end(&m->base);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = manager_update,
    .exit_idle = manager_exit_idle,
    .reset_backoff = manager_reset_backoff,
    .shutdown = manager_shutdown,
    .describe = manager_describe,
};

static struct tc_lb_policy *manager_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct manager *m = TC_NEW(struct manager);
    m->base = (struct tc_lb_policy){.ops = &policy_ops, .factory = factory, .helper = helper};
    m->table = TC_NEW(struct cluster_table);
    tc_lref_init(&m->table->ref);
    tc_children_init(&m->table->children, &cluster_ops, &m->base);
    return &m->base;
}

const struct tc_lb_factory tc_cluster_manager_factory = {
    .name = "xds_cluster_manager_experimental",
    .alias = "xds_cluster_manager",
    .create = manager_create,
    .parse_config = manager_parse_config,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
