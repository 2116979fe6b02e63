/* The inside of a connection, for its files and the files of its streams. Loop thread only. */
#ifndef TC_HTTP2_CONNECTION_INTERNAL_H
#define TC_HTTP2_CONNECTION_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "http2/bdp.h"
#include "http2/connection.h"
#include "http2/glitches.h"
#include "http2/keepalive_state.h"

struct tc_h2_gather;
struct tc_h2_server_stream;

/* The streams of a connection. */
struct tc_h2_streams {
    struct tc_link all;                /* streams that have not ended for their owner */
    struct tc_link delivered, ready;   /* streams with due events: of the delivery that runs, of the next delivery */
    struct tc_link resting, packing;   /* streams that wait for others of the loop: to deliver, to compress (server) */
    size_t n;                          /* of `all` */
    size_t active;                     /* streams that nghttp2 holds, including streams that we have forgotten */
    uint64_t request_ms;               /* server: when the last request's headers were complete, in the time of
                                          tc_loop_now_ms; 0: none were yet */
    size_t held, held_told;            /* server: the sum of tc_h2_stream_held; the sum that on_held told last */
    struct tc_h2_stream *delivering;   /* whose owner is being called; NULL again if the stream goes in that call */
    struct tc_h2_stream *in_block;     /* nghttp2 decodes its header block; NULL again if the stream goes meanwhile */
    struct tc_h2_stream *opened_for;   /* its window is open for the rest of an announced message */
    struct tc_h2_server_stream *spare; /* server: freed streams, reused for the next requests */
    unsigned n_spare;
};

/* How far the connection is on its way to the end: draining, failed, closed. */
struct tc_h2_ending {
    bool draining, on_draining_due;     /* on_draining_due: on_draining is to be called */
    bool goaway_sent, last_goaway_sent; /* submitted: the (first) GOAWAY of tc_h2_conn_drain; that of
                                           tc_h2_conn_send_last_goaway or tc_h2_conn_terminate */
    bool goaway_received, too_many_pings;
    bool goaway_in_use;              /* streams were open when a GOAWAY of the peer came */
    bool failed;                     /* dead: on_closed is due or was called */
    bool closed_notified, closed;    /* on_closed was called; tc_h2_conn_close was called */
    int32_t goaway_last_id, last_id; /* the last stream's number: in the peer's newest GOAWAY, in our last GOAWAY */
    const char *text;                /* server: the debug text of our last GOAWAY, static; NULL: none */
    struct tc_status why;            /* the reason why the connection failed or drains */
};

/* Frames on their way to the socket (write.c). */
struct tc_h2_writer {
    struct tc_task flush;
    struct tc_h2_gather *gather; /* while frames are gathered */
    struct tc_buf unsent;        /* bytes that the socket did not take last time */
    size_t unsent_at;            /* how many of these are written since */
    bool in_flush, blocked;      /* blocked: the socket takes no more */
};

struct tc_h2_conn {
    struct tc_loop *loop;
    struct tc_bytestream *bs; /* NULL once closed or failed */
    nghttp2_session *ng;      /* NULL once closed or failed */
    struct tc_h2_opts opts;
    const struct tc_h2_conn_events *events;
    void *arg;
    struct tc_addr peer;

    struct tc_h2_streams streams;
    struct tc_task deliver, read_more, rest; /* read_more, rest: run after others of the loop had their turn */
    struct tc_h2_writer write;
    uint32_t unconsumed;   /* bytes of DATA taken, for which the connection's window is not opened again yet */
    unsigned after_end;    /* messages delivered of ended streams that have more, since resting streams last went on */
    struct tc_buf scratch; /* overwritten by each function that encodes or decodes header fields or a GOAWAY's text */

    bool secure, settings_seen, ready_notified;
    bool packed_first;     /* streams.packing went before streams.resting, when they last went on */
    bool capacity_wanted;  /* on_capacity is due as soon as a stream can be opened */
    bool squeezed;         /* server: windows do not grow */
    bool too_large_logged; /* server: headers larger than the client takes were logged */
    bool answered;         /* client: an RPC ended with a status of the server's */
    uint8_t tls_bytes;     /* client: how many of the first bytes were those of a TLS alert, or NO_TLS (read.c) */
    unsigned busy;         /* functions at work on the connection, which must not be freed meanwhile */
    struct tc_h2_ending ending;

