#include "io/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool tc_descriptor_prepare(int fd)
{
    int status = fcntl(fd, F_GETFL), flags = fcntl(fd, F_GETFD);
    bool ok = status >= 0 && flags >= 0 && fcntl(fd, F_SETFL, status | O_NONBLOCK) == 0 &&
              fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == 0;
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ok = ok && setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on)) == 0;
#endif
    return ok;
}

#ifndef SOCK_CLOEXEC
/* Returns the prepared descriptor, or -1 with errno set; the descriptor is closed then. */
static int descriptor_prepared(int fd)
{
    if (fd < 0 || tc_descriptor_prepare(fd))
        return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}
#endif

int tc_descriptor_socket(int family, int type, int protocol)
{
#ifdef SOCK_CLOEXEC
    return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
#else
    return descriptor_prepared(socket(family, type, protocol));
#endif
}

int tc_descriptor_accept(int listener)
{
#ifdef SOCK_CLOEXEC
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
    return descriptor_prepared(accept(listener, NULL, NULL));
#endif
}
