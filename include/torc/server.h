/* Servers. SPDX-License-Identifier: Apache-2.0
 *
 *     static void on_hello(torc_server_call *call, const torc_message *request, void *arg)
 *     {
 *         torc_server_call_reply(call, torc_message_data(request), torc_message_size(request)); // now, or later
 *     }
 *
 *     struct torc_handler hello = {TORC_SIZE(torc_handler), .unary = on_hello};
 *     torc_error *error = NULL;
 *     torc_server *server = torc_server_new(NULL, &error);
 *     torc_server_add_method(server, "/helloworld.Greeter/SayHello", &hello, &error);
 *     torc_server_listen(server, "[::]:50051", torc_credentials_insecure(), NULL, &error);
 *     if (torc_server_start(server, &error) != 0)
 *         return fprintf(stderr, "%s\n", torc_error_text(error)), 1;
 *     ... wait until the program is to end ...
 *     torc_server_stop(server, 10000);
 *     torc_server_free(server);
 *
 * A server runs on a runtime: handlers and events are called on the thread that drives its loop, and must not block
 * there. Handlers of a method with a pool (torc_server_limit) run on the pool's threads, and may block. The functions
 * of a call work from any thread, so an answer may come later from wherever it is made.
 *
 * Several runtimes: a server uses as many cores as it has runtimes (torc_server_options.runtimes). A connection and its
 * RPCs stay on one runtime; their handlers (without a pool), hooks of interceptors and events run on its thread, so
 * those of different runtimes run side by side. The first runtime, `runtime`, accepts connections (for an IP address
 * with TORC_LISTEN_REUSE_PORT each runtime does); for what concerns the server itself, "the thread that drives the
 * loop" is the first runtime's thread. Limits and counts are those of the whole server. max_connections is divided
 * evenly among the runtimes (if it is below their number, only so many runtimes are used). Beyond unsent_bytes and
 * unread_bytes a runtime gives up RPCs while it holds more than its even part, so that all runtimes together hold less
 * than twice the limit. When a runtime is freed, its connections end and the other runtimes go on; when the first is
 * freed, the server ends.
 *
 * Who owns a call: the handler gets it, and it is the application's until torc_server_call_reply or
 * torc_server_call_finish, which end every call, whatever became of its RPC. If the RPC is over earlier (the client
 * gave up, the deadline passed, the connection broke, the server was stopped), on_cancel is called, and the functions
 * of the call return TORC_ECANCELED; if the server or its runtime was freed, TORC_ECLOSED. The handle stays good:
 * finish it then too, which only frees it.
 *
 * timeout_ms is as in torc/stream.h: 0 tries (TORC_EAGAIN), -1 waits for ever, else TORC_ETIMEDOUT after so many
 * milliseconds; other negative numbers are TORC_EINVAL. On the thread that drives the loop only 0 is allowed, else
 * TORC_EDEADLK.
 *
 * All functions may be called from any thread. Functions of a call return TORC_EFORK in a child of the process that
 * made the server or while the process exits; getters of the request and of the peer still work there.
 *
 * No function of a call may begin once another thread has begun to finish the call, with one exception: a handler and
 * an event of the call may use the handle until they return, even if another thread finishes the call meanwhile.
 * Functions then return TORC_ESTATE, and getters still work. A thread that waits in torc_server_call_receive or
 * torc_server_call_send when the call is finished gets TORC_ESTATE too.
 *
 * In a library that was built without servers (TORC_SERVERS=off) the functions of this header are missing. */
#ifndef TORC_SERVER_H
#define TORC_SERVER_H

#include <torc/arena.h>
#include <torc/credentials.h>
#include <torc/interceptor.h>
#include <torc/message.h>
#include <torc/metadata.h>
#include <torc/runtime.h>
#include <torc/status.h>
#include <torc/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A server: its methods, limits and listeners. */
typedef struct torc_server torc_server;

/* An RPC that a server received. */
typedef struct torc_server_call torc_server_call;

