#include "lb/priority.h"

#include <stdlib.h>
#include <strings.h>

#include <uthash.h>

#include "base/json.h"
#include "base/mem.h"
#include "lb/describe.h"

struct config {
    struct tc_lb_config base;
    size_t n;
    struct tc_priority_child children[];
};

struct priority;

struct child {
    struct tc_lb_helper helper; /* of the child's policy */
    struct priority *owner;
    struct tc_rstr *name;
    struct tc_lb_child *policy;
    bool ignore_reresolution;
    bool listed; /* in the present config */
    enum torc_connectivity state;
    struct tc_status status;
    struct tc_picker *picker;
    bool failed_last;          /* TRANSIENT_FAILURE was seen more recently than READY or IDLE */
    struct tc_timer failover;  /* A56: runs while the child tries to connect */
    struct tc_timer retention; /* runs while it is deactivated */
    struct tc_task free_task;
    UT_hash_handle hh;
};

/* The facts: config, last update, and the children with their states and timers. Everything else follows in
 * reconcile(). */
struct priority {
    struct tc_lb_policy base;
    struct config *config; /* NULL before the first update */
    struct tc_endpoints *endpoints;
    struct tc_status endpoints_error; /* when endpoints is NULL */
    struct tc_rstr *note;
    void *attributes; /* a reference, when they can be kept */
    void *(*attributes_ref)(void *attributes);
    void (*attributes_unref)(void *attributes);
    enum torc_connectivity published_state;
    struct tc_picker *published; /* a reference; NULL: none yet, or that of no child */
    struct child *children;      /* by name */
    bool busy;                   /* children are being told something: no choice until it is done (A56) */
    struct tc_task free_task;
};

static void reconcile(struct priority *p);

/* Children. */

static void on_child_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                           struct tc_picker *picker)
{
    struct child *c = (struct child *)h;
    enum torc_connectivity before = c->state;
    tc_picker_unref(c->picker);
    c->picker = picker;
    c->state = state;
    tc_status_set(&c->status, tc_status_ref(status));
    if (state == TORC_CONNECTING) {
        if (before != TORC_CONNECTING && !c->failed_last && !tc_timer_active(&c->failover))
            tc_timer_start(&c->failover, c->helper.env->priority_failover_ms);
    } else {
        c->failed_last = state == TORC_TRANSIENT_FAILURE;
        tc_timer_stop(&c->failover);
    }
    reconcile(c->owner);
}

static struct tc_subchannel *on_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    struct tc_lb_helper *parent = ((struct child *)h)->owner->base.helper;
    return parent->ops->create_subchannel(parent, endpoint, addr, on_state, arg);
}

static void on_request_reresolution(struct tc_lb_helper *h)
{
    struct child *c = (struct child *)h;
    struct tc_lb_helper *parent = c->owner->base.helper;
    if (!c->ignore_reresolution)
        parent->ops->request_reresolution(parent);
}

static const struct tc_lb_helper_ops child_ops = {on_create_subchannel, on_child_state, on_request_reresolution};

static void on_child_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct child, free_task));
}

static void child_end(struct child *c)
{
    struct priority *p = c->owner;
    HASH_DEL(p->children, c);
    tc_timer_stop(&c->failover);
    tc_timer_stop(&c->retention);
    tc_lb_child_shutdown(c->policy);
    tc_picker_unref(c->picker);
    tc_status_fini(&c->status);
    tc_rstr_unref(c->name);
    tc_loop_defer(p->base.helper->env->loop, &c->free_task);
}

static void on_failover(struct tc_timer *timer)
{
    reconcile(TC_CONTAINER_OF(timer, struct child, failover)->owner);
}

static void on_retention(struct tc_timer *timer)
{
    child_end(TC_CONTAINER_OF(timer, struct child, retention));
}

static struct child *find_child(const struct priority *p, const struct tc_rstr *name)
{
    struct child *c;
    HASH_FIND(hh, p->children, name->data, name->len, c);
    return c;
}

static struct child *child_new(struct priority *p, struct tc_rstr *name)
{
    const struct tc_lb_env *env = p->base.helper->env;
    struct child *c = TC_NEW(struct child);
    c->helper = (struct tc_lb_helper){&child_ops, env};
    c->owner = p;
    c->name = tc_rstr_ref(name);
    c->listed = true;
    c->state = TORC_CONNECTING;
    c->picker = tc_picker_queue();
    c->policy = tc_lb_child_new(&c->helper);
    tc_timer_init(&c->failover, env->loop, on_failover);
    tc_timer_init(&c->retention, env->loop, on_retention);
    tc_task_init(&c->free_task, on_child_free);
    HASH_ADD_KEYPTR(hh, p->children, c->name->data, c->name->len, c);
    tc_timer_start(&c->failover, env->priority_failover_ms);
    return c;
}

