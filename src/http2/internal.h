/* What the files of this folder share: the inside of a connection and of a stream. */
#ifndef TC_HTTP2_INTERNAL_H
#define TC_HTTP2_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/parse.h"
#include "http2/framing.h"
#include "http2/stream.h"

struct tc_h2_gather;

/* Bandwidth estimate: bytes that came between a ping and its answer. */
struct tc_h2_bdp {
    bool running;
    uint64_t bytes;         /* since the ping */
    uint64_t sent_ns;       /* when the ping was queued */
    uint64_t not_before_ms; /* no ping earlier */
    uint64_t delay_ms;      /* between pings while the estimate stands */
    double bandwidth;       /* highest seen, bytes a second */
    uint32_t window_bytes;  /* of streams, now */
};

struct tc_h2_keepalive_state {
    struct tc_timer timer;
    bool waiting; /* a ping is out, and nothing came after it */
    bool dormant; /* nothing to watch until a stream opens */
    uint64_t last_read_ms;
    /* Server: pings of the peer. */
    uint64_t last_ping_ms;
    unsigned strikes;
    bool pinged; /* since we last sent headers or data */
};

/* Frames and the bytes in them, counted in one number. */
#define TC_H2_FRAME_OF(bytes) (((int64_t)1 << 32) + (int64_t)(bytes))

/* The heads of the frames that come. */
struct tc_h2_heads {
    uint32_t left; /* bytes until the next head */
    uint8_t have, piece[9];
    uint32_t late_bytes; /* what streams that we reset may still send in all */
    uint32_t dropped;    /* of header fields, not yet counted */
    int64_t hidden;      /* TC_H2_FRAME_OF those of known types that nghttp2 was given and did not show, or not yet */
    uint32_t ended[32];  /* streams that the peer has ended, by their numbers */
};

struct tc_h2_conn {
    struct tc_loop *loop;
    struct tc_bytestream *bs; /* NULL once closed */
    nghttp2_session *ng;
    struct tc_h2_opts opts;
    const struct tc_h2_conn_events *events;
    void *arg;
    struct tc_addr peer, local;

    struct tc_link streams; /* of struct tc_h2_stream, all that have not ended for their owner */
    struct tc_link ready;   /* those with something to deliver */
    size_t n_streams;
    size_t active;                       /* streams that nghttp2 holds, those we have forgotten included */
    struct tc_task deliver, flush, more; /* more: bytes are left to read, after others had their turn */
    struct tc_h2_stream *delivering;     /* NULL again when it goes during its own callback */
    struct tc_h2_stream *in_block;       /* whose header block nghttp2 is decoding; NULL again when it goes */
    struct tc_h2_stream *opened_for;     /* whose window is open for a whole message that comes */
    uint32_t unconsumed;                 /* bytes of DATA that nghttp2 was not told of as taken */
    size_t inflated;                     /* bytes made of compressed messages since others had their turn */
    bool resting;                        /* deliver waits for that */

    bool settings_seen, ready_told;
    bool capacity_wanted; /* open_stream was refused */
    bool secure;
    bool draining, drain_due, drain_sent;
    bool goaway_seen; /* the peer sent GOAWAY */
    bool goaway_last; /* we sent ours with the last stream's number */
    bool too_many_pings;
    bool failed;              /* the connection is dead: on_closed is due or was told */
    bool closed_told, closed; /* on_closed was called; the owner closed */
    bool in_flush, write_blocked;
    unsigned busy;              /* our own functions are at work on it: not to be freed */
    const char *terminate_text; /* found inside nghttp2: to be ended with GOAWAY, and the code */
    uint32_t terminate_code;
    int32_t goaway_last_id;
    uint32_t empty_frames; /* DATA without content since the last that had some */
    /* Frames of the peer's that carry nothing, less what our own DATA may make it answer; since when they are counted.
     */
    int64_t bare_frames;
    uint64_t bare_since_ms;
    struct tc_h2_heads heads;
    struct tc_status why; /* why it failed or drains */

    struct tc_buf left; /* gathered, and not taken by the socket yet */
    size_t left_at;
    struct tc_h2_gather *gather; /* while flushing */
    struct tc_buf scratch;
    struct tc_h2_stream *spare; /* server: for the next requests */
    unsigned n_spare;
    struct tc_timer quiet; /* no stream for a while: memory goes back */
    uint64_t quiet_since_ms;

