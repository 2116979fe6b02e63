/* Several connections of one subchannel (A105), against peers that the test drives frame by frame.
 *
 * The connector allows one open attempt at a time, until the test grants or refuses it, or the pool cancels it. Each
 * granted attempt makes the next peer, with a limit of streams. RPCs start on subchannel 0, in the order of `rpcs`; a
 * test then asserts by AT or count_at where the RPCs are: on which transport, in the queue (WAITS), sent back to their
 * pick (SENT_BACK), or ended (NOBODY). on_capacity asserts in each test that the RPCs are served in the order in which
 * they started.
 *
 * setup and teardown own all that the static variables point to, `transports` excepted. The loop is manual, on virtual
 * time, and the test's thread turns it. Read first: grant, rpc_open, on_capacity. */
#include "subchannel/connection.h"
#include "subchannel/subchannel.h"

#include "base/mem.h"
#include "creds/handshake.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { PEERS = 12, RPCS = 1000, HANDLES = 3, NOBODY = -1, WAITS = -2, SENT_BACK = -3 };

/* An attempt to connect, which the test grants or refuses. */
struct tc_connect {
    tc_connect_fn fn;
    void *arg;
};

/* An RPC, which opens its stream and waits for it as channel/attempt.c does. */
struct rpc {
    struct tc_capacity_wait wait;
    struct tc_arena arena;
    struct tc_h2_stream *stream;
    int at; /* its stream's transport: an index in `transports`; or NOBODY, WAITS, SENT_BACK */
};

static struct tc_loop *loop;
static struct tc_pool *pool;
static struct tc_conn_config *config;
static struct tc_endpoint *endpoint;
static struct tc_connect *attempt; /* the one that is open; NULL: none */
static unsigned attempts;
static struct fake_pipe *pipes[PEERS];
static struct fake_h2 *peers[PEERS];
static struct tc_transport *transports[PEERS]; /* in the order of their first RPCs; only compared */
static int n_peers;
static struct tc_subchannel *subchannels[HANDLES];
static enum torc_connectivity states[HANDLES];
static struct tc_buf told; /* the kinds that the observer of subchannel 0 was told, each behind a blank */
static struct tc_scaling scalings[HANDLES];
static struct rpc rpcs[RPCS];
static size_t n_rpcs;
static unsigned served;    /* number of waits that ended with a transport */
static size_t served_last; /* index of the RPC that was served last */
static torc_credentials creds;
static uint64_t epoch;

static void run(uint64_t ms)
{
    tc_loop_advance(loop, ms);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 0);
}

static struct tc_connect *start(struct tc_loop *l, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)l, (void)addr, (void)opts;
    assert_null(attempt); /* one at a time */
    attempt = TC_NEW(struct tc_connect);
    *attempt = (struct tc_connect){fn, arg};
    attempts++;
    return attempt;
}

static void cancel(struct tc_connect *c)
{
    assert_ptr_equal(c, attempt);
    attempt = NULL;
    tc_free(c);
}

/* Ends the open attempt with this connection, which the caller's pipe owns; NULL: refuses it. */
static void end_attempt(struct tc_bytestream *bs)
{
    struct tc_connect *c = attempt;
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "refused by the test");
    assert_non_null(c);
    attempt = NULL;
    c->fn(c->arg, bs, bs ? NULL : &why);
    tc_status_fini(&why);
    tc_free(c);
    run(1);
}

static void refuse(void)
{
    end_attempt(NULL);
}

/* Grants the open attempt: the next peer accepts it, and allows so many streams. */
static void grant(uint32_t streams)
{
    int i = n_peers++;
    pipes[i] = fake_pipe_new(loop);
    peers[i] = fake_h2_new(pipes[i], 1, true);
    end_attempt(fake_pipe_end(pipes[i], 0));
    fake_h2_setting(peers[i], 3, streams);
    run(1);
}

static void allow(int i, uint32_t streams)
{
    fake_h2_setting(peers[i], 3, streams);
    run(1);
}