static struct tc_status update_child(struct priority *p, struct child *c, const struct tc_priority_child *config,
                                     void *attributes)
{
    c->ignore_reresolution = config->ignore_reresolution_requests;
    struct tc_lb_update update = {
        .endpoints = p->endpoints ? tc_endpoints_child(p->endpoints, tc_rstr_slice(c->name)) : NULL,
        .endpoints_error = p->endpoints ? NULL : &p->endpoints_error,
        .config = config->config,
        .resolution_note = p->note,
        .attributes = attributes,
        .attributes_ref = p->attributes_ref,
        .attributes_unref = p->attributes_unref,
    };
    return tc_lb_child_update(c->policy, &update);
}

static void deactivate(struct child *c)
{
    if (!tc_timer_active(&c->retention))
        tc_timer_start(&c->retention, c->helper.env->priority_retention_ms);
}

/* Choosing (A56). */

static void set_published(struct priority *p, enum torc_connectivity state, struct tc_picker *picker)
{
    struct tc_picker *old = p->published;
    p->published = picker ? tc_picker_ref(picker) : NULL;
    p->published_state = state;
    tc_picker_unref(old);
}

static void publish(struct priority *p, struct child *c)
{
    struct tc_lb_helper *h = p->base.helper;
    if (p->published == c->picker && p->published_state == c->state)
        return;
    set_published(p, c->state, c->picker);
    struct tc_status status = tc_status_ref(&c->status);
    h->ops->update_state(h, c->state, &status, tc_picker_ref(c->picker));
    tc_status_fini(&status);
}

static void publish_empty(struct priority *p)
{
    struct tc_lb_helper *h = p->base.helper;
    set_published(p, TORC_TRANSIENT_FAILURE, NULL);
    struct tc_status status = tc_status_make(TORC_STATUS_UNAVAILABLE, "priority policy has empty priority list");
    h->ops->update_state(h, TORC_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
}

/* The child at priority i, made or reactivated. */
static struct child *activate(struct priority *p, size_t i)
{
    const struct tc_priority_child *config = &p->config->children[i];
    struct child *c = find_child(p, config->name);
    if (c) {
        tc_timer_stop(&c->retention);
        return c;
    }
    c = child_new(p, config->name);
    p->busy = true; /* its first report may come from inside the update: it is read right after */
    struct tc_status status = update_child(p, c, config, p->attributes);
    tc_status_fini(&status);
    p->busy = false;
    return c;
}

static struct child *choose(struct priority *p)
{
    for (size_t i = 0; i < p->config->n; i++) {
        struct child *c = activate(p, i);
        if (c->state == TORC_READY || c->state == TORC_IDLE) {
            for (size_t k = i + 1; k < p->config->n; k++) {
                struct child *lower = find_child(p, p->config->children[k].name);
                if (lower)
                    deactivate(lower);
            }
            return c;
        }
        if (tc_timer_active(&c->failover))
            return c;
    }
    for (size_t i = 0; i < p->config->n; i++) {
        struct child *c = find_child(p, p->config->children[i].name);
        if (c->state == TORC_CONNECTING)
            return c;
    }
    return find_child(p, p->config->children[p->config->n - 1].name);
}

/* Idempotent: run after every event; the last thing that an event does. */
static void reconcile(struct priority *p)
{
    if (p->busy || !p->base.helper || !p->config)
        return;
    if (p->config->n == 0)
        publish_empty(p);
    else
        publish(p, choose(p));
}

/* Updates. */

static bool cache_removed_children(void)
{
    const char *v = getenv("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE");
    return v && strcasecmp(v, "true") == 0;
}

static void drop_attributes(struct priority *p)
{
    if (p->attributes && p->attributes_unref)
        p->attributes_unref(p->attributes);
    p->attributes = NULL;
}

static void keep_attributes(struct priority *p, const struct tc_lb_update *update)
{
    bool keep = update->attributes && update->attributes_ref && update->attributes_unref;
    void *attributes = keep ? update->attributes_ref(update->attributes) : NULL;
    drop_attributes(p);
    p->attributes = attributes;
    p->attributes_ref = update->attributes_ref;
    p->attributes_unref = update->attributes_unref;
}

static void remember(struct priority *p, const struct tc_lb_update *update)
{
    struct tc_lb_config *config = tc_lb_config_ref(update->config);
    struct tc_endpoints *endpoints = tc_endpoints_ref(update->endpoints);
    struct tc_rstr *note = tc_rstr_ref(update->resolution_note);
    if (p->config)
        tc_lb_config_unref(&p->config->base);
    tc_endpoints_unref(p->endpoints);
    tc_rstr_unref(p->note);
    tc_status_fini(&p->endpoints_error);
    p->config = (struct config *)config;
    p->endpoints = endpoints;
    p->note = note;
    keep_attributes(p, update);
    if (update->endpoints_error)
        p->endpoints_error = tc_status_ref(update->endpoints_error);
}

static struct tc_status pr_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct priority *p = (struct priority *)policy;
    struct tc_status result = {0};
    if (!p->base.helper)
        return result;
    remember(p, update);
    p->busy = true;
    struct child *c, *next;
    HASH_ITER(hh, p->children, c, next)
    c->listed = false;
    for (size_t i = 0; i < p->config->n; i++) {
        if (!(c = find_child(p, p->config->children[i].name)))
            continue;
        c->listed = true;
        struct tc_status status = update_child(p, c, &p->config->children[i], update->attributes);
        if (!tc_status_ok(&status) && tc_status_ok(&result))
            result = tc_status_ref(&status);
        tc_status_fini(&status);
    }
    bool keep = cache_removed_children();
    HASH_ITER(hh, p->children, c, next)
    {
        if (c->listed)
            continue;
        if (keep)
            deactivate(c);
        else
            child_end(c); /* A115 */
    }
    p->busy = false;
    reconcile(p);
    return result;
}

