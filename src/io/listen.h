/* A listening socket. */
#ifndef TC_IO_LISTEN_H
#define TC_IO_LISTEN_H

#include "io/bytestream.h"
#include "io/loop.h"

struct tc_listener;

/* Called for each connection; the callee owns the byte stream. */
typedef void (*tc_accept_fn)(void *arg, struct tc_bytestream *bs);

/* Listens on the address (port 0: the system chooses). NULL with a text that names address and reason. When descriptors
 * run out it pauses for 100 ms and goes on. At a Unix path a socket at which nobody listens is replaced; any other file
 * is left alone, and is an error. */
struct tc_listener *tc_listener_new(struct tc_loop *loop, const struct tc_addr *addr, tc_accept_fn fn, void *arg,
                                    struct tc_status *error);
/* The address as bound. */
const struct tc_addr *tc_listener_addr(const struct tc_listener *l);
/* Stops; no callback after it. */
void tc_listener_close(struct tc_listener *l);

#endif
