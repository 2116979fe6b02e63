/* Watches files and folders for change. A file that is replaced by a rename, or does not exist yet, is seen too.
 *
 * Uses inotify; if there is no inotify, or no instance of it left, looks once a second (io/file_poll.h).
 *
 * Under inotify a write counts when the file is closed. A file that is a symbolic link when the watch is made changes
 * with anything in the folder of the link, as in a Kubernetes volume; a change of its target in another folder is not
 * seen. A link to a folder stands for the folder to which it leads when the watch is made. A folder that takes the
 * place of a watched one is not seen.
 *
 * The look once a second follows each link, to a file or to a folder, as the link leads then. Loop thread only. */
#ifndef TC_IO_FILE_WATCH_H
#define TC_IO_FILE_WATCH_H

#include "io/loop.h"

struct tc_file_watch;

/* fn is called from the loop settle_ms after a change. Changes meanwhile cause no further call. fn may free the watch.
 * Returns NULL with errno set if a path cannot be watched, as when the folder that holds it does not exist. Paths are
 * copied. */
struct tc_file_watch *tc_file_watch_new(struct tc_loop *loop, const char *const *paths, size_t n, uint64_t settle_ms,
                                        void (*fn)(void *arg), void *arg);
/* No callback comes after it. NULL is ignored. */
void tc_file_watch_free(struct tc_file_watch *w);

#endif
