/* Sockets that block nothing and that no child inherits, on systems with and without the flags for it. Any thread. */
#ifndef TC_IO_DESCRIPTOR_H
#define TC_IO_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/socket.h>

/* Where a system has no such flag (macOS), tc_descriptor_prepare sets SO_NOSIGPIPE instead. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

/* socket(2) and accept(2). The descriptor is non-blocking and closes on exec. Return -1 with errno set on failure. */
int tc_descriptor_socket(int family, int type, int protocol);
int tc_descriptor_accept(int listener);

/* Makes a descriptor non-blocking and close on exec by fcntl, and its writes raise no SIGPIPE where that is an option
 * of the socket. Returns false with errno set on failure. */
bool tc_descriptor_prepare(int fd);

#endif
