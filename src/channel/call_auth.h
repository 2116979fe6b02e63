/* The call credentials of a call: gathered once the connection is known, since they go over secure ones only. A call
 * without any has none of this. Inside src/channel. */
#ifndef TC_CHANNEL_CALL_AUTH_H
#define TC_CHANNEL_CALL_AUTH_H

#include "base/headers.h"
#include "channel/transport.h"
#include "creds/call.h"

struct tc_call;

/* In the call's arena. */
struct tc_call_auth {
    struct tc_call *call;
    torc_call_credentials *own;     /* the call's; NULL: the channel's only */
    size_t next;                    /* of the channel's and then its own: those before it have been asked */
    struct tc_auth_context context; /* strings in the arena; method NULL: not made yet */
    struct tc_auth_request request;
    struct tc_headers headers; /* what they gave */
};

/* Credentials for this call alone, before it begins; takes a reference. */
void tc_call_auth_use(struct tc_call *c, torc_call_credentials *own);
/* The call begins: its channel may have call credentials. */
void tc_call_auth_begin(struct tc_call *c);
/* For a stream on this transport. True when the request has all that it needs; else the call has failed, or waits and
 * will pick again. Only with c->auth set. */
bool tc_call_authorize(struct tc_call *c, const struct tc_transport *t);
/* Another attempt asks anew. */
void tc_call_auth_reset(struct tc_call *c);
/* It waits no more. */
void tc_call_auth_stop(struct tc_call *c);
void tc_call_auth_fini(struct tc_call *c);
/* Appends the credentials that the call waits for: their type, and where their answer comes from. */
void tc_call_auth_waits_for(const struct tc_call *c, struct tc_buf *out);

#endif
