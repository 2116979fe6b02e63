/* Servers of a world (torc/testing.h): handlers that answer late, stream, wait on a pool, call another server, or poll
 * a runtime. The order of events, which depends on the seed alone. What a server without options does. Keepalive
 * between Torc's clients and Torc's servers.
 *
 * A test makes `world`, or several one after another, frees its pool and its handles, and ends the world. The handlers
 * of a method with a pool run on the pool's threads, and may block. All other handlers and callbacks run on the test's
 * thread, inside a function that turns or ends the world. One thread at a time runs in a world, so handlers and tests
 * share variables without locks. */
#include "unit/testing/kit.h"

#define SERVER "10.0.0.1:443"

static torc_testing *world;

/* Starts a server at SERVER with one method, whose handlers run on `pool`; NULL: on the test's thread. The caller frees
 * the server and the pool; what `handler` points at is copied, except its `arg`. */
static torc_server *server_begin(const char *method, const struct torc_handler *handler, torc_pool *pool)
{
    struct torc_method_options o = {TORC_SIZE(torc_method_options), .pool = pool};
    torc_server *server = torc_server_new(NULL, NULL);
    assert_int_equal(torc_server_add_method(server, method, handler, NULL), 0);
    if (pool)
        assert_int_equal(torc_server_limit(server, method, &o, NULL), 0);
    assert_int_equal(torc_server_listen(server, SERVER, torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    return server;
}

/* Frees the channel, which may be NULL, and the server, and ends the world. */
static void world_end(torc_server *server, torc_channel *channel)
{
    torc_channel_free(channel);
    assert_int_equal(torc_server_stop(server, 1000), 0);
    torc_server_free(server);
    assert_int_equal(torc_testing_free(world), 0);
}

/* --- a handler that answers later: after its client's deadline, or before it --- */

static void answer(void *arg)
{
    torc_server_call_reply(arg, "late", 4);
}

static void on_late(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request;
    (void)arg;
    assert_int_equal(torc_testing_advance(world, 1), TORC_EDEADLK);
    assert_int_equal(torc_testing_run_until_idle(world), TORC_EDEADLK);
    assert_int_equal(torc_testing_free(world), TORC_EDEADLK);
    assert_int_equal(torc_testing_after(world, 2000, answer, call), 0);
}

static void test_a_late_answer(void **state)
{
    (void)state;
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_late};
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1999};
    char said[128];
    world = torc_testing_new(1, NULL);
    torc_server *server = server_begin("/t.Test/Say", &handler, NULL);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, &o, said), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(torc_time_ms(), 2999);
    o.timeout_ms = 2001;
    assert_int_equal(say(channel, &o, said), TORC_STATUS_OK);
    assert_string_equal(said, "late");
    assert_int_equal(torc_time_ms(), 4999);
    world_end(server, channel);
}

/* --- streams --- */

/* Sends back each message. Blocks, on a thread of a pool. */
static void on_echo(torc_server_call *call, void *arg)
{
    const torc_message *message;
    (void)arg;
    while (torc_server_call_receive(call, 60000, &message) == 1)
        torc_server_call_send(call, torc_message_data(message), torc_message_size(message), 0, -1);
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void test_a_stream(void **state)
{
    (void)state;
    struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_echo};
    world = torc_testing_new(1, NULL);
    torc_pool *pool = torc_pool_new(2, 10, NULL);
    torc_server *server = server_begin("/t.Test/Echo", &handler, pool);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    torc_stream *stream = torc_stream_open(channel, "t.Test/Echo", NULL, NULL);
    const torc_message *message;
    char sent[100000];
    memset(sent, 'x', sizeof(sent));
    for (int i = 0; i < 50; i++) {
        assert_int_equal(torc_stream_send(stream, sent, sizeof(sent) - (size_t)i, 0, -1), 0);
        assert_int_equal(torc_stream_receive(stream, -1, &message), 1);
        assert_int_equal(torc_message_size(message), sizeof(sent) - (size_t)i);
    }
    assert_int_equal(torc_stream_receive(stream, 100, &message), TORC_ETIMEDOUT);
    assert_int_equal(torc_time_ms(), 1100);
    torc_result *r = torc_stream_finish(stream);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(stream);
    assert_int_equal(torc_pool_free(pool), 0);
    world_end(server, channel);
}

/* Answers after 700 ms of virtual time. */
static void on_slow(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    if (torc_testing_advance(world, 700) == 0)
        torc_server_call_reply(call, "slow", 4);
}

