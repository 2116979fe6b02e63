/* The two byte streams of a connection.
 *
 * Bytes that an end writes go into the other end's `flight`, with a chunk that has the moment of their arrival. At that
 * moment the bytes move to `inbox`, and the owner hears READABLE from its loop. Chunks arrive in order. A chunk without
 * bytes is the end of the stream, or a reset.
 *
 * An end that is closed with unread bytes sends a reset behind what it has sent, and so does a closed end to which
 * bytes come later: the kernel does the same. Bytes that came before a reset can be read after it, as with Linux.
 *
 * An end is open until it fails or is closed. On a failed end (reset, cut or given up) reads find an error behind the
 * unread bytes, and writes find it at once; the owner still closes the end. A connection is freed when both ends are
 * closed. On a silent connection nothing arrives: an end fails only by its give_up or a later reset. Any thread of the
 * world (testing/threads.h). */
#include "base/mem.h"
#include "testing/net_internal.h"
#include "testing/observer.h"

/* How long an end that has events but no owner waits before it looks for one again. */
#define AGAIN_NS 10000

static struct tc_link connections = {&connections, &connections};
static uint64_t last_id;

void tc_net_connection_number_from(uint64_t id)
{
    last_id = id;
}

struct tc_link *tc_net_connections(void)
{
    return &connections;
}

static struct tc_net_side *end_of(struct tc_bytestream *bs)
{
    return TC_CONTAINER_OF(bs, struct tc_net_side, bs);
}

/* Returns 0 for the client's end, 1 for the server's. */
static int end_index(const struct tc_net_side *end)
{
    return end == &end->connection->ends[1];
}

/* --- events for the owner --- */

/* Has the owner hear the events from the serial queue of its loop. */
static void end_tell(struct tc_net_side *end, unsigned events)
{
    if (end->closed)
        return;
    end->events |= events;
    tc_loop_defer(end->loop, &end->event);
}

static void end_tell_readable(struct tc_net_side *end)
{
    if (end->reading)
        end_tell(end, TC_BS_READABLE);
}

static void end_tell_writable(struct tc_net_side *end)
{
    if (end->want_write)
        end_tell(end, TC_BS_WRITABLE);
    end->want_write = false;
}

static void end_on_task(struct tc_task *task)
{
    struct tc_net_side *end = TC_CONTAINER_OF(task, struct tc_net_side, event);
    unsigned events = end->events;
    if (!end->bs.on_event) { /* nobody has taken the end over yet */
        tc_world_event_at(&end->again, tc_world_now_ns() + AGAIN_NS);
        return;
    }
    end->events = 0;
    if (!end->reading && !end->failed)
        events &= ~(unsigned)TC_BS_READABLE;
    if (events)
        end->bs.on_event(end->bs.arg, events);
}

static void end_on_again(struct tc_world_event *event)
{
    end_tell(TC_CONTAINER_OF(event, struct tc_net_side, again), 0);
}

/* --- the life of a connection --- */

static void end_fini(struct tc_net_side *end)
{
    tc_world_event_stop(&end->arrival);
    tc_world_event_stop(&end->again);
    tc_world_event_stop(&end->give_up);
    tc_task_cancel(&end->event);
    tc_buf_fini(&end->inbox);
    tc_buf_fini(&end->flight);
    tc_vec_fini(&end->chunks);
    tc_status_fini(&end->bs.error);
    tc_addr_fini(&end->bs.peer);
    tc_addr_fini(&end->bs.local);
}

static void connection_free(struct tc_net_connection *c)
{
    for (int i = 0; i < 2; i++)
        end_fini(&c->ends[i]);
    tc_list_remove(&c->link);
    tc_free(c->address);
    tc_free(c);
}

/* Fails one end, and tells its owner. Does nothing to an end that has failed already. */
static void end_break(struct tc_net_side *end)
{
    if (end->failed)
        return;
    end->failed = true;
    tc_world_event_stop(&end->arrival);
    tc_world_event_stop(&end->give_up);
    end_tell(end, TC_BS_READABLE); /* errors are told whether or not the owner reads */
    end_tell_writable(end);
}

void tc_net_connection_reset(struct tc_net_connection *c)
{
    tc_world_detail("connection %llu is reset", (unsigned long long)c->id);
    for (int i = 0; i < 2; i++)
        end_break(&c->ends[i]);
}

