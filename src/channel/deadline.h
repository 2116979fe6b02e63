/* The deadline of a call. Loop thread only, except tc_call_deadline_init. */
#ifndef TC_CHANNEL_DEADLINE_H
#define TC_CHANNEL_DEADLINE_H

#include "channel/call_internal.h"

/* Prepares a call, without a deadline at first. Any thread, as part of tc_call_init. */
void tc_call_deadline_init(struct tc_call *c);
/* Starts the timer of a call that has a deadline, or moves it to c->deadline.at_ns. */
void tc_call_deadline_arm(struct tc_call *c);
/* Returns DEADLINE_EXCEEDED, with a text that names the event that the call was waiting for. The caller owns the
 * status. */
struct tc_status tc_call_deadline_status(struct tc_call *c);
/* For a call that has a deadline: if the deadline has passed, ends the call and returns true. */
bool tc_call_end_late(struct tc_call *c);

/* If the call has a deadline that has passed, ends the call and returns true. Called before the request is sent. */
static inline bool tc_call_end_if_late(struct tc_call *c)
{
    return c->deadline.at_ns != UINT64_MAX && tc_call_end_late(c);
}

#endif
