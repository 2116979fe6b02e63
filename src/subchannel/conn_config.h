/* The settings of a channel's connections. Channels share connections if the compared members are equal (connection_key
 * in pool.c). Counted. Any thread may hold, add and drop references, and read the members, except `gone`,
 * `keepalive_raised_ms` and the content of `health`: these three change, and belong to the loop's thread. */
#ifndef TC_SUBCHANNEL_CONN_CONFIG_H
#define TC_SUBCHANNEL_CONN_CONFIG_H

#include "base/ref.h"
#include "base/rstr.h"
#include "creds/creds.h"
#include "io/backoff.h"
#include "io/dialer.h"

struct tc_health_checks;

struct tc_conn_config {
    struct tc_ref ref;
    torc_credentials *creds;     /* a reference; compared by key */
    struct tc_rstr *server_name; /* a reference, never NULL. For the handshake: the host of the authority, or a
                                    cluster's SNI (may be empty). Compared only where the transport is secure */
    struct tc_backoff_opts backoff;
    uint64_t connect_timeout_ms; /* from the start of an attempt until the server's SETTINGS */
    uint64_t keepalive_time_ms;  /* this and the next two: see struct tc_h2_keepalive */
    uint64_t keepalive_timeout_ms;
    bool keepalive_without_calls;
    uint64_t max_header_list_bytes; /* these two: see struct tc_h2_limits */
    uint64_t max_request_header_bytes;
    struct tc_dialer *dialer; /* opens the connections (io/dialer.h), a reference; NULL: connect(2) */
    /* Not compared: */
    bool gone;                       /* of the channel's own config: the channel has ended */
    uint64_t keepalive_raised_ms;    /* of the channel's own config (A8): new connections of the channel use at least
                                        this keepalive time; 0: no server has sent too_many_pings */
    bool is_private;                 /* the config's channel is private (to an xDS server, say) */
    uint32_t max_connections;        /* A105: upper limit for a subchannel, whatever service config or cluster say */
    struct tc_health_checks *health; /* of the channel, whose own config owns them; NULL: off */
    struct tc_conn_config *channel;  /* of tc_conn_config_secured: the channel's own config (a reference); else NULL */
};

/* Returns a copy of a channel's own config, with one reference, with the credentials of a cluster (A29) and a name for
 * their handshake, neither of them NULL. `c` must not be such a copy. The copy takes references of its own, one of them
 * to `c`. Loop thread. */
struct tc_conn_config *tc_conn_config_secured(const struct tc_conn_config *c, torc_credentials *creds,
                                              struct tc_rstr *server_name);
struct tc_conn_config *tc_conn_config_ref(struct tc_conn_config *c);
/* NULL is allowed. */
void tc_conn_config_unref(struct tc_conn_config *c);

/* Returns the channel's own config, borrowed. Its `gone` and its `keepalive_raised_ms` are the channel's, and its
 * address identifies the channel. */
static inline struct tc_conn_config *tc_conn_config_of_channel(struct tc_conn_config *c)
{
    return c->channel ? c->channel : c;
}

#endif
