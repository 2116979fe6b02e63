/* How the server ends connections: clients that reset, ping too much or break the rules, the drain, the age limit,
 * clients without an RPC. Also resets that end no connection.
 *
 * kits/server_pipe gives the server and one scripted client, on a manual loop. `init` connects the client to a server
 * with one method, /t.S/Hold, whose handler answers nothing: a call stays open until a test, the client or the server
 * ends it. The client answers no PING by itself: a graceful end waits at most 5 s for the answer, and then sends its
 * second GOAWAY. `fini` frees all. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/server_pipe.h"

#define REQUEST KIT_SERVER_PIPE_REQUEST("/t.S/Hold")

struct fixture {
    struct kit_server_pipe k;
    struct tc_server_call *call; /* the last */
    unsigned ends, drained;      /* calls of hold_on_end and of on_drained */
    int end_code;                /* of the status that the last hold_on_end had */
};

static void hold_on_end(void *arg, const struct tc_status *why)
{
    struct fixture *f = arg;
    f->ends++;
    f->end_code = why->code;
}

static const struct tc_server_call_events hold_events = {.on_end = hold_on_end};

static void on_hold(void *arg, struct tc_server_call *call)
{
    struct fixture *f = arg;
    f->call = call;
    tc_server_call_set_events(call, &hold_events, f);
}

static void init(struct fixture *f, const struct tc_server_opts *opts)
{
    memset(f, 0, sizeof(*f));
    kit_server_pipe_init(&f->k, opts);
    tc_server_add_method(f->k.server, "/t.S/Hold", on_hold, f);
    kit_server_pipe_connect(&f->k, 0);
}

static void fini(struct fixture *f)
{
    kit_server_pipe_fini(&f->k);
}

/* CVE-2023-44487: requests that are reset as soon as they are made. */
static void rapid_reset(void **state)
{
    (void)state;
    struct fixture f;
    struct tc_server_counts counts;
    init(&f, NULL);
    uint32_t id = 1;
    for (; id < 10000; id += 2) {
        fake_h2_headers(f.k.peer, id, REQUEST, false);
        fake_h2_rst(f.k.peer, id, 8);
        if (id % 100 == 99)
            tc_loop_drain(f.k.loop);
    }
    tc_loop_drain(f.k.loop);
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_connections, 0);
    assert_in_range(counts.requests, 2000, 2100); /* the last read has up to 50 more */
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[7], 11);
    assert_string_equal(frame->payload + 8, "too_many_rststreams");
    fini(&f);
}

/* CVE-2025-8671: the client makes the server reset the stream, by a window that overflows or by malformed trailers. */
static void made_to_reset(void **state, bool by_window)
{
    (void)state;
    struct fixture f;
    struct tc_server_counts counts;
    init(&f, NULL);
    for (uint32_t id = 1; id < 10000; id += 2) {
        fake_h2_headers(f.k.peer, id, REQUEST, false);
        if (by_window)
            fake_h2_window(f.k.peer, id, INT32_MAX);
        else
            fake_h2_headers(f.k.peer, id, ":method: POST\n", true);
        tc_loop_drain(f.k.loop);
    }
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_connections, 0);
    assert_in_range(counts.requests, 2000, 2100);
    fini(&f);
}

static void made_to_reset_by_a_window(void **state)
{
    made_to_reset(state, true);
}

static void made_to_reset_by_trailers(void **state)
{
    made_to_reset(state, false);
}

static void on_log(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level, (void)module;
    *(int *)arg += strstr(message, ": RPC reset with INTERNAL_ERROR: headers larger than the client takes (") != NULL;
}

/* Streams that the server resets because their trailers are larger than the client takes do not count against the
 * client. The first such reset is logged. */
static void resets_of_our_own(void **state)
{
    (void)state;
    char large[500];
    struct fixture f;
    int lines = 0;
    torc_log_set_sink(on_log, &lines);
    assert_int_equal(torc_log_set_levels("http2=warn"), 0);
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = 0;
    init(&f, NULL);
    fake_h2_setting(f.k.peer, 6, 400);
    for (uint32_t id = 1; id < 10000; id += 2) {
        fake_h2_headers(f.k.peer, id, REQUEST, false);
        tc_loop_drain(f.k.loop);
        tc_server_call_send(f.call, tc_slice_str("hi"));
        tc_server_call_finish(f.call, TORC_STATUS_ABORTED, large, NULL);
        tc_loop_drain(f.k.loop);
    }
    assert_false(fake_pipe_closed(f.k.pipe, 0));
    assert_int_equal(f.ends, 5000);
    assert_int_equal(lines, 1);
    fini(&f);
    torc_log_set_sink(NULL, NULL);
    torc_log_set_levels("none");
}

