#include "lb/single.h"

#include "base/mem.h"

void tc_lb_single_publish(struct tc_lb_single *s)
{
    static const struct tc_status none;
    struct tc_lb_helper *up = s->base.helper;
    if (s->updating || !s->unpublished || !s->picker || !up)
        return;
    s->unpublished = false;
    enum torc_connectivity state = s->state;
    struct tc_picker *picker = s->ops->picker(s, &state);
    up->ops->update_state(up, state, state == TORC_TRANSIENT_FAILURE ? &s->status : &none, picker);
}

static void on_child_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                           struct tc_picker *picker)
{
    struct tc_lb_single *s = tc_lb_single_of_helper(h);
    struct tc_picker *old = s->picker;
    s->state = state;
    tc_status_set(&s->status, status ? tc_status_ref(status) : (struct tc_status){0});
    s->picker = picker;
    s->unpublished = true;
    tc_picker_unref(old);
    tc_lb_single_publish(s);
}

static struct tc_subchannel *on_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    return tc_lb_single_of_helper(h)->ops->create_subchannel(h, endpoint, addr, on_state, arg);
}

static void on_request_reresolution(struct tc_lb_helper *h)
{
    struct tc_lb_helper *up = tc_lb_single_of_helper(h)->base.helper;
    if (up)
        up->ops->request_reresolution(up);
}

static const struct tc_lb_helper_ops helper_ops = {on_create_subchannel, on_child_state, on_request_reresolution};

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct tc_lb_single, free_task));
}

void tc_lb_single_init(struct tc_lb_single *s, const struct tc_lb_policy_ops *policy_ops,
                       const struct tc_lb_single_ops *ops, const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    s->base = (struct tc_lb_policy){policy_ops, cls, helper};
    s->ops = ops;
    s->helper = (struct tc_lb_helper){&helper_ops, helper->env};
    tc_task_init(&s->free_task, on_free);
}

void tc_lb_single_begin_update(struct tc_lb_single *s)
{
    s->updating = true;
}

struct tc_status tc_lb_single_end_update(struct tc_lb_single *s, const struct tc_lb_update *down)
{
    if (!s->child)
        s->child = tc_lb_child_new(&s->helper);
    struct tc_status status = tc_lb_child_update(s->child, down);
    s->updating = false;
    tc_lb_single_publish(s);
    return status;
}

void tc_lb_single_end(struct tc_lb_single *s)
{
    if (s->child)
        tc_lb_child_shutdown(s->child);
    s->child = NULL;
    s->base.helper = NULL;
    tc_picker_unref(s->picker);
    s->picker = NULL;
    tc_status_fini(&s->status);
    tc_loop_defer(s->helper.env->loop, &s->free_task);
}

void tc_lb_single_exit_idle(struct tc_lb_policy *base)
{
    struct tc_lb_single *s = TC_CONTAINER_OF(base, struct tc_lb_single, base);
    if (s->child)
        tc_lb_child_exit_idle(s->child);
}

void tc_lb_single_reset_backoff(struct tc_lb_policy *base)
{
    struct tc_lb_single *s = TC_CONTAINER_OF(base, struct tc_lb_single, base);
    if (s->child)
        tc_lb_child_reset_backoff(s->child);
}
