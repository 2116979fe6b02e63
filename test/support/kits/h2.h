/* An HTTP/2 client connection under test against a scripted peer, on a manual loop, and calls that record their
 * events. */
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
    bool too_many_pings;
    char why[512]; /* text of the last draining or closed event */
    /* Called in each event of the connection with the event's name. May be NULL. */
    void (*hook)(struct kit_h2 *t, const char *event);
    struct tc_h2_opts opts;
};

struct kit_h2_call {
    struct kit_h2 *t;
    struct tc_h2_stream *stream; /* NULL after the end */
    struct tc_arena arena;
    struct tc_headers metadata;
    bool auto_read; /* requests the next message at once */
    unsigned headers, messages, written, done;
    struct tc_buf last;                       /* the last message */
    char header_text[512], trailer_text[512]; /* "name=value;" */
    int code;
    char text[512];
    /* Of the outcome (struct tc_h2_outcome); refused is its `rejected`. */
    bool unprocessed, unsent, refused, from_server, trailers_only;
    /* Called in each event of the call: "headers", "message", "written", "done". May be NULL. */
    void (*hook)(struct kit_h2_call *call, const char *event);
};

/* Connects with these options (NULL: the defaults without bandwidth pings) and plays the server's settings. read_chunk:
 * the most bytes of one read; 0: unlimited. */
void kit_h2_init(struct kit_h2 *t, const struct tc_h2_opts *opts, size_t read_chunk);
/* Connects without playing the server's settings. */
void kit_h2_init_silent(struct kit_h2 *t, const struct tc_h2_opts *opts, size_t read_chunk);
void kit_h2_fini(struct kit_h2 *t);
void kit_h2_close(struct kit_h2 *t);
/* Runs the loop until nothing is due. */
void kit_h2_run(struct kit_h2 *t);

/* Call it before kit_h2_open. kit_h2_unary and kit_h2_open_reading do so themselves. */
void kit_h2_call_init(struct kit_h2_call *call, struct kit_h2 *t);
/* Opens the call. Returns the error of tc_h2_client_stream_open. */
int kit_h2_open(struct kit_h2_call *call, const struct tc_h2_request *request);
/* Opens a unary call with message "hi", reading, and runs the loop. Asserts that the call could be opened. */
void kit_h2_unary(struct kit_h2_call *call, struct kit_h2 *t);
/* Cancels the call if it still runs, and frees what it holds. */
void kit_h2_call_fini(struct kit_h2_call *call);
extern const struct tc_h2_request kit_h2_request;

#define KIT_H2_OK_HEADERS ":status: 200\ncontent-type: application/grpc\n"

/* Reads a 32-bit number as frames store it. */
uint32_t kit_h2_u32(const char *p);
/* Takes all frames that the peer has received. Returns the sum of the window increments for the stream (0: of the
 * connection) among these frames. */
size_t kit_h2_increments(struct fake_h2 *peer, uint32_t stream);
/* Opens a call, sends its request, "hi", and runs the loop. Requests no message yet; auto_read: each message requests
 * the next. */
void kit_h2_open_reading(struct kit_h2_call *call, struct kit_h2 *t, bool auto_read);

#endif
