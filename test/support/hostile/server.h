/* Servers that send arbitrary bytes, in one separate process, each on its own port and playing one case, and a good
 * backend. Because that process is separate, memory and CPU time measured in the test's process are the client's
 * alone. */
#ifndef TC_SUPPORT_HOSTILE_SERVER_H
#define TC_SUPPORT_HOSTILE_SERVER_H

#include "support/fakes/h2.h"
#include "support/kits/cert.h"

#define HOSTILE_MAX 160

struct hostile;
struct hostile_peer;

/* Plays one connection, on a thread of its own. The connection is closed when the function returns. */
typedef void hostile_play_fn(struct hostile_peer *p);

/* Forks; call it before the program has threads. At most HOSTILE_MAX plays. With a certificate the servers speak TLS,
 * and shake hands when they first send or wait; the good backend is plaintext. */
struct hostile *hostile_new(hostile_play_fn *const *plays, size_t n, const struct kit_cert *tls);
void hostile_free(struct hostile *h);
/* Return "127.0.0.1:PORT" of play i, and of the good backend; borrowed. */
const char *hostile_address(const struct hostile *h, size_t i);
const char *hostile_backend(const struct hostile *h);
/* Returns the number of connections that play i has accepted. */
unsigned hostile_connections(const struct hostile *h, size_t i);
/* Waits until no connection of play i is being played. Returns false after 20 s. */
bool hostile_wait_over(const struct hostile *h, size_t i);

/* Plays the client's side instead: connects to a server and plays on the calling thread. The server's certificate is
 * not verified. hostile_begin then sends a request to /a.B/C and waits for nothing. Returns false if it could not
 * connect. */
bool hostile_visit(const char *address, bool tls, hostile_play_fn *play, void *arg);

/* --- for plays ---
 *
 * A function that waits gives up once nothing has come for 10 s (1.5 s in hostile_visit). The other side then counts as
 * closed. */

/* The header fields of a request, for fake_h2_headers. */
#define HOSTILE_REQUEST(method)                                                                                        \
    ":method: POST\n:scheme: http\n:path: " method "\n:authority: a\ncontent-type: application/grpc\nte: trailers\n"

/* Returns the number of this play; 0 in hostile_visit. */
size_t hostile_number(const struct hostile_peer *p);
/* Returns the `arg` of hostile_visit; NULL in a server's play. */
void *hostile_arg(const struct hostile_peer *p);
/* Shrinks the socket's receive buffer: once this side no longer reads, the other side's writes soon block. */
void hostile_shrink(struct hostile_peer *p);

/* Returns the peer to which a play adds frames; hostile_flush sends them. */
struct fake_h2 *hostile_frames(struct hostile_peer *p);
/* Makes hostile_flush read nothing from now on, until hostile_settle. Other functions that wait read all the same. */
void hostile_deafen(struct hostile_peer *p);
/* Sends the gathered frames. While the socket takes none, reads the client's bytes, unless deaf, and drops their
 * frames. Returns false if the client has closed, or read nothing for 10 s; every later call then returns false too. */
bool hostile_flush(struct hostile_peer *p);
/* Calls hostile_flush if 64 KiB have gathered. Returns false if the client has closed. */
bool hostile_flush_much(struct hostile_peer *p);
/* Sends the gathered frames, then waits for a frame of the type. Returns its stream, or 0 if the client has closed.
 * Frames before it are dropped. */
uint32_t hostile_await(struct hostile_peer *p, uint8_t type);
/* Makes hostile_flush keep the frames that come meanwhile. */
void hostile_keep(struct hostile_peer *p);
/* Returns the next frame that has come or, with `wait`, that comes; NULL if there is no frame or the client has
 * closed. */
const struct fake_h2_frame *hostile_next(struct hostile_peer *p, bool wait);
/* Sends SETTINGS and waits for the first request. Returns its stream, or 0 if none came. */
uint32_t hostile_begin(struct hostile_peer *p);
/* Reads again after hostile_deafen. Waits until the client has processed everything sent (it answers a PING) or has
 * closed. */
void hostile_settle(struct hostile_peer *p);
/* Waits until the client closes. */
void hostile_await_close(struct hostile_peer *p);
/* Drops the frames that have come. Returns false if the client has closed. */
bool hostile_is_heard(struct hostile_peer *p);
/* Send and receive beneath TLS. hostile_put_raw sends any bytes at once; returns false on failure. hostile_take_raw
 * reads up to len bytes; returns 0 at the end, or if none came. */
bool hostile_put_raw(struct hostile_peer *p, const void *data, size_t len);
size_t hostile_take_raw(struct hostile_peer *p, void *data, size_t len);
/* Returns the TLS session of this connection, borrowed; NULL if plaintext. */
struct ssl_st *hostile_ssl(struct hostile_peer *p);
/* Makes the connection end without a close_notify when the play returns. */
void hostile_truncate(struct hostile_peer *p);
/* Makes the connection end with a reset when the play returns. */
void hostile_abort(struct hostile_peer *p);

#endif