static void rapid_reset_by_option(void **state)
{
    (void)state;
    struct fixture f;
    struct tc_server_opts opts;
    struct tc_server_counts counts;
    tc_server_opts_init(&opts);
    opts.http2.limits.max_cancels = 10;
    init(&f, &opts);
    for (uint32_t id = 1; id < 100; id += 2) {
        fake_h2_headers(f.k.peer, id, REQUEST, false);
        tc_loop_drain(f.k.loop);
        fake_h2_rst(f.k.peer, id, 8);
        tc_loop_drain(f.k.loop);
    }
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_connections, 0);
    assert_int_equal(f.ends, 21); /* twice max_cancels at once, and the cancel that was too many */
    fini(&f);
}

static void cancels_at_a_rate(void **state)
{
    TC_CASE(SV30);
    (void)state;
    struct fixture f;
    init(&f, NULL);
    for (uint32_t id = 1; id < 20000; id += 2) {
        fake_h2_headers(f.k.peer, id, REQUEST, false);
        tc_loop_drain(f.k.loop);
        fake_h2_rst(f.k.peer, id, 8);
        tc_loop_advance(f.k.loop, 2);
    }
    assert_int_equal(f.ends, 10000);
    assert_false(fake_pipe_closed(f.k.pipe, 0));
    fini(&f);
}

/* The client answers a status that comes before the end of its request with RST_STREAM. */
static void resets_of_what_has_ended(void **state)
{
    TC_CASE(SV30);
    (void)state;
    struct fixture f;
    init(&f, NULL);
    for (uint32_t id = 1; id < 20000; id += 2) {
        fake_h2_headers(f.k.peer, id, KIT_SERVER_PIPE_REQUEST("/t.S/Nobody"), false);
        tc_loop_drain(f.k.loop);
        fake_h2_rst(f.k.peer, id, 0);
        tc_loop_drain(f.k.loop);
    }
    assert_false(fake_pipe_closed(f.k.pipe, 0));
    fini(&f);
}

static void ping_policy(void **state)
{
    TC_CASE(SV18);
    TC_CASE(SV19);
    (void)state;
    struct fixture f;
    init(&f, NULL);
    fake_h2_headers(f.k.peer, 1, REQUEST, false);
    tc_loop_drain(f.k.loop);
    /* PINGs within the rules. */
    for (int i = 0; i < 5; i++) {
        fake_h2_ping(f.k.peer, "12345678", false);
        tc_loop_advance(f.k.loop, 300000);
    }
    assert_int_equal(f.ends, 0);
    /* The server's DATA allows the client another PING, since clients probe the bandwidth-delay product by PINGs. */
    for (int i = 0; i < 10; i++) {
        tc_server_call_send(f.call, tc_slice_of("x", 1));
        tc_loop_drain(f.k.loop);
        fake_h2_ping(f.k.peer, "12345678", false);
        tc_loop_drain(f.k.loop);
    }
    assert_int_equal(f.ends, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(f.ends, 0);
        fake_h2_ping(f.k.peer, "12345678", false);
        tc_loop_drain(f.k.loop);
    }
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[7], 11);
    assert_string_equal(frame->payload + 8, "too_many_pings");
    assert_int_equal(f.ends, 1);
    fini(&f);
}

/* The time between PINGs counts from the last PING that was not early. */
static void pings_after_an_early_one(void **state)
{
    TC_CASE(SV18);
    (void)state;
    struct fixture f;
    init(&f, NULL);
    fake_h2_headers(f.k.peer, 1, REQUEST, false);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(f.ends, 0);
        fake_h2_ping(f.k.peer, "12345678", false); /* if i is odd, 200 s after a PING that was not early: too early */
        tc_loop_drain(f.k.loop);
        tc_loop_advance(f.k.loop, 200000);
    }
    assert_int_equal(f.ends, 1);
    fini(&f);
}

