/* Servers that send arbitrary bytes: each listens on its own port and plays one case. They and a good backend, an echo,
 * run in one separate process, so that memory and CPU time measured in the test's process exclude them. hostile_visit
 * plays a client instead, in the test's process. */
#ifndef TC_SUPPORT_HOSTILE_SERVER_H
#define TC_SUPPORT_HOSTILE_SERVER_H

#include "support/fakes/h2.h"
#include "support/kits/cert.h"

#define HOSTILE_MAX 160

struct hostile;
struct hostile_peer;

/* Plays one connection; in a server on a thread of its own. When the function returns, the frames that it gathered in
 * hostile_frames are sent, and the connection is closed. p is valid until then. */
typedef void hostile_play_fn(struct hostile_peer *p);

/* Forks, and returns when the servers listen; call it before the program has threads. At most HOSTILE_MAX plays.
 * The caller may free the array and `tls` after the call: the forked process has copies. tls: the servers' certificate,
 * NULL for plaintext. With TLS the handshake begins in the first function of a play that reads, or that sends gathered
 * frames; hostile_put_raw and hostile_take_raw do not begin it.
 * The good backend is plaintext in any case. A failure fails the test. */
struct hostile *hostile_new(hostile_play_fn *const *plays, size_t n, const struct kit_cert *tls);
/* Kills the process of the servers and frees h. */
void hostile_free(struct hostile *h);
/* Return "127.0.0.1:PORT" of play i, and of the good backend; valid until hostile_free. */
const char *hostile_address(const struct hostile *h, size_t i);
const char *hostile_backend(const struct hostile *h);
/* Returns the number of connections that play i has accepted. */
unsigned hostile_connections(const struct hostile *h, size_t i);
/* Waits until no connection of play i is being played. Returns false after 20 s. */
bool hostile_wait_over(const struct hostile *h, size_t i);

/* Plays the client's side instead: connects to the server at "127.0.0.1:PORT" and plays on the calling thread. The
 * server's certificate is not verified. With `tls` the process must ignore SIGPIPE. Returns false if the connection
 * could not be made. */
bool hostile_visit(const char *address, bool tls, hostile_play_fn *play, void *arg);

/* --- for plays ---
 *
 * "The client" is the other side; in hostile_visit that is the server. A function that waits gives up once the socket
 * has not become ready for 10 s (1.5 s in hostile_visit); the client then counts as closed. */

/* The header fields of a request, for fake_h2_headers. */
#define HOSTILE_REQUEST(method)                                                                                        \
    ":method: POST\n:scheme: http\n:path: " method "\n:authority: a\ncontent-type: application/grpc\nte: trailers\n"

/* Returns the index of this play; 0 in hostile_visit. */
size_t hostile_number(const struct hostile_peer *p);
/* Returns the `arg` of hostile_visit; NULL in a server's play. */
void *hostile_arg(const struct hostile_peer *p);
/* Shrinks the socket's receive buffer: once this side no longer reads, the other side's writes soon block. */
void hostile_shrink(struct hostile_peer *p);

/* Returns the HTTP/2 peer to which a play adds frames, borrowed for the play; hostile_flush sends them. */
struct fake_h2 *hostile_frames(struct hostile_peer *p);
/* Makes hostile_flush read nothing from now on, until hostile_settle. Functions that wait for frames still read. */
void hostile_deafen(struct hostile_peer *p);
/* Sends the gathered frames. Unless deaf, reads while it cannot send, and drops the frames read (hostile_keep: keeps
 * them). Returns false once the client counts as closed. */
bool hostile_flush(struct hostile_peer *p);
/* Calls hostile_flush if 64 KiB have gathered. Returns false once the client counts as closed. */
bool hostile_flush_much(struct hostile_peer *p);
/* Sends the gathered frames, then waits for a frame of the type, and drops the frames before it. Returns the frame's
 * stream; 0 if the client counts as closed and no such frame has come, or if the frame's stream is 0. */
uint32_t hostile_await(struct hostile_peer *p, uint8_t type);
/* Makes hostile_flush keep the frames it reads, from now on. */
void hostile_keep(struct hostile_peer *p);
/* Returns the next frame, valid until the next call of a function that reads or sends frames. If none has come, waits
 * for one if `wait` is true, and returns NULL if it is false. Returns NULL too if the client counts as closed and no
 * frame is left. Does not send the gathered frames. */
const struct fake_h2_frame *hostile_next(struct hostile_peer *p, bool wait);
/* Sends SETTINGS and an ACK, and waits for the first request. Returns its stream, or 0 if none came. In hostile_visit
 * sends the preface, SETTINGS, an ACK and a request to /a.B/C instead, and returns its stream, 1, without waiting for a
 * response, or 0 if the client counts as closed. */
uint32_t hostile_begin(struct hostile_peer *p);
/* Gets a frame from hostile_settle_with. f is valid as a frame of hostile_next is. */
typedef void hostile_frame_fn(void *arg, struct hostile_peer *p, const struct fake_h2_frame *f);
/* Ends hostile_deafen. Sends the gathered frames and a PING "settled?", and waits until the answer to that PING comes,
 * or the client counts as closed. After the answer the client has read everything sent before. The frames that come
 * before the answer are dropped, also after hostile_keep; hostile_settle_with hands each of them to on_frame first,
 * unless on_frame is NULL. */
void hostile_settle(struct hostile_peer *p);
void hostile_settle_with(struct hostile_peer *p, hostile_frame_fn *on_frame, void *arg);
/* Sends the gathered frames, then waits until the client closes. */
void hostile_await_close(struct hostile_peer *p);
/* Drops the frames that have come. Returns false if the client counts as closed. */
bool hostile_is_heard(struct hostile_peer *p);
/* Send and receive beneath TLS. hostile_put_raw sends any bytes at once, ahead of the gathered frames; returns false on
 * failure. hostile_take_raw waits for bytes and reads up to len of them; returns 0 at the end, or if none came. */
bool hostile_put_raw(struct hostile_peer *p, const void *data, size_t len);
size_t hostile_take_raw(struct hostile_peer *p, void *data, size_t len);
/* Returns the SSL object of this connection, borrowed for the play; NULL if plaintext. */
struct ssl_st *hostile_ssl(struct hostile_peer *p);
/* Makes the connection end without a close_notify when the play returns. */
void hostile_truncate(struct hostile_peer *p);
/* Makes the connection end with a reset when the play returns. */
void hostile_abort(struct hostile_peer *p);

#endif
