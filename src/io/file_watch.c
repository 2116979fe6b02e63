/* inotify on folders. A file is watched through its folder: so a file that is replaced by a rename, or does not exist
 * yet, is seen too. The first change starts the timer `settle`; changes while it runs do not restart it. When the
 * kernel's queue of events overflows, everything counts as changed.
 *
 * If inotify_init1 fails with ENOSYS or EMFILE, `poll` looks at the files instead. Either `watch` on `fd` or `poll` is
 * at work; tc_file_watch_free ends both. Loop thread only. */
#include "io/file_watch.h"

#include <errno.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/file_poll.h"
#include "io/watch.h"

#if defined(__linux__)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

struct watched {
    int wd;
    char *name; /* of the file; NULL: anything in the folder counts */
};

struct tc_file_watch {
    TC_VEC(struct watched) watched;
    struct tc_watch *watch; /* on `fd`; NULL with `poll` */
    struct tc_file_poll *poll;
    int fd; /* inotify's; -1 with `poll` */
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

/* A running timer is not restarted: else a file that is written without pause would put off fn for ever. */
static void watch_changed(void *arg)
{
    struct tc_file_watch *w = arg;
    if (!tc_timer_active(&w->settle))
        tc_timer_start(&w->settle, w->settle_ms);
}

#if HAVE_INOTIFY
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
    if (ours)
        watch_changed(w);
}

/* Watches a folder as a whole, and a file by its name in its folder. For a file that is a link anything in the folder
 * counts: in a Kubernetes volume another link changes, "..data", through which the link of the file leads. Returns a
 * watch descriptor of inotify, or -1 with errno set on failure. */
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
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
        p->name = tc_strdup(basename(for_name));
    p->wd = inotify_add_watch(w->fd, dirname(for_dir), mask);
    tc_free(for_dir);
    tc_free(for_name);
    return p->wd;
}

/* Returns false with errno set on failure. If w->fd is -1 then, errno is that of inotify_init1. */
static bool watch_by_inotify(struct tc_file_watch *w, struct tc_loop *loop, const char *const *paths, size_t n)
{
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    bool ok = w->fd >= 0;
    for (size_t i = 0; i < n && ok; i++)
        ok = watch_add_path(w, paths[i]) >= 0;
    w->watch = ok ? tc_watch_new(loop, w->fd, watch_on_readable, w) : NULL;
    if (w->watch)
        tc_watch_set(w->watch, TC_WATCH_READ);
    return w->watch;
}
#else
static bool watch_by_inotify(struct tc_file_watch *w TC_UNUSED, struct tc_loop *loop TC_UNUSED,
                             const char *const *paths TC_UNUSED, size_t n TC_UNUSED)
{
    errno = ENOSYS;
    return false;
}
#endif

struct tc_file_watch *tc_file_watch_new(struct tc_loop *loop, const char *const *paths, size_t n, uint64_t settle_ms,
                                        void (*fn)(void *arg), void *arg)
{
    struct tc_file_watch *w = TC_NEW(struct tc_file_watch);
    w->fd = -1;
    w->settle_ms = settle_ms;
    w->fn = fn;
    w->arg = arg;
    tc_timer_init(&w->settle, loop, watch_on_settled);
    bool ok = watch_by_inotify(w, loop, paths, n);
    if (!ok && w->fd < 0 && (errno == ENOSYS || errno == EMFILE)) {
        w->poll = tc_file_poll_new(loop, paths, n, watch_changed, w);
        ok = w->poll;
    }
    if (!ok) {
        int saved = errno;
        tc_file_watch_free(w);
        errno = saved;
        return NULL;
    }
    return w;
}

void tc_file_watch_free(struct tc_file_watch *w)
{
    if (!w)
        return;
    tc_timer_stop(&w->settle);
    tc_watch_close(w->watch);
    tc_file_poll_free(w->poll);
    if (w->fd >= 0)
        close(w->fd);
    for (size_t i = 0; i < w->watched.len; i++)
        tc_free(w->watched.data[i].name);
    tc_vec_fini(&w->watched);
    tc_free(w);
}
