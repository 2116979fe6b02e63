#include "io/file_watch.h"

#include <errno.h>
#include <libgen.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/watch.h"

struct tc_file_watch {
    struct tc_watch *watch;
    int fd;
    struct tc_timer settle;
    uint64_t settle_ms;
    void (*fn)(void *arg);
    void *arg;
};

static void on_settled(struct tc_timer *timer)
{
    struct tc_file_watch *w = TC_CONTAINER_OF(timer, struct tc_file_watch, settle);
    w->fn(w->arg);
}

static void on_readable(void *arg, unsigned events, bool error)
{
    struct tc_file_watch *w = arg;
    _Alignas(struct inotify_event) char buf[4096];
    (void)events;
    (void)error;
    while (read(w->fd, buf, sizeof(buf)) > 0)
        ;
    tc_timer_start(&w->settle, w->settle_ms);
}

static int add_path(int fd, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return inotify_add_watch(fd, path, IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE);
    char *copy = tc_strdup(path);
    int rc = inotify_add_watch(fd, dirname(copy), IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_CREATE);
    tc_free(copy);
    return rc;
}

struct tc_file_watch *tc_file_watch_new(struct tc_loop *loop, const char *const *paths, size_t n, uint64_t settle_ms,
                                        void (*fn)(void *arg), void *arg)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (add_path(fd, paths[i]) < 0) {
            int saved = errno;
            close(fd);
            errno = saved;
            return NULL;
        }
    }
    struct tc_file_watch *w = TC_NEW(struct tc_file_watch);
    w->fd = fd;
    w->settle_ms = settle_ms;
    w->fn = fn;
    w->arg = arg;
    tc_timer_init(&w->settle, loop, on_settled);
    w->watch = tc_watch_new(loop, fd, on_readable, w);
    if (!w->watch) {
        int saved = errno;
        close(fd);
        tc_free(w);
        errno = saved;
        return NULL;
    }
    tc_watch_set(w->watch, TC_WATCH_READ);
    return w;
}

void tc_file_watch_free(struct tc_file_watch *w)
{
    if (!w)
        return;
    tc_timer_stop(&w->settle);
    tc_watch_close(w->watch);
    close(w->fd);
    tc_free(w);
}
