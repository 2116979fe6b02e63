/* A small asynchronous gRPC server on http2/: the core of torc_server (api/server), of the embedded control plane, and
 * of servers in the command and the tests. It lives on one loop; every function is for the loop thread, and no callback
 * comes from inside a function (but for on_end in tc_server_end). Its calls are in server/call.h. */
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

/* Bytes that clients make a server hold: messages that they do not take, and requests that nobody takes yet. */
enum tc_server_held { TC_SERVER_UNSENT, TC_SERVER_UNREAD, TC_SERVER_HELD };

/* The bytes of servers on several loops that share the limits of what they hold. */
struct tc_server_share {
    atomic_size_t bytes[TC_SERVER_HELD];
    size_t n; /* servers */
};

/* The counts of enum torc_server_counter. The server's loop writes, any thread reads. */
enum { TC_SERVER_COUNTERS = TORC_SERVER_OPEN_CALLS + 1 };
struct tc_server_tally {
    atomic_ullong n[TC_SERVER_COUNTERS];
};
/* Adds to a count; below 0 it wraps. There is one writer, so that no locked instruction is needed. */
static inline void tc_server_tally_add(struct tc_server_tally *t, enum torc_server_counter what, unsigned long long n)
{
    unsigned long long old = atomic_load_explicit(&t->n[what], memory_order_relaxed);
    atomic_store_explicit(&t->n[what], old + n, memory_order_relaxed);
}

/* The places that a call takes from its beginning under the limits of calls. The owner keeps them while a handler
 * works: an RPC that ends before its handler does not free them for the next RPC. */
struct tc_server_places {
    atomic_size_t *calls;    /* the method's shared_calls; NULL: it has no shared limit */
    struct tc_ref *handlers; /* a reference to the connection's count of places; NULL: it has no limit */
};

struct tc_server_opts {
    struct tc_h2_opts http2;
    struct tc_tls_context *tls;    /* NULL: plaintext; the server takes a reference */
    uint64_t handshake_timeout_ms; /* from accept until TLS is done and the client's SETTINGS have come; 20,000; 0: no
                                      limit */
    uint64_t idle_timeout_ms; /* without a call: GOAWAY, and closed handshake_timeout_ms later; 0: never (default) */
    size_t max_connections;   /* 0: no limit (default). At the limit see tc_server_accept. */
    bool calls_give_way; /* at the limit a connection with calls may be closed for a new one, too: REFUSED_STREAM */
    bool status_at_end;  /* calls that end with their connection get a status, unless a message is under way: then, and
                            with false, they are reset */
    void *owner;         /* for tc_server_call_owner and `route` */
    struct tc_server_tally *tally; /* where the server counts; NULL: in memory of its own */
    atomic_size_t *load;           /* counts connections to their end: those of listeners from the accept on; those of
                                      tc_server_accept_with are counted by its caller. tc_server_accept must not be
                                      used with it. NULL: none are counted */
    /* Takes over a connection that a listener accepted, for another server, or returns false. NULL: all are served
     * here. */
    bool (*route)(void *owner, struct tc_bytestream *bs, torc_credentials *credentials);
    size_t max_handlers;     /* calls of one connection that have their places (tc_server_call_take_places), also behind
                                the ends of their RPCs; beyond it RPCs are refused, REFUSED_STREAM. 0: no limit
                                (default) */
    size_t max_queued_bytes; /* the cost of messages that wait in all calls, see tc_server_call_send; 0: no limit
                                (default) */
    size_t max_unread_bytes; /* that came on all streams and wait. Beyond it the call that holds the most, of the
                                connection that holds the most of the peer address that holds the most, ends with
                                RESOURCE_EXHAUSTED. From half of it on, the windows of connections that hold
                                TC_H2_HELD_STEP have their first size, but for the room that messages in progress
                                were given. 0: no limit (default) */
    struct tc_server_share *share; /* whose bytes count for both limits: a server gives up calls while it holds more
                                      than its even part of the limit. NULL: the server has the limits alone */
};

struct tc_server_counts {
    uint64_t connections;       /* accepted so far */
    uint64_t requests;          /* gRPC requests so far, with those of unknown methods and beyond limits */
    size_t open_connections;    /* now */
    size_t open_calls;          /* now */
    uint64_t failed_handshakes; /* so far */
    size_t queued_bytes;        /* now, the cost of messages that wait in all calls */
    size_t unread_bytes;        /* now, that came and wait; exact to 64 KiB for each connection */
};

/* Called when a call begins; its metadata is in tc_server_call_metadata. The handler sets events and asks for messages,
 * now or later. The call belongs to the server and ends with on_end. */
typedef void (*tc_server_call_fn)(void *arg, struct tc_server_call *call);
/* Called with the whole message of a unary request, borrowed until the function returns. The answer comes now or later
 * by tc_server_call_reply or tc_server_call_finish; events may be set for on_end. */
typedef void (*tc_server_unary_fn)(void *arg, struct tc_server_call *call, struct tc_rstr *request);

