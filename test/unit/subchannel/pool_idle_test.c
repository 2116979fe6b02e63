/* Connections that no policy holds: how long the pool keeps them, and which close first when there are too many.
 * Connections that are attempted again: after a GOAWAY while other endpoints are silent, and to servers that end each
 * connection or send frames that move no RPC on. The end of a private channel. Keepalive: a server that refuses so many
 * pings, and one that does not answer.
 *
 * Each test calls init, which makes the loop, the pool, the config and the places, and fini, which frees them all. A
 * place owns its subchannel, its pipe and its server. The loop is manual, on virtual time, and the test's thread turns
 * it. The servers are scripted. Read first: struct place, init, hold. */
#include <stdio.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "subchannel/connection.h"
#include "subchannel/subchannel.h"
#include "subchannel/transport.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

/* An address, its server, and the policy's subchannel to it. The place owns what its members point to. */
struct place {
    struct tc_endpoint *endpoint;
    struct tc_subchannel *sc;     /* NULL: the policy holds none */
    enum torc_connectivity state; /* of `sc`, as its policy was told last; SHUTDOWN before the first state */
    struct fake_pipe *pipe;       /* of the last connection; the client has end 0; NULL: nobody has connected */
    struct fake_h2 *peer;         /* the scripted server at end 1 of `pipe`; NULL without `pipe` */
    unsigned attempts;            /* to connect, counted when they are granted */
};

#define MAX_PLACES 1100

static struct place places[MAX_PLACES];
static size_t n_places;
static struct tc_loop *loop;
static struct tc_pool *pool;
static struct tc_conn_config *config;
static size_t silent_from = SIZE_MAX; /* from this place on, servers accept and stay silent */

/* An attempt to connect, which its task grants in the loop's next turn. */
struct tc_connect {
    struct tc_task task;
    struct place *place;
    tc_connect_fn fn;
    void *arg;
};

/* Returns the place of the address, borrowed. Fails the test if there is none. */
static struct place *place_of(const struct tc_addr *addr)
{
    for (size_t i = 0; i < n_places; i++)
        if (tc_addr_eq(&places[i].endpoint->addrs[0], addr))
            return &places[i];
    fail();
    return NULL;
}

static void drop_peer(struct place *p)
{
    if (!p->pipe)
        return;
    fake_h2_free(p->peer);
    fake_pipe_free(p->pipe);
    p->pipe = NULL;
    p->peer = NULL;
}

static void on_granted(struct tc_task *task)
{
    struct tc_connect *c = TC_CONTAINER_OF(task, struct tc_connect, task);
    struct place *p = c->place;
    drop_peer(p);
    p->pipe = fake_pipe_new(loop);
    p->peer = fake_h2_new(p->pipe, 1, true);
    p->attempts++;
    c->fn(c->arg, fake_pipe_end(p->pipe, 0), NULL);
    if ((size_t)(p - places) < silent_from)
        fake_h2_start(p->peer);
    tc_free(c);
}

static struct tc_connect *start(struct tc_loop *l, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)opts;
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->place = place_of(addr);
    c->fn = fn;
    c->arg = arg;
    tc_task_init(&c->task, on_granted);
    tc_loop_defer(l, &c->task);
    return c;
}

static void cancel(struct tc_connect *c)
{
    tc_task_cancel(&c->task);
    tc_free(c);
}

/* Makes the loop, the config, n places, and a pool that keeps up to max_idle connections for idle_ms each. */
static void init(uint64_t idle_ms, uint32_t max_idle, size_t n)
{
    static const struct tc_connector connector = {.start = start, .cancel = cancel};
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    pool = tc_pool_new(loop, idle_ms, max_idle);
    tc_pool_set_connector(pool, &connector);
    config = TC_NEW(struct tc_conn_config);
    tc_ref_init(&config->ref);
    config->creds = torc_credentials_insecure();
    config->server_name = tc_rstr_str("name");
    config->backoff = tc_backoff_default;
    config->connect_timeout_ms = 20000;
    config->keepalive_timeout_ms = 20000;
    config->max_header_list_bytes = 16384;
    config->max_request_header_bytes = 1048576;
    for (size_t i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof(text), "10.0.%zu.%zu:80", i / 250, i % 250);
        struct tc_addr addr;
        assert_int_equal(tc_addr_parse(&addr, tc_slice_str(text)), 0);
        places[i] = (struct place){.endpoint = tc_endpoint_new(&addr, 1), .state = TORC_CONNECTIVITY_SHUTDOWN};
        tc_addr_fini(&addr);
    }
    n_places = n;
}

