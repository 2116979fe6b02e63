/* Bytes of requests that have come and are not read: which calls end beyond max_unread_bytes, and how windows shrink
 * near it.
 *
 * Clients are fakes/h2 over fakes/pipe with addresses of the test's choice, on a manual loop. `init` makes loop and
 * server, whose default handler reads and answers nothing. Tests about unary requests add /t.S/Hold, whose handler is
 * called only when a request is whole. `enter` connects a client; `leave` frees it, before `fini` frees the server and
 * the loop. */
#include "server/call.h"
#include "server/server.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

#define REQUEST                                                                                                        \
    ":method: POST\n:scheme: http\n:path: /t.S/Hold\n:authority: a\nte: trailers\ncontent-type: application/grpc\n"

struct fixture {
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_server_call *call; /* the last call */
    unsigned ends;               /* calls of on_end */
};

/* A client and its connection: the server has end 0 of the pipe, `peer` end 1. */
struct guest {
    struct fake_pipe *pipe;
    struct fake_h2 *peer;
};

static void on_end(void *arg, const struct tc_status *why)
{
    struct fixture *f = arg;
    (void)why;
    f->ends++;
}

static void on_call(void *arg, struct tc_server_call *call)
{
    static const struct tc_server_call_events events = {.on_end = on_end};
    struct fixture *f = arg;
    f->call = call;
    tc_server_call_set_events(call, &events, f);
}

static void init(struct fixture *f, const struct tc_server_opts *opts)
{
    memset(f, 0, sizeof(*f));
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 3});
    f->server = tc_server_new(f->loop, opts);
    tc_server_set_default(f->server, on_call, f);
}

static void fini(struct fixture *f)
{
    tc_server_free(f->server);
    tc_loop_drain(f->loop);
    tc_loop_free(f->loop);
}

/* Connects a client that sends its preface and SETTINGS, from the address `from`. Returns it for `leave`. */
static struct guest enter(struct fixture *f, const char *from)
{
    struct guest g = {.pipe = fake_pipe_new(f->loop)};
    struct tc_bytestream *bs = fake_pipe_end(g.pipe, 0);
    tc_addr_fini(&bs->peer);
    assert_int_equal(tc_addr_parse(&bs->peer, tc_slice_str(from)), 0);
    g.peer = fake_h2_new(g.pipe, 1, false);
    tc_server_accept(f->server, bs);
    fake_h2_start(g.peer);
    tc_loop_drain(f->loop);
    return g;
}

/* Ends the client's side, lets the server see that, and frees the client. */
static void leave(struct fixture *f, struct guest *g)
{
    fake_pipe_finish(g->pipe, 1);
    tc_loop_drain(f->loop);
    fake_h2_free(g->peer);
    fake_pipe_free(g->pipe);
}

enum { PIECE = 60000 }; /* bytes of a message */

static void on_whole(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)request;
    on_call(arg, call);
}

static size_t unread_bytes(const struct fixture *f)
{
    struct tc_server_counts counts;
    tc_server_counts(f->server, &counts);
    return counts.unread_bytes;
}

/* All connections together may hold eight pieces. */
static void init_unread(struct fixture *f)
{
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.http2.limits.max_receive_message_bytes = PIECE + 6000;
    opts.max_unread_bytes = 8 * (PIECE + 6000);
    init(f, &opts);
    tc_server_add_unary(f->server, "/t.S/Hold", on_whole, f);
}

/* Sends a request's message on each of the first `n` streams, and leaves the requests open. unary: the handler waits
 * for the end of the request; otherwise it is called at once, and reads nothing. */
static void send_pieces(struct fixture *f, struct guest *g, uint32_t n, bool unary)
{
    static const char piece[PIECE];
    for (uint32_t i = 0; i < n; i++) {
        fake_h2_headers(g->peer, 2 * i + 1,
                        unary ? REQUEST
                              : ":method: POST\n:scheme: http\n:path: /t.S/Any\n:authority: a\nte: trailers\n"
                                "content-type: application/grpc\n",
                        false);
        fake_h2_message(g->peer, 2 * i + 1, piece, PIECE, false);
        tc_loop_drain(f->loop);
    }
}

