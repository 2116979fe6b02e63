/* Preparation of a call, or of an attempt under hedging, before it starts. Loop thread only, except tc_call_init and
 * tc_call_use_credentials, which any thread may call until the call begins. */
#ifndef TC_CHANNEL_CALL_SETUP_H
#define TC_CHANNEL_CALL_SETUP_H

#include "channel/call_internal.h"

/* Prepares a zeroed call whose arena (and `parent`, in a hedged attempt) is set. Takes a reference to the channel.
 * The caller then sets release, events, arg, the request, and the deadline if there is one. */
void tc_call_init(struct tc_call *c, torc_channel *ch);
/* Sets call credentials that this call alone uses, beside the channel's (NULL: none). Takes a reference to `own`.
 * Called before tc_call_setup_credentials. */
void tc_call_use_credentials(struct tc_call *c, torc_call_credentials *own);
/* Adds the channel's call credentials to a call that begins; the request then carries the headers of both. */
void tc_call_setup_credentials(struct tc_call *c);

#endif
