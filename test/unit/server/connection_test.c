/* Connections that a server closes and calls that it resets, to bound the cost of its clients: silent clients, in
 * every state of a connection, full tables of connections, and bytes queued for clients that do not read.
 *
 * Clients are fakes/h2 over fakes/pipe with addresses of the test's choice, on a manual loop. Only silent_in_tls has a
 * client with real TLS, of kits/tls_pair, which it frees itself. `init` makes loop and server, whose default handler
 * answers nothing: a call stays open until a test, its client or the server ends it. knock, enter and enter_and_ask
 * connect a client; `leave` frees it, before `fini` frees the server and the loop. */
#include "base/mem.h"
#include "server/call.h"
#include "server/server.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"
#include "support/kits/tls_pair.h"

#define REQUEST                                                                                                        \
    ":method: POST\n:scheme: http\n:path: /t.S/Hold\n:authority: a\nte: trailers\ncontent-type: application/grpc\n"
#define HANDSHAKE_MS 20000u
#define IDLE_MS 60000u
#define HOUR_MS 3600000u

struct fixture {
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_server_call *call; /* the last call */
    unsigned ends;               /* calls of on_end */
    int end_code;                /* of the status that the last on_end had */
};

/* A client and its connection: the server has end 0 of the pipe, `peer` end 1. */
struct guest {
    struct fake_pipe *pipe;
    struct fake_h2 *peer;
};

static void on_end(void *arg, const struct tc_status *why)
{
    struct fixture *f = arg;
    f->ends++;
    f->end_code = why->code;
}

static void on_call(void *arg, struct tc_server_call *call)
{
    static const struct tc_server_call_events events = {.on_end = on_end};
    struct fixture *f = arg;
    f->call = call;
    tc_server_call_set_events(call, &events, f);
}

static struct tc_server_opts options(void)
{
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.idle_timeout_ms = IDLE_MS;
    return opts;
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

/* Connects a client that sends nothing, from the address `from`. Returns it for `leave`. */
static struct guest knock(struct fixture *f, const char *from)
{
    struct guest g = {.pipe = fake_pipe_new(f->loop)};
    struct tc_bytestream *bs = fake_pipe_end(g.pipe, 0);
    tc_addr_fini(&bs->peer);
    assert_int_equal(tc_addr_parse(&bs->peer, tc_slice_str(from)), 0);
    g.peer = fake_h2_new(g.pipe, 1, false);
    tc_server_accept(f->server, bs);
    tc_loop_drain(f->loop);
    return g;
}

/* Connects a client that sends its preface and SETTINGS. Returns it for `leave`. */
static struct guest enter(struct fixture *f, const char *from)
{
    struct guest g = knock(f, from);
    fake_h2_start(g.peer);
    tc_loop_drain(f->loop);
    return g;
}

/* Connects a client that makes a call, stream 1, and leaves the request open. Returns it for `leave`. */
static struct guest enter_and_ask(struct fixture *f, const char *from)
{
    struct guest g = enter(f, from);
    fake_h2_headers(g.peer, 1, REQUEST, false);
    tc_loop_drain(f->loop);
    return g;
}

/* Returns true while the server has not closed the connection. */
static bool is_in(struct guest *g)
{
    return !fake_pipe_closed(g->pipe, 0);
}

/* Ends the client's side, lets the server see that, and frees the client. */
static void leave(struct fixture *f, struct guest *g)
{
    fake_pipe_finish(g->pipe, 1);
    tc_loop_drain(f->loop);
    fake_h2_free(g->peer);
    fake_pipe_free(g->pipe);
}

/* Asserts that the server closes the connection in `ms` from now, and not a millisecond earlier. Frees the client. */
static void expect_gone_after(struct fixture *f, struct guest *g, uint64_t ms)
{
    tc_loop_advance(f->loop, ms - 1);
    assert_true(is_in(g));
    tc_loop_advance(f->loop, 1);
    assert_false(is_in(g));
    leave(f, g);
}

/* Asserts that the server sends GOAWAY in IDLE_MS from now, and not a millisecond earlier. */
static void expect_idle_goaway(struct fixture *f, struct guest *g)
{
    tc_loop_advance(f->loop, IDLE_MS - 1);
    assert_null(fake_h2_expect(g->peer, FAKE_H2_GOAWAY, 0));
    tc_loop_advance(f->loop, 1);
    assert_non_null(fake_h2_expect(g->peer, FAKE_H2_GOAWAY, 0));
}

/* --- clients that say nothing --- */

static void silent_before_http2(void **state)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const size_t said[] = {0, 1, 10, sizeof(preface) - 1};
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    init(&f, &opts);
    for (size_t i = 0; i < TC_ARRAY_LEN(said); i++) {
        struct guest g = knock(&f, "10.0.0.1:1");
        if (said[i])
            fake_h2_bytes(g.peer, preface, said[i]);
        tc_loop_drain(f.loop);
        expect_gone_after(&f, &g, HANDSHAKE_MS);
    }
    struct guest slow = knock(&f, "10.0.0.1:1");
    tc_loop_advance(f.loop, HANDSHAKE_MS - 1);
    fake_h2_start(slow.peer);
    tc_loop_drain(f.loop);
    tc_loop_advance(f.loop, HANDSHAKE_MS);
    assert_true(is_in(&slow));
    leave(&f, &slow);
    fini(&f);
}

