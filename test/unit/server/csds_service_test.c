/* The client status service of a server: which requests share an answer, and when no answer is made.
 *
 * Service and server are real, with the methods of controlplane/csds. The test plays the maker of answers and, by
 * fakes/h2 over fakes/pipe on a manual loop, the clients. `make` only notes that the service wants an answer. The test
 * delivers the answer later: by `made`, or by tc_csds_service_made if the answer is too large. Answers are bytes of the
 * test's choice, told apart by the first one. All answers together may have 250,000 bytes. `setup` connects PEERS
 * clients and stores the fixture in *state; `teardown` frees it. */
#include "server/csds_service.h"

#include <stdio.h>

#include "base/mem.h"
#include "controlplane/csds.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

#define SERVICE "/envoy.service.status.v3.ClientStatusDiscoveryService/"
#define REQUEST(method)                                                                                                \
    ":method: POST\n:scheme: http\n:path: " SERVICE method                                                             \
    "\n:authority: a\nte: trailers\ncontent-type: application/grpc\n"
#define PEERS 4

struct fixture {
    struct tc_csds_service service;
    struct tc_loop *loop;
    struct tc_server *server;
    struct fake_pipe *pipes[PEERS];
    struct fake_h2 *peers[PEERS];
    unsigned begun;                 /* calls of `make` */
    bool without_contents, waiting; /* what the last call asked for; its answer was not delivered yet */
};

static void make(struct tc_csds_service *service, bool without_contents)
{
    struct fixture *f = TC_CONTAINER_OF(service, struct fixture, service);
    f->begun++;
    f->without_contents = without_contents;
    f->waiting = true;
}

/* Delivers the answer that was begun: `len` bytes, of which the first is `mark`. took_ns: how long the maker says that
 * it took. */
static void made(struct fixture *f, char mark, size_t len, uint64_t took_ns)
{
    char *bytes = tc_calloc(1, len);
    assert_true(f->waiting);
    f->waiting = false;
    bytes[0] = mark;
    tc_csds_service_made(&f->service, tc_rstr_new(bytes, len), len, took_ns);
    tc_free(bytes);
    tc_loop_drain(f->loop);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 3});
    f->server = tc_server_new(f->loop, NULL);
    f->service.make = make;
    f->service.max_bytes = 250000;
    tc_csds_register(f->server, &f->service);
    for (size_t i = 0; i < PEERS; i++) {
        f->pipes[i] = fake_pipe_new(f->loop);
        f->peers[i] = fake_h2_new(f->pipes[i], 1, false);
        tc_server_accept(f->server, fake_pipe_end(f->pipes[i], 0));
        fake_h2_start(f->peers[i]);
    }
    tc_loop_drain(f->loop);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_server_free(f->server);
    tc_csds_service_end(&f->service);
    tc_loop_drain(f->loop);
    for (size_t i = 0; i < PEERS; i++) {
        fake_h2_free(f->peers[i]);
        fake_pipe_free(f->pipes[i]);
    }
    tc_loop_free(f->loop);
    tc_free(f);
    return 0;
}

/* Sends a request from client i on stream `id`. The caller runs the loop. */
static void fetch(struct fixture *f, size_t i, uint32_t id, bool without_contents)
{
    fake_h2_headers(f->peers[i], id, REQUEST("FetchClientStatus"), false);
    fake_h2_message(f->peers[i], id, "\x18\x01", without_contents ? 2 : 0, true);
}

/* Asserts that an answer to the call has begun to come to client i, and that its first byte is `mark`. */
static void expect_mark(struct fixture *f, size_t i, uint32_t id, char mark)
{
    const struct fake_h2_frame *frame = fake_h2_expect(f->peers[i], FAKE_H2_DATA, id);
    assert_non_null(frame);
    assert_true(frame->len > 5);
    assert_int_equal(frame->payload[5], mark);
}

