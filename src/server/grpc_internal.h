/* The inside of the gRPC server, shared by its two files. */
#ifndef TC_SERVER_GRPC_INTERNAL_H
#define TC_SERVER_GRPC_INTERNAL_H

#include <uthash.h>

#include "io/listen.h"
#include "server/grpc_server.h"
#include "tls/tls.h"

struct tc_server_method {
    UT_hash_handle hh;
    tc_server_call_fn fn;
    tc_server_unary_fn unary;
    void *arg;
    char *path;
};

struct tc_server_listener {
    struct tc_link link;
    struct tc_server *server;
    struct tc_listener *listener;
};

struct tc_server_conn {
    struct tc_link link;
    struct tc_server *server;
    struct tc_h2_conn *h2;              /* NULL during the handshake */
    struct tc_tls_handshake *handshake; /* NULL after it */
    struct tc_link calls;
    struct tc_task close; /* closes it from the loop */
    uint64_t id;
};

struct tc_server {
    struct tc_loop *loop;
    struct tc_server_opts opts;
    struct tc_server_method *methods;
    struct tc_server_method fallback;
    struct tc_link listeners, conns;
    struct tc_server_counts counts;
    uint64_t next_conn;
    bool draining;
    void (*on_drained)(void *arg);
    void *drained_arg;
    struct tc_timer grace;
    struct tc_task drained;
};

struct tc_server_out {
    struct tc_link link;
    struct tc_rstr *message;
};

struct tc_server_call {
    struct tc_link link;
    struct tc_server_conn *conn;
    struct tc_h2_stream *stream;
    const struct tc_server_method *method;
    const struct tc_server_call_events *events;
    void *arg;
    struct tc_arena arena;
    struct tc_timer deadline;
    struct tc_task end; /* on_end from the loop, after a reset */
    uint32_t reset_code;
    bool ending;             /* reset: no event but on_end */
    struct tc_rstr *request; /* unary */
    struct tc_link queue;    /* of struct tc_server_out */
    struct tc_rstr *current; /* with the stream */
    size_t queued_bytes;
    bool compress;
    bool finish;      /* the status follows the queue */
    bool status_sent; /* the stream has it */
    struct tc_status status;
    struct tc_headers trailers;
};

/* A request has come: makes its call and calls the handler. */
void tc_server_call_begin(struct tc_server_conn *conn, struct tc_h2_stream *stream,
                          const struct tc_server_method *method);
/* Tells on_end, unless why is NULL, and frees the call. The stream is not touched. */
void tc_server_call_end(struct tc_server_call *call, const struct tc_status *why);

#endif
