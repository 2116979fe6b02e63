/* Random frames, most of them almost right, from fakes/h2 to a client (kits/h2) and to a server: nothing aborts,
 * nothing leaks (LeakSanitizer would report it), every call ends.
 *
 * A round is made from a seed, which is the round's number. A round draws at most FRAMES frames for a connection of
 * its own, on a manual loop, and then ends the peer's bytes. struct noise knows what was sent, so that most frames are
 * valid; `rarely` lets frames through that are not. One thread. */
#include <stdio.h>

#include "base/random.h"
#include "server/call.h"
#include "server/server.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define ROUNDS 1500
#define FRAMES 60

#define REQUEST ":method: POST\n:scheme: http\n:path: /t/Echo\n:authority: a\ncontent-type: application/grpc\n"

/* Header blocks: seven as a server sends them, then three as a client does. */
static const char *const fields[] = {
    KIT_H2_OK_HEADERS,
    KIT_H2_OK_HEADERS "grpc-encoding: gzip\n",
    "grpc-status: 0\n",
    KIT_H2_OK_HEADERS "grpc-status: 7\ngrpc-message: %%%41\n",
    ":status: 503\n",
    ":status: 100\n",
    "x-bin: AA,====,YQ\n",
    REQUEST "te: trailers\n",
    REQUEST "grpc-encoding: gzip\n",
    ":method: GET\n:scheme: http\n:path: *\n",
};

/* State that keeps the noise nearly valid, so that a connection lives for a while. */
struct noise {
    struct fake_h2 *peer;
    struct tc_rng rng;
    bool client;   /* the noise is a client's, sent to a server */
    uint32_t next; /* the next new stream of a client */
    bool begun[8]; /* headers, other than 1xx, were sent on stream 2n + 1 */
    bool ended[8]; /* END_STREAM was sent on stream 2n + 1 */
};

/* Returns a random number below `limit`. */
static size_t below(struct noise *n, size_t limit)
{
    return (size_t)tc_rng_below(&n->rng, limit);
}

/* Returns true once in 150 times on average. */
static bool rarely(struct noise *n)
{
    return below(n, 150) == 0;
}

/* Returns true if a server's noise has ended the stream: a frame after the end would end the connection. Lets
 * such a frame through rarely, by returning false. Always returns false for a client's noise. */
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
    /* A server's later block ends the stream, with rare exceptions; any other block does so once in four times. */
    bool first = stream / 2 < TC_ARRAY_LEN(n->begun) && !n->begun[stream / 2];
    bool end = n->client || first ? below(n, 4) == 0 : !rarely(n);
    if (first)
        n->begun[stream / 2] = i != 5;
    fake_h2_headers(n->peer, stream, fields[i], end);
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
    fake_h2_data(n->peer, stream, data[i], lens[i], end);
    note_end(n, stream, end);
}

static void garbage(struct noise *n, uint32_t stream)
{
    char bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)tc_rng_u64(&n->rng);
    fake_h2_frame(n->peer, (uint8_t)below(n, 18), (uint8_t)tc_rng_u64(&n->rng), stream, bytes, below(n, sizeof(bytes)));
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
            fake_h2_rst(n->peer, stream, (uint32_t)below(n, 15));
        break;
    case 8:
        fake_h2_window(n->peer, below(n, 2) ? stream : 0, (uint32_t)below(n, 100000) + (rarely(n) ? 0 : 1));
        break;
    case 9:
        fake_h2_ping(n->peer, "12345678", n->client || below(n, 2));
        break;
    case 10:
        fake_h2_setting(n->peer, settings[below(n, TC_ARRAY_LEN(settings))], (uint32_t)below(n, 100000));
        break;
    case 11:
        if (rarely(n))
            fake_h2_goaway(n->peer, n->client ? 0 : stream, (uint32_t)below(n, 15), "noise");
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
        struct kit_h2 t;
        struct kit_h2_call calls[4];
        tc_rng_init_seed(&noise.rng, seed);
        kit_h2_init(&t, NULL, seed % 3 == 0 ? 1 : 0);
        noise.peer = t.peer;
        for (size_t i = 0; i < 4; i++)
            kit_h2_unary(&calls[i], &t);
        for (int i = 0; i < FRAMES && !t.closed; i++) {
            random_frame(&noise);
            if (below(&noise, 3) == 0)
                kit_h2_run(&t);
        }
        kit_h2_run(&t);
        alive += !t.closed;
        fake_pipe_finish(t.pipe, 1);
        kit_h2_run(&t);
        assert_int_equal(t.closed, 1);
        for (size_t i = 0; i < 4; i++) {
            if (calls[i].done != 1)
                fail_msg("seed %u: call %zu ended %u times", (unsigned)seed, i, calls[i].done);
            messages += calls[i].messages;
            ok += calls[i].code == 0;
            kit_h2_call_fini(&calls[i]);
        }
        kit_h2_fini(&t);
    }
    /* The noise got far enough to mean something. */
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
        struct fake_pipe *pipe = fake_pipe_new(loop);
        struct fake_h2 *peer = fake_h2_new(pipe, 1, false);
        struct tc_server *server = tc_server_new(loop, NULL);
        noise.peer = peer;
        tc_server_add_unary(server, "/t/Echo", on_echo, NULL);
        fake_pipe_set_read_chunk(pipe, seed % 3 == 0 ? 1 : 0);
        tc_server_accept(server, fake_pipe_end(pipe, 0));
        fake_h2_start(peer);
        for (int i = 0; i < FRAMES && !fake_pipe_closed(pipe, 0); i++) {
            random_frame(&noise);
            if (below(&noise, 3) == 0)
                tc_loop_drain(loop);
        }
        tc_loop_drain(loop);
        fake_pipe_finish(pipe, 1);
        tc_loop_drain(loop);
        tc_server_counts(server, &counts);
        assert_int_equal(counts.open_connections, 0);
        assert_int_equal(counts.open_calls, 0);
        requests += counts.requests;
        tc_server_free(server);
        tc_loop_drain(loop);
        fake_h2_free(peer);
        fake_pipe_free(pipe);
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