static void on_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    (void)status;
    *(enum torc_connectivity *)arg = state;
}

static void on_event(void *arg, const char *kind, struct tc_rstr *address, const char *reason)
{
    (void)arg, (void)address, (void)reason;
    tc_buf_printf(&told, " %s", kind);
}

static struct tc_creds_handshake *creds_start(torc_credentials *c, struct tc_loop *l, struct tc_bytestream *bs,
                                              const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg)
{
    (void)c, (void)peer;
    return tc_creds_handshake_none(l, bs, fn, arg);
}

static uint64_t creds_epoch(torc_credentials *c)
{
    (void)c;
    return epoch;
}

static void creds_free(torc_credentials *c)
{
    tc_rstr_unref(c->key);
}

static const struct tc_creds_ops creds_ops = {.type = "test",
                                              .start = creds_start,
                                              .cancel = tc_creds_handshake_cancel,
                                              .epoch = creds_epoch,
                                              .free = creds_free};

static int setup(void **state)
{
    static const struct tc_connector connector = {.start = start, .cancel = cancel};
    (void)state;
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    pool = tc_pool_new(loop, 30000, 1000);
    tc_pool_set_connector(pool, &connector);
    tc_ref_init(&creds.ref);
    creds.ops = &creds_ops;
    creds.scheme = "https";
    creds.key = tc_rstr_str("test");
    creds.refresh_ns = 400 * TC_NS_PER_S;
    epoch = 1;
    config = TC_NEW(struct tc_conn_config);
    tc_ref_init(&config->ref);
    config->creds = &creds;
    config->server_name = tc_rstr_str("name");
    config->backoff = tc_backoff_default;
    config->connect_timeout_ms = 20000;
    config->max_header_list_bytes = 16384;
    config->max_request_header_bytes = 1048576;
    config->max_connections = 10;
    struct tc_addr addr;
    tc_addr_parse(&addr, tc_slice_str("10.0.0.1:80"));
    endpoint = tc_endpoint_new(&addr, 1);
    tc_addr_fini(&addr);
    attempts = served = 0;
    n_rpcs = 0;
    n_peers = 0;
    return 0;
}

static void rpc_end(struct rpc *r)
{
    if (r->stream)
        tc_h2_stream_cancel(r->stream, TC_H2_CANCEL);
    r->stream = NULL;
    tc_list_remove(&r->wait.link);
    r->at = NOBODY;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_rpcs; i++)
        rpc_end(&rpcs[i]);
    for (int i = 0; i < HANDLES; i++) {
        if (subchannels[i])
            tc_subchannel_release(subchannels[i]);
        subchannels[i] = NULL;
    }
    tc_pool_shutdown(pool);
    run(1);
    for (size_t i = 0; i < n_rpcs; i++)
        tc_arena_fini(&rpcs[i].arena);
    tc_endpoint_unref(endpoint);
    tc_conn_config_unref(config);
    for (int i = 0; i < n_peers; i++) {
        fake_h2_free(peers[i]);
        fake_pipe_free(pipes[i]);
        transports[i] = NULL;
    }
    tc_loop_free(loop);
    tc_pool_free(pool);
    tc_buf_fini(&told);
    assert_null(attempt);
    return 0;
}

/* Makes subchannel i, whose channel or cluster allows max_connections, and connects it. */
static void subchannel_make(int i, uint32_t max_connections)
{
    subchannels[i] = tc_subchannel_new(pool, config, endpoint, &endpoint->addrs[0], on_state, &states[i],
                                       i == 0 ? on_event : NULL, NULL);
    tc_scaling_init(&scalings[i]);
    tc_scaling_set(&scalings[i], max_connections);
    tc_scaling_add(&scalings[i], subchannels[i]);
    tc_subchannel_connect(subchannels[i]);
}

