/* A listening socket. Loop thread only. */
#ifndef TC_IO_LISTEN_H
#define TC_IO_LISTEN_H

#include "io/bytestream.h"
#include "io/loop.h"

struct tc_listen_socket;

/* Called from the loop for each connection. The callee owns the byte stream. */
typedef void (*tc_accept_fn)(void *arg, struct tc_bytestream *bs);

/* Listens on the address (port 0: the system chooses). On failure returns NULL and replaces *error by UNAVAILABLE,
 * with a text that names address and reason. When descriptors or memory run out, accepting pauses for 100 ms. A Unix
 * socket on which no process listens is replaced at its path; any other file there is an error, and stays. */
struct tc_listen_socket *tc_listen_socket_new(struct tc_loop *loop, const struct tc_addr *addr, tc_accept_fn fn,
                                              void *arg, struct tc_status *error);
/* Does what tc_listen_socket_new does, on a socket that listens already, such as one from systemd. On success takes
 * ownership of `fd`; on failure `fd` stays the caller's. Closing removes no path. */
struct tc_listen_socket *tc_listen_socket_adopt(struct tc_loop *loop, int fd, tc_accept_fn fn, void *arg,
                                                struct tc_status *error);
/* A18: sets TCP_USER_TIMEOUT of the connections that are accepted from now on, as tc_socket_set_user_timeout does. */
void tc_listen_socket_set_user_timeout(struct tc_listen_socket *l, uint64_t ms);
/* Stops accepting, or starts again; connections wait in the kernel's backlog meanwhile. Must not be called from inside
 * fn. */
void tc_listen_socket_hold(struct tc_listen_socket *l, bool hold);
/* Returns the address as bound, borrowed. */
const struct tc_addr *tc_listen_socket_addr(const struct tc_listen_socket *l);
/* Stops listening and frees the socket; no callback comes after it. Removes the path of a Unix socket that
 * tc_listen_socket_new bound, unless another file is there now, or the process is a forked child or exits. May be
 * called from inside fn. */
void tc_listen_socket_close(struct tc_listen_socket *l);

#endif
