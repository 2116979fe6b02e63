/* A gRPC call on an HTTP/2 connection: the part that clients and servers share (gRPC's PROTOCOL-HTTP2.md). A client's
 * call begins in http2/client_stream.h, a server's in http2/server_stream.h.
 *
 * Reading is by demand: tc_h2_stream_read asks for one message; without demand received bytes stay within the stream's
 * flow-control window. Writing takes one message at a time: on_written says that the next may come. Loop thread
 * only. */
#ifndef TC_HTTP2_STREAM_H
#define TC_HTTP2_STREAM_H

#include "base/arena.h"
#include "base/headers.h"
#include "base/rstr.h"
#include "base/status.h"
#include "http2/encoding.h"

struct tc_h2_conn;
struct tc_h2_stream;

/* Error codes of HTTP/2 (RFC 9113 7) that owners of streams use. */
enum tc_h2_error { TC_H2_REFUSED_STREAM = 7, TC_H2_CANCEL = 8, TC_H2_ENHANCE_YOUR_CALM = 11 };

/* The largest message whose length gRPC's prefix can hold. */
#define TC_H2_MESSAGE_MAX UINT32_MAX

/* Events of either side. Each may be NULL. */
struct tc_h2_stream_events {
    /* One whole message, decompressed, after tc_h2_stream_read; the callee owns the reference. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* The message given to send is no longer needed. Either flow control let all of it through, and the next may be
     * sent; or a client's stream has ended after its headers were sent. A stream that ends under a message may also
     * have on_done or on_end without on_written. */
    void (*on_written)(void *arg);
};

/* Sends one message. The bytes are borrowed until on_written, on_done or on_end is called, or until a cancel, or a
 * tc_h2_conn_close that ends the stream, has returned. `compress`: with the stream's encoding (a message may stay
 * uncompressed). `end`: half-closes after the message; false on a server, which sends with tc_h2_server_stream_send.
 * Returns 0, or with nothing sent and nothing borrowed:
 *
 *   TORC_ESTATE   the previous message has not had its on_written, the stream was half-closed (a server: its status was
 *                 sent), the outcome is known, or the stream is over
 *   TORC_ELIMIT   the message, after compression, is larger than max_send_message_bytes or TC_H2_MESSAGE_MAX */
int tc_h2_stream_send(struct tc_h2_stream *s, struct tc_slice message, bool compress, bool end);
/* Returns the size, after compression, of the message that tc_h2_stream_send last rejected with TORC_ELIMIT. */
size_t tc_h2_stream_rejected_bytes(const struct tc_h2_stream *s);
/* Asks for one more message. Requests add up. Does nothing to a client's stream that is over. */
void tc_h2_stream_read(struct tc_h2_stream *s);
/* Resets the stream with an HTTP/2 error code unless it has ended, and forgets it; no callback follows, and a server's
 * stream is freed. Does nothing to a client's stream that had its on_done. A server's stream must not be used after its
 * on_end. */
void tc_h2_stream_cancel(struct tc_h2_stream *s, uint32_t h2_error);
/* Returns the stream's connection; of a client's stream NULL from on_done on, after a cancel, and after a
 * tc_h2_conn_close that ended the stream. */
struct tc_h2_conn *tc_h2_stream_conn(const struct tc_h2_stream *s);

#endif
