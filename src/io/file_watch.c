/* inotify on folders. A file is watched through its folder, so that a file which is replaced by rename, or is not there
 * yet, is seen too. The first change of a burst starts `settle`; changes meanwhile do not restart it. When the kernel's
 * queue of events overflows, everything counts as changed. */
#include "io/file_watch.h"

#include <errno.h>
#include <libgen.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/watch.h"

struct watched {
    int wd;
    char *name; /* NULL: anything in the folder */
};

struct tc_file_watch {
    TC_VEC(struct watched) watched;
    struct tc_watch *watch;
    int fd;
    struct tc_timer settle;
    uint64_t settle_ms;
    void (*fn)(void *arg);
    void *arg;
};

static void watch_on_settled(struct tc_timer *timer)
{
    struct tc_file_watch *w = TC_CONTAINER_OF(timer, struct tc_file_watch, settle);
    w->fn(w->arg);
}

static bool watch_concerns(const struct tc_file_watch *w, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        return true;
    for (size_t i = 0; i < w->watched.len; i++) {
        const struct watched *p = &w->watched.data[i];
        if (p->wd == event->wd && (!p->name || (event->len && strcmp(p->name, event->name) == 0)))
            return true;
    }
    return false;
}

static void watch_on_readable(void *arg, unsigned events TC_UNUSED, bool error TC_UNUSED)
{
    struct tc_file_watch *w = arg;
    _Alignas(struct inotify_event) char buf[4096];
    ssize_t n;
    bool ours = false;
    while ((n = read(w->fd, buf, sizeof(buf))) > 0)
        for (const char *p = buf; p < buf + n;) {
            const struct inotify_event *event = (const struct inotify_event *)p;
            ours = ours || watch_concerns(w, event);
            p += sizeof(*event) + event->len;
        }
    /* A running timer is not restarted: a file that is written without pause must not put off the changes of others. */
    if (ours && !tc_timer_active(&w->settle))
        tc_timer_start(&w->settle, w->settle_ms);
}

/* Watches a folder as a whole, and a file by its name in its folder. Returns -1 with errno set on failure. */
static int watch_add_path(struct tc_file_watch *w, const char *path)
{
    struct stat st;
    struct watched *p = tc_vec_push(&w->watched);
    const uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        p->wd = inotify_add_watch(w->fd, path, mask);
        return p->wd;
    }
    char *for_dir = tc_strdup(path), *for_name = tc_strdup(path);
    p->name = tc_strdup(basename(for_name));
    p->wd = inotify_add_watch(w->fd, dirname(for_dir), mask);
    tc_free(for_dir);
    tc_free(for_name);
    return p->wd;
}

struct tc_file_watch *tc_file_watch_new(struct tc_loop *loop, const char *const *paths, size_t n, uint64_t settle_ms,
                                        void (*fn)(void *arg), void *arg)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct tc_file_watch *w = TC_NEW(struct tc_file_watch);
    w->fd = fd;
    w->settle_ms = settle_ms;
    w->fn = fn;
    w->arg = arg;
    tc_timer_init(&w->settle, loop, watch_on_settled);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        ok = watch_add_path(w, paths[i]) >= 0;
    w->watch = ok ? tc_watch_new(loop, fd, watch_on_readable, w) : NULL;
    if (!w->watch) {
        int saved = errno;
        tc_file_watch_free(w);
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
    for (size_t i = 0; i < w->watched.len; i++)
        tc_free(w->watched.data[i].name);
    tc_vec_fini(&w->watched);
    tc_free(w);
}
