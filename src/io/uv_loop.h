/* Checks before calls of libuv: libuv ends the process when the system refuses a descriptor or memory. Any thread. */
#ifndef TC_IO_UV_LOOP_H
#define TC_IO_UV_LOOP_H

#include <uv.h>

/* Checks that the descriptors which uv_loop_init needs can be made, then calls it. Returns 0, or an error of libuv with
 * nothing left behind. */
int tc_uv_loop_init(uv_loop_t *uv);
/* Adds a descriptor to the loop's epoll instance, without events. Returns 0 or a negative errno. */
int tc_uv_add_descriptor(uv_loop_t *uv, int fd);
/* Called in a forked child whose parent was inside a turn: the rest of the turn then takes no event and no wake-up away
 * from the parent, although the child shares its epoll instance and eventfd. The loop must not be turned again. */
void tc_uv_leave_to_parent(uv_loop_t *uv);

#endif