/* Called when bytes that the end sent stay unacknowledged: sets `give_up`, user_timeout_ns from now. Does nothing if
 * `give_up` is set already, or the end has failed or is closed. */
static void end_await_give_up(struct tc_net_side *end)
{
    if (!end->give_up.place && !end->failed && !end->closed)
        tc_world_event_at(&end->give_up, tc_world_now_ns() + end->user_timeout_ns);
}

void tc_net_connection_silence(struct tc_net_connection *c)
{
    c->silent = true;
    for (int i = 0; i < 2; i++) {
        struct tc_net_side *end = &c->ends[i];
        tc_world_event_stop(&end->arrival);
        if (tc_net_side_peer(end)->flight.len > 0 || end->acknowledged_ns > tc_world_now_ns())
            end_await_give_up(end);
    }
}

/* Fails the end, as a kernel does whose bytes nobody acknowledges. The peer is not told. */
static void end_on_give_up(struct tc_world_event *event)
{
    struct tc_net_side *end = TC_CONTAINER_OF(event, struct tc_net_side, give_up);
    tc_world_detail("connection %llu: end %d gives up", (unsigned long long)end->connection->id, end_index(end));
    end->gave_up = true;
    end_break(end);
}

/* --- bytes on their way --- */

static void end_await_arrival(struct tc_net_side *end)
{
    if (end->chunks.len > 0 && !end->connection->silent && !end->failed)
        tc_world_event_at(&end->arrival, TC_MAX(end->chunks.data[0].at_ns, end->connection->stalled_until_ns));
}

/* Sends `len` bytes, which are in to->flight already, to the end `to`. With len 0 sends a reset if `reset` is true,
 * else the end of the stream. */
static void end_send(struct tc_net_side *to, size_t len, bool reset)
{
    struct tc_net_connection *c = to->connection;
    struct tc_net_side *from = tc_net_side_peer(to);
    uint64_t at_ns = tc_world_now_ns() + c->delay_ns;
    if (to->chunks.len > 0)
        at_ns = TC_MAX(at_ns, to->chunks.data[to->chunks.len - 1].at_ns);
    *tc_vec_push(&to->chunks) = (struct tc_net_chunk){at_ns, len, reset};
    if (to->chunks.len == 1)
        end_await_arrival(to);
    if (c->silent && len > 0)
        end_await_give_up(from);
}

/* Takes in the first chunk, of which there must be one. Returns false if the connection was reset. */
static bool end_take_chunk(struct tc_net_side *end)
{
    struct tc_net_connection *c = end->connection;
    struct tc_net_chunk chunk = end->chunks.data[0];
    size_t len = chunk.len, arrives = TC_MIN(len, c->cut_after);
    bool is_end = len == 0;
    tc_vec_remove(&end->chunks, 0);
    if (chunk.reset) {
        tc_net_connection_reset(c);
        return false;
    }
    if (end->closed && !is_end) {
        tc_buf_consume(&end->flight, len);
        end_send(tc_net_side_peer(end), 0, true);
        return true;
    }
    tc_world_detail("connection %llu: %zu bytes at end %d", (unsigned long long)c->id, arrives, end_index(end));
    tc_buf_append(&end->inbox, end->flight.data, arrives);
    if (!is_end)
        tc_net_side_peer(end)->acknowledged_ns = tc_world_now_ns() + c->delay_ns;
    tc_buf_consume(&end->flight, len);
    end->finished = end->finished || is_end;
    if (c->cut_after != SIZE_MAX)
        c->cut_after -= arrives;
    if (arrives < len) {
        tc_world_note(TC_WORLD_CUTS);
        tc_world_note_fault(tc_world_now_ns());
        tc_world_story("connection %llu to %s breaks in the middle of a write", (unsigned long long)c->id, c->address);
        tc_net_connection_reset(c);
        return false;
    }
    return true;
}

static void end_on_arrival(struct tc_world_event *event)
{
    struct tc_net_side *end = TC_CONTAINER_OF(event, struct tc_net_side, arrival);
    if (end->connection->stalled_until_ns > tc_world_now_ns()) {
        end_await_arrival(end);
        return;
    }
    while (end->chunks.len > 0 && end->chunks.data[0].at_ns <= tc_world_now_ns())
        if (!end_take_chunk(end))
            return;
    end_tell_readable(end);
    end_await_arrival(end);
}

