/* The client's half of a call: the request that opens it, and the outcome that ends it. Loop thread only. */
#ifndef TC_HTTP2_CLIENT_STREAM_H
#define TC_HTTP2_CLIENT_STREAM_H

#include "http2/stream.h"

/* How a call ended. */
struct tc_h2_outcome {
    struct tc_status status;           /* from the trailers, else made on this side with a text that names the
                                          failure */
    const struct tc_headers *trailers; /* possibly empty; never NULL */
    bool unprocessed;   /* the server did not process the request (REFUSED_STREAM, an id above the GOAWAY's last, or
                           `unsent`): it may be retried transparently */
    bool unsent;        /* unprocessed, since the request never left */
    bool rejected;      /* the request's headers are larger than max_request_header_bytes, or than the server takes:
                           nothing was sent, and another attempt would end in the same way */
    bool from_server;   /* the status came from the peer's trailers */
    bool trailers_only; /* the headers were the trailers */
};

struct tc_h2_client_events {
    struct tc_h2_stream_events stream; /* first: a stream keeps a pointer to it */
    /* The response's initial metadata (not for trailers-only, nor for a response that is not gRPC or has an unknown
     * grpc-encoding). Borrowed until on_done. */
    void (*on_headers)(void *arg, const struct tc_headers *headers);
    /* The end; the last callback, exactly once unless the owner cancels the stream, or closes the connection while the
     * outcome is not known. Whole messages that arrived before the end (trailers, RST_STREAM, GOAWAY, the end of the
     * connection, a failure found here) are delivered first, as they are asked for; they are dropped if there was no
     * memory for the bytes that wait, or if the message before them cannot be decoded. `outcome` is borrowed. */
    void (*on_done)(void *arg, const struct tc_h2_outcome *outcome);
};

/* The request that starts a call. Borrowed by tc_h2_client_stream_open until it returns: nghttp2 copies the fields. */
struct tc_h2_request {
    struct tc_slice path; /* "/package.Service/Method" */
    struct tc_slice authority;
    struct tc_slice user_agent;
    uint64_t timeout_ns;               /* grpc-timeout; 0: none */
    enum tc_h2_encoding encoding;      /* grpc-encoding of the messages that we send */
    uint32_t previous_attempts;        /* grpc-previous-rpc-attempts when > 0 */
    const struct tc_headers *metadata; /* the application's and filters'; NULL: none. Reserved names (":", te,
                                          content-type, connection-specific, most of "grpc-") were rejected before */
    const struct tc_headers *auth;     /* of call credentials, after the metadata; NULL: none */
    /* The call's limits of messages instead of the connection's; 0 allows empty messages alone. The limit of messages
     * to send is for their size after compression. */
    bool has_limits;
    bool aside; /* not an RPC of the application: its end does not count for tc_h2_conn_answered */
    size_t max_receive_message_bytes, max_send_message_bytes;
};

/* Opens a stream. Returns NULL with *error: TORC_EAGAIN (at MAX_CONCURRENT_STREAMS, or before the server's SETTINGS:
 * on_capacity follows), TORC_ECLOSED (draining, failed or closed), TORC_ELIMIT (the arena is full). Headers that are
 * too large are an outcome of the stream: on_done follows with `rejected`. Nothing is written before the end of the
 * turn. The arena is the call's and must outlive the stream, which lies in it with the response's headers and trailers.
 * `events` is borrowed until on_done or cancel. */
struct tc_h2_stream *tc_h2_client_stream_open(struct tc_h2_conn *c, const struct tc_h2_request *request,
                                              struct tc_arena *arena, const struct tc_h2_client_events *events,
                                              void *arg, int *error);
/* Half-closes without a message, behind one that is under way. Returns TORC_ESTATE after the end or a half-close. */
int tc_h2_client_stream_send_end(struct tc_h2_stream *s);
/* Returns whether the request's headers left nghttp2. */
bool tc_h2_client_stream_sent(const struct tc_h2_stream *s);
/* Returns whether the outcome is known: on_done follows the messages that came before it. */
bool tc_h2_client_stream_finished(const struct tc_h2_stream *s);
/* Returns false if the request's headers are larger than max_request_header_bytes, or than the server takes: they never
 * leave. */
bool tc_h2_client_stream_sendable(const struct tc_h2_stream *s);

#endif
