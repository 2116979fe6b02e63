/* libuv aborts the process, or leaks, at some steps where the system refuses a descriptor or memory. The functions here
 * try such a step beforehand, or clean up after it. tc_uv_leave_to_parent is for forks. */
#include "io/uv_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/common.h"

/* Only Linux has epoll and eventfd. On other systems nothing is tried beforehand, and a child does not inherit a
 * kqueue. */
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* libuv ends the process if its first loop gets no pipe for signals. So five descriptors are opened first, and closed
 * again: as many as epoll, two io_urings (libuv 1.45 to 1.48) and that pipe take. The five are eventfds, since a chroot
 * may have no files. Returns 0 or a negative errno. */
static int uv_try_descriptors(void)
{
    int at[5], n = 0, rc = 0;
    while (n < (int)TC_ARRAY_LEN(at) && (at[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n++;
    if (n < (int)TC_ARRAY_LEN(at))
        rc = -errno;
    while (n-- > 0)
        close(at[n]);
    return rc;
}

/* libuv before 1.51 leaks its epoll instance when uv_loop_init fails after making it. */
static void uv_close_leaked_epoll(const uv_loop_t *uv)
{
    /* 0 may stand for "not made yet" */
    if (uv->backend_fd > 0 && uv_version() < 0x013300)
        close(uv->backend_fd);
}

int tc_uv_add_descriptor(uv_loop_t *uv, int fd)
{
    /* Without events: when libuv adds the descriptor and finds it there, it sets them. */
    struct epoll_event none = {.data.fd = fd};
    int rc = epoll_ctl(uv_backend_fd(uv), EPOLL_CTL_ADD, fd, &none);
    return rc == 0 || errno == EEXIST ? 0 : -errno;
}

void tc_uv_leave_to_parent(uv_loop_t *uv)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll >= 0)
        dup3(epoll, uv->backend_fd, O_CLOEXEC);
    if (wakeup >= 0)
        dup3(wakeup, uv->async_io_watcher.fd, O_CLOEXEC);
    close(epoll);
    close(wakeup);
}
#else
static int uv_try_descriptors(void)
{
    return 0;
}

static void uv_close_leaked_epoll(const uv_loop_t *uv TC_UNUSED) {}

int tc_uv_add_descriptor(uv_loop_t *uv TC_UNUSED, int fd TC_UNUSED)
{
    return 0;
}

void tc_uv_leave_to_parent(uv_loop_t *uv TC_UNUSED) {}
#endif

int tc_uv_loop_init(uv_loop_t *uv)
{
    int rc = uv_try_descriptors();
    if (rc < 0)
        return rc;
    rc = uv_loop_init(uv);
    if (rc < 0) {
        uv_close_leaked_epoll(uv);
        return rc;
    }
    for (unsigned fd = 0; rc == 0 && fd < uv->nwatchers; fd++)
        if (uv->watchers[fd])
            rc = tc_uv_add_descriptor(uv, (int)fd);
    if (rc < 0)
        uv_loop_close(uv);
    return rc;
}
