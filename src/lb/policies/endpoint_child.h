/* The child of a petiole policy for one endpoint: a pick_first (A61). The policies of petiole.h have one for each
 * endpoint; ring_hash and maglev have one for each endpoint that they have begun to connect. Sole owner: the petiole
 * policy. Loop thread only. */
#ifndef TC_LB_POLICIES_ENDPOINT_CHILD_H
#define TC_LB_POLICIES_ENDPOINT_CHILD_H

#include "lb/policy.h"

struct tc_endpoint_child;

/* Reports the child's state, and hands over the picker's reference. `status` is borrowed: why, in TRANSIENT_FAILURE;
 * otherwise OK. The call may come from inside tc_endpoint_child_update and _exit_idle. It may free the child. */
typedef void (*tc_endpoint_child_state_fn)(void *arg, struct tc_endpoint_child *endpoint_child,
                                           enum torc_connectivity state, const struct tc_status *status,
                                           struct tc_picker *picker);

struct tc_endpoint_child {
    struct tc_lb_helper helper;  /* of the pick_first */
    struct tc_lb_policy *policy; /* the pick_first, owned */
    tc_endpoint_child_state_fn on_state;
    void *arg;
    uint32_t index; /* for the owner's use */
};

/* Returns a child, which does not connect before the first update. `parent` is the petiole policy's own helper, which
 * creates the subchannels and gets the requests for re-resolution; it must outlive the child. */
struct tc_endpoint_child *tc_endpoint_child_new(struct tc_lb_helper *parent, tc_endpoint_child_state_fn on_state,
                                                void *arg);
/* Connects to the endpoint, or tells the pick_first of its new attributes. Takes a reference of the endpoint. `config`
 * is a config of pick_first, borrowed for the call. The child may be gone afterwards: its report may free it. */
void tc_endpoint_child_update(struct tc_endpoint_child *endpoint_child, struct tc_endpoint *endpoint,
                              struct tc_lb_config *config);
/* Connects, if the pick_first is IDLE. The child may be gone afterwards: its report may free it. */
void tc_endpoint_child_exit_idle(struct tc_endpoint_child *endpoint_child);
void tc_endpoint_child_reset_backoff(struct tc_endpoint_child *endpoint_child);
/* Writes the pick_first as "child". NULL writes nothing. */
void tc_endpoint_child_describe(const struct tc_endpoint_child *endpoint_child, struct tc_describe *d);
/* Ends the pick_first and frees the child at once. No report comes afterwards. NULL is ignored. */
void tc_endpoint_child_free(struct tc_endpoint_child *endpoint_child);

#endif
