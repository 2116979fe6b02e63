/* One connection of a pool: the state machine that connects and backs off. If its watches allow more than one transport
 * (A105), further transports to the same server join the first while calls wait for a stream. Loop thread only.
 *
 * A connection does not know the pool. The pool hands it a struct tc_connection_env. An object that follows the
 * connection's states embeds a struct tc_connection_watch. connection.c has the states. */
#ifndef TC_SUBCHANNEL_CONNECTION_H
#define TC_SUBCHANNEL_CONNECTION_H

#include <torc/connectivity.h>

#include "base/table.h"
#include "io/connect.h"
#include "io/http_connect.h"
#include "subchannel/conn_config.h"
#include "subchannel/connect_queue.h"
#include "subchannel/side_stream.h"
#include "subchannel/transport.h"

struct tc_connection;

/* How connections are opened. Tests replace it. */
struct tc_connector {
    struct tc_connect *(*start)(struct tc_loop *loop, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg);
    void (*cancel)(struct tc_connect *c);
};

/* The environment that all connections of a pool share. Outlives them. */
struct tc_connection_env {
    struct tc_loop *loop;
    const struct tc_connector *connector;
    struct tc_connect_queue queue;
    struct tc_link transports; /* all transports of all connections, draining ones included */
    bool shut;                 /* nothing connects any longer (tc_pool_shutdown) */
    /* Called when nobody watches the connection: after the last watch has gone, or after a change of state without a
     * watch. The callee may free the connection. `user`: the config of the last watch, borrowed for the call. */
    void (*unused)(struct tc_connection *c, struct tc_conn_config *user);
};

/* A callback for a connection's states; embedded in its owner. The owner appends the watch to `watches`. To end the
 * watch the owner calls tc_list_remove, and then env->unused if no watch is left. */
struct tc_connection_watch {
    struct tc_link link;
    bool is_private;          /* the watch's channel is private */
    uint32_t max_connections; /* A105; the largest of all watches counts; 0 counts as 1 */
    /* The connection's state has changed. Must not end a watch or call `unused`: the owner does so later. */
    void (*on_state)(struct tc_connection_watch *watch);
};

/* An attempt to connect. Its steps are connecting or dialing, tunnel (through an HTTP proxy), handshake (TLS) and next
 * (HTTP/2 until the server's SETTINGS); the pointer of the step that is under way is set, the others are NULL. */
struct tc_connection_attempt {
    struct tc_connect_entry entry;
    uint64_t began_ms; /* in the loop's time; kept after the attempt's end */
    struct tc_connect *connecting;
    struct torc_dial *dialing; /* instead of `connecting`, with the config's dialer */
    struct tc_http_connect *tunnel;
    struct tc_creds_handshake *handshake;
    torc_credentials *securing; /* of `handshake`, a reference: the config may be replaced meanwhile; else NULL */
    struct tc_transport *next;
    uint64_t next_epoch; /* of the credentials when the handshake began */
    bool replaces;       /* the credentials have changed: the attempt's transport takes the place of those in use */
};

struct tc_connection {
    struct tc_connection_env *env;
    struct tc_conn_config *config; /* a reference; the pool replaces it when no watch is left */
    struct tc_addr addr;
    struct tc_rstr *address; /* text of addr; a reference */
    const void *locality;    /* of the subchannel that asked for the connection last; identity only */
    struct tc_link watches;  /* struct tc_connection_watch */

    enum torc_connectivity state;
    struct tc_status status; /* why, in TRANSIENT_FAILURE, in IDLE after it, and after a transport was lost */
    struct tc_backoff backoff;
    struct tc_barren *barren;              /* a reference */
    struct tc_h2_glitch_rate *glitch_rate; /* the server's glitches, on all transports to it; a reference */
    /* Ends an attempt that takes too long; while `backing_off`, ends the backoff; else, in READY, looks at the
     * credentials again. */
    struct tc_timer timer;
    bool backing_off; /* TRANSIENT_FAILURE, and READY after an attempt to have another transport failed */

    struct tc_transport_group group;      /* READY: the transports that RPCs use */
    uint64_t epoch;                       /* of the credentials when the newest transport's handshake began */
    bool was_ready;                       /* at some time */
    struct tc_side_streams side_streams;  /* on the oldest transport */
    struct tc_connection_attempt attempt; /* CONNECTING, and READY while another transport is made */

    /* The pool's. */
    struct tc_rstr *key; /* a reference */
    UT_hash_handle hh;
    struct tc_link idle;    /* linked while no policy holds the connection */
    uint64_t idle_since_ms; /* in the loop's time */
};

/* Makes a connection that is IDLE. Takes over `key`, and takes references of its own to config and address. Never
 * returns NULL. */
struct tc_connection *tc_connection_new(struct tc_connection_env *env, struct tc_rstr *key,
                                        struct tc_conn_config *config, const struct tc_addr *addr);
/* Cancels an attempt, lets the transports drain, and frees the connection, which must have no watch. */
void tc_connection_free(struct tc_connection *c);
/* Cancels an attempt and closes the transports. The connection stays, is IDLE, and calls no watch. */
void tc_connection_stop(struct tc_connection *c);
/* Connects if IDLE. Does nothing otherwise, or once env->shut. The connection must have a watch. */
void tc_connection_connect(struct tc_connection *c);
/* Attempts to have another transport if READY, calls wait, no transport has a stream for them, and the watches allow
 * one more (A105). Does nothing in a backoff or while an attempt runs or waits. Called when that may have become
 * true. */
void tc_connection_scale(struct tc_connection *c);
/* Ends a backoff at once, and the backoffs of the side streams. Forgets that connections were barren. May free the
 * connection if it has no watch. */
void tc_connection_reset_backoff(struct tc_connection *c);

/* Returns the event that the attempt waits for, as a static text for people, such as "the TLS handshake". Called while
 * an attempt runs or waits for its turn. */
const char *tc_connection_stage(const struct tc_connection *c);
/* Returns true if private channels alone watch the connection, or, without a watch, if its last user was private. */
bool tc_connection_is_private(const struct tc_connection *c);

#endif
