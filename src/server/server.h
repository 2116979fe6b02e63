/* A small asynchronous gRPC server on http2/: the core of torc_server (api/server), of the embedded control plane, and
 * of servers in the command and the tests. It lives on one loop. Every function is for the loop thread. No callback
 * comes from inside a function, except on_end in tc_server_end. The server's calls are in server/call.h. */
#ifndef TC_SERVER_SERVER_H
#define TC_SERVER_SERVER_H

#include <torc/credentials.h>
#include <torc/server.h>

#include <stdatomic.h>

#include "http2/connection.h"
#include "io/addr.h"

struct tc_server;
struct tc_ref;
struct tc_server_call;
struct tc_tls_context;

/* Bytes that clients make a server hold: messages that clients have not taken, and requests that nobody has read. */
enum tc_server_held { TC_SERVER_UNSENT, TC_SERVER_UNREAD, TC_SERVER_HELD };

/* The held bytes of servers on several loops that share max_queued_bytes and max_unread_bytes. */
struct tc_server_share {
    atomic_size_t bytes[TC_SERVER_HELD];
    size_t n; /* servers */
};

/* The counts of enum torc_server_counter. The server's loop writes, any thread reads. */
enum { TC_SERVER_COUNTERS = TORC_SERVER_OPEN_CALLS + 1 };
struct tc_server_tally {
    atomic_ullong n[TC_SERVER_COUNTERS];
};
/* Adds to a count. A negated number subtracts. There is one writer, so no locked instruction is needed. */
static inline void tc_server_tally_add(struct tc_server_tally *t, enum torc_server_counter what, unsigned long long n)
{
    unsigned long long old = atomic_load_explicit(&t->n[what], memory_order_relaxed);
    atomic_store_explicit(&t->n[what], old + n, memory_order_relaxed);
}

/* A call's places under max_calls and max_handlers. A call has them from its beginning to its end, unless its owner
 * takes them (tc_server_call_take_places) and keeps them while a handler works: then an RPC that ends before its
 * handler does not free them for the next RPC. */
struct tc_server_places {
    atomic_size_t *calls;    /* the method's shared_calls; NULL: it has no shared limit */
    struct tc_ref *handlers; /* a reference to the connection's count of places; NULL: it has no limit */
};

struct tc_server_opts {
    struct tc_h2_opts http2;
    struct tc_tls_context *tls;    /* NULL: plaintext; the server takes a reference */
    uint64_t handshake_timeout_ms; /* from accept until TLS is done and the client's SETTINGS have come; 20,000; 0: no
                                      limit */
    uint64_t idle_timeout_ms; /* without a call: GOAWAY, which the end of the connection follows (tc_server_goaway); 0:
                                 never (default) */
    size_t max_connections;   /* 0: no limit (default). At the limit see tc_server_accept. */
    bool calls_give_way; /* at max_connections a connection with calls may be closed, too; a call that is then reset
                            gets REFUSED_STREAM */
    bool status_at_end;  /* calls that end with their connection get a status; false, or while the stream has a message:
                            a reset */
    void *owner;         /* for tc_server_call_owner and `route` */
    struct tc_server_tally *tally; /* where the server counts; NULL: in memory of its own */
    atomic_size_t *load;           /* the number of open connections, or NULL. The server counts connections of its
                                      listeners up, the caller of tc_server_accept_with counts its own up, and the
                                      server counts all down. Must be NULL if tc_server_accept is used */
    /* Takes over a connection that a listener accepted, for another server, or returns false. `credentials` is borrowed
     * and may be NULL. Without `route`, all connections are served here. */
    bool (*route)(void *owner, struct tc_bytestream *bs, torc_credentials *credentials);
    size_t max_handlers;           /* calls of one connection that hold places: until the call ends, or its owner gives
                                      back the places that it took (tc_server_call_take_places). Beyond it RPCs are
                                      reset with REFUSED_STREAM. 0: no limit (default) */
    size_t max_queued_bytes;       /* the cost of the queued messages of all calls, see tc_server_call_send; 0: no limit
                                      (default) */
    size_t max_unread_bytes;       /* bytes that came on all streams and were not read. Beyond it calls end with
                                      RESOURCE_EXHAUSTED: of the peer address that holds the most, the connection that
                                      holds the most, and of its calls the call that holds the most. While more than
                                      half of it is held, connections that hold TC_H2_HELD_STEP are squeezed
                                      (tc_h2_conn_squeeze). 0: no limit (default) */
    struct tc_server_share *share; /* both limits count the bytes of all servers that share it. Beyond a limit, a server
                                      gives up calls while it holds more than its even part. NULL: not shared */
};

struct tc_server_counts {
    uint64_t connections;       /* so far, without those that max_connections did not let in */
    uint64_t requests;          /* well-formed gRPC requests so far, also for unknown methods and beyond limits */
    size_t open_connections;    /* now */
    size_t open_calls;          /* now */
    uint64_t failed_handshakes; /* so far */
    size_t queued_bytes;        /* now, the cost of the queued messages of all calls */
    size_t unread_bytes;        /* now, that came and were not read; exact to 64 KiB for each connection */
};

/* Called when a call begins. Sets the call's events and asks for messages, now or later. The call belongs to the server
 * and ends with on_end. */
typedef void (*tc_server_call_fn)(void *arg, struct tc_server_call *call);
/* Called with the message of a unary request, borrowed until the function returns. Answers now or later by
 * tc_server_call_reply or tc_server_call_finish; may set events, for on_end. */
typedef void (*tc_server_unary_fn)(void *arg, struct tc_server_call *call, struct tc_rstr *request);

