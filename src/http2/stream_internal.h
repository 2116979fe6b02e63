/* The inside of a stream that clients and servers share: the first member of struct tc_h2_client_stream, which lies in
 * the arena of its call, and of struct tc_h2_server_stream, which the connection owns. Loop thread only. */
#ifndef TC_HTTP2_STREAM_INTERNAL_H
#define TC_HTTP2_STREAM_INTERNAL_H

#include "http2/connection_internal.h"
#include "http2/metadata.h"
#include "http2/stream.h"
#include "http2/stream_halves.h"
#include "io/ration.h"

struct tc_h2_stream {
    struct tc_h2_conn *c;       /* NULL: the stream is over for its owner: on_done, a cancel, or tc_h2_conn_close */
    struct tc_link link, ready; /* in streams.all; in at most one of streams.ready, delivered and resting */
    const struct tc_h2_stream_events *events; /* a server's: NULL until tc_h2_server_stream_set_events */
    void *arg;
    struct tc_arena *arena; /* of the headers: the client call's, or the server stream's own */
    int32_t id;             /* -1: nghttp2 does not hold the stream */
    bool server;            /* which half: struct tc_h2_server_stream or struct tc_h2_client_stream */
    bool got_headers;       /* the first header block that counts is complete */
    bool is_grpc;           /* gRPC's content-type; of a response: and status 200 */
    bool finished;          /* `outcome` is set; a client's is delivered behind the messages that came before it */
    struct tc_status outcome;
    struct tc_headers headers; /* of the response, or the request's */
    struct tc_h2_header_block block;
    struct tc_h2_receiver recv;
    struct tc_h2_sender send;
};

/* Returns true while nghttp2 holds the stream. */
static inline bool tc_h2_stream_live(const struct tc_h2_stream *s)
{
    return s->c && s->c->ng && s->id > 0;
}

/* --- stream.c --- */

/* Sets up a zeroed stream and puts it in streams.all. Borrows the arena until the stream is over. The caller sets the
 * members that the two halves fill in differently: id, events, arg, server. */
void tc_h2_stream_init(struct tc_h2_stream *s, struct tc_h2_conn *c, struct tc_arena *arena);
/* Has the stream's due events delivered from the loop. A stream that rests goes on resting. */
void tc_h2_stream_ready(struct tc_h2_stream *s);
/* Has nghttp2 ask the data source again: there is a message, or the end, to send. */
void tc_h2_stream_resume(struct tc_h2_stream *s);
/* Submits RST_STREAM. The stream must be live. */
void tc_h2_stream_submit_reset(struct tc_h2_stream *s, uint32_t h2_error);
/* Submits RST_STREAM if the stream is live. */
static inline void tc_h2_stream_reset(struct tc_h2_stream *s, uint32_t h2_error)
{
    if (tc_h2_stream_live(s))
        tc_h2_stream_submit_reset(s, h2_error);
}
/* Drops messages that were received and not delivered, and later DATA and header fields. */
void tc_h2_stream_drop_input(struct tc_h2_stream *s);
/* Takes over `status` as the outcome, and has it delivered. Returns false, and drops `status`, if an outcome was set
 * before. */
static inline bool tc_h2_stream_set_outcome(struct tc_h2_stream *s, struct tc_status status)
{
    if (s->finished) {
        tc_status_fini(&status);
        return false;
    }
    s->finished = true;
    s->outcome = status;
    tc_h2_stream_ready(s);
    return true;
}
/* Counts recv.held again on a server's stream, and has on_held called if that is due. */
void tc_h2_stream_held_changed(struct tc_h2_stream *s);

/* --- receive.c --- */

/* Returns true while the stream must not decode: its encoding is gzip, and the loop's ration is used up. */
static inline bool tc_h2_stream_must_rest(const struct tc_h2_stream *s)
{
    return s->recv.decoder.encoding == TC_H2_GZIP && tc_ration_used_up(tc_loop_ration(s->c->loop));
}
/* Takes content of a DATA frame. If a message is asked for, neither older bytes nor a decoded message wait and the
 * stream need not rest, decodes up to one message. Keeps the rest in recv.pending. Content of a response that is not
 * gRPC goes to tc_h2_response_on_body. */
void tc_h2_stream_on_data(struct tc_h2_stream *s, const uint8_t *data, size_t len);
/* Decodes waiting bytes up to one message, if a message is asked for, none waits for delivery and the stream need not
 * rest. */
void tc_h2_stream_decode_pending(struct tc_h2_stream *s);
/* Drops later DATA and header fields, and the beginning of a message whose end will not come. Keeps the whole messages
 * that were received and not delivered. */
void tc_h2_stream_end_input(struct tc_h2_stream *s);
/* Returns true if a message waits for delivery, or bytes wait to be decoded. */
static inline bool tc_h2_stream_input_left(const struct tc_h2_stream *s)
{
    return s->recv.message || s->recv.pending.data;
}

/* --- write.c --- */

/* The data source of a stream, for nghttp2: returns how many bytes the next DATA frame carries, and sets flags for the
 * end behind them. Leaves `buf` alone: tc_h2_on_send_data gathers the bytes. */
ssize_t tc_h2_on_data_source_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                                  nghttp2_data_source *source, void *user_data);
/* nghttp2's send_data callback: gathers one DATA frame. Returns NGHTTP2_ERR_PAUSE once the gather is full. */
int tc_h2_on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head, size_t length,
                       nghttp2_data_source *source, void *user_data);

/* --- streams.c --- */

/* Takes the stream off the connection and frees its contents (a server's: itself). May free a closed connection. */
void tc_h2_stream_release(struct tc_h2_stream *s);
/* Has streams.resting and streams.packing go on after others of the loop had their turn. */
void tc_h2_conn_rest(struct tc_h2_conn *c);
/* Puts the stream on streams.resting, until others of the loop had their turn. No effect if it is on a list already. */
void tc_h2_stream_rest(struct tc_h2_stream *s);
/* Delivers a bounded number of the messages that are wanted. If more are left, puts the stream on streams.ready or
 * streams.resting. Returns false if the stream went in a callback. */
bool tc_h2_stream_deliver_messages(struct tc_h2_conn *c, struct tc_h2_stream *s);
/* Returns true if the stream that was being delivered has gone: released in a callback of its owner. */
static inline bool tc_h2_stream_went(const struct tc_h2_conn *c, const struct tc_h2_stream *s)
{
    return c->streams.delivering != s;
}
/* Calls on_written if it is due. Returns false if the stream went in the callback. */
static inline bool tc_h2_stream_deliver_written(const struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    if (!s->send.on_written_due)
        return true;
    s->send.on_written_due = false;
    tc_rstr_clear(&s->send.compressed); /* no write borrows it: write.c copies what the socket did not take */
    if (s->events->on_written)
        s->events->on_written(s->arg);
    return !tc_h2_stream_went(c, s);
}

#endif