    struct tc_h2_glitches glitches;
    struct tc_h2_bdp bdp;
    struct tc_h2_keepalive_state keepalive;
    struct tc_timer quiet;   /* gives memory back when there was no stream for a while */
    uint64_t quiet_since_ms; /* when the last stream left nghttp2 */
};

/* --- connection.c --- */

/* Ends all streams; on_closed follows. Does nothing once failed or closed. Takes over the status (OK is replaced). */
void tc_h2_conn_fail(struct tc_h2_conn *c, struct tc_status why);
/* Sends GOAWAY with a code, as far as the socket takes it now, and fails the connection. `debug_text` is not NULL. Does
 * nothing once failed or closed. */
void tc_h2_conn_terminate(struct tc_h2_conn *c, uint32_t h2_error, const char *debug_text);
/* Has on_draining called, the first time. Takes over the status, which replaces an earlier reason. */
void tc_h2_conn_start_drain(struct tc_h2_conn *c, struct tc_status why);
/* Fails a draining connection whose last stream has left nghttp2, once all is written (a server's last GOAWAY too,
 * unless the client sent one). */
void tc_h2_conn_check_drained(struct tc_h2_conn *c);
/* Submits the GOAWAY that names the last stream that is served: the second one of a server's graceful end, or the one
 * of tc_h2_conn_close. Does nothing if it was submitted. */
void tc_h2_conn_send_last_goaway(struct tc_h2_conn *c);
/* A stream has left nghttp2 (streams.active is counted down): a slot may be free, or the connection drained. */
void tc_h2_conn_stream_gone(struct tc_h2_conn *c);
/* Frees the connection if it is closed, has no stream left, and none of our functions is at work on it (busy). */
void tc_h2_conn_release(struct tc_h2_conn *c);

/* --- session.c, read.c, write.c --- */
/* Makes nghttp2's session and submits SETTINGS. Returns false if nghttp2 fails; c->ng is NULL then. */
bool tc_h2_session_init(struct tc_h2_conn *c);
/* Tells the peer the size of streams' windows, which has changed. */
void tc_h2_session_set_windows(struct tc_h2_conn *c);
/* The handler of the byte stream's events; `arg` is the connection. */
void tc_h2_conn_on_event(void *arg, unsigned events);
void tc_h2_conn_on_read_more(struct tc_task *task);
/* Writes what nghttp2 has to send, as far as the socket takes it, within a bound. May fail the connection. */
void tc_h2_conn_flush(struct tc_h2_conn *c);
/* Has tc_h2_conn_flush run at the end of the turn, unless the socket takes no more. */
void tc_h2_conn_flush_later(struct tc_h2_conn *c);
/* Frees `unsent`; over a secure byte stream, overwrites its bytes first. */
void tc_h2_conn_drop_unsent(struct tc_h2_conn *c);
/* Returns the status of a byte stream that failed. The caller owns it. */
struct tc_status tc_h2_conn_broken(const struct tc_h2_conn *c);

/* --- streams.c --- */
void tc_h2_conn_on_deliver(struct tc_task *task);
void tc_h2_conn_on_rest(struct tc_task *task);
void tc_h2_conn_deliver_later(struct tc_h2_conn *c);
/* The session is about to be deleted: the streams lose their numbers. */
void tc_h2_streams_detach(struct tc_h2_conn *c);
/* Ends all streams that have no outcome yet: a client's with ending.why, a server's with CANCELLED and the text of
 * ending.why. The delivery tells their owners. Returns how many streams had no outcome. */
size_t tc_h2_streams_lose(struct tc_h2_conn *c);
/* The owner closed: a client's stream whose outcome is known lives on until on_done, the others end silently. */
void tc_h2_streams_drop(struct tc_h2_conn *c);

/* --- server_stream.c --- */

/* Frees the server's spare streams but `keep`. */
void tc_h2_streams_drop_spare(struct tc_h2_conn *c, unsigned keep);

/* The contents of our PINGs, which tell their answers apart. */
extern const uint8_t tc_h2_ping_keepalive[8], tc_h2_ping_bdp[8], tc_h2_ping_drain[8];

#endif
