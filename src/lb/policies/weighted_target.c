/* weighted_target (A28).
 *
 * The listed children are in a table in the order in which they were made, and for each state there is a tree of the
 * weights of the children in that state (lb/weight_tree.h). The policy's state is the first of READY, CONNECTING, IDLE
 * and TRANSIENT_FAILURE whose tree is not empty; without children it is TRANSIENT_FAILURE, and the picker fails. In
 * CONNECTING the picker queues; in the other states the picker draws a child from that state's tree. The policy shares
 * the table with the pickers that draw: it changes the table in place, and empties it at its shutdown.
 *
 * So a child's report costs O(log n) and a picker some bytes, however many localities there are. RPCs that wait try
 * again only when a new picker is published. So one is published at once if the policy's state has changed, and
 * otherwise by a task: one picker for all reports until the task runs.
 *
 * A child that reports IDLE is woken, as in gRPC C++: while another child is READY all picks go there, so none would
 * wake the IDLE child.
 *
 * A child that failed counts as TRANSIENT_FAILURE until it is READY or IDLE, even while it reports CONNECTING. A child
 * that an update no longer lists has the weight 0: it is not in the table, and ends when its retention is over. */
#include "lb/policies/weighted_target.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/wide.h"
#include "lb/children.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"
#include "lb/registry.h"
#include "lb/resolution_note.h"
#include "lb/weight_tree.h"

struct target {
    struct tc_named_child base;
    uint32_t weight;                   /* 0: not in the table */
    size_t place;                      /* in the table */
    enum torc_connectivity counted_as; /* the state whose tree has the child */
    struct tc_task wake;               /* makes a listed child leave IDLE */
};

/* The policy writes the table, its pickers read it. Empty after the policy's shutdown. */
struct target_table {
    struct tc_lref ref;
    struct target **at;
    struct tc_weight_tree trees[TORC_CONNECTIVITY_SHUTDOWN]; /* by counted_as */
    uint64_t salt;                                           /* so that nested policies draw independently */
};

struct weighted_target {
    struct tc_lb_policy base;
    struct tc_children children;
    struct target_table *table;      /* a reference; out of date while `updating` */
    struct tc_rstr *resolution_note; /* of the last update, a reference; NULL: none */
    struct tc_picker *waiting; /* the picker of a listed child's last report of CONNECTING, a reference; NULL: none */
    bool updating;             /* children are being updated or woken, or the policy ends: nothing is published */
    enum torc_connectivity state; /* as published; TORC_CONNECTIVITY_SHUTDOWN: nothing yet */
    struct tc_task publish_task;
};

static struct weighted_target *target_owner(const struct tc_named_child *c)
{
    return TC_CONTAINER_OF(c->set, struct weighted_target, children);
}

static struct target *target_of(struct tc_named_child *c)
{
    return TC_CONTAINER_OF(c, struct target, base);
}

/* --- table --- */

static void target_table_clear(struct target_table *t)
{
    tc_free(t->at);
    t->at = NULL;
    for (size_t s = 0; s < TC_ARRAY_LEN(t->trees); s++)
        tc_weight_tree_fini(&t->trees[s]);
}

static void target_table_unref(struct target_table *t)
{
    if (!tc_lref_dec(&t->ref))
        return;
    target_table_clear(t);
    tc_free(t);
}

/* Fills the table and the trees with the listed children and the states that they count as. */
static void target_table_build(struct target_table *t, const struct tc_children *children)
{
    size_t n = 0;
    for (struct tc_named_child *c = children->first; c; c = c->hh.next)
        n += target_of(c)->weight > 0;
    target_table_clear(t);
    t->at = tc_calloc(n, sizeof(struct target *));
    for (size_t s = 0; s < TC_ARRAY_LEN(t->trees); s++)
        tc_weight_tree_init(&t->trees[s], n);
    n = 0;
    for (struct tc_named_child *c = children->first; c; c = c->hh.next) {
        struct target *target = target_of(c);
        if (!target->weight)
            continue;
        target->place = n;
        t->at[n++] = target;
        tc_weight_tree_add(&t->trees[target->counted_as], target->place, target->weight);
    }
}

