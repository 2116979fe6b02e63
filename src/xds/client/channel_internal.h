/* An xds_channel: the connection to one server, with its ADS stream and its load reports. Data; see xds_channel.h for
 * its life, ads.h and subscriptions.h for the stream, lrs.h for reports. Loop thread only. */
#ifndef TC_XDS_CLIENT_CHANNEL_INTERNAL_H
#define TC_XDS_CLIENT_CHANNEL_INTERNAL_H

#include "base/vec.h"
#include "io/mailbox.h"
#include "xds/client/local_internal.h"

struct tc_xds_lrs;

/* A name in tc_xds_ads_type.dropped. */
struct tc_xds_dropped_name {
    struct tc_rstr *name;
    UT_hash_handle hh;
};

/* The state of a type on an ADS stream. */
struct tc_xds_ads_type {
    struct tc_rstr *version; /* last ACKed; outlives streams; state of the world only */
    /* State of the world: of the last response on this stream; NULL: none came yet, or none since the last request
     * without names. Incremental: of the response to be answered; NULL: none. */
    struct tc_rstr *nonce;
    struct tc_rstr *nack;       /* the errors that the next request reports; NULL: none */
    struct tc_xds_token *token; /* incremental: held until the response is answered */
    uint64_t turn;              /* place in the queue of requests, the smallest first; 0: no request is due */
    bool requested;             /* a request was made on this stream; state of the world: the last one had names */
    bool asked;                 /* ever requested on this stream: responses of the type must be answered */
    /* Names that a request had and that are no longer asked for: since the last request, the entry left the cache or
     * its authority gave the channel back. Incremental: the names to unsubscribe from. State of the world: a request
     * that has such a name again would tell the server nothing new, and it would not send the resource again. */
    struct tc_xds_dropped_name *dropped; /* hash table, since a server that does not read makes it long */
    /* The last response had resources that are not subscribed to, and no request was made since. A response may have
     * crossed the request without these names: the server ignores a request with a stale nonce, and then counts the
     * names as subscribed. */
    bool sent_dropped;
};

/* The operations in which the two forms of ADS differ: state of the world (ads_sotw.c), and incremental
 * (ads_delta.c). */
struct tc_xds_ads_ops {
    const char *method;
    unsigned node_field; /* the number of the Node in a request */
    /* Appends the request that is due for the type to `out`. Returns false, and appends nothing, if there is nothing to
     * say. */
    bool (*request)(struct tc_xds_channel *ch, size_t type, struct tc_buf *out);
    /* A request was handed to a connected transport, or the stream ended without it; may be NULL. */
    void (*on_sent)(struct tc_xds_channel *ch);
    /* The timer `quiet` ran out; NULL: the form has no use for it. */
    void (*on_quiet)(struct tc_xds_channel *ch);
};

/* A response that another thread decodes (decode_thread.h), as its stream sees it. */
struct tc_xds_pending_response {
    /* The stream ended, with this status. Once the response was applied, tc_xds_ads_ended must be called. */
    void (*on_stream_end)(struct tc_xds_pending_response *p, const struct tc_status *status);
    /* The response is not to be applied: its decode job gives up the token and forgets the channel. */
    void (*abandon)(struct tc_xds_pending_response *p);
};

struct tc_xds_ads {
    const struct tc_xds_ads_ops *ops;
    struct tc_xds_stream *stream;            /* NULL: there is none */
    struct tc_xds_token *token;              /* of the last response, borrowed; NULL: nobody holds the token */
    struct tc_xds_pending_response *pending; /* the response while another thread decodes it */
    struct tc_mailbox *box;                  /* where decoded responses arrive; NULL until the first one */
    TC_VEC(struct tc_xds_ads_type) types;
    uint64_t last_turn;  /* the last number given to tc_xds_ads_type.turn */
    size_t sending_type; /* of the request on its way */
    /* A request is on its way to the transport; a request of the stream had the Node; the server has answered on the
     * stream (tc_xds_ads_proved). */
    bool sending, sent_node, seen_response;
    bool sent;               /* the transport took a request of the stream, or the stream ended without the request */
    uint64_t responses;      /* how many responses came, on all streams */
    bool refused;            /* the last response, or a resource of it, was rejected */
    uint64_t read_at_ms;     /* the next read waits until then */
    struct tc_timer pause;   /* until read_at_ms */
    bool hold_backoff;       /* a stream answered and broke on a response too large: a first response proves nothing */
    uint64_t restarted_ms;   /* when the last stream that had worked is followed by the next one; 0: never */
    uint64_t opened_ms;      /* when the last stream was opened */
    struct tc_backoff taken; /* after streams that worked and were taken away soon (ads.c, SOON_MS) */
    unsigned n_taken;        /* how many such streams in a row */
    struct tc_backoff backoff;
    struct tc_timer retry;
    struct tc_timer steady; /* while the stream after a failed one is young (ads.c, STEADY_MS) */
    struct tc_task send, restart;
    /* Replaces the stream: its first requests still wait for a connection, and name versions that the client no longer
     * has. */
    struct tc_task outdated;
    bool answered_before;    /* the stream stands for one that had answered: `replace` took its place */
    struct tc_timer replace; /* until the stream is replaced, on which the server would not send its values again */
    /* gave_versions: a request of the stream had a version (incremental: one of its first requests), so that the server
     * may stay silent. asked_anew (incremental): the requests also had names without a version, which the server should
     * answer. */
    bool gave_versions, asked_anew;
    struct tc_timer quiet;           /* incremental: how long a server may stay silent (ads_delta.c) */
    struct tc_xds_token *sent_token; /* incremental: of the response that the request on its way answers; a reference */
};

/* Events of a channel's server. The parts that receive them stand above the channel: local_client.c names them. */
struct tc_xds_channel_events {
    /* Takes in a response; message and token are borrowed. Returns false if the response cannot be unpacked and is not
     * answered either, because its nonce cannot be read or its type is not one that the stream asked for. */
    bool (*on_response)(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_token *token);
    /* The server cannot be reached, for this reason; takes the status. `of_stream`: a stream ended without a response,
     * or on a response that is too large; false: there is no connection. */
    void (*on_unreachable)(struct tc_xds_channel *ch, struct tc_status status, bool of_stream);
    /* The server can be reached. `token` is of the response that shows it; NULL: no response does. */
    void (*on_reachable)(struct tc_xds_channel *ch, struct tc_xds_token *token);
    /* Incremental: the server is silent, because the client has everything already. */
    void (*on_nothing_to_add)(struct tc_xds_channel *ch);
};

struct tc_xds_channel {
    struct tc_link link;
    struct tc_xds_local_client *client;
    const struct tc_xds_server *server; /* the bootstrap's */
    struct tc_xds_transport *transport;
    size_t users;            /* places in the lists of authorities; a list may name a server twice */
    struct tc_status status; /* why the server cannot be reached; OK: nothing bad is known */
    bool stream_failed;      /* the status is of the end of a stream; false: of the connection */
    struct tc_xds_ads ads;
    struct tc_xds_lrs *lrs; /* NULL: no load reports were ever asked for */
};

#endif