static void test_a_handler_that_sleeps(void **state)
{
    (void)state;
    char said[128];
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_slow};
    world = torc_testing_new(1, NULL);
    torc_pool *pool = torc_pool_new(1, 10, NULL);
    torc_server *server = server_begin("/t.Test/Say", &handler, pool);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_string_equal(said, "slow");
    assert_int_equal(torc_time_ms(), 1700);
    assert_int_equal(torc_pool_free(pool), 0);
    world_end(server, channel);
}

/* Replies, then sleeps for two hours of virtual time. */
static void on_sleeper(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request;
    torc_server_call_reply(call, "late", 4);
    *(int *)arg = torc_testing_advance(world, 7200000);
}

/* torc_pool_free waits for a handler that sleeps longer than a wait without a limit may last, which is an hour. */
static void test_a_handler_that_sleeps_long(void **state)
{
    (void)state;
    char said[128];
    int slept = -1;
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_sleeper, .arg = &slept};
    world = torc_testing_new(1, NULL);
    torc_pool *pool = torc_pool_new(1, 10, NULL);
    torc_server *server = server_begin("/t.Test/Say", &handler, pool);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    assert_int_equal(slept, -1);
    assert_int_equal(torc_pool_free(pool), 0);
    assert_int_equal(slept, 0);
    assert_int_equal(torc_time_ms(), 7201000);
    world_end(server, channel);
}

static void on_wait(torc_server_call *call, void *arg)
{
    const torc_message *message;
    *(int *)arg = torc_server_call_receive(call, -1, &message);
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* Handlers wait without a limit while the test frees its handles and the world. Their waits end with TORC_ECLOSED. */
static void test_handlers_that_are_left(void **state)
{
    (void)state;
    int ended = 1;
    torc_stream *streams[3];
    world = torc_testing_new(1, NULL);
    torc_pool *pool = torc_pool_new(2, 10, NULL); /* the third waits for a thread */
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_wait, .arg = &ended};
    torc_server *server = server_begin("/t.Test/Wait", &handler, pool);
    for (int i = 0; i < 3; i++)
        streams[i] = torc_stream_open(channel, "t.Test/Wait", NULL, NULL);
    assert_int_equal(torc_testing_advance(world, 1000), 0);
    assert_int_equal(ended, 1);
    for (int i = 0; i < 3; i++)
        torc_stream_free(streams[i]);
    torc_channel_free(channel);
    torc_server_free(server);
    assert_int_equal(torc_testing_free(world), 0);
    assert_int_equal(ended, TORC_ECLOSED);
    assert_int_equal(torc_pool_free(pool), 0);
}

/* --- a server that calls another server on behalf of its client, and blocks until that call ends --- */

/* The `arg` of the relay's handler. The test owns the channel and the pool. */
struct relay {
    torc_channel *next; /* to the other server */
    torc_pool *pool;    /* on which the handler runs */
};

static void on_relay(torc_server_call *call, const torc_message *request, void *arg)
{
    struct relay *relay = arg;
    char said[128];
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = torc_server_call_time_left(call)};
    (void)request;
    assert_int_equal(torc_pool_free(relay->pool), TORC_EDEADLK);
    if (say(relay->next, &o, said) == TORC_STATUS_OK)
        torc_server_call_reply(call, said, strlen(said));
    else
        torc_server_call_finish(call, TORC_STATUS_ABORTED, said, NULL);
}

static void test_a_relay(void **state)
{
    (void)state;
    struct says last;
    struct relay relay;
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_relay, .arg = &relay};
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
    char said[128];
    world = torc_testing_new(1, NULL);
    says_begin(&last, "last", "10.0.0.2:443");
    relay.next = torc_channel_new(NULL, "10.0.0.2:443", NULL, NULL);
    relay.pool = torc_pool_new(1, 10, NULL);
    torc_server *server = server_begin("/t.Test/Say", &handler, relay.pool);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    assert_int_equal(say(channel, &o, said), TORC_STATUS_OK);
    assert_string_equal(said, "last");
    assert_int_equal(torc_testing_set_host(world, "10.0.0.2:443", TORC_TESTING_SILENT), 0);
    assert_int_equal(say(channel, &o, said), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(torc_time_ms(), 6000);
    torc_channel_free(relay.next);
    torc_server_free(last.server);
    assert_int_equal(torc_pool_free(relay.pool), 0);
    world_end(server, channel);
}

/* --- a handler on a pool that polls a runtime --- */

