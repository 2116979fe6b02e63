/* The security of connections to one endpoint, where the cluster sets it instead of the channel (A29). A policy
 * attaches it to the endpoint of a subchannel by tc_endpoint_secured; the endpoint then owns the reference. The channel
 * reads it. Immutable. Any thread. */
#ifndef TC_SUBCHANNEL_ENDPOINT_SECURITY_H
#define TC_SUBCHANNEL_ENDPOINT_SECURITY_H

#include "creds/creds.h"
#include "lb/endpoint.h"

struct tc_security {
    struct tc_endpoint_extra base;
    torc_credentials *creds;     /* a reference */
    struct tc_rstr *server_name; /* a reference, never NULL. For the handshake: the SNI; may be empty */
};

/* Returns a struct tc_security, by its base, with one reference. Takes references of its own to both arguments; neither
 * may be NULL. */
struct tc_endpoint_extra *tc_security_new(torc_credentials *creds, struct tc_rstr *server_name);

/* Returns the security that is attached to the endpoint, borrowed from it; NULL: none. */
static inline const struct tc_security *tc_security_of(const struct tc_endpoint *e)
{
    return (const struct tc_security *)(const void *)e->security;
}

#endif