static void fini(void)
{
    tc_pool_shutdown(pool);
    for (size_t i = 0; i < n_places; i++)
        if (places[i].sc)
            tc_subchannel_release(places[i].sc);
    tc_loop_drain(loop);
    for (size_t i = 0; i < n_places; i++) {
        drop_peer(&places[i]);
        tc_endpoint_unref(places[i].endpoint);
    }
    tc_conn_config_unref(config);
    tc_loop_drain(loop);
    tc_loop_free(loop);
    tc_pool_free(pool);
}

static void on_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    (void)status;
    ((struct place *)arg)->state = state;
}

/* Makes the subchannel of place i, and asks it to connect. */
static void connect_place(size_t i)
{
    struct place *p = &places[i];
    assert_null(p->sc);
    p->sc = tc_subchannel_new(pool, config, p->endpoint, &p->endpoint->addrs[0], on_state, p, NULL, NULL);
    tc_subchannel_connect(p->sc);
}

/* Makes the subchannel of place i, which must be READY once the loop is drained. */
static void hold(size_t i)
{
    const struct place *p = &places[i];
    connect_place(i);
    tc_loop_drain(loop);
    assert_int_equal(p->state, TORC_CONNECTIVITY_READY);
    assert_non_null(tc_subchannel_transport(p->sc));
}

static void give_up(size_t i)
{
    tc_subchannel_release(places[i].sc);
    places[i].sc = NULL;
}

/* Drains the loop. Returns true if place i has had a connection, and the client has not closed the last one. */
static bool is_open(size_t i)
{
    tc_loop_drain(loop);
    return places[i].pipe && !fake_pipe_closed(places[i].pipe, 0);
}

static void test_kept_for_a_while(void **state)
{
    (void)state;
    init(30000, 1000, 2);
    hold(0);
    hold(1);
    give_up(0);
    assert_int_equal(tc_pool_idle_count(pool), 1);
    tc_loop_advance(loop, 29000);
    /* The connection is used again, and its time starts over. */
    hold(0);
    assert_int_equal(tc_pool_idle_count(pool), 0);
    assert_int_equal(places[0].attempts, 1);
    tc_loop_advance(loop, 100000);
    assert_true(is_open(0));
    give_up(0);
    tc_loop_advance(loop, 10000);
    give_up(1);
    tc_loop_advance(loop, 19999);
    assert_true(is_open(0));
    tc_loop_advance(loop, 2);
    assert_false(is_open(0));
    assert_true(is_open(1));
    tc_loop_advance(loop, 10000);
    assert_false(is_open(1));
    assert_int_equal(tc_pool_count(pool), 0);
    hold(0);
    assert_int_equal(places[0].attempts, 2);
    fini();
}

/* As many silent endpoints connect as the queue lets connect at a time (subchannel/connect_queue.c). An endpoint that
 * was connected before does not wait for them. */