/* --- the operations of a byte stream --- */

/* Sets the error of the byte stream of a failed end. Returns TORC_ECLOSED. */
static ssize_t end_fail(struct tc_net_side *end, const char *what)
{
    char *peer = tc_addr_text(&end->bs.peer);
    tc_status_set(&end->bs.error,
                  tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "%s %s failed: Connection %s", what, peer,
                                 end->gave_up ? "timed out" : "reset by peer"));
    tc_free(peer);
    return TORC_ECLOSED;
}

static ssize_t stream_read(struct tc_bytestream *bs, void *buf, size_t len)
{
    struct tc_net_side *end = end_of(bs);
    if (end->inbox.len == 0 && end->failed)
        return end_fail(end, "read from");
    if (end->inbox.len == 0)
        return end->finished ? 0 : TORC_EAGAIN;
    size_t n = TC_MIN(len, end->inbox.len);
    memcpy(buf, end->inbox.data, n);
    tc_buf_consume(&end->inbox, n);
    end_tell_writable(tc_net_side_peer(end));
    return (ssize_t)n;
}

static ssize_t stream_writev(struct tc_bytestream *bs, const struct iovec *iov, int n)
{
    struct tc_net_side *end = end_of(bs), *to = tc_net_side_peer(end);
    if (end->failed)
        return end_fail(end, "write to");
    size_t waits = to->inbox.len + to->flight.len, wanted = 0, total = 0;
    size_t room = end->connection->buffer_bytes > waits ? end->connection->buffer_bytes - waits : 0;
    for (int i = 0; i < n; i++) {
        size_t part = TC_MIN(iov[i].iov_len, room - total);
        wanted += iov[i].iov_len;
        tc_buf_append(&to->flight, iov[i].iov_base, part);
        total += part;
    }
    if (total < wanted)
        tc_world_note(TC_WORLD_SHORT_WRITES);
    if (total == 0 && wanted > 0) {
        end->want_write = true;
        return TORC_EAGAIN;
    }
    if (total > 0)
        end_send(to, total, false);
    return (ssize_t)total;
}

static void stream_set_reading(struct tc_bytestream *bs, bool on)
{
    struct tc_net_side *end = end_of(bs);
    bool was = end->reading;
    end->reading = on;
    if (on && !was && (end->inbox.len > 0 || end->finished || end->failed))
        end_tell_readable(end);
}

static void stream_close(struct tc_bytestream *bs)
{
    struct tc_net_side *end = end_of(bs), *peer = tc_net_side_peer(end);
    end->closed = true;
    end->bs.on_event = NULL;
    tc_world_event_stop(&end->again);
    tc_world_event_stop(&end->give_up);
    tc_task_cancel(&end->event);
    if (end->connection->silent)
        tc_world_note_fault(tc_world_now_ns());
    if (peer->closed) {
        connection_free(end->connection);
        return;
    }
    if (!end->failed)
        end_send(peer, 0, end->inbox.len > 0);
}

static const struct tc_bytestream_ops stream_ops = {stream_read, stream_writev, stream_set_reading, stream_close, NULL};

struct tc_net_connection *tc_net_connection_new(struct tc_loop *client, struct tc_loop *server,
                                                const struct tc_addr *addr)
{
    struct tc_net_connection *c = TC_NEW(struct tc_net_connection);
    c->id = ++last_id;
    c->address = tc_addr_text(addr);
    c->cut_after = SIZE_MAX;
    tc_list_append(&connections, &c->link);
    for (int i = 0; i < 2; i++) {
        struct tc_net_side *end = &c->ends[i];
        end->bs.ops = &stream_ops;
        end->connection = c;
        end->loop = i == 0 ? client : server;
        end->reading = true;
        tc_task_init(&end->event, end_on_task);
        tc_world_event_init(&end->arrival, end_on_arrival);
        tc_world_event_init(&end->again, end_on_again);
        tc_world_event_init(&end->give_up, end_on_give_up);
    }
    c->ends[0].bs.peer = tc_addr_ref(addr);
    c->ends[1].bs.local = tc_addr_ref(addr);
    tc_addr_from_ip(&c->ends[0].bs.local, tc_slice_str("10.255.0.1"), (uint16_t)(1024 + c->id % 60000));
    c->ends[1].bs.peer = tc_addr_ref(&c->ends[0].bs.local);
    return c;
}
