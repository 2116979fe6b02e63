/* Random walks over a subchannel with several connections (A105), which two channels share: RPCs, a limit of streams
 * that flaps, GOAWAYs, losses, refused attempts to connect, health checks, new credentials, and channels that come and
 * go, also between two tasks of one turn. Once the server is good again every RPC ends.
 *
 * The channels are on virtual time; each connection has a scripted server in memory (fakes/h2). A walk owns runtime,
 * channels, RPCs and servers, and frees them in walk_end; all walks share `creds`. Each walk is made from a seed. The
 * failure of an RPC that does not end names the seed. One thread: the test turns the loop. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/vec.h"
#include "creds/handshake.h"
#include "runtime/create.h"
#include "subchannel/connection.h"
#include "subchannel/pool.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { CHANNELS = 2, RPCS = 48, STEPS = 300, WALKS = 600, TASKS = 4, ROUNDS = 300, MAX_CONCURRENT_STREAMS = 3 };

/* An attempt to connect, in walk.asks. It is freed when it is answered or cancelled. */
struct tc_connect {
    struct tc_link link;
    tc_connect_fn fn;
    void *arg;
};

/* A connection, as its server sees it. */
struct server_end {
    struct fake_pipe *pipe;
    struct fake_h2 *peer;
    TC_VEC(uint32_t) streams; /* that wait for an answer */
    uint32_t checks, last;    /* the stream of health checks (0: none), and the newest stream */
    bool over;                /* the server has ended the connection */
};

struct rpc {
    torc_stream *stream; /* NULL: the place is free */
    bool ended;
};

static struct {
    struct tc_loop *loop;
    torc_runtime *rt;
    struct tc_rng rng;
    torc_channel *channels[CHANNELS];
    struct rpc rpcs[RPCS];
    struct tc_link asks; /* struct tc_connect: attempts that the server has not answered */
    TC_VEC(struct server_end) ends;
    struct tc_task tasks[TASKS]; /* each makes a step between other tasks */
    int hops[TASKS];             /* how often each task goes to the end of the serial queue before its step */
    bool good;                   /* the server accepts, allows 100 streams on each connection and answers */
    uint64_t seed;
    int served;  /* RPCs that ended with OK */
    int checked; /* health check streams that the server accepted */
} walk;

/* --- credentials that change --- */

static torc_credentials creds;
static uint64_t epoch; /* of `creds`; a higher one stands for new credentials */

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

static void creds_init(void)
{
    static const struct tc_creds_ops ops = {
        .type = "test", .start = creds_start, .cancel = tc_creds_handshake_cancel, .epoch = creds_epoch};
    tc_ref_init(&creds.ref);
    creds.ops = &ops;
    creds.scheme = "https";
    creds.key = tc_rstr_str("test");
    creds.refresh_ns = 4 * TC_NS_PER_S;
}

/* --- chance --- */

/* Returns a number below n, which the walk's seed decides. */
static size_t chance(size_t n)
{
    return (size_t)tc_rng_below(&walk.rng, n);
}

/* --- the server --- */

static struct tc_connect *connect_start(struct tc_loop *loop, const struct tc_addr *addr,
                                        const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg)
{
    (void)loop, (void)addr, (void)opts;
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->fn = fn;
    c->arg = arg;
    tc_list_append(&walk.asks, &c->link);
    return c;
}

static void connect_cancel(struct tc_connect *c)
{
    tc_list_remove(&c->link);
    tc_free(c);
}

/* Sends a limit of streams: 100 from a good server, else 0 to 7. */
static void allow(struct server_end *e)
{
    fake_h2_setting(e->peer, MAX_CONCURRENT_STREAMS, walk.good ? 100 : (uint32_t)chance(chance(2) ? 3 : 8));
}

/* Grants or refuses the attempt that has waited longest; a good server grants it. Does nothing if no attempt waits. */
static void answer_ask(void)
{
    struct tc_link *link = tc_list_pop(&walk.asks);
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "refused by the test");
    if (link) {
        struct tc_connect *c = TC_CONTAINER_OF(link, struct tc_connect, link);
        struct tc_bytestream *bs = NULL;
        if (walk.good || chance(4)) {
            struct server_end e = {.pipe = fake_pipe_new(walk.loop)};
            e.peer = fake_h2_new(e.pipe, 1, true);
            bs = fake_pipe_end(e.pipe, 0);
            *tc_vec_push(&walk.ends) = e;
        }
        c->fn(c->arg, bs, bs ? NULL : &why);
        if (bs && (walk.good || chance(8)))
            allow(&walk.ends.data[walk.ends.len - 1]);
        tc_free(c);
    }
    tc_status_fini(&why);
}

static void health_tell(struct server_end *e)
{
    static const char serving[] = {1 << 3, 1}, not_serving[] = {1 << 3, 2};
    if (e->checks)
        fake_h2_message(e->peer, e->checks, walk.good || chance(2) ? serving : not_serving, 2, false);
}

