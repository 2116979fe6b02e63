/* The innermost subchannels (lb/subchannel.h), which a channel makes for its policies on connections of the runtime's
 * pool. Loop thread only. */
#ifndef TC_SUBCHANNEL_SUBCHANNEL_H
#define TC_SUBCHANNEL_SUBCHANNEL_H

#include "lb/subchannel.h"
#include "subchannel/pool.h"

struct tc_transport;

/* An event of a connection of the channel's subchannels: "connect", "connected", "connect_failed", "closed". */
typedef void (*tc_conn_observer_fn)(void *arg, const char *kind, struct tc_rstr *address, const char *reason);

/* Makes a subchannel on the pool's connection to the address, which it shares. The policy sees IDLE until it connects
 * the subchannel, whatever other users of the connection do. `observer` may be NULL. */
struct tc_subchannel *tc_subchannel_new(struct tc_pool *p, struct tc_conn_config *config, struct tc_endpoint *endpoint,
                                        const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg,
                                        tc_conn_observer_fn observer, void *observer_arg);

/* Returns the event that the connection waits for, for people: "the TLS handshake". NULL if it waits for nothing
 * or `sc` was not made by tc_subchannel_new. */
const char *tc_subchannel_stage(const struct tc_subchannel *sc);
/* Returns the connected transport; NULL if there is none now or `sc` was not made by tc_subchannel_new. */
struct tc_transport *tc_subchannel_transport(struct tc_subchannel *sc);

#endif
