/* Checks before calls of libuv, which ends the process when the system refuses a descriptor or memory; and what a
 * forked child does with a loop of its parent. On the thread that has the loop. */
#ifndef TC_IO_UV_LOOP_H
#define TC_IO_UV_LOOP_H

#include <uv.h>

/* Checks that the descriptors which uv_loop_init needs can be made, calls it, and adds the loop's own descriptors to
 * its epoll instance. Returns 0, or an error of libuv with nothing left behind. */
int tc_uv_loop_init(uv_loop_t *uv);
/* Adds a descriptor to the loop's epoll instance, without events. To be called before libuv first polls the descriptor:
 * libuv ends the process if it cannot add one. Returns 0 or a negative errno. */
int tc_uv_add_descriptor(uv_loop_t *uv, int fd);
/* Called in a child that was forked inside a turn: replaces the epoll instance and the eventfd that it
 * shares with the parent, so that the rest of the turn takes no event and no wake-up away from the parent. If the
 * system refuses them they stay shared. The loop must not be turned again. */
void tc_uv_leave_to_parent(uv_loop_t *uv);

#endif
