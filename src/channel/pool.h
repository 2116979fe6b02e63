/* The subchannel pool of a runtime: connections by address, credentials and options, shared by its channels. A
 * connection that no policy holds is kept for a while; when there are too many, those go first whose endpoint left the
 * resource, then the oldest. Loop thread only. */
#ifndef TC_CHANNEL_POOL_H
#define TC_CHANNEL_POOL_H

#include <torc/credentials.h>

#include "http2/conn.h"
#include "io/backoff.h"
#include "io/connect.h"
#include "lb/subchannel.h"

struct tc_pool;

/* What a channel's connections are made with; connections are shared among channels for which all of it is equal.
 */
struct tc_conn_config {
    struct tc_ref ref;
    torc_credentials *creds;
    struct tc_rstr *server_name; /* host part of the authority; counts only where the transport is secure */
    struct tc_backoff_opts backoff;
    uint64_t connect_timeout_ms;
    uint64_t keepalive_time_ms;
    uint64_t keepalive_timeout_ms;
    bool keepalive_without_calls;
    uint64_t max_header_list_bytes;
    bool gone;       /* its channel is; not part of the comparison */
    bool is_private; /* its channel is; not part of the comparison */
    struct tc_conn_config
        *channel; /* of tc_conn_config_secured: what it was made of, which knows of the channel's end */
};

/* The same with other credentials, and the name that they get for the handshake; takes references of its own. */
struct tc_conn_config *tc_conn_config_secured(const struct tc_conn_config *c, torc_credentials *creds,
                                              struct tc_rstr *server_name);
struct tc_conn_config *tc_conn_config_ref(struct tc_conn_config *c);
void tc_conn_config_unref(struct tc_conn_config *c);

/* How connections are opened; tests put their own in its place. */
struct tc_connector {
    struct tc_connect *(*start)(struct tc_loop *loop, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg);
    void (*cancel)(struct tc_connect *c);
};

struct tc_pool *tc_pool_new(struct tc_loop *loop, uint64_t idle_ms, uint32_t max_idle);
/* Closes all connections; nothing is connected after it. Handles that are left stay valid and silent. */
void tc_pool_shutdown(struct tc_pool *p);
/* After the shutdown and the release of all handles. */
void tc_pool_free(struct tc_pool *p);
void tc_pool_set_connector(struct tc_pool *p, const struct tc_connector *connector);
/* While a resolver's update is applied: what policies give up in its course, they do because the endpoint has left. */
void tc_pool_set_updating(struct tc_pool *p, bool updating);
/* Connections that are kept though no policy holds them. */
size_t tc_pool_idle_count(const struct tc_pool *p);
size_t tc_pool_count(const struct tc_pool *p);
/* Of those counts, the connections that are private channels' (to xDS servers) alone. */
void tc_pool_private_counts(const struct tc_pool *p, size_t *connections, size_t *idle);

/* What happens on the connections of a channel's subchannels: "connect", "connected", "connect_failed", "closed". */
typedef void (*tc_conn_observer_fn)(void *arg, const char *kind, struct tc_rstr *address, const char *reason);

/* A subchannel that shares the pool's connection to the address. It is IDLE for its policy until the policy connects
 * it, whatever the others that share the connection do. `observer` may be NULL. */
struct tc_subchannel *tc_pool_subchannel(struct tc_pool *p, struct tc_conn_config *config, struct tc_endpoint *endpoint,
                                         const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg,
                                         tc_conn_observer_fn observer, void *observer_arg);

/* The config's channel is gone, and what it was refused binds nobody else: of failed connections that were last in use
 * by it none is kept, now or later. So a new channel begins afresh. */
void tc_pool_forget_failures(struct tc_pool *p, struct tc_conn_config *config);

struct tc_transport;
/* The connected transport behind a subchannel of tc_pool_subchannel; NULL when there is none now. */
struct tc_transport *tc_subchannel_transport(struct tc_subchannel *sc);

#endif
