/* One HTTP/2 connection that carries gRPC, client or server side, on nghttp2 over a byte stream.
 *
 * nghttp2's callbacks only record and submit. Recorded events are delivered after nghttp2 returned, from the loop,
 * never from inside a call of the owner. Frames that calls submit are written once, at the end of the turn. Every queue
 * that a peer can make us fill is bounded. Owned by its maker; loop thread only. */
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
    uint32_t max_glitches;       /* frames in a second that carry nothing (WINDOW_UPDATE, PING, GOAWAY, those of unknown
                                    types and of closed streams), and KiB in them; 10,000 */
    uint32_t max_cancels;        /* server: RPCs that a client may cancel in a second, twice as many at once; 1000 */
    uint32_t write_bytes;        /* of frames that are gathered for one write, and kept where the socket takes no
                                    more; 512 KiB */
    uint32_t max_queued_control; /* PING and SETTINGS acks, resets that wait to be written; 1000: then closed */
};

struct tc_h2_keepalive {
    uint64_t time_ms;          /* of silence before a PING; 0: off (the default) */
    uint64_t timeout_ms;       /* for the answer; 20,000 */
    bool without_calls;        /* also when no stream is open */
    uint64_t min_interval_ms;  /* server: between PINGs of the client, else "too_many_pings"; 300,000; 0: any */
    uint64_t max_age_ms;       /* server: GOAWAY after this age; 0: never */
    uint64_t max_age_grace_ms; /* server: after that GOAWAY, then closed; 0: when the last stream ends */
};

struct tc_h2_opts {
    bool server;
    struct tc_h2_glitch_rate *glitch_rate; /* of the peer, so that the peer's next connection does not begin with a
                                              fresh allowance; the connection takes its own reference. NULL: the
                                              connection makes one */
    struct tc_h2_limits limits;
    struct tc_h2_keepalive keepalive;
    bool no_bdp; /* fixed windows */
};

/* Sets the defaults named above. */
void tc_h2_opts_init(struct tc_h2_opts *opts, bool server);

/* In bytes: how finely on_held tells. */
enum { TC_H2_HELD_STEP = 64 << 10 };

/* Events of a connection. Each may be NULL. None comes after tc_h2_conn_close. */
struct tc_h2_conn_events {
    /* The peer's first SETTINGS arrived. A client may open streams. */
    void (*on_ready)(void *arg);
    /* Client: a stream could not be opened (TORC_EAGAIN), or was asked for by tc_h2_conn_want_capacity, and would be
     * opened now. */
    void (*on_capacity)(void *arg);
    /* The peer sent GOAWAY, or we began to drain: no new streams, running ones go on. `why` names code and debug text.
     * too_many_pings: ENHANCE_YOUR_CALM with that text; the caller doubles its keepalive time. */
    void (*on_draining)(void *arg, const struct tc_status *why, bool too_many_pings);
    /* The connection is gone, after on_done of all streams that have no messages left to read. The last event; the
     * owner then calls tc_h2_conn_close. */
    void (*on_closed)(void *arg, const struct tc_status *why);
    /* Server: a new request arrived; its headers are in tc_h2_server_stream_request. Set handlers with
     * tc_h2_server_stream_set_events inside the call. */
    void (*on_stream)(void *arg, struct tc_h2_stream *stream);
    /* Server: what the streams hold of what came and nobody has taken (tc_h2_stream_held) has changed to so many bytes,
     * and over a multiple of TC_H2_HELD_STEP. */
    void (*on_held)(void *arg, size_t bytes);
};

/* Makes a connection over a byte stream, which it takes over. The events struct must outlive the connection. */
struct tc_h2_conn *tc_h2_conn_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                  const struct tc_h2_conn_events *events, void *arg);
/* Takes no new streams and sends GOAWAY. on_closed follows when the last stream has ended. `debug_text` (NULL: none)
 * tells the peer why: of a server's two GOAWAYs the second has it, so a server's text must be constant. */
void tc_h2_conn_drain(struct tc_h2_conn *c, const char *debug_text);
/* Ends the connection at once. Streams that are still open end without a callback (their owners know; a server's are
 * freed), no event follows, and the connection frees itself. A client's stream whose outcome is known lives on: it
 * delivers the messages that arrived before, as they are asked for, and on_done. */
void tc_h2_conn_close(struct tc_h2_conn *c);

bool tc_h2_conn_secure(const struct tc_h2_conn *c);
/* Client: returns whether requests to that authority may be sent: the certificate that the server showed is valid for
 * it, or was not checked for names. */
bool tc_h2_conn_is_for(const struct tc_h2_conn *c, struct tc_slice authority);
size_t tc_h2_conn_open_streams(const struct tc_h2_conn *c);
/* Returns what all streams of a server's connection hold: see on_held. */
size_t tc_h2_conn_held(const struct tc_h2_conn *c);
/* Server: the windows of streams go back to their first size and do not grow, while `squeezed`. What a stream was given
 * beyond its window, for a message that was announced, stays: HTTP/2 has no frame that takes it back. */
void tc_h2_conn_squeeze(struct tc_h2_conn *c, bool squeezed);
/* Client: returns whether the server has ended any RPC with a grpc-status (but those that are aside). */
bool tc_h2_conn_answered(const struct tc_h2_conn *c);
/* Client: returns true if a stream can be opened now: ready, not draining, below the peer's MAX_CONCURRENT_STREAMS. */
bool tc_h2_conn_has_capacity(const struct tc_h2_conn *c);
/* Client: on_capacity comes, once, as soon as a stream can be opened. */
void tc_h2_conn_want_capacity(struct tc_h2_conn *c);
/* Client: returns the peer's MAX_CONCURRENT_STREAMS; 0 when the connection has failed. */
uint32_t tc_h2_conn_max_streams(const struct tc_h2_conn *c);

#endif
