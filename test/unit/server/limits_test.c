/* Limits of a server. Messages that it must not send: beyond its limit, and too long for gRPC's length prefix. RPCs
 * that take longer than their method allows. Clients that break the rules of HTTP/2. RPCs beyond max_handlers, or
 * beyond the max_calls of a default handler that was replaced.
 *
 * kits/server_pipe gives the server and a scripted client, on a manual loop. The tests of "the time of a method" and of
 * "HTTP/2" begin with timed_init, which makes one RPC, stream 1, whose handler answers nothing. timed_expect or
 * kit_server_pipe_fini frees what timed_init made. */
#include <stdio.h>
#include <sys/mman.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/server_pipe.h"

static void on_echo(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    tc_server_call_reply(call, tc_rstr_slice(request));
}

/* Makes a unary call on stream `id`, whose headers are `fields`. Asserts that the first headers of its answer have
 * `part` in them. */
static void expect_answer(struct kit_server_pipe *k, uint32_t id, const char *fields, const char *part)
{
    fake_h2_headers(k->peer, id, fields, false);
    fake_h2_message(k->peer, id, "x", 1, true);
    tc_loop_drain(k->loop);
    const struct fake_h2_frame *frame = fake_h2_expect(k->peer, FAKE_H2_HEADERS, id);
    assert_non_null(frame);
    if (!strstr(frame->headers, part))
        fail_msg("%s has no %s", frame->headers, part);
}

/* Sends `arg`, a string of the test's, and a second message. */
static void on_large(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)request;
    tc_server_call_send_ref(call, arg);
    tc_server_call_send(call, tc_slice_str("behind"));
    tc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* A message that is too large to send ends the call, and the client learns why. */
static void large_messages_to_send(void **state)
{
    (void)state;
    /* 5 GiB that are never read, and take no memory; a machine of 32 bits has no such message. */
    bool wide = SIZE_MAX > UINT32_MAX;
    size_t huge = wide ? (size_t)5 << 30 : 0;
    struct tc_rstr *rows[] = {mmap(NULL, sizeof(struct tc_rstr) + huge, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                              tc_rstr_str("twelve bytes")};
    static const char *const texts[] = {"message to send larger than max (5368709120 vs. 4294967295)",
                                        "message to send larger than max (12 vs. 10)"};
    assert_ptr_not_equal(rows[0], MAP_FAILED);
    tc_ref_init(&rows[0]->ref);
    rows[0]->len = huge;
    for (size_t i = wide ? 0 : 1; i < 2; i++) {
        struct kit_server_pipe k;
        struct tc_server_opts opts;
        char answer[256];
        tc_server_opts_init(&opts);
        if (i == 1)
            opts.http2.limits.max_send_message_bytes = 10;
        kit_server_pipe_init(&k, &opts);
        tc_server_add_unary(k.server, "/t.S/Echo", on_echo, NULL);
        tc_server_add_unary(k.server, "/t.S/Large", on_large, rows[i]);
        kit_server_pipe_connect(&k, 0);
        snprintf(answer, sizeof(answer), "grpc-status: 8\ngrpc-message: %s\n", texts[i]);
        expect_answer(&k, 1, KIT_SERVER_PIPE_REQUEST("/t.S/Large"), answer);
        expect_answer(&k, 3, KIT_SERVER_PIPE_REQUEST("/t.S/Echo"), ":status: 200\n");
        kit_server_pipe_fini(&k);
    }
    munmap(rows[0], sizeof(struct tc_rstr) + huge);
    tc_rstr_unref(rows[1]);
}

/* --- the time of a method --- */

struct timed {
    struct kit_server_pipe k;
    struct tc_server_call *call; /* the last of /t.S/Timed */
    int ends, end_code;          /* calls of timed_on_end; the code that the last one had */
};

static void timed_on_end(void *arg, const struct tc_status *why)
{
    struct timed *t = arg;
    t->ends++;
    t->end_code = why->code;
}

static const struct tc_server_call_events timed_events = {.on_end = timed_on_end};

static void on_timed(void *arg, struct tc_server_call *call)
{
    struct timed *t = arg;
    t->call = call;
    tc_server_call_set_events(call, &timed_events, t);
}

/* Makes the fixture, and begins an RPC with the headers `fields`, of a method that may take 100 ms. */
static void timed_init(struct timed *t, const char *fields)
{
    memset(t, 0, sizeof(*t));
    kit_server_pipe_init(&t->k, NULL);
    tc_server_add_method(t->k.server, "/t.S/Timed", on_timed, t);
    tc_server_add_unary(t->k.server, "/t.S/Echo", on_echo, NULL);
    tc_server_limit(t->k.server, "/t.S/Timed", &(struct tc_server_limits){.max_timeout_ms = 100});
    kit_server_pipe_connect(&t->k, 0);
    fake_h2_headers(t->k.peer, 1, fields, false);
    tc_loop_drain(t->k.loop);
}

/* Asserts that the RPC ends in `ms` from now, not a millisecond earlier, and how it ends. Then ends the fixture.
 * `answer`: part of the trailers that must come; NULL: no trailers may come. `reset`: the code of the RST_STREAM that
 * must come. */
static void timed_expect(struct timed *t, uint64_t ms, const char *answer, uint8_t reset)
{
    struct tc_server_counts counts;
    tc_loop_advance(t->k.loop, ms - 1);
    assert_int_equal(t->ends, 0);
    tc_loop_advance(t->k.loop, 1);
    assert_int_equal(t->ends, 1);
    assert_int_equal(t->end_code, TORC_STATUS_DEADLINE_EXCEEDED);
    const struct fake_h2_frame *frame;
    bool trailers = false;
    while ((frame = fake_h2_next(t->k.peer)) && frame->type != FAKE_H2_RST_STREAM)
        if (frame->type == FAKE_H2_HEADERS && frame->flags & FAKE_H2_END_STREAM) {
            assert_true(answer && strstr(frame->headers, answer));
            trailers = true;
        }
    assert_int_equal(trailers, answer != NULL);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], reset);
    tc_server_counts(t->k.server, &counts);
    assert_int_equal(counts.open_calls, 0);
    expect_answer(&t->k, 3, KIT_SERVER_PIPE_REQUEST("/t.S/Echo"), ":status: 200\n");
    kit_server_pipe_fini(&t->k);
}

