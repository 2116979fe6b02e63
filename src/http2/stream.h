/* A gRPC call on an HTTP/2 connection, both sides: headers, length-prefixed messages, trailers
 * (gRPC's PROTOCOL-HTTP2.md).
 *
 * Reading is by demand: tc_h2_stream_read asks for one message; without demand received bytes stay within the stream's
 * flow-control window. Writing takes one message at a time: on_written says that the next may come. */
#ifndef TC_HTTP2_STREAM_H
#define TC_HTTP2_STREAM_H

#include "http2/conn.h"

enum tc_h2_encoding { TC_H2_IDENTITY = 0, TC_H2_GZIP = 1 };

/* How a client's call ended. */
struct tc_h2_outcome {
    struct tc_status status;           /* from the trailers, or made up for what went wrong, with a text that says so */
    const struct tc_headers *trailers; /* possibly empty; never NULL */
    bool unprocessed; /* the server never saw it (REFUSED_STREAM, GOAWAY below our id): may be retried transparently */
    bool unsent;      /* unprocessed, since it never left */
    bool from_server; /* the status came from the peer's trailers */
    bool trailers_only; /* the headers were the trailers */
};

struct tc_h2_stream_events {
    /* Client: the response's initial metadata (not for trailers-only). Borrowed until on_done. */
    void (*on_headers)(void *arg, const struct tc_headers *headers);
    /* One whole message, decompressed, after tc_h2_stream_read; the callee owns the reference. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* Server: the client half-closed after its last message (comes only while a read is wanted). */
    void (*on_half_close)(void *arg);
    /* The message given to send was handed to the socket as far as flow control goes; another may come. */
    void (*on_written)(void *arg);
    /* Client: the end; always the last callback, exactly once unless cancelled by the owner. Messages that arrived
     * before the trailers are delivered first, as they are asked for. */
    void (*on_done)(void *arg, const struct tc_h2_outcome *outcome);
    /* Server: the stream is over: the client cancelled (CANCELLED), the connection went (UNAVAILABLE), or the trailers
     * were written (OK). The last callback. */
    void (*on_end)(void *arg, const struct tc_status *why);
};

/* What starts a client's call. All borrowed; must live until on_done or cancel (they live in the call's arena). */
struct tc_h2_request {
    struct tc_slice path; /* "/package.Service/Method" */
    struct tc_slice authority;
    struct tc_slice scheme; /* "http" or "https" */
    struct tc_slice user_agent;
    uint64_t timeout_ns;               /* grpc-timeout; 0: none */
    enum tc_h2_encoding encoding;      /* grpc-encoding of what we send */
    bool accept_gzip;                  /* grpc-accept-encoding: identity,gzip in place of identity */
    uint32_t previous_attempts;        /* grpc-previous-rpc-attempts when > 0 */
    const struct tc_headers *metadata; /* the application's and filters'; reserved names (":", "grpc-", te,
                                          content-type, connection-specific) were refused before */
    const struct tc_headers *auth;     /* of call credentials, after the metadata; NULL: none */
    size_t max_receive_message_bytes;  /* 0: the connection's */
};

/* The gRPC status code of an HTTP status in place of one (gRPC's http-grpc-status-mapping.md). */
int tc_h2_code_from_http(unsigned http_status);

/* Client: opens a stream. NULL with *error: TORC_EAGAIN (at MAX_CONCURRENT_STREAMS: on_capacity follows), TORC_ECLOSED
 * (draining or closed). Nothing is written before the end of the turn. The arena is the call's: response headers and
 * trailers are copied there. */
struct tc_h2_stream *tc_h2_stream_open(struct tc_h2_conn *c, const struct tc_h2_request *request,
                                       struct tc_arena *arena, const struct tc_h2_stream_events *events, void *arg,
                                       int *error);
/* Server, inside on_stream. */
void tc_h2_stream_set_events(struct tc_h2_stream *s, const struct tc_h2_stream_events *events, void *arg);
/* Server: the request's metadata with pseudo-headers (":path", ":authority"), borrowed until on_end. */
const struct tc_headers *tc_h2_stream_request(const struct tc_h2_stream *s);
/* Server: the deadline's remaining time from grpc-timeout, 0: none. */
uint64_t tc_h2_stream_timeout_ns(const struct tc_h2_stream *s);

/* Sends one message; the bytes are borrowed until on_written, on_done, on_end or cancel returned. `compress`: with the
 * stream's encoding (a message may stay uncompressed). `end`: half-close after it (client). TORC_ESTATE while one is
 * under way or after the end; TORC_ELIMIT beyond max_send_message_bytes. */
int tc_h2_stream_send(struct tc_h2_stream *s, struct tc_slice message, bool compress, bool end);
/* Client: half-close without a message. */
int tc_h2_stream_send_end(struct tc_h2_stream *s);
/* Server: initial metadata; sent before the first message in any case. `encoding` for what follows. */
int tc_h2_stream_send_headers(struct tc_h2_stream *s, const struct tc_headers *headers, enum tc_h2_encoding encoding);
/* Server: the end: grpc-status, grpc-message, and trailers. Trailers-only when nothing was sent yet. Further client
 * messages are discarded. */
int tc_h2_stream_send_status(struct tc_h2_stream *s, const struct tc_status *status, const struct tc_headers *trailers);
/* Wants one more message. */
void tc_h2_stream_read(struct tc_h2_stream *s);
/* Resets the stream with an HTTP/2 error code (8: CANCEL) unless it has ended, forgets it; no callback after. A client
 * stream that had its on_done, and a server stream that had its on_end, is forgotten already. */
void tc_h2_stream_cancel(struct tc_h2_stream *s, uint32_t h2_error);
/* NULL after the owner closed the connection under an open stream (tc_h2_conn_close). */
struct tc_h2_conn *tc_h2_stream_conn(const struct tc_h2_stream *s);

#endif