/* Makes subchannel 0 with its first connection, on which the server allows so many streams. */
static void open_first(uint32_t max_connections, uint32_t streams)
{
    subchannel_make(0, max_connections);
    grant(streams);
    assert_int_equal(states[0], TORC_CONNECTIVITY_READY);
    assert_int_equal(attempts, 1);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    (void)outcome;
    ((struct rpc *)arg)->stream = NULL;
    ((struct rpc *)arg)->at = NOBODY;
}

/* Opens the RPC's stream on the transport, or has the RPC wait for a stream of the transport's group. */
static void rpc_open(struct rpc *r, struct tc_transport *t)
{
    static const struct tc_h2_client_events events = {.on_done = on_done};
    static const struct tc_h2_request request = {.path = {"/a/b", 4}, .authority = {"orders", 6}};
    int error = 0;
    r->stream = tc_transport_open(t, &request, &r->arena, &events, r, &error);
    if (!r->stream) {
        assert_int_equal(error, TORC_EAGAIN);
        r->at = WAITS;
        tc_transport_wait(t, &r->wait);
        return;
    }
    for (r->at = 0; transports[r->at] && transports[r->at] != t; r->at++)
        assert_in_range(r->at, 0, PEERS - 2);
    transports[r->at] = t;
}

static void on_capacity(struct tc_capacity_wait *wait, struct tc_transport *t)
{
    struct rpc *r = TC_CONTAINER_OF(wait, struct rpc, wait);
    if (!t) {
        r->at = SENT_BACK;
        return;
    }
    if (served++)
        assert_true((size_t)(r - rpcs) > served_last); /* first come, first served */
    served_last = (size_t)(r - rpcs);
    rpc_open(r, t);
}

/* Starts an RPC on the first subchannel. Returns the RPC, an element of `rpcs`; it stays SENT_BACK if the subchannel
 * has no transport. */
static struct rpc *rpc_start(void)
{
    struct rpc *r = &rpcs[n_rpcs++];
    *r = (struct rpc){.wait = {.fn = on_capacity}, .at = SENT_BACK};
    tc_list_init(&r->wait.link);
    tc_arena_init(&r->arena, 0, 0);
    struct tc_transport *t = tc_subchannel_transport(subchannels[0]);
    if (t)
        rpc_open(r, t);
    return r;
}

static void rpc_start_many(size_t n)
{
    while (n--)
        rpc_start();
    run(1);
}

static size_t count_at(int at)
{
    size_t n = 0;
    for (size_t i = 0; i < n_rpcs; i++)
        n += rpcs[i].at == at;
    return n;
}

/* Runs for 1 ms, then asserts `at` of all RPCs, in the order in which they started. */
#define AT(...) assert_at((int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void assert_at(const int *at, size_t n)
{
    run(1);
    assert_int_equal(n_rpcs, n);
    for (size_t i = 0; i < n; i++)
        if (rpcs[i].at != at[i])
            fail_msg("RPC %zu at %d instead of %d", i, rpcs[i].at, at[i]);
}

static void the_rpc_beyond_the_limit_gets_another_connection(void **state)
{
    TC_CASE(CS01);
    (void)state;
    open_first(2, 3);
    rpc_start_many(3);
    assert_null(attempt);
    rpc_start_many(1);
    AT(0, 0, 0, WAITS);
    grant(3);
    AT(0, 0, 0, 1);
    /* An RPC takes the oldest connection with room. */
    rpc_end(&rpcs[1]);
    run(1);
    rpc_start_many(4);
    AT(0, NOBODY, 0, 1, 0, 1, 1, WAITS);
    assert_int_equal(attempts, 2); /* two connections are the maximum */
    rpc_end(&rpcs[3]);
    AT(0, NOBODY, 0, NOBODY, 0, 1, 1, 1);
    assert_int_equal(states[0], TORC_CONNECTIVITY_READY);
}

static void with_one_connection_rpcs_wait(void **state)
{
    TC_CASE(CS02);
    (void)state;
    open_first(1, 1);
    rpc_start_many(3);
    run(60000);
    AT(0, WAITS, WAITS);
    rpc_end(&rpcs[0]);
    AT(NOBODY, 0, WAITS);
    assert_int_equal(attempts, 1);
    /* An RPC that is cancelled leaves the queue. */
    rpc_end(&rpcs[2]);
    rpc_start_many(1);
    rpc_end(&rpcs[1]);
    AT(NOBODY, NOBODY, NOBODY, 0);
}

