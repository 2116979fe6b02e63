/* One HTTP/2 connection that carries gRPC, client or server side, on nghttp2 over a byte stream.
 *
 * nghttp2's callbacks only record and submit. Recorded events are delivered after nghttp2 returned, from the loop,
 * never from inside a call of the owner. One event of a server's stream is the exception: on_compressed
 * (server_stream.h). Frames that calls submit are written once, at the end of the turn. Every queue that a peer can
 * make us fill is bounded. A connection belongs to the caller of tc_h2_conn_new until tc_h2_conn_close. Loop thread
 * only. */
#ifndef TC_HTTP2_CONNECTION_H
#define TC_HTTP2_CONNECTION_H

#include "base/slice.h"
#include "io/bytestream.h"
#include "io/loop.h"

struct tc_h2_conn;
struct tc_h2_stream;
struct tc_h2_glitch_rate;

struct tc_h2_limits {
    size_t max_receive_message_bytes; /* 4 MiB; SIZE_MAX: no limit */
    size_t max_send_message_bytes;    /* SIZE_MAX */
    size_t max_header_list_bytes;     /* of a header block that we accept, decoded, RFC 9113 6.5.2 accounting; 16 KiB */
    size_t max_request_header_bytes;  /* client: of a request, RFC 9113 6.5.2 accounting; 1 MiB */
    uint32_t max_concurrent_streams;  /* server: that a client may have open; 100 */
    uint32_t initial_window_bytes;    /* of a stream; 64 KiB, grown to the bandwidth-delay product up to 16 MiB */
    uint32_t max_glitches;            /* frames in a second that carry nothing (SETTINGS, PING, GOAWAY,
                                         WINDOW_UPDATE, PRIORITY, empty DATA, frames of unknown types and of closed
                                         streams), and KiB in them, twice as many at once; 10,000 */
    uint32_t max_cancels;             /* server: RPCs that a client may cancel in a second, twice as many at once;
                                         1000 */
    uint32_t write_bytes;             /* of frames that are gathered for one write. What the socket does not take of
                                         them is copied. 512 KiB */
    uint32_t max_queued_control;      /* acks of PING and SETTINGS, and resets, that wait to be written; also empty
                                         DATA frames of the peer in a row; 1000. Beyond it the connection ends */
};

struct tc_h2_keepalive {
    uint64_t time_ms;          /* of silence before a PING; 0: off (the default) */
    uint64_t timeout_ms;       /* for the answer; 20,000 */
    bool without_calls;        /* client: sends PINGs also while no stream is open (a server does in any case); server:
                                  a client may do so */
    uint64_t min_interval_ms;  /* server: between PINGs of the client; the third that comes earlier ends the connection
                                  with "too_many_pings"; 300,000; 0: any */
    uint64_t max_age_ms;       /* server: GOAWAY after this age, with a jitter of 10 %; 0: never */
    uint64_t max_age_grace_ms; /* server: how long calls may run on after the second GOAWAY; then they are cut off. 0:
                                  until they end */
};

struct tc_h2_opts {
    bool server;
    struct tc_h2_glitch_rate *glitch_rate; /* of the peer, so that the peer's next connection does not begin with a
                                              fresh allowance; the connection takes its own reference. NULL: the
                                              connection makes one */
    struct tc_h2_limits limits;
    struct tc_h2_keepalive keepalive;
    bool no_bdp; /* windows do not grow with the bandwidth-delay product; the window of one stream opens for the rest of
                    an announced message nevertheless (receive.c) */
};

/* Sets the defaults that are named above. Off by default: our own PINGs, the age limit, glitch_rate. */
void tc_h2_opts_init(struct tc_h2_opts *opts, bool server);

/* on_held is called when the held bytes pass a multiple of this. */
enum { TC_H2_HELD_STEP = 64 << 10 };