static enum torc_connectivity target_table_state(const struct target_table *t)
{
    return t->trees[TORC_CONNECTIVITY_READY].total        ? TORC_CONNECTIVITY_READY
           : t->trees[TORC_CONNECTIVITY_CONNECTING].total ? TORC_CONNECTIVITY_CONNECTING
           : t->trees[TORC_CONNECTIVITY_IDLE].total       ? TORC_CONNECTIVITY_IDLE
                                                          : TORC_CONNECTIVITY_TRANSIENT_FAILURE;
}

/* --- picker --- */

struct target_picker {
    struct tc_picker base;
    struct target_table *table;
    enum torc_connectivity state; /* the picker draws from the children in this state */
};

/* An RPC has one random number for all policies, and nested policies must draw independently. */
static uint64_t mix_random(uint64_t x)
{
    /* The finaliser of SplitMix64 (Steele, Lea, Flood). */
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static enum tc_pick_kind target_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    const struct target_picker *p = TC_CONTAINER_OF(picker, struct target_picker, base);
    const struct target_table *table = p->table;
    const struct tc_weight_tree *tree = &table->trees[p->state];
    uint64_t key = tc_mul_high(mix_random(args->random ^ table->salt), tree->total);
    if (TC_UNLIKELY(
            !tree->total)) /* no child is left in that state, or the policy was shut down: wait for a new picker */
        return TC_PICK_QUEUE;
    return tc_picker_pick(table->at[tc_weight_tree_find(tree, key)]->base.picker, args, out);
}

static void target_picker_free(struct tc_picker *picker)
{
    struct target_picker *p = TC_CONTAINER_OF(picker, struct target_picker, base);
    target_table_unref(p->table);
    tc_free(p);
}

static const struct tc_picker_ops target_picker_ops = {target_pick, target_picker_free};

/* The picker holds the table alone: a picker that a policy above still keeps does not keep the children's pickers. */
static struct tc_picker *target_picker_new(struct target_table *table, enum torc_connectivity state)
{
    struct target_picker *p = TC_NEW(struct target_picker);
    tc_picker_init(&p->base, &target_picker_ops);
    p->table = table;
    tc_lref_inc(&table->ref);
    p->state = state;
    return &p->base;
}

/* --- states --- */

/* Returns why a child failed: the last child in the table that counts as TRANSIENT_FAILURE. If no child does, returns a
 * status that says that there are no children. The caller ends the status. */
static struct tc_status last_failure(const struct weighted_target *wt)
{
    const struct tc_weight_tree *failed = &wt->table->trees[TORC_CONNECTIVITY_TRANSIENT_FAILURE];
    if (!failed->total)
        return tc_lb_status_because("no children in weighted_target policy", wt->resolution_note);
    return tc_status_ref(&wt->table->at[tc_weight_tree_find(failed, failed->total - 1)]->base.status);
}

