/* The inside of the gRPC server, shared by its files: server, connections, calls. Loop thread only. */
#ifndef TC_SERVER_SERVER_INTERNAL_H
#define TC_SERVER_SERVER_INTERNAL_H

#include "base/arena.h"
#include "base/headers.h"
#include "base/table.h"
#include "creds/creds.h"
#include "io/listen.h"
#include "server/server.h"
#include "tls/identity.h"
#include "tls/tls.h"

struct tc_server_method {
    UT_hash_handle hh;
    tc_server_call_fn fn;     /* NULL: `unary` is set, or this is a server's `fallback` and there is no default */
    tc_server_unary_fn unary; /* NULL: `fn` is set */
    void *arg;
    char *path; /* owned; NULL in `fallback` */
    struct tc_server_limits limits;
    uint64_t calls; /* that run on this server */
};

struct tc_server_listener {
    struct tc_link link;
    struct tc_server *server;
    struct tc_listen_socket *listener; /* owned */
    torc_credentials *credentials;     /* a reference, or NULL: opts.tls of the server counts */
};

/* A connection, or a call with queued messages, is stalled when its moved_ms is this old. */
enum { TC_SERVER_STALLED_MS = 5000 };

/* A peer address with connections that do not give way; freed when the last of them ends or gives way. */
struct tc_server_peer {
    UT_hash_handle hh;
    size_t conns;
    size_t held[TC_SERVER_HELD]; /* of these connections */
    uint8_t key[17];             /* family, address; IPv6: the first 64 bits (all if v4-mapped); Unix, vsock: zeros */
};

struct tc_server_conn {
    struct tc_link link;
    struct tc_server *server;
    struct tc_h2_conn *h2;                      /* owned; NULL until TLS and the credentials' check are done */
    struct tc_tls_handshake *handshake;         /* NULL after TLS, and without */
    struct tc_creds_handshake *creds_handshake; /* of the listener's credentials; NULL after it, and without */
    torc_credentials *credentials;              /* a reference, or NULL: opts.tls counts */
    struct tc_tls_identity *tls_peer;           /* a reference; NULL: no TLS (yet), or no certificate was asked for */
    bool secure;
    struct tc_link calls;
    struct tc_ref *handlers;     /* counts the calls that hold places, and the connection; NULL: no limit */
    struct tc_task close;        /* closes the connection from the loop */
    struct tc_server_peer *peer; /* NULL once the connection gives way */
    struct tc_timer patience;    /* the timeout of `phase` */
    enum tc_server_phase { TC_SERVER_OPENING, TC_SERVER_SERVING, TC_SERVER_LEAVING } phase;
    uint64_t moved_ms; /* of the latest: accept, SETTINGS, GOAWAY, call's beginning or message, end of all calls */
    uint64_t served;   /* messages that the client has taken */
    size_t held[TC_SERVER_HELD]; /* bytes */
    char *addr_text;             /* the client's; owned */
};

struct tc_server {
    struct tc_loop *loop;
    struct tc_server_opts opts;
    struct tc_server_method *methods; /* by path */
    struct tc_server_method fallback; /* of tc_server_set_default */
    struct tc_link listeners, conns;
    struct tc_server_peer *peers;                         /* by key */
    size_t n_held;                                        /* connections that have a peer */
    struct tc_link unsent;                                /* calls with queued messages, the longest waiting first */
    struct tc_server_tally *tally, own_tally;             /* tally: opts.tally, or else own_tally */
    size_t holds[TC_SERVER_HELD], shared[TC_SERVER_HELD]; /* shared: the part of `holds` that opts.share counts */
    bool draining;
    bool held;                     /* no listener accepts */
    void (*on_drained)(void *arg); /* NULL: none is wanted, or it was called */
    void *drained_arg;
    struct tc_timer grace;  /* closes the connections that are left */
    struct tc_task drained; /* calls on_drained from the loop */
};

struct tc_server_out {
    struct tc_link link;
    struct tc_rstr *message; /* a reference */
    bool plain;              /* must not be compressed */
};

