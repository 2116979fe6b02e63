/* Whatever bytes come: nothing aborts, nothing leaks, every call ends. Frames that are almost right, made from a seed.
 */
#include <stdio.h>

#include "base/random.h"
#include "server/grpc_server.h"
#include "support/cmocka.h"
#include "support/h2_client.h"

#define ROUNDS 1500
#define FRAMES 60

#define REQUEST ":method: POST\n:scheme: http\n:path: /t/Echo\n:authority: a\ncontent-type: application/grpc\n"

static const char *const fields[] = {
    TC_H2_OK_HEADERS,
    TC_H2_OK_HEADERS "grpc-encoding: gzip\n",
    "grpc-status: 0\n",
    TC_H2_OK_HEADERS "grpc-status: 7\ngrpc-message: %%%41\n",
    ":status: 503\n",
    ":status: 100\n",
    "x-bin: AA,====,YQ\n",
    REQUEST "te: trailers\n",
    REQUEST "grpc-encoding: gzip\n",
    ":method: GET\n:scheme: http\n:path: *\n",
};

/* What keeps the noise near to what is allowed, so that a connection lives for a while. */
struct noise {
    struct tc_h2_peer *peer;
    struct tc_rng rng;
    bool client;
    uint32_t next; /* the next new stream of a client */
    bool begun[8]; /* a server's: headers were sent on stream 2n + 1 */
    bool ended[8]; /* and the end */
};

static size_t below(struct noise *n, size_t limit)
{
    return (size_t)tc_rng_below(&n->rng, limit);
}

static bool rarely(struct noise *n)
{
    return below(n, 150) == 0;
}

/* What a server sends behind the end of a stream ends the connection: seldom. */
static bool is_over(struct noise *n, uint32_t stream)
{
    return !n->client && stream / 2 < TC_ARRAY_LEN(n->ended) && n->ended[stream / 2] && !rarely(n);
}

static void note_end(struct noise *n, uint32_t stream, bool end)
{
    if (end && stream / 2 < TC_ARRAY_LEN(n->ended))
        n->ended[stream / 2] = true;
}

static void random_headers(struct noise *n, uint32_t stream)
{
    if (is_over(n, stream))
        return;
    size_t i = n->client ? 7 + below(n, 3) : below(n, 7);
    if (rarely(n))
        i = below(n, TC_ARRAY_LEN(fields));
    if (n->client && !rarely(n)) {
        stream = n->next;
        n->next += 2;
    }
    /* The first block of a server is a response, a later one ends the stream. */
    bool first = stream / 2 < TC_ARRAY_LEN(n->begun) && !n->begun[stream / 2];
    bool end = n->client || first ? below(n, 4) == 0 : !rarely(n);
    if (first)
        n->begun[stream / 2] = i != 5;
    tc_h2_peer_headers(n->peer, stream, fields[i], end);
    note_end(n, stream, end);
}

static void random_data(struct noise *n, uint32_t stream)
{
    static const char *const data[] = {"", "\0\0\0\0\1x", "\1\0\0\0\2ab", "\0\0\0\0\0", "\0\xff\xff\xff\xff", "\0\0\0"};
    static const size_t lens[] = {0, 6, 7, 5, 5, 3};
    size_t i = below(n, 4) ? 1 : below(n, TC_ARRAY_LEN(data));
    bool end = below(n, 3) == 0;
    if (is_over(n, stream))
        return;
    tc_h2_peer_data(n->peer, stream, data[i], lens[i], end);
    note_end(n, stream, end);
}

static void garbage(struct noise *n, uint32_t stream)
{
    char bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)tc_rng_u64(&n->rng);
    tc_h2_peer_frame(n->peer, (uint8_t)below(n, 18), (uint8_t)tc_rng_u64(&n->rng), stream, bytes,
                     below(n, sizeof(bytes)));
}

