/* A pair of byte streams in memory, for tests on a manual loop. What one end writes, the other reads; the test decides
 * how many bytes pass at a time, when the stream ends and when it breaks. Events come from the loop's serial queue, so
 * after a change run tc_loop_drain.
 *
 * A test may own both ends as any code would, or leave one without an owner and play that peer with tc_pipe_put and
 * tc_pipe_take. */
#ifndef TC_SUPPORT_PIPE_H
#define TC_SUPPORT_PIPE_H

#include "base/buf.h"
#include "io/bytestream.h"
#include "io/loop.h"

struct tc_pipe;

struct tc_pipe *tc_pipe_new(struct tc_loop *loop);
/* Frees the pipe; both ends must be closed or never have had an owner that still uses them. */
void tc_pipe_free(struct tc_pipe *p);
/* End 0 or 1. Tests may set its peer, local, alpn and secure. */
struct tc_bytestream *tc_pipe_end(struct tc_pipe *p, int end);

/* The end's reads give at most so many bytes, then TORC_EAGAIN, then READABLE again; 0: no limit. Of both ends. */
void tc_pipe_set_read_chunk(struct tc_pipe *p, size_t bytes);
/* One call of writev takes at most so many bytes; 0: no limit. Of both ends. */
void tc_pipe_set_write_chunk(struct tc_pipe *p, size_t bytes);
/* So many bytes may wait unread in each direction; then writev takes less, or returns TORC_EAGAIN until the reader made
 * room. SIZE_MAX at first; 0: nothing passes until it is raised. */
void tc_pipe_set_capacity(struct tc_pipe *p, size_t bytes);

/* Writes from `end`, as its owner would, past chunk and capacity. */
void tc_pipe_put(struct tc_pipe *p, int end, const void *data, size_t len);
/* What `end` has not read yet (borrowed), and its removal, as if `end` had read it. */
struct tc_slice tc_pipe_unread(const struct tc_pipe *p, int end);
void tc_pipe_take(struct tc_pipe *p, int end, size_t len);

/* `end` sends no more: the other reads what is left and then 0. Its own reads go on. */
void tc_pipe_finish(struct tc_pipe *p, int end);
/* Reads (after what waits unread, if `after_data`) and writes of `end` fail with this number and text. */
void tc_pipe_fail(struct tc_pipe *p, int end, int error, const char *text, bool after_data);
/* True when the owner of `end` has closed it. The other end then reads 0 and its writes fail with TORC_ECLOSED. */
bool tc_pipe_closed(const struct tc_pipe *p, int end);
/* Calls of writev that took bytes at `end`: what would have been system calls. */
size_t tc_pipe_writes(const struct tc_pipe *p, int end);

#endif
