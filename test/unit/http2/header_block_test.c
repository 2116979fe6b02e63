/* Calls that end while their header block is under way: the rest of the block is dropped, and the memory of the call,
 * which may serve another call by then, stays untouched.
 *
 * A client (kits/h2) or a server's connection (struct server), against fakes/h2 on a manual loop. A block comes as
 * HEADERS and CONTINUATION. The call ends between the two frames (enum meeting), or in a turn whose read budget ends
 * within the block. Only a server's status that cannot be written ends its call after the block (server_call_ends).
 *
 * A client's stream lies in the arena of its call, which the call's owner may use again: the tests compare the memory.
 * A server's stream belongs to its connection, which keeps the stream as a spare one for a later request:
 * AddressSanitizer reports a use of a spare stream, since it is poisoned (spare_streams_are_poisoned). One thread. */
#include "base/mem.h"
#include "base/poison.h"
#include "http2/client_stream_internal.h"
#include "http2/server_stream_internal.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS
#define OK_TRAILERS "grpc-status: 0\n"
#define FIELDS "mark: of the call that ended\nother: x\n"
/* Bytes that a connection reads before others have their turn (BYTES_AT_ONCE of http2/read.c). */
#define READ_BUDGET (512u * 1024u)

/* How the end of the call and the rest of its header block meet. */
enum meeting {
    WRITES_BLOCKED, /* our RST_STREAM, or a server's status, cannot leave before the rest comes */
    RESET_WRITTEN,  /* our RST_STREAM was written, and nghttp2 has closed the stream */
    MEETINGS
};

/* Sends a block as HEADERS and CONTINUATION, cut after `first` bytes of the block. */
static void put_block(struct fake_h2 *peer, uint32_t stream, const struct tc_buf *block, size_t first, bool end)
{
    fake_h2_frame(peer, FAKE_H2_HEADERS, end ? FAKE_H2_END_STREAM : 0, stream, block->data, first);
    fake_h2_frame(peer, FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, stream, block->data + first, block->len - first);
}

/* Blocks the pipe, and makes the connection owe an answer to a PING, so that later frames queue behind it. */
static void block_writes(struct fake_pipe *pipe, struct fake_h2 *peer, struct tc_loop *loop)
{
    fake_pipe_set_capacity(pipe, 0);
    fake_h2_ping(peer, "abcdefgh", false);
    tc_loop_drain(loop);
}

/* --- the client --- */

/* The memory of a call that ended: where its stream lay, in the call's arena. end_call sets it. */
struct memory {
    struct tc_h2_client_stream *stream;
};

/* Cancels the call, and zeroes the memory of its stream, which is poisoned from then on under AddressSanitizer. Stores
 * where that memory is. */
static void end_call(struct kit_h2_call *call, struct memory *memory)
{
    memory->stream = tc_h2_client_stream_of(call->stream);
    tc_h2_stream_cancel(call->stream, 8);
    call->stream = NULL;
    memset(memory->stream, 0, sizeof(*memory->stream));
    tc_arena_reset(&call->arena);
}

/* Asserts that the memory is still zero. */
static void assert_untouched(const struct memory *memory)
{
    static const struct tc_h2_client_stream zero;
    tc_unpoison(memory->stream, sizeof(zero));
    assert_memory_equal(memory->stream, &zero, sizeof(zero));
}

/* Asserts that the connection serves another call, on stream `id`. */
static void assert_serves(struct kit_h2 *t, uint32_t id)
{
    struct kit_h2_call next;
    kit_h2_unary(&next, t);
    fake_h2_headers(t->peer, id, OK "mark: of the next call\n", false);
    fake_h2_message(t->peer, id, "y", 1, false);
    fake_h2_headers(t->peer, id, OK_TRAILERS, true);
    kit_h2_run(t);
    assert_int_equal(next.code, TORC_STATUS_OK);
    assert_string_equal(next.header_text, "mark=of the next call;");
    assert_int_equal(t->closed, 0);
    kit_h2_call_fini(&next);
}

/* The call ends between the two parts of its response headers or, with `trailers`, of its trailers. */
static void client_call_ends(enum meeting meeting, bool trailers)
{
    struct kit_h2 t;
    struct kit_h2_call call;
    struct memory memory;
    struct tc_buf block = {0};
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    if (trailers)
        fake_h2_headers(t.peer, 1, OK, false);
    if (meeting == WRITES_BLOCKED)
        block_writes(t.pipe, t.peer, t.loop);
    fake_h2_hpack(&block, trailers ? OK_TRAILERS FIELDS : OK FIELDS);
    fake_h2_frame(t.peer, FAKE_H2_HEADERS, trailers ? FAKE_H2_END_STREAM : 0, 1, block.data, 20);
    kit_h2_run(&t);
    end_call(&call, &memory);
    kit_h2_run(&t);
    fake_h2_frame(t.peer, FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, 1, block.data + 20, block.len - 20);
    kit_h2_run(&t);
    assert_untouched(&memory);
    fake_pipe_set_capacity(t.pipe, SIZE_MAX);
    kit_h2_run(&t);
    assert_non_null(fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1));
    assert_serves(&t, 3);
    tc_buf_fini(&block);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void client_calls_end(void **state)
{
    (void)state;
    for (int meeting = 0; meeting < MEETINGS; meeting++)
        for (int trailers = 0; trailers < 2; trailers++)
            client_call_ends((enum meeting)meeting, trailers);
}

