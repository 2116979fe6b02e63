/* An xds_channel: the connection to one server, with its ADS stream and its load reports. Only the data: xds_channel.h
 * has the channel's life, ads.h and subscriptions.h the stream, lrs.h the reports. Loop thread only. */
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
    /* State of the world: the nonce of the last response on this stream; NULL: no response came yet, or none since the
     * last request without names. Incremental: the nonce of the response that the next request answers, or NULL. */
    struct tc_rstr *nonce;
    struct tc_rstr *nack;       /* the errors that the next request reports; NULL: none */
    struct tc_xds_token *token; /* incremental: of the response that the next request answers; a reference */
    uint64_t turn;              /* place in the queue of requests, the smallest first; 0: no request is due */
    bool requested;             /* a request was made on this stream; state of the world: the last one had names */
    bool asked;                 /* ever requested on this stream: responses of the type must be answered */
    /* Subscribed names whose entry has left the cache, or whose authority has given the channel back, since the last
     * request. Incremental: the names to unsubscribe from. State of the world: if such a name is wanted again, the next
     * request must leave it out (`held_back`), or the server would see no change and not send the resource again. */
    struct tc_xds_dropped_name *dropped; /* hash table, since a server that does not read makes it long */
    /* A response since the last request had resources that are not subscribed to. Such a response may have crossed the
     * request that left the names out: the server ignores a request with a stale nonce, and still counts the names as
     * subscribed. */
    bool sent_dropped;
};

/* The operations in which the two forms of ADS differ: state of the world (ads_sotw.c), and incremental
 * (ads_delta.c). */
struct tc_xds_ads_ops {
    const char *method;
    unsigned node_field; /* the field number of the Node in a request */
    /* Appends the request that is due for the type to `out`. Returns false, and appends nothing, if no request is
     * needed. */
    bool (*request)(struct tc_xds_channel *ch, size_t type, struct tc_buf *out);
    /* Called by the stream's on_sent (transport.h); may be NULL. */
    void (*on_sent)(struct tc_xds_channel *ch);
    /* The timer `quiet` ran out; NULL: the form never starts it. */
    void (*on_quiet)(struct tc_xds_channel *ch);
};

/* A response that another thread decodes (decode_thread.h), as its stream sees it. */
struct tc_xds_pending_response {
    /* The stream ended with this status. The job calls tc_xds_ads_ended once it has applied the response. */
    void (*on_stream_end)(struct tc_xds_pending_response *p, const struct tc_status *status);
    /* The response must not be applied: the decode job gives up its token and forgets the channel. */
    void (*abandon)(struct tc_xds_pending_response *p);
};

struct tc_xds_ads {
    const struct tc_xds_ads_ops *ops;
    struct tc_xds_stream *stream;            /* used until on_status or cancel; NULL: there is none */
    struct tc_xds_token *token;              /* of the last response, borrowed; NULL: nobody holds the token */
    struct tc_xds_pending_response *pending; /* the response while another thread decodes it */
    struct tc_mailbox *box;                  /* where decoded responses arrive; NULL until the first one */
    TC_VEC(struct tc_xds_ads_type) types;    /* by the client's index of the type */
    uint64_t last_turn;                      /* the last number given to tc_xds_ads_type.turn */
    size_t sending_type;                     /* the type of the request on its way */
    /* A request is on its way to the transport; a request of the stream had the Node; the server has answered on the
     * stream (tc_xds_ads_proved). */
    bool sending, sent_node, seen_response;
    bool sent;               /* on_sent has come for a request of the stream */
    bool refused;            /* the last response has a type that was not asked for, or something of it was rejected */
    uint64_t read_at_ms;     /* the next read waits until then, in the loop's time */
    struct tc_timer pause;   /* until read_at_ms */
    bool hold_backoff;       /* a stream answered and broke on a response too large: a first response proves nothing */
    uint64_t restarted_ms;   /* the start of the last stream that followed one which had answered; 0: none */
    uint64_t opened_ms;      /* when the last stream was opened */
    struct tc_backoff taken; /* after streams that had answered and soon ended with OK (ads.c, SOON_MS) */
    unsigned n_taken;        /* how many such streams in a row */
    struct tc_backoff backoff;
    struct tc_timer retry;
    struct tc_timer steady; /* while the stream after a failed one is young (ads.c, STEADY_MS) */
    struct tc_task send, restart;
    /* Replaces the stream: its first requests still wait for a connection, and give versions that the client no longer
     * has. */
    struct tc_task outdated;
    bool answered_before;    /* the stream has replaced one that had answered, or had this set */
    struct tc_timer replace; /* replaces the stream when it runs out (tc_xds_ads_replace_soon) */
    /* gave_versions: a request of the stream had a version, so that the server may stay silent. asked_anew
     * (incremental): a request of the stream had names without a version, which the server should answer. */
    bool gave_versions, asked_anew;
    struct tc_timer quiet;           /* incremental: until silence counts as an answer (ads_delta.c) */
    struct tc_xds_token *sent_token; /* incremental: of the response that the request on its way answers; a reference */
};

/* Events of a channel's server. The receivers are layers above the channel; local_client.c names them. */
struct tc_xds_channel_events {
    /* Handles a response; message and token are borrowed. Returns false if the response cannot be unpacked and cannot
     * be answered: its nonce is not text, or the stream did not ask for its type. */
    bool (*on_response)(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_token *token);
    /* The server cannot be reached, for this reason; takes the status. `of_stream`: a stream ended without a response,
     * or on a response that is too large; false: there is no connection. */
    void (*on_unreachable)(struct tc_xds_channel *ch, struct tc_status status, bool of_stream);
    /* The server can be reached. `token` is of the response that shows this; NULL: no response does. */
    void (*on_reachable)(struct tc_xds_channel *ch, struct tc_xds_token *token);
    /* Incremental: the server is silent, because the client has everything already. */
    void (*on_nothing_to_add)(struct tc_xds_channel *ch);
};

struct tc_xds_channel {
    struct tc_link link;
    struct tc_xds_local_client *client; /* borrowed; owns the channel */
    const struct tc_xds_server *server; /* the bootstrap's */
    struct tc_xds_transport *transport; /* the channel's own */
    size_t users;                       /* places in the authorities' `channels`; a list may name a server twice */
    struct tc_status status;            /* why the server cannot be reached; OK: nothing bad is known */
    bool stream_failed;                 /* the status is of the end of a stream; false: of the connection */
    struct tc_xds_ads ads;
    struct tc_xds_lrs *lrs; /* NULL: no load reports were asked for */
};

#endif