#define TIMED KIT_SERVER_PIPE_REQUEST("/t.S/Timed")
#define TOO_LONG "grpc-status: 4\ngrpc-message: the RPC took longer than the server allows for its method\n"
enum { NO_ERROR = 0, CANCEL = 8 };

static void time_of_a_method(void **state)
{
    (void)state;
    static char large[100000];
    struct timed t;
    timed_init(&t, TIMED);
    timed_expect(&t, 100, TOO_LONG, NO_ERROR);
    timed_init(&t, TIMED "grpc-timeout: 101m\n");
    timed_expect(&t, 100, TOO_LONG, NO_ERROR);
    timed_init(&t, TIMED);
    tc_server_call_send(t.call, tc_slice_str("on its way"));
    timed_expect(&t, 100, TOO_LONG, NO_ERROR);
    /* A part of the message has left, so no trailers may follow. */
    timed_init(&t, TIMED);
    tc_server_call_send(t.call, tc_slice_of(large, sizeof(large)));
    timed_expect(&t, 100, NULL, CANCEL);
    timed_init(&t, TIMED);
    tc_server_call_send(t.call, tc_slice_of(large, sizeof(large)));
    tc_server_call_finish(t.call, TORC_STATUS_OK, NULL, NULL);
    timed_expect(&t, 100, NULL, CANCEL);
    /* The client's own deadline is earlier: the client no longer waits for a status. */
    timed_init(&t, TIMED "grpc-timeout: 99m\n");
    timed_expect(&t, 99, NULL, CANCEL);
}

/* --- HTTP/2 --- */

/* Runs the loop. Returns the next RST_STREAM or GOAWAY, valid as that of fake_h2_next is; NULL if none has come. */
static const struct fake_h2_frame *next_end(struct timed *t)
{
    const struct fake_h2_frame *frame;
    tc_loop_drain(t->k.loop);
    while ((frame = fake_h2_next(t->k.peer)) && frame->type != FAKE_H2_RST_STREAM && frame->type != FAKE_H2_GOAWAY)
        continue;
    return frame;
}

enum { PROTOCOL_ERROR = 1, FLOW_CONTROL_ERROR = 3 };

static void window_overrun(void **state)
{
    TC_CASE(SV26);
    (void)state;
    static char data[16384];
    struct timed t;
    timed_init(&t, TIMED);
    for (int i = 0; i < 5; i++)
        fake_h2_data(t.k.peer, 1, data, sizeof(data), false);
    const struct fake_h2_frame *frame = next_end(&t);
    assert_non_null(frame);
    assert_int_equal(frame->type, FAKE_H2_RST_STREAM);
    assert_int_equal(frame->payload[3], FLOW_CONTROL_ERROR);
    assert_int_equal(t.ends, 1);
    expect_answer(&t.k, 3, KIT_SERVER_PIPE_REQUEST("/t.S/Echo"), ":status: 200\n");
    kit_server_pipe_fini(&t.k);
}

