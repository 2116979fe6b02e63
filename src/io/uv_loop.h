/* Checks before calls of libuv, since libuv ends the process if the system refuses it a descriptor or memory; and what
 * a forked child does with a loop of its parent. Called on the thread that has the loop. */
#ifndef TC_IO_UV_LOOP_H
#define TC_IO_UV_LOOP_H

#include <uv.h>

/* Checks that the descriptors can be made without which uv_loop_init would end the process, calls uv_loop_init, and
 * adds the loop's own descriptors to its epoll instance. Returns 0, or an error of libuv; *uv then needs no
 * uv_loop_close. */
int tc_uv_loop_init(uv_loop_t *uv);
/* Adds a descriptor to the loop's epoll instance, without events. Called before libuv first polls the descriptor, since
 * libuv ends the process if it cannot add one. Returns 0, also for a descriptor that is there already, or a negative
 * errno. */
int tc_uv_add_descriptor(uv_loop_t *uv, int fd);
/* Called in a child that was forked inside a turn: replaces the epoll instance and the eventfd that the child shares
 * with its parent, so that the rest of the turn takes no event and no wake-up away from the parent. If the system
 * refuses new ones they stay shared. The loop must not be turned again. */
void tc_uv_leave_to_parent(uv_loop_t *uv);

#endif
