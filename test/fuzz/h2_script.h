/* For the fuzz targets of HTTP/2. An input is a script: what the peer sends, what the loop and the socket do, and what
 * the connection's owner does. The connection is at end 0 of a pipe on a manual loop, the peer at end 1. One thread. */
#ifndef TC_FUZZ_H2_SCRIPT_H
#define TC_FUZZ_H2_SCRIPT_H

#include "fuzz.h"
#include "http2/connection.h"
#include "support/fakes/pipe.h"

struct tc_fuzz_h2 {
    struct tc_fuzz_input in;
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct tc_h2_conn *conn; /* NULL after tc_fuzz_h2_close, and if the target makes it by itself */
    bool server;             /* the connection's role */
    bool preface_seen;
    bool silent;         /* tc_fuzz_h2_greet sends nothing: the script may */
    bool holding;        /* steps do not drain the loop: it runs only in steps that turn or advance it */
    unsigned block_open; /* the stream whose header block the peer has not ended; 0: no block is open */
    struct tc_buf seen;  /* bytes that the peer has read but not parsed */
};

/* Takes the settings of the run from the input. Makes the loop, the pipe and the connection, and greets. The input is
 * borrowed until the last step; `events` must outlive the connection. */
void tc_fuzz_h2_init(struct tc_fuzz_h2 *h, const uint8_t *data, size_t size, bool server,
                     const struct tc_h2_conn_events *events, void *arg);
/* For a target that makes the connection at end 0 of the pipe by itself. tc_fuzz_h2_begin takes the settings, makes the
 * loop and the pipe, and stores the connection's options in *opts. tc_fuzz_h2_greet, called once the connection is
 * made, lets the peer send its preface and SETTINGS, unless it is silent. */
void tc_fuzz_h2_begin(struct tc_fuzz_h2 *h, const uint8_t *data, size_t size, bool server, struct tc_h2_opts *opts);
void tc_fuzz_h2_greet(struct tc_fuzz_h2 *h);
/* Drains the loop, asserts that the connection was closed and has closed its end of the pipe, and frees all but *h. */
void tc_fuzz_h2_fini(struct tc_fuzz_h2 *h);
/* Does what the peer, the loop or the socket does at this step, then drains the loop unless `holding`. `op` is a byte
 * of the script, which the caller took; its arguments are taken from `in`. */
void tc_fuzz_h2_step(struct tc_fuzz_h2 *h, uint8_t op);
/* Closes the connection if it is open. May be called in on_closed. */
void tc_fuzz_h2_close(struct tc_fuzz_h2 *h);

#endif
