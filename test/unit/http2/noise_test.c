/* Whatever bytes come: nothing aborts, nothing leaks, every call ends. Frames that are almost right, made from a seed.
 */
#include <stdio.h>

#include "base/random.h"
#include "server/grpc_server.h"
#include "support/cmocka.h"
#include "support/h2_client.h"

#define ROUNDS 1500
#define FRAMES 60

static const char *const fields[] = {
    TC_H2_OK_HEADERS,
    TC_H2_OK_HEADERS "grpc-encoding: gzip\n",
    "grpc-status: 0\n",
    TC_H2_OK_HEADERS "grpc-status: 7\ngrpc-message: %%%41\n",
    ":status: 503\n",
    ":status: 100\n",
    "x-bin: AA,====,YQ\n",
    ":method: POST\n:scheme: http\n:path: /t/Echo\n:authority: a\nte: trailers\ncontent-type: application/grpc\n",
    ":method: POST\n:scheme: http\n:path: /t/Echo\n:authority: a\ncontent-type: application/grpc\ngrpc-timeout: 1n\n"
    "grpc-encoding: gzip\n",
    ":method: GET\n:scheme: http\n:path: *\n",
};

static void random_frame(struct tc_h2_peer *peer, struct tc_rng *rng)
{
    static const char *const data[] = {"", "\0\0\0\0\1x", "\1\0\0\0\2ab", "\0\0\0\0\0", "\0\xff\xff\xff\xff", "\0\0\0"};
    static const size_t lens[] = {0, 6, 7, 5, 5, 3};
    char noise[64];
    uint32_t stream = (uint32_t)tc_rng_below(rng, 9) + (tc_rng_below(rng, 3) ? 1 : 0);
    bool end = tc_rng_below(rng, 4) == 0;
    size_t i;
    if (tc_rng_below(rng, 4))
        stream |= 1;
    switch (tc_rng_below(rng, 12)) {
    case 0:
    case 1:
    case 2:
        tc_h2_peer_headers(peer, stream, fields[tc_rng_below(rng, TC_ARRAY_LEN(fields))], end);
        break;
    case 3:
    case 4:
    case 5:
        i = tc_rng_below(rng, TC_ARRAY_LEN(data));
        tc_h2_peer_data(peer, stream, data[i], lens[i], end);
        break;
    case 6:
        tc_h2_peer_rst(peer, stream, (uint32_t)tc_rng_below(rng, 15));
        break;
    case 7:
        tc_h2_peer_window(peer, end ? stream : 0, (uint32_t)tc_rng_below(rng, 100000));
        break;
    case 8:
        tc_h2_peer_ping(peer, "12345678", end);
        break;
    case 9:
        tc_h2_peer_setting(peer, (uint16_t)tc_rng_below(rng, 10), (uint32_t)tc_rng_below(rng, 100000));
        break;
    case 10:
        if (tc_rng_below(rng, 10) == 0)
            tc_h2_peer_goaway(peer, stream, (uint32_t)tc_rng_below(rng, 15), "noise");
        break;
    default:
        for (i = 0; i < sizeof(noise); i++)
            noise[i] = (char)tc_rng_u64(rng);
        if (tc_rng_below(rng, 8) == 0)
            tc_h2_peer_frame(peer, (uint8_t)tc_rng_below(rng, 18), (uint8_t)tc_rng_u64(rng), stream, noise,
                             tc_rng_below(rng, sizeof(noise)));
    }
}

static void noise_at_a_client(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct tc_rng rng;
        struct tc_h2_test t;
        struct tc_h2_test_call calls[4];
        tc_rng_init_seed(&rng, seed);
        tc_h2_test_init(&t, NULL, seed % 3 == 0 ? 1 : 0);
        for (size_t i = 0; i < 4; i++)
            tc_h2_test_unary(&calls[i], &t);
        for (int i = 0; i < FRAMES && !t.closed; i++) {
            random_frame(t.peer, &rng);
            if (tc_rng_below(&rng, 3) == 0)
                tc_h2_test_run(&t);
        }
        tc_h2_test_run(&t);
        tc_pipe_finish(t.pipe, 1);
        tc_h2_test_run(&t);
        assert_int_equal(t.closed, 1);
        for (size_t i = 0; i < 4; i++) {
            if (calls[i].done != 1)
                fail_msg("seed %u: call %zu ended %u times", (unsigned)seed, i, calls[i].done);
            tc_h2_test_call_fini(&calls[i]);
        }
        tc_h2_test_fini(&t);
    }
}

static void on_echo(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    tc_server_call_reply(call, tc_rstr_slice(request));
}

static void noise_at_a_server(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct tc_rng rng;
        struct tc_server_counts counts;
        tc_rng_init_seed(&rng, seed);
        struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = seed});
        struct tc_pipe *pipe = tc_pipe_new(loop);
        struct tc_h2_peer *peer = tc_h2_peer_new(pipe, 1, false);
        struct tc_server *server = tc_server_new(loop, NULL);
        tc_server_add_unary(server, "/t/Echo", on_echo, NULL);
        tc_pipe_set_read_chunk(pipe, seed % 3 == 0 ? 1 : 0);
        tc_server_accept(server, tc_pipe_end(pipe, 0));
        tc_h2_peer_start(peer);
        for (int i = 0; i < FRAMES && !tc_pipe_closed(pipe, 0); i++) {
            random_frame(peer, &rng);
            if (tc_rng_below(&rng, 3) == 0)
                tc_loop_drain(loop);
        }
        tc_loop_drain(loop);
        tc_pipe_finish(pipe, 1);
        tc_loop_drain(loop);
        tc_server_counts(server, &counts);
        assert_int_equal(counts.open_connections, 0);
        assert_int_equal(counts.open_calls, 0);
        tc_server_free(server);
        tc_loop_drain(loop);
        tc_h2_peer_free(peer);
        tc_pipe_free(pipe);
        tc_loop_free(loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_at_a_client),
        cmocka_unit_test(noise_at_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
