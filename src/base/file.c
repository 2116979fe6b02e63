/* Only a regular file is read, because opening some devices has effects and reading a FIFO may wait for ever. So the
 * file is checked both before and after it is opened. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strerror.h"

/* Returns why a file of this mode is refused; NULL for a regular file. */
static const char *file_other_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "it is a directory, not a regular file";
    case S_IFIFO:
        return "it is a FIFO, not a regular file";
    case S_IFSOCK:
        return "it is a socket, not a regular file";
    default:
        return "it is a device, not a regular file";
    }
}

/* Reads to the end of the file. Returns 0 or an errno. Takes memory for the whole `size` (0: not known) at once: a
 * buffer that grows would leave copies of a key in the memory that it frees. */
static int file_read_all(int fd, off_t size, size_t max, struct tc_buf *out)
{
    size_t start = out->len, step = size > 0 ? (size_t)size + 1 : 4096;
    ssize_t n;
    if (size > 0 && (uint64_t)size > max)
        return EFBIG;
    while ((n = read(fd, tc_buf_reserve(out, step), step)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        out->len += (size_t)n;
        if (out->len - start > max)
            return EFBIG;
        step = step > (size_t)n ? step - (size_t)n : 4096;
    }
    return 0;
}

/* Opens a regular file, and stores its status in *st. Returns 0 or an errno; if the file is not regular, EINVAL with
 * the reason in *why. The caller sets *why to NULL and *fd to -1 before. The caller closes *fd, also after an error,
 * unless *fd is -1. */
static int file_open_regular(const char *path, struct stat *st, int *fd, const char **why)
{
    if (stat(path, st) != 0)
        return errno;
    *why = file_other_kind(st->st_mode);
    if (*why)
        return EINVAL;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 || fstat(*fd, st) != 0)
        return errno;
    *why = file_other_kind(st->st_mode); /* another file may have the name by now */
    return *why ? EINVAL : 0;
}

int tc_file_read(const char *path, size_t max, struct tc_buf *out, const char **why, char scratch[128])
{
    struct stat st;
    int fd = -1;
    *why = NULL;
    int rc = file_open_regular(path, &st, &fd, why);
    if (rc == 0)
        rc = file_read_all(fd, st.st_size, max, out);
    if (fd >= 0)
        close(fd);
    if (rc == EFBIG) {
        snprintf(scratch, 128, "larger than %zu bytes", max);
        *why = scratch;
    } else if (rc && !*why) {
        *why = tc_strerror(rc, scratch);
    }
    return rc;
}