/* Publishes the state and a picker. The parent may shut the policy down from inside: callers call this last. */
static void wt_publish(struct weighted_target *wt)
{
    struct tc_status status = {0};
    struct tc_picker *picker;
    tc_task_cancel(&wt->publish_task);
    wt->state = target_table_state(wt->table);
    if (wt->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        status = last_failure(wt);
    if (wt->state == TORC_CONNECTIVITY_CONNECTING)
        picker = tc_picker_queue_for(wt->waiting ? tc_picker_ref(wt->waiting) : NULL);
    else if (wt->table->trees[wt->state].total)
        picker = target_picker_new(wt->table, wt->state);
    else
        picker = tc_picker_fail(&status);
    tc_lb_update_state(wt->base.helper, wt->state, &status, picker);
    tc_status_fini(&status);
}

static void on_publish_task(struct tc_task *task)
{
    wt_publish(TC_CONTAINER_OF(task, struct weighted_target, publish_task));
}

/* Publishes at once if the policy's state has changed, else by a task. Idempotent; called last in a child's event,
 * since the parent may shut the policy down. */
static void wt_reconcile(struct weighted_target *wt)
{
    if (target_table_state(wt->table) != wt->state)
        wt_publish(wt);
    else
        tc_loop_defer(wt->base.helper->env->loop, &wt->publish_task);
}

/* Moves the weight of a listed child between the trees, and wakes the child if it is IDLE. While the policy updates or
 * wakes its children, the table is left alone: it is rebuilt afterwards. */
static void on_target_state(struct tc_named_child *c, enum torc_connectivity before)
{
    struct weighted_target *wt = target_owner(c);
    struct target *target = target_of(c);
    enum torc_connectivity was = target->counted_as;
    (void)before;
    if (was != TORC_CONNECTIVITY_TRANSIENT_FAILURE || c->state != TORC_CONNECTIVITY_CONNECTING)
        target->counted_as = c->state;
    if (!target->weight)
        return;
    if (c->state == TORC_CONNECTIVITY_IDLE)
        tc_loop_defer(c->helper.env->loop, &target->wake);
    if (c->state == TORC_CONNECTIVITY_CONNECTING) {
        tc_picker_unref(wt->waiting);
        wt->waiting = tc_picker_ref(c->picker);
    }
    if (wt->updating || !wt->base.helper)
        return;
    if (was != target->counted_as) {
        tc_weight_tree_add(&wt->table->trees[was], target->place, -(int64_t)target->weight);
        tc_weight_tree_add(&wt->table->trees[target->counted_as], target->place, target->weight);
    }
    wt_reconcile(wt);
}

static void on_wake(struct tc_task *task)
{
    struct target *target = TC_CONTAINER_OF(task, struct target, wake);
    if (target->weight && target->base.state == TORC_CONNECTIVITY_IDLE)
        tc_graceful_switch_exit_idle(target->base.policy);
}

static void on_target_new(struct tc_named_child *c)
{
    target_of(c)->counted_as = c->state;
    tc_task_init(&target_of(c)->wake, on_wake);
}

static void on_target_end(struct tc_named_child *c)
{
    tc_task_cancel(&target_of(c)->wake);
}

static const struct tc_children_ops target_ops = {
    .child_size = sizeof(struct target),
    .helper = {.update_state = tc_children_update_state},
    .on_new = on_target_new,
    .on_end = on_target_end,
    .on_state = on_target_state,
};

/* --- policy --- */

static struct tc_status wt_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct weighted_target *wt = TC_CONTAINER_OF(policy, struct weighted_target, base);
    const struct tc_child_configs *config = tc_child_configs(update->config);
    struct tc_status result = {0};
    if (!wt->base.helper)
        return result;
    struct tc_rstr *resolution_note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(wt->resolution_note);
    wt->resolution_note = resolution_note;
    wt->updating = true;
    tc_children_begin_update(&wt->children);
    for (struct tc_named_child *c = wt->children.first; c; c = c->hh.next)
        target_of(c)->weight = 0;
    for (size_t i = 0; i < config->n; i++) {
        struct tc_named_child *c = tc_children_list(&wt->children, config->at[i].name);
        tc_timer_stop(&c->retention);
        target_of(c)->weight = config->at[i].weight;
        if (c->state == TORC_CONNECTIVITY_IDLE) /* the child may have reported IDLE while it was not listed */
            tc_loop_defer(c->helper.env->loop, &target_of(c)->wake);
        struct tc_status status = tc_named_child_update(c, update, config->at[i].config);
        if (!tc_status_ok(&status) && tc_status_ok(&result))
            result = tc_status_ref(&status);
        tc_status_fini(&status);
    }
    if (!wt->base.helper)
        return result;
    tc_children_sweep(&wt->children, wt->base.helper->env->priority_retention_ms);
    target_table_build(wt->table, &wt->children);
    wt->updating = false;
    wt_publish(wt);
    return result;
}

/* Wakes the listed children, and publishes. */
static void wt_exit_idle(struct tc_lb_policy *policy)
{
    struct weighted_target *wt = TC_CONTAINER_OF(policy, struct weighted_target, base);
    if (!wt->children.first)
        return;
    wt->updating = true; /* one report for all children, however many change their state */
    for (struct tc_named_child *c = wt->children.first; c; c = c->hh.next)
        if (target_of(c)->weight)
            tc_graceful_switch_exit_idle(c->policy);
    if (!wt->base.helper)
        return;
    target_table_build(wt->table, &wt->children);
    wt->updating = false;
    wt_publish(wt);
}

