/* A pair of byte streams in memory, for tests on a manual loop. Each end reads the bytes that the other writes. The
 * test decides how many bytes pass at a time, when the stream ends and when it breaks. Events come from the loop's
 * serial queue: run tc_loop_drain after a change. A test may own both ends as any code would, or leave one without an
 * owner and play that peer with fake_pipe_put and fake_pipe_take. */
#ifndef TC_SUPPORT_FAKES_PIPE_H
#define TC_SUPPORT_FAKES_PIPE_H

#include "base/buf.h"
#include "io/bytestream.h"
#include "io/loop.h"

struct fake_pipe;

/* Returns a pipe for fake_pipe_free, never NULL. The loop is borrowed and must outlive the pipe. */
struct fake_pipe *fake_pipe_new(struct tc_loop *loop);
/* Frees the pipe. An end that has an owner must have been closed by it. */
void fake_pipe_free(struct fake_pipe *p);
/* Returns end 0 or 1, borrowed until fake_pipe_free. Tests may set its peer, local, alpn and secure. */
struct tc_bytestream *fake_pipe_end(struct fake_pipe *p, int end);

/* Limits reads of both ends: a read returns at most that many bytes, the next read TORC_EAGAIN, and READABLE comes
 * again. 0: unlimited. */
void fake_pipe_set_read_chunk(struct fake_pipe *p, size_t bytes);
/* Limits writes of both ends: a call of writev takes at most that many bytes. 0: unlimited. */
void fake_pipe_set_write_chunk(struct fake_pipe *p, size_t bytes);
/* Sets how many bytes may be unread in each direction. Beyond that writev takes less, or returns TORC_EAGAIN until the
 * reader makes room. SIZE_MAX at first; 0: nothing passes until the capacity is raised. */
void fake_pipe_set_capacity(struct fake_pipe *p, size_t bytes);

/* Writes from `end`, as its owner would, regardless of chunk and capacity. */
void fake_pipe_put(struct fake_pipe *p, int end, const void *data, size_t len);
/* fake_pipe_unread returns the bytes that `end` has not read yet, borrowed until bytes are written to `end`, read or
 * taken. fake_pipe_take removes bytes, at most as many as are unread, as if `end` had read them. */
struct tc_slice fake_pipe_unread(const struct fake_pipe *p, int end);
void fake_pipe_take(struct fake_pipe *p, int end, size_t len);

/* Ends what `end` sends: the other end reads the remaining bytes, then 0. `end` can still read; its writes fail with
 * TORC_ECLOSED. */
void fake_pipe_finish(struct fake_pipe *p, int end);
/* Makes reads and writes of `end` fail with this error (TORC_E*) and text, which is copied. With `after_data` reads
 * first return the unread bytes. */
void fake_pipe_fail(struct fake_pipe *p, int end, int error, const char *text, bool after_data);
/* Returns true if the owner of `end` has closed it. The other end then reads its unread bytes, then 0, and its writes
 * fail with TORC_ECLOSED. */
bool fake_pipe_closed(const struct fake_pipe *p, int end);
/* Returns the number of writev calls of `end` that did not fail: each would have been a system call. */
size_t fake_pipe_writes(const struct fake_pipe *p, int end);

#endif