/* Sets the defaults named above. */
void tc_server_opts_init(struct tc_server_opts *opts);
/* Sets what a server needs that strangers can reach: the limits, the idle timeout (5 minutes), and keepalive PINGs
 * every 5 minutes, which end the connections of clients that are gone. A stream may be silent for ever. */
void tc_server_opts_guard(struct tc_server_opts *opts, size_t max_connections, size_t max_held_bytes);
/* Makes a server without methods and listeners. `opts` (NULL: the defaults) is copied; tally, load and share of it must
 * outlive the server. Never returns NULL. */
struct tc_server *tc_server_new(struct tc_loop *loop, const struct tc_server_opts *opts);

/* Register a handler for a full method ("/package.Service/Method"), or for all methods of a service without a handler
 * of their own ("/package.Service/"); a later one replaces it. `path` is copied. */
void tc_server_add_method(struct tc_server *s, const char *path, tc_server_call_fn fn, void *arg);
void tc_server_add_unary(struct tc_server *s, const char *path, tc_server_unary_fn fn, void *arg);
/* The limits of one method, or of all methods without a handler of their own (path "*"). 0: none. */
struct tc_server_limits {
    size_t max_receive_message_bytes; /* instead of the connection's; 0: the connection's */
    uint64_t max_calls;               /* at a time; beyond it RESOURCE_EXHAUSTED */
    atomic_size_t *shared_calls;      /* counts the calls of all servers that share the limit; NULL: of this one */
    uint64_t max_timeout_ms;          /* the latest deadline */
};
/* Sets the limits of a method that has been registered, or (path "*") of tc_server_set_default's handler, which was set
 * before. Does nothing for an unknown path. */
void tc_server_limit(struct tc_server *s, const char *path, const struct tc_server_limits *limits);
/* Registers a handler, without limits, for all other methods, which end with UNIMPLEMENTED without it. */
void tc_server_set_default(struct tc_server *s, tc_server_call_fn fn, void *arg);

/* Listens on one more address. Stores the address as bound (port 0 resolved) in *bound unless that is NULL; the caller
 * ends it with tc_addr_fini. Returns 0, or TORC_EIO with a status in *error. */
int tc_server_listen(struct tc_server *s, const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error);
/* Listens as tc_server_listen does, with credentials of the listener instead of opts.tls (NULL: opts.tls); takes a
 * reference. `addr` NULL: on the socket `fd`, which listens already and is taken over unless the function fails. */
int tc_server_listen_with(struct tc_server *s, const struct tc_addr *addr, int fd, torc_credentials *credentials,
                          struct tc_addr *bound, struct tc_status *error);
/* With `hold`, no listener accepts, also none that is added later. Without it, all accept again. */
void tc_server_hold(struct tc_server *s, bool hold);
/* Serves one connection over a byte stream, which it takes over: for tests, and sockets from elsewhere.
 *
 * At max_connections one connection gives way, of the peer address with the most connections (IPv6: of its /64). The
 * first of these that there is:
 *
 *   one that has not finished its handshake;
 *   one without a call;
 *   with calls_give_way: one that has had no message for 5 s;
 *   with calls_give_way: the one that has taken the most messages, one at least.
 *
 * Among equals it is the one that is quiet for the longest time. An address does not displace another that has fewer
 * connections. If no connection gives way, the new one is closed. */
void tc_server_accept(struct tc_server *s, struct tc_bytestream *bs);
/* Serves a connection as tc_server_accept does, secured by these credentials, and counted in opts.load already. */
void tc_server_accept_with(struct tc_server *s, struct tc_bytestream *bs, torc_credentials *credentials);
/* Closes the listening sockets; connections go on. tc_server_listen may open new ones. */
void tc_server_stop_listening(struct tc_server *s);
/* Closes all connections from the loop, without waiting for their calls, which end with UNAVAILABLE. Listeners go
 * on. */
void tc_server_close_connections(struct tc_server *s);
/* Sends GOAWAY on all connections that are past TLS, which close when their last call ended; listeners go on. */
void tc_server_goaway(struct tc_server *s);
/* Stops listening and drains all connections. `fn` is called once, from the loop, when the last connection is gone;
 * after grace_ms (0: no limit) the rest is closed. A second call only shortens the grace; its `fn` is not called. */
void tc_server_drain(struct tc_server *s, uint64_t grace_ms, void (*fn)(void *arg), void *arg);
/* Closes the listening sockets and all connections before it returns: calls end with this status, by on_end from inside
 * (NULL: without on_end). Not from inside a callback of the server. */
void tc_server_end(struct tc_server *s, const struct tc_status *why);
/* Ends everything at once and frees the server. Calls that are open get no on_end; handlers are not called again. NULL
 * is allowed. Not from inside a callback of the server. */
void tc_server_free(struct tc_server *s);

void tc_server_counts(const struct tc_server *s, struct tc_server_counts *out);
struct tc_loop *tc_server_loop(const struct tc_server *s);

#endif