static void pr_exit_idle(struct tc_lb_policy *policy)
{
    struct priority *p = (struct priority *)policy;
    p->busy = true;
    for (struct child *c = p->children; c; c = c->hh.next)
        if (c->state == TORC_IDLE && !tc_timer_active(&c->retention))
            tc_lb_child_exit_idle(c->policy);
    p->busy = false;
    reconcile(p);
}

static void pr_reset_backoff(struct tc_lb_policy *policy)
{
    struct priority *p = (struct priority *)policy;
    for (struct child *c = p->children; c; c = c->hh.next)
        tc_lb_child_reset_backoff(c->policy);
}

static void describe_child(const struct child *c, struct tc_describe *d)
{
    tc_describe_open(d, NULL, '{');
    tc_describe_text(d, "name", tc_rstr_slice(c->name));
    tc_describe_state(d, "state", c->state);
    tc_describe_flag(d, "serves", c->picker == c->owner->published);
    if (c->state == TORC_TRANSIENT_FAILURE)
        tc_describe_text(d, "error", tc_slice_str(tc_status_text(&c->status)));
    tc_describe_flag(d, "failed_last", c->failed_last);
    tc_describe_timer(d, "failover_ms", &c->failover);
    tc_describe_timer(d, "ends_in_ms", &c->retention);
    tc_describe_child(d, "child", c->policy);
    tc_describe_close(d, '}');
}

static void pr_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct priority *p = (const struct priority *)policy;
    tc_describe_open(d, "priorities", '[');
    for (size_t i = 0; p->config && i < p->config->n; i++) {
        const struct child *c = find_child(p, p->config->children[i].name);
        if (c) {
            describe_child(c, d);
            continue;
        }
        tc_describe_open(d, NULL, '{'); /* not needed so far */
        tc_describe_text(d, "name", tc_rstr_slice(p->config->children[i].name));
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
    tc_describe_open(d, "removed", '[');
    for (const struct child *c = p->children; c; c = c->hh.next)
        if (!c->listed)
            describe_child(c, d);
    tc_describe_close(d, ']');
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct priority, free_task));
}

static void pr_shutdown(struct tc_lb_policy *policy)
{
    struct priority *p = (struct priority *)policy;
    if (!p->base.helper)
        return;
    struct tc_loop *loop = p->base.helper->env->loop;
    struct child *c, *next;
    HASH_ITER(hh, p->children, c, next)
    child_end(c);
    if (p->config)
        tc_lb_config_unref(&p->config->base);
    tc_endpoints_unref(p->endpoints);
    tc_rstr_unref(p->note);
    tc_status_fini(&p->endpoints_error);
    drop_attributes(p);
    tc_picker_unref(p->published);
    p->published = NULL;
    p->config = NULL;
    p->endpoints = NULL;
    p->note = NULL;
    p->base.helper = NULL;
    tc_loop_defer(loop, &p->free_task);
}