static void silent_in_tls(void **state)
{
    struct tc_server_opts opts = options();
    struct tc_tls_opts server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    struct fixture f;
    (void)state;
    opts.tls = kit_tls_pair_make_context(&server);
    init(&f, &opts);
    struct guest g = knock(&f, "10.0.0.1:1");
    expect_gone_after(&f, &g, HANDSHAKE_MS);
    /* The timeout is for TLS and preface together: a client that is slow in TLS has less time for the preface. */
    struct kit_tls_pair pair = {.loop = f.loop, .pipe = fake_pipe_new(f.loop)};
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    tc_server_accept(f.server, fake_pipe_end(pair.pipe, 1));
    tc_loop_advance(f.loop, 15000);
    kit_tls_pair_start_client(&pair, &client, "backend.test");
    tc_loop_drain(f.loop);
    assert_non_null(pair.client.bs);
    tc_loop_advance(f.loop, 4999);
    assert_false(fake_pipe_closed(pair.pipe, 1));
    tc_loop_advance(f.loop, 1);
    assert_true(fake_pipe_closed(pair.pipe, 1));
    pair.client.bs->ops->close(pair.client.bs);
    tc_buf_fini(&pair.client.received);
    tc_loop_drain(f.loop);
    fake_pipe_free(pair.pipe);
    fini(&f);
    tc_tls_context_unref(opts.tls);
}

