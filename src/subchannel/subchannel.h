/* The innermost subchannels (lb/subchannel.h): a channel makes them for its policies, on connections of the runtime's
 * pool. Loop thread only, except tc_scaling_init. */
#ifndef TC_SUBCHANNEL_SUBCHANNEL_H
#define TC_SUBCHANNEL_SUBCHANNEL_H

#include "lb/subchannel.h"
#include "subchannel/pool.h"

struct tc_transport;

/* A set of subchannels, and how many connections each of them may have (A105). A channel embeds one set for its service
 * config, and each cds policy one for its cluster. Subchannels with different limits may share a connection: the
 * largest of their limits counts. */
struct tc_scaling {
    uint32_t max_connections; /* 1: the connection alone */
    struct tc_link handles;   /* the subchannels (struct handle of subchannel.c) */
};

/* Called with an event of a connection that a subchannel of the channel follows, once for each such subchannel. `kind`
 * is static: "connect", "connected", "connect_failed" or "closed". `address` and `reason` are borrowed; `reason` is
 * empty if there is none. The callee must not release a subchannel. */
typedef void (*tc_conn_observer_fn)(void *arg, const char *kind, struct tc_rstr *address, const char *reason);

/* Makes a subchannel on the pool's connection to the address; other subchannels may share the connection. on_state
 * comes by the loop's serial queue: first IDLE, and nothing else until the policy connects the subchannel, whatever
 * other users of the connection do. Takes references of its own. `observer` may be NULL. The caller owns the
 * subchannel, which is never NULL; tc_subchannel_release frees it. */
struct tc_subchannel *tc_subchannel_new(struct tc_pool *p, struct tc_conn_config *config, struct tc_endpoint *endpoint,
                                        const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg,
                                        tc_conn_observer_fn observer, void *observer_arg);

/* Begins with an empty set and a limit of 1. Any thread, before the loop's thread uses the set. */
void tc_scaling_init(struct tc_scaling *s);
/* Sets the limit of the set and of its subchannels. No connection is closed. */
void tc_scaling_set(struct tc_scaling *s, uint32_t max_connections);
/* Ends the set. Subchannels that are left keep their limit. */
void tc_scaling_fini(struct tc_scaling *s);
/* Moves a subchannel, wrapped or not, from the set that it was in to this one. The subchannel leaves the set when it is
 * released. Its limit is the set's, cut to the `max_connections` of its tc_conn_config. Does nothing if the innermost
 * subchannel was not made by tc_subchannel_new. */
void tc_scaling_add(struct tc_scaling *s, struct tc_subchannel *sc);

/* Returns a static text that names what a CONNECTING connection waits for ("the TLS handshake"), or what a health that
 * is not known yet waits for. NULL if nothing is awaited, or `sc` was not made by tc_subchannel_new. */
const char *tc_subchannel_stage(const struct tc_subchannel *sc);
/* Returns the transport for the next RPC, borrowed until it is gone: the oldest with a free stream, else the newest.
 * NULL if there is none now or `sc` was not made by tc_subchannel_new. */
struct tc_transport *tc_subchannel_transport(struct tc_subchannel *sc);

#endif