/* Events of a connection. Each may be NULL. None comes after tc_h2_conn_close. */
struct tc_h2_conn_events {
    /* The peer's first SETTINGS arrived. A client may open streams. */
    void (*on_ready)(void *arg);
    /* Client: a stream can be opened now. Comes once after tc_h2_client_stream_open returned TORC_EAGAIN, or after
     * tc_h2_conn_want_capacity. */
    void (*on_capacity)(void *arg);
    /* The peer sent GOAWAY, or this side did (tc_h2_conn_drain, the age limit, stream numbers that are used up): a
     * client opens no stream from now on, and streams that are open go on. Comes once. `why` has the code and debug
     * text of the peer's GOAWAY, or this side's reason. too_many_pings: the code is ENHANCE_YOUR_CALM and the text
     * "too_many_pings"; the owner doubles its keepalive time (A8). */
    void (*on_draining)(void *arg, const struct tc_status *why, bool too_many_pings);
    /* The connection is gone. The last event; the owner then calls tc_h2_conn_close. Comes after the on_done or on_end
     * of the streams, but before the on_done of a client's stream that still has messages to read, or that rests until
     * others of the loop had their turn (streams.c). */
    void (*on_closed)(void *arg, const struct tc_status *why);
    /* Server: a new request arrived; its headers are in tc_h2_server_stream_request. Set handlers with
     * tc_h2_server_stream_set_events inside the call. */
    void (*on_stream)(void *arg, struct tc_h2_stream *stream);
    /* Server: `bytes` are what all streams hold now (tc_h2_stream_held). Comes when the sum has passed a multiple of
     * TC_H2_HELD_STEP, up or down. */
    void (*on_held)(void *arg, size_t bytes);
};

/* Makes a connection over a byte stream whose handshake is over, and takes over the byte stream. Never returns NULL: if
 * nghttp2 makes no session, on_closed follows. `opts` is copied; `events` must outlive the connection. */
struct tc_h2_conn *tc_h2_conn_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                  const struct tc_h2_conn_events *events, void *arg);
/* Sends GOAWAY. on_draining follows, and on_closed when the last stream has ended. A client opens no stream from now
 * on. A server sends two GOAWAYs: the first refuses nothing, and requests that come before the second are still served.
 * `debug_text` (NULL: none) tells the peer why. A server's second GOAWAY has the text, so a server's text must be
 * static. Does nothing the second time. */
void tc_h2_conn_drain(struct tc_h2_conn *c, const char *debug_text);
/* Ends the connection at once. First writes a last GOAWAY, as far as the socket takes it, unless the peer has sent a
 * GOAWAY or this side's has named the last stream already. No event of the connection follows, and the connection frees
 * itself. Streams that are open end without a callback: their owners know of the end (a server's streams are freed). A
 * client's stream whose outcome is known lives on: it delivers the messages that arrived before, as they are asked for,
 * and on_done. */
void tc_h2_conn_close(struct tc_h2_conn *c);

/* Returns whether the byte stream is secure: call credentials may be sent. */
bool tc_h2_conn_secure(const struct tc_h2_conn *c);
/* Client: returns whether requests to that authority may be sent: the certificate that the server showed is valid for
 * it, or was not checked for names, or there was none (plaintext). A peer that the application's hook has judged
 * (struct tc_tls_opts: one_name) is good for the name of its handshake alone. */
bool tc_h2_conn_is_for(const struct tc_h2_conn *c, struct tc_slice authority);
/* Returns how many streams have not ended for their owners. */
size_t tc_h2_conn_open_streams(const struct tc_h2_conn *c);
/* Returns how many bytes all streams of a server's connection hold: the sum of tc_h2_stream_held. */
size_t tc_h2_conn_held(const struct tc_h2_conn *c);
/* Server: while `squeezed`, the windows of streams have their first size and do not grow. Room beyond its window that a
 * stream was given for an announced message stays: HTTP/2 has no frame that takes it back. */
void tc_h2_conn_squeeze(struct tc_h2_conn *c, bool squeezed);
/* Client: returns whether the server has ended any RPC with a grpc-status. Streams whose request is `aside` do not
 * count. */
bool tc_h2_conn_answered(const struct tc_h2_conn *c);
/* Client: returns true if a stream can be opened now: ready, not draining, below the peer's MAX_CONCURRENT_STREAMS. */
bool tc_h2_conn_has_capacity(const struct tc_h2_conn *c);
/* Client: asks for one on_capacity, as soon as a stream can be opened; it comes by the loop if one can be opened
 * now. */
void tc_h2_conn_want_capacity(struct tc_h2_conn *c);
/* Client: returns the peer's MAX_CONCURRENT_STREAMS; 0 once the connection has failed or is closed. */
uint32_t tc_h2_conn_max_streams(const struct tc_h2_conn *c);

#endif
