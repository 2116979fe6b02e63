/* A scripted transport for the xDS client: the test is the servers. Requests are recorded, responses wait until the
 * client reads, everything comes by the loop. Servers are known by their URI, before and after the client uses them. */
#ifndef TC_SUPPORT_FAKE_XDS_TRANSPORT_H
#define TC_SUPPORT_FAKE_XDS_TRANSPORT_H

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "xds/transport.h"

struct tc_fake_xds;

/* One DiscoveryRequest or DeltaDiscoveryRequest as it was sent. */
struct tc_fake_xds_request {
    struct tc_link link;
    unsigned stream; /* 1: the server's first */
    bool delta;
    char *type_url, *version, *nonce;
    char *names;        /* in their order, joined by commas; of a delta request those subscribed to */
    char *unsubscribed; /* delta: joined by commas */
    char *initial;      /* delta: initial versions "name=version", joined by commas */
    bool has_node;
    char *node_id, *user_agent; /* "name/version" */
    char *features;             /* joined by commas */
    int error_code;             /* 0: an ACK */
    char *error_text;
};

struct tc_fake_xds_server {
    struct tc_link link;
    struct tc_fake_xds *fake;
    char *uri;
    bool connected;   /* true at first; while false nothing is handed over (on_sent waits) */
    bool open;        /* the client has a transport now */
    unsigned created; /* transports so far */
    unsigned streams; /* streams so far */
    unsigned backoff_resets;
    unsigned messages_read; /* responses that the client took */
    struct tc_link requests;
    unsigned lrs_streams; /* streams of load reports so far */
    unsigned half_closed; /* streams whose client said that it had no more to send */
    struct tc_link reports;
    void *internal;
};

struct tc_fake_xds *tc_fake_xds_new(struct tc_loop *loop);
/* The client must be gone. */
void tc_fake_xds_free(struct tc_fake_xds *f);
struct tc_xds_transport_factory *tc_fake_xds_factory(struct tc_fake_xds *f);
/* Borrowed; the same for the same URI. */
struct tc_fake_xds_server *tc_fake_xds_server(struct tc_fake_xds *f, const char *uri);

/* Has the server a stream now? */
bool tc_fake_xds_streaming(const struct tc_fake_xds_server *s);
/* The oldest request not taken yet, or NULL; free it with the next function. */
struct tc_fake_xds_request *tc_fake_xds_take(struct tc_fake_xds_server *s);
void tc_fake_xds_request_free(struct tc_fake_xds_request *r);
/* Queues a message on the present stream. */
void tc_fake_xds_send(struct tc_fake_xds_server *s, struct tc_slice message);
/* Ends the present stream, after what is queued. */
void tc_fake_xds_end(struct tc_fake_xds_server *s, int code, const char *text);
/* The same, but on the client's side. */
void tc_fake_xds_break(struct tc_fake_xds_server *s, int code, const char *text);

/* The same for its stream of load reports, whose messages are handed out as they are (release with tc_rstr_unref). */
bool tc_fake_lrs_streaming(const struct tc_fake_xds_server *s);
struct tc_rstr *tc_fake_lrs_take(struct tc_fake_xds_server *s);
void tc_fake_lrs_send(struct tc_fake_xds_server *s, struct tc_slice message);
void tc_fake_lrs_end(struct tc_fake_xds_server *s, int code, const char *text);

/* Becomes connected, or fails to (and says why). */
void tc_fake_xds_connect(struct tc_fake_xds_server *s);
void tc_fake_xds_fail(struct tc_fake_xds_server *s, const char *why);

#endif
