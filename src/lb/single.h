/* What policies share that stand between one child and what is above: the child's helper, what the child last reported,
 * and when that is published. */
#ifndef TC_LB_SINGLE_H
#define TC_LB_SINGLE_H

#include "lb/policy.h"

struct tc_lb_single;

struct tc_lb_single_ops {
    /* For the child, as of its helper. */
    struct tc_subchannel *(*create_subchannel)(struct tc_lb_helper *helper, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg);
    /* The picker that is published with what the child reported last; *state, the child's, may be changed. */
    struct tc_picker *(*picker)(struct tc_lb_single *s, enum torc_connectivity *state);
};

/* The first member of the policy. */
struct tc_lb_single {
    struct tc_lb_policy base; /* its helper is NULL after the end */
    const struct tc_lb_single_ops *ops;
    struct tc_lb_helper helper;   /* the child's */
    struct tc_lb_child *child;    /* NULL before the first update and after the end */
    enum torc_connectivity state; /* the child's */
    struct tc_status status;      /* with it */
    struct tc_picker *picker;     /* with it; NULL: the child has reported nothing yet */
    bool updating;
    bool unpublished; /* there is something new to publish */
    struct tc_task free_task;
};

void tc_lb_single_init(struct tc_lb_single *s, const struct tc_lb_policy_ops *policy_ops,
                       const struct tc_lb_single_ops *ops, const struct tc_lb_class *cls, struct tc_lb_helper *helper);
/* Between them nothing is published. */
void tc_lb_single_begin_update(struct tc_lb_single *s);
struct tc_status tc_lb_single_end_update(struct tc_lb_single *s, const struct tc_lb_update *down);
/* Publishes what is unpublished, once the child has reported anything. The last thing that an event does. */
void tc_lb_single_publish(struct tc_lb_single *s);
/* The last part of the policy's shutdown: ends the child; the memory of the whole policy goes by a task. */
void tc_lb_single_end(struct tc_lb_single *s);

/* Of the policy's ops. */
void tc_lb_single_exit_idle(struct tc_lb_policy *base);
void tc_lb_single_reset_backoff(struct tc_lb_policy *base);

static inline struct tc_lb_single *tc_lb_single_of_helper(struct tc_lb_helper *h)
{
    return TC_CONTAINER_OF(h, struct tc_lb_single, helper);
}

#endif
