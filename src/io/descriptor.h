/* Sockets that are non-blocking and close on exec, on systems with and without SOCK_CLOEXEC. Any thread. */
#ifndef TC_IO_DESCRIPTOR_H
#define TC_IO_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/socket.h>

/* On a system without MSG_NOSIGNAL (macOS) tc_descriptor_prepare sets SO_NOSIGPIPE. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

/* socket(2) and accept(2). The descriptor is non-blocking and closes on exec. Return -1 with errno set on failure. */
int tc_descriptor_socket(int family, int type, int protocol);
int tc_descriptor_accept(int listener);

/* Makes a socket non-blocking and close on exec by fcntl, and sets SO_NOSIGPIPE where the system has it. Returns false
 * with errno set on failure. */
bool tc_descriptor_prepare(int fd);

#endif