/* The `arg` of on_poll and on_polled. */
struct polled {
    torc_runtime *rt;      /* the test's; the test polls it, or its callback on_polled blocks */
    torc_channel *channel; /* the next callback calls /t.Test/Say on it; NULL: the callback makes no call */
    int depth, deepest;    /* callbacks of the runtime that are under way; the most at once */
    int64_t rest_ms;       /* the handler sleeps so long, polls, and then posts the callback; 0: it posts the callback,
                              and then polls */
};

static void on_polled(void *arg)
{
    struct polled *p = arg;
    torc_channel *channel = p->channel;
    char said[128];
    p->channel = NULL;
    p->depth++;
    p->deepest = p->depth > p->deepest ? p->depth : p->deepest;
    if (channel)
        assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
    p->depth--;
}

static void on_poll(torc_server_call *call, const torc_message *request, void *arg)
{
    struct polled *p = arg;
    (void)request;
    if (p->rest_ms > 0) {
        assert_int_equal(torc_testing_advance(world, p->rest_ms), 0);
        assert_int_equal(torc_runtime_poll(p->rt, -1), 0);
        assert_int_equal(torc_runtime_post(p->rt, on_polled, p), 0);
    } else {
        assert_int_equal(torc_runtime_post(p->rt, on_polled, p), 0);
        assert_int_equal(torc_runtime_poll(p->rt, 100), 0); /* an earlier callback has not returned */
    }
    torc_server_call_reply(call, "polled", 6);
}

/* A handler polls the runtime that the test polls at the time; or it polls a runtime while a callback of that runtime
 * waits for this very handler. */
static void test_a_handler_that_polls(void **state)
{
    (void)state;
    struct polled p = {.rest_ms = 50};
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_poll, .arg = &p};
    world = torc_testing_new(1, NULL);
    torc_pool *pool = torc_pool_new(1, 10, NULL);
    p.rt = torc_runtime_new(NULL, NULL);
    torc_server *server = server_begin("/t.Test/Say", &handler, pool);
    torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
    torc_stream *stream = torc_stream_open(channel, "t.Test/Say", NULL, NULL);
    assert_int_equal(torc_stream_send(stream, "", 0, TORC_SEND_LAST, -1), 0);
    assert_int_equal(torc_testing_run_until_idle(world), 0);
    assert_int_equal(torc_runtime_poll(p.rt, -1), 1);
    assert_int_equal(p.deepest, 1);
    torc_stream_free(stream);
    assert_int_equal(torc_testing_advance(world, 1000), 0);

    p = (struct polled){.rt = p.rt, .channel = channel};
    assert_int_equal(torc_runtime_post(p.rt, on_polled, &p), 0);
    assert_int_equal(torc_testing_advance(world, 1000), 0);
    assert_int_equal(p.depth, 0);
    assert_int_equal(p.deepest, 1);
    assert_int_equal(torc_runtime_free(p.rt), 0);
    world_end(server, channel);
    assert_int_equal(torc_pool_free(pool), 0);
}

/* --- the order of things --- */

enum { CALLS = 40 };

struct order {
    char text[CALLS * 4 + 1]; /* "003 001 ...": the numbers of the calls, in the order of their ends */
    int done;                 /* calls that have ended */
};

static void on_done(const torc_result *result, void *arg)
{
    struct order *order = arg;
    size_t at = strlen(order->text);
    snprintf(order->text + at, sizeof(order->text) - at, "%.3s ",
             (const char *)torc_message_data(torc_result_response(result)));
    order->done++;
}

static int all_done(void *arg)
{
    return ((struct order *)arg)->done == CALLS;
}

static void on_number(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* Runs CALLS calls on four runtimes at once, and stores the order in which the calls end. */
static void order_run(uint64_t seed, struct order *order)
{
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_number};
    torc_runtime *runtimes[4];
    torc_channel *channels[4];
    *order = (struct order){.done = 0};
    world = torc_testing_new(seed, NULL);
    torc_server *server = server_begin("/t.Test/Number", &handler, NULL);
    for (int i = 0; i < 4; i++) {
        runtimes[i] = torc_runtime_new(NULL, NULL);
        channels[i] = torc_channel_new(runtimes[i], SERVER, NULL, NULL);
    }
    for (int i = 0; i < CALLS; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%03d", i);
        assert_int_equal(
            torc_unary_async(channels[i % 4], "t.Test/Number", number, 3, NULL, on_done, order, NULL, NULL), 0);
    }
    assert_int_equal(torc_testing_run_until(world, all_done, order, 1000), 0);
    for (int i = 0; i < 4; i++) {
        torc_channel_free(channels[i]);
        assert_int_equal(torc_runtime_free(runtimes[i]), 0);
    }
    world_end(server, NULL);
}

