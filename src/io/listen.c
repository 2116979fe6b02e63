/* Listening sockets.
 *
 * At most MAX_ACCEPTS_PER_EVENT connections are accepted for one event, so that a burst does not hold up the loop. An
 * error of accept that a signal or one lost connection explains is passed over. After any other error, a lack of
 * descriptors or memory say, accepting pauses for PAUSE_MS: connections wait in the kernel's backlog meanwhile. A
 * connection that was accepted and cannot be watched is closed, and accepting pauses too.
 *
 * A socket that was bound to a Unix path remembers the device and inode of the file there. Closing removes the path
 * only if both are still the same, and so leaves alone the socket of another server. Binding takes over the path of a
 * socket on which no process listens. A forked child removes nothing, nor does a process that is exiting
 * (tc_loop_forked). Loop thread only. */
#include "io/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/strerror.h"
#include "io/descriptor.h"
#include "io/socket.h"
#include "io/watch.h"

enum { PAUSE_MS = 100, MAX_ACCEPTS_PER_EVENT = 64 };

struct tc_listen_socket {
    struct tc_loop *loop;
    struct tc_addr addr;
    struct tc_watch *watch;
    struct tc_timer pause;
    int fd;
    uint64_t user_timeout_ms; /* of connections; 0: the system's default */
    bool accepting;           /* in listen_on_watch, which frees *l after a close */
    bool closed;
    bool owns_path; /* closing removes the Unix path if the file there still has `dev` and `ino` */
    dev_t dev;
    ino_t ino;
    tc_accept_fn fn;
    void *arg;
};

static void listen_pause(struct tc_listen_socket *l)
{
    tc_watch_set(l->watch, 0);
    tc_timer_start(&l->pause, PAUSE_MS);
}

static void listen_on_pause_over(struct tc_timer *timer)
{
    struct tc_listen_socket *l = TC_CONTAINER_OF(timer, struct tc_listen_socket, pause);
    tc_watch_set(l->watch, TC_WATCH_READ);
}

/* Returns false if no connection waits, or if accepting pauses. */
static bool listen_accept_one(struct tc_listen_socket *l)
{
    int fd = tc_descriptor_accept(l->fd);
    struct tc_bytestream *bs = NULL;
    if (fd >= 0) {
        tc_socket_set_user_timeout(fd, tc_addr_family(&l->addr), l->user_timeout_ms);
        bs = tc_socket_new(l->loop, fd);
        if (!bs) {
            int err = errno;
            close(fd);
            errno = err;
        }
    }
    if (bs) {
        l->fn(l->arg, bs);
        return true;
    }
    switch (errno) {
    case EAGAIN:
        return false;
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
        return true; /* a signal came, or the connection is gone: another one may wait */
    default: {
        char scratch[128];
        TC_LOG(TC_LOG_IO, TORC_LOG_WARN, "accept failed, pausing for %d ms: %s", PAUSE_MS, tc_strerror(errno, scratch));
        listen_pause(l);
        return false;
    }
    }
}

static void listen_free(struct tc_listen_socket *l)
{
    tc_addr_fini(&l->addr);
    tc_free(l);
}

static void listen_on_watch(void *arg, unsigned events TC_UNUSED, bool error)
{
    struct tc_listen_socket *l = arg;
    if (error) {
        listen_pause(l);
        return;
    }
    l->accepting = true;
    for (int i = 0; i < MAX_ACCEPTS_PER_EVENT && !l->closed; i++)
        if (!listen_accept_one(l))
            break;
    l->accepting = false;
    if (l->closed)
        listen_free(l);
}