static void random_frame(struct noise *n)
{
    static const uint16_t settings[] = {1, 3, 4, 6, 77};
    uint32_t stream = 1 + 2 * (uint32_t)below(n, 4);
    if (n->client && n->next > 9)
        stream = n->next - 2 - 2 * (uint32_t)below(n, 4);
    bool unknown = n->client ? stream >= n->next : !n->begun[stream / 2];
    if (rarely(n))
        stream = (uint32_t)below(n, 20);
    switch (unknown && !rarely(n) ? 0 : below(n, 14)) {
    case 0:
    case 1:
    case 2:
        random_headers(n, stream);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        random_data(n, stream);
        break;
    case 7:
        if (below(n, 4) == 0)
            tc_h2_peer_rst(n->peer, stream, (uint32_t)below(n, 15));
        break;
    case 8:
        tc_h2_peer_window(n->peer, below(n, 2) ? stream : 0, (uint32_t)below(n, 100000) + (rarely(n) ? 0 : 1));
        break;
    case 9:
        tc_h2_peer_ping(n->peer, "12345678", n->client || below(n, 2));
        break;
    case 10:
        tc_h2_peer_setting(n->peer, settings[below(n, TC_ARRAY_LEN(settings))], (uint32_t)below(n, 100000));
        break;
    case 11:
        if (rarely(n))
            tc_h2_peer_goaway(n->peer, n->client ? 0 : stream, (uint32_t)below(n, 15), "noise");
        break;
    default:
        if (rarely(n))
            garbage(n, stream);
    }
}

static void noise_at_a_client(void **state)
{
    (void)state;
    unsigned alive = 0, messages = 0, ok = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct noise noise = {0};
        struct tc_h2_test t;
        struct tc_h2_test_call calls[4];
        tc_rng_init_seed(&noise.rng, seed);
        tc_h2_test_init(&t, NULL, seed % 3 == 0 ? 1 : 0);
        noise.peer = t.peer;
        for (size_t i = 0; i < 4; i++)
            tc_h2_test_unary(&calls[i], &t);
        for (int i = 0; i < FRAMES && !t.closed; i++) {
            random_frame(&noise);
            if (below(&noise, 3) == 0)
                tc_h2_test_run(&t);
        }
        tc_h2_test_run(&t);
        alive += !t.closed;
        tc_pipe_finish(t.pipe, 1);
        tc_h2_test_run(&t);
        assert_int_equal(t.closed, 1);
        for (size_t i = 0; i < 4; i++) {
            if (calls[i].done != 1)
                fail_msg("seed %u: call %zu ended %u times", (unsigned)seed, i, calls[i].done);
            messages += calls[i].messages;
            ok += calls[i].code == 0;
            tc_h2_test_call_fini(&calls[i]);
        }
        tc_h2_test_fini(&t);
    }
    /* The noise was near enough to sense to get somewhere. */
    assert_in_range(alive, ROUNDS / 20, ROUNDS - 1);
    assert_true(messages > ROUNDS / 2);
    assert_true(ok > ROUNDS / 10);
}

static void on_echo(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    tc_server_call_reply(call, tc_rstr_slice(request));
}

static void noise_at_a_server(void **state)
{
    (void)state;
    uint64_t requests = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct noise noise = {.client = true, .next = 1};
        struct tc_server_counts counts;
        tc_rng_init_seed(&noise.rng, seed);
        struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = seed});
        struct tc_pipe *pipe = tc_pipe_new(loop);
        struct tc_h2_peer *peer = tc_h2_peer_new(pipe, 1, false);
        struct tc_server *server = tc_server_new(loop, NULL);
        noise.peer = peer;
        tc_server_add_unary(server, "/t/Echo", on_echo, NULL);
        tc_pipe_set_read_chunk(pipe, seed % 3 == 0 ? 1 : 0);
        tc_server_accept(server, tc_pipe_end(pipe, 0));
        tc_h2_peer_start(peer);
        for (int i = 0; i < FRAMES && !tc_pipe_closed(pipe, 0); i++) {
            random_frame(&noise);
            if (below(&noise, 3) == 0)
                tc_loop_drain(loop);
        }
        tc_loop_drain(loop);
        tc_pipe_finish(pipe, 1);
        tc_loop_drain(loop);
        tc_server_counts(server, &counts);
        assert_int_equal(counts.open_connections, 0);
        assert_int_equal(counts.open_calls, 0);
        requests += counts.requests;
        tc_server_free(server);
        tc_loop_drain(loop);
        tc_h2_peer_free(peer);
        tc_pipe_free(pipe);
        tc_loop_free(loop);
    }
    assert_true(requests > 3 * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_at_a_client),
        cmocka_unit_test(noise_at_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
