#include "mesh/cluster_manager.h"

#include <uthash.h>

#include "base/json.h"
#include "base/mem.h"
#include "lb/describe.h"

/* --- config --- */

struct config {
    struct tc_lb_config base;
    size_t n;
    struct tc_cluster_manager_child *children;
};

struct tc_lb_config *tc_cluster_manager_config_new(const struct tc_cluster_manager_child *children, size_t n)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_cluster_manager_class;
    tc_ref_init(&c->base.ref);
    c->children = tc_calloc(n, sizeof(*c->children));
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        c->children[i].name = tc_rstr_ref(children[i].name);
        c->children[i].config = tc_lb_config_ref(children[i].config);
    }
    return &c->base;
}

static void free_config(struct tc_lb_config *base)
{
    struct config *c = TC_CONTAINER_OF(base, struct config, base);
    for (size_t i = 0; i < c->n; i++) {
        tc_rstr_unref(c->children[i].name);
        tc_lb_config_unref(c->children[i].config);
    }
    tc_free(c->children);
    tc_free(c);
}

static bool equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!tc_rstr_eq(a->children[i].name, b->children[i].name) ||
            !tc_lb_config_eq(a->children[i].config, b->children[i].config))
            return false;
    return true;
}

static struct tc_lb_config *parse_child(const json_t *json, const struct tc_lb_registry *registry, unsigned depth,
                                        struct tc_faults *faults)
{
    const json_t *list = NULL;
    struct tc_lb_config *config = NULL;
    if (!json_is_object(json)) {
        tc_faults_add(faults, "must be an object");
        return NULL;
    }
    if (!tc_json_get_arr(json, "childPolicy", &list, faults)) {
        tc_faults_add_at(faults, ".childPolicy", "must be a list");
        return NULL;
    }
    tc_faults_push(faults, ".childPolicy");
    config = tc_lb_parse_list(registry, list, depth + 1, faults);
    tc_faults_pop(faults);
    return config;
}

/* {"children": {"name": {"childPolicy": [...]}}} */
static struct tc_lb_config *parse_config(const struct tc_lb_class *cls, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_faults *faults)
{
    (void)cls;
    const json_t *object = NULL;
    TC_VEC(struct tc_cluster_manager_child) children = {0};
    struct tc_lb_config *config = NULL;
    size_t before = faults->count;
    const char *name;
    json_t *value;
    tc_json_get_obj(json, "children", &object, faults);
    json_object_foreach((json_t *)object, name, value)
    {
        tc_faults_push(faults, ".children[\"%s\"]", name);
        struct tc_lb_config *child = parse_child(value, registry, depth, faults);
        tc_faults_pop(faults);
        if (child)
            *tc_vec_push(&children) = (struct tc_cluster_manager_child){tc_rstr_str(name), child};
    }
    if (faults->count == before)
        config = tc_cluster_manager_config_new(children.data, children.len);
    for (size_t i = 0; i < children.len; i++) {
        tc_rstr_unref(children.data[i].name);
        tc_lb_config_unref(children.data[i].config);
    }
    tc_vec_fini(&children);
    return config;
}

/* --- picker --- */

struct entry {
    struct tc_rstr *name;
    struct tc_picker *picker;
    UT_hash_handle hh;
};

/* The children's pickers as they are now. The policy writes it, its pickers read it: a child's change costs O(1),
 * however many clusters there are. */
struct table {
    struct tc_lref ref;
    struct entry *entries; /* by name */
};

struct manager_picker {
    struct tc_picker base;
    struct table *table;
    struct tc_status error; /* for RPCs without a cluster; OK: there are none such */
};

static void table_unref(struct table *t)
{
    if (tc_lref_dec(&t->ref))
        tc_free(t);
}

static enum tc_pick_kind pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct manager_picker *p = TC_CONTAINER_OF(base, struct manager_picker, base);
    struct entry *e = NULL;
    if (args->cluster.len)
        HASH_FIND(hh, p->table->entries, args->cluster.data, args->cluster.len, e);
    if (e) {
        if (args->trace)
            args->trace->cluster = tc_slice_of(tc_arena_dup(args->trace->arena, args->cluster), args->cluster.len);
        return tc_picker_pick(e->picker, args, out);
    }
    if (!tc_status_ok(&p->error)) {
        out->status = tc_status_ref(&p->error);
        return TC_PICK_FAIL;
    }
    /* A31: cannot happen as long as the selector holds what it chose. */
    out->status =
        tc_status_make(TORC_STATUS_INTERNAL, "xds_cluster_manager: unknown cluster \"%.*s\"",
                       (int)TC_MIN(args->cluster.len, (size_t)256), args->cluster.len ? args->cluster.data : "");
    return TC_PICK_DROP;
}