/* Of two violations in one read, the first one ends the connection. */
static void pings_after_a_violation(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL);
    fake_h2_hold(f.k.peer, true);
    fake_h2_frame(f.k.peer, 2, 0, 0, "\0\0\0\0\0", 5); /* PRIORITY */
    for (int i = 0; i < 6; i++)
        fake_h2_ping(f.k.peer, "12345678", false);
    fake_h2_hold(f.k.peer, false);
    tc_loop_drain(f.k.loop);
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[7], 1);
    assert_string_equal(frame->payload + 8, "PRIORITY of stream 0");
    fini(&f);
}

static void on_drained(void *arg)
{
    ((struct fixture *)arg)->drained++;
}

static void graceful_drain(void **state)
{
    TC_CASE(SV22);
    (void)state;
    struct fixture f;
    init(&f, NULL);
    fake_h2_headers(f.k.peer, 1, REQUEST, true);
    tc_loop_drain(f.k.loop);
    struct tc_server_call *first = f.call;
    tc_server_drain(f.k.server, 0, on_drained, &f);
    tc_loop_drain(f.k.loop);
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_PING, 0);
    assert_non_null(frame);
    char ping[8];
    memcpy(ping, frame->payload, 8);
    frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_memory_equal(frame->payload, "\x7f\xff\xff\xff\0\0\0\0", 8);
    /* A request that was on its way is served. */
    fake_h2_headers(f.k.peer, 3, REQUEST, false);
    fake_h2_message(f.k.peer, 3, "hi", 2, true);
    fake_h2_ping(f.k.peer, ping, true);
    tc_loop_drain(f.k.loop);
    frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], 3);
    assert_string_equal(frame->payload + 8, "server is shutting down");
    tc_server_call_finish(first, TORC_STATUS_OK, NULL, NULL);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.drained, 0);
    tc_server_call_finish(f.call, TORC_STATUS_OK, NULL, NULL);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.drained, 1);
    assert_true(fake_pipe_closed(f.k.pipe, 0));
    fini(&f);
}

static void drain_with_grace(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL);
    fake_h2_headers(f.k.peer, 1, REQUEST, true);
    tc_loop_drain(f.k.loop);
    tc_server_drain(f.k.server, 1000, on_drained, &f);
    tc_loop_advance(f.k.loop, 999);
    assert_int_equal(f.drained, 0);
    tc_loop_advance(f.k.loop, 1);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.end_code, TORC_STATUS_UNAVAILABLE);
    assert_int_equal(f.drained, 1);
    /* The last GOAWAY names the last stream, although nobody has answered the PING behind the first one. */
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_memory_equal(frame->payload, "\x7f\xff\xff\xff\0\0\0\0", 8);
    frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_memory_equal(frame->payload, "\0\0\0\1\0\0\0\0server is shutting down", 31);
    fini(&f);
}

/* The grace of max_age is not the grace of a drain. */
static void drain_without_an_age(void **state)
{
    TC_CASE(SV20);
    (void)state;
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.http2.keepalive.max_age_grace_ms = 1000;
    struct fixture f;
    init(&f, &opts);
    fake_h2_headers(f.k.peer, 1, REQUEST, true);
    tc_loop_drain(f.k.loop);
    tc_server_drain(f.k.server, 20000, on_drained, &f);
    tc_loop_advance(f.k.loop, 19999);
    assert_int_equal(f.ends, 0);
    tc_loop_advance(f.k.loop, 1);
    assert_int_equal(f.ends, 1);
    fini(&f);
}

/* The last GOAWAY waits for a client that does not read. A request that comes meanwhile is not served: the GOAWAY does
 * not name its stream, so the client may send it again elsewhere. */
static void requests_before_a_late_goaway(void **state)
{
    TC_CASE(SV32);
    (void)state;
    struct fixture f;
    struct tc_server_counts counts;
    init(&f, NULL);
    fake_h2_headers(f.k.peer, 1, REQUEST, true);
    tc_loop_drain(f.k.loop);
    fake_pipe_set_capacity(f.k.pipe, 0);
    tc_server_call_send(f.call, tc_slice_str("hi"));
    tc_loop_drain(f.k.loop);
    tc_server_drain(f.k.server, 0, on_drained, &f);
    tc_loop_advance(f.k.loop, 4999);
    fake_h2_headers(f.k.peer, 3, REQUEST, true); /* in time */
    tc_loop_drain(f.k.loop);
    tc_loop_advance(f.k.loop, 1);
    fake_h2_headers(f.k.peer, 5, REQUEST, false);
    fake_h2_message(f.k.peer, 5, "hi", 2, true);
    tc_loop_drain(f.k.loop);
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.requests, 2);
    fake_pipe_set_capacity(f.k.pipe, SIZE_MAX);
    tc_loop_drain(f.k.loop);
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], 3);
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.requests, 2);
    tc_server_end(f.k.server, NULL);
    fini(&f);
}

