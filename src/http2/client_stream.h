/* The client's half of a call: the request that opens it, and the outcome that ends it. Loop thread only. */
#ifndef TC_HTTP2_CLIENT_STREAM_H
#define TC_HTTP2_CLIENT_STREAM_H

#include "http2/stream.h"

/* How a call ended. */
struct tc_h2_outcome {
    struct tc_status status;           /* from the trailers, or made on this side with a text that names the failure */
    const struct tc_headers *trailers; /* possibly empty; never NULL */
    bool unprocessed;   /* the server did not process the request (REFUSED_STREAM, an id above the GOAWAY's last, or
                           `unsent`): it may be retried transparently */
    bool unsent;        /* unprocessed, and the request's headers never left nghttp2 */
    bool rejected;      /* the request's headers are larger than max_request_header_bytes, or than the server takes:
                           nothing was sent, and another attempt on the connection would end in the same way */
    bool from_server;   /* the status came from the peer's trailers */
    bool trailers_only; /* the first header block (1xx aside) ended the stream: it was the trailers */
};

struct tc_h2_client_events {
    struct tc_h2_stream_events stream; /* first: a stream keeps a pointer to it */
    /* The response's initial metadata. Does not come for trailers-only, for a response that is not gRPC, nor for
     * headers that end the RPC (an unknown grpc-encoding, a -bin value that is not base64, headers beyond a limit).
     * Borrowed until the stream is over. */
    void (*on_headers)(void *arg, const struct tc_headers *headers);
    /* The end: the last callback. Comes exactly once, unless the owner cancels the stream, or closes the connection
     * while the outcome is not known. `outcome` is borrowed for the call.
     *
     * Whole messages that arrived before the end are delivered first, as they are asked for, whatever the end is:
     * trailers, RST_STREAM, GOAWAY, the end of the connection, a failure found on this side. Messages that wait are
     * dropped only if there is no memory for their bytes, or if the message before them cannot be decoded. */
    void (*on_done)(void *arg, const struct tc_h2_outcome *outcome);
};

/* The request that starts a call. Borrowed by tc_h2_client_stream_open until it returns: nghttp2 copies the fields. */
struct tc_h2_request {
    struct tc_slice path; /* "/package.Service/Method" */
    struct tc_slice authority;
    struct tc_slice user_agent;        /* empty: none is sent */
    uint64_t timeout_ns;               /* grpc-timeout; 0: none */
    enum tc_h2_encoding encoding;      /* grpc-encoding of the messages that we send */
    uint32_t previous_attempts;        /* grpc-previous-rpc-attempts when > 0 */
    const struct tc_headers *metadata; /* the application's and filters'; NULL: none. Names that gRPC reserves are left
                                          out (tc_h2_metadata_encode) */
    const struct tc_headers *auth;     /* of call credentials, sent after the metadata in the same way; NULL: none */
    bool has_limits;                   /* the two limits below replace the connection's */
    bool aside; /* not an RPC of the application: its end does not count for tc_h2_conn_answered */
    /* 0 allows only empty messages. max_send_message_bytes is for the size after compression. */
    size_t max_receive_message_bytes, max_send_message_bytes;
};

/* Opens a stream. Returns NULL with *error:
 *
 *   TORC_EAGAIN   at MAX_CONCURRENT_STREAMS, or before the server's SETTINGS; on_capacity follows
 *   TORC_ECLOSED  the connection is draining, failed or closed, or its stream numbers are used up
 *   TORC_ELIMIT   the arena is full
 *
 * Headers that are too large are an outcome of the stream: on_done follows with `rejected`. The arena is the call's. It
 * holds the stream and the response's headers and trailers, and must outlive them. `events` is borrowed until the
 * stream is over: until on_done, tc_h2_stream_cancel, or a tc_h2_conn_close that ends the stream. */
struct tc_h2_stream *tc_h2_client_stream_open(struct tc_h2_conn *c, const struct tc_h2_request *request,
                                              struct tc_arena *arena, const struct tc_h2_client_events *events,
                                              void *arg, int *error);
/* Half-closes, after the message that is under way if there is one. Returns 0, or TORC_ESTATE after the end or a
 * half-close. */
int tc_h2_client_stream_send_end(struct tc_h2_stream *s);
/* Returns whether the request's headers left nghttp2. */
bool tc_h2_client_stream_sent(const struct tc_h2_stream *s);
/* Returns whether the outcome is known: on_done follows the messages that came before it. */
bool tc_h2_client_stream_finished(const struct tc_h2_stream *s);
/* Returns false if the request's headers are larger than max_request_header_bytes, or than the server takes: they never
 * leave. */
bool tc_h2_client_stream_sendable(const struct tc_h2_stream *s);

#endif