static void test_the_same_again(void **state)
{
    (void)state;
    struct order first, again;
    int others = 0;
    order_run(1, &first);
    for (uint64_t seed = 2; seed < 10; seed++) {
        order_run(seed, &again);
        others += strcmp(first.text, again.text) != 0;
    }
    assert_true(others > 0); /* of eight other seeds at least one gives another order */
    order_run(1, &again);
    assert_string_equal(first.text, again.text);
}

/* --- defaults --- */

static void on_cancel(torc_server_call *call, void *arg)
{
    *(int64_t *)arg = torc_time_ms();
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* Answers nothing, and stores when the RPC is over. */
static void on_hold(torc_server_call *call, void *arg)
{
    struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_cancel = on_cancel};
    assert_int_equal(torc_server_call_set_events(call, &events, arg), 0);
}

/* A server without options takes 8 KiB of metadata, and keeps connections without a call. It sends a PING to a client
 * that has been silent for two hours, and ends the connection 20 s later if no answer comes. */
static void test_defaults(void **state)
{
    (void)state;
    int64_t over = 0;
    struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_hold, .arg = &over};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .idle_timeout_ms = -1};
    char value[8200];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    world = torc_testing_new(1, NULL);
    torc_server *server = server_begin("/t.Test/Hold", &handler, NULL);
    torc_channel *channel = torc_channel_new(NULL, SERVER, &o, NULL);
    torc_metadata *large = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(large, "key", value), 0);
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .metadata = large};
    torc_result *r = torc_unary(channel, "t.Test/Hold", "", 0, &call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(torc_result_text(r), "larger than the server takes ("));
    assert_non_null(strstr(torc_result_text(r), " vs. 8192)"));
    torc_result_free(r);
    torc_metadata_free(large);

    assert_int_equal(torc_testing_advance(world, 4 * 3600000), 0);
    assert_int_equal(torc_channel_state(channel, 0), TORC_CONNECTIVITY_READY);

    torc_stream *stream = torc_stream_open(channel, "t.Test/Hold", NULL, NULL);
    assert_int_equal(torc_testing_advance(world, 1000), 0);
    int64_t silent = torc_time_ms();
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
    assert_int_equal(torc_testing_advance(world, 7200000 - 2000), 0);
    assert_int_equal(over, 0);
    assert_int_equal(torc_testing_advance(world, 30000), 0);
    assert_true(over - silent <= 7200000 + 20000);
    assert_true(over - silent >= 7200000 + 18000);
    torc_stream_free(stream);
    world_end(server, channel);
}

/* --- keepalive --- */

enum { SEND_AFTER_MS = 5000 };

static void send_one(void *arg)
{
    torc_server_call_send(arg, "x", 1, 0, 0);
}

/* Sends a message SEND_AFTER_MS after the call began, and does not end the call before the RPC is over. */
static void on_hold_and_send(torc_server_call *call, void *arg)
{
    on_hold(call, arg);
    assert_int_equal(torc_testing_after(world, SEND_AFTER_MS, send_one, call), 0);
}

static void on_say(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request;
    (void)arg;
    torc_server_call_reply(call, "x", 1);
}

/* Starts a server at `address` that answers /t.Test/Say, and never answers /t.Test/Hold. The caller frees the
 * server. */
static torc_server *pinged_server(const char *address, const struct torc_server_options *options)
{
    static int64_t over;
    struct torc_handler says = {TORC_SIZE(torc_handler), .unary = on_say};
    struct torc_handler holds = {TORC_SIZE(torc_handler), .stream = on_hold, .arg = &over};
    torc_server *server = torc_server_new(options, NULL);
    assert_int_equal(torc_server_add_method(server, "/t.Test/Say", &says, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "/t.Test/Hold", &holds, NULL), 0);
    assert_int_equal(torc_server_listen(server, address, torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    return server;
}

static int64_t connections(const torc_server *server)
{
    return torc_server_count(server, TORC_SERVER_CONNECTIONS);
}

/* A8: the keepalive time that too_many_pings has doubled stays the channel's, also when its policy drops the connection
 * (pick_first) and for the addresses of other servers (round_robin). */
static void test_too_many_pings(void **state)
{
    static const char *const policies[] = {"{\"loadBalancingConfig\":[{\"pick_first\":{}}]}",
                                           "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct torc_server_options so = {TORC_SIZE(torc_server_options), .min_ping_interval_ms = 60000,
                                         .pings_without_calls = TORC_ON};
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options),    .credentials = torc_credentials_insecure(),
                                         .service_config_json = policies[i], .keepalive_time_ms = 10000,
                                         .keepalive_without_calls = TORC_ON, .idle_timeout_ms = -1};
        char said[128];
        world = torc_testing_new(1, NULL);
        torc_server *one = pinged_server(SERVER, &so), *two = pinged_server("10.0.0.2:443", &so);
        torc_channel *channel = torc_channel_new(NULL, "ipv4:10.0.0.1:443,10.0.0.2:443", &o, NULL);
        for (int n = 0; n < 10; n++) {
            assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
            assert_int_equal(torc_testing_advance(world, 300000), 0);
        }
        /* With a ping every 10 s, 20 s or 40 s the third early ping ends the connection; every 80 s is allowed. */
        assert_int_equal(connections(one), 4);
        assert_int_equal(connections(two), i == 0 ? 0 : 4);
        torc_server_free(two);
        world_end(one, channel);
    }
}