static void max_age(void **state)
{
    TC_CASE(SV20);
    TC_CASE(SV23);
    (void)state;
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.http2.keepalive.max_age_ms = 10000;
    opts.http2.keepalive.max_age_grace_ms = 3000;
    struct fixture f;
    init(&f, &opts);
    fake_h2_headers(f.k.peer, 1, REQUEST, false);
    tc_loop_drain(f.k.loop);
    /* The age varies by 10 %. */
    tc_loop_advance(f.k.loop, 8999);
    assert_null(fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0));
    tc_loop_advance(f.k.loop, 2001);
    assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0));
    /* The PING stays unanswered: the last GOAWAY comes 5 s after the first, the end of the call after the grace. */
    tc_loop_advance(f.k.loop, 5000);
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], 1);
    assert_string_equal(frame->payload + 8, "max_age");
    assert_int_equal(f.ends, 0);
    tc_loop_advance(f.k.loop, 3000);
    assert_int_equal(f.ends, 1);
    fini(&f);
}

/* A request that comes between the GOAWAYs of an idle connection is served no longer than the age and its grace. */
static void max_age_of_an_idle_connection(void **state)
{
    TC_CASE(SV20);
    (void)state;
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.idle_timeout_ms = 1000;
    opts.http2.keepalive.max_age_ms = 10000;
    opts.http2.keepalive.max_age_grace_ms = 3000;
    struct fixture f;
    init(&f, &opts);
    tc_loop_drain(f.k.loop);
    tc_loop_advance(f.k.loop, 1000);
    assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0));
    fake_h2_headers(f.k.peer, 1, REQUEST, false);
    tc_loop_drain(f.k.loop);
    tc_loop_advance(f.k.loop, 10999); /* beyond the last GOAWAY; a millisecond less than the least age and grace */
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_string_equal(frame->payload + 8, "max_idle");
    assert_int_equal(f.ends, 0);
    tc_loop_advance(f.k.loop, 2001);
    assert_int_equal(f.ends, 1);
    fini(&f);
}

/* A client breaks the rules and does not read the GOAWAY: its RPCs end after 5 s. */
static void last_goaway_is_not_read(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL);
    fake_h2_headers(f.k.peer, 1, REQUEST, false);
    tc_loop_drain(f.k.loop);
    fake_pipe_set_capacity(f.k.pipe, 10);
    fake_h2_headers(f.k.peer, 2, REQUEST, false); /* an even number */
    tc_loop_drain(f.k.loop);
    tc_loop_advance(f.k.loop, 4999);
    assert_int_equal(f.ends, 0);
    tc_loop_advance(f.k.loop, 1);
    assert_int_equal(f.ends, 1);
    fini(&f);
}

/* A connection has reached its age and has no RPC, or an RPC that ends later. Its client reads nothing: the connection
 * ends nevertheless. */
static void last_goaway_of_a_quiet_connection(void **state)
{
    (void)state;
    for (int used = 0; used < 2; used++) {
        struct tc_server_opts opts;
        struct tc_server_counts counts;
        struct fixture f;
        tc_server_opts_init(&opts);
        opts.http2.keepalive.max_age_ms = 10000;
        init(&f, &opts);
        tc_loop_drain(f.k.loop);
        fake_pipe_set_capacity(f.k.pipe, 10);
        if (used) {
            fake_h2_headers(f.k.peer, 1, REQUEST, true);
            tc_loop_drain(f.k.loop);
        }
        tc_loop_advance(f.k.loop, 11000 + 5000);
        tc_server_counts(f.k.server, &counts);
        assert_int_equal(counts.open_connections, 1);
        if (used) {
            tc_server_call_finish(f.call, TORC_STATUS_OK, NULL, NULL);
            fake_h2_rst(f.k.peer, 1, 8);
        }
        tc_loop_drain(f.k.loop);
        tc_loop_advance(f.k.loop, 5000);
        tc_server_counts(f.k.server, &counts);
        assert_int_equal(counts.open_connections, 0);
        fini(&f);
    }
}

