/* A pair of byte streams in memory.
 *
 * Each end is a tc_bytestream whose events are delivered by a task of the loop, never from inside a call. The limits of
 * chunks and capacity produce short reads, short writes and TORC_EAGAIN. The test plays an end without an owner with
 * put, unread and take.
 *
 * The pipe owns both ends: closing an end frees nothing, fake_pipe_free frees all. Bytes that one end writes go
 * straight into `unread` of the other end. Everything runs on the thread of the loop. */
#include "support/fakes/pipe.h"

#include <assert.h>

#include "base/mem.h"

struct pipe_end {
    struct tc_bytestream bs;
    struct fake_pipe *pipe;
    struct pipe_end *other;
    struct tc_buf unread; /* received by this end, not read yet */
    struct tc_task event;
    unsigned events; /* that the task will deliver */
    bool reading;
    bool want_write; /* a write of this end returned TORC_EAGAIN, and WRITABLE was not queued since */
    bool chunk_done; /* with a read chunk: a read took one; reads return TORC_EAGAIN until READABLE is delivered */
    bool finished;   /* this end sends no more */
    bool closed;
    int error; /* 0: none */
    bool error_after_data;
    char *error_text; /* owned; NULL: none */
    size_t writes;    /* see fake_pipe_writes */
};

struct fake_pipe {
    struct tc_loop *loop;
    struct pipe_end ends[2];
    size_t read_chunk, write_chunk, capacity;
};

static struct pipe_end *of(struct tc_bytestream *bs)
{
    return TC_CONTAINER_OF(bs, struct pipe_end, bs);
}

static void deliver(struct pipe_end *e, unsigned events)
{
    if (e->closed)
        return;
    e->events |= events;
    tc_loop_defer(e->pipe->loop, &e->event);
}

static void deliver_readable(struct pipe_end *e)
{
    if (e->reading)
        deliver(e, TC_BS_READABLE);
}

static void on_event_task(struct tc_task *task)
{
    struct pipe_end *e = TC_CONTAINER_OF(task, struct pipe_end, event);
    unsigned events = e->events;
    e->events = 0;
    if (!e->reading)
        events &= ~(unsigned)TC_BS_READABLE;
    if (events & TC_BS_READABLE)
        e->chunk_done = false;
    if (events && e->bs.on_event)
        e->bs.on_event(e->bs.arg, events);
}

/* Stores the status of the failure in the byte stream, which copies the text. Returns `error`. */
static ssize_t fail(struct pipe_end *e, int error, const char *text)
{
    tc_status_set(&e->bs.error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "%s", text));
    return error;
}

/* Queues WRITABLE for the other end, if that end waits to write to `e` and there is room. */
static void made_room(struct pipe_end *e)
{
    if (e->other->want_write && e->unread.len < e->pipe->capacity) {
        e->other->want_write = false;
        deliver(e->other, TC_BS_WRITABLE);
    }
}

static ssize_t pipe_read(struct tc_bytestream *bs, void *buf, size_t len)
{
    struct pipe_end *e = of(bs);
    size_t chunk = e->pipe->read_chunk;
    assert(!e->closed);
    if (e->error && (!e->error_after_data || e->unread.len == 0))
        return fail(e, e->error, e->error_text);
    if (e->chunk_done)
        return TORC_EAGAIN;
    if (e->unread.len == 0)
        return e->other->finished || e->other->closed ? 0 : TORC_EAGAIN;
    size_t n = TC_MIN(len, e->unread.len);
    if (chunk > 0)
        n = TC_MIN(n, chunk);
    memcpy(buf, e->unread.data, n);
    tc_buf_consume(&e->unread, n);
    made_room(e);
    if (chunk > 0) {
        e->chunk_done = true;
        deliver_readable(e);
    }
    return (ssize_t)n;
}

static ssize_t pipe_writev(struct tc_bytestream *bs, const struct iovec *iov, int n)
{
    struct pipe_end *e = of(bs);
    assert(!e->closed);
    if (e->error)
        return fail(e, e->error, e->error_text);
    if (e->other->closed || e->finished)
        return fail(e, TORC_ECLOSED, e->finished ? "pipe: this end has finished" : "pipe: the other end is closed");
    size_t limit = e->pipe->write_chunk ? e->pipe->write_chunk : SIZE_MAX;
    size_t waiting = e->other->unread.len, capacity = e->pipe->capacity;
    limit = TC_MIN(limit, capacity > waiting ? capacity - waiting : 0);
    size_t total = 0, wanted = 0;
    for (int i = 0; i < n; i++) {
        size_t part = TC_MIN(iov[i].iov_len, limit - total);
        wanted += iov[i].iov_len;
        tc_buf_append(&e->other->unread, iov[i].iov_base, part);
        total += part;
    }
    if (total == 0 && wanted > 0) {
        e->want_write = true;
        return TORC_EAGAIN;
    }
    e->writes++;
    deliver_readable(e->other);
    return (ssize_t)total;
}

