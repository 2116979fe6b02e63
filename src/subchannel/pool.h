/* The subchannel pool of a runtime: connections by address, credentials and options, shared by its channels. A
 * connection that no policy holds may be kept for a while (pool.c says which). Loop thread only. */
#ifndef TC_SUBCHANNEL_POOL_H
#define TC_SUBCHANNEL_POOL_H

#include "io/loop.h"
#include "subchannel/conn_config.h"

struct tc_addr;
struct tc_connection;
struct tc_connector;
struct tc_pool;

/* Makes a pool that keeps at most max_idle connections that no policy holds, each for idle_ms at most; max_idle 0:
 * none. `loop` must outlive the subchannels. Never returns NULL. */
struct tc_pool *tc_pool_new(struct tc_loop *loop, uint64_t idle_ms, uint32_t max_idle);
/* Closes all transports; nothing connects afterwards. Subchannels that are left stay valid and queue no further state,
 * but IDLE for one that is made later. */
void tc_pool_shutdown(struct tc_pool *p);
/* Frees the pool. Called after tc_pool_shutdown and the release of all subchannels. */
void tc_pool_free(struct tc_pool *p);
/* For tests: replaces connect(2). Called while no attempt to connect runs. `connector` is borrowed until the pool is
 * shut down. */
void tc_pool_set_connector(struct tc_pool *p, const struct tc_connector *connector);
/* Marks the beginning and the end of a resolver's update. When too many connections are kept, those that a policy
 * released during an update close first: most of their endpoints left the resource. */
void tc_pool_set_updating(struct tc_pool *p, bool updating);

/* Returns the number of connections, kept ones included; transports that drain are not counted. */
size_t tc_pool_count(const struct tc_pool *p);
/* Returns the number of connections that are kept though no policy holds them. */
size_t tc_pool_idle_count(const struct tc_pool *p);
/* Stores in *connections how many connections private channels (to xDS servers) alone hold, or held last; in *idle how
 * many of these no policy holds. */
void tc_pool_private_counts(const struct tc_pool *p, size_t *connections, size_t *idle);

/* Returns the connection for address and config, made if there is none, never NULL. The pool owns the connection; the
 * caller adds a watch at once, which holds it. Takes references of its own. */
struct tc_connection *tc_pool_connection(struct tc_pool *p, struct tc_conn_config *config, const struct tc_addr *addr);

/* Tells the pool that a channel has ended, by the channel's own config. Connections that are not READY and that this
 * channel used last are not kept, now or later: a backoff of the old channel must not bind a new channel. READY
 * connections of a channel with a dialer are not kept either, nor those of a private channel: A71 closes the connection
 * to a fallback server when the server above it is back. */
void tc_pool_channel_gone(struct tc_pool *p, struct tc_conn_config *config);

#endif