/* --- a client without an RPC that has a stream in nghttp2 --- */

/* The client sends a header block without an end (`part`), or does not read the answers to two requests for an unknown
 * method. Asserts that neither begins a call. */
static void hold_without_an_rpc(struct fixture *f, bool part)
{
    struct tc_server_counts counts;
    if (part) {
        fake_h2_frame(f->k.peer, FAKE_H2_HEADERS, 0, 5, "", 0);
    } else {
        fake_pipe_set_capacity(f->k.pipe, 0);
        for (uint32_t id = 5; id < 9; id += 2) { /* the second answer stays in nghttp2 */
            fake_h2_headers(f->k.peer, id, KIT_SERVER_PIPE_REQUEST("/t.S/Unknown"), false);
            tc_loop_drain(f->k.loop);
        }
    }
    tc_loop_drain(f->k.loop);
    tc_server_counts(f->k.server, &counts);
    assert_int_equal(counts.open_calls, f->call != NULL);
    assert_int_equal(counts.open_connections, 1);
}

/* Asserts that the connection has ended after limit_ms, although the client shows in the middle of this time that it
 * lives. */
static void expect_end_within(struct fixture *f, bool part, uint64_t limit_ms)
{
    struct tc_server_counts counts;
    tc_loop_advance(f->k.loop, limit_ms / 2);
    if (part)
        fake_h2_frame(f->k.peer, FAKE_H2_CONTINUATION, 0, 5, "", 0); /* still without END_HEADERS */
    else
        fake_h2_window(f->k.peer, 0, 1);
    tc_loop_drain(f->k.loop);
    tc_loop_advance(f->k.loop, limit_ms - limit_ms / 2);
    tc_server_counts(f->k.server, &counts);
    assert_int_equal(counts.open_connections, 0);
}

/* A drain waits for RPCs, but not for a stream without an RPC. `used`: an RPC runs when the drain begins. */
static void drain_without_an_rpc(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        for (int used = 0; used < 2; used++) {
            struct fixture f;
            init(&f, NULL);
            if (used)
                fake_h2_headers(f.k.peer, 1, REQUEST, false);
            tc_loop_drain(f.k.loop);
            hold_without_an_rpc(&f, part);
            tc_server_drain(f.k.server, 0, on_drained, &f);
            tc_loop_advance(f.k.loop, used ? 24 * 3600 * 1000 : 0);
            assert_int_equal(f.ends, 0);
            if (used) {
                tc_server_call_reset(f.call, 8);
                tc_loop_drain(f.k.loop);
            }
            expect_end_within(&f, part, 20000);
            assert_int_equal(f.drained, 1);
            fini(&f);
        }
    }
}

static void max_age_without_an_rpc(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        struct tc_server_opts opts;
        struct fixture f;
        tc_server_opts_init(&opts);
        opts.http2.keepalive.max_age_ms = 10000;
        init(&f, &opts);
        hold_without_an_rpc(&f, part);
        expect_end_within(&f, part, 11000 + 20000);
        fini(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rapid_reset),
        cmocka_unit_test(made_to_reset_by_a_window),
        cmocka_unit_test(made_to_reset_by_trailers),
        cmocka_unit_test(resets_of_our_own),
        cmocka_unit_test(rapid_reset_by_option),
        cmocka_unit_test(cancels_at_a_rate),
        cmocka_unit_test(resets_of_what_has_ended),
        cmocka_unit_test(ping_policy),
        cmocka_unit_test(pings_after_an_early_one),
        cmocka_unit_test(pings_after_a_violation),
        cmocka_unit_test(graceful_drain),
        cmocka_unit_test(drain_with_grace),
        cmocka_unit_test(drain_without_an_age),
        cmocka_unit_test(requests_before_a_late_goaway),
        cmocka_unit_test(max_age),
        cmocka_unit_test(max_age_of_an_idle_connection),
        cmocka_unit_test(last_goaway_is_not_read),
        cmocka_unit_test(last_goaway_of_a_quiet_connection),
        cmocka_unit_test(drain_without_an_rpc),
        cmocka_unit_test(max_age_without_an_rpc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
