/* One HTTP/2 connection that carries gRPC, client or server side, on nghttp2 over a byte stream.
 *
 * nghttp2's callbacks only record and submit. Recorded events are delivered after nghttp2 returned, from the loop,
 * never from inside a call of the owner. One event of a server's stream is the exception: on_compressed
 * (server_stream.h). The frames of a turn are written together, at its end; only the last frames of a connection leave
 * at once. Every queue that a peer can make us fill is bounded. A connection belongs to the caller of tc_h2_conn_new
 * until tc_h2_conn_close. Loop thread only. */
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
    uint32_t max_glitches;            /* glitches a second, and at most twice as many at once: frames that carry nothing
                                         (SETTINGS, PING, WINDOW_UPDATE, empty DATA, frames of closed streams, say), one
                                         more for each KiB in them, and header fields that are dropped; 10,000 */
    uint32_t max_cancels;             /* server: RPCs a second that a client may cancel, and at most twice as many at
                                         once; 1000 */
    uint32_t write_bytes;             /* of frames that are gathered for one write. What the socket does not take of
                                         them is copied. 512 KiB */
    uint32_t max_queued_control;      /* acks of PING and SETTINGS, and resets, that wait to be written; also the peer's
                                         empty DATA frames in a row; 1000. The connection ends beyond it */
};

struct tc_h2_keepalive {
    uint64_t time_ms;          /* of silence before a PING; 0: off (the default) */
    uint64_t timeout_ms;       /* for the answer, or any other byte, to come; 20,000 */
    bool without_calls;        /* client: sends PINGs also while no stream is open (a server does in any case); server:
                                  a client may do so */
    uint64_t min_interval_ms;  /* server: between PINGs of the client; the third that comes earlier ends the connection
                                  with "too_many_pings"; 300,000; 0: any */
    uint64_t max_age_ms;       /* server: GOAWAY after this age, with a jitter of 10 %; 0: never (the default) */
    uint64_t max_age_grace_ms; /* server, once max_age_ms has passed: how long calls may run on after that time or the
                                  second GOAWAY, whichever is later; then they are cut off. 0: until they end (the
                                  default) */
};

struct tc_h2_opts {
    bool server;
    struct tc_h2_glitch_rate *glitch_rate; /* shared by the peer's connections, so that the next one does not begin with
                                              a fresh allowance; each takes its own reference. NULL: the connection
                                              makes one */
    struct tc_h2_limits limits;
    struct tc_h2_keepalive keepalive;
    bool no_bdp; /* windows do not grow with the bandwidth-delay product. One stream's window may still open for the
                    rest of an announced message (receive.c) */
};

/* Sets the defaults that are named above; all else is 0. */
void tc_h2_opts_init(struct tc_h2_opts *opts, bool server);

/* on_held is called when the held bytes pass a multiple of this. */
enum { TC_H2_HELD_STEP = 64 << 10 };

/* Events of a connection. Each may be NULL. None comes after tc_h2_conn_close. `why` is borrowed for the call. */
struct tc_h2_conn_events {
    /* The peer's first SETTINGS arrived. A client may open streams. */
    void (*on_ready)(void *arg);
    /* Client: a stream can be opened now. Comes once after tc_h2_client_stream_open returned TORC_EAGAIN, or after
     * tc_h2_conn_want_capacity. */
    void (*on_capacity)(void *arg);
    /* The peer sent GOAWAY, or this side did (tc_h2_conn_drain, the age limit, stream numbers that are used up). A
     * client opens no stream from now on. Open streams go on, except those that the peer's GOAWAY refuses. Comes once.
     * `why` has the code and debug text of the peer's GOAWAY, or this side's reason; if the connection has failed since
     * then, the reason for that. too_many_pings: the GOAWAY's code is ENHANCE_YOUR_CALM and its text "too_many_pings";
     * the owner doubles its keepalive time (A8). */
    void (*on_draining)(void *arg, const struct tc_status *why, bool too_many_pings);
    /* The connection is gone. The last event; the owner must call tc_h2_conn_close, inside the call or later. All
     * streams have had their on_done or on_end, except a client's streams that still have messages to deliver. */
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
/* Sends GOAWAY. on_draining follows unless it came before, and on_closed when the last stream has ended. A client opens
 * no stream from now on. A server sends two GOAWAYs: the first refuses nothing, and requests that come before the
 * second are still served. `debug_text` (NULL: none) tells the peer why. A server's second GOAWAY has the text, so a
 * server's text must be static. Does nothing the second time, or once the connection has failed. */
void tc_h2_conn_drain(struct tc_h2_conn *c, const char *debug_text);
/* Ends the connection at once, and frees it. First writes a last GOAWAY, as far as the socket takes it, unless the peer
 * has sent a GOAWAY or this side's has named the last stream already. No event of the connection follows.
 *
 * Open streams end without a callback (a server's streams are freed). A client's stream whose outcome is known lives
 * on: it delivers the messages that arrived before, as they are asked for, and on_done. The connection's memory stays
 * until then. Must not be called from on_compressed. */
void tc_h2_conn_close(struct tc_h2_conn *c);

/* Returns whether the byte stream is secure: call credentials may be sent. */
bool tc_h2_conn_secure(const struct tc_h2_conn *c);
/* Client: returns whether requests to that authority may be sent: the server's certificate is valid for it, or was not
 * checked for names, or there is no TLS. A server that the application's hook has judged (struct tc_tls_opts: one_name)
 * is good for the name of its handshake alone. Once the connection has failed, returns true for any authority. */
bool tc_h2_conn_is_for(const struct tc_h2_conn *c, struct tc_slice authority);
/* Returns how many streams have not ended for their owners. */
size_t tc_h2_conn_open_streams(const struct tc_h2_conn *c);
/* Returns how many bytes all streams of a server's connection hold: the sum of tc_h2_stream_held. */
size_t tc_h2_conn_held(const struct tc_h2_conn *c);
/* Server: returns when the last request came, also one that was refused, in the time of tc_loop_now_ms; 0:
 * none came yet. */
uint64_t tc_h2_conn_request_ms(const struct tc_h2_conn *c);
/* Server: while `squeezed`, the windows of streams have their first size and do not grow. A window that was opened
 * further for an announced message stays so: HTTP/2 cannot take that back from one stream. */
void tc_h2_conn_squeeze(struct tc_h2_conn *c, bool squeezed);
/* Client: returns whether the server has ended any RPC with a grpc-status. Streams whose request is `aside` do not
 * count. */
bool tc_h2_conn_answered(const struct tc_h2_conn *c);
/* Client: returns true if a stream can be opened now: the peer's SETTINGS came, the connection is neither draining nor
 * failed, and it is below the peer's MAX_CONCURRENT_STREAMS. */
bool tc_h2_conn_has_capacity(const struct tc_h2_conn *c);
/* Client: asks for one on_capacity, as soon as a stream can be opened. */
void tc_h2_conn_want_capacity(struct tc_h2_conn *c);
/* Client: returns the peer's MAX_CONCURRENT_STREAMS; 0 once the connection has failed or is closed. */
uint32_t tc_h2_conn_max_streams(const struct tc_h2_conn *c);
/* Returns true once the connection has failed: on_closed is due, or was called. */
bool tc_h2_conn_lost(const struct tc_h2_conn *c);

#endif
