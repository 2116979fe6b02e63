/* One attempt to connect a socket. The outcome comes once: from `done` when it was known at once, from the watch, or
 * from the timer. The first of them frees the attempt before it calls back, so that the callee may start another. On a
 * manual loop, which has no network, an attempt fails with ENETDOWN. */
#include "io/connect.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strerror.h"
#include "io/descriptor.h"
#include "io/socket.h"
#include "io/watch.h"

struct tc_connect {
    struct tc_loop *loop;
    struct tc_addr addr;
    struct tc_watch *watch;
    struct tc_timer timer;
    struct tc_task done; /* delivers an outcome that was known at once */
    uint64_t timeout_ms, user_timeout_ms;
    bool proxy;
    int fd;  /* -1: none */
    int err; /* the outcome: an errno, or 0 */
    tc_connect_fn fn;
    void *arg;
};

void tc_connect_cancel(struct tc_connect *c)
{
    tc_timer_stop(&c->timer);
    tc_task_cancel(&c->done);
    tc_watch_close(c->watch);
    if (c->fd >= 0)
        close(c->fd);
    tc_addr_fini(&c->addr);
    tc_free(c);
}

static void connect_fail(struct tc_connect *c, const char *reason)
{
    tc_connect_fn fn = c->fn;
    void *arg = c->arg;
    char *text = tc_addr_text(&c->addr);
    struct tc_status error =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "failed to connect to %s%s: %s",
                       c->proxy ? "the proxy " : "", text, reason);
    tc_free(text);
    tc_connect_cancel(c);
    fn(arg, NULL, &error);
    tc_status_fini(&error);
}

static void connect_finish(struct tc_connect *c)
{
    char scratch[128];
    struct tc_bytestream *bs = NULL;
    tc_watch_close(c->watch);
    c->watch = NULL;
    if (c->err == 0) {
        tc_socket_set_user_timeout(c->fd, tc_addr_family(&c->addr), c->user_timeout_ms);
        bs = tc_socket_new(c->loop, c->fd);
        c->err = bs ? 0 : errno;
    }
    if (c->err != 0) {
        connect_fail(c, tc_strerror(c->err, scratch));
        return;
    }
    c->fd = -1;
    tc_connect_fn fn = c->fn;
    void *arg = c->arg;
    tc_connect_cancel(c);
    fn(arg, bs, NULL);
}

static void connect_on_done(struct tc_task *task)
{
    connect_finish(TC_CONTAINER_OF(task, struct tc_connect, done));
}

static void connect_on_watch(void *arg, unsigned events TC_UNUSED, bool error)
{
    struct tc_connect *c = arg;
    int err = 0;
    socklen_t len = sizeof(err);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
        err = errno;
    c->err = err == 0 && error ? ECONNREFUSED : err; /* the watch failed, and the socket does not say why */
    connect_finish(c);
}

static void connect_on_timeout(struct tc_timer *timer)
{
    struct tc_connect *c = TC_CONTAINER_OF(timer, struct tc_connect, timer);
    char *reason = tc_asprintf("timed out after %llu ms", (unsigned long long)c->timeout_ms);
    connect_fail(c, reason);
    tc_free(reason);
}

/* Opens a socket and connects it. Returns 0 if the socket is connected or, with *under_way set, is connecting; else an
 * errno. */
static int connect_begin(struct tc_connect *c, bool *under_way)
{
    struct sockaddr_un un;
    socklen_t len;
    const struct sockaddr *sa = tc_addr_sockaddr(&c->addr, &un, &len);
    if (!tc_loop_uv(c->loop))
        return ENETDOWN; /* a manual loop has no network */
    c->fd = tc_descriptor_socket(sa->sa_family, SOCK_STREAM, 0);
    if (c->fd < 0)
        return errno;
    if (connect(c->fd, sa, len) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return errno;
    c->watch = tc_watch_new(c->loop, c->fd, connect_on_watch, c);
    if (!c->watch)
        return errno;
    tc_watch_set(c->watch, TC_WATCH_WRITE);
    *under_way = true;
    return 0;
}

struct tc_connect *tc_connect_start(struct tc_loop *loop, const struct tc_addr *addr,
                                    const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg)
{
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->loop = loop;
    c->addr = tc_addr_ref(addr);
    c->timeout_ms = opts ? opts->timeout_ms : 0;
    c->user_timeout_ms = opts ? opts->user_timeout_ms : 0;
    c->proxy = opts && opts->proxy;
    c->fd = -1;
    c->fn = fn;
    c->arg = arg;
    tc_timer_init(&c->timer, loop, connect_on_timeout);
    tc_task_init(&c->done, connect_on_done);
    bool under_way = false;
    c->err = connect_begin(c, &under_way);
    if (!under_way)
        tc_loop_defer(loop, &c->done);
    else if (c->timeout_ms > 0)
        tc_timer_start(&c->timer, c->timeout_ms);
    return c;
}