    struct tc_h2_bdp bdp;
    struct tc_h2_keepalive_state keepalive;
    struct tc_timer age; /* server: max age, then the grace; both: the wait for the answer to a graceful GOAWAY */
    enum { TC_H2_AGE_OFF, TC_H2_AGE_LIMIT, TC_H2_AGE_NOTICE, TC_H2_AGE_GRACE } age_state;
};

struct tc_h2_stream {
    struct tc_h2_conn *c; /* NULL: the owner closed the connection */
    struct tc_link link, ready;
    const struct tc_h2_stream_events *events;
    void *arg;
    struct tc_arena *arena; /* the call's, or own_arena */
    int32_t id;             /* -1: nghttp2 holds it no more, or never did */
    bool server;

    /* Receiving. */
    struct tc_headers headers, trailers; /* server: headers are the request's */
    struct tc_headers *block;            /* what the header block under way goes to */
    size_t block_bytes, max_header_bytes;
    unsigned informational;
    bool block_over; /* the block exceeds the limit; its rest is ignored */
    bool headers_told, got_headers, headers_due;
    bool remote_ended; /* END_STREAM was received */
    bool trailers_only;
    bool is_grpc; /* the response has gRPC's content-type and status 200 */
    bool discard; /* what still comes is of no interest */
    uint16_t http_status;
    int grpc_status; /* of the block under way or the last one; -1: none, -2: not a number of gRPC */
    struct tc_slice grpc_message, content_type, bad_encoding, bad_status;
    struct tc_slice bad_header; /* a -bin header that is no base64 */
    struct tc_h2_decoder decoder;
    uint32_t unconsumed;   /* bytes taken that nghttp2 was not told of */
    struct tc_buf pending; /* received, not yet decoded: nobody asked for it */
    size_t pending_at;
    unsigned wanted;         /* messages asked for */
    struct tc_rstr *message; /* the next to deliver */
    struct tc_buf body;      /* the beginning of a body that is no gRPC */

    /* The end. */
    bool finished; /* outcome is set; told when the messages before it are */
    bool from_server, unprocessed;
    struct tc_status outcome;

    /* Sending. */
    struct tc_slice out; /* the message under way */
    struct tc_rstr *out_compressed;
    size_t out_at; /* of prefix and message together */
    uint8_t out_prefix[TC_H2_PREFIX_LEN];
    bool sending, written_due;
    bool end_wanted, end_sent; /* half-close, or the server's trailers */
    bool deferred;             /* nghttp2 asks no more for data until it is told to */
    bool headers_sent;         /* our first HEADERS left nghttp2 */
    bool reset_sent;           /* so did our RST_STREAM, for what nghttp2 found or we asked for */
    enum tc_h2_encoding encoding;

    /* Server. */
    struct tc_arena own_arena;
    struct tc_h2_stream *next_spare;
    bool announce;  /* on_stream is due */
    bool refused;   /* answered by us, the owner never sees it */
    bool responded; /* response headers were submitted */
    bool half_close_told;
    bool is_post;
    struct tc_slice path;
    uint64_t timeout_ns;
    bool bad_timeout, bad_base64, unknown_encoding, accepts_gzip;
    struct tc_headers out_trailers; /* in the arena */
    struct tc_status out_status;
};

/* conn.c */
/* The connection is dead: every stream ends, on_closed follows. Takes over the status. */
void tc_h2_conn_fail(struct tc_h2_conn *c, struct tc_status why);
/* Sends GOAWAY with a code and fails the connection once that is out. */
void tc_h2_conn_terminate(struct tc_h2_conn *c, uint32_t h2_error, const char *debug_text);
void tc_h2_conn_start_drain(struct tc_h2_conn *c, struct tc_status why);
/* Closes a draining connection whose last stream has gone. */
void tc_h2_conn_check_drained(struct tc_h2_conn *c);
void tc_h2_conn_deliver_later(struct tc_h2_conn *c);
/* The second GOAWAY of a graceful end: it names the last stream that is served. */
void tc_h2_conn_send_last_goaway(struct tc_h2_conn *c);
/* A stream has left nghttp2: a slot may be free. */
void tc_h2_conn_stream_gone(struct tc_h2_conn *c);
/* Frees the connection when nothing needs it any more. */
void tc_h2_conn_release(struct tc_h2_conn *c);
/* session.c: makes the nghttp2 session. */
bool tc_h2_session_init(struct tc_h2_conn *c);