static struct kit_h2_call *budget_victim;
static struct memory budget_memory;

static void end_the_other(struct kit_h2_call *call, const char *event)
{
    (void)call;
    if (strcmp(event, "message") == 0 && budget_victim->stream)
        end_call(budget_victim, &budget_memory);
}

/* Sends a message on stream 3, and bytes of a larger one until `before` bytes of the read budget are left. The peer
 * must be held (fake_h2_hold): what it has collected is measured. */
static void fill_budget(struct fake_h2 *peer, size_t before)
{
    static const char prefix[5] = {0, 0, 16, 0, 0};
    char *zeros = tc_calloc(1, 16384);
    fake_h2_message(peer, 3, "the other call ends", 19, false);
    fake_h2_data(peer, 3, prefix, sizeof(prefix), false);
    size_t left;
    while ((left = READ_BUDGET - before - fake_h2_take(peer)->len) > 0) {
        assert_true(left > 9);
        size_t n = TC_MIN(left - 9, (size_t)16384);
        if (left - 9 - n > 0 && left - 9 - n <= 9) /* the next frame needs 9 bytes for its head, and one more */
            n -= 10;
        fake_h2_data(peer, 3, zeros, n, false);
    }
    tc_free(zeros);
}

/* The read budget of the turn ends within the header block of a call that ends in this turn: the rest of the block is
 * read before the connection flushes. Runs once for each place within the block's two frames. */
static void read_budget_ends_in_a_block(void **state)
{
    (void)state;
    struct tc_buf block = {0};
    fake_h2_hpack(&block, OK FIELDS);
    for (size_t before = 1; before < 9 + 9 + block.len; before++) {
        struct tc_h2_opts opts;
        struct kit_h2 t;
        struct kit_h2_call call, other;
        tc_h2_opts_init(&opts, false);
        opts.no_bdp = true;
        opts.limits.initial_window_bytes = 4 * READ_BUDGET;
        kit_h2_init(&t, &opts, 0);
        kit_h2_unary(&call, &t);
        kit_h2_unary(&other, &t);
        other.auto_read = false;
        other.hook = end_the_other;
        budget_victim = &call;
        budget_memory = (struct memory){0};
        fake_h2_hold(t.peer, true);
        fake_h2_headers(t.peer, 3, OK, false);
        fill_budget(t.peer, before);
        put_block(t.peer, 1, &block, 20, false);
        fake_h2_hold(t.peer, false);
        kit_h2_run(&t);
        assert_int_equal(other.messages, 1);
        assert_untouched(&budget_memory);
        assert_non_null(fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1));
        assert_serves(&t, 5);
        kit_h2_call_fini(&call);
        kit_h2_call_fini(&other);
        kit_h2_fini(&t);
    }
    tc_buf_fini(&block);
}

/* --- the server --- */

struct server {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct fake_h2 *peer; /* the client's end */
    struct tc_h2_conn *conn;
    struct tc_h2_stream *streams[2]; /* as they were announced; NULL after the end */
    unsigned n_streams, ended, messages;
    bool end_at_message; /* a message on a later stream ends the first one */
};

/* Cancels the first call. Its stream becomes a spare one for later requests. */
static void cancel_first(struct server *s)
{
    tc_h2_stream_cancel(s->streams[0], 8);
    s->streams[0] = NULL;
    assert_null(s->conn->streams.in_block);
}

/* The server under test. The argument of a stream's events is the stream's place in server_of->streams. */
static struct server *server_of;

static void on_server_message(void *arg, struct tc_rstr *message)
{
    struct server *s = server_of;
    struct tc_h2_stream **stream = arg;
    tc_rstr_unref(message);
    s->messages++;
    if (s->end_at_message && stream != &s->streams[0] && s->streams[0])
        cancel_first(s);
}

static void on_server_end(void *arg, const struct tc_status *why)
{
    (void)why;
    *(struct tc_h2_stream **)arg = NULL;
    server_of->ended++;
}

static const struct tc_h2_server_events server_stream_events = {.stream = {.on_message = on_server_message},
                                                                .on_end = on_server_end};

static void on_stream(void *arg, struct tc_h2_stream *stream)
{
    struct server *s = arg;
    assert_in_range(s->n_streams, 0, 1);
    s->streams[s->n_streams] = stream;
    tc_h2_server_stream_set_events(stream, &server_stream_events, &s->streams[s->n_streams++]);
    tc_h2_stream_read(stream);
}

static const struct tc_h2_conn_events server_events = {.on_stream = on_stream};

#define REQUEST                                                                                                        \
    ":method: POST\n:scheme: http\n:path: /a.B/C\n:authority: a\ncontent-type: application/grpc\nte: trailers\n"

