/* A socket as a byte stream. Made by connect.c, dialer.c and listen.c, and by servers out of a descriptor that they
 * have detached, mostly to serve the connection on another loop (api/server/shard.c). Loop thread only. */
#ifndef TC_IO_SOCKET_H
#define TC_IO_SOCKET_H

#include "io/bytestream.h"
#include "io/loop.h"

/* Takes over a connected, non-blocking descriptor. Returns NULL with errno set when the system refuses to watch it: the
 * descriptor is still the caller's then. */
struct tc_bytestream *tc_socket_new(struct tc_loop *loop, int fd);
/* Ends a socket's byte stream that has read and written nothing, and returns its descriptor. */
int tc_socket_detach(struct tc_bytestream *bs);
/* A18: the time that sent bytes may stay unacknowledged (0: the system's default). Sockets of other families than IPv4
 * and IPv6 have no such limit. */
void tc_socket_set_user_timeout(int fd, int family, uint64_t ms);

#endif