static void picker_free(struct tc_picker *base)
{
    struct manager_picker *p = TC_CONTAINER_OF(base, struct manager_picker, base);
    table_unref(p->table);
    tc_status_fini(&p->error);
    tc_free(p);
}

static const struct tc_picker_ops picker_ops = {.pick = pick, .free = picker_free};

/* --- policy --- */

struct child {
    struct tc_lb_helper helper;
    struct manager *owner;
    struct tc_lb_child *slot;
    enum torc_connectivity state;
    struct tc_status status; /* in TRANSIENT_FAILURE */
    uint64_t mark;           /* of the last update that named it */
    struct entry entry;
};

struct manager {
    struct tc_lb_policy base;
    struct table *table;
    size_t count[TORC_SHUTDOWN + 1]; /* children by state */
    struct tc_lb_config *config;     /* of the last update; NULL: none yet */
    struct child **children;         /* of each of its children */
    struct tc_status error;          /* the resolver has nothing; OK: it has */
    uint64_t mark;
    bool updating;
    struct tc_task free_task;
};

static struct child *child_of(struct entry *e)
{
    return TC_CONTAINER_OF(e, struct child, entry);
}

/* The best state of all: READY, CONNECTING, IDLE, TRANSIENT_FAILURE (A28). */
static enum torc_connectivity aggregate(const struct manager *m)
{
    if (!tc_status_ok(&m->error))
        return TORC_TRANSIENT_FAILURE;
    return m->count[TORC_READY]        ? TORC_READY
           : m->count[TORC_CONNECTING] ? TORC_CONNECTING
           : m->count[TORC_IDLE]       ? TORC_IDLE
                                       : TORC_TRANSIENT_FAILURE;
}

static void publish(struct manager *m)
{
    struct tc_status none = {0};
    const struct tc_status *why = &none;
    struct manager_picker *p = TC_NEW(struct manager_picker);
    p->base.ops = &picker_ops;
    tc_lref_init(&p->base.ref);
    p->table = m->table;
    tc_lref_inc(&m->table->ref);
    enum torc_connectivity state = aggregate(m);
    if (!tc_status_ok(&m->error)) {
        p->error = tc_status_ref(&m->error);
        why = &m->error;
    } else if (!m->table->entries) {
        none = tc_status_make(TORC_STATUS_UNAVAILABLE, "no children in xds_cluster_manager policy");
        p->error = tc_status_ref(&none);
        why = &none;
    } else if (state == TORC_TRANSIENT_FAILURE) {
        why = &child_of(m->table->entries)->status;
    }
    m->base.helper->ops->update_state(m->base.helper, state, why, &p->base);
    tc_status_fini(&none);
}

static void on_child_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                           struct tc_picker *picker)
{
    struct child *c = TC_CONTAINER_OF(h, struct child, helper);
    struct manager *m = c->owner;
    m->count[c->state]--;
    m->count[state]++;
    c->state = state;
    tc_status_set(&c->status, status ? tc_status_ref(status) : (struct tc_status){0});
    struct tc_picker *old = c->entry.picker;
    c->entry.picker = picker;
    tc_picker_unref(old);
    if (!m->updating && m->base.helper)
        publish(m);
}

static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct tc_lb_helper *up = TC_CONTAINER_OF(h, struct child, helper)->owner->base.helper;
    return up->ops->create_subchannel(up, endpoint, addr, on_state, arg);
}

static void request_reresolution(struct tc_lb_helper *h)
{
    struct tc_lb_helper *up = TC_CONTAINER_OF(h, struct child, helper)->owner->base.helper;
    if (up)
        up->ops->request_reresolution(up);
}

static const struct tc_lb_helper_ops helper_ops = {create_subchannel, on_child_state, request_reresolution};

static struct child *child_get(struct manager *m, struct tc_rstr *name)
{
    struct entry *e = NULL;
    HASH_FIND(hh, m->table->entries, name->data, name->len, e);
    if (e)
        return child_of(e);
    struct child *c = TC_NEW(struct child);
    c->helper = (struct tc_lb_helper){&helper_ops, m->base.helper->env};
    c->owner = m;
    c->state = TORC_CONNECTING;
    m->count[c->state]++;
    c->slot = tc_lb_child_new(&c->helper);
    c->entry.name = tc_rstr_ref(name);
    c->entry.picker = tc_picker_queue();
    HASH_ADD_KEYPTR(hh, m->table->entries, c->entry.name->data, c->entry.name->len, &c->entry);
    return c;
}