static void an_attempt_that_failed_is_followed_by_the_backoff(void **state)
{
    TC_CASE(CS03);
    (void)state;
    open_first(3, 1);
    rpc_start_many(2);
    double delay_ms = 1000;
    for (unsigned round = 2; round < 6; round++) {
        assert_int_equal(attempts, round);
        refuse();
        assert_int_equal(states[0], TORC_CONNECTIVITY_READY);
        rpc_start_many(1); /* a new RPC does not end the backoff */
        double waited_ms = 2;
        for (; !attempt; waited_ms++)
            run(1);
        assert_true(waited_ms >= delay_ms * 0.8 - 2 && waited_ms <= delay_ms * 1.2 + 2);
        delay_ms *= 1.6;
    }
    /* An attempt that succeeds resets the backoff: the next delay is the first one again. */
    grant(1);
    AT(0, 1, WAITS, WAITS, WAITS, WAITS);
    assert_int_equal(attempts, 7);
    refuse();
    run(750);
    assert_null(attempt);
    run(500);
    assert_int_equal(attempts, 8);
    refuse();
    tc_subchannel_reset_backoff(subchannels[0]);
    assert_int_equal(attempts, 9);
    grant(0); /* has no room, but three connections are the maximum */
    run(60000);
    assert_int_equal(attempts, 9);
    AT(0, 1, WAITS, WAITS, WAITS, WAITS);
    allow(2, 3);
    AT(0, 1, 2, 2, 2, WAITS);
}

static void the_maximum_changes(void **state)
{
    TC_CASE(CS04);
    (void)state;
    open_first(1, 1);
    rpc_start_many(4);
    assert_null(attempt);
    tc_scaling_set(&scalings[0], 3);
    grant(1);
    grant(1);
    AT(0, 1, 2, WAITS);
    assert_null(attempt);
    tc_scaling_set(&scalings[0], 1);
    run(60000);
    for (int i = 0; i < 3; i++)
        assert_false(fake_pipe_closed(pipes[i], 0));
    rpc_end(&rpcs[1]); /* a connection beyond the maximum stays in use */
    AT(0, NOBODY, 2, 1);
    /* The channel's own limit, 10, bounds a larger maximum. */
    tc_scaling_set(&scalings[0], UINT32_MAX);
    rpc_start_many(20);
    while (attempt)
        grant(1);
    assert_int_equal(n_peers, 10);
}

/* Three subchannels share the connections: the largest maximum counts, until its subchannel is released. */
static void the_largest_maximum_counts(void **state)
{
    TC_CASE(CS06);
    (void)state;
    open_first(1, 1);
    rpc_start_many(2);
    assert_null(attempt);
    subchannel_make(1, 3);
    assert_non_null(attempt);
    grant(1);
    AT(0, 1);
    assert_int_equal(states[1], TORC_CONNECTIVITY_READY);
    subchannel_make(2, 1); /* a smaller maximum that comes later does not count */
    rpc_start_many(1);
    grant(1);
    AT(0, 1, 2);
    tc_subchannel_release(subchannels[1]);
    subchannels[1] = NULL;
    fake_h2_goaway(peers[0], 1, 0, "");
    AT(0, 1, 2);
    rpc_start_many(1);
    assert_null(attempt);
    AT(0, 1, 2, WAITS);
    assert_int_equal(tc_pool_count(pool), 1);
}

/* The loss of the last connection sends back the RPCs that wait. The state depends on the attempt to have another
 * connection: under way, in backoff, or none. In any case the observer is told that the connection is closed. */