/* How a server on several runtimes listens. */
enum torc_listen_mode {
    TORC_LISTEN_SHARED = 0,     /* one socket for an address; each connection goes to the runtime with the fewest */
    TORC_LISTEN_REUSE_PORT = 1, /* for an IP address a socket for each runtime (SO_REUSEPORT), which no socket of
                                   another user can join; the system spreads connections by their addresses, not
                                   evenly, and what the first runtime's socket gets goes to the runtime with the
                                   fewest. A connection that was not accepted when its runtime ends is reset */
};

/* Options of a server. Durations of connections count for each connection by itself. Source: gRFCs A8, A9. */
struct torc_server_options {
    uint64_t size;
    torc_runtime *runtime;             /* NULL: torc_runtime_default() */
    int64_t max_receive_message_bytes; /* of a request message, also when inflated; 0: 4194304; -1: no limit. Beyond
                                          it the RPC ends with RESOURCE_EXHAUSTED */
    int64_t max_send_message_bytes;    /* 0 and -1: no limit. Beyond it the RPC ends with RESOURCE_EXHAUSTED */
    int64_t max_header_list_bytes;  /* of a request's metadata, with 32 bytes a field; 0: 8192. Beyond it the RPC ends
                                          with RESOURCE_EXHAUSTED */
    int64_t send_buffer_bytes;      /* of messages of one call that wait to be written, with 64 bytes a message; 0:
                                          65536. One message is always taken */
    int64_t unsent_bytes;           /* of such messages of all calls; 0: 536870912; -1: no limit. Beyond it, RPCs
                                          whose client has taken nothing for 5 s are reset, the longest waiting first.
                                          Without such an RPC, the fullest RPC of the fullest connection of the
                                          fullest address is reset */
    int64_t max_concurrent_streams; /* RPCs at a time on one connection; 0: 100; at most 2147483647. A client that
                                          opens more, though it has acknowledged the limit, loses the connection
                                          (PROTOCOL_ERROR). Calls that are not finished count as well, also when their
                                          RPCs are over: with so many, RPCs are refused (REFUSED_STREAM) */
    int64_t max_connections;        /* 0: three quarters of the descriptors that the process may have, 64 to 65536;
                                          -1: no limit. At the limit a connection without RPCs is closed to make
                                          room: one of the address with the most connections, but not of an address
                                          with fewer than the new connection's. Else the new connection is closed */
    int64_t handshake_timeout_ms;   /* from accept until TLS is done and the client has sent its SETTINGS; 0: 20000 */
    int64_t keepalive_time_ms;      /* of silence before a PING; 0: 7200000; -1: never */
    int64_t keepalive_timeout_ms;   /* for the PING's answer, else the connection ends; with keepalive also
                                          TCP_USER_TIMEOUT (A18); 0: 20000 */
    int64_t min_ping_interval_ms;   /* between PINGs of the client: the third that comes too early ends the connection,
                                          too_many_pings; 0: 300000; -1: any */
    int64_t max_connection_idle_ms; /* without an RPC, then GOAWAY; 0 and -1: never */
    int64_t max_connection_age_ms;  /* then GOAWAY, +-10 %; 0 and -1: never */
    int64_t max_connection_age_grace_ms; /* after the last GOAWAY, then RPCs are cut off; 0, -1: never */
    int32_t pings_without_calls; /* clients may send PINGs at min_ping_interval_ms also without an RPC, else every
                                            2 hours; 0: off */
    int32_t gzip;                /* compress messages for clients that accept it; 0: off */
    const struct torc_interceptor *const *interceptors; /* they see the RPCs of all methods, the first next to the
                                                           client; at most 64 (torc/interceptor.h); NULL-terminated,
                                                           NULL: none; copied */
    int64_t max_cancels; /* RPCs that a client may cancel in a second, on one connection, and twice as many at once; 0:
                            1000; -1: no limit; at most 2147483647. Beyond it the connection ends with
                            ENHANCE_YOUR_CALM, too_many_rststreams */
    torc_runtime *const *runtimes; /* more runtimes that serve connections, beside `runtime`: each has a thread, and is
                                      in the list once; at most 255; NULL-terminated, NULL: none. See "several
                                      runtimes" */
    int64_t listen_mode;           /* enum torc_listen_mode; 0: TORC_LISTEN_SHARED */
    int64_t unread_bytes; /* of requests that came and are not read: what waits to be asked for, messages that are not
                             complete, and those of unary calls until the client ends its request; 0: 536870912; -1: no
                             limit. From half of it on, the streams of connections that hold 64 KiB get windows of 64
                             KiB, beside the room for a message that is being received already. Beyond it the fullest
                             RPC of the fullest connection of the fullest address ends with RESOURCE_EXHAUSTED. The
                             default is above 100 messages of 4 MiB, the most that one connection may send at a time
                             by the other defaults */
};