static void silent_without_a_call(void **state)
{
    TC_CASE(SV20);
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    init(&f, &opts);
    struct guest g = enter(&f, "10.0.0.1:1");
    expect_idle_goaway(&f, &g);
    /* The client answers no PING: the last GOAWAY and the close come 5 s later. */
    tc_loop_advance(f.loop, HANDSHAKE_MS);
    const struct fake_h2_frame *last = fake_h2_expect(g.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(last);
    assert_string_equal(last->payload + 8, "max_idle");
    assert_false(is_in(&g));
    leave(&f, &g);
    /* The idle time starts again at the end of a call. */
    g = enter(&f, "10.0.0.1:1");
    tc_loop_advance(f.loop, IDLE_MS - 1);
    fake_h2_headers(g.peer, 1, REQUEST, false);
    tc_loop_drain(f.loop);
    tc_loop_advance(f.loop, IDLE_MS);
    tc_server_call_finish(f.call, 0, NULL, NULL);
    tc_loop_drain(f.loop);
    expect_idle_goaway(&f, &g);
    leave(&f, &g);
    fini(&f);
}

/* A9: the idle time starts again at an RPC that the server refuses: for its headers, and beyond the method's
 * max_calls. */
static void silent_after_refused_calls(void **state)
{
    (void)state;
    struct tc_server_opts opts = options();
    struct fixture f;
    init(&f, &opts);
    tc_server_limit(f.server, "*", &(struct tc_server_limits){.max_calls = 1});
    struct guest g = enter(&f, "10.0.0.1:1"), other = enter_and_ask(&f, "10.0.0.2:1");
    static const char *const requests[] = {":method: GET\n:scheme: http\n:path: /t.S/Hold\n:authority: a\n", REQUEST};
    for (uint32_t i = 0; i < 2; i++) {
        tc_loop_advance(f.loop, IDLE_MS - 1);
        fake_h2_headers(g.peer, 1 + 2 * i, requests[i], true);
        tc_loop_drain(f.loop);
        assert_non_null(fake_h2_expect(g.peer, FAKE_H2_HEADERS, 1 + 2 * i));
    }
    assert_int_equal(f.ends, 0);
    expect_idle_goaway(&f, &g);
    leave(&f, &g);
    leave(&f, &other);
    fini(&f);
}

/* A header block without END_HEADERS: nghttp2 has a stream, for which a graceful end waits, but no call has begun. */
static void silent_within_headers_for(uint64_t handshake_timeout_ms)
{
    struct tc_server_opts opts = options();
    struct tc_buf block = {0};
    struct fixture f;
    opts.handshake_timeout_ms = handshake_timeout_ms;
    init(&f, &opts);
    struct guest g = enter(&f, "10.0.0.1:1");
    fake_h2_hpack(&block, REQUEST);
    fake_h2_frame(g.peer, FAKE_H2_HEADERS, 0, 1, block.data, block.len);
    tc_loop_drain(f.loop);
    expect_gone_after(&f, &g, IDLE_MS + 20000);
    tc_buf_fini(&block);
    fini(&f);
}

static void silent_within_headers(void **state)
{
    (void)state;
    silent_within_headers_for(HANDSHAKE_MS);
    silent_within_headers_for(1000);
    silent_within_headers_for(0);
}

/* A call that is silent for hours, as an ADS stream may be, keeps its connection. */
static void silent_streams_stay(void **state)
{
    TC_CASE(SV21);
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    init(&f, &opts);
    struct guest g = enter_and_ask(&f, "10.0.0.1:1");
    for (int i = 0; i < 24; i++)
        tc_loop_advance(f.loop, HOUR_MS);
    assert_true(is_in(&g));
    assert_int_equal(f.ends, 0);
    assert_null(fake_h2_expect(g.peer, FAKE_H2_GOAWAY, 0));
    leave(&f, &g);
    fini(&f);
}

/* The server closes the connection of a client that answers no PING, and keeps that of a client that does. */
static void guarded_servers_ping(void **state)
{
    TC_CASE(SV24);
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    tc_server_opts_guard(&opts, 10, 0);
    init(&f, &opts);
    struct guest gone = enter_and_ask(&f, "10.0.0.1:1"), alive = enter_and_ask(&f, "10.0.0.1:2");
    for (int i = 0; i < 600; i++) {
        tc_loop_advance(f.loop, 1000);
        const struct fake_h2_frame *ping = fake_h2_expect(alive.peer, FAKE_H2_PING, 0);
        if (ping) {
            char data[8];
            memcpy(data, ping->payload, 8);
            fake_h2_ping(alive.peer, data, true);
            tc_loop_drain(f.loop);
        }
    }
    assert_false(is_in(&gone));
    assert_true(is_in(&alive));
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.end_code, TORC_STATUS_CANCELLED);
    leave(&f, &gone);
    leave(&f, &alive);
    fini(&f);
}

/* --- a full table --- */

/* A connection in its handshake is closed first, then a connection without a call; among equals the connection that is
 * quiet the longest. */
static void the_least_used_gives_way(void **state)
{
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    opts.max_connections = 5;
    init(&f, &opts);
    struct guest calling = enter_and_ask(&f, "10.0.0.1:1"), g[4], late[5];
    for (size_t i = 0; i < 4; i++) {
        tc_loop_advance(f.loop, 10);
        g[i] = i < 2 ? enter(&f, "10.0.0.1:2") : knock(&f, "10.0.0.1:3");
    }
    tc_loop_advance(f.loop, 10);
    fake_h2_headers(g[0].peer, 1, REQUEST, false); /* used again */
    fake_h2_rst(g[0].peer, 1, 8);
    tc_loop_drain(f.loop);
    static const size_t order[] = {2, 3, 1, 0};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = i; k < 4; k++)
            assert_true(is_in(&g[order[k]]));
        late[i] = enter_and_ask(&f, "10.0.0.1:4");
        assert_true(is_in(&late[i]));
        assert_false(is_in(&g[order[i]]));
    }
    /* All connections have calls now. */
    late[4] = knock(&f, "10.0.0.1:5");
    assert_false(is_in(&late[4]));
    assert_true(is_in(&calling));
    struct tc_server_counts counts;
    tc_server_counts(f.server, &counts);
    assert_int_equal(counts.open_connections, 5);
    for (size_t i = 0; i < 5; i++)
        leave(&f, &late[i]);
    for (size_t i = 0; i < 4; i++)
        leave(&f, &g[i]);
    leave(&f, &calling);
    fini(&f);
}

