/* A pick_first for one endpoint, as the policies above single endpoints hold it (A61: petiole policies). */
#ifndef TC_LB_LEAF_H
#define TC_LB_LEAF_H

#include "lb/policy.h"

struct tc_leaf;

/* A leaf's state; takes over the picker's reference. status is borrowed: why, in TRANSIENT_FAILURE. May come from
 * inside tc_leaf_new, tc_leaf_update and tc_leaf_exit_idle, and may end the leaf. */
typedef void (*tc_leaf_state_fn)(void *arg, struct tc_leaf *leaf, enum torc_connectivity state,
                                 const struct tc_status *status, struct tc_picker *picker);

struct tc_leaf {
    struct tc_lb_helper helper; /* of the pick_first */
    struct tc_lb_helper *parent;
    struct tc_lb_policy *policy;
    tc_leaf_state_fn on_state;
    void *arg;
    uint32_t index; /* for the owner's use */
};

/* Not yet connecting: that begins with the first tc_leaf_update. `parent` is where subchannels and requests for
 * re-resolution go. */
struct tc_leaf *tc_leaf_new(struct tc_lb_helper *parent, tc_leaf_state_fn on_state, void *arg);
/* `config` is of pick_first's. */
void tc_leaf_update(struct tc_leaf *leaf, struct tc_endpoint *endpoint, struct tc_lb_config *config);
void tc_leaf_exit_idle(struct tc_leaf *leaf);
void tc_leaf_reset_backoff(struct tc_leaf *leaf);
/* Its pick_first; a leaf that is NULL gives nothing. */
void tc_leaf_describe(const struct tc_leaf *leaf, struct tc_describe *d);
/* Ends it: no callback after. NULL is ignored. */
void tc_leaf_free(struct tc_leaf *leaf);

#endif