/* Asserts that headers or trailers of the call that have `part` in them have come to client i. */
static void expect_status(struct fixture *f, size_t i, uint32_t id, const char *part)
{
    const struct fake_h2_frame *frame = fake_h2_expect(f->peers[i], FAKE_H2_HEADERS, id);
    while (frame && !strstr(frame->headers, part))
        frame = fake_h2_expect(f->peers[i], FAKE_H2_HEADERS, id);
    if (!frame)
        fail_msg("no '%s' for %zu", part, i);
}

static void answers_are_shared(void **state)
{
    struct fixture *f = *state;
    fetch(f, 0, 1, false);
    fetch(f, 1, 1, false);
    tc_loop_drain(f->loop);
    assert_int_equal(f->begun, 1);
    fetch(f, 2, 1, false); /* comes after the answer was begun: gets the next one */
    tc_loop_drain(f->loop);
    assert_int_equal(f->begun, 1);
    made(f, 'a', 100, 0);
    expect_mark(f, 0, 1, 'a');
    expect_mark(f, 1, 1, 'a');
    assert_null(fake_h2_expect(f->peers[2], FAKE_H2_DATA, 1));
    assert_int_equal(f->begun, 2);
    made(f, 'b', 100, 0);
    expect_mark(f, 2, 1, 'b');
    expect_status(f, 2, 1, "grpc-status: 0\n");
    assert_int_equal(f->begun, 2);
}

/* Answers with contents and without are made in turns. */
static void kinds_take_turns(void **state)
{
    struct fixture *f = *state;
    fetch(f, 0, 1, false);
    fetch(f, 1, 1, true);
    tc_loop_drain(f->loop);
    bool first = f->without_contents;
    fetch(f, first ? 1 : 0, 3, first); /* more of the kind that is made */
    tc_loop_drain(f->loop);
    made(f, 'a', 100, 0);
    assert_int_equal(f->without_contents, !first);
    made(f, 'b', 100, 0);
    assert_int_equal(f->without_contents, first);
    made(f, 'c', 100, 0);
    assert_int_equal(f->begun, 3);
}

/* The maker rests for 20 times as long as the last answer took, at most 1 s. */
static void the_maker_rests(void **state)
{
    struct fixture *f = *state;
    fetch(f, 0, 1, false);
    tc_loop_drain(f->loop);
    made(f, 'a', 100, 3 * TC_NS_PER_MS);
    fetch(f, 0, 3, false);
    tc_loop_drain(f->loop);
    tc_loop_advance(f->loop, 59);
    assert_int_equal(f->begun, 1);
    tc_loop_advance(f->loop, 1);
    assert_int_equal(f->begun, 2);
    made(f, 'b', 100, 10 * TC_NS_PER_S);
    fetch(f, 0, 5, false);
    tc_loop_drain(f->loop);
    tc_loop_advance(f->loop, 1000); /* not 200 s */
    assert_int_equal(f->begun, 3);
}

/* The bytes of all answers are bounded. A window of 64 KiB takes no answer of 100,000 bytes whole: such an answer stays
 * until its calls are reset, or the test opens the windows of its clients. */
