/* The inside of the client's half of a stream, for a client's files, and for session.c, receive.c and streams.c, which
 * serve both halves. Loop thread only. */
#ifndef TC_HTTP2_CLIENT_STREAM_INTERNAL_H
#define TC_HTTP2_CLIENT_STREAM_INTERNAL_H

#include "http2/client_stream.h"
#include "http2/stream_internal.h"

enum { TC_H2_STATUS_NONE = -1, TC_H2_STATUS_INVALID = -2 };

struct tc_h2_client_stream {
    struct tc_h2_stream stream;
    struct tc_headers trailers;

    /* The contents of the header block under way, or of the last one; but trailers that follow the response's headers
     * leave http_status, content_type and bad_encoding as they were. The slices lie in the arena. */
    int grpc_status; /* a status, TC_H2_STATUS_NONE, or TC_H2_STATUS_INVALID: not a status of gRPC */
    uint16_t http_status;
    uint16_t informational; /* responses with a status of 1xx so far */
    struct tc_slice grpc_message, content_type;
    struct tc_slice bad_status, bad_encoding; /* values that this side does not know */
    struct tc_slice bad_header;               /* the name of a -bin header that is not base64; empty: none */
    struct tc_buf body; /* the beginning of a body that is not gRPC; freed when the stream is released */

    bool on_headers_due; /* on_headers is to be called */
    bool trailers_only;
    bool from_server, unprocessed; /* of the outcome */
    bool unsendable;               /* the request's headers are too large for our limit or the server's */
    bool aside;                    /* tc_h2_request.aside */
};

static inline struct tc_h2_client_stream *tc_h2_client_stream_of(struct tc_h2_stream *s)
{
    return TC_CONTAINER_OF(s, struct tc_h2_client_stream, stream);
}

/* --- client_stream.c --- */

/* Sets the outcome unless it is set already; stops sending if END_STREAM was received. Takes over the status. */
void tc_h2_client_stream_finish(struct tc_h2_client_stream *s, struct tc_status status, bool from_server);
/* Ends the stream for a failure that was found on this side, and tells the peer by RST_STREAM. Whole messages that were
 * received before are still delivered. Takes over the status. */
void tc_h2_client_stream_abort(struct tc_h2_client_stream *s, struct tc_status status, uint32_t h2_error);
/* Ends the stream because a message cannot be decoded, or received bytes cannot be kept. Drops messages that were
 * received and not delivered. Replaces an earlier outcome. Takes over the status. */
void tc_h2_client_stream_give_up(struct tc_h2_client_stream *s, struct tc_status status);
/* Drops the rest of the message under way, if there is one: resets the stream with NO_ERROR, and has on_written called
 * if the request's headers were sent. */
void tc_h2_client_stream_stop_sending(struct tc_h2_client_stream *s);
/* nghttp2 closed the stream: the outcome follows from the error code and a GOAWAY, unless the call has one. */
void tc_h2_client_stream_on_close(struct tc_h2_client_stream *s, uint32_t h2_error);
/* The connection is gone: its reason becomes the outcome, unless the call has one. */
void tc_h2_client_stream_on_conn_lost(struct tc_h2_client_stream *s);
/* Calls the owner's due callbacks; messages beyond a bounded number wait for a later delivery (streams.c). The stream
 * may be over afterwards, and its memory freed by the owner. */
void tc_h2_client_stream_deliver(struct tc_h2_client_stream *s);

/* --- client_request.c --- */

/* Submits the request's headers and sets the stream's id. Returns 0 or an nghttp2 error. */
int tc_h2_request_submit(struct tc_h2_client_stream *s, const struct tc_h2_request *request);
/* Returns the size of a request's header list as RFC 9113 6.5.2 counts it, or a little more. */
size_t tc_h2_request_size(const struct tc_h2_request *request);

/* --- client_response.c --- */

/* A header block begins. */
void tc_h2_response_begin(struct tc_h2_client_stream *s);
/* A field of the header block. */
void tc_h2_response_on_header(struct tc_h2_client_stream *s, struct tc_slice name, struct tc_slice value);
/* A header block is complete: initial metadata, trailers, or an informational response. */
void tc_h2_response_on_block(struct tc_h2_client_stream *s, bool end_stream);
/* The block is beyond the limit, or the arena is full: ends the RPC. */
void tc_h2_response_too_large(struct tc_h2_client_stream *s);
/* END_STREAM came on DATA. */
void tc_h2_response_on_end(struct tc_h2_client_stream *s);
/* Takes a piece of a body that is not gRPC. The body's beginning goes into the status's text; the RPC ends once enough
 * of it came. */
void tc_h2_response_on_body(struct tc_h2_client_stream *s, const uint8_t *data, size_t len);

#endif