/* conn_io.c */
/* Forgets what is gathered and not sent. */
void tc_h2_conn_drop_left(struct tc_h2_conn *c);
void tc_h2_conn_flush_later(struct tc_h2_conn *c);
void tc_h2_conn_flush(struct tc_h2_conn *c);
void tc_h2_conn_on_event(void *arg, unsigned events);
void tc_h2_conn_on_more(struct tc_task *task);
ssize_t tc_h2_on_data_source_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                                  nghttp2_data_source *source, void *user_data);
int tc_h2_on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head, size_t length,
                       nghttp2_data_source *source, void *user_data);

/* stream.c */
void tc_h2_stream_init(struct tc_h2_stream *s, struct tc_h2_conn *c, struct tc_arena *arena);
/* Sets the outcome, unless there is one, and lets it be told. Takes over the status. */
void tc_h2_stream_finish(struct tc_h2_stream *s, struct tc_status status, bool from_server);
/* The same for a failure that is ours: what was received is dropped, and the peer is told by RST_STREAM. */
void tc_h2_stream_abort(struct tc_h2_stream *s, struct tc_status status, uint32_t h2_error);
/* Client: the response has ended: the rest of the message under way is not sent, and its writer is told. */
void tc_h2_stream_stop_sending(struct tc_h2_stream *s);
/* There is something for the data source to send. */
void tc_h2_stream_resume(struct tc_h2_stream *s);
/* Takes the stream off the connection and frees what it holds (a server's stream: itself). */
void tc_h2_stream_release(struct tc_h2_stream *s);
void tc_h2_stream_ready(struct tc_h2_stream *s);
/* Calls the owner with all that is due. (deliver.c) */
void tc_h2_stream_deliver(struct tc_h2_stream *s);
/* So much was inflated that others have their turn first; what is compressed waits. */
#define TC_H2_INFLATED_AT_ONCE (1024u * 1024u)
/* Decodes what waits, as far as messages are asked for. */
void tc_h2_stream_pump(struct tc_h2_stream *s);
void tc_h2_stream_on_data(struct tc_h2_stream *s, const uint8_t *data, size_t len);
/* The connection is gone, with c->why. */
void tc_h2_stream_on_conn_lost(struct tc_h2_stream *s);
/* nghttp2 closed it. */
void tc_h2_stream_on_close(struct tc_h2_stream *s, uint32_t h2_error);

/* request.c */
/* The value of grpc-timeout: at most 8 digits and a unit (PROTOCOL-HTTP2.md). Returns its length. */
size_t tc_h2_timeout_encode(char out[16], uint64_t timeout_ns);
/* TORC_EPARSE when it has not that form. */
int tc_h2_timeout_decode(struct tc_slice s, uint64_t *timeout_ns);
/* Submits the request; 0 or an nghttp2 error. */
int tc_h2_request_submit(struct tc_h2_stream *s, const struct tc_h2_request *request);
/* Size of a request's header list as RFC 9113 6.5.2 counts it. */
size_t tc_h2_request_size(const struct tc_h2_request *request);

/* metadata.c */
/* Adds a received field to the block: binary ones decoded, each of several joined values apart, and counted as the
 * field that it becomes. TORC_EPARSE for bad base64, TORC_ELIMIT beyond the limit of the block. */
int tc_h2_metadata_add(struct tc_h2_stream *s, struct tc_headers *h, struct tc_slice name, struct tc_slice value);
/* Name-value pairs of metadata to send, at nva. Binary values are encoded into c->scratch, which the caller has cleared
 * and which must stay as it is until they are submitted. Returns how many. */
size_t tc_h2_metadata_encode(struct tc_h2_conn *c, const struct tc_headers *h, nghttp2_nv *nva);
/* Room in c->scratch for all binary values of h, once before encoding. */
size_t tc_h2_metadata_scratch(const struct tc_headers *h);
static inline nghttp2_nv tc_h2_nv(struct tc_slice name, struct tc_slice value, uint8_t flags)
{
    /* nghttp2 only reads them. */
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data, name.len, value.len, flags};
}
/* True for names that only the library may send. */
bool tc_h2_name_reserved(struct tc_slice name);

