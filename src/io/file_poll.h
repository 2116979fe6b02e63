/* Files and folders that are looked at once a second: file watching for systems without inotify, and for processes
 * whose user has no inotify instance left. Internal to src/io. Loop thread only. */
#ifndef TC_IO_FILE_POLL_H
#define TC_IO_FILE_POLL_H

#include "io/loop.h"

enum { TC_FILE_POLL_MS = 1000 };

struct tc_file_poll;

/* fn is called from the loop when a path, or a file in a folder that is a path, has changed since the look before; it
 * may free the poll. Returns NULL with errno set when the folder of a path is not there. Paths are copied. */
struct tc_file_poll *tc_file_poll_new(struct tc_loop *loop, const char *const *paths, size_t n, void (*fn)(void *arg),
                                      void *arg);
/* No callback after it. NULL is ignored. */
void tc_file_poll_free(struct tc_file_poll *p);

#endif
