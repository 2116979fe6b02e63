/* Compressed messages of many clients (fakes/h2 over fakes/pipe) of a server: what one turn of the manual loop does,
 * and who waits for whom.
 *
 * The first GUESTS clients send or take compressed messages. One more, the last, sends or takes a plain message for
 * comparison. Two tests differ: in connections_share_a_turn the last client also sends a compressed message, in a
 * second RPC; in who_goes_does_not_wait it is idle. A compressed message inflates to BYTES, which is the whole ration
 * of a turn (io/ration.h). The server's handler reads all messages, or sends one reply if `replies` is set. `init` or
 * init_sending makes the loop, the server and the clients, and `fini` frees them. */
#include <limits.h>
#include <stdio.h>

#include "base/mem.h"
#include "http2/framing.h"
#include "server/call.h"
#include "server/server.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { GUESTS = 8, STREAMS = 2, MESSAGES = 3, BYTES = 1 << 20 };

/* An RPC. Its path is "/t.S/" and two digits: the indexes of its guest and stream in `rpcs`. */
struct rpc {
    struct tc_server_call *call;
    unsigned messages;
    bool ended;
    int code; /* of the status that on_end had */
};

struct guest {
    struct fake_pipe *pipe;
    struct fake_h2 *peer;
};

struct fixture {
    struct tc_loop *loop;
    struct tc_server *server;
    struct guest guests[GUESTS + 1];
    struct rpc rpcs[GUESTS + 1][STREAMS];
    bool replies;       /* an RPC is answered with BYTES zeros, compressed for a client that takes gzip */
    struct tc_buf bomb; /* a message of BYTES zeros, compressed, with its prefix */
};

static void on_message(void *arg, struct tc_rstr *message)
{
    struct rpc *rpc = arg;
    rpc->messages++;
    tc_rstr_unref(message);
    tc_server_call_read(rpc->call);
}

static void on_end(void *arg, const struct tc_status *why)
{
    struct rpc *rpc = arg;
    rpc->ended = true;
    rpc->code = why->code;
}

static void on_call(void *arg, struct tc_server_call *call)
{
    static const struct tc_server_call_events events = {.on_message = on_message, .on_end = on_end};
    struct fixture *f = arg;
    const char *digits = (const char *)tc_server_call_path(call).data + 5;
    struct rpc *rpc = &f->rpcs[digits[0] - '0'][digits[1] - '0'];
    rpc->call = call;
    tc_server_call_set_events(call, &events, rpc);
    if (!f->replies) {
        tc_server_call_read(call);
        return;
    }
    char *zeros = tc_calloc(1, BYTES);
    tc_server_call_send_headers(call, NULL, TC_H2_GZIP);
    tc_server_call_reply(call, tc_slice_of(zeros, BYTES));
    tc_free(zeros);
}

/* max_send_bytes: the server's max_send_message_bytes. */
static void init_sending(struct fixture *f, size_t max_send_bytes)
{
    struct tc_server_opts opts;
    char *zeros = tc_calloc(1, BYTES);
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(zeros, BYTES));
    uint8_t prefix[TC_H2_PREFIX_LEN];
    memset(f, 0, sizeof(*f));
    tc_h2_prefix(prefix, true, packed->len);
    tc_buf_append(&f->bomb, prefix, sizeof(prefix));
    tc_buf_append(&f->bomb, packed->data, packed->len);
    tc_rstr_unref(packed);
    tc_free(zeros);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 3});
    tc_server_opts_init(&opts);
    opts.http2.limits.max_send_message_bytes = max_send_bytes;
    f->server = tc_server_new(f->loop, &opts);
    tc_server_set_default(f->server, on_call, f);
    for (size_t i = 0; i <= GUESTS; i++) {
        struct guest *g = &f->guests[i];
        g->pipe = fake_pipe_new(f->loop);
        g->peer = fake_h2_new(g->pipe, 1, false);
        tc_server_accept(f->server, fake_pipe_end(g->pipe, 0));
        fake_h2_start(g->peer);
    }
    tc_loop_drain(f->loop);
}

static void init(struct fixture *f)
{
    init_sending(f, SIZE_MAX);
}

static void fini(struct fixture *f)
{
    for (size_t i = 0; i <= GUESTS; i++) {
        fake_pipe_finish(f->guests[i].pipe, 1);
        tc_loop_drain(f->loop);
        fake_h2_free(f->guests[i].peer);
        fake_pipe_free(f->guests[i].pipe);
    }
    tc_server_free(f->server);
    tc_loop_drain(f->loop);
    tc_loop_free(f->loop);
    tc_buf_fini(&f->bomb);
}