/* The functions that answer a method. Exactly one of `unary` and `stream` is set. It is called on the thread that
 * drives the loop, where it must not block, or on a thread of the method's pool (torc_server_limit). From then on the
 * call is the application's. */
struct torc_handler {
    uint64_t size;

    /* For methods whose request is one message: unary and server streaming. Called when the request is complete;
     * `request` lives until the call is finished. If the client sends no message, or two, the RPC ends with INTERNAL
     * and the function is not called. */
    void (*unary)(torc_server_call *call, const torc_message *request, void *arg);

    /* For methods of any kind. Called when the request's metadata has come. */
    void (*stream)(torc_server_call *call, void *arg);

    /* The last callback, called once: after torc_server_free or the end of the runtime, when the last handler on a pool
     * has returned. Called on a thread that drives a loop of the server, or on a thread of a pool. May be NULL. */
    void (*release)(void *arg);
    void *arg; /* handed to the functions; may be NULL */
};

/* --- the server --- */

/* Makes a server, which the caller frees. NULL options: defaults. Returns NULL with an error: TORC_EINVAL or
 * TORC_EUNSUPPORTED (options), TORC_EFORK, TORC_ECLOSED (the runtime was freed), TORC_EIO (the default runtime cannot
 * be made). */
TORC_API torc_server *torc_server_new(const struct torc_server_options *options, torc_error **error);

/* Registers the handler, which is copied, for "/package.Service/Method" (the leading slash may be left out), or with
 * "*" for every method that has none of its own; "*" takes a handler with `stream`. Methods that nobody has registered
 * end with UNIMPLEMENTED. 0, or an error, and then `release` is not called: TORC_EINVAL (server, method, handler),
 * TORC_EUNSUPPORTED (a handler of a newer version), TORC_EEXIST (the method has a handler), TORC_ESTATE (the server
 * was started or stopped), TORC_EFORK, TORC_ECLOSED. */
TORC_API int torc_server_add_method(torc_server *server, const char *method, const struct torc_handler *handler,
                                    torc_error **error);

/* Threads for handlers that wait. */
typedef struct torc_pool torc_pool;

/* Makes a pool of `threads` threads (1 to 4096), in whose queue `queue` calls may wait while all threads run (1 to
 * 1048576). The caller frees it. NULL with an error: TORC_EINVAL, TORC_EIO (the system refuses a thread). The threads
 * block all signals. */
TORC_API torc_pool *torc_pool_new(int64_t threads, int64_t queue, torc_error **error);

/* Takes no more calls (they end with RESOURCE_EXHAUSTED), waits until the handlers of calls that the pool has taken
 * have returned, and ends the threads. 0; TORC_EDEADLK on a thread of the pool, and in a callback of any runtime, whose
 * thread a handler may need: nothing happened. NULL is allowed: 0. TORC_EFORK in a child of a fork: the pool is the
 * parent's. */
TORC_API int torc_pool_free(torc_pool *pool);

