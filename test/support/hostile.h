/* Servers that send any bytes, in a process of their own, each on a port of its own and playing one case; beside them a
 * good backend. What they cost their client is then the client's alone. */
#ifndef TC_SUPPORT_HOSTILE_H
#define TC_SUPPORT_HOSTILE_H

#include "support/certs.h"
#include "support/h2_peer.h"

#define HOSTILE_MAX 160

struct hostile;
struct hostile_peer;

/* What is done with one connection, on a thread of its own; it is closed when the function returns. */
typedef void hostile_play_fn(struct hostile_peer *p);

/* Forks: before the program has threads. At most HOSTILE_MAX plays. With a certificate they speak TLS, and shake hands
 * when they first send or wait for anything; the good backend speaks in the clear. */
struct hostile *hostile_new(hostile_play_fn *const *plays, size_t n, const struct tc_cert *tls);
void hostile_free(struct hostile *h);
/* "127.0.0.1:PORT" of play i, and of the backend that answers all; borrowed. */
const char *hostile_address(const struct hostile *h, size_t i);
const char *hostile_backend(const struct hostile *h);
/* Connections that play i took so far. */
unsigned hostile_connections(const struct hostile *h, size_t i);
/* Until none of its connections is being played; false after 20 s. */
bool hostile_wait_over(const struct hostile *h, size_t i);

/* --- for plays --- */

/* What is to be sent is put here, then goes out by hostile_flush. */
struct tc_h2_peer *hostile_frames(struct hostile_peer *p);
/* The peer reads nothing from now on. */
void hostile_deafen(struct hostile_peer *p);
/* False when the client has closed, or takes nothing for 10 s; so is all that follows. Reads what comes meanwhile,
 * unless deaf. */
bool hostile_flush(struct hostile_peer *p);
/* hostile_flush when much has gathered. */
bool hostile_flush_much(struct hostile_peer *p);
/* Waits for a frame (at most 10 s) and gives its stream; 0: the client has closed. Frames before it are dropped. */
uint32_t hostile_await(struct hostile_peer *p, uint8_t type);
/* From now on hostile_flush drops no frames that come meanwhile. */
void hostile_keep(struct hostile_peer *p);
/* The next frame that has come; with `wait`, that comes within 10 s. NULL: none, or the client has closed. */
const struct tc_h2p_frame *hostile_next(struct hostile_peer *p, bool wait);
/* SETTINGS, then the stream of the first request; 0: none came. */
uint32_t hostile_begin(struct hostile_peer *p);
/* Until the client has worked through all that was sent (it answers a PING), or has closed. */
void hostile_settle(struct hostile_peer *p);
/* Until the client closes. */
void hostile_await_close(struct hostile_peer *p);
/* False when the client has closed. The frames that have come are dropped. */
bool hostile_is_heard(struct hostile_peer *p);
/* Beneath TLS: any bytes, at once; false when they could not be sent. What comes from the client, up to len: 0 at its
 * end or after 10 s. What has been put so far is sent by hostile_flush, into records. */
bool hostile_put_raw(struct hostile_peer *p, const void *data, size_t len);
size_t hostile_take_raw(struct hostile_peer *p, void *data, size_t len);
/* The TLS of this connection; NULL in the clear. */
struct ssl_st *hostile_ssl(struct hostile_peer *p);
/* The connection will end without TLS saying so. */
void hostile_truncate(struct hostile_peer *p);
/* The end of the connection will be a reset. */
void hostile_abort(struct hostile_peer *p);

#endif
