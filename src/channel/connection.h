/* One connection of the pool: the state machine that connects, backs off and connects again. Inside src/channel. */
#ifndef TC_CHANNEL_CONNECTION_H
#define TC_CHANNEL_CONNECTION_H

#include <uthash.h>

#include "channel/pool.h"
#include "channel/transport.h"
#include "creds/creds.h"
#include "io/proxy.h"

struct tc_connection {
    struct tc_pool *pool;
    struct tc_rstr *key;
    UT_hash_handle hh;
    struct tc_conn_config *config;
    struct tc_addr addr;
    struct tc_rstr *address; /* its text */
    struct tc_link handles;  /* the subchannels that share it */

    enum torc_connectivity state;
    struct tc_status status; /* why, in TRANSIENT_FAILURE and after a loss */
    struct tc_backoff backoff;
    unsigned barren; /* connections in a row that ended soon, and unused */
    uint64_t keepalive_time_ms;
    uint64_t attempt_ms;   /* when the last attempt began */
    struct tc_timer timer; /* an attempt's limit; TRANSIENT_FAILURE: the backoff; READY: the next look at credentials */

    struct tc_transport *transport; /* READY: the one */
    uint64_t epoch;                 /* of the credentials when its handshake began */
    bool was_ready;                 /* at some time */
    /* An attempt, one of these: CONNECTING, and READY when credentials have changed and the transport is to be
     * replaced by one made with what they are now. */
    const void *locality;          /* of who asked for it last: identity alone */
    struct tc_attempts_line *line; /* of attempts.c, with the next two; NULL: there is no attempt */
    struct tc_link due;            /* linked while it waits for its turn to begin */
    bool under_way;                /* has begun */
    struct tc_connect *connecting;
    struct tc_http_connect *tunnel; /* through a proxy */
    struct tc_creds_handshake *handshake;
    torc_credentials *securing; /* whose it is: the config may be another by its end. NULL: none */
    struct tc_transport *next;  /* waits for the server's SETTINGS */
    uint64_t next_epoch;

    struct tc_link idle; /* on the pool's list while no policy holds it */
    uint64_t idle_since_ms;
};

/* A new one, IDLE, not yet in the pool's table. Takes over the key. */
struct tc_connection *tc_connection_new(struct tc_pool *p, struct tc_rstr *key, struct tc_conn_config *config,
                                        const struct tc_addr *addr);
/* Ends it: an attempt is cancelled, a transport drains. */
void tc_connection_free(struct tc_connection *c);
/* For the pool's shutdown: cancels an attempt, closes the transport; silent from then on. */
void tc_connection_stop(struct tc_connection *c);
/* Connects when IDLE. */
void tc_connection_connect(struct tc_connection *c);
/* For the pool: its attempt's turn has come. */
void tc_connection_begin(struct tc_connection *c);
/* Ends a backoff at once. */
void tc_connection_reset_backoff(struct tc_connection *c);

/* Of the handles (subchannel.c): tells all of the state that the connection has now. */
void tc_connection_notify(struct tc_connection *c);
/* Whether private channels alone hold it, or held it last. */
bool tc_connection_is_private(const struct tc_connection *c);

/* Of the pool (pool.c). */
struct tc_loop *tc_pool_loop(const struct tc_pool *p);
const struct tc_connector *tc_pool_connector(const struct tc_pool *p);
struct tc_link *tc_pool_transports(struct tc_pool *p);
struct tc_attempts *tc_pool_attempts(struct tc_pool *p);
bool tc_pool_is_shut(const struct tc_pool *p);
/* The connection for a key, made if need be; it counts as held. */
struct tc_connection *tc_pool_connection(struct tc_pool *p, struct tc_conn_config *config, const struct tc_addr *addr);
/* No handle is left, or the state changed while none was: keeps it or frees it. `user`: whose the last handle was. */
void tc_pool_unused(struct tc_connection *c, struct tc_conn_config *user);

#endif
