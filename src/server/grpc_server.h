/* A small asynchronous gRPC server on http2/: for the embedded control plane, the backends and the tests. It lives on
 * one loop; every function is for the loop thread, and no callback comes from inside one of them. */
#ifndef TC_SERVER_GRPC_SERVER_H
#define TC_SERVER_GRPC_SERVER_H

#include "http2/stream.h"
#include "io/addr.h"

struct tc_server;
struct tc_server_call;
struct tc_tls_context;

struct tc_server_opts {
    struct tc_h2_opts http2;
    struct tc_tls_context *tls;    /* NULL: plaintext. The server takes a reference. */
    uint64_t handshake_timeout_ms; /* 20000 */
    size_t max_connections;        /* more are closed at once; 0: no limit */
};

struct tc_server_counts {
    uint64_t connections;       /* accepted so far */
    uint64_t requests;          /* calls that reached a handler or were refused as unknown, so far */
    size_t open_connections;    /* now */
    size_t open_calls;          /* now */
    uint64_t failed_handshakes; /* so far */
};

/* A call begins; its metadata is in tc_server_call_metadata. The handler sets events and asks for messages, now or
 * later. The call belongs to the server and ends with on_end. */
typedef void (*tc_server_call_fn)(void *arg, struct tc_server_call *call);
/* A unary request: the whole message, borrowed for the call of the function. The answer comes now or later by
 * tc_server_call_reply or tc_server_call_finish; events may be set for on_end. */
typedef void (*tc_server_unary_fn)(void *arg, struct tc_server_call *call, struct tc_rstr *request);

/* Each may be NULL. */
struct tc_server_call_events {
    /* One message, after tc_server_call_read; the callee owns the reference. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* The client sent its last message; comes only while a read is wanted. */
    void (*on_half_close)(void *arg);
    /* All messages that were given to send were handed on as far as flow control goes. */
    void (*on_written)(void *arg);
    /* The call is over: OK (our status was written), CANCELLED (the client gave up), DEADLINE_EXCEEDED (its time ran
     * out), UNAVAILABLE (the connection went). Always the last, exactly once, also after tc_server_call_reset; the call
     * is gone when it returns. */
    void (*on_end)(void *arg, const struct tc_status *why);
};

/* The defaults named above. */
void tc_server_opts_init(struct tc_server_opts *opts);
struct tc_server *tc_server_new(struct tc_loop *loop, const struct tc_server_opts *opts);

/* Registers a handler for a full method ("/package.Service/Method"); a later one replaces it. Strings are copied. */
void tc_server_add_method(struct tc_server *s, const char *path, tc_server_call_fn fn, void *arg);
void tc_server_add_unary(struct tc_server *s, const char *path, tc_server_unary_fn fn, void *arg);
/* For methods that nobody registered; without it they end with UNIMPLEMENTED. */
void tc_server_set_default(struct tc_server *s, tc_server_call_fn fn, void *arg);

/* Listens on one more address. The address as bound (port 0 resolved) is written to *bound when that is not NULL; the
 * caller ends it with tc_addr_fini. TORC_EIO with a text in *error. */
int tc_server_listen(struct tc_server *s, const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error);
/* Serves one connection over a byte stream, which it takes over (tests, and sockets that came otherwise). */
void tc_server_accept(struct tc_server *s, struct tc_bytestream *bs);
/* Closes the listening sockets; connections go on. tc_server_listen may open new ones. */
void tc_server_stop_listening(struct tc_server *s);
/* Closes all connections at once, as a crash would: calls end with UNAVAILABLE. Listeners go on. */
void tc_server_close_connections(struct tc_server *s);
/* Sends GOAWAY on all connections, which close when their last call ended; listeners go on. */
void tc_server_goaway(struct tc_server *s);
/* Stops listening and drains all connections; `fn` is called once when the last is gone, or after grace_ms (0: no
 * limit) when the rest has been closed. A second call only shortens the grace. */
void tc_server_drain(struct tc_server *s, uint64_t grace_ms, void (*fn)(void *arg), void *arg);
/* Ends everything at once and frees the server. Calls still open get no on_end; handlers are not called again. */
void tc_server_free(struct tc_server *s);

void tc_server_counts(const struct tc_server *s, struct tc_server_counts *out);
struct tc_loop *tc_server_loop(const struct tc_server *s);

void tc_server_call_set_events(struct tc_server_call *call, const struct tc_server_call_events *events, void *arg);
struct tc_slice tc_server_call_path(const struct tc_server_call *call);
/* The request's metadata with pseudo-headers, borrowed until on_end. */
const struct tc_headers *tc_server_call_metadata(const struct tc_server_call *call);
const struct tc_addr *tc_server_call_peer(const struct tc_server_call *call);
/* A number of its own for each connection of the server, from 1. */
uint64_t tc_server_call_connection(const struct tc_server_call *call);
/* Lives until on_end has returned. */
struct tc_arena *tc_server_call_arena(struct tc_server_call *call);
struct tc_server *tc_server_call_server(const struct tc_server_call *call);

/* Wants one more message. */
void tc_server_call_read(struct tc_server_call *call);
/* Initial metadata, once, before the first message; sent empty otherwise. `encoding`: of the messages that follow. */
void tc_server_call_send_headers(struct tc_server_call *call, const struct tc_headers *headers,
                                 enum tc_h2_encoding encoding);
/* Sends a message (copied, queued behind those that wait). */
void tc_server_call_send(struct tc_server_call *call, struct tc_slice message);
/* The same without a copy; takes a reference of its own. */
void tc_server_call_send_ref(struct tc_server_call *call, struct tc_rstr *message);
/* Bytes that wait to be handed on. */
size_t tc_server_call_queued_bytes(const struct tc_server_call *call);
/* Ends the call when what is queued has been sent. trailers may be NULL; all is copied. Nothing may be sent after it.
 */
void tc_server_call_finish(struct tc_server_call *call, int code, const char *text, const struct tc_headers *trailers);
/* A message, then OK. */
void tc_server_call_reply(struct tc_server_call *call, struct tc_slice message);
/* Resets the stream with an HTTP/2 error code at once. */
void tc_server_call_reset(struct tc_server_call *call, uint32_t h2_error);

#endif