static void what_nobody_takes_is_bounded(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        fetch(f, i, 1, false);
        tc_loop_drain(f->loop);
        made(f, (char)('a' + i), 100000, 0);
    }
    assert_int_equal(f->service.answer_bytes, 200000);
    fetch(f, 2, 1, false);
    fetch(f, 3, 1, false);
    tc_loop_drain(f->loop);
    assert_int_equal(f->begun, 2);
    tc_loop_advance(f->loop, 4999);
    assert_int_equal(f->begun, 2);
    /* The oldest answer was not taken for 5 s: its call is reset. The requests that wait share the next answer. */
    tc_loop_advance(f->loop, 1);
    assert_non_null(fake_h2_expect(f->peers[0], FAKE_H2_RST_STREAM, 1));
    assert_int_equal(f->begun, 3);
    made(f, 'c', 100000, 0);
    assert_int_equal(f->service.answer_bytes, 200000);
    expect_mark(f, 2, 1, 'c');
    expect_mark(f, 3, 1, 'c');
    fetch(f, 0, 3, false);
    tc_loop_drain(f->loop);
    assert_non_null(fake_h2_expect(f->peers[1], FAKE_H2_RST_STREAM, 1));
    made(f, 'd', 100000, 0);
    /* Two clients share an answer, which is freed as soon as both have taken it. */
    fetch(f, 1, 3, false);
    tc_loop_drain(f->loop);
    for (size_t i = 2; i < 4; i++) {
        assert_int_equal(f->begun, 4);
        fake_h2_window(f->peers[i], 0, 1000000);
        fake_h2_window(f->peers[i], 1, 1000000);
        tc_loop_drain(f->loop);
    }
    assert_int_equal(f->begun, 5);
    made(f, 'e', 100, 0);
    fake_h2_window(f->peers[1], 0, 1000000); /* the window of its connection was used up */
    tc_loop_drain(f->loop);
    expect_mark(f, 1, 3, 'e');
}

static void an_answer_that_is_too_large(void **state)
{
    struct fixture *f = *state;
    fetch(f, 0, 1, false);
    tc_loop_drain(f->loop);
    f->waiting = false;
    tc_csds_service_made(&f->service, NULL, 300000, 0);
    tc_loop_drain(f->loop);
    expect_status(f, 0, 1,
                  "grpc-status: 8\ngrpc-message: client status larger than max (300000 vs. 250000); ask with "
                  "exclude_resource_contents");
    fetch(f, 0, 3, true);
    tc_loop_drain(f->loop);
    made(f, 'a', 100, 0);
    expect_mark(f, 0, 3, 'a');
}

/* The service begins an answer if the last answer of its kind would fit. Here there was no answer of its kind, and the
 * new one comes out too large for the room that is left: it is made again when there is more room. */
static void an_answer_that_has_grown(void **state)
{
    struct fixture *f = *state;
    fetch(f, 0, 1, false);
    tc_loop_drain(f->loop);
    made(f, 'a', 200000, 0);
    fetch(f, 1, 1, true);
    tc_loop_drain(f->loop);
    assert_int_equal(f->begun, 2);
    made(f, 'b', 100000, 0);
    assert_int_equal(f->service.answer_bytes, 200000);
    assert_null(fake_h2_expect(f->peers[1], FAKE_H2_DATA, 1));
    tc_loop_advance(f->loop, 4999);
    assert_int_equal(f->begun, 2);
    tc_loop_advance(f->loop, 1);
    assert_non_null(fake_h2_expect(f->peers[0], FAKE_H2_RST_STREAM, 1));
    assert_int_equal(f->begun, 3);
    assert_true(f->without_contents);
    made(f, 'c', 100000, 0);
    assert_int_equal(f->service.answer_bytes, 100000);
    expect_mark(f, 1, 1, 'c');
}

/* A client that gives up before the answer comes leaves nothing behind. */
static void gone_before_the_answer(void **state)
{
    struct fixture *f = *state;
    fetch(f, 0, 1, false);
    fake_h2_headers(f->peers[1], 1, REQUEST("StreamClientStatus"), false);
    fake_h2_message(f->peers[1], 1, "", 0, false);
    tc_loop_drain(f->loop);
    fake_h2_rst(f->peers[0], 1, 8);
    fake_pipe_finish(f->pipes[1], 1);
    tc_loop_drain(f->loop);
    made(f, 'a', 100, 0);
    assert_int_equal(f->service.answer_bytes, 0);
    assert_int_equal(f->begun, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(kinds_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(the_maker_rests, setup, teardown),
        cmocka_unit_test_setup_teardown(what_nobody_takes_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_is_too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_has_grown, setup, teardown),
        cmocka_unit_test_setup_teardown(gone_before_the_answer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