/* Returns true if no process listens on the socket at the path. */
static bool path_is_stale_socket(const struct sockaddr *sa, socklen_t len)
{
    int fd = tc_descriptor_socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return false;
    bool stale = connect(fd, sa, len) != 0 && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

/* Binds to a path at which a file exists. A stale socket is removed; any other file is an error. lstat comes first,
 * since connect to a file that is not a socket fails with ECONNREFUSED too. Returns 0 or an errno. */
static int listen_take_path(int fd, const struct sockaddr *sa, socklen_t len, const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return ENOTSOCK;
    if (!path_is_stale_socket(sa, len) || unlink(path) != 0)
        return EADDRINUSE;
    return bind(fd, sa, len) == 0 ? 0 : errno;
}

static void listen_own_path(struct tc_listen_socket *l, const char *path)
{
    struct stat st;
    l->owns_path = lstat(path, &st) == 0;
    l->dev = l->owns_path ? st.st_dev : 0;
    l->ino = l->owns_path ? st.st_ino : 0;
}

/* Removes the path unless another file has taken its place. */
static void listen_remove_path(const struct tc_listen_socket *l)
{
    const char *path = tc_rstr_cstr(l->addr.unix_path);
    struct stat st;
    if (lstat(path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
        unlink(path);
}

/* Stores the address as bound. Returns 0 or an errno. */
static int listen_read_addr(struct tc_listen_socket *l)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    } bound;
    socklen_t len = sizeof(bound);
    if (getsockname(l->fd, &bound.any, &len) != 0)
        return errno;
    return tc_addr_from_sockaddr(&l->addr, &bound.any, len) == 0 ? 0 : EAFNOSUPPORT;
}

/* Opens a socket, binds it and listens. Returns 0 or an errno; after a failure l->fd may be open and owns_path set. */
static int listen_bind(struct tc_listen_socket *l, const struct tc_addr *addr)
{
    struct sockaddr_un un;
    socklen_t len;
    const struct sockaddr *sa = tc_addr_sockaddr(addr, &un, &len);
    l->fd = tc_descriptor_socket(sa->sa_family, SOCK_STREAM, 0);
    if (l->fd < 0)
        return errno;
    bool is_path = sa->sa_family == AF_UNIX && un.sun_path[0] != 0;
    if (sa->sa_family != AF_UNIX)
        setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    int err = bind(l->fd, sa, len) == 0 ? 0 : errno;
    if (err == EADDRINUSE && is_path)
        err = listen_take_path(l->fd, sa, len, un.sun_path);
    if (err != 0)
        return err;
    if (is_path) {
        listen_own_path(l, un.sun_path);
        l->addr = tc_addr_ref(addr);
    } else {
        err = listen_read_addr(l);
    }
    return err == 0 && listen(l->fd, SOMAXCONN) != 0 ? errno : err;
}

/* Checks that `fd` is a stream socket that listens, and sets it non-blocking and close on exec. Returns 0 or an errno:
 * EINVAL or ENOTSOCK if `fd` is not such a socket. */
static int listen_check_fd(int fd)
{
    int listens = 0, type = 0, flags = fcntl(fd, F_GETFL);
    socklen_t len = sizeof(listens);
    if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0)
        return errno;
    len = sizeof(type);
    if (!listens || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM)
        return EINVAL;
    return fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : errno;
}

static void listen_release_fd(struct tc_listen_socket *l)
{
    if (l->owns_path && !tc_loop_forked(l->loop))
        listen_remove_path(l);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

static struct tc_listen_socket *listen_make(struct tc_loop *loop, tc_accept_fn fn, void *arg)
{
    struct tc_listen_socket *l = TC_NEW(struct tc_listen_socket);
    l->loop = loop;
    l->fn = fn;
    l->arg = arg;
    l->fd = -1;
    tc_timer_init(&l->pause, loop, listen_on_pause_over);
    return l;
}

/* Begins to accept, unless `err` is an error already. Returns 0 or an errno. */
static int listen_start(struct tc_listen_socket *l, int err)
{
    if (err != 0)
        return err;
    l->watch = tc_watch_new(l->loop, l->fd, listen_on_watch, l);
    if (!l->watch)
        return errno;
    tc_watch_set(l->watch, TC_WATCH_READ);
    return 0;
}

/* Stores why listening failed in *error, closes the descriptor, removes the path that was bound, and frees *l. Returns
 * NULL. */
static struct tc_listen_socket *listen_fail(struct tc_listen_socket *l, int err, const char *where,
                                            struct tc_status *error)
{
    char scratch[128];
    const char *reason = err == ENOTSOCK ? "the file there is not a socket" : tc_strerror(err, scratch);
    tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "failed to listen on %s: %s",
                                        where, reason));
    listen_release_fd(l);
    listen_free(l);
    return NULL;
}

struct tc_listen_socket *tc_listen_socket_new(struct tc_loop *loop, const struct tc_addr *addr, tc_accept_fn fn,
                                              void *arg, struct tc_status *error)
{
    struct tc_listen_socket *l = listen_make(loop, fn, arg);
    int err = listen_start(l, listen_bind(l, addr));
    if (err == 0)
        return l;
    char *text = tc_addr_text(addr);
    listen_fail(l, err, text, error);
    tc_free(text);
    return NULL;
}

struct tc_listen_socket *tc_listen_socket_adopt(struct tc_loop *loop, int fd, tc_accept_fn fn, void *arg,
                                                struct tc_status *error)
{
    struct tc_listen_socket *l = listen_make(loop, fn, arg);
    char text[32];
    int err = listen_check_fd(fd);
    snprintf(text, sizeof(text), "fd:%d", fd);
    if (err == 0) {
        l->fd = fd;
        err = listen_start(l, listen_read_addr(l));
    }
    if (err == 0)
        return l;
    l->fd = -1; /* stays the caller's */
    if (err != EINVAL && err != ENOTSOCK)
        return listen_fail(l, err, text, error);
    tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                                        "failed to listen on %s: it is not a stream socket that listens", text));
    listen_free(l);
    return NULL;
}

void tc_listen_socket_set_user_timeout(struct tc_listen_socket *l, uint64_t ms)
{
    l->user_timeout_ms = ms;
}

void tc_listen_socket_hold(struct tc_listen_socket *l, bool hold)
{
    tc_timer_stop(&l->pause);
    tc_watch_set(l->watch, hold ? 0 : TC_WATCH_READ);
}

const struct tc_addr *tc_listen_socket_addr(const struct tc_listen_socket *l)
{
    return &l->addr;
}

void tc_listen_socket_close(struct tc_listen_socket *l)
{
    l->closed = true;
    tc_timer_stop(&l->pause);
    tc_watch_close(l->watch);
    listen_release_fd(l);
    if (!l->accepting)
        listen_free(l);
}
