/* The base of delegating policies: one child, whose reports the policy may hold back or change.
 *
 * While the wrapper updates the child, the child's last report is stored. It is published once, at the end of the
 * update, since the wrapper's picker depends on its new config as well. tc_lb_wrapper_end may be called from inside a
 * report of the child, with functions of the wrapper on the stack, so a task frees the memory. */
#include "lb/wrapper.h"

#include "base/mem.h"
#include "lb/delegate.h"

void tc_lb_wrapper_publish(struct tc_lb_wrapper *w)
{
    static const struct tc_status none;
    struct tc_lb_helper *up = w->base.helper;
    if (w->updating || !w->unpublished || !w->picker || !up)
        return;
    w->unpublished = false;
    enum torc_connectivity state = w->state;
    struct tc_picker *picker = w->ops->picker(w, &state);
    tc_lb_update_state(up, state, state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? &w->status : &none, picker);
}

void tc_lb_wrapper_on_child_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                                  struct tc_picker *picker)
{
    struct tc_lb_wrapper *w = tc_lb_wrapper_of_helper(h);
    struct tc_picker *old = w->picker;
    w->state = state;
    tc_status_set(&w->status, status ? tc_status_ref(status) : (struct tc_status){0});
    w->picker = picker;
    w->unpublished = true;
    tc_picker_unref(old);
    tc_lb_wrapper_publish(w);
}

void tc_lb_wrapper_init(struct tc_lb_wrapper *w, const struct tc_lb_policy_ops *policy_ops,
                        const struct tc_lb_wrapper_ops *ops, const struct tc_lb_factory *factory,
                        struct tc_lb_helper *helper)
{
    w->base = (struct tc_lb_policy){.ops = policy_ops, .factory = factory, .helper = helper};
    w->ops = ops;
    tc_lb_helper_init(&w->helper, &ops->helper, helper);
    w->child = tc_graceful_switch_new(&w->helper);
}

void tc_lb_wrapper_begin_update(struct tc_lb_wrapper *w)
{
    w->updating = true;
}

struct tc_status tc_lb_wrapper_end_update(struct tc_lb_wrapper *w, const struct tc_lb_update *down)
{
    struct tc_status status = tc_graceful_switch_update(w->child, down);
    w->updating = false;
    tc_lb_wrapper_publish(w);
    return status;
}

void tc_lb_wrapper_end(struct tc_lb_wrapper *w)
{
    tc_graceful_switch_shutdown(w->child);
    w->child = NULL;
    tc_picker_unref(w->picker);
    w->picker = NULL;
    tc_status_fini(&w->status);
    tc_lb_policy_end(&w->base);
}

void tc_lb_wrapper_exit_idle(struct tc_lb_policy *base)
{
    tc_graceful_switch_exit_idle(TC_CONTAINER_OF(base, struct tc_lb_wrapper, base)->child);
}

void tc_lb_wrapper_reset_backoff(struct tc_lb_policy *base)
{
    tc_graceful_switch_reset_backoff(TC_CONTAINER_OF(base, struct tc_lb_wrapper, base)->child);
}