struct tc_server_call {
    struct tc_link link;
    struct tc_server_conn *conn;
    struct tc_h2_stream *stream; /* its events refer to the call until the call ends */
    struct tc_server_method *method;
    const struct tc_server_call_events *events; /* borrowed; NULL: not set yet */
    void *arg;
    struct tc_arena arena;
    struct tc_timer deadline;
    uint64_t deadline_ns;           /* in the time of tc_loop_now_ns; UINT64_MAX: none */
    struct tc_task end;             /* calls on_end from the loop, after a reset */
    uint32_t reset_code;            /* for `end`: HTTP/2's */
    bool ending;                    /* the call was reset, or ends: no event but on_end */
    struct tc_rstr *request;        /* of a unary call, a reference, until the client half-closes; else NULL */
    struct tc_link queue;           /* of struct tc_server_out */
    struct tc_rstr *current;        /* the message that the stream has, a reference; NULL: it has none */
    size_t queued_bytes;            /* the cost of the queue and of `current`; 0 once the call is given up or ends */
    size_t compressed_bytes;        /* of queued_bytes: the compressed form of `current` */
    struct tc_link unsent;          /* in the server's `unsent`, while queued_bytes is not 0 */
    uint64_t moved_ms;              /* when the queue began to fill, or last became shorter */
    struct tc_server_places places; /* empty once the owner has taken them */
    bool compress, current_plain;   /* messages are compressed; `current` must not be */
    bool limited;                   /* the deadline is the method's: the client has a later one or none */
    bool finish, status_sent;       /* finish: `status` follows the queue; status_sent: the stream has `status` */
    bool rejected;                  /* a message was too large to send: `status` is the server's, not the owner's */
    struct tc_status status;
    struct tc_headers trailers;
};

/* --- server.c --- */

/* Has on_drained called if the server drains and no connection is left. */
void tc_server_check_drained(struct tc_server *s);
/* Adds to the bytes that the connection, its peer and the server hold. A negated number subtracts. */
void tc_server_hold_bytes(struct tc_server_conn *conn, enum tc_server_held kind, size_t bytes);
/* Returns true if the servers of the share hold over `max` bytes, and `s` more than its even part. `max` 0: false. */
bool tc_server_holds_too_much(const struct tc_server *s, enum tc_server_held kind, size_t max);

/* --- connection.c --- */

/* Serves a connection over a byte stream, and takes over the byte stream: see tc_server_accept_with. */
void tc_server_conn_new(struct tc_server *s, struct tc_bytestream *bs, torc_credentials *credentials);
/* Ends a connection and its calls, and frees both. `why` NULL: the calls end without on_end. */
void tc_server_conn_end(struct tc_server_conn *conn, const struct tc_status *why);
/* Sets moved_ms to now. */
void tc_server_conn_moved(struct tc_server_conn *conn);
/* Tells that the connection has no call: its last call has ended, or it got ready without a call. */
void tc_server_conn_quiet(struct tc_server_conn *conn);
/* Of the peer address that holds the most, returns the connection that holds the most; among equals `first`. */
struct tc_server_conn *tc_server_conn_fullest(struct tc_server_conn *first, enum tc_server_held kind);

/* --- call.c --- */

/* Makes a request's call, which method->calls counts already, and calls the handler (a unary handler later). */
void tc_server_call_begin(struct tc_server_conn *conn, struct tc_h2_stream *stream, struct tc_server_method *method);
/* Calls on_end, unless `why` is NULL, and frees the call. The caller ends the stream, if it is not over yet. */
void tc_server_call_end(struct tc_server_call *call, const struct tc_status *why);
/* Ends the connection's call that holds the most unread bytes. Returns false if none of its calls holds any. */
bool tc_server_call_give_up_unread(struct tc_server_conn *conn);
/* Sends the status on a stream that has no call, or no longer has one. No event of the stream follows. */
void tc_server_stream_answer(struct tc_h2_stream *stream, const struct tc_status *status);

#endif
