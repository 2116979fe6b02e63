/* A uv_poll whose descriptor is added to epoll here first, because libuv would end the process if the kernel refused
 * it. After a refusal the watch tries again every RETRY_MS. After a fork inside a callback the child leaves the epoll
 * instance to its parent. */
#include "io/watch.h"

#include <errno.h>
#include <uv.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/uv_loop.h"

/* The kernel refuses a descriptor when memory is short, or at the limit fs.epoll.max_user_watches. */
enum { RETRY_MS = 100 };

struct tc_watch {
    uv_poll_t poll;
    struct tc_loop *loop;
    unsigned events; /* TC_WATCH_*: what is wanted; 0 after an error */
    bool refused;    /* the kernel refused the descriptor; `retry` asks again */
    struct tc_timer retry;
    tc_watch_fn fn;
    void *arg;
};

static void watch_call(struct tc_watch *w, unsigned events, bool error)
{
    struct tc_loop *loop = w->loop;
    unsigned generation = tc_fork_generation();
    w->fn(w->arg, events, error);
    if (TC_UNLIKELY(generation != tc_fork_generation()))
        tc_uv_leave_to_parent(tc_loop_uv(loop)); /* the callback forked, and in the child libuv goes on with the turn */
}

static void watch_on_poll(uv_poll_t *poll, int status, int events)
{
    struct tc_watch *w = TC_CONTAINER_OF(poll, struct tc_watch, poll);
    if (tc_loop_forked(w->loop))
        return; /* an earlier callback of this turn forked; or the process is exiting */
    tc_loop_refresh(w->loop);
    if (status < 0) {
        unsigned wanted = w->events;
        w->events = 0; /* libuv has stopped the uv_poll */
        watch_call(w, wanted, true);
        return;
    }
    unsigned got = 0;
    if (events & UV_READABLE)
        got |= TC_WATCH_READ;
    if (events & UV_WRITABLE)
        got |= TC_WATCH_WRITE;
    watch_call(w, got & w->events, false);
}

/* Hands w->events to libuv. uv_poll_start takes the descriptor off epoll, and libuv adds it again in its next turn,
 * where it would end the process if the kernel refused. So the descriptor is added here, where a refusal can be
 * handled. */
static void watch_apply(struct tc_watch *w)
{
    int wanted = 0, fd, rc = 0;
    if (w->events & TC_WATCH_READ)
        wanted |= UV_READABLE;
    if (w->events & TC_WATCH_WRITE)
        wanted |= UV_WRITABLE;
    if (wanted && uv_poll_start(&w->poll, wanted, watch_on_poll) == 0 && uv_fileno((uv_handle_t *)&w->poll, &fd) == 0)
        rc = tc_uv_add_descriptor(tc_loop_uv(w->loop), fd);
    if (!wanted || rc < 0)
        uv_poll_stop(&w->poll);
    if (rc < 0 && !w->refused)
        TC_LOG(TC_LOG_IO, TORC_LOG_WARN, "epoll_ctl refuses a descriptor: %s; trying again every %d ms",
               uv_strerror(rc), RETRY_MS);
    w->refused = rc < 0;
    if (w->refused)
        tc_timer_start(&w->retry, RETRY_MS);
}

static void watch_on_retry(struct tc_timer *timer)
{
    watch_apply(TC_CONTAINER_OF(timer, struct tc_watch, retry));
}

static void watch_on_closed(uv_handle_t *handle)
{
    tc_free(TC_CONTAINER_OF(handle, struct tc_watch, poll));
}

struct tc_watch *tc_watch_new(struct tc_loop *loop, int fd, tc_watch_fn fn, void *arg)
{
    uv_loop_t *uv = tc_loop_uv(loop);
    if (!uv || tc_loop_forked(loop)) { /* uv_poll_init would use the parent's epoll instance */
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
    tc_timer_init(&w->retry, loop, watch_on_retry);
    w->loop = loop;
    w->fn = fn;
    w->arg = arg;
    return w;
}

void tc_watch_set(struct tc_watch *w, unsigned events)
{
    if (w->events == events || tc_loop_forked(w->loop))
        return;
    w->events = events;
    tc_timer_stop(&w->retry);
    watch_apply(w);
}

void tc_watch_close(struct tc_watch *w)
{
    /* After a fork the epoll instance is shared with the parent: taking descriptors off it would break the parent. */
    if (!w || tc_loop_forked(w->loop))
        return;
    tc_timer_stop(&w->retry);
    uv_close((uv_handle_t *)&w->poll, watch_on_closed);
}