/* response.c */
/* A field of a response header block or of trailers. */
void tc_h2_response_on_header(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value);
void tc_h2_response_begin(struct tc_h2_stream *s);
/* A block is complete. */
void tc_h2_response_on_block(struct tc_h2_stream *s, bool end_stream);
/* END_STREAM on DATA. */
void tc_h2_response_on_end(struct tc_h2_stream *s);
/* A body that is no gRPC. */
void tc_h2_response_on_body(struct tc_h2_stream *s, const uint8_t *data, size_t len);
struct tc_status tc_h2_status_from_rst(uint32_t h2_error);
/* "application/grpc", then nothing, '+' or ';'. */
bool tc_h2_grpc_content_type(struct tc_slice type);

/* server_stream.c */
struct tc_h2_stream *tc_h2_server_stream_new(struct tc_h2_conn *c, int32_t id);
void tc_h2_server_stream_free(struct tc_h2_conn *c, struct tc_h2_stream *s);
/* Frees the spare streams but `keep`. */
void tc_h2_server_drop_spare(struct tc_h2_conn *c, unsigned keep);
void tc_h2_server_on_header(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value);
void tc_h2_server_on_block(struct tc_h2_stream *s, bool end_stream);
/* The data source has come to the end of the messages: submits the trailers. */
void tc_h2_server_submit_trailers(struct tc_h2_stream *s);

/* flood.c */
void tc_h2_flood_init(struct tc_h2_conn *c);
/* Bytes that are about to be given to nghttp2. */
void tc_h2_flood_on_bytes(struct tc_h2_conn *c, const uint8_t *at, size_t n);
/* A DATA frame has come as a whole, to a stream that nghttp2 knows. */
void tc_h2_flood_on_data(struct tc_h2_conn *c, const nghttp2_data *data);
int tc_h2_on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *hd, void *user_data);
/* nghttp2 shows a frame that begins, or a header block that it does not skip. */
static inline void tc_h2_flood_on_shown(struct tc_h2_conn *c, const nghttp2_frame_hd *hd)
{
    c->heads.hidden -= TC_H2_FRAME_OF(hd->length);
}
/* A header field that is beyond the limit, or of a stream that is of no interest any more. What on_header returns. */
int tc_h2_flood_on_dropped(struct tc_h2_conn *c, size_t bytes);
/* It has shown what it shows of the bytes, and some frames were not. */
void tc_h2_flood_on_hidden(struct tc_h2_conn *c);
/* A DATA frame was sent, or a request came: frames that carry nothing may go with it. */
void tc_h2_flood_on_carried(struct tc_h2_conn *c);
/* An RST_STREAM was sent. */
void tc_h2_flood_on_reset(struct tc_h2_conn *c, int32_t id);

/* keepalive.c */
void tc_h2_keepalive_init(struct tc_h2_conn *c);
void tc_h2_keepalive_stop(struct tc_h2_conn *c);
void tc_h2_keepalive_on_read(struct tc_h2_conn *c);
/* A stream opened: watch again if nothing was watched. */
void tc_h2_keepalive_wake(struct tc_h2_conn *c);
void tc_h2_keepalive_on_ping(struct tc_h2_conn *c);
/* We sent headers or data: the peer may ping. */
void tc_h2_keepalive_on_sent(struct tc_h2_conn *c);
/* Starts the wait for the answer to a graceful GOAWAY. */
void tc_h2_keepalive_await_notice(struct tc_h2_conn *c);

/* window.c */
void tc_h2_window_init(struct tc_h2_conn *c);
void tc_h2_window_on_data(struct tc_h2_conn *c, size_t len);
void tc_h2_window_on_ack(struct tc_h2_conn *c);
/* The owner wants a message of which `rest` bytes have not come: opens the stream's window for them. Of one stream at a
 * time: several keep the connection busy without, and what is under way stays in the caches. */
void tc_h2_window_for_message(struct tc_h2_stream *s, size_t rest);

#define TC_H2_MAX_WINDOW (16u * 1024u * 1024u)
extern const uint8_t tc_h2_ping_keepalive[8], tc_h2_ping_bdp[8], tc_h2_ping_drain[8];

#endif