/* Takes all frames that have come to the client. Returns how many of its streams they end with RESOURCE_EXHAUSTED. */
static unsigned exhausted(struct guest *g)
{
    const struct fake_h2_frame *frame;
    unsigned n = 0;
    while ((frame = fake_h2_expect(g->peer, FAKE_H2_HEADERS, 0)))
        n += strstr(frame->headers, "grpc-status: 8\n") != NULL;
    return n;
}

/* Clients that end no request (unary), or whose requests nobody reads, hold no more than the limit allows. One
 * client alone may hold all of it. */
static void unread_bytes_are_bounded(void **state)
{
    (void)state;
    for (int unary = 0; unary < 2; unary++) {
        struct fixture f;
        init_unread(&f);
        struct guest g = enter(&f, "10.0.0.1:1");
        send_pieces(&f, &g, 8, unary);
        assert_int_equal(exhausted(&g), 0);
        assert_in_range(unread_bytes(&f), 7 * PIECE, 8 * (PIECE + 6000));
        fake_h2_headers(g.peer, 17, REQUEST, false);
        fake_h2_message(g.peer, 17, "small", 5, true); /* reaches its handler */
        tc_loop_drain(f.loop);
        assert_non_null(f.call);
        struct guest other = enter(&f, "10.0.0.1:1");
        send_pieces(&f, &other, 6, unary);
        assert_int_equal(exhausted(&g) + exhausted(&other), 6);
        assert_in_range(unread_bytes(&f), 7 * PIECE, 8 * (PIECE + 6000));
        leave(&f, &g);
        leave(&f, &other);
        assert_int_equal(unread_bytes(&f), 0);
        fini(&f);
    }
}

/* Beyond the limit of all connections, calls of the address that holds the most end. */
static void who_has_the_most_unread_gives_up(void **state)
{
    (void)state;
    struct fixture f;
    struct guest g[4];
    init_unread(&f);
    for (size_t i = 0; i < 4; i++) {
        g[i] = enter(&f, "10.0.0.1:1");
        send_pieces(&f, &g[i], 2, true);
    }
    struct guest victim = enter(&f, "10.0.0.2:1");
    send_pieces(&f, &victim, 2, true);
    assert_int_equal(exhausted(&victim), 0);
    unsigned n = 0;
    for (size_t i = 0; i < 4; i++)
        n += exhausted(&g[i]);
    assert_int_equal(n, 2);
    fake_h2_data(victim.peer, 1, NULL, 0, true);
    tc_loop_drain(f.loop);
    assert_non_null(f.call);
    for (size_t i = 0; i < 4; i++)
        leave(&f, &g[i]);
    leave(&f, &victim);
    fini(&f);
}

/* Windows that have grown get their first size again when more than half of the limit is held. */
static void windows_shrink(void **state)
{
    (void)state;
    static const char data[16000];
    struct tc_server_opts opts;
    struct fixture f;
    tc_server_opts_init(&opts);
    opts.max_unread_bytes = 200000;
    init(&f, &opts);
    struct guest g = enter(&f, "10.0.0.1:1");
    fake_h2_headers(g.peer, 1, REQUEST, false);
    fake_h2_data(g.peer, 1, data, sizeof(data), false);
    tc_loop_drain(f.loop);
    const struct fake_h2_frame *frame = fake_h2_expect(g.peer, FAKE_H2_PING, 0);
    assert_non_null(frame);
    char ping[8];
    memcpy(ping, frame->payload, 8);
    for (int i = 0; i < 2; i++)
        fake_h2_data(g.peer, 1, data, sizeof(data), false);
    fake_h2_headers(g.peer, 3, REQUEST, false);
    fake_h2_data(g.peer, 3, data, sizeof(data), false);
    tc_loop_advance(f.loop, 50);
    fake_h2_ping(g.peer, ping, true);
    tc_loop_drain(f.loop);
    frame = fake_h2_expect(g.peer, FAKE_H2_SETTINGS, 0);
    assert_non_null(frame);
    assert_memory_equal(frame->payload, "\0\4\0\2\0\0", 6);
    fake_h2_frame(g.peer, FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, NULL, 0);
    for (int i = 0; i < 2; i++)
        fake_h2_data(g.peer, 1, data, sizeof(data), false);
    tc_loop_drain(f.loop);
    frame = fake_h2_expect(g.peer, FAKE_H2_SETTINGS, 0);
    assert_non_null(frame);
    assert_memory_equal(frame->payload, "\0\4\0\1\0\0", 6);
    assert_int_equal(f.ends, 0);
    leave(&f, &g);
    fini(&f);
}