/* Begins RPC `stream` (0 or 1) of a guest, and leaves the request open. `fields`: further fields of the request. */
static void ask(struct fixture *f, size_t guest, unsigned stream, const char *fields)
{
    char text[300];
    snprintf(text, sizeof(text),
             ":method: POST\n:scheme: http\n:path: /t.S/%zu%u\n:authority: a\nte: trailers\n"
             "content-type: application/grpc\n%s",
             guest, stream, fields);
    fake_h2_headers(f->guests[guest].peer, 2 * stream + 1, text, false);
}

/* Each guest but the last begins two RPCs of three messages, each of which inflates to 1 MiB. */
static void ask_with_bombs(struct fixture *f)
{
    for (size_t i = 0; i < GUESTS; i++) {
        fake_h2_hold(f->guests[i].peer, true);
        for (unsigned k = 0; k < STREAMS; k++) {
            ask(f, i, k, "grpc-encoding: gzip\n");
            for (int m = 0; m < MESSAGES; m++)
                fake_h2_data(f->guests[i].peer, 2 * k + 1, f->bomb.data, f->bomb.len, false);
        }
        fake_h2_hold(f->guests[i].peer, false);
    }
}

/* Returns how many bombs were inflated for all guests but the last. Stores the least and the most for one of these
 * guests. */
static unsigned inflated(const struct fixture *f, unsigned *least, unsigned *most)
{
    unsigned all = 0;
    *least = UINT_MAX;
    *most = 0;
    for (size_t i = 0; i < GUESTS; i++) {
        unsigned mine = 0;
        for (unsigned k = 0; k < STREAMS; k++)
            mine += f->rpcs[i][k].messages;
        *least = TC_MIN(*least, mine);
        *most = TC_MAX(*most, mine);
        all += mine;
    }
    return all;
}

/* A turn inflates at most two messages for all connections together: one with what is left of the ration, one with the
 * ration that is renewed at the turn's end. Connections get equal shares, and so do the streams of a connection, but
 * the first stream may be ahead by what it got before any stream waited. A client whose message is not compressed does
 * not wait. */
static void connections_share_a_turn(void **state)
{
    struct fixture f;
    unsigned least, most, before = 0, turns = 0;
    (void)state;
    init(&f);
    ask_with_bombs(&f);
    ask(&f, GUESTS, 0, "");
    fake_h2_message(f.guests[GUESTS].peer, 1, "plain", 5, false);
    ask(&f, GUESTS, 1, "grpc-encoding: gzip\n");
    fake_h2_data(f.guests[GUESTS].peer, 3, f.bomb.data, f.bomb.len, false);
    while (before < GUESTS * STREAMS * MESSAGES) {
        assert_true(++turns < 1000);
        tc_loop_turn(f.loop, 0);
        unsigned now = inflated(&f, &least, &most);
        assert_in_range(now - before, 0, 2);
        assert_in_range(most - least, 0, 2);
        if (now > 2)
            assert_int_equal(f.rpcs[GUESTS][0].messages, 1);
        if (most > 2)
            assert_int_equal(f.rpcs[GUESTS][1].messages, 1);
        for (size_t i = 0; i < GUESTS; i++)
            assert_in_range(f.rpcs[i][0].messages + 1u, f.rpcs[i][1].messages, f.rpcs[i][1].messages + 3u);
        before = now;
    }
    fini(&f);
}

/* Clients that reset, or go, while their messages wait: their RPCs end at once, and the others go on. */
static void who_goes_does_not_wait(void **state)
{
    struct fixture f;
    unsigned least, most;
    (void)state;
    init(&f);
    ask_with_bombs(&f);
    for (int i = 0; i < 3; i++)
        tc_loop_turn(f.loop, 0);
    assert_in_range(inflated(&f, &least, &most), 1, 6);
    fake_h2_rst(f.guests[GUESTS - 1].peer, 1, 8);
    fake_pipe_finish(f.guests[GUESTS - 2].pipe, 1);
    for (int i = 0; i < 3; i++)
        tc_loop_turn(f.loop, 0);
    assert_true(f.rpcs[GUESTS - 1][0].ended);
    assert_false(f.rpcs[GUESTS - 1][1].ended);
    for (unsigned k = 0; k < STREAMS; k++)
        assert_true(f.rpcs[GUESTS - 2][k].ended);
    assert_in_range(inflated(&f, &least, &most), 4, 12);
    tc_loop_drain(f.loop);
    assert_int_equal(f.rpcs[GUESTS - 1][1].messages, MESSAGES);
    for (size_t i = 0; i < GUESTS - 2; i++)
        for (unsigned k = 0; k < STREAMS; k++)
            assert_int_equal(f.rpcs[i][k].messages, MESSAGES);
    fini(&f);
}

/* Asks for one reply for each guest; the last guest does not accept gzip. */
static void ask_for_replies(struct fixture *f)
{
    f->replies = true;
    for (size_t i = 0; i <= GUESTS; i++)
        ask(f, i, 0, i < GUESTS ? "grpc-accept-encoding: gzip\n" : "");
}