/* Limits of a method. */
struct torc_method_options {
    uint64_t size;
    torc_pool *pool; /* handlers run on its threads, and may wait; when its queue is full, RPCs end with
                        RESOURCE_EXHAUSTED. An RPC that ends while it waits there never reaches its handler. NULL: on
                        the thread that drives the loop. The server takes a reference */
    int64_t max_receive_message_bytes; /* instead of the server's; 0: the server's; -1: no limit */
    int64_t max_calls;                 /* RPCs at a time, more end with RESOURCE_EXHAUSTED; 0 and -1: no limit. An RPC
                                          counts until its call is finished, also when it is over before */
    int64_t max_timeout_ms;            /* of an RPC whose client has a later deadline or none: then on_cancel, and the
                                          client gets DEADLINE_EXCEEDED. While a message waits for the client to take
                                          it, the RPC is reset instead (CANCELLED). 0 and -1: no limit */
};

/* Sets the limits of "package.Service/Method", of each method of "package.Service", or with "*" of each method. For a
 * method only the most specific limits count. Methods may be registered later, but before torc_server_start, which
 * refuses limits of a method or service that has no handler. Methods that the handler of "*" answers count together, as
 * one method, if the limits of the same name apply to them. The options are copied. 0, or an error: TORC_EINVAL
 * (server, name, options), TORC_EUNSUPPORTED, TORC_EEXIST (the name has limits), TORC_ESTATE (the server was started or
 * stopped), TORC_EFORK (also for a pool that was made before a fork), TORC_ECLOSED. */
TORC_API int torc_server_limit(torc_server *server, const char *name, const struct torc_method_options *options,
                               torc_error **error);

/* Listens on an address: "127.0.0.1:50051", "[::]:0" (the system chooses the port; an IPv6 wildcard takes IPv4 too
 * where the system does), "unix:/path" (a socket that a dead server left is replaced), "unix-abstract:name", or "fd:3"
 * (a socket that listens already, as systemd passes it; the server owns the descriptor if the function succeeds, and
 * does not remove the path of its Unix socket). Names are not resolved. Connections wait in the system's queue until
 * torc_server_start; after it, an address may be added at any time.
 *
 * `credentials` say how the connections of this address are secured; they are never implied. For servers are
 * torc_credentials_insecure, torc_server_credentials_tls and torc_server_credentials_tls_files. The server takes its
 * own reference.
 *
 * Stores the address as bound in *bound, for torc_free; NULL: not wanted. 0, or an error: TORC_EINVAL (server,
 * address, credentials NULL or not for servers), TORC_EIO (the system refuses, or the descriptor is not a socket that
 * listens; the text has the reason), TORC_ESTATE (the server is being stopped), TORC_EFORK, TORC_ECLOSED. */
TORC_API int torc_server_listen(torc_server *server, const char *address, torc_credentials *credentials, char **bound,
                                torc_error **error);

/* Begins to serve. 0, or an error: TORC_EINVAL, TORC_ENOTFOUND (torc_server_limit was given a method or service without
 * a handler, and "*" has no handler either; the text has the name), TORC_ESTATE (started before, or being stopped),
 * TORC_EFORK, TORC_ECLOSED. */
TORC_API int torc_server_start(torc_server *server, torc_error **error);

/* Stops gracefully, and waits until the server has stopped: the listening sockets close, clients are told to send
 * nothing new here (GOAWAY), and RPCs that run may end. After grace_ms (0: at once; -1: no limit) the remaining RPCs
 * are cancelled. A call whose RPC is over is not waited for, even if the application has not finished it. May be called
 * by several threads; the shortest grace counts. 0; TORC_EINVAL, TORC_EDEADLK (in a callback of a runtime of the
 * server; with -1 also in a handler on a pool while its call runs), TORC_EFORK, TORC_ECLOSED (the runtime was freed,
 * and the server stopped with it). */
TORC_API int torc_server_stop(torc_server *server, int64_t grace_ms);

/* torc_server_stop that does not wait. 0: fn is called once on the thread that drives the loop when the server has
 * stopped, at the latest by torc_server_free or the end of the runtime. A torc_server_stop of another thread does not
 * wait for fn. TORC_EINVAL, TORC_EFORK, TORC_ECLOSED: fn is not called. */
