/* Watches one descriptor for the loop (uv_poll). Internal to src/io. Loop thread only. */
#ifndef TC_IO_WATCH_H
#define TC_IO_WATCH_H

#include "io/loop.h"

enum { TC_WATCH_READ = 1, TC_WATCH_WRITE = 2 };

struct tc_watch;

/* Called with the events that came. If `error` is set the descriptor has an error condition, and `events` are those
 * that were asked for; the watch has stopped, and the next system call returns the error itself. The watch may be
 * closed inside. */
typedef void (*tc_watch_fn)(void *arg, unsigned events, bool error);

/* Makes a watch for no events. Returns NULL with errno set if the system refuses; ENOTSUP: a manual loop, or a loop
 * that no longer turns (tc_loop_forked). The descriptor stays the caller's. */
struct tc_watch *tc_watch_new(struct tc_loop *loop, int fd, tc_watch_fn fn, void *arg);
/* Sets the events to watch for; 0 for none. If the kernel refuses (ENOSPC, ENOMEM), the watch tries again every 100 ms;
 * no event comes until the kernel accepts. Does nothing on a loop that no longer turns. */
void tc_watch_set(struct tc_watch *w, unsigned events);
/* Ends the watch; no callback comes after it. The caller may close the descriptor at once. After a fork or at exit
 * (tc_loop_forked) nothing is freed. NULL is ignored. */
void tc_watch_close(struct tc_watch *w);

#endif
