/* The inside of the server's half of a stream, for a server's files (packing.c among them), and for session.c,
 * receive.c, streams.c and write.c, which serve both halves. Loop thread only. */
#ifndef TC_HTTP2_SERVER_STREAM_INTERNAL_H
#define TC_HTTP2_SERVER_STREAM_INTERNAL_H

#include "http2/server_stream.h"
#include "http2/stream_internal.h"

struct tc_h2_server_stream {
    struct tc_h2_stream stream;
    struct tc_arena own_arena;              /* for the request's headers and the trailers */
    struct tc_h2_server_stream *next_spare; /* a spare stream uses this member and own_arena alone; the rest is
                                               poisoned */

    bool on_stream_due; /* the owner is to hear of the request */
    bool rejected;      /* answered by us: the owner never sees the call */
    bool responded;     /* response headers, or trailers-only, were submitted, or were larger than the client takes */
    bool half_close_notified;
    bool aborted; /* the response ends with a status that is not the handler's */

    /* The contents of the request's headers. */
    bool is_post, has_authority, has_timeout, bad_timeout, bad_base64, accepts_gzip;
    const char *unknown_encoding; /* in the arena; NULL: the encoding is known, or none was named */
    struct tc_slice path;
    uint64_t timeout_ns; /* 0: none */

    /* packing.c */
    bool packing;                /* the active message is still to be compressed */
    struct tc_h2_packer *packer; /* NULL: not begun */
    struct tc_link packing_link; /* in streams.packing */

    /* The end of the response, kept until the messages before it are sent. */
    struct tc_headers trailers; /* in the arena */
    struct tc_status status;
};

/* Returns true if the connection is a server's. False at compile time in a library without servers, so that the
 * compiler drops code that only servers need. */
static inline bool tc_h2_conn_serves(const struct tc_h2_conn *c)
{
    return TC_WITH_SERVERS && c->opts.server;
}
/* Returns true if the stream is a server's half; false at compile time in a library without servers. */
static inline bool tc_h2_stream_serves(const struct tc_h2_stream *s)
{
    return TC_WITH_SERVERS && s->server;
}

static inline struct tc_h2_server_stream *tc_h2_server_stream_of(struct tc_h2_stream *s)
{
    return TC_CONTAINER_OF(s, struct tc_h2_server_stream, stream);
}

/* --- server_stream.c --- */

/* Makes the stream of a request whose header block begins; the connection owns it. Never returns NULL. */
struct tc_h2_stream *tc_h2_server_stream_new(struct tc_h2_conn *c, int32_t id);
/* Frees the stream, which was taken off the connection, or keeps it as a spare for a later request. */
void tc_h2_server_stream_free(struct tc_h2_conn *c, struct tc_h2_server_stream *s);
/* Ends the call with `status`, for a failure that was found on this side, unless the owner has sent a status already.
 * Drops undelivered messages. Takes over the status. */
void tc_h2_server_stream_abort(struct tc_h2_server_stream *s, struct tc_status status);
/* The data source has come to the end of the messages: submits the trailers. */
void tc_h2_server_stream_submit_trailers(struct tc_h2_server_stream *s);
/* nghttp2 closed the stream. The outcome is CANCELLED if the trailers were not sent, else the status of an abort, or
 * OK. */
void tc_h2_server_stream_on_close(struct tc_h2_server_stream *s, uint32_t h2_error);
/* nghttp2 or the connection let go of the stream: `status`, which is taken over, becomes the outcome if the stream has
 * none. A stream that was rejected is freed. */
void tc_h2_server_stream_on_lost(struct tc_h2_server_stream *s, struct tc_status status);
/* Calls the owner with all that is due. May free the stream. */
void tc_h2_server_stream_deliver(struct tc_h2_server_stream *s);

/* --- server_request.c --- */

/* Takes a field of a header block of the request; ignores trailers. */
void tc_h2_server_stream_on_header(struct tc_h2_server_stream *s, struct tc_slice name, struct tc_slice value);
/* A header block is complete. Announces the request or rejects it, after its first block. */
void tc_h2_server_stream_on_block(struct tc_h2_server_stream *s, bool end_stream);

/* --- packing.c --- */

/* Has the stream's active message compressed before it is sent. */
void tc_h2_packing_begin(struct tc_h2_server_stream *s);
/* Ends the compressing, if it runs: the message is ready, or the stream sends no more. */
void tc_h2_packing_end(struct tc_h2_server_stream *s);
/* Compresses for the streams in streams.packing, in their order, as far as the loop's ration goes. */
void tc_h2_packing_go_on(struct tc_h2_conn *c);
/* tc_h2_on_data_source_read for a stream whose encoding is gzip. */
ssize_t tc_h2_packing_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                           nghttp2_data_source *source, void *user_data);

#endif