TORC_API int torc_server_stop_async(torc_server *server, int64_t grace_ms, void (*fn)(void *arg), void *arg);

/* Ends everything at once: connections close, RPCs are cancelled, handlers are released. When the function returns, no
 * handler runs on a runtime's thread, and none will be called. Handlers on a pool may still run: handlers are released
 * when the last has returned, and torc_pool_free waits for them. Inside a callback of one of the server's runtimes the
 * function does not wait: handlers are released when this callback and those on the other runtimes have returned, but
 * functions of calls return TORC_ECLOSED at once, and torc_server_call_reply sends nothing. Calls that are not finished
 * stay the application's. NULL is allowed. Does nothing in a child of a fork or while the process exits. A second call
 * does nothing while unfinished calls hold the server, and is not allowed afterwards. */
TORC_API void torc_server_free(torc_server *server);

/* The counts of a server, of all its runtimes together. Later versions add numbers. */
enum torc_server_counter {
    TORC_SERVER_CONNECTIONS = 0,       /* accepted so far, without those that were closed at once for want of room */
    TORC_SERVER_OPEN_CONNECTIONS = 1,  /* now, also during their handshake */
    TORC_SERVER_FAILED_HANDSHAKES = 2, /* TLS that failed so far, took too long, was refused by the application, or was
                                          cut off because a newer connection needed its place */
    TORC_SERVER_CALLS = 3,      /* RPCs so far, also of unknown methods and beyond limits; what is malformed or is
                                          not gRPC does not count */
    TORC_SERVER_OPEN_CALLS = 4, /* RPCs that run now; not calls whose RPC is over and that are not finished */
};

/* Returns a count, 0 at the beginning. TORC_EINVAL: NULL, or a number that is not in enum torc_server_counter. Any
 * thread, also after the server was stopped or its runtime freed. Counts that are read one after the other are not of
 * the same moment. */
TORC_API int64_t torc_server_count(const torc_server *server, int counter);

/* --- calls: the request --- */

/* Returns "/package.Service/Method", as the client sent it; lives until the call is finished. */
TORC_API const char *torc_server_call_method(const torc_server_call *call);

/* Returns the request message of a call of a `unary` handler; it lives until the call is finished. Handlers of
 * generated code get the request decoded, and find here whether it was compressed (torc_message_compressed). NULL for a
 * call of a `stream` handler. */
TORC_API const torc_message *torc_server_call_request(const torc_server_call *call);

/* Returns the request's metadata, in the order sent, without the pseudo-headers, host, content-type, content-length,
 * te, grpc-timeout, grpc-encoding and grpc-accept-encoding. All other fields are in it: user-agent too, and other names
 * that begin with "grpc-"; then come the fields that interceptors have added. Lives until the call is finished. */
TORC_API const torc_metadata *torc_server_call_metadata(const torc_server_call *call);

/* Returns the authority that the client asked for ("orders:443"), in :authority or host; a request without both is
 * reset with PROTOCOL_ERROR. Lives until the call is finished. */
TORC_API const char *torc_server_call_authority(const torc_server_call *call);

/* Returns the client's address ("127.0.0.1:40000", "unix:"); lives until the call is finished. */
TORC_API const char *torc_server_call_peer(const torc_server_call *call);

/* Returns 1 when the connection has transport security, else 0; TORC_EINVAL for NULL. */
TORC_API int torc_server_call_secure(const torc_server_call *call);

/* Stores subject alternative name `i` of the client's certificate: its enum torc_tls_name_kind and its text, which
 * lives until the call is finished. Names that are empty or have a NUL inside are left out; `i` counts the others from
 * 0. Each output may be NULL. 0, or TORC_ENOTFOUND beyond the last, so also when the client showed no certificate;
 * TORC_EINVAL for NULL. */
TORC_API int torc_server_call_peer_name(const torc_server_call *call, size_t i, int32_t *kind, const char **name);