static void wt_reset_backoff(struct tc_lb_policy *policy)
{
    tc_children_reset_backoff(&TC_CONTAINER_OF(policy, struct weighted_target, base)->children);
}

static void wt_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct weighted_target *wt = TC_CONTAINER_OF(policy, const struct weighted_target, base);
    tc_describe_open(d, "targets", '[');
    for (struct tc_named_child *c = wt->children.first; c; c = c->hh.next) {
        tc_describe_open(d, NULL, '{');
        tc_describe_text(d, "name", tc_rstr_slice(c->name));
        tc_describe_number(d, "weight", target_of(c)->weight);
        tc_named_child_describe_state(c, target_of(c)->counted_as, d);
        tc_describe_timer(d, "ends_in_ms", &c->retention);
        tc_graceful_switch_describe(c->policy, d, "child");
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void wt_shutdown(struct tc_lb_policy *policy)
{
    struct weighted_target *wt = TC_CONTAINER_OF(policy, struct weighted_target, base);
    if (!wt->base.helper)
        return;
    wt->updating = true;
    target_table_clear(wt->table);
    target_table_unref(wt->table);
    tc_children_end(&wt->children);
    tc_task_cancel(&wt->publish_task);
    tc_rstr_unref(wt->resolution_note);
    tc_picker_unref(wt->waiting);
    tc_lb_policy_end(&wt->base);
}

static const struct tc_lb_policy_ops wt_ops = {wt_update, wt_exit_idle, wt_reset_backoff, wt_shutdown, wt_describe};

static struct tc_lb_policy *wt_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct weighted_target *wt = TC_NEW(struct weighted_target);
    wt->base = (struct tc_lb_policy){.ops = &wt_ops, .factory = factory, .helper = helper};
    tc_children_init(&wt->children, &target_ops, &wt->base);
    wt->table = TC_NEW(struct target_table);
    tc_lref_init(&wt->table->ref);
    wt->table->salt = tc_rng_u64(tc_loop_rng(helper->env->loop));
    wt->state = TORC_CONNECTIVITY_SHUTDOWN;
    tc_task_init(&wt->publish_task, on_publish_task);
    return &wt->base;
}

/* --- config --- */

/* {"targets": {NAME: {"weight": N, "childPolicy": [...]}}} */
static struct tc_lb_config *wt_parse(const struct tc_lb_factory *factory, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth,
                                     struct tc_validation_errors *errors)
{
    (void)factory;
    size_t before = errors->count, n = 0;
    const json_t *targets = NULL;
    if (!tc_json_get_obj(json, "targets", &targets, errors)) {
        if (errors->count == before)
            tc_validation_add_at(errors, ".targets", "must be given");
        return NULL;
    }
    struct tc_child_config *list = tc_calloc(json_object_size(targets) + 1, sizeof(*list));
    for (void *it = json_object_iter((json_t *)targets); it; it = json_object_iter_next((json_t *)targets, it)) {
        const json_t *target = json_object_iter_value(it);
        uint64_t weight = 0;
        tc_validation_push_key(errors, ".targets", json_object_iter_key(it));
        if (json_is_object(target)) {
            size_t before_weight = errors->count;
            if (!tc_json_get_u64_in(target, "weight", 1, UINT32_MAX, &weight, errors) && errors->count == before_weight)
                tc_validation_add_at(errors, ".weight", "must be given");
            tc_validation_push(errors, ".childPolicy");
            list[n].config = tc_lb_parse_list(registry, json_object_get(target, "childPolicy"), depth + 1, errors);
            tc_validation_pop(errors);
        } else {
            tc_validation_add(errors, "must be an object");
        }
        tc_validation_pop(errors);
        list[n].weight = (uint32_t)weight;
        list[n++].name = tc_rstr_str(json_object_iter_key(it));
    }
    struct tc_lb_config *config =
        errors->count == before ? tc_child_configs_new(&tc_weighted_target_factory, list, n) : NULL;
    tc_child_config_list_free(list, n);
    return config;
}

const struct tc_lb_factory tc_weighted_target_factory = {
    .name = "weighted_target",
    .alias = "weighted_target_experimental",
    .create = wt_create,
    .parse_config = wt_parse,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