/* Takes the last stream as the stream of health checks. A bad server sometimes answers UNIMPLEMENTED to it instead. */
static void health_begin(struct server_end *e)
{
    if (!walk.good && chance(6) == 0) {
        fake_h2_headers(e->peer, e->last, ":status: 200\ncontent-type: application/grpc\ngrpc-status: 12\n", true);
        return;
    }
    e->checks = e->last;
    walk.checked++;
    fake_h2_headers(e->peer, e->checks, ":status: 200\ncontent-type: application/grpc\n", false);
    health_tell(e);
}

/* Reads the client's frames. */
static void listen_to(struct server_end *e)
{
    const struct fake_h2_frame *f;
    while ((f = fake_h2_next(e->peer))) {
        if (f->type == FAKE_H2_HEADERS)
            e->last = f->stream;
        if (f->type == FAKE_H2_HEADERS && strstr(f->headers, "/grpc.health.v1.Health/Watch"))
            health_begin(e);
        else if (f->type == FAKE_H2_HEADERS)
            *tc_vec_push(&e->streams) = f->stream;
        if (f->type == FAKE_H2_RST_STREAM && f->stream == e->checks)
            e->checks = 0;
        for (size_t i = 0; f->type == FAKE_H2_RST_STREAM && i < e->streams.len; i++)
            if (e->streams.data[i] == f->stream) {
                tc_vec_remove(&e->streams, i);
                break;
            }
    }
}

/* Takes request i out of e->streams, and ends its stream: with OK if the server is good, else perhaps with an error. */
static void answer(struct server_end *e, size_t i)
{
    static const uint32_t resets[] = {7 /* REFUSED_STREAM */, 2 /* INTERNAL_ERROR */};
    uint32_t stream = e->streams.data[i];
    size_t how = walk.good ? 3 : chance(6);
    tc_vec_remove(&e->streams, i);
    if (how < TC_ARRAY_LEN(resets)) {
        fake_h2_rst(e->peer, stream, resets[how]);
    } else if (how == 2) {
        fake_h2_headers(e->peer, stream, ":status: 200\ncontent-type: application/grpc\ngrpc-status: 14\n", true);
    } else {
        fake_h2_headers(e->peer, stream, ":status: 200\ncontent-type: application/grpc\n", false);
        fake_h2_message(e->peer, stream, "x", 1, false);
        fake_h2_headers(e->peer, stream, "grpc-status: 0\n", true);
    }
}

static void server_step(struct server_end *e)
{
    if (e->over)
        return;
    listen_to(e);
    switch (chance(9)) {
    case 0:
    case 1:
    case 2:
        allow(e);
        break;
    case 5:
        health_tell(e);
        break;
    case 3:
        fake_h2_goaway(e->peer, chance(2) ? e->last : 0, 0, "");
        break;
    case 4:
        fake_pipe_finish(e->pipe, 1);
        e->over = true;
        break;
    default:
        if (e->streams.len)
            answer(e, chance(e->streams.len));
    }
}

/* --- the client --- */

/* Returns a new channel, for torc_channel_free; LB policy, health checks and the maximum of connections are chosen at
 * random. */
static torc_channel *channel_make(void)
{
    static const char *const checks[] = {"", "\"loadBalancingConfig\":[{\"round_robin\":{}}],",
                                         "\"loadBalancingConfig\":[{\"round_robin\":{}}],"
                                         "\"healthCheckConfig\":{\"serviceName\":\"h\"},"};
    char *config = tc_asprintf(
        "{%s\"connectionScaling\":{\"maxConnectionsPerSubchannel\":%zu},\"methodConfig\":[{\"name\":[{\"service\":"
        "\"retried\"}],\"retryPolicy\":{\"maxAttempts\":3,\"initialBackoff\":\"0.1s\",\"maxBackoff\":\"1s\","
        "\"backoffMultiplier\":2,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}},{\"name\":[{\"service\":\"hedged\"}],"
        "\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0.5s\",\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}",
        checks[chance(TC_ARRAY_LEN(checks))], 1 + chance(4));
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = &creds,
                                           .service_config_json = config};
    torc_channel *ch = torc_channel_new(walk.rt, "ipv4:10.0.0.1:80", &o, NULL);
    assert_non_null(ch);
    tc_free(config);
    return ch;
}

static void on_result(const torc_result *result, void *arg)
{
    struct rpc *r = arg;
    assert_false(r->ended);
    r->ended = true;
    walk.served += torc_result_code(result) == TORC_STATUS_OK;
}

static void rpc_free(struct rpc *r)
{
    torc_stream_free(r->stream);
    r->stream = NULL;
}

static void rpc_start(void)
{
    static const char *const methods[] = {"/s/M", "/retried/M", "/hedged/M"};
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = (int)chance(2)};
    struct rpc *r = &walk.rpcs[chance(RPCS)];
    if (r->stream && r->ended)
        rpc_free(r);
    if (r->stream)
        return;
    r->ended = false;
    assert_int_equal(torc_unary_async(walk.channels[chance(CHANNELS)], methods[chance(3)], "m", 1, &o, on_result, r,
                                      &r->stream, NULL),
                     0);
}

