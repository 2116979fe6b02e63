#include "io/watch.h"

#include <errno.h>
#include <uv.h>

#include "base/mem.h"

struct tc_watch {
    uv_poll_t poll;
    struct tc_loop *loop;
    unsigned events;
    tc_watch_fn fn;
    void *arg;
};

struct tc_watch *tc_watch_new(struct tc_loop *loop, int fd, tc_watch_fn fn, void *arg)
{
    uv_loop_t *uv = tc_loop_uv(loop);
    if (!uv) {
        errno = ENOTSUP;
        return NULL;
    }
    struct tc_watch *w = TC_NEW(struct tc_watch);
    int rc = uv_poll_init(uv, &w->poll, fd);
    if (rc < 0) {
        tc_free(w);
        errno = -rc;
        return NULL;
    }
    w->loop = loop;
    w->fn = fn;
    w->arg = arg;
    return w;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct tc_watch *w = TC_CONTAINER_OF(poll, struct tc_watch, poll);
    tc_loop_refresh(w->loop);
    if (status < 0) {
        unsigned wanted = w->events;
        w->events = 0; /* libuv has stopped it */
        w->fn(w->arg, wanted, true);
        return;
    }
    unsigned got = 0;
    if (events & UV_READABLE)
        got |= TC_WATCH_READ;
    if (events & UV_WRITABLE)
        got |= TC_WATCH_WRITE;
    w->fn(w->arg, got & w->events, false);
}

void tc_watch_set(struct tc_watch *w, unsigned events)
{
    if (w->events == events || tc_loop_forked(w->loop))
        return;
    w->events = events;
    int wanted = 0;
    if (events & TC_WATCH_READ)
        wanted |= UV_READABLE;
    if (events & TC_WATCH_WRITE)
        wanted |= UV_WRITABLE;
    if (wanted)
        uv_poll_start(&w->poll, wanted, on_poll);
    else
        uv_poll_stop(&w->poll);
}

static void on_closed(uv_handle_t *handle)
{
    tc_free(TC_CONTAINER_OF(handle, struct tc_watch, poll));
}

void tc_watch_close(struct tc_watch *w)
{
    /* After a fork the epoll instance is shared with the parent: taking descriptors off it would break the parent. */
    if (!w || tc_loop_forked(w->loop))
        return;
    uv_close((uv_handle_t *)&w->poll, on_closed);
}
