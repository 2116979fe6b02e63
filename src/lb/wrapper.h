/* A wrapper, or delegating policy: it stands between one child policy and its parent and changes some of what passes,
 * as outlier_detection, random_subsetting, xds_cluster_impl and xds_override_host do. This file holds the parts that
 * wrappers share: the child's helper, the child's last report, and the rule when the report is published.
 *
 * The policy embeds `struct tc_lb_wrapper` first. Its update calls tc_lb_wrapper_begin_update and returns what
 * tc_lb_wrapper_end_update returns. An event that changes its picker sets `unpublished`; outside an update it then
 * calls tc_lb_wrapper_publish. Loop thread only. */
#ifndef TC_LB_WRAPPER_H
#define TC_LB_WRAPPER_H

#include "lb/graceful_switch.h"

struct tc_lb_wrapper;

struct tc_lb_wrapper_ops {
    /* The child's helper (lb/delegate.h); update_state must be tc_lb_wrapper_on_child_state. */
    struct tc_lb_helper_ops helper;
    /* Returns the picker to publish, a new reference. *state is the child's and may be changed. */
    struct tc_picker *(*picker)(struct tc_lb_wrapper *w, enum torc_connectivity *state);
};

struct tc_lb_wrapper {
    struct tc_lb_policy base;
    const struct tc_lb_wrapper_ops *ops;
    struct tc_lb_helper helper;       /* the child's */
    struct tc_graceful_switch *child; /* NULL after the end */
    enum torc_connectivity state;     /* the child's last report, with the two members below */
    struct tc_status status;          /* of the last report */
    struct tc_picker *picker;         /* of the last report; NULL before the first one */
    bool updating;
    bool unpublished; /* the parent is due a new picker */
};

/* Prepares a zero-initialised policy made with TC_NEW. */
void tc_lb_wrapper_init(struct tc_lb_wrapper *w, const struct tc_lb_policy_ops *policy_ops,
                        const struct tc_lb_wrapper_ops *ops, const struct tc_lb_factory *factory,
                        struct tc_lb_helper *helper);
/* Stores the report, takes over the picker's reference, and calls tc_lb_wrapper_publish. */
void tc_lb_wrapper_on_child_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                                  struct tc_picker *picker);
/* Begins an update of the policy: nothing is published before tc_lb_wrapper_end_update has updated the child. */
void tc_lb_wrapper_begin_update(struct tc_lb_wrapper *w);
/* Updates the child with `down`, and calls tc_lb_wrapper_publish. Returns the child's answer; the caller ends the
 * status. Must be the last thing that the policy's update does: the parent may shut the policy down meanwhile. */
struct tc_status tc_lb_wrapper_end_update(struct tc_lb_wrapper *w, const struct tc_lb_update *down);
/* Publishes a new picker if one is due (`unpublished`), the child has reported, and no update is under way. Must be the
 * last thing that an event does: the parent may shut the policy down. */
void tc_lb_wrapper_publish(struct tc_lb_wrapper *w);
/* Shuts the child down, and frees the policy's struct by a task. The policy's shutdown calls it once. */
void tc_lb_wrapper_end(struct tc_lb_wrapper *w);

/* For the policy's table of operations. */
void tc_lb_wrapper_exit_idle(struct tc_lb_policy *base);
void tc_lb_wrapper_reset_backoff(struct tc_lb_policy *base);

static inline struct tc_lb_wrapper *tc_lb_wrapper_of_helper(struct tc_lb_helper *h)
{
    return TC_CONTAINER_OF(h, struct tc_lb_wrapper, helper);
}

#endif
