/* The child slot: two places, the policy that serves and one that may be getting ready to replace it. */
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/policy.h"

struct slot {
    struct tc_lb_helper helper; /* what the policy in it reports to */
    struct tc_lb_child *owner;
    struct tc_lb_policy *policy;
};

struct tc_lb_child {
    struct tc_lb_helper *parent; /* NULL after shutdown */
    struct slot *current;        /* NULL before the first update */
    struct slot *pending;        /* of another class, not yet past CONNECTING; NULL: none */
    bool renew;                  /* the next update makes a new policy */
    struct tc_task free_task;
};

static void slot_free(struct slot *s)
{
    if (!s)
        return;
    s->policy->ops->shutdown(s->policy);
    tc_free(s);
}

static void promote(struct tc_lb_child *c)
{
    struct slot *old = c->current;
    c->current = c->pending;
    c->pending = NULL;
    slot_free(old);
}

static void on_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                            struct tc_picker *picker)
{
    struct slot *s = (struct slot *)h;
    struct tc_lb_child *c = s->owner;
    if (s == c->pending && state != TORC_CONNECTING)
        promote(c);
    if (s == c->current && c->parent)
        c->parent->ops->update_state(c->parent, state, status, picker);
    else
        tc_picker_unref(picker);
}

static struct tc_subchannel *on_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    struct tc_lb_helper *parent = ((struct slot *)h)->owner->parent;
    return parent->ops->create_subchannel(parent, endpoint, addr, on_state, arg);
}

static void on_request_reresolution(struct tc_lb_helper *h)
{
    struct slot *s = (struct slot *)h;
    struct tc_lb_child *c = s->owner;
    /* Only of the policy that was updated last: it has the newest endpoints. */
    if (c->parent && s == (c->pending ? c->pending : c->current))
        c->parent->ops->request_reresolution(c->parent);
}

static const struct tc_lb_helper_ops slot_ops = {on_create_subchannel, on_update_state, on_request_reresolution};

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct tc_lb_child, free_task));
}

struct tc_lb_child *tc_lb_child_new(struct tc_lb_helper *parent)
{
    struct tc_lb_child *c = TC_NEW(struct tc_lb_child);
    c->parent = parent;
    tc_task_init(&c->free_task, on_free);
    return c;
}

static struct slot *slot_new(struct tc_lb_child *c, const struct tc_lb_class *cls)
{
    struct slot *s = TC_NEW(struct slot);
    s->helper = (struct tc_lb_helper){&slot_ops, c->parent->env};
    s->owner = c;
    s->policy = tc_lb_create(cls, &s->helper);
    return s;
}

struct tc_status tc_lb_child_update(struct tc_lb_child *c, const struct tc_lb_update *update)
{
    struct slot *latest = c->pending ? c->pending : c->current;
    if (!latest) {
        latest = c->current = slot_new(c, update->config->cls);
    } else if (c->renew || latest->policy->cls != update->config->cls) {
        slot_free(c->pending);
        latest = c->pending = slot_new(c, update->config->cls);
    }
    c->renew = false;
    return latest->policy->ops->update(latest->policy, update);
}

void tc_lb_child_renew(struct tc_lb_child *c)
{
    c->renew = true;
}

void tc_lb_child_exit_idle(struct tc_lb_child *c)
{
    struct tc_lb_policy *p = c->pending ? c->pending->policy : c->current ? c->current->policy : NULL;
    if (p)
        p->ops->exit_idle(p);
}

void tc_lb_child_reset_backoff(struct tc_lb_child *c)
{
    struct slot *slots[] = {c->current, c->pending};
    for (size_t i = 0; i < 2; i++)
        if (slots[i])
            slots[i]->policy->ops->reset_backoff(slots[i]->policy);
}

void tc_describe_child(struct tc_describe *d, const char *key, const struct tc_lb_child *c)
{
    if (!c || !c->current)
        return;
    const struct tc_lb_policy *policy = c->current->policy;
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "policy", tc_slice_str(policy->cls->name));
    if (policy->ops->describe && policy->helper)
        policy->ops->describe(policy, d);
    if (c->pending)
        tc_describe_policy(d, "next", c->pending->policy);
    tc_describe_close(d, '}');
}

void tc_lb_child_shutdown(struct tc_lb_child *c)
{
    if (!c->parent)
        return;
    struct tc_loop *loop = c->parent->env->loop;
    struct slot *current = c->current, *pending = c->pending;
    c->parent = NULL;
    c->current = c->pending = NULL;
    slot_free(pending);
    slot_free(current);
    tc_loop_defer(loop, &c->free_task);
}