/* Sets the defaults named above. */
void tc_server_opts_init(struct tc_server_opts *opts);
/* Sets what a server needs that strangers can reach: the limits (max_held_bytes for queued and for unread bytes), the
 * idle timeout (5 minutes), and keepalive PINGs after 5 minutes of silence, which end the connections of clients that
 * are gone. A stream may be silent for ever. */
void tc_server_opts_guard(struct tc_server_opts *opts, size_t max_connections, size_t max_held_bytes);
/* Makes a server without methods and listeners. `opts` (NULL: the defaults) is copied; tally, load and share of it must
 * outlive the server. Never returns NULL. */
struct tc_server *tc_server_new(struct tc_loop *loop, const struct tc_server_opts *opts);

/* Register a handler for a full method ("/package.Service/Method"), or for all methods of a service without a handler
 * of their own ("/package.Service/"). A second handler for a path replaces the first. `path` is copied. */
void tc_server_add_method(struct tc_server *s, const char *path, tc_server_call_fn fn, void *arg);
void tc_server_add_unary(struct tc_server *s, const char *path, tc_server_unary_fn fn, void *arg);
/* The limits of one registered path. 0: no limit. */
struct tc_server_limits {
    size_t max_receive_message_bytes; /* instead of the connection's; 0: the connection's */
    uint64_t max_calls;               /* at a time; beyond it RESOURCE_EXHAUSTED */
    atomic_size_t *shared_calls;      /* counts places of all servers that share max_calls; NULL: not shared, and a call
                                         counts until its RPC ends */
    uint64_t max_timeout_ms;          /* the most from a call's beginning to its deadline */
};
/* Sets the limits of a registered path, or (path "*") of the handler that tc_server_set_default has set. Does nothing
 * for an unknown path. */
void tc_server_limit(struct tc_server *s, const char *path, const struct tc_server_limits *limits);
/* Registers a handler for all other methods, which otherwise end with UNIMPLEMENTED. A second default handler replaces
 * the first; limits that tc_server_limit has set for "*" stay. */
void tc_server_set_default(struct tc_server *s, tc_server_call_fn fn, void *arg);

/* Listens on one more address. Stores the address as bound (port 0 resolved) in *bound unless `bound` is NULL; the
 * caller frees it with tc_addr_fini. Returns 0, or TORC_EIO with a status in *error. */
int tc_server_listen(struct tc_server *s, const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error);
/* Listens as tc_server_listen does, with credentials of the listener instead of opts.tls; takes a reference. With NULL,
 * or credentials that are not for servers, opts.tls counts. `addr` NULL: on the socket `fd`, which listens already and
 * is taken over unless the function fails. */
int tc_server_listen_with(struct tc_server *s, const struct tc_addr *addr, int fd, torc_credentials *credentials,
                          struct tc_addr *bound, struct tc_status *error);
/* With `hold`, no listener accepts, also no listener that is added later. Without it, all accept again. Not from inside
 * opts.route. */
void tc_server_hold(struct tc_server *s, bool hold);
/* Serves one connection over a byte stream, and takes over the byte stream: for tests, and sockets from elsewhere.
 *
 * At max_connections one connection gives way. These connections may give way:
 *
 *   a connection whose client's SETTINGS have not come;
 *   a connection without a call;
 *   with calls_give_way: a connection on which no call began or had a message for 5 s;
 *   with calls_give_way: a connection whose client has taken a message.
 *
 * The peer address (IPv6: its /64) with the most connections comes first, then the order of the list. Of the last kind
 * the connection that has taken the most messages gives way; among equals, the connection that is quiet the longest.
 * The new connection counts for its address, and no connection of an address with fewer connections gives way to it. If
 * no connection gives way, the new one is closed. */
void tc_server_accept(struct tc_server *s, struct tc_bytestream *bs);
/* Serves a connection as tc_server_accept does, with credentials as tc_server_listen_with takes them. The caller has
 * counted the connection in opts.load. */
void tc_server_accept_with(struct tc_server *s, struct tc_bytestream *bs, torc_credentials *credentials);
/* Closes the listening sockets; connections go on. tc_server_listen may open new ones. */
void tc_server_stop_listening(struct tc_server *s);
/* Closes all connections from the loop, without waiting for their calls, which end with UNAVAILABLE. Listeners go
 * on. */
void tc_server_close_connections(struct tc_server *s);
/* Sends GOAWAY on all connections whose handshake is done. They close when their last call has ended and all is
 * written, or once they were without a call for 20 s. Listeners go on. */
void tc_server_goaway(struct tc_server *s);
/* Stops listening and drains all connections. `fn` (NULL: none) is called once, from the loop, when the last connection
 * is gone. After grace_ms (0: no limit) the remaining connections are closed. A second call only shortens the grace:
 * its `fn` is not called. */
void tc_server_drain(struct tc_server *s, uint64_t grace_ms, void (*fn)(void *arg), void *arg);
/* Closes the listening sockets and all connections before it returns. Calls on_end of all calls with this status (NULL:
 * calls end without on_end). Not from inside a callback of the server. */
void tc_server_end(struct tc_server *s, const struct tc_status *why);
/* Ends everything at once and frees the server. Calls that are open get no on_end; handlers are not called again. NULL
 * is allowed. Not from inside a callback of the server. */
void tc_server_free(struct tc_server *s);

void tc_server_counts(const struct tc_server *s, struct tc_server_counts *out);
/* Returns the loop of tc_server_new. Borrowed. */
struct tc_loop *tc_server_loop(const struct tc_server *s);

#endif