static void the_state_when_connections_are_lost(void **state)
{
    TC_CASE(CS07);
    static const struct {
        bool refuse; /* the attempt, before the connection is lost */
        uint32_t max;
        enum torc_connectivity state;
        const char *told;
    } rows[] = {
        {false, 2, TORC_CONNECTIVITY_CONNECTING, " connect connected closed connect connected"},
        {true, 2, TORC_CONNECTIVITY_TRANSIENT_FAILURE, " connect connected closed connect_failed"},
        {false, 1, TORC_CONNECTIVITY_IDLE, " connect connected closed"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        open_first(rows[i].max, 1);
        rpc_start_many(2);
        if (rows[i].refuse)
            refuse();
        fake_pipe_finish(pipes[0], 1);
        run(1);
        assert_int_equal(states[0], rows[i].state);
        AT(NOBODY, SENT_BACK);
        assert_null(tc_subchannel_transport(subchannels[0]));
        if (rows[i].refuse) {
            run(3000);
            assert_int_equal(states[0], TORC_CONNECTIVITY_IDLE);
        }
        if (rows[i].state == TORC_CONNECTIVITY_CONNECTING) {
            grant(1);
            assert_int_equal(states[0], TORC_CONNECTIVITY_READY);
        }
        assert_int_equal(attempts, rows[i].max);
        assert_string_equal(tc_buf_cstr(&told), rows[i].told);
        teardown(state);
        setup(state);
    }
}

/* A GOAWAY comes on one of three connections: its RPC goes on, the other connections serve, and the RPC that waits
 * gets a further connection. */
static void one_of_three_goes_away(void **state)
{
    TC_CASE(CS08);
    (void)state;
    open_first(3, 1);
    rpc_start_many(4);
    grant(1);
    grant(1);
    AT(0, 1, 2, WAITS);
    assert_null(attempt);
    fake_h2_goaway(peers[1], 1, 0, "");
    AT(0, 1, 2, WAITS);
    assert_int_equal(states[0], TORC_CONNECTIVITY_READY);
    grant(2);
    AT(0, 1, 2, 3);
    fake_h2_goaway(peers[0], 1, 0, "");
    fake_h2_goaway(peers[2], 1, 0, "");
    rpc_start_many(2);
    AT(0, 1, 2, 3, 3, WAITS);
    assert_int_equal(states[0], TORC_CONNECTIVITY_READY);
    refuse();
}

/* A server that accepts further connections only to end them is tried at once 33 times, then by the backoff. */
static void further_connections_that_end_at_once(void **state)
{
    TC_CASE(CS08);
    (void)state;
    open_first(2, 1);
    rpc_start_many(2);
    for (unsigned round = 0; round < 33; round++) {
        grant(0);
        fake_h2_goaway(peers[1], 0, 0, "no");
        run(1);
        fake_h2_free(peers[1]);
        fake_pipe_free(pipes[1]);
        n_peers = 1;
    }
    assert_null(attempt);
    assert_int_equal(attempts, 34);
    run(3000);
    assert_int_equal(attempts, 35);
    AT(0, WAITS);
    refuse();
}

/* The limit flaps with a queue of 1,000: no RPC is lost, overtaken or served beyond the limit. */
static void the_limit_flaps(void **state)
{
    TC_CASE(CS08);
    (void)state;
    open_first(3, 0);
    rpc_start_many(RPCS);
    grant(0);
    grant(0);
    assert_null(attempt);
    assert_int_equal(count_at(WAITS), RPCS);
    size_t open = 0;
    for (unsigned round = 0; round < 300; round++) {
        allow((int)(round % 3), round % 2 ? 0 : 1 + round / 3);
        assert_int_equal(count_at(NOBODY) + count_at(SENT_BACK), 0);
        assert_true(RPCS - count_at(WAITS) >= open);
        open = RPCS - count_at(WAITS);
        for (int i = 0; i < 3; i++)
            assert_in_range(count_at(i), 0, 1 + round / 3);
    }
    assert_in_range(open, 100, 300);
    /* The RPCs that wait and have even numbers are cancelled. */
    for (size_t i = 0; i < RPCS; i += 2)
        if (rpcs[i].at == WAITS)
            rpc_end(&rpcs[i]);
    allow(1, UINT32_MAX);
    assert_int_equal(count_at(WAITS), 0);
    /* The limits fall below the number of open streams: the next RPC waits. */
    for (int i = 0; i < 3; i++)
        allow(i, 1);
    rpc_end(&rpcs[RPCS - 1]);
    n_rpcs--;
    tc_arena_fini(&rpcs[n_rpcs].arena);
    rpc_start_many(1);
    assert_int_equal(count_at(WAITS), 1);
    assert_int_equal(attempts, 3);
}

static void ask_nothing(const struct tc_link *watches, struct tc_buf *out)
{
    (void)watches, (void)out;
}

static void ignore_message(struct tc_side_watch *w, struct tc_slice message)
{
    (void)w, (void)message;
}

/* A side stream stays on the oldest connection. It waits there without holding up RPCs, and moves to another
 * connection when the oldest goes away. */
static void side_streams_stay_on_the_oldest(void **state)
{
    TC_CASE(CS08);
    static const struct tc_side_kind kind = {"/test.Side/Watch", "nothing", 100, ask_nothing};
    struct tc_side_watch watch = {.kind = &kind, .on_message = ignore_message};
    (void)state;
    open_first(2, 2);
    rpc_start_many(3);
    grant(10);
    AT(0, 0, 1);
    tc_subchannel_watch_side(subchannels[0], &watch);
    rpc_start_many(2);
    AT(0, 0, 1, 1, 1);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), 2);
    rpc_end(&rpcs[0]);
    run(1);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), 1);
    fake_h2_goaway(peers[0], 5, 0, "");
    run(1);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_RST_STREAM, 5), 1);
    assert_int_equal(fake_h2_count(peers[1], FAKE_H2_HEADERS, 0), 4);
    tc_side_watch_end(&watch);
}

