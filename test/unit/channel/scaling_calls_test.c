/* RPCs of a channel whose subchannel has several connections (A105), while one of the connections goes away or is
 * lost: no RPC waits for ever. An RPC that gets a stream only after its deadline is not sent.
 *
 * open_two makes the world: a channel on virtual time with two connections, the maximum of its service config, to
 * scripted servers in memory (fakes/h2). A connection takes one RPC at a time, and the RPC on the first connection is
 * never answered. close_world frees the world. One thread: the test turns the loop. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "base/mem.h"
#include "runtime/create.h"
#include "subchannel/connection.h"
#include "subchannel/pool.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { PEERS = 8, HOPS = 8, MAX_CONCURRENT_STREAMS = 3 };

#define CONFIG(more) "{\"connectionScaling\":{\"maxConnectionsPerSubchannel\":2}" more "}"
#define METHODS                                                                                                        \
    ",\"methodConfig\":[{\"name\":[{\"service\":\"hedged\"}],\"hedgingPolicy\":{\"maxAttempts\":2,\"hedgingDelay\":"   \
    "\"1000s\",\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}},"                                                           \
    "{\"name\":[{\"service\":\"brief\"}],\"timeout\":\"1.0003s\"}]"

/* An attempt to connect. Its task grants it; it is freed when it is granted or cancelled. */
struct tc_connect {
    struct tc_task task;
    tc_connect_fn fn;
    void *arg;
};

/* How the second connection ends. */
enum end { GOES_AWAY, IS_LOST, ENDS };

static struct {
    struct tc_loop *loop;
    torc_runtime *rt;
    torc_channel *ch;
    struct fake_pipe *pipes[PEERS];
    struct fake_h2 *peers[PEERS];
    int n;                /* connections made so far */
    struct tc_task start; /* of the RPC that meets the end */
    int hops;             /* how often `start` goes to the end of the serial queue before the RPC starts */
    int done, code;       /* how many RPCs have ended, and the code of the last one */
    uint32_t attempts;    /* of the RPC that ended last */
} world;

/* Turns the loop, then moves the time on by 1 ms. */
static void drain(void)
{
    tc_loop_drain(world.loop);
    tc_loop_advance(world.loop, 1);
}

/* The server accepts, and allows one stream on each connection. */
static void on_granted(struct tc_task *task)
{
    struct tc_connect *c = TC_CONTAINER_OF(task, struct tc_connect, task);
    int i = world.n++;
    assert_in_range(i, 0, PEERS - 1);
    world.pipes[i] = fake_pipe_new(world.loop);
    world.peers[i] = fake_h2_new(world.pipes[i], 1, true);
    c->fn(c->arg, fake_pipe_end(world.pipes[i], 0), NULL);
    fake_h2_setting(world.peers[i], MAX_CONCURRENT_STREAMS, 1);
    tc_free(c);
}

static struct tc_connect *connect_start(struct tc_loop *loop, const struct tc_addr *addr,
                                        const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg)
{
    (void)addr, (void)opts;
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->fn = fn;
    c->arg = arg;
    tc_task_init(&c->task, on_granted);
    tc_loop_defer(loop, &c->task);
    return c;
}

static void connect_cancel(struct tc_connect *c)
{
    tc_task_cancel(&c->task);
    tc_free(c);
}

static void on_result(const torc_result *result, void *arg)
{
    (void)arg;
    world.done++;
    world.code = torc_result_code(result);
    world.attempts = torc_result_attempts(result);
}

static void rpc_start(const char *method)
{
    assert_int_equal(torc_unary_async(world.ch, method, "m", 1, NULL, on_result, NULL, NULL, NULL), 0);
}

static void on_start(struct tc_task *task)
{
    if (world.hops-- > 0)
        tc_loop_defer(world.loop, task);
    else
        rpc_start("/s/M");
}

/* Returns the stream of the next request on connection i; 0: there is none. */
static uint32_t request_on(int i)
{
    drain();
    const struct fake_h2_frame *request = world.n > i ? fake_h2_expect(world.peers[i], FAKE_H2_HEADERS, 0) : NULL;
    return request ? request->stream : 0;
}

