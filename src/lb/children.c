/* Named children. The table is uthash by name: a lookup is O(1), and a walk follows the order in which the children
 * were made. That order decides how weighted_target draws and whose failure it reports.
 *
 * A child reports through its graceful switch into tc_children_update_state, which stores the report before it tells
 * the policy. The policy may end the child from there, while functions of the child are still on the stack: so the
 * child's memory goes by a task. */
#include "lb/children.h"

#include "base/log.h"
#include "base/mem.h"
#include "lb/connectivity.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"

void tc_children_init(struct tc_children *set, const struct tc_children_ops *ops, struct tc_lb_policy *policy)
{
    *set = (struct tc_children){.ops = ops, .policy = policy};
}

void tc_children_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                              struct tc_picker *picker)
{
    struct tc_named_child *c = TC_CONTAINER_OF(h, struct tc_named_child, helper);
    enum torc_connectivity before = c->state;
    struct tc_picker *old = c->picker;
    c->state = state;
    c->picker = picker;
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_status_set(&c->status, status ? tc_status_ref(status) : (struct tc_status){0});
    tc_picker_unref(old);
    if (state != before)
        TC_LOG(TC_LOG_LB, TORC_LOG_DEBUG, "%.*s: %s: child %s %s%s%s", TC_LB_LOG_NAME(h->parent),
               c->set->policy->factory->name, c->name->data, tc_connectivity_name(state),
               state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? ": " : "",
               state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? tc_status_text(&c->status) : "");
    c->set->ops->on_state(c, before);
}

static void on_child_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct tc_named_child, free_task));
}

static void on_retention_over(struct tc_timer *timer)
{
    tc_named_child_end(TC_CONTAINER_OF(timer, struct tc_named_child, retention));
}

static struct tc_named_child *named_child_new(struct tc_children *set, struct tc_rstr *name)
{
    struct tc_named_child *c = tc_calloc(1, set->ops->child_size);
    struct tc_lb_helper *parent = set->policy->helper;
    tc_lb_helper_init(&c->helper, &set->ops->helper, parent);
    c->set = set;
    c->name = tc_rstr_ref(name);
    c->state = TORC_CONNECTIVITY_CONNECTING;
    c->picker = tc_picker_queue();
    c->policy = tc_graceful_switch_new(&c->helper);
    tc_timer_init(&c->retention, parent->env->loop, on_retention_over);
    tc_task_init(&c->free_task, on_child_free);
    HASH_ADD_KEYPTR(hh, set->first, c->name->data, c->name->len, c);
    if (set->ops->on_new)
        set->ops->on_new(c);
    return c;
}

void tc_named_child_end(struct tc_named_child *c)
{
    struct tc_children *set = c->set;
    if (set->ops->on_end)
        set->ops->on_end(c);
    HASH_DEL(set->first, c);
    tc_timer_stop(&c->retention);
    tc_graceful_switch_shutdown(c->policy);
    tc_picker_unref(c->picker);
    tc_status_fini(&c->status);
    tc_rstr_unref(c->name);
    tc_loop_defer(c->helper.env->loop, &c->free_task);
}

void tc_children_end(struct tc_children *set)
{
    struct tc_named_child *c, *next;
    HASH_ITER(hh, set->first, c, next)
    tc_named_child_end(c);
}

void tc_children_begin_update(struct tc_children *set)
{
    set->update++;
}

struct tc_named_child *tc_children_list(struct tc_children *set, struct tc_rstr *name)
{
    struct tc_named_child *c = tc_children_find(set, tc_rstr_slice(name));
    if (!c)
        c = named_child_new(set, name);
    c->listed = set->update;
    return c;
}

void tc_children_sweep(struct tc_children *set, uint64_t retention_ms)
{
    struct tc_named_child *c, *next;
    HASH_ITER(hh, set->first, c, next)
    {
        if (c->listed == c->set->update)
            continue;
        if (retention_ms)
            tc_named_child_retain(c, retention_ms);
        else
            tc_named_child_end(c);
    }
}

struct tc_status tc_named_child_update(struct tc_named_child *c, const struct tc_lb_update *update,
                                       struct tc_lb_config *config)
{
    struct tc_lb_update down = *update;
    down.config = config;
    if (update->endpoints)
        down.endpoints = tc_endpoints_child(update->endpoints, tc_rstr_slice(c->name));
    return tc_graceful_switch_update(c->policy, &down);
}

void tc_children_reset_backoff(struct tc_children *set)
{
    for (struct tc_named_child *c = set->first; c; c = c->hh.next)
        tc_graceful_switch_reset_backoff(c->policy);
}

void tc_named_child_retain(struct tc_named_child *c, uint64_t retention_ms)
{
    if (!tc_timer_active(&c->retention))
        tc_timer_start(&c->retention, retention_ms);
}

void tc_named_child_describe_state(const struct tc_named_child *c, enum torc_connectivity state, struct tc_describe *d)
{
    tc_describe_state(d, "state", state);
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_describe_text(d, "error", tc_slice_str(tc_status_text(&c->status)));
}
