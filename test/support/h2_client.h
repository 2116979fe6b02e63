/* A client connection under test against a scripted peer, on a manual loop, with calls that record what they are told.
 */
#ifndef TC_SUPPORT_H2_CLIENT_H
#define TC_SUPPORT_H2_CLIENT_H

#include "http2/stream.h"
#include "support/h2_peer.h"

struct tc_h2_test {
    struct tc_loop *loop;
    struct tc_pipe *pipe;
    struct tc_h2_peer *peer; /* the server's end */
    struct tc_h2_conn *conn; /* NULL once closed */
    unsigned ready, capacity, draining, closed;
    bool too_many_pings;
    char why[512]; /* of the last draining or closed */
    /* Called in each event of the connection with its name, when set. */
    void (*hook)(struct tc_h2_test *t, const char *event);
    struct tc_h2_opts opts;
};

struct tc_h2_test_call {
    struct tc_h2_test *t;
    struct tc_h2_stream *stream; /* NULL after the end */
    struct tc_arena arena;
    struct tc_headers metadata;
    bool auto_read; /* asks for the next message at once */
    unsigned headers, messages, written, done;
    struct tc_buf last;                       /* the last message */
    char header_text[512], trailer_text[512]; /* "name=value;" */
    int code;
    char text[512];
    bool unprocessed, unsent, from_server, trailers_only;
    void (*hook)(struct tc_h2_test_call *call, const char *event);
};

/* Connects with these options (NULL: the defaults without bandwidth pings) and plays the server's settings. read_chunk:
 * bytes of one read, 0: no limit. */
void tc_h2_test_init(struct tc_h2_test *t, const struct tc_h2_opts *opts, size_t read_chunk);
/* Without the server's settings. */
void tc_h2_test_init_silent(struct tc_h2_test *t, const struct tc_h2_opts *opts, size_t read_chunk);
void tc_h2_test_fini(struct tc_h2_test *t);
void tc_h2_test_close(struct tc_h2_test *t);
void tc_h2_test_run(struct tc_h2_test *t);

void tc_h2_test_call_init(struct tc_h2_test_call *call, struct tc_h2_test *t);
/* Opens it; the error of tc_h2_stream_open. */
int tc_h2_test_open(struct tc_h2_test_call *call, const struct tc_h2_request *request);
/* Sets up and opens a unary call with message "hi", reading, and runs the loop. Asserts that it could be opened. */
void tc_h2_test_unary(struct tc_h2_test_call *call, struct tc_h2_test *t);
/* Cancels it if it still runs. */
void tc_h2_test_call_fini(struct tc_h2_test_call *call);
extern const struct tc_h2_request tc_h2_test_request;

#define TC_H2_OK_HEADERS ":status: 200\ncontent-type: application/grpc\n"

/* A number of four bytes as frames have it. */
uint32_t tc_h2_test_u32(const char *p);
/* All increments of a stream's window that the peer received since it was read last; its other frames are dropped. */
size_t tc_h2_test_increments(struct tc_h2_peer *peer, uint32_t stream);
/* A call whose request, "hi", is sent; auto_read: each message asks for the next. Nothing is asked for yet. */
void tc_h2_test_open_reading(struct tc_h2_test_call *call, struct tc_h2_test *t, bool auto_read);

#endif
