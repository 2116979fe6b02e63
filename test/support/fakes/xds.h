/* A scripted transport for the xDS client: the test plays the servers. Requests are recorded, responses wait until the
 * client reads, and every callback of a stream comes from the loop. Servers are known by URI, before and after the
 * client uses them. */
#ifndef TC_SUPPORT_FAKES_XDS_H
#define TC_SUPPORT_FAKES_XDS_H

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "xds/client/transport.h"

struct fake_xds;

/* A DiscoveryRequest or DeltaDiscoveryRequest as sent. Owns its texts. NULL: texts that only the other kind of request
 * has; node_id, user_agent and features of a request without node; error_text of a request that is not a NACK. */
struct fake_xds_request {
    struct tc_link link;
    unsigned stream; /* 1 for the server's first ADS stream */
    bool delta;
    char *type_url, *version, *nonce; /* version: SotW only */
    char *names;                      /* in order, joined by commas; of a delta request the names newly subscribed */
    char *unsubscribed;               /* delta: joined by commas */
    char *initial;                    /* delta: initial versions "name=version", joined by commas */
    bool has_node;
    char *node_id, *user_agent; /* user_agent: "name/version" */
    char *features;             /* joined by commas */
    int error_code;             /* 0: not a NACK */
    char *error_text;
};

/* Owned by the fake until fake_xds_free. Tests may set connected, shut and resends, and read the other fields. */
struct fake_xds_server {
    struct tc_link link;
    struct fake_xds *fake;
    char *uri;
    bool connected; /* true at first; while false, on_sent waits */
    /* Connected, but the windows of the streams are used up: on_sent waits until the stream ends, and then has `taken`
     * false. */
    bool shut;
    /* With `shut`: on_sent does not wait, and has `taken` false; the stream goes on. */
    bool resends;
    bool open;               /* the client has a transport for this server */
    unsigned created;        /* transports created so far */
    unsigned streams;        /* ADS streams opened so far */
    unsigned backoff_resets; /* calls of the transports' reset_backoff */
    unsigned messages_read;  /* ADS responses that the client has read */
    struct tc_link requests; /* struct fake_xds_request, for fake_xds_take */
    unsigned lrs_streams;    /* load report streams opened so far */
    unsigned half_closed;    /* ADS and load report streams that the client has half-closed */
    struct tc_link reports;  /* messages of load report streams, for fake_xds_lrs_take */
    void *internal;          /* the open transport; NULL: none */
};

/* The loop is borrowed and must outlive the fake. Never NULL. */
struct fake_xds *fake_xds_new(struct tc_loop *loop);
/* Frees the fake and its servers. The client must have been freed. */
void fake_xds_free(struct fake_xds *f);
/* Returns the factory that the client gets. Borrowed until fake_xds_free. */
struct tc_xds_transport_factory *fake_xds_factory(struct fake_xds *f);
/* Returns the same server for the same URI, never NULL. Borrowed until fake_xds_free. */
struct fake_xds_server *fake_xds_server(struct fake_xds *f, const char *uri);

/* Returns true if the server has an open ADS stream. fake_xds_send, fake_xds_end and fake_xds_break act on that stream,
 * and fail the test without one. */
bool fake_xds_streaming(const struct fake_xds_server *s);
/* Returns the oldest request not taken yet, or NULL. Free it with fake_xds_request_free. */
struct fake_xds_request *fake_xds_take(struct fake_xds_server *s);
void fake_xds_request_free(struct fake_xds_request *r);
/* Queues a serialised message, which is copied, on the open stream. */
void fake_xds_send(struct fake_xds_server *s, struct tc_slice message);
/* Ends the open stream, behind the queued messages, with a status of TORC_LAYER_PEER. code: TORC_STATUS_*. */
void fake_xds_end(struct fake_xds_server *s, int code, const char *text);
/* Ends the open stream, behind the queued messages, as the client's own transport does when a message exceeds a limit:
 * with a status of TORC_LAYER_LIMIT. */
void fake_xds_break(struct fake_xds_server *s, int code, const char *text);

/* Counterparts of fake_xds_streaming, _take, _send and _end for the server's load report stream. fake_xds_lrs_take
 * returns the oldest message not taken yet, serialised, for tc_rstr_unref, or NULL. */
bool fake_xds_lrs_streaming(const struct fake_xds_server *s);
struct tc_rstr *fake_xds_lrs_take(struct fake_xds_server *s);
void fake_xds_lrs_send(struct fake_xds_server *s, struct tc_slice message);
void fake_xds_lrs_end(struct fake_xds_server *s, int code, const char *text);

/* fake_xds_connect connects the server: on_sent of messages that wait comes when the loop runs. fake_xds_fail
 * disconnects the server and leaves its streams open. It tells the client the reason before it returns; the client must
 * have a transport. */
void fake_xds_connect(struct fake_xds_server *s);
void fake_xds_fail(struct fake_xds_server *s, const char *why);

#endif
