/* The helper: a policy's interface to the policy above it. lb/policy.h says what the operations do.
 *
 * An operation that is NULL in a helper's table is delegated: the nearest helper up the tree that has the operation
 * performs it. So a policy writes only the operations that it changes for its children: most write update_state alone.
 * The channel's helper, at the top, has every operation but log_name. Where no helper has log_name, log lines begin
 * with the channel's target.
 *
 * Loop thread only. A policy calls none of these functions after its shutdown. */
#ifndef TC_LB_DELEGATE_H
#define TC_LB_DELEGATE_H

#include "lb/policy.h"

/* Prepares the helper of a child. `parent` is the next helper towards the channel, and must outlive `h`. */
static inline void tc_lb_helper_init(struct tc_lb_helper *h, const struct tc_lb_helper_ops *ops,
                                     struct tc_lb_helper *parent)
{
    *h = (struct tc_lb_helper){.ops = ops, .env = parent->env, .parent = parent};
}

static inline struct tc_subchannel *tc_lb_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                            const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                            void *arg)
{
    while (!h->ops->create_subchannel)
        h = h->parent;
    return h->ops->create_subchannel(h, endpoint, addr, on_state, arg);
}

static inline void tc_lb_update_state(struct tc_lb_helper *h, enum torc_connectivity state,
                                      const struct tc_status *status, struct tc_picker *picker)
{
    while (!h->ops->update_state)
        h = h->parent;
    h->ops->update_state(h, state, status, picker);
}

static inline void tc_lb_request_reresolution(struct tc_lb_helper *h)
{
    while (!h->ops->request_reresolution)
        h = h->parent;
    h->ops->request_reresolution(h);
}

static inline struct tc_slice tc_lb_log_name(const struct tc_lb_helper *h)
{
    while (!h->ops->log_name && h->parent)
        h = h->parent;
    return h->ops->log_name ? h->ops->log_name(h) : h->env->target;
}

/* The two arguments for a "%.*s" in a format. */
#define TC_LB_LOG_NAME(h) (int)tc_lb_log_name(h).len, tc_lb_log_name(h).data

#endif
