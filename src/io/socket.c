/* A connected socket as a byte stream.
 *
 * Reading: a read that returns bytes, but fewer than were asked for, has emptied the kernel's buffer. Reads then return
 * TORC_EAGAIN without a system call until the next event (`drained`). An error condition of the kernel stops the watch.
 * So that the owner reads on until the error or EAGAIN comes out, `drained` is not set while `error_events` is; EAGAIN
 * starts the watch again.
 *
 * Writing: a single piece goes by send, which is cheaper than sendmsg; most writes have one piece. A write that the
 * kernel refuses (TORC_EAGAIN) sets `want_write`, and WRITABLE follows once; a short write sets nothing.
 *
 * In a forked child, and while the process exits, reads and writes return TORC_EAGAIN: in a child the bytes are the
 * parent's.
 *
 * The byte stream owns its descriptor and its watch. Loop thread only, but for tc_socket_set_user_timeout. */
#include "io/socket.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strerror.h"
#include "io/descriptor.h"
#include "io/watch.h"

struct tc_socket {
    struct tc_bytestream bs;
    struct tc_loop *loop;
    struct tc_watch *watch;
    int fd;
    bool reading;      /* READABLE is wanted */
    bool want_write;   /* a write returned TORC_EAGAIN: WRITABLE is wanted */
    bool drained;      /* the kernel's buffer is empty: no recv until the next event */
    bool error_events; /* the kernel reported an error condition; until a read returns EAGAIN */
};

static struct tc_socket *socket_of(struct tc_bytestream *bs)
{
    return TC_CONTAINER_OF(bs, struct tc_socket, bs);
}

static void socket_update_watch(struct tc_socket *s)
{
    tc_watch_set(s->watch, (s->reading ? TC_WATCH_READ : 0u) | (s->want_write ? TC_WATCH_WRITE : 0u));
}

static void socket_on_watch(void *arg, unsigned events, bool error)
{
    struct tc_socket *s = arg;
    unsigned out = 0;
    s->error_events |= error;
    if (events & TC_WATCH_READ) {
        s->drained = false;
        out |= TC_BS_READABLE;
    }
    if (events & TC_WATCH_WRITE) {
        s->want_write = false;
        if (!error)
            socket_update_watch(s);
        out |= TC_BS_WRITABLE;
    }
    /* The owner may close the socket in here: *s is not touched after it. */
    if (out && s->bs.on_event)
        s->bs.on_event(s->bs.arg, out);
}

static bool family_is_tcp(int family)
{
    return family == AF_INET || family == AF_INET6;
}

void tc_socket_set_user_timeout(int fd, int family, uint64_t ms)
{
    unsigned value = (unsigned)TC_MIN(ms, (uint64_t)INT_MAX);
    if (value && family_is_tcp(family))
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof(value));
}

/* Returns a text that explains ETIMEDOUT on a connection with a user timeout, to be freed with tc_free; NULL for other
 * connections. The user timeout replaces the kernel's own limit, so it is the user timeout that has run out. */
static char *socket_timeout_text(struct tc_socket *s)
{
    unsigned ms = 0;
    socklen_t len = sizeof(ms);
    if (!family_is_tcp(tc_addr_family(&s->bs.local)) ||
        getsockopt(s->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len) != 0 || !ms)
        return NULL;
    return tc_asprintf(" (nothing was acknowledged for %u ms, the keepalive timeout)", ms);
}

static ssize_t socket_fail(struct tc_socket *s, const char *what)
{
    int err = errno;
    char scratch[128];
    char *peer = tc_addr_text(&s->bs.peer);
    char *more = err == ETIMEDOUT ? socket_timeout_text(s) : NULL;
    tc_status_set(&s->bs.error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "%s %s failed: %s%s", what,
                                               peer, tc_strerror(err, scratch), more ? more : ""));
    tc_free(more);
    tc_free(peer);
    return err == ECONNRESET || err == EPIPE ? TORC_ECLOSED : TORC_EIO;
}

static ssize_t sock_read(struct tc_bytestream *bs, void *buf, size_t len)
{
    struct tc_socket *s = socket_of(bs);
    if (s->drained || TC_UNLIKELY(tc_loop_forked(s->loop)))
        return TORC_EAGAIN;
    ssize_t n;
    do {
        n = recv(s->fd, buf, len, 0);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) {
        s->drained = n > 0 && (size_t)n < len && !s->error_events;
        return n;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return socket_fail(s, "read from");
    s->error_events = false;
    socket_update_watch(s);
    return TORC_EAGAIN;
}

static ssize_t sock_writev(struct tc_bytestream *bs, const struct iovec *iov, int n)
{
    struct tc_socket *s = socket_of(bs);
    if (TC_UNLIKELY(tc_loop_forked(s->loop)))
        return TORC_EAGAIN;
    /* The iovec is only read. */
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)TC_MIN(n, IOV_MAX)};
    ssize_t written;
    do {
        written = n == 1 ? send(s->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL) : sendmsg(s->fd, &msg, MSG_NOSIGNAL);
    } while (written < 0 && errno == EINTR);
    if (written >= 0)
        return written;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
        return socket_fail(s, "write to");
    s->want_write = true;
    socket_update_watch(s);
    return TORC_EAGAIN;
}

static void sock_set_reading(struct tc_bytestream *bs, bool on)
{
    struct tc_socket *s = socket_of(bs);
    s->reading = on;
    socket_update_watch(s);
}

int tc_socket_detach(struct tc_bytestream *bs)
{
    struct tc_socket *s = socket_of(bs);
    int fd = s->fd;
    tc_watch_close(s->watch);
    tc_status_fini(&s->bs.error);
    tc_addr_fini(&s->bs.peer);
    tc_addr_fini(&s->bs.local);
    tc_free(s);
    return fd;
}

static void sock_close(struct tc_bytestream *bs)
{
    close(tc_socket_detach(bs));
}

static const struct tc_bytestream_ops socket_ops = {sock_read, sock_writev, sock_set_reading, sock_close, NULL};

static void socket_read_addresses(struct tc_socket *s)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    } sa;
    socklen_t len = sizeof(sa);
    if (getpeername(s->fd, &sa.any, &len) == 0)
        tc_addr_from_sockaddr(&s->bs.peer, &sa.any, len);
    len = sizeof(sa);
    if (getsockname(s->fd, &sa.any, &len) == 0)
        tc_addr_from_sockaddr(&s->bs.local, &sa.any, len);
}

struct tc_bytestream *tc_socket_new(struct tc_loop *loop, int fd)
{
    struct tc_socket *s = TC_NEW(struct tc_socket);
    s->watch = tc_watch_new(loop, fd, socket_on_watch, s);
    if (!s->watch) {
        tc_free(s);
        return NULL;
    }
    s->loop = loop;
    s->fd = fd;
    s->reading = true;
    s->bs.ops = &socket_ops;
    socket_read_addresses(s);
    if (family_is_tcp(tc_addr_family(&s->bs.local)))
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    socket_update_watch(s);
    return &s->bs;
}
