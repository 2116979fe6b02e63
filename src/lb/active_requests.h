/* Counts the RPCs that an endpoint, or several endpoints together (`total`), serve at present, for policies that need
 * the number (least_request, and ring_hash and maglev with bounded loads).
 *
 * An attempt counts from its COMPLETE pick to its end (struct tc_call_tracker). The policy holds a reference while it
 * has the endpoint, and the tracker of each attempt holds one: the count may outlive the policy. Loop thread only. */
#ifndef TC_LB_ACTIVE_REQUESTS_H
#define TC_LB_ACTIVE_REQUESTS_H

#include "lb/picker.h"

struct tc_active_requests {
    struct tc_lref ref;
    uint32_t n;                       /* attempts at present */
    struct tc_active_requests *total; /* a reference: the sum over several endpoints, with this one; NULL: none */
    /* Called after each change of `n`. The policy that sets it resets it before `arg` ends. NULL: not called. */
    void (*on_change)(struct tc_active_requests *a);
    void *arg; /* for on_change */
};

/* Returns a count of 0 with one reference. Takes a reference of its own to `total`, which may be NULL. */
struct tc_active_requests *tc_active_requests_new(struct tc_active_requests *total);
/* NULL is allowed in both. */
struct tc_active_requests *tc_active_requests_ref(struct tc_active_requests *a);
void tc_active_requests_unref(struct tc_active_requests *a);
/* Counts the attempt of a COMPLETE pick until the tracker's on_done, which also comes if the pick led to no RPC. Does
 * nothing for a dry pick, or if the call's arena has no room for the tracker. */
void tc_active_requests_track(struct tc_active_requests *a, const struct tc_pick_args *args, struct tc_pick *pick);

#endif