/* After a change of credentials one new connection replaces all others, and serves the RPCs that wait. */
static void new_credentials_replace_all(void **state)
{
    TC_CASE(CS08);
    (void)state;
    open_first(2, 1);
    rpc_start_many(3);
    grant(1);
    AT(0, 1, WAITS);
    epoch = 2;
    while (!attempt)
        run(10000);
    grant(1);
    AT(0, 1, 2);
    rpc_start_many(1);
    grant(1);
    AT(0, 1, 2, 3);
    rpc_end(&rpcs[0]);
    rpc_end(&rpcs[1]);
    run(1);
    assert_true(fake_pipe_closed(pipes[0], 0) && fake_pipe_closed(pipes[1], 0));
    assert_int_equal(attempts, 4);
}

/* The subchannel is released while RPCs wait and an attempt runs. */
static void the_subchannel_goes_with_a_queue(void **state)
{
    TC_CASE(CS08);
    (void)state;
    open_first(10, 1);
    rpc_start_many(500);
    assert_non_null(attempt);
    tc_scaling_fini(&scalings[0]);
    tc_subchannel_release(subchannels[0]);
    subchannels[0] = NULL;
    run(1);
    grant(1); /* the pool keeps the connection, which is READY */
    assert_int_equal(count_at(WAITS), 498);
    assert_null(attempt);
    run(31000);
    assert_int_equal(tc_pool_count(pool), 0);
    assert_int_equal(count_at(SENT_BACK), 498);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(the_rpc_beyond_the_limit_gets_another_connection),
        ROW(with_one_connection_rpcs_wait),
        ROW(an_attempt_that_failed_is_followed_by_the_backoff),
        ROW(the_maximum_changes),
        ROW(the_largest_maximum_counts),
        ROW(the_state_when_connections_are_lost),
        ROW(one_of_three_goes_away),
        ROW(further_connections_that_end_at_once),
        ROW(the_limit_flaps),
        ROW(side_streams_stay_on_the_oldest),
        ROW(new_credentials_replace_all),
        ROW(the_subchannel_goes_with_a_queue),
    };
#undef ROW
    return cmocka_run_group_tests(tests, NULL, NULL);
}