/* A window that was opened for a message that has begun to come stays open, though the connection is squeezed. */
static void room_of_a_message_stays(void **state)
{
    (void)state;
    static const char data[16000];
    struct tc_server_opts opts;
    struct fixture f;
    tc_server_opts_init(&opts);
    opts.max_unread_bytes = 200000;
    init(&f, &opts);
    tc_server_add_unary(f.server, "/t.S/Hold", on_whole, &f);
    struct guest g = enter(&f, "10.0.0.1:1");
    fake_h2_headers(g.peer, 1, REQUEST, false);
    fake_h2_data(g.peer, 1, "\0\0\2\0\0", 5, false); /* 128 KiB */
    tc_loop_drain(f.loop);
    assert_non_null(fake_h2_expect(g.peer, FAKE_H2_WINDOW_UPDATE, 1));
    size_t left = 131072;
    /* The message's room counts as unread and grows to 128 KiB. Above 100,000 bytes the connection is squeezed. */
    while (left) {
        size_t n = TC_MIN(left, sizeof(data));
        left -= n;
        fake_h2_data(g.peer, 1, data, n, !left);
        tc_loop_drain(f.loop);
    }
    assert_non_null(f.call);
    assert_int_equal(f.ends, 0);
    leave(&f, &g);
    fini(&f);
}

/* A connection that held much beside others was squeezed. Once it holds little itself, its bandwidth-delay product is
 * measured again and its windows may grow, though the others still hold much. */
static void windows_grow_again(void **state)
{
    (void)state;
    static const char data[16000];
    struct fixture f;
    init_unread(&f);
    struct guest others = enter(&f, "10.0.0.1:1"), g = enter(&f, "10.0.0.2:1");
    send_pieces(&f, &others, 5, true);
    send_pieces(&f, &g, 2, true);
    for (uint32_t id = 1; id <= 3; id += 2)
        fake_h2_data(g.peer, id, NULL, 0, true);
    tc_loop_drain(f.loop);
    /* The connection was squeezed while its first probe was out. The next probe waits for the answer to that one. */
    const struct fake_h2_frame *frame = fake_h2_expect(g.peer, FAKE_H2_PING, 0);
    assert_non_null(frame);
    char ping[8];
    memcpy(ping, frame->payload, 8);
    assert_null(fake_h2_expect(g.peer, FAKE_H2_PING, 0));
    fake_h2_ping(g.peer, ping, true);
    tc_loop_advance(f.loop, 1000);
    fake_h2_headers(g.peer, 5, REQUEST, false);
    fake_h2_data(g.peer, 5, data, sizeof(data), false);
    tc_loop_drain(f.loop);
    assert_non_null(fake_h2_expect(g.peer, FAKE_H2_PING, 0)); /* the probe that measures */
    leave(&f, &others);
    leave(&f, &g);
    fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unread_bytes_are_bounded), cmocka_unit_test(who_has_the_most_unread_gives_up),
        cmocka_unit_test(windows_shrink),           cmocka_unit_test(room_of_a_message_stays),
        cmocka_unit_test(windows_grow_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