static void test_connected_again_beside_silent_ones(void **state)
{
    (void)state;
    enum { MOST = 80, N = 120 };
    struct rlimit before, few;
    init(30000, 1000, N);
    hold(0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = MOST * 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    silent_from = 1;
    for (size_t i = 1; i < N; i++)
        connect_place(i);
    tc_loop_drain(loop);
    unsigned under_way = 0;
    for (size_t i = 1; i < N; i++)
        under_way += places[i].attempts;
    assert_int_equal(under_way, MOST);
    fake_h2_goaway(places[0].peer, 0, 0, "");
    tc_loop_drain(loop);
    assert_int_equal(places[0].state, TORC_CONNECTIVITY_IDLE);
    tc_subchannel_connect(places[0].sc);
    tc_loop_drain(loop);
    assert_int_equal(places[0].state, TORC_CONNECTIVITY_READY);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    silent_from = SIZE_MAX;
    fini();
}

/* The pool drops a kept connection as soon as it ends, and the next subchannel makes another connection. */
static void test_lost_while_kept(void **state)
{
    (void)state;
    init(30000, 1000, 1);
    hold(0);
    give_up(0);
    fake_h2_goaway(places[0].peer, 0, 0, "");
    tc_loop_drain(loop);
    assert_int_equal(tc_pool_count(pool), 0);
    hold(0);
    assert_int_equal(places[0].attempts, 2);
    fini();
}

/* A server that ends each connection before an RPC: after the first connection 32 more are made at once, then the
 * backoff holds. The policy releases its subchannel after each of them, and makes another one. */
static void test_ended_unused(void **state)
{
    (void)state;
    init(30000, 1000, 1);
    for (unsigned attempt = 1; attempt <= 33; attempt++) {
        hold(0);
        assert_int_equal(places[0].attempts, attempt);
        fake_h2_goaway(places[0].peer, 0, 0, "not here");
        tc_loop_drain(loop);
        assert_int_equal(places[0].state, TORC_CONNECTIVITY_IDLE);
        give_up(0);
    }
    struct place *p = &places[0];
    p->sc = tc_subchannel_new(pool, config, p->endpoint, &p->endpoint->addrs[0], on_state, p, NULL, NULL);
    tc_subchannel_connect(p->sc);
    tc_loop_drain(loop);
    assert_int_equal(p->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(p->attempts, 33);
    tc_loop_advance(loop, 2000);
    assert_int_equal(p->state, TORC_CONNECTIVITY_IDLE);
    tc_subchannel_connect(p->sc);
    tc_loop_drain(loop);
    assert_int_equal(p->state, TORC_CONNECTIVITY_READY);
    assert_int_equal(p->attempts, 34);
    /* The connection lasts as long as the initial backoff: its loss does not count, and resets the count. */
    tc_loop_advance(loop, 1000);
    for (unsigned attempt = 35; attempt <= 60; attempt++) {
        fake_h2_goaway(p->peer, 0, 0, "later");
        tc_loop_drain(loop);
        tc_subchannel_connect(p->sc);
        tc_loop_drain(loop);
        assert_int_equal(p->state, TORC_CONNECTIVITY_READY);
        assert_int_equal(p->attempts, attempt);
    }
    fini();
}

/* Stores the status code of the request in the int at `arg`. */
static void on_answer(void *arg, const struct tc_h2_outcome *outcome)
{
    *(int *)arg = outcome->status.code;
}

/* How the server treats a connection that has one request. `takes`: it sends no grpc-status; `answers`: it does. */
enum takes { CLOSES, RESETS, GOES_AWAY, GOES_AWAY_AND_CLOSES, ANSWERS_HEADERS, N_TAKES };
enum answers { ANSWERS_AND_CLOSES = N_TAKES, GOES_AWAY_AND_ANSWERS, ANSWERS_AND_GOES_AWAY, N_WAYS };

/* The scripted server takes the request on stream 1, and treats the connection as `how` says. At the end the server
 * closes its end of the pipe, except for ANSWERS_AND_GOES_AWAY. */
static void serve_one(struct place *p, int how)
{
    static const char ok[] = ":status: 200\ncontent-type: application/grpc\n";
    static const char trailers[] = "grpc-status: 5\n";
    assert_non_null(fake_h2_expect(p->peer, FAKE_H2_HEADERS, 1));
    if (how == RESETS)
        fake_h2_rst(p->peer, 1, 2);
    if (how == GOES_AWAY)
        fake_h2_goaway(p->peer, 0, 0, "");
    if (how == GOES_AWAY_AND_CLOSES || how == GOES_AWAY_AND_ANSWERS)
        fake_h2_goaway(p->peer, 1, 0, "");
    if (how == ANSWERS_HEADERS || how >= ANSWERS_AND_CLOSES)
        fake_h2_headers(p->peer, 1, ok, false);
    tc_loop_drain(loop);
    if (how >= ANSWERS_AND_CLOSES)
        fake_h2_headers(p->peer, 1, trailers, true);
    if (how == ANSWERS_AND_GOES_AWAY)
        fake_h2_goaway(p->peer, 1, 0, "");
    else
        fake_pipe_finish(p->pipe, 1);
    tc_loop_drain(loop);
}

/* A server that takes each request and ends the connection without a status counts as one that ends connections unused:
 * after the first connection 32 more are made at once, then the backoff holds. A server that answers with a status may
 * end any number of connections (200 here). kept: the policy keeps its subchannel. */
static void test_ended_with_a_request(void **state)
{
    static const struct tc_h2_client_events events = {.on_done = on_answer};
    static const struct tc_h2_request request = {.path = {"/a/b", 4}, .authority = {"a", 1}};
    (void)state;
    for (int how = 0; how < N_WAYS; how++) {
        for (int kept = 0; kept < 2; kept++) {
            unsigned n = how < N_TAKES ? 33 : 200;
            init(30000, 1000, 1);
            for (unsigned attempt = 1; attempt <= n; attempt++) {
                struct place *p = &places[0];
                struct tc_arena arena;
                int error, code = -1;
                if (p->sc)
                    tc_subchannel_connect(p->sc);
                else
                    connect_place(0);
                tc_loop_drain(loop);
                if (p->state != TORC_CONNECTIVITY_READY || p->attempts != attempt)
                    fail_msg("way %d, kept %d: state %d at attempt %u", how, kept, p->state, attempt);
                tc_arena_init(&arena, 0, 0);
                assert_non_null(
                    tc_transport_open(tc_subchannel_transport(p->sc), &request, &arena, &events, &code, &error));
                tc_loop_drain(loop);
                serve_one(p, how);
                assert_int_equal(code, how < N_TAKES ? TC_MAX(code, 1) : TORC_STATUS_NOT_FOUND);
                assert_int_equal(p->state, TORC_CONNECTIVITY_IDLE);
                tc_arena_fini(&arena);
                if (!kept)
                    give_up(0);
            }
            if (kept)
                tc_subchannel_connect(places[0].sc);
            else
                connect_place(0);
            tc_loop_drain(loop);
            assert_int_equal(places[0].state,
                             how < N_TAKES ? TORC_CONNECTIVITY_TRANSIENT_FAILURE : TORC_CONNECTIVITY_READY);
            assert_int_equal(places[0].attempts, how < N_TAKES ? n : n + 1);
            fini();
        }
    }
}

static void put_unknown_frames(size_t i, unsigned n)
{
    fake_h2_hold(places[i].peer, true);
    while (n-- > 0)
        fake_h2_frame(places[i].peer, 0xfa, 0, 0, "grease", 6);
    fake_h2_hold(places[i].peer, false);
}

/* A server sends frames of an unknown type, which move no RPC on: more than the allowance of two seconds, so the client
 * ends the connection. The next connection begins with the part of the allowance that has come back since. kept: the
 * policy keeps its subchannel. */
static void test_next_connection_pays(void **state)
{
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        for (unsigned wait_ms = 10; wait_ms <= 2000; wait_ms += 1990) {
            init(30000, 1000, 1);
            hold(0);
            put_unknown_frames(0, 20001);
            assert_false(is_open(0));
            if (!kept)
                give_up(0);
            tc_loop_advance(loop, wait_ms);
            if (kept)
                tc_subchannel_connect(places[0].sc);
            else
                connect_place(0);
            tc_loop_drain(loop);
            assert_int_equal(places[0].state, TORC_CONNECTIVITY_READY);
            assert_int_equal(places[0].attempts, 2);
            put_unknown_frames(0, 10000);
            assert_int_equal(is_open(0), wait_ms == 2000);
            fini();
        }
    }
}

static void ask_nothing(const struct tc_link *watches, struct tc_buf *out)
{
    (void)watches, (void)out;
}

static void ignore_message(struct tc_side_watch *w, struct tc_slice message)
{
    (void)w, (void)message;
}

/* The connection has a side stream instead of a request, and ends in each of the ways of serve_one. None of the ways
 * counts as an answer: after the first connection 32 more are made at once, then the backoff holds. */
static void test_ended_with_a_side_stream(void **state)
{
    static const struct tc_side_kind kind = {"/test.Side/Watch", "nothing", 100, ask_nothing};
    (void)state;
    for (int how = 0; how < N_WAYS; how++) {
        struct tc_side_watch watch = {.kind = &kind, .on_message = ignore_message};
        init(30000, 1000, 1);
        connect_place(0);
        tc_subchannel_watch_side(places[0].sc, &watch);
        for (unsigned attempt = 1; attempt <= 33; attempt++) {
            tc_subchannel_connect(places[0].sc);
            tc_loop_drain(loop);
            if (places[0].state != TORC_CONNECTIVITY_READY || places[0].attempts != attempt)
                fail_msg("way %d: state %d at attempt %u", how, places[0].state, attempt);
            serve_one(&places[0], how);
            assert_int_equal(places[0].state, TORC_CONNECTIVITY_IDLE);
        }
        tc_subchannel_connect(places[0].sc);
        tc_loop_drain(loop);
        assert_int_equal(places[0].state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
        tc_side_watch_end(&watch);
        fini();
    }
}

/* The connection of a private channel closes with the channel (A71), whether the policy releases the connection before
 * or after the channel's end. The connections of a channel that is not private stay. */
static void test_private_channels(void **state)
{
    (void)state;
    for (int is_private = 0; is_private < 2; is_private++) {
        init(30000, 1000, 2);
        config->is_private = is_private;
        hold(0);
        hold(1);
        give_up(0);
        assert_int_equal(tc_pool_idle_count(pool), 1);
        tc_pool_channel_gone(pool, config);
        tc_loop_drain(loop);
        assert_int_equal(tc_pool_idle_count(pool), is_private ? 0 : 1);
        give_up(1);
        tc_loop_drain(loop);
        assert_int_equal(tc_pool_count(pool), is_private ? 0 : 2);
        fini();
    }
}

static void test_cap(void **state)
{
    (void)state;
    const size_t n = 1050, cap = 1000;
    init(30000, (uint32_t)cap, n);
    for (size_t i = 0; i < n; i++)
        hold(i);
    assert_int_equal(tc_pool_count(pool), n);
    for (size_t i = 0; i < n; i++) {
        give_up(i);
        assert_int_equal(tc_pool_idle_count(pool), i + 1 < cap ? i + 1 : cap);
    }
    for (size_t i = 0; i < n; i++)
        assert_true(is_open(i) == (i >= n - cap));
    tc_loop_advance(loop, 30001);
    assert_int_equal(tc_pool_count(pool), 0);
    fini();
}

static void test_none_kept(void **state)
{
    (void)state;
    init(30000, 0, 1);
    hold(0);
    give_up(0);
    assert_false(is_open(0));
    assert_int_equal(tc_pool_count(pool), 0);
    fini();
}

/* Connections that are released during an update close before older connections that may be used again. */
static void test_left_close_first(void **state)
{
    (void)state;
    init(30000, 3, 6);
    for (size_t i = 0; i < 6; i++)
        hold(i);
    give_up(0);
    give_up(1);
    tc_pool_set_updating(pool, true);
    give_up(2);
    tc_pool_set_updating(pool, false);
    tc_loop_advance(loop, 1000);
    give_up(3);
    assert_true(is_open(0) && is_open(1) && is_open(3));
    assert_false(is_open(2));
    /* The connection that is released last may be the first to close. */
    tc_pool_set_updating(pool, true);
    give_up(4);
    tc_pool_set_updating(pool, false);
    assert_false(is_open(4));
    give_up(5);
    assert_false(is_open(0));
    assert_true(is_open(1) && is_open(3) && is_open(5));
    /* Place 2 lost a connection that was released during an update. Its new connection counts as any other. */
    hold(2);
    give_up(2);
    assert_false(is_open(1));
    assert_true(is_open(2));
    /* All idle connections close when their time is over, whenever they were released. */
    tc_pool_set_updating(pool, true);
    hold(3);
    give_up(3);
    tc_pool_set_updating(pool, false);
    assert_int_equal(tc_pool_idle_count(pool), 3);
    tc_loop_advance(loop, 30001);
    assert_int_equal(tc_pool_count(pool), 0);
    fini();
}

/* Waits for the next keepalive ping, in steps of a second. Returns how many ms passed, rounded up to a step. Fails if
 * no ping has come a step after at_most_ms. Takes all frames that have come. */
static uint64_t first_ping_ms(struct place *p, uint64_t at_most_ms)
{
    uint64_t waited = 0;
    while (fake_h2_count(p->peer, FAKE_H2_PING, 0) == 0) {
        assert_true(waited <= at_most_ms);
        tc_loop_advance(loop, 1000);
        waited += 1000;
    }
    return waited;
}

/* A8: each GOAWAY with too_many_pings doubles the keepalive time of the channel's next connections, to any address. */
static void test_too_many_pings(void **state)
{
    (void)state;
    init(30000, 1000, 3);
    config->keepalive_time_ms = 10000;
    config->keepalive_without_calls = true;
    uint64_t expected = 10000;
    for (unsigned round = 0; round < 4; round++, expected *= 2) {
        if (round)
            tc_subchannel_connect(places[0].sc);
        else
            hold(0);
        tc_loop_drain(loop);
        assert_int_equal(places[0].state, TORC_CONNECTIVITY_READY);
        assert_int_equal(places[0].attempts, round + 1);
        assert_in_range(first_ping_ms(&places[0], 2 * expected), expected, expected + 1000);
        fake_h2_goaway(places[0].peer, 0, 11, "too_many_pings");
        tc_loop_drain(loop);
        assert_int_equal(places[0].state, TORC_CONNECTIVITY_IDLE);
    }
    /* ENHANCE_YOUR_CALM with another text does not count. */
    tc_subchannel_connect(places[0].sc);
    tc_loop_drain(loop);
    fake_h2_goaway(places[0].peer, 0, 11, "calm down");
    tc_loop_drain(loop);
    tc_subchannel_connect(places[0].sc);
    tc_loop_drain(loop);
    assert_in_range(first_ping_ms(&places[0], 2 * expected), expected, expected + 1000);
    hold(1);
    assert_in_range(first_ping_ms(&places[1], 2 * expected), expected, expected + 1000);
    /* The channel's connections that a cluster secures have the doubled time, too. Another channel has its own time. */
    struct tc_conn_config *own = config;
    config = tc_conn_config_secured(own, own->creds, own->server_name);
    give_up(1);
    fake_h2_goaway(places[1].peer, 0, 0, "");
    tc_loop_drain(loop);
    hold(1);
    tc_loop_drain(loop);
    assert_int_equal(places[1].attempts, 2);
    assert_in_range(first_ping_ms(&places[1], 2 * expected), expected, expected + 1000);
    tc_conn_config_unref(config->channel);
    config->channel = NULL; /* now of a second channel */
    config->keepalive_raised_ms = 0;
    hold(2);
    assert_in_range(first_ping_ms(&places[2], 20000), 10000, 11000);
    tc_conn_config_unref(own);
    fini();
}

/* Connections that began with the same keepalive time double it once together. */
static void test_too_many_pings_at_once(void **state)
{
    (void)state;
    enum { N = 100 };
    init(30000, 1000, N + 1);
    config->keepalive_time_ms = 10000;
    config->keepalive_without_calls = true;
    for (size_t i = 0; i < N; i++)
        hold(i);
    tc_loop_drain(loop);
    for (size_t i = 0; i < N; i++)
        fake_h2_goaway(places[i].peer, 0, 11, "too_many_pings");
    tc_loop_drain(loop);
    assert_int_equal(places[N - 1].state, TORC_CONNECTIVITY_IDLE);
    hold(N);
    assert_in_range(first_ping_ms(&places[N], 40000), 20000, 21000);
    fini();
}

/* The keepalive time is raised for the channel that uses the connection, although another channel has made it. */
static void test_too_many_pings_of_a_shared_connection(void **state)
{
    (void)state;
    init(30000, 1000, 2);
    config->keepalive_time_ms = 10000;
    config->keepalive_without_calls = true;
    struct tc_conn_config *maker = config;
    hold(0);
    tc_loop_drain(loop);
    give_up(0);
    config = tc_conn_config_secured(maker, maker->creds, maker->server_name);
    tc_conn_config_unref(config->channel);
    config->channel = NULL; /* now of a second channel */
    tc_conn_config_unref(maker);
    hold(0);
    assert_int_equal(places[0].attempts, 1);
    fake_h2_goaway(places[0].peer, 0, 11, "too_many_pings");
    tc_loop_drain(loop);
    hold(1);
    assert_in_range(first_ping_ms(&places[1], 40000), 20000, 21000);
    fini();
}

/* No answer to a ping: the connection is dead, and its policy is notified. */
static void test_keepalive_timeout(void **state)
{
    (void)state;
    init(30000, 1000, 1);
    config->keepalive_time_ms = 10000;
    config->keepalive_without_calls = true;
    hold(0);
    first_ping_ms(&places[0], 11000);
    tc_loop_advance(loop, 18000);
    assert_int_equal(places[0].state, TORC_CONNECTIVITY_READY);
    tc_loop_advance(loop, 3000);
    assert_int_equal(places[0].state, TORC_CONNECTIVITY_IDLE);
    assert_false(is_open(0));
    fini();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_for_a_while),
        cmocka_unit_test(test_lost_while_kept),
        cmocka_unit_test(test_ended_unused),
        cmocka_unit_test(test_ended_with_a_request),
        cmocka_unit_test(test_next_connection_pays),
        cmocka_unit_test(test_ended_with_a_side_stream),
        cmocka_unit_test(test_private_channels),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_none_kept),
        cmocka_unit_test(test_left_close_first),
        cmocka_unit_test(test_too_many_pings),
        cmocka_unit_test(test_too_many_pings_at_once),
        cmocka_unit_test(test_too_many_pings_of_a_shared_connection),
        cmocka_unit_test(test_keepalive_timeout),
        cmocka_unit_test(test_connected_again_beside_silent_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
