/* The innermost subchannels (lb/subchannel.h), which a channel makes for its policies on connections of the runtime's
 * pool. Loop thread only. */
#ifndef TC_SUBCHANNEL_SUBCHANNEL_H
#define TC_SUBCHANNEL_SUBCHANNEL_H

#include "lb/subchannel.h"
#include "subchannel/pool.h"

struct tc_transport;

/* How many connections each subchannel of a set may have (A105): of a channel's, as its service config says, or of a
 * cluster's. Embedded in the owner. Subchannels with different limits share a connection: the largest of their limits
 * counts. Loop thread only. */
struct tc_scaling {
    uint32_t max_connections; /* 1: the connection alone */
    struct tc_link handles;
};

/* An event of a connection of the channel's subchannels: "connect", "connected", "connect_failed", "closed". */
typedef void (*tc_conn_observer_fn)(void *arg, const char *kind, struct tc_rstr *address, const char *reason);

/* Makes a subchannel on the pool's connection to the address, which it shares. The policy sees IDLE until it connects
 * the subchannel, whatever other users of the connection do. `observer` may be NULL. */
struct tc_subchannel *tc_subchannel_new(struct tc_pool *p, struct tc_conn_config *config, struct tc_endpoint *endpoint,
                                        const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg,
                                        tc_conn_observer_fn observer, void *observer_arg);

/* A limit of 1. */
void tc_scaling_init(struct tc_scaling *s);
/* Sets the limit, for the subchannels of the set too. No connection is closed. */
void tc_scaling_set(struct tc_scaling *s, uint32_t max_connections);
/* Subchannels that are left keep their limit. */
void tc_scaling_fini(struct tc_scaling *s);
/* Adds a subchannel, wrapped or not, instead of the set that it was in; it leaves with its release. The limit is cut to
 * the `max_connections` of its tc_conn_config. Does nothing if it was not made by tc_subchannel_new. */
void tc_scaling_add(struct tc_scaling *s, struct tc_subchannel *sc);

/* Returns the event that the connection waits for, for people: "the TLS handshake". NULL if it waits for nothing
 * or `sc` was not made by tc_subchannel_new. */
const char *tc_subchannel_stage(const struct tc_subchannel *sc);
/* Returns the transport for the next RPC: the oldest with a free stream, else the newest. NULL if there is none now or
 * `sc` was not made by tc_subchannel_new. */
struct tc_transport *tc_subchannel_transport(struct tc_subchannel *sc);

#endif
