#include "io/reuse_port.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strerror.h"
#include "io/descriptor.h"

/* Binds and listens. Returns 0 and stores *bound, or returns an errno. */
static int listen_on(int fd, const struct tc_addr *addr, struct tc_addr *bound)
{
    struct sockaddr_un un;
    socklen_t len;
    const struct sockaddr *sa = tc_addr_sockaddr(addr, &un, &len);
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    } own;
    socklen_t own_len = sizeof(own);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){1}, sizeof(int)) != 0 || bind(fd, sa, len) != 0 ||
        getsockname(fd, &own.any, &own_len) != 0)
        return errno;
    if (tc_addr_from_sockaddr(bound, &own.any, own_len) != 0)
        return EAFNOSUPPORT;
    if (listen(fd, SOMAXCONN) == 0)
        return 0;
    int err = errno;
    tc_addr_fini(bound);
    return err;
}

int tc_reuse_port_listen(const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error)
{
    int fd = tc_descriptor_socket(tc_addr_family(addr), SOCK_STREAM, 0);
    int err = fd < 0 ? errno : listen_on(fd, addr, bound);
    if (err == 0)
        return fd;
    char scratch[128], *text = tc_addr_text(addr);
    tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "failed to listen on %s: %s", text,
                                        tc_strerror(err, scratch)));
    tc_free(text);
    if (fd >= 0)
        close(fd);
    return -1;
}