static void answer(int i, uint32_t stream)
{
    fake_h2_headers(world.peers[i], stream, ":status: 200\ncontent-type: application/grpc\n", false);
    fake_h2_message(world.peers[i], stream, "x", 1, false);
    fake_h2_headers(world.peers[i], stream, "grpc-status: 0\n", true);
    drain();
}

/* Opens a channel with two connections and an unanswered RPC on each; `second` is the method of the second RPC. Returns
 * the second RPC's stream. */
static uint32_t open_two(const char *second)
{
    static const struct tc_connector connector = {.start = connect_start, .cancel = connect_cancel};
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .service_config_json = CONFIG(METHODS)};
    memset(&world, 0, sizeof(world));
    world.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    world.rt = tc_runtime_new_on(world.loop, NULL);
    tc_pool_set_connector(tc_runtime_pool(world.rt), &connector);
    world.ch = torc_channel_new(world.rt, "ipv4:10.0.0.1:80", &o, NULL);
    assert_non_null(world.ch);
    tc_task_init(&world.start, on_start);
    rpc_start("/s/M");
    assert_int_equal(request_on(0), 1);
    rpc_start(second);
    uint32_t stream = request_on(1);
    assert_int_equal(stream, 1);
    assert_int_equal(world.n, 2);
    return stream;
}

static void end_second(enum end end)
{
    if (end == GOES_AWAY)
        fake_h2_goaway(world.peers[1], 1, 0, "");
    else
        fake_pipe_finish(world.pipes[1], 1);
}

static void close_world(void)
{
    torc_channel_free(world.ch);
    assert_int_equal(torc_runtime_free(world.rt), 0);
    tc_loop_drain(world.loop);
    for (int i = 0; i < world.n; i++) {
        fake_h2_free(world.peers[i]);
        fake_pipe_free(world.pipes[i]);
    }
    tc_loop_free(world.loop);
}

/* An RPC starts between two tasks of the turn in which the second connection ends. The RPC is sent on a third
 * connection; or it was sent on the second one before the end, and ends too. */
static void an_rpc_meets_the_end_of_a_connection(void **state)
{
    TC_CASE(CS08);
    (void)state;
    for (enum end end = 0; end < ENDS; end++)
        for (int hops = 0; hops < HOPS; hops++) {
            answer(1, open_two("/s/M"));
            assert_int_equal(world.done, 1);
            end_second(end);
            world.hops = hops;
            on_start(&world.start);
            uint32_t stream = request_on(2);
            if (!stream && fake_h2_count(world.peers[1], FAKE_H2_HEADERS, 0) == 0)
                fail_msg("the RPC waits for nothing: end %d, hops %d", (int)end, hops);
            if (stream)
                answer(2, stream);
            assert_int_equal(world.done, 2);
            close_world();
        }
}

/* The second connection is lost while it carries a hedged RPC. The RPC's next attempt starts at once, and gets a third
 * connection. */
static void a_hedge_follows_a_loss(void **state)
{
    TC_CASE(CS08);
    (void)state;
    open_two("/hedged/M");
    end_second(IS_LOST);
    uint32_t stream = request_on(2);
    assert_int_equal(stream, 1);
    answer(2, stream);
    assert_int_equal(world.done, 1);
    assert_int_equal(world.code, TORC_STATUS_OK);
    close_world();
}

/* A stream becomes free between the deadline of the RPC that waits for it and the deadline's timer, which counts in
 * milliseconds: the RPC is not sent. */
static void a_deadline_passes_while_an_rpc_waits(void **state)
{
    (void)state;
    uint32_t stream = open_two("/s/M");
    uint64_t begin = tc_loop_now_ns(world.loop);
    rpc_start("/brief/M");
    tc_loop_drain(world.loop);
    tc_loop_set_time(world.loop, begin + UINT64_C(1000400000));
    fake_h2_headers(world.peers[1], stream, ":status: 200\ncontent-type: application/grpc\ngrpc-status: 0\n", true);
    tc_loop_drain(world.loop);
    assert_int_equal(world.done, 2);
    assert_int_equal(world.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(world.attempts, 0);
    assert_int_equal(request_on(1), 0);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_rpc_meets_the_end_of_a_connection),
        cmocka_unit_test(a_hedge_follows_a_loss),
        cmocka_unit_test(a_deadline_passes_while_an_rpc_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
