/* Functions that try what libuv would answer by ending the process. */
#ifndef TC_IO_UV_LOOP_H
#define TC_IO_UV_LOOP_H

#include <uv.h>

/* Calls uv_loop_init, after trying what it needs. Returns 0 or an error of libuv; nothing is left behind then. */
int tc_uv_loop_init(uv_loop_t *uv);
/* Adds a descriptor to the loop's epoll instance, without events. Returns 0 or a negative errno. */
int tc_uv_add_descriptor(uv_loop_t *uv, int fd);
/* For a forked child inside of a turn: the rest of the turn takes no event and no wake-up from the parent, whose epoll
 * instance and eventfd the child shares. The loop must not be turned again. */
void tc_uv_leave_to_parent(uv_loop_t *uv);

#endif