/* Returns the SPIFFE id of the client's certificate ("spiffe://domain/path"): its only URI, if that URI is a SPIFFE id
 * (gRFC A87). NULL: the certificate has no such id, or two URIs. Lives until the call is finished. */
TORC_API const char *torc_server_call_spiffe_id(const torc_server_call *call);

/* Stores certificate `i` of the client's chain in DER. 0 is the client's own certificate, and the last is the trusted
 * root up to which the chain was checked. The bytes live until the call is finished. Each output may be NULL. 0, or
 * TORC_ENOTFOUND beyond the last, so also when the client showed none; TORC_EINVAL for NULL. */
TORC_API int torc_server_call_peer_certificate(const torc_server_call *call, size_t i, const void **der, size_t *size);

/* Returns the time that is left until the client's deadline, or until the method's max_timeout_ms if that is earlier:
 * milliseconds, 0 if there is neither, -1 when it has passed and for a NULL call. For torc_call_options.timeout_ms of
 * an RPC that is made on the call's behalf. */
TORC_API int64_t torc_server_call_time_left(const torc_server_call *call);

/* Returns 1 when the RPC is over before its answer (see on_cancel), 0 while it runs. TORC_EINVAL for NULL, TORC_EFORK.
 */
TORC_API int torc_server_call_cancelled(const torc_server_call *call);

/* Returns the call's arena. Its memory lives until the call is finished or torc_arena_reset takes it back; a typed
 * handler's request is unpacked there too. One thread at a time uses it. */
TORC_API torc_arena *torc_server_call_arena(torc_server_call *call);

/* Returns a formatted text in the call's arena. NULL: an argument is NULL, or the format is malformed. Bindings format
 * by themselves, into torc_arena_alloc. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
TORC_API const char *
torc_server_call_printf(torc_server_call *call, const char *format, ...);

/* Asks for `n` more messages; see torc_stream_want. TORC_ELIMIT, TORC_ECANCELED, TORC_ECLOSED. Does not wait. */
TORC_API int torc_server_call_want(torc_server_call *call, uint32_t n);

/* Receives the next message: 1 with *message; 0 when the client has sent its last. The message is borrowed until the
 * next torc_server_call_receive that returns 1, or until the call is finished; torc_message_ref keeps it. TORC_EAGAIN,
 * TORC_ETIMEDOUT: none has come. TORC_ESTATE: another thread receives, or the call has on_message. TORC_ECANCELED,
 * TORC_ECLOSED: the RPC is over. *message is untouched unless 1 is returned. A call of a `unary` handler has no further
 * message: 0. */
TORC_API int torc_server_call_receive(torc_server_call *call, int64_t timeout_ms, const torc_message **message);

/* Returns the call behind an RPC of a server's interceptors, for what torc_rpc itself does not tell: the client's
 * certificate, transport security. Only for the functions of this section that take a const call, on the loop's thread,
 * until on_end has returned. NULL for an RPC of a channel, and for NULL. */
TORC_API const torc_server_call *torc_rpc_server_call(const torc_rpc *rpc);

/* --- calls: the answer --- */

/* Sends the initial metadata, which is copied, before the first message. Without this call a response has no initial
 * metadata. NULL: no fields, but the client learns at once that the RPC was taken. TORC_ESTATE: it was sent already, by
 * this function or with a message. TORC_ECANCELED, TORC_ECLOSED. Does not wait: metadata that turns out too large for
 * the client, or above 1 MiB, resets the RPC afterwards with INTERNAL_ERROR, and on_cancel follows. */
TORC_API int torc_server_call_send_headers(torc_server_call *call, const torc_metadata *metadata);

