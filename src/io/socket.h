/* A socket as a byte stream. Made by connect.c, dialer.c and listen.c; and by api/server/shard.c for a descriptor that
 * it has detached, mostly to serve the connection on another loop. Loop thread only, unless a comment says
 * otherwise. */
#ifndef TC_IO_SOCKET_H
#define TC_IO_SOCKET_H

#include "io/bytestream.h"
#include "io/loop.h"

/* Takes ownership of a connected, non-blocking descriptor. The owner of the byte stream ends it with ops->close, or
 * with tc_socket_detach. Returns NULL with errno set if the system refuses to watch the descriptor, which is still the
 * caller's then. */
struct tc_bytestream *tc_socket_new(struct tc_loop *loop, int fd);
/* Frees a socket's byte stream that has read and written nothing, and returns its descriptor, which is the caller's. */
int tc_socket_detach(struct tc_bytestream *bs);
/* A18: sets the time that sent bytes may stay unacknowledged; 0 leaves the system's default, and more than INT_MAX ms
 * count as INT_MAX. Does nothing for families other than IPv4 and IPv6. Any thread. */
void tc_socket_set_user_timeout(int fd, int family, uint64_t ms);

#endif