static size_t queued_bytes(const struct fixture *f)
{
    struct tc_server_counts counts;
    tc_server_counts(f->server, &counts);
    return counts.queued_bytes;
}

/* Replies are compressed in pieces, connections in turns. A client that does not accept gzip does not wait, and a
 * client that goes leaves its turns to the others. max_send_bytes: as in init_sending. */
static void compressed_in_turns(size_t max_send_bytes)
{
    struct fixture f;
    bool came[GUESTS] = {0};
    unsigned all = 0, turns = 0;
    init_sending(&f, max_send_bytes);
    ask_for_replies(&f);
    while (all < GUESTS - 2) {
        assert_true(++turns < 1000);
        tc_loop_turn(f.loop, 0);
        if (turns == 4)
            assert_non_null(fake_h2_expect(f.guests[GUESTS].peer, FAKE_H2_DATA, 1));
        if (turns == 10) {
            fake_h2_rst(f.guests[0].peer, 1, 8);
            fake_pipe_finish(f.guests[1].pipe, 1);
        }
        unsigned now = 0;
        for (size_t i = 2; i < GUESTS; i++)
            if (!came[i])
                now += came[i] = fake_h2_expect(f.guests[i].peer, FAKE_H2_DATA, 1) != NULL;
        assert_in_range(now, 0, 2);
        all += now;
    }
    assert_in_range(turns, 40, 80);
    assert_true(f.rpcs[0][0].ended);
    assert_true(f.rpcs[1][0].ended);
    tc_loop_drain(f.loop);
    assert_int_equal(queued_bytes(&f), tc_server_message_cost(BYTES)); /* the plain reply exceeds the window */
    fini(&f);
}

static void replies_are_compressed_in_turns(void **state)
{
    (void)state;
    compressed_in_turns(SIZE_MAX);
    /* The limit is the size of the plain reply. An upper bound of the compressed size, taken before gzip runs, would
     * exceed the limit: the limit must be compared with the compressed size itself. */
    compressed_in_turns(BYTES);
}

/* A reply above the limit, compressed or plain, ends its RPC with RESOURCE_EXHAUSTED. */
static void replies_that_become_too_large(void **state)
{
    struct fixture f;
    (void)state;
    init_sending(&f, 500);
    ask_for_replies(&f);
    tc_loop_drain(f.loop);
    for (size_t i = 0; i <= GUESTS; i++) {
        fake_h2_expect(f.guests[i].peer, FAKE_H2_HEADERS, 1);
        const struct fake_h2_frame *frame = fake_h2_expect(f.guests[i].peer, FAKE_H2_HEADERS, 1); /* the trailers */
        assert_non_null(frame);
        assert_non_null(strstr(frame->headers, "grpc-status: 8\n"));
        assert_non_null(strstr(frame->headers, "grpc-message: message to send larger than max ("));
        assert_true(f.rpcs[i][0].ended);
        assert_int_equal(f.rpcs[i][0].code, TORC_STATUS_RESOURCE_EXHAUSTED);
    }
    assert_int_equal(queued_bytes(&f), 0);
    fini(&f);
}

/* A reply is compressed once its client's windows are open. From then on its compressed bytes count as queued beside
 * the reply itself, until they have left. */
static void who_takes_nothing_costs_nothing(void **state)
{
    struct fixture f;
    const size_t cost = tc_server_message_cost(BYTES);
    (void)state;
    init(&f);
    for (size_t i = 0; i <= GUESTS; i++)
        fake_h2_setting(f.guests[i].peer, 4, 0);
    tc_loop_drain(f.loop);
    ask_for_replies(&f);
    tc_loop_drain(f.loop);
    assert_int_equal(queued_bytes(&f), (GUESTS + 1) * cost);
    fake_h2_window(f.guests[3].peer, 1, 100);
    tc_loop_drain(f.loop);
    assert_int_equal(queued_bytes(&f), (GUESTS + 1) * cost + f.bomb.len - TC_H2_PREFIX_LEN);
    assert_int_equal(fake_h2_expect(f.guests[3].peer, FAKE_H2_DATA, 1)->len, 100);
    fake_h2_window(f.guests[3].peer, 1, 100000);
    tc_loop_drain(f.loop);
    assert_int_equal(queued_bytes(&f), GUESTS * cost);
    const struct fake_h2_frame *frame = fake_h2_expect(f.guests[3].peer, FAKE_H2_DATA, 1);
    assert_int_equal(frame->len, f.bomb.len - 100);
    assert_memory_equal(frame->payload, f.bomb.data + 100, frame->len);
    fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_share_a_turn),        cmocka_unit_test(who_goes_does_not_wait),
        cmocka_unit_test(replies_are_compressed_in_turns), cmocka_unit_test(replies_that_become_too_large),
        cmocka_unit_test(who_takes_nothing_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