static void child_remove(struct manager *m, struct child *c)
{
    HASH_DELETE(hh, m->table->entries, &c->entry);
    tc_lb_child_shutdown(c->slot);
    m->count[c->state]--;
    tc_picker_unref(c->entry.picker);
    tc_rstr_unref(c->entry.name);
    tc_status_fini(&c->status);
    tc_free(c);
}

static void remove_unmarked(struct manager *m)
{
    struct entry *e, *next;
    HASH_ITER(hh, m->table->entries, e, next)
    if (child_of(e)->mark != m->mark)
        child_remove(m, child_of(e));
}

/* Finds or makes the children that the config names, and marks them. False: they are those of the last config. */
static bool take_config(struct manager *m, struct tc_lb_config *base)
{
    const struct config *config = TC_CONTAINER_OF(base, struct config, base);
    if (base == m->config)
        return false;
    m->mark++;
    tc_free(m->children);
    m->children = tc_calloc(config->n, sizeof(struct child *));
    for (size_t i = 0; i < config->n; i++) {
        m->children[i] = child_get(m, config->children[i].name);
        m->children[i]->mark = m->mark;
    }
    tc_lb_config_ref(base);
    tc_lb_config_unref(m->config);
    m->config = base;
    return true;
}

static struct tc_status manager_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    const struct config *config = TC_CONTAINER_OF(update->config, struct config, base);
    struct tc_status result = {0};
    m->updating = true;
    tc_status_set(&m->error, update->endpoints_error ? tc_status_ref(update->endpoints_error) : (struct tc_status){0});
    bool others = take_config(m, update->config);
    /* Clusters that RPCs still hold go on as they are while there is nothing to route by. */
    for (size_t i = 0; i < config->n && tc_status_ok(&m->error); i++) {
        struct tc_lb_update down = *update;
        down.config = config->children[i].config;
        struct tc_status status = tc_lb_child_update(m->children[i]->slot, &down);
        if (tc_status_ok(&result))
            result = status;
        else
            tc_status_fini(&status);
    }
    if (others)
        remove_unmarked(m);
    m->updating = false;
    publish(m);
    return result;
}

static void manager_exit_idle(struct tc_lb_policy *base)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    for (struct entry *e = m->table->entries; e; e = e->hh.next)
        tc_lb_child_exit_idle(child_of(e)->slot);
}

static void manager_reset_backoff(struct tc_lb_policy *base)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    for (struct entry *e = m->table->entries; e; e = e->hh.next)
        tc_lb_child_reset_backoff(child_of(e)->slot);
}

static void manager_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    tc_describe_open(d, "clusters", '[');
    for (struct entry *e = m->table->entries; e; e = e->hh.next) {
        tc_describe_open(d, NULL, '{');
        tc_describe_text(d, "name", tc_rstr_slice(e->name));
        tc_describe_state(d, "state", child_of(e)->state);
        if (child_of(e)->state == TORC_TRANSIENT_FAILURE)
            tc_describe_text(d, "error", tc_slice_str(tc_status_text(&child_of(e)->status)));
        tc_describe_child(d, "child", child_of(e)->slot);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct manager, free_task));
}

static void manager_shutdown(struct tc_lb_policy *base)
{
    struct manager *m = TC_CONTAINER_OF(base, struct manager, base);
    if (!base->helper)
        return;
    struct tc_loop *loop = base->helper->env->loop;
    m->updating = true;
    m->mark++;
    remove_unmarked(m);
    tc_free(m->children);
    tc_lb_config_unref(m->config);
    base->helper = NULL;
    table_unref(m->table);
    tc_status_fini(&m->error);
    tc_loop_defer(loop, &m->free_task);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = manager_update,
    .exit_idle = manager_exit_idle,
    .reset_backoff = manager_reset_backoff,
    .shutdown = manager_shutdown,
    .describe = manager_describe,
};

static struct tc_lb_policy *create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct manager *m = TC_NEW(struct manager);
    m->base = (struct tc_lb_policy){&policy_ops, cls, helper};
    m->table = TC_NEW(struct table);
    tc_lref_init(&m->table->ref);
    tc_task_init(&m->free_task, on_free);
    return &m->base;
}

const struct tc_lb_class tc_cluster_manager_class = {
    .name = "xds_cluster_manager_experimental",
    .alias = "xds_cluster_manager",
    .create = create,
    .parse_config = parse_config,
    .free_config = free_config,
    .equal_config = equal_config,
};