static const struct tc_lb_policy_ops pr_ops = {pr_update, pr_exit_idle, pr_reset_backoff, pr_shutdown, pr_describe};

static struct tc_lb_policy *pr_create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct priority *p = TC_NEW(struct priority);
    p->base = (struct tc_lb_policy){&pr_ops, cls, helper};
    tc_task_init(&p->free_task, on_free);
    return &p->base;
}

/* Config. */

struct tc_lb_config *tc_priority_config_new(const struct tc_priority_child *children, size_t n)
{
    struct config *c = tc_calloc(1, sizeof(*c) + n * sizeof(struct tc_priority_child));
    c->base.cls = &tc_priority_class;
    tc_ref_init(&c->base.ref);
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        c->children[i].name = tc_rstr_ref(children[i].name);
        c->children[i].config = tc_lb_config_ref(children[i].config);
        c->children[i].ignore_reresolution_requests = children[i].ignore_reresolution_requests;
    }
    return &c->base;
}

static void pr_free_config(struct tc_lb_config *config)
{
    struct config *c = (struct config *)config;
    for (size_t i = 0; i < c->n; i++) {
        tc_rstr_unref(c->children[i].name);
        tc_lb_config_unref(c->children[i].config);
    }
    tc_free(c);
}

static bool pr_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->children[i].ignore_reresolution_requests != b->children[i].ignore_reresolution_requests ||
            !tc_rstr_eq(a->children[i].name, b->children[i].name) ||
            !tc_lb_config_eq(a->children[i].config, b->children[i].config))
            return false;
    return true;
}

/* One entry of "priorities" and its child; false with faults when something is wrong. */
static bool parse_child(const json_t *children, const json_t *name, const json_t *names, size_t i,
                        const struct tc_lb_registry *registry, unsigned depth, struct tc_priority_child *out,
                        struct tc_faults *faults)
{
    size_t before = faults->count;
    tc_faults_push(faults, ".priorities[%zu]", i);
    if (!json_is_string(name))
        tc_faults_add(faults, "must be a string");
    for (size_t k = 0; k < i && faults->count == before; k++)
        if (json_equal(name, json_array_get(names, k)))
            tc_faults_add(faults, "names a child twice");
    const json_t *child = json_is_string(name) ? json_object_get(children, json_string_value(name)) : NULL;
    if (faults->count == before && !json_is_object(child))
        tc_faults_add(faults, "no child of that name");
    tc_faults_pop(faults);
    if (faults->count != before)
        return false;
    tc_faults_push(faults, ".children[\"%s\"]", json_string_value(name));
    tc_json_get_bool(child, "ignoreReresolutionRequests", &out->ignore_reresolution_requests, faults);
    tc_json_get_bool(child, "ignore_reresolution_requests", &out->ignore_reresolution_requests, faults);
    tc_faults_push(faults, ".config");
    out->config = tc_lb_parse_list(registry, json_object_get(child, "config"), depth + 1, faults);
    tc_faults_pop(faults);
    tc_faults_pop(faults);
    out->name = tc_rstr_str(json_string_value(name));
    return faults->count == before;
}

/* {"children": {NAME: {"config": [...], "ignoreReresolutionRequests": B}}, "priorities": [NAME]} */
static struct tc_lb_config *pr_parse(const struct tc_lb_class *cls, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth, struct tc_faults *faults)
{
    (void)cls;
    size_t before = faults->count;
    const json_t *children = NULL, *names = NULL;
    if (!tc_json_get_obj(json, "children", &children, faults) && faults->count == before)
        tc_faults_add_at(faults, ".children", "must be given");
    if (!tc_json_get_arr(json, "priorities", &names, faults) && faults->count == before)
        tc_faults_add_at(faults, ".priorities", "must be given");
    if (faults->count != before)
        return NULL;
    size_t n = json_array_size(names);
    if (n > json_object_size(children)) {
        tc_faults_add_at(faults, ".priorities", "more names than children");
        return NULL;
    }
    struct tc_priority_child *list = tc_calloc(n + 1, sizeof(*list));
    for (size_t i = 0; i < n; i++)
        parse_child(children, json_array_get(names, i), names, i, registry, depth, &list[i], faults);
    struct tc_lb_config *config = faults->count == before ? tc_priority_config_new(list, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    tc_free(list);
    return config;
}

const struct tc_lb_class tc_priority_class = {
    .name = "priority",
    .alias = "priority_experimental",
    .create = pr_create,
    .parse_config = pr_parse,
    .free_config = pr_free_config,
    .equal_config = pr_equal_config,
};