/* Fills *s, connects, and has the client open a request on stream 1 that does not end yet. */
static void server_init(struct server *s)
{
    struct tc_h2_opts opts;
    *s = (struct server){0};
    server_of = s;
    s->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    s->pipe = fake_pipe_new(s->loop);
    s->peer = fake_h2_new(s->pipe, 1, false);
    tc_h2_opts_init(&opts, true);
    opts.no_bdp = true;
    opts.limits.initial_window_bytes = 4 * READ_BUDGET;
    s->conn = tc_h2_conn_new(s->loop, fake_pipe_end(s->pipe, 0), &opts, &server_events, s);
    fake_h2_start(s->peer);
    fake_h2_headers(s->peer, 1, REQUEST, false);
    tc_loop_drain(s->loop);
    assert_non_null(s->streams[0]);
}

static void server_fini(struct server *s)
{
    tc_h2_conn_close(s->conn);
    tc_loop_drain(s->loop);
    fake_h2_free(s->peer);
    fake_pipe_free(s->pipe);
    tc_loop_free(s->loop);
}

/* The handler cancels the call between the two parts of the request's trailers or, with `status`, sends its status
 * there. While writes are blocked the status does not end the call: the call ends after the block. */
static void server_call_ends(enum meeting meeting, bool status)
{
    struct server s;
    struct tc_buf block = {0};
    server_init(&s);
    if (meeting == WRITES_BLOCKED)
        block_writes(s.pipe, s.peer, s.loop);
    fake_h2_hpack(&block, FIELDS);
    fake_h2_frame(s.peer, FAKE_H2_HEADERS, FAKE_H2_END_STREAM, 1, block.data, 20);
    tc_loop_drain(s.loop);
    if (status)
        tc_h2_server_stream_send_status(s.streams[0], &(struct tc_status){0}, NULL);
    else
        cancel_first(&s);
    tc_loop_drain(s.loop);
    assert_int_equal(s.ended, status && meeting == RESET_WRITTEN);
    assert_true(!s.ended || !s.conn->streams.in_block);
    fake_h2_frame(s.peer, FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, 1, block.data + 20, block.len - 20);
    tc_loop_drain(s.loop);
    fake_pipe_set_capacity(s.pipe, SIZE_MAX);
    tc_loop_drain(s.loop);
    /* A status that is written after the whole request needs no RST_STREAM. */
    assert_int_equal(fake_h2_count(s.peer, FAKE_H2_RST_STREAM, 1), !(status && meeting == WRITES_BLOCKED));
    assert_null(s.streams[0]);
    fake_h2_headers(s.peer, 3, REQUEST, true);
    tc_loop_drain(s.loop);
    assert_int_equal(s.n_streams, 2);
    tc_buf_fini(&block);
    server_fini(&s);
}

static void server_calls_end(void **state)
{
    (void)state;
    for (int meeting = 0; meeting < MEETINGS; meeting++)
        for (int status = 0; status < 2; status++)
            server_call_ends((enum meeting)meeting, status);
}

/* A server's stream and its headers are poisoned while the stream is spare. A request that reuses the stream unpoisons
 * it. */
static void spare_streams_are_poisoned(void **state)
{
    (void)state;
    if (!TC_POISONS)
        skip();
    struct server s;
    server_init(&s);
    struct tc_h2_stream *stream = s.streams[0];
    const char *path = tc_h2_server_stream_request(stream)->data[0].value.data;
    cancel_first(&s);
    assert_ptr_equal(s.conn->streams.spare, tc_h2_server_stream_of(stream));
    assert_true(tc_is_poisoned(stream));
    assert_true(tc_is_poisoned(&stream->headers));
    assert_true(tc_is_poisoned((const char *)(tc_h2_server_stream_of(stream) + 1) - 1));
    assert_true(tc_is_poisoned(path));
    fake_h2_headers(s.peer, 3, REQUEST, true);
    tc_loop_drain(s.loop);
    assert_ptr_equal(s.streams[1], stream);
    server_fini(&s);
}

/* The read budget of the turn ends within the trailers of a request whose call ends in this turn. */
static void server_read_budget(void **state)
{
    (void)state;
    struct tc_buf block = {0};
    fake_h2_hpack(&block, FIELDS);
    for (size_t before = 1; before < 9 + 9 + block.len; before++) {
        struct server s;
        server_init(&s);
        fake_h2_headers(s.peer, 3, REQUEST, false);
        tc_loop_drain(s.loop);
        s.end_at_message = true;
        fake_h2_hold(s.peer, true);
        fill_budget(s.peer, before);
        put_block(s.peer, 1, &block, 20, true);
        fake_h2_hold(s.peer, false);
        tc_loop_drain(s.loop);
        assert_int_equal(s.messages, 1);
        assert_null(s.streams[0]);
        assert_non_null(fake_h2_expect(s.peer, FAKE_H2_RST_STREAM, 1));
        server_fini(&s);
    }
    tc_buf_fini(&block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_calls_end),           cmocka_unit_test(read_budget_ends_in_a_block),
        cmocka_unit_test(server_calls_end),           cmocka_unit_test(server_read_budget),
        cmocka_unit_test(spare_streams_are_poisoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