/* With calls_give_way, a connection whose call had no message for 5 s is closed first; then the connection whose client
 * has taken the most messages. */
static void calls_give_way_where_they_may(void **state)
{
    struct tc_server_opts opts = options();
    struct tc_server_call *calls[3];
    struct guest g[3], late[3];
    struct fixture f;
    (void)state;
    opts.max_connections = 3;
    opts.calls_give_way = true;
    init(&f, &opts);
    for (size_t i = 0; i < 3; i++) {
        g[i] = enter_and_ask(&f, "10.0.0.1:1");
        calls[i] = f.call;
    }
    tc_loop_advance(f.loop, 5000);
    for (size_t i = 0; i < 3; i++) /* 1, 2 and 0 messages */
        for (size_t n = 0; n < (i + 1) % 3; n++) {
            tc_server_call_send(calls[i], tc_slice_of("x", 1));
            tc_loop_drain(f.loop);
        }
    static const size_t order[] = {2, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = i; k < 3; k++)
            assert_true(is_in(&g[order[k]]));
        late[i] = enter_and_ask(&f, "10.0.0.1:2");
        assert_true(is_in(&late[i]));
        assert_false(is_in(&g[order[i]]));
        assert_memory_equal(fake_h2_expect(g[order[i]].peer, FAKE_H2_RST_STREAM, 1)->payload, "\0\0\0\7", 4);
        assert_int_equal(f.ends, i + 1);
        assert_int_equal(f.end_code, TORC_STATUS_UNAVAILABLE);
    }
    /* The calls that are left have waited for less than 5 s for their first message: none gives way. After 5 s the
     * oldest does. */
    struct guest refused = knock(&f, "10.0.0.1:1");
    assert_false(is_in(&refused));
    tc_loop_advance(f.loop, 5000);
    struct guest next = knock(&f, "10.0.0.1:1");
    assert_true(is_in(&next));
    assert_false(is_in(&late[0]));
    leave(&f, &refused);
    leave(&f, &next);
    for (size_t i = 0; i < 3; i++) {
        leave(&f, &g[i]);
        leave(&f, &late[i]);
    }
    fini(&f);
}