static void pipe_set_reading(struct tc_bytestream *bs, bool on)
{
    struct pipe_end *e = of(bs);
    assert(!e->closed);
    bool was = e->reading;
    e->reading = on;
    if (on && !was && (e->unread.len > 0 || e->error || e->other->finished || e->other->closed))
        deliver_readable(e);
}

static void pipe_close(struct tc_bytestream *bs)
{
    struct pipe_end *e = of(bs);
    assert(!e->closed);
    e->closed = true;
    e->bs.on_event = NULL;
    tc_task_cancel(&e->event);
    deliver_readable(e->other);
}

static const struct tc_bytestream_ops pipe_ops = {pipe_read, pipe_writev, pipe_set_reading, pipe_close, NULL};

struct fake_pipe *fake_pipe_new(struct tc_loop *loop)
{
    struct fake_pipe *p = TC_NEW(struct fake_pipe);
    p->loop = loop;
    p->capacity = SIZE_MAX;
    for (int i = 0; i < 2; i++) {
        struct pipe_end *e = &p->ends[i];
        e->bs.ops = &pipe_ops;
        tc_addr_from_ip(&e->bs.local, tc_slice_str("192.0.2.1"), (uint16_t)(1000 + i));
        tc_addr_from_ip(&e->bs.peer, tc_slice_str("192.0.2.1"), (uint16_t)(1000 + !i));
        e->pipe = p;
        e->other = &p->ends[!i];
        e->reading = true;
        tc_task_init(&e->event, on_event_task);
    }
    return p;
}

void fake_pipe_free(struct fake_pipe *p)
{
    for (int i = 0; i < 2; i++) {
        struct pipe_end *e = &p->ends[i];
        tc_task_cancel(&e->event);
        tc_buf_fini(&e->unread);
        tc_status_fini(&e->bs.error);
        tc_addr_fini(&e->bs.peer);
        tc_addr_fini(&e->bs.local);
        tc_free(e->error_text);
    }
    tc_free(p);
}

struct tc_bytestream *fake_pipe_end(struct fake_pipe *p, int end)
{
    return &p->ends[end].bs;
}

void fake_pipe_set_read_chunk(struct fake_pipe *p, size_t bytes)
{
    p->read_chunk = bytes;
}

void fake_pipe_set_write_chunk(struct fake_pipe *p, size_t bytes)
{
    p->write_chunk = bytes;
}

void fake_pipe_set_capacity(struct fake_pipe *p, size_t bytes)
{
    p->capacity = bytes;
    for (int i = 0; i < 2; i++)
        made_room(&p->ends[i]);
}

void fake_pipe_put(struct fake_pipe *p, int end, const void *data, size_t len)
{
    struct pipe_end *to = p->ends[end].other;
    tc_buf_append(&to->unread, data, len);
    deliver_readable(to);
}

struct tc_slice fake_pipe_unread(const struct fake_pipe *p, int end)
{
    return tc_buf_slice(&p->ends[end].unread);
}

void fake_pipe_take(struct fake_pipe *p, int end, size_t len)
{
    assert(len <= p->ends[end].unread.len);
    tc_buf_consume(&p->ends[end].unread, len);
    made_room(&p->ends[end]);
}

void fake_pipe_finish(struct fake_pipe *p, int end)
{
    p->ends[end].finished = true;
    deliver_readable(p->ends[end].other);
}

void fake_pipe_fail(struct fake_pipe *p, int end, int error, const char *text, bool after_data)
{
    struct pipe_end *e = &p->ends[end];
    e->error = error;
    e->error_after_data = after_data;
    tc_free(e->error_text);
    e->error_text = tc_strdup(text);
    deliver_readable(e);
    if (e->want_write) {
        e->want_write = false;
        deliver(e, TC_BS_WRITABLE);
    }
}

bool fake_pipe_closed(const struct fake_pipe *p, int end)
{
    return p->ends[end].closed;
}

size_t fake_pipe_writes(const struct fake_pipe *p, int end)
{
    return p->ends[end].writes;
}
