/* A count of the RPCs that an endpoint, or several endpoints together (`total`), serve at present, for policies that
 * look at it (bounded loads, least_request).
 *
 * Counted: each RPC between its COMPLETE pick and its end (struct tc_call_tracker). The policy holds a reference while
 * it has the endpoint, and the tracker of each RPC holds one: the count may outlive the policy. Loop thread only. */
#ifndef TC_LB_ACTIVE_REQUESTS_H
#define TC_LB_ACTIVE_REQUESTS_H

#include "lb/picker.h"

struct tc_active_requests {
    struct tc_lref ref;
    uint32_t n;                       /* RPCs at present */
    struct tc_active_requests *total; /* the sum over several endpoints, this one among them; NULL: there is none */
    /* Called when `n` has changed. The policy that sets it resets it before `arg` ends. NULL: nobody is told. */
    void (*on_change)(struct tc_active_requests *a);
    void *arg;
};

/* Returns a count of 0 with one reference. Takes a reference of `total` (NULL: there is no total). */
struct tc_active_requests *tc_active_requests_new(struct tc_active_requests *total);
/* NULL is allowed in both. */
struct tc_active_requests *tc_active_requests_ref(struct tc_active_requests *a);
void tc_active_requests_unref(struct tc_active_requests *a);
/* Counts the RPC of a COMPLETE pick until the RPC ends, or it turns out that the pick led to no RPC (struct
 * tc_call_tracker). Does nothing for a dry pick, and for an RPC whose arena has no room for the tracker. */
void tc_active_requests_track(struct tc_active_requests *a, const struct tc_pick_args *args, struct tc_pick *pick);

#endif