/* An address that takes all places loses them to others, and displaces no address that has fewer. */
static void addresses_share(void **state)
{
    static const char *const pairs[][2] = {{"10.0.0.1:1", "10.0.0.2:1"},
                                           {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1"},
                                           {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.2]:1"}};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(pairs); i++) {
        struct tc_server_opts opts = options();
        struct fixture f;
        struct guest many[8], more[8];
        opts.max_connections = 8;
        init(&f, &opts);
        for (size_t k = 0; k < 8; k++)
            many[k] = enter(&f, pairs[i][0]);
        struct guest other = knock(&f, pairs[i][1]); /* the least used connection, but the only one from its address */
        assert_true(is_in(&other));
        for (size_t k = 0; k < 8; k++)
            more[k] = enter(&f, pairs[i][0]);
        assert_true(is_in(&other));
        struct tc_server_counts counts;
        tc_server_counts(f.server, &counts);
        assert_int_equal(counts.open_connections, 8);
        for (size_t k = 0; k < 8; k++) {
            leave(&f, &many[k]);
            leave(&f, &more[k]);
        }
        leave(&f, &other);
        fini(&f);
    }
}

/* If all connections of an address have calls, a new one from the address is closed, although another address has an
 * unused connection. */
static void an_address_displaces_none_with_fewer(void **state)
{
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    opts.max_connections = 3;
    init(&f, &opts);
    struct guest a = enter_and_ask(&f, "10.0.0.1:1"), b = enter_and_ask(&f, "10.0.0.1:1");
    struct guest other = knock(&f, "10.0.0.2:1"), refused = knock(&f, "10.0.0.1:1");
    assert_false(is_in(&refused));
    assert_true(is_in(&a) && is_in(&b) && is_in(&other));
    leave(&f, &a);
    leave(&f, &b);
    leave(&f, &other);
    leave(&f, &refused);
    fini(&f);
}

/* One host of IPv6 has many addresses: all addresses of a /64 network count as one. */
static void addresses_of_one_network_are_one(void **state)
{
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    opts.max_connections = 2;
    init(&f, &opts);
    struct guest other = enter(&f, "[2001:db8:0:1::1]:1");
    tc_loop_advance(f.loop, 10);
    struct guest a = enter(&f, "[2001:db8::1]:1");
    struct guest b = knock(&f, "[2001:db8::2]:1");
    assert_false(is_in(&a));
    assert_true(is_in(&other));
    assert_true(is_in(&b));
    leave(&f, &a);
    leave(&f, &b);
    leave(&f, &other);
    fini(&f);
}

/* --- bytes queued for clients that do not read --- */

static void queued_bytes_are_bounded(void **state)
{
    struct tc_server_opts opts = options();
    struct fixture f;
    char *message = tc_calloc(1, 100000);
    (void)state;
    opts.max_queued_bytes = 250000;
    init(&f, &opts);
    struct guest g[4];
    struct tc_server_call *calls[4];
    for (size_t i = 0; i < 4; i++) {
        g[i] = enter_and_ask(&f, "10.0.0.1:1");
        calls[i] = f.call;
    }
    tc_server_call_send(calls[0], tc_slice_of(message, 100000));
    tc_server_call_send(calls[1], tc_slice_of(message, 100000));
    tc_loop_drain(f.loop);
    tc_loop_advance(f.loop, 4999);
    /* No call has waited for 5 s, and all hold the same: the call that exceeds the limit is reset. */
    tc_server_call_send(calls[2], tc_slice_of(message, 100000));
    tc_loop_drain(f.loop);
    assert_int_equal(f.ends, 1);
    assert_non_null(fake_h2_expect(g[2].peer, FAKE_H2_RST_STREAM, 1));
    tc_loop_advance(f.loop, 1);
    /* The first client takes its message. The second has not read for 5 s: its call is reset to make room. */
    fake_h2_window(g[0].peer, 0, 1000000);
    fake_h2_window(g[0].peer, 1, 1000000);
    tc_loop_drain(f.loop);
    assert_int_equal(tc_server_call_queued_bytes(calls[0]), 0);
    tc_server_call_send(calls[0], tc_slice_of(message, 100000));
    tc_server_call_send(calls[3], tc_slice_of(message, 100000));
    tc_loop_drain(f.loop);
    assert_int_equal(f.ends, 2);
    assert_non_null(fake_h2_expect(g[1].peer, FAKE_H2_RST_STREAM, 1));
    assert_int_equal(tc_server_call_queued_bytes(calls[3]), tc_server_message_cost(100000));
    for (size_t i = 0; i < 4; i++)
        leave(&f, &g[i]);
    tc_free(message);
    fini(&f);
}

/* Sends a message that its client does not take whole: `bytes` exceed the client's window. */
static void owe(struct tc_server_call *call, size_t bytes)
{
    char *message = tc_calloc(1, bytes);
    tc_server_call_send(call, tc_slice_of(message, bytes));
    tc_free(message);
}

/* Two clients of one address hold much, in calls that have waited for less than 5 s. Then the call of a third client,
 * the victim, exceeds the limit. The server does not reset that call. It takes the address that holds the most, of
 * that address the connection that holds the most, and of that connection the call that holds the most, and resets this
 * call. */
static void who_holds_the_most_gives_up(void **state)
{
    static const struct {
        const char *victim;         /* its address; 10.0.0.1 is that of the two that hold much */
        size_t victim_bytes;        /* what the victim's call holds before the limit is exceeded */
        size_t first[2], second[2]; /* bytes that the two calls of each connection hold */
        uint32_t stream;            /* the stream of the second connection that is reset */
    } rows[] = {
        {"10.0.0.2:1", 0, {200000, 0}, {300000, 400000}, 3},
        {"10.0.0.2:1", 0, {200000, 0}, {400000, 300000}, 1},
        {"10.0.0.2:1", 350000, {240000, 0}, {140000, 150000}, 3},
        {"10.0.0.1:1", 0, {200000, 100000}, {350000, 200000}, 1},
        {"10.0.0.1:1", 150000, {200000, 0}, {100000, 350000}, 3},
    };
    struct tc_server_opts opts = options();
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct fixture f;
        struct guest g[2];
        struct tc_server_counts counts;
        opts.max_queued_bytes = 1000000;
        init(&f, &opts);
        struct guest victim = enter_and_ask(&f, rows[i].victim);
        struct tc_server_call *call = f.call;
        if (rows[i].victim_bytes)
            owe(call, rows[i].victim_bytes);
        for (size_t k = 0; k < 2; k++) {
            g[k] = enter_and_ask(&f, "10.0.0.1:1");
            const size_t *bytes = k ? rows[i].second : rows[i].first;
            owe(f.call, bytes[0]);
            fake_h2_headers(g[k].peer, 3, REQUEST, false);
            tc_loop_drain(f.loop);
            if (bytes[1])
                owe(f.call, bytes[1]);
        }
        assert_int_equal(f.ends, 0);
        tc_server_counts(f.server, &counts);
        owe(call, opts.max_queued_bytes - counts.queued_bytes);
        tc_loop_drain(f.loop);
        assert_int_equal(f.ends, 1);
        assert_non_null(fake_h2_expect(g[1].peer, FAKE_H2_RST_STREAM, rows[i].stream));
        assert_null(fake_h2_expect(victim.peer, FAKE_H2_RST_STREAM, 1));
        for (size_t k = 0; k < 2; k++)
            leave(&f, &g[k]);
        leave(&f, &victim);
        tc_server_counts(f.server, &counts);
        assert_int_equal(counts.queued_bytes, 0);
        fini(&f);
    }
}