static void numbers_of_streams(void **state)
{
    TC_CASE(SV27);
    (void)state;
    struct timed t;
    timed_init(&t, TIMED);
    struct tc_server_call *first = t.call;
    fake_h2_headers(t.k.peer, 7, TIMED, false);
    tc_loop_drain(t.k.loop);
    assert_ptr_not_equal(t.call, first);
    struct tc_server_call *second = t.call;
    fake_h2_headers(t.k.peer, 5, TIMED, false); /* lower than the last: no handler is called */
    assert_null(next_end(&t));
    assert_ptr_equal(t.call, second);
    fake_h2_headers(t.k.peer, 8, TIMED, false); /* even */
    const struct fake_h2_frame *frame = next_end(&t);
    assert_non_null(frame);
    assert_int_equal(frame->type, FAKE_H2_GOAWAY);
    assert_int_equal(frame->payload[7], PROTOCOL_ERROR);
    assert_int_equal(t.ends, 2);
    assert_true(fake_pipe_closed(t.k.pipe, 0));
    kit_server_pipe_fini(&t.k);
}

/* --- places --- */

/* A handler that goes on when its RPC is over: it keeps its places, in `arg`, until the test gives them back. */
static void on_slow(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)request;
    tc_server_call_take_places(call, arg);
}

/* An RPC counts against max_handlers from its headers on, before its request is complete. So handlers that still run
 * and RPCs with incomplete requests stay within the limit together. */
static void places_of_incomplete_requests(void **state)
{
    (void)state;
    struct kit_server_pipe k;
    struct tc_server_opts opts;
    struct tc_server_places places = {0};
    tc_server_opts_init(&opts);
    opts.max_handlers = 2;
    kit_server_pipe_init(&k, &opts);
    tc_server_add_unary(k.server, "/t.S/Slow", on_slow, &places);
    kit_server_pipe_connect(&k, 0);
    fake_h2_headers(k.peer, 1, KIT_SERVER_PIPE_REQUEST("/t.S/Slow"), false);
    fake_h2_message(k.peer, 1, "x", 1, true);
    tc_loop_drain(k.loop);
    fake_h2_rst(k.peer, 1, 8);
    fake_h2_headers(k.peer, 3, KIT_SERVER_PIPE_REQUEST("/t.S/Slow"), false);
    fake_h2_headers(k.peer, 5, KIT_SERVER_PIPE_REQUEST("/t.S/Slow"), false);
    tc_loop_drain(k.loop);
    const struct fake_h2_frame *frame = fake_h2_expect(k.peer, FAKE_H2_RST_STREAM, 5);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], 7); /* REFUSED_STREAM */
    fake_h2_rst(k.peer, 3, 8);              /* gives its place back */
    fake_h2_headers(k.peer, 7, KIT_SERVER_PIPE_REQUEST("/t.S/Slow"), false);
    tc_loop_drain(k.loop);
    assert_null(fake_h2_expect(k.peer, FAKE_H2_RST_STREAM, 7));
    tc_server_places_give_back(&places);
    kit_server_pipe_fini(&k);
}

static void on_default(void *arg, struct tc_server_call *call)
{
    if (*(const bool *)arg)
        tc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* When a default handler replaces another, max_calls stays and counts the calls of both. */
static void replaced_default(void **state)
{
    (void)state;
    static const bool holds = false, answers = true;
    struct kit_server_pipe k;
    kit_server_pipe_init(&k, NULL);
    tc_server_set_default(k.server, on_default, (void *)&holds);
    tc_server_limit(k.server, "*", &(struct tc_server_limits){.max_calls = 1});
    kit_server_pipe_connect(&k, 0);
    fake_h2_headers(k.peer, 1, KIT_SERVER_PIPE_REQUEST("/t.S/Any"), false);
    tc_loop_drain(k.loop);
    tc_server_set_default(k.server, on_default, (void *)&answers);
    expect_answer(&k, 3, KIT_SERVER_PIPE_REQUEST("/t.S/Any"), "grpc-status: 8");
    fake_h2_rst(k.peer, 1, 8);
    expect_answer(&k, 5, KIT_SERVER_PIPE_REQUEST("/t.S/Any"), "grpc-status: 0");
    kit_server_pipe_fini(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_messages_to_send), cmocka_unit_test(places_of_incomplete_requests),
        cmocka_unit_test(time_of_a_method),       cmocka_unit_test(window_overrun),
        cmocka_unit_test(numbers_of_streams),     cmocka_unit_test(replaced_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
