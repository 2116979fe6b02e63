/* Watches files and folders by looking at them once a second: for systems without inotify, and for when inotify_init1
 * fails with EMFILE. Internal to src/io. Loop thread only. */
#ifndef TC_IO_FILE_POLL_H
#define TC_IO_FILE_POLL_H

#include "io/loop.h"

enum { TC_FILE_POLL_MS = 1000 };

struct tc_file_poll;

/* fn is called from the loop if a path, or a file in a folder that is a path, has changed since the last look. fn may
 * free the poll. Returns NULL with errno set if stat fails for the folder that holds a path. Paths are copied. */
struct tc_file_poll *tc_file_poll_new(struct tc_loop *loop, const char *const *paths, size_t n, void (*fn)(void *arg),
                                      void *arg);
/* No callback comes after it. NULL is ignored. */
void tc_file_poll_free(struct tc_file_poll *p);

#endif