/* After a pause of a client's keepalive time a PING goes with the next RPC, because silence without an RPC counts, too.
 * A server whose min_ping_interval_ms is the client's keepalive time does not take these PINGs for early ones, even if
 * it sends nothing between them. */
static void test_pings_after_pauses(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .keepalive_time_ms = 300000, .idle_timeout_ms = -1};
    char said[128];
    world = torc_testing_new(1, NULL);
    torc_server *server = pinged_server(SERVER, NULL);
    torc_channel *channel = torc_channel_new(NULL, SERVER, &o, NULL);
    for (int n = 0; n < 12; n++) {
        assert_int_equal(say(channel, NULL, said), TORC_STATUS_OK);
        assert_int_equal(torc_testing_advance(world, 300000 + n), 0);
    }
    for (int n = 0; n < 12; n++) {
        torc_stream *stream = torc_stream_open(channel, "t.Test/Hold", NULL, NULL);
        assert_int_equal(torc_testing_advance(world, 10), 0);
        torc_stream_free(stream);
        assert_int_equal(torc_testing_advance(world, 300000 + n), 0);
    }
    assert_int_equal(torc_channel_state(channel, 0), TORC_CONNECTIVITY_READY);
    assert_int_equal(connections(server), 1);
    /* If a connection fell silent in the pause, the next RPC fails after the keepalive timeout. */
    assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
    int64_t began = torc_time_ms();
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 600000};
    assert_int_equal(say(channel, &call, said), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(said, "keepalive"));
    assert_int_equal(torc_time_ms() - began, 20000);
    world_end(server, channel);
}

/* A18: a server with keepalive gives a connection up when what it sent stays unacknowledged for keepalive_timeout_ms; a
 * server without keepalive waits for Linux's quarter of an hour. */
static void test_a_client_that_acknowledges_nothing(void **state)
{
    static const struct {
        int64_t keepalive_time_ms, lasts_ms;
    } rows[] = {{0, 20000}, {-1, 900000}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int64_t over = 0;
        struct torc_server_options so = {TORC_SIZE(torc_server_options),
                                         .keepalive_time_ms = rows[i].keepalive_time_ms};
        struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_hold_and_send, .arg = &over};
        world = torc_testing_new(1, NULL);
        torc_server *server = torc_server_new(&so, NULL);
        assert_int_equal(torc_server_add_method(server, "/t.Test/Hold", &handler, NULL), 0);
        assert_int_equal(torc_server_listen(server, SERVER, torc_credentials_insecure(), NULL, NULL), 0);
        assert_int_equal(torc_server_start(server, NULL), 0);
        torc_channel *channel = torc_channel_new(NULL, SERVER, NULL, NULL);
        torc_stream *stream = torc_stream_open(channel, "t.Test/Hold", NULL, NULL);
        assert_int_equal(torc_testing_advance(world, 1000), 0);
        assert_int_equal(torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT), 0);
        int64_t sent = torc_time_ms() + SEND_AFTER_MS - 1000;
        assert_int_equal(torc_testing_advance(world, SEND_AFTER_MS + rows[i].lasts_ms), 0);
        assert_int_equal(over - sent, rows[i].lasts_ms);
        torc_stream_free(stream);
        world_end(server, channel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_late_answer),
        cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_a_handler_that_sleeps),
        cmocka_unit_test(test_a_handler_that_sleeps_long),
        cmocka_unit_test(test_a_relay),
        cmocka_unit_test(test_handlers_that_are_left),
        cmocka_unit_test(test_a_handler_that_polls),
        cmocka_unit_test(test_the_same_again),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_too_many_pings),
        cmocka_unit_test(test_pings_after_pauses),
        cmocka_unit_test(test_a_client_that_acknowledges_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
