/* Graceful switch: up to two policies for one child, each in a place (struct switch_place) of its own.
 *
 *   current    serves: its reports go to the parent.
 *   pending    newer, of another factory or after a renewal. It has reported nothing but CONNECTING. Its first other
 *              state promotes it: it becomes current, and the old current policy is shut down. An update with another
 *              factory than that of `pending`, or after a renewal, replaces it.
 *
 * Updates and exit_idle go to the newest of the two. Requests for re-resolution are passed on from the newest alone,
 * since it has the latest endpoints. A policy may report from inside its factory's create(), before this file knows the
 * policy's pointer. The last such report, and a request for re-resolution, are kept as `early`, and passed on when
 * create() has returned.
 *
 * The graceful switch owns both places, and a place owns its policy. A place is freed as soon as its policy is shut
 * down, since the policy then no longer calls its helper. The parent may shut the graceful switch down from inside a
 * report, so a task frees its memory. Loop thread only. */
#include "lb/graceful_switch.h"

#include "base/log.h"
#include "base/mem.h"
#include "lb/delegate.h"
#include "lb/describe.h"

struct switch_place {
    struct tc_lb_helper helper; /* the policy reports to it */
    struct tc_graceful_switch *owner;
    struct tc_lb_policy *policy; /* owned; NULL while create() runs */
    struct {
        struct tc_picker *picker; /* a reference; NULL: no state was reported */
        enum torc_connectivity state;
        struct tc_status status;
        bool reresolution;
    } early;
};

struct tc_graceful_switch {
    struct tc_lb_helper *parent;  /* NULL after shutdown */
    struct switch_place *current; /* NULL before the first update, and after shutdown */
    struct switch_place *pending; /* NULL: none */
    bool renew;                   /* the next update makes a new policy, also of the same factory */
    struct tc_task free_task;
};

/* Returns the place whose policy gets the updates; NULL before the first update, and after shutdown. */
static struct switch_place *newest_place(const struct tc_graceful_switch *g)
{
    return g->pending ? g->pending : g->current;
}

static void switch_place_free(struct switch_place *s)
{
    if (!s)
        return;
    s->policy->ops->shutdown(s->policy);
    tc_picker_unref(s->early.picker);
    tc_status_fini(&s->early.status);
    tc_free(s);
}

static void promote_pending(struct tc_graceful_switch *g)
{
    struct switch_place *old = g->current;
    g->current = g->pending;
    g->pending = NULL;
    TC_LOG(TC_LOG_LB, TORC_LOG_INFO, "%.*s: policy %s serves instead of %s", TC_LB_LOG_NAME(g->parent),
           g->current->policy->factory->name, old->policy->factory->name);
    switch_place_free(old);
}

static void switch_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                                struct tc_picker *picker)
{
    struct switch_place *s = TC_CONTAINER_OF(h, struct switch_place, helper);
    struct tc_graceful_switch *g = s->owner;
    if (!s->policy) {
        tc_picker_unref(s->early.picker);
        s->early.picker = picker;
        s->early.state = state;
        tc_status_set(&s->early.status, status ? tc_status_ref(status) : (struct tc_status){0});
        return;
    }
    if (s == g->pending && state != TORC_CONNECTIVITY_CONNECTING)
        promote_pending(g);
    if (s == g->current)
        tc_lb_update_state(g->parent, state, status, picker);
    else
        tc_picker_unref(picker);
}

static void switch_request_reresolution(struct tc_lb_helper *h)
{
    struct switch_place *s = TC_CONTAINER_OF(h, struct switch_place, helper);
    struct tc_graceful_switch *g = s->owner;
    if (!s->policy)
        s->early.reresolution = true;
    else if (s == newest_place(g))
        tc_lb_request_reresolution(g->parent);
}

static const struct tc_lb_helper_ops switch_helper_ops = {
    .update_state = switch_update_state,
    .request_reresolution = switch_request_reresolution,
};

static void on_switch_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct tc_graceful_switch, free_task));
}

struct tc_graceful_switch *tc_graceful_switch_new(struct tc_lb_helper *helper)
{
    struct tc_graceful_switch *g = TC_NEW(struct tc_graceful_switch);
    g->parent = helper;
    tc_task_init(&g->free_task, on_switch_free);
    return g;
}

static struct switch_place *switch_place_new(struct tc_graceful_switch *g, const struct tc_lb_factory *factory)
{
    struct switch_place *s = TC_NEW(struct switch_place);
    tc_lb_helper_init(&s->helper, &switch_helper_ops, g->parent);
    s->owner = g;
    s->policy = tc_lb_create(factory, &s->helper);
    return s;
}

/* Passes on to the parent what the policy reported from inside create(). The parent may shut the graceful switch down
 * meanwhile, which frees the place. */
static void tell_early_reports(struct switch_place *s)
{
    struct tc_picker *picker = s->early.picker;
    struct tc_status status = s->early.status;
    bool reresolution = s->early.reresolution;
    s->early.picker = NULL;
    s->early.status = (struct tc_status){0};
    /* Re-resolution goes first: passing on the state may free the place. */
    if (reresolution)
        switch_request_reresolution(&s->helper);
    if (picker)
        switch_update_state(&s->helper, s->early.state, &status, picker);
    tc_status_fini(&status);
}

struct tc_status tc_graceful_switch_update(struct tc_graceful_switch *g, const struct tc_lb_update *update)
{
    struct switch_place *newest = newest_place(g), *made = NULL;
    if (!newest) {
        newest = made = g->current = switch_place_new(g, update->config->factory);
    } else if (g->renew || newest->policy->factory != update->config->factory) {
        switch_place_free(g->pending);
        newest = made = g->pending = switch_place_new(g, update->config->factory);
    }
    g->renew = false;
    if (made)
        tell_early_reports(made);
    if (!g->parent)
        return (struct tc_status){0}; /* shut down by the parent */
    return newest->policy->ops->update(newest->policy, update);
}

void tc_graceful_switch_renew(struct tc_graceful_switch *g)
{
    g->renew = true;
}

void tc_graceful_switch_exit_idle(struct tc_graceful_switch *g)
{
    struct switch_place *newest = newest_place(g);
    if (newest)
        newest->policy->ops->exit_idle(newest->policy);
}

void tc_graceful_switch_reset_backoff(struct tc_graceful_switch *g)
{
    struct switch_place *places[] = {g->current, g->pending};
    for (size_t i = 0; i < TC_ARRAY_LEN(places); i++)
        if (places[i])
            places[i]->policy->ops->reset_backoff(places[i]->policy);
}

void tc_graceful_switch_describe(const struct tc_graceful_switch *g, struct tc_describe *d, const char *key)
{
    if (!g || !g->current)
        return;
    const struct tc_lb_policy *policy = g->current->policy;
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "policy", tc_slice_str(policy->factory->name));
    if (policy->ops->describe && policy->helper)
        policy->ops->describe(policy, d);
    if (g->pending)
        tc_describe_policy(d, "next", g->pending->policy);
    tc_describe_close(d, '}');
}

void tc_graceful_switch_shutdown(struct tc_graceful_switch *g)
{
    if (!g->parent)
        return;
    struct tc_loop *loop = g->parent->env->loop;
    struct switch_place *current = g->current, *pending = g->pending;
    g->parent = NULL;
    g->current = g->pending = NULL;
    switch_place_free(pending);
    switch_place_free(current);
    tc_loop_defer(loop, &g->free_task);
}
