/* A server on a manual loop, and a scripted HTTP/2 client of it over a pipe in memory. */
#ifndef TC_SUPPORT_KITS_SERVER_PIPE_H
#define TC_SUPPORT_KITS_SERVER_PIPE_H

#include "server/call.h"
#include "server/server.h"
#include "support/fakes/h2.h"

/* The headers of a request, from ":method" on. `path` is a literal. */
#define KIT_SERVER_PIPE_REQUEST(path)                                                                                  \
    ":method: POST\n:scheme: http\n:path: " path "\n:authority: a\nte: trailers\ncontent-type: application/grpc\n"

struct kit_server_pipe {
    struct tc_loop *loop;
    struct tc_server *server; /* a test that frees the server sets this to NULL */
    struct fake_pipe *pipe;   /* end 0: the server; end 1: the client. NULL before kit_server_pipe_connect */
    struct fake_h2 *peer;     /* the client; NULL before kit_server_pipe_connect */
};

/* Makes the server, without a client yet: the test adds methods first. opts NULL: the defaults. */
void kit_server_pipe_init(struct kit_server_pipe *k, const struct tc_server_opts *opts);
/* Connects the client, which sends its preface, its SETTINGS and an ACK of the server's SETTINGS, and runs the loop.
 * read_chunk: the most bytes of one read of the server; 0: unlimited. */
void kit_server_pipe_connect(struct kit_server_pipe *k, size_t read_chunk);
/* Frees server, client, pipe and loop. Call it only after kit_server_pipe_connect. */
void kit_server_pipe_fini(struct kit_server_pipe *k);

#endif
