/* Every second each path gets a stamp: a hash of the file's device, inode, size and time of modification; for a folder
 * the sum of such hashes, each with the file's name, over the files in the folder. A path has changed if its stamp
 * differs from the last one. Loop thread only. */
#include "io/file_poll.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"

struct polled {
    char *path;
    uint64_t seen; /* the stamp of the last look */
};

struct tc_file_poll {
    TC_VEC(struct polled) polled;
    struct tc_timer timer;
    void (*fn)(void *arg);
    void *arg;
};

/* Returns a number that changes with the file; 0 if stat fails. For a file in a folder `seed` is the hash of its name:
 * so a rename changes the sum. */
static uint64_t poll_stamp_file(int folder, const char *name, uint64_t seed)
{
    struct stat st;
    if (fstatat(folder, name, &st, 0) != 0)
        return 0;
    const uint64_t parts[] = {(uint64_t)st.st_dev,         (uint64_t)st.st_ino,          (uint64_t)st.st_size,
                              (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, seed};
    return tc_xxh64(parts, sizeof(parts)) | 1;
}

/* Returns the stamp of a path: for a folder a sum, since readdir returns the files in any order. */
static uint64_t poll_stamp(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return poll_stamp_file(AT_FDCWD, path, 0);
    uint64_t sum = 1;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            sum += poll_stamp_file(dirfd(dir), entry->d_name, tc_xxh64(entry->d_name, strlen(entry->d_name)));
    closedir(dir);
    return sum;
}

static void poll_on_timer(struct tc_timer *timer)
{
    struct tc_file_poll *p = TC_CONTAINER_OF(timer, struct tc_file_poll, timer);
    bool changed = false;
    for (size_t i = 0; i < p->polled.len; i++) {
        uint64_t stamp = poll_stamp(p->polled.data[i].path);
        changed = changed || stamp != p->polled.data[i].seen;
        p->polled.data[i].seen = stamp;
    }
    tc_timer_start(&p->timer, TC_FILE_POLL_MS);
    if (changed)
        p->fn(p->arg); /* may free *p */
}

/* Returns true if the folder that holds the path exists; else errno says why not. */
static bool poll_folder_exists(const char *path)
{
    struct stat st;
    char *copy = tc_strdup(path);
    bool ok = stat(dirname(copy), &st) == 0;
    int err = errno;
    tc_free(copy);
    errno = err;
    return ok;
}

struct tc_file_poll *tc_file_poll_new(struct tc_loop *loop, const char *const *paths, size_t n, void (*fn)(void *arg),
                                      void *arg)
{
    for (size_t i = 0; i < n; i++)
        if (!poll_folder_exists(paths[i]))
            return NULL;
    struct tc_file_poll *p = TC_NEW(struct tc_file_poll);
    p->fn = fn;
    p->arg = arg;
    for (size_t i = 0; i < n; i++)
        *tc_vec_push(&p->polled) = (struct polled){.path = tc_strdup(paths[i]), .seen = poll_stamp(paths[i])};
    tc_timer_init(&p->timer, loop, poll_on_timer);
    tc_timer_start(&p->timer, TC_FILE_POLL_MS);
    return p;
}

void tc_file_poll_free(struct tc_file_poll *p)
{
    if (!p)
        return;
    tc_timer_stop(&p->timer);
    for (size_t i = 0; i < p->polled.len; i++)
        tc_free(p->polled.data[i].path);
    tc_vec_fini(&p->polled);
    tc_free(p);
}
