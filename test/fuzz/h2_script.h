/* The HTTP/2 targets. An input is a script of the peer's bytes and frames, and of actions of the connection's owner in
 * between. The connection is at end 0 of a pipe on a manual loop, the peer at end 1. */
#ifndef TC_FUZZ_H2_SCRIPT_H
#define TC_FUZZ_H2_SCRIPT_H

#include "fuzz.h"
#include "http2/connection.h"
#include "support/fakes/pipe.h"

struct tc_fuzz_h2 {
    struct tc_fuzz_input in;
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct tc_h2_conn *conn; /* NULL after it was closed */
    bool server;             /* the connection's role */
    bool preface_seen;
    bool silent;         /* the peer's preface is in the script, or is missing */
    bool holding;        /* the loop is not run to its end after each step, only turned or advanced by steps */
    unsigned block_open; /* the stream whose header block the peer has not ended; 0: no block is open */
    struct tc_buf seen;  /* bytes that the peer has read and not parsed */
};

/* Takes the settings of the run from the input and makes everything. */
void tc_fuzz_h2_init(struct tc_fuzz_h2 *h, const uint8_t *data, size_t size, bool server,
                     const struct tc_h2_conn_events *events, void *arg);
/* For a target that makes the connection at end 0 of the pipe by itself: tc_fuzz_h2_begin takes the settings, and
 * stores the connection's in *opts; tc_fuzz_h2_greet then has the peer send its preface, if it is not silent. */
void tc_fuzz_h2_begin(struct tc_fuzz_h2 *h, const uint8_t *data, size_t size, bool server, struct tc_h2_opts *opts);
void tc_fuzz_h2_greet(struct tc_fuzz_h2 *h);
/* Frees everything. The target has closed the connection, which must have closed its end of the pipe. */
void tc_fuzz_h2_fini(struct tc_fuzz_h2 *h);
/* Takes one step of the peer or of loop and socket. `op` is a byte of the script. */
void tc_fuzz_h2_step(struct tc_fuzz_h2 *h, uint8_t op);
/* Closes the connection from outside its callbacks. */
void tc_fuzz_h2_close(struct tc_fuzz_h2 *h);

#endif