/* Empty messages take memory, too. */
static void queued_messages_are_bounded(void **state)
{
    enum { MANY = 100 };
    struct tc_server_opts opts = options();
    struct fixture f;
    (void)state;
    opts.max_queued_bytes = MANY * tc_server_message_cost(0);
    init(&f, &opts);
    struct guest g = enter_and_ask(&f, "10.0.0.1:1");
    for (int i = 0; i < MANY; i++)
        tc_server_call_send(f.call, tc_slice_of("", 0));
    tc_loop_drain(f.loop);
    assert_int_equal(f.ends, 0); /* all of them were taken */
    for (int i = 0; i < MANY + 1; i++)
        tc_server_call_send(f.call, tc_slice_of("", 0));
    tc_loop_drain(f.loop);
    assert_int_equal(f.ends, 1);
    leave(&f, &g);
    fini(&f);
}

static int make_certs(void **state)
{
    (void)state;
    kit_tls_pair_certs_make();
    return 0;
}

static int free_certs(void **state)
{
    (void)state;
    kit_tls_pair_certs_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_before_http2),
        cmocka_unit_test(silent_in_tls),
        cmocka_unit_test(silent_without_a_call),
        cmocka_unit_test(silent_after_refused_calls),
        cmocka_unit_test(silent_within_headers),
        cmocka_unit_test(silent_streams_stay),
        cmocka_unit_test(guarded_servers_ping),
        cmocka_unit_test(the_least_used_gives_way),
        cmocka_unit_test(calls_give_way_where_they_may),
        cmocka_unit_test(addresses_share),
        cmocka_unit_test(an_address_displaces_none_with_fewer),
        cmocka_unit_test(addresses_of_one_network_are_one),
        cmocka_unit_test(queued_bytes_are_bounded),
        cmocka_unit_test(who_holds_the_most_gives_up),
        cmocka_unit_test(queued_messages_are_bounded),
    };
    return cmocka_run_group_tests(tests, make_certs, free_certs);
}