static void step(void)
{
    struct rpc *r = &walk.rpcs[chance(RPCS)];
    torc_channel **ch = &walk.channels[chance(CHANNELS)];
    switch (chance(16)) {
    case 0:
        if (r->stream)
            torc_stream_cancel(r->stream);
        break;
    case 1:
        if (chance(8) == 0) {
            torc_channel_free(*ch);
            *ch = channel_make();
        }
        break;
    case 2:
        if (chance(2))
            epoch++;
        else
            torc_channel_reset_backoff(*ch);
        break;
    case 3:
    case 4:
        answer_ask();
        break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        if (walk.ends.len) {
            size_t n = TC_MIN(walk.ends.len, (size_t)4); /* the newest */
            server_step(&walk.ends.data[walk.ends.len - 1 - chance(n)]);
        }
        break;
    default:
        rpc_start();
    }
}

static void on_task(struct tc_task *task)
{
    if (walk.hops[task - walk.tasks]-- > 0)
        tc_loop_defer(walk.loop, task);
    else
        step();
}

/* --- a walk --- */

static void walk_begin(uint64_t seed)
{
    static const struct tc_connector connector = {.start = connect_start, .cancel = connect_cancel};
    memset(&walk, 0, sizeof(walk));
    walk.seed = seed;
    tc_rng_init_seed(&walk.rng, seed);
    tc_list_init(&walk.asks);
    walk.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = seed});
    walk.rt = tc_runtime_new_on(walk.loop, NULL);
    tc_pool_set_connector(tc_runtime_pool(walk.rt), &connector);
    for (int i = 0; i < CHANNELS; i++)
        walk.channels[i] = channel_make();
    for (int i = 0; i < TASKS; i++)
        tc_task_init(&walk.tasks[i], on_task);
}

static size_t rpcs_running(void)
{
    size_t n = 0;
    for (int i = 0; i < RPCS; i++)
        n += walk.rpcs[i].stream && !walk.rpcs[i].ended;
    return n;
}

/* Makes the server good. Fails if an RPC does not end. */
static void walk_settle(void)
{
    walk.good = true;
    for (size_t i = 0; i < walk.ends.len; i++)
        if (!walk.ends.data[i].over) {
            allow(&walk.ends.data[i]);
            health_tell(&walk.ends.data[i]);
        }
    for (int round = 0; round < ROUNDS && rpcs_running(); round++) {
        tc_loop_drain(walk.loop);
        while (!tc_list_empty(&walk.asks))
            answer_ask();
        for (size_t i = 0; i < walk.ends.len; i++) {
            struct server_end *e = &walk.ends.data[i];
            listen_to(e);
            while (!e->over && e->streams.len)
                answer(e, 0);
        }
        tc_loop_drain(walk.loop);
        tc_loop_advance(walk.loop, round < ROUNDS / 2 ? 1 : 1000);
    }
    for (int i = 0; i < RPCS; i++)
        if (walk.rpcs[i].stream && !walk.rpcs[i].ended)
            fail_msg("seed %llu: RPC %d of %zu waits for nothing", (unsigned long long)walk.seed, i, rpcs_running());
}

static void walk_end(void)
{
    for (int i = 0; i < TASKS; i++)
        tc_task_cancel(&walk.tasks[i]);
    for (int i = 0; i < RPCS; i++)
        rpc_free(&walk.rpcs[i]);
    for (int i = 0; i < CHANNELS; i++)
        torc_channel_free(walk.channels[i]);
    assert_int_equal(torc_runtime_free(walk.rt), 0);
    tc_loop_drain(walk.loop);
    assert_true(tc_list_empty(&walk.asks));
    for (size_t i = 0; i < walk.ends.len; i++) {
        tc_vec_fini(&walk.ends.data[i].streams);
        fake_h2_free(walk.ends.data[i].peer);
        fake_pipe_free(walk.ends.data[i].pipe);
    }
    tc_vec_fini(&walk.ends);
    tc_loop_free(walk.loop);
}

static void every_rpc_ends(void **state)
{
    TC_CASE(CS08);
    (void)state;
    int served = 0, checked = 0;
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        walk_begin(seed);
        for (int i = 0; i < STEPS; i++) {
            size_t task = chance(TASKS * 2);
            if (task < TASKS && !tc_task_pending(&walk.tasks[task])) {
                walk.hops[task] = (int)chance(6);
                tc_loop_defer(walk.loop, &walk.tasks[task]);
            } else {
                step();
            }
            if (chance(3) == 0)
                tc_loop_drain(walk.loop);
            if (chance(3) == 0)
                tc_loop_advance(walk.loop, chance(8) ? chance(4) : chance(3000));
        }
        walk_settle();
        served += walk.served;
        checked += walk.checked;
        walk_end();
    }
    assert_true(served > 5 * WALKS);
    assert_true(checked > WALKS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rpc_ends)};
    creds_init();
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    tc_rstr_unref(creds.key);
    return rc;
}