/* Sends a message, which is copied. Returns 0 when the message was taken. Up to send_buffer_bytes of messages wait to
 * be written, so a sender goes as fast as the client reads. Flags: TORC_SEND_COMPRESS and TORC_SEND_PLAIN
 * (torc/stream.h); a message for a client that does not accept gzip is never compressed.
 *
 * TORC_EAGAIN (timeout 0) and TORC_ETIMEDOUT: not taken; on_writable follows TORC_EAGAIN. TORC_EINVAL: a NULL message
 * with a size, flags that are unknown or contradict one another, TORC_SEND_LAST (for clients only), a bad timeout.
 * TORC_ESTATE: TORC_SEND_COMPRESS while the option gzip is off. TORC_ELIMIT: more than 4294967295 bytes.
 * TORC_ECANCELED, TORC_ECLOSED. A message above max_send_message_bytes is taken, and ends the RPC with
 * RESOURCE_EXHAUSTED. */
TORC_API int torc_server_call_send(torc_server_call *call, const void *message, size_t size, unsigned flags,
                                   int64_t timeout_ms);

/* The whole answer of a unary RPC: sends the message, which is copied, then the status OK, and ends the call. GIVES UP
 * THE HANDLE as torc_server_call_finish does. Takes the message however much waits before it. Returns what
 * torc_server_call_finish returns; also TORC_EINVAL for a NULL message with a size, and the RPC ends with INTERNAL; and
 * TORC_ELIMIT for more than 4294967295 bytes, and the RPC ends with RESOURCE_EXHAUSTED. */
TORC_API int torc_server_call_reply(torc_server_call *call, const void *message, size_t size);

/* Ends the call, and GIVES UP THE HANDLE, whatever is returned except TORC_EFORK: the call must not be used again, and
 * has no function that frees it. (torc_stream_finish, its namesake on clients, keeps its handle.)
 *
 * After the messages it sends the status (enum torc_status_code), its text (copied; NULL: none) and the trailers
 * (copied; NULL: none). Does not wait. For a unary method that succeeds call torc_server_call_reply instead: OK without
 * a message makes the client's RPC end with INTERNAL. Trailers and text that are together larger than the client takes,
 * or than 1 MiB, reset the RPC with INTERNAL_ERROR.
 *
 * 0: the status is on its way. TORC_ECANCELED, TORC_ECLOSED: the RPC was over. TORC_EINVAL: `code` is not a status, and
 * the RPC ends with UNKNOWN. TORC_ESTATE: another thread has finished the call. */
TORC_API int torc_server_call_finish(torc_server_call *call, int code, const char *text, const torc_metadata *trailers);

/* --- calls: events --- */

/* The events of a call. Called on the thread that drives the loop, one at a time, never inside the function that caused
 * the event; `release` has an exception. None but `release` is called after the call was finished. Each may be NULL. */
struct torc_server_call_events {
    uint64_t size;

    /* A message came, one for each that torc_server_call_want asked for. Borrowed: torc_message_ref keeps it. If this
     * is NULL, messages wait for torc_server_call_receive. */
    void (*on_message)(torc_server_call *call, const torc_message *message, void *arg);

    /* The client has sent its last message. Comes while a message is asked for. */
    void (*on_half_close)(torc_server_call *call, void *arg);

    /* There is room for a message again, after torc_server_call_send returned TORC_EAGAIN. */
    void (*on_writable)(torc_server_call *call, void *arg);

    /* The RPC is over before its answer. The call is still to be finished, here or later. */
    void (*on_cancel)(torc_server_call *call, void *arg);

    /* The last event: the call was finished and its RPC is over. Called on the thread that drives the loop, or, if the
     * runtime was freed, inside torc_server_call_finish or torc_server_call_reply. */
    void (*release)(void *arg);
};

/* Sets the events, which are copied: once, and before the first torc_server_call_want and torc_server_call_receive. No
 * event is lost that came before: messages and the client's end come once they are asked for, and on_writable comes at
 * once if it is due. A call of a `unary` handler has no on_half_close. TORC_EINVAL (also for a size that is out of
 * range), TORC_EUNSUPPORTED (events of a newer version), TORC_ESTATE, TORC_ECANCELED, TORC_ECLOSED: they are not set.
 * Does not wait. */
TORC_API int torc_server_call_set_events(torc_server_call *call, const struct torc_server_call_events *events,
                                         void *arg);

#ifdef __cplusplus
}
#endif
#endif
