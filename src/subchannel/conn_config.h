/* The settings of a channel's connections. Channels share connections if the compared members are equal. Counted: any
 * thread may hold a reference and read what is immutable, which is all but `gone` and the content of `health`. These
 * two belong to the loop's thread. */
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
    torc_credentials *creds;     /* a reference */
    struct tc_rstr *server_name; /* for the handshake: the host of the authority, or a cluster's SNI; compared only
                                    where the transport is secure */
    struct tc_backoff_opts backoff;
    uint64_t connect_timeout_ms;
    uint64_t keepalive_time_ms;
    uint64_t keepalive_timeout_ms;
    bool keepalive_without_calls;
    uint64_t max_header_list_bytes;
    uint64_t max_request_header_bytes;
    struct tc_dialer *dialer; /* opens the connections (io/dialer.h), a reference; NULL: connect(2) */
    /* Not compared: */
    bool gone;                       /* of the channel's own config: the channel has ended */
    bool is_private;                 /* the config's channel is private (to an xDS server, say) */
    uint32_t max_connections;        /* A105: the most of a subchannel, whatever the service config or cluster says */
    struct tc_health_checks *health; /* of the channel, whose own config owns them; NULL: off */
    struct tc_conn_config *channel;  /* of tc_conn_config_secured: the channel's own config (a reference); else NULL */
};

/* Returns a copy of a channel's own config (never of such a copy) with other credentials and another name for their
 * handshake (a cluster's, A29). The copy has references of its own, one of them to `c`. Loop thread. */
struct tc_conn_config *tc_conn_config_secured(const struct tc_conn_config *c, torc_credentials *creds,
                                              struct tc_rstr *server_name);
struct tc_conn_config *tc_conn_config_ref(struct tc_conn_config *c);
/* NULL is allowed. */
void tc_conn_config_unref(struct tc_conn_config *c);

/* Returns the config that the channel itself has: its `gone` is the channel's, and its address identifies the
 * channel. */
static inline const struct tc_conn_config *tc_conn_config_of_channel(const struct tc_conn_config *c)
{
    return c->channel ? c->channel : c;
}

#endif
