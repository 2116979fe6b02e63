/* Watches files and folders for change, so that files replaced by rename are seen too: by inotify on the folder or,
 * where there is no inotify, by looking once a second (io/file_poll.h). Under inotify a file that is a link when
 * the watch is made changes with anything in the link's folder, as in a Kubernetes volume, and not with its target in
 * another folder. Loop thread only. */
#ifndef TC_IO_FILE_WATCH_H
#define TC_IO_FILE_WATCH_H

#include "io/loop.h"

struct tc_file_watch;

/* fn is called from the loop, settle_ms after the first change of a burst, and so on while changes come; it may free
 * the watch. Returns NULL when the folder of a path cannot be watched; errno says why. Paths are copied. */
struct tc_file_watch *tc_file_watch_new(struct tc_loop *loop, const char *const *paths, size_t n, uint64_t settle_ms,
                                        void (*fn)(void *arg), void *arg);
/* No callback comes after it. NULL is allowed. */
void tc_file_watch_free(struct tc_file_watch *w);

#endif
