/* The server's half of a call: a request that arrived, and the response to it. Loop thread only. */
#ifndef TC_HTTP2_SERVER_STREAM_H
#define TC_HTTP2_SERVER_STREAM_H

#include "http2/stream.h"

struct tc_h2_server_events {
    struct tc_h2_stream_events stream; /* first: a stream keeps a pointer to it */
    /* The client half-closed, and all its messages were delivered. Comes once, while a read is wanted. */
    void (*on_half_close)(void *arg);
    /* The stream is over. OK: the trailers were written. CANCELLED: the stream was reset before the trailers were
     * written, or the connection went. Another status: this side ended the stream (a message that was received is
     * malformed, too large or not whole, there is no memory for it, or a compressed message, the headers or the
     * trailers could not be sent). The last callback; the stream must not be used after it. Does not come after a
     * cancel, nor after tc_h2_conn_close. `why` is borrowed for the call. */
    void (*on_end)(void *arg, const struct tc_status *why);
    /* The message that is being sent is held compressed as well, in `bytes` bytes, until on_written or the end of the
     * stream. May be called from inside nghttp2, while frames are written: must not use the stream. */
    void (*on_compressed)(void *arg, size_t bytes);
};

/* Must be called inside the connection's on_stream: a stream that has no events when on_stream returns is reset. May be
 * called again later, to replace the events. `events` is borrowed until it is replaced or the stream is over. */
void tc_h2_server_stream_set_events(struct tc_h2_stream *s, const struct tc_h2_server_events *events, void *arg);
/* Returns the request's metadata with the pseudo-headers ":path" and ":authority"; borrowed until the stream is
 * over. */
const struct tc_headers *tc_h2_server_stream_request(const struct tc_h2_stream *s);
/* Returns the value of grpc-timeout: the time left when the request arrived; 0: none. */
uint64_t tc_h2_server_stream_timeout_ns(const struct tc_h2_stream *s);

/* Returns how many bytes the stream holds of what came: the block of undecoded bytes, the room of a message that is not
 * complete, a message that is not delivered, and the bytes of tc_h2_stream_keep. */
size_t tc_h2_stream_held(const struct tc_h2_stream *s);
/* Sets how many bytes of delivered messages the owner keeps until the request is whole: they count as held. */
void tc_h2_stream_keep(struct tc_h2_stream *s, size_t bytes);

/* Sets the limit for received messages, instead of the connection's max_receive_message_bytes. Called inside
 * on_stream. */
void tc_h2_server_stream_limit_messages(struct tc_h2_stream *s, size_t max_bytes);

/* Sends initial metadata (NULL: none), once, before the first message; without this call the first message sends empty
 * metadata. `encoding` is for the messages that follow, if the client accepts it. Returns TORC_ESTATE if headers or the
 * status were sent, or the stream is over. Headers beyond the client's MAX_HEADER_LIST_SIZE reset the stream: on_end
 * follows. */
int tc_h2_server_stream_send_headers(struct tc_h2_stream *s, const struct tc_headers *headers,
                                     enum tc_h2_encoding encoding);
/* Sends one message behind the headers. Returns the errors of tc_h2_stream_send. With `compress` and gzip as the
 * encoding, the message is compressed once the client's windows are open, and its size is checked only then: if it is
 * too large, the client gets RESOURCE_EXHAUSTED instead. */
int tc_h2_server_stream_send(struct tc_h2_stream *s, struct tc_slice message, bool compress);
/* Sends the end behind the messages: grpc-status, grpc-message, and trailers (NULL: none); trailers-only if nothing was
 * sent yet. Status and trailers are copied. Messages of the client that are not delivered, and later ones, are dropped.
 * Trailers beyond the client's MAX_HEADER_LIST_SIZE reset the stream: on_end follows. Returns TORC_ESTATE if the status
 * was sent or the stream is over. */
int tc_h2_server_stream_send_status(struct tc_h2_stream *s, const struct tc_status *status,
                                    const struct tc_headers *trailers);

#endif
