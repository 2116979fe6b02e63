/* An HTTP/2 client connection under test against a scripted peer, on a manual loop, and calls that record their
 * events. One thread: events come while the loop runs. */
#ifndef TC_SUPPORT_KITS_H2_H
#define TC_SUPPORT_KITS_H2_H

#include "http2/client_stream.h"
#include "http2/connection.h"
#include "support/fakes/h2.h"

struct kit_h2 {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct fake_h2 *peer;                       /* the server's end */
    struct tc_h2_conn *conn;                    /* NULL after kit_h2_close */
    unsigned ready, capacity, draining, closed; /* how often each event came */
    bool too_many_pings;                        /* of the draining event */
    char why[512];                              /* text of the last draining or closed event, the first 511 bytes */
    /* Called in each event of the connection: "ready", "capacity", "draining", "closed". May be NULL. kit_h2_init sets
     * it to NULL. */
    void (*hook)(struct kit_h2 *t, const char *event);
    struct tc_h2_opts opts;
};

struct kit_h2_call {
    struct kit_h2 *t;
    struct tc_h2_stream *stream;               /* NULL before kit_h2_open and after on_done */
    struct tc_arena arena;                     /* of the stream and `metadata` */
    struct tc_headers metadata;                /* empty at first; sent unless the request has other metadata */
    bool auto_read;                            /* each message requests the next at once */
    unsigned headers, messages, written, done; /* how often each event came */
    struct tc_buf last;                        /* the last message */
    char header_text[512], trailer_text[512];  /* "name=value;" for each field, the first 511 bytes */
    int code;                                  /* of the status; -1: the call has not ended */
    char text[512];                            /* of the status, the first 511 bytes */
    /* Of the outcome (struct tc_h2_outcome); refused is its `rejected`. */
    bool unprocessed, unsent, refused, from_server, trailers_only;
    /* Called in each event of the call: "headers", "message", "written", "done". May be NULL. */
    void (*hook)(struct kit_h2_call *call, const char *event);
};

/* Fills *t, connects with these options (copied; NULL: the defaults without bandwidth pings), plays the server's
 * settings, and runs the loop. Asserts that the connection is ready. read_chunk: the most bytes of one read; 0:
 * unlimited. */
void kit_h2_init(struct kit_h2 *t, const struct tc_h2_opts *opts, size_t read_chunk);
/* Connects as kit_h2_init does, but without the server's settings: the connection is not ready. */
void kit_h2_init_silent(struct kit_h2 *t, const struct tc_h2_opts *opts, size_t read_chunk);
/* Closes the connection as kit_h2_close does, and frees peer, pipe and loop. */
void kit_h2_fini(struct kit_h2 *t);
/* Closes the connection with tc_h2_conn_close. Does nothing the second time. */
void kit_h2_close(struct kit_h2 *t);
/* Runs the loop until nothing is due. */
void kit_h2_run(struct kit_h2 *t);

/* Fills *call, before kit_h2_open. kit_h2_unary and kit_h2_open_reading call it themselves. `t` must outlive the
 * call. */
void kit_h2_call_init(struct kit_h2_call *call, struct kit_h2 *t);
/* Opens the call, with call->metadata if the request has none. Returns 0, or the error of
 * tc_h2_client_stream_open. */
int kit_h2_open(struct kit_h2_call *call, const struct tc_h2_request *request);
/* Opens a unary call with message "hi", reading, and runs the loop. Asserts that the call could be opened. */
void kit_h2_unary(struct kit_h2_call *call, struct kit_h2 *t);
/* Cancels the call if it still runs, and frees what it holds. */
void kit_h2_call_fini(struct kit_h2_call *call);
/* A request of /test.Echo/Say, without metadata and deadline. */
extern const struct tc_h2_request kit_h2_request;

#define KIT_H2_OK_HEADERS ":status: 200\ncontent-type: application/grpc\n"

/* Reads a 32-bit number as frames store it, from four bytes in network byte order. */
uint32_t kit_h2_u32(const char *p);
/* Takes all frames that the peer has received. Returns the sum of the window increments for the stream (0: of the
 * connection) among these frames. */
size_t kit_h2_increments(struct fake_h2 *peer, uint32_t stream);
/* Opens a call, sends its request, "hi", and runs the loop. Requests no message yet; auto_read: each message requests
 * the next. */
void kit_h2_open_reading(struct kit_h2_call *call, struct kit_h2 *t, bool auto_read);

#endif
