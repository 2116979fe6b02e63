/* Side streams against peers that the test drives frame by frame: which watches share a stream, its backoff, its pace,
 * its place beside the RPCs, and what its watches hear.
 *
 * `set` belongs to no struct tc_connection: the test itself gives the set a transport (tc_side_streams_use). Transport
 * i leads to peer i. setup connects to peer 0. Each watch has a number, a stream's request is the least number of its
 * watches ("10"), and a watch notes what it hears ("a end:14 ").
 *
 * setup and teardown own all that the static variables point to. The loop is manual, on virtual time, and the test's
 * thread turns it. Read first: struct noted, requested. */
#include "subchannel/side_stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { PEERS = 3, WATCHES = 4, MESSAGE_MAX = 8 << 10 };

/* A watch that notes each message and end that it hears, and then ends the watches of `ends`. */
struct noted {
    struct tc_side_watch base;
    unsigned number; /* the request of a stream is the least number of its watches */
    struct tc_buf heard;
    unsigned ends; /* bit i: the callback ends watches[i] */
};

static struct tc_loop *loop;
static struct fake_pipe *pipes[PEERS];
static struct fake_h2 *peers[PEERS];
static struct tc_transport *transports[PEERS];
static struct tc_transport_group groups[PEERS];
static struct tc_link all_transports; /* of `transports` */
static struct tc_side_streams set;
static struct noted watches[WATCHES];
static bool fini_inside; /* the next callback calls tc_side_streams_fini */

static void least_number(const struct tc_link *list, struct tc_buf *out)
{
    unsigned least = UINT32_MAX;
    assert_false(tc_list_empty(list));
    for (const struct tc_link *it = list->next; it != list; it = it->next)
        least = TC_MIN(least, TC_CONTAINER_OF(tc_side_watch_of(it), struct noted, base)->number);
    tc_buf_printf(out, "%u", least);
}

static const struct tc_side_kind kind = {"/test.Side/Watch", "numbers", MESSAGE_MAX, least_number};

static void on_heard(struct noted *w)
{
    for (unsigned i = 0; i < WATCHES; i++)
        if (w->ends >> i & 1)
            tc_side_watch_end(&watches[i].base);
    if (fini_inside)
        tc_side_streams_fini(&set);
    fini_inside = false;
}

static void on_message(struct tc_side_watch *base, struct tc_slice message)
{
    struct noted *w = TC_CONTAINER_OF(base, struct noted, base);
    tc_buf_append_slice(&w->heard, message);
    tc_buf_append_char(&w->heard, ' ');
    on_heard(w);
}

static void on_end(struct tc_side_watch *base, const struct tc_status *status)
{
    struct noted *w = TC_CONTAINER_OF(base, struct noted, base);
    tc_buf_printf(&w->heard, "end:%d ", (int)status->code);
    on_heard(w);
}

static void run(uint64_t ms)
{
    tc_loop_advance(loop, ms);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 0);
}

static void on_ready(void *arg)
{
    (void)arg;
}

static void on_gone(void *arg, struct tc_transport *t, const struct tc_status *why, bool too_many_pings)
{
    (void)arg, (void)t, (void)why, (void)too_many_pings;
}

static void on_wait(struct tc_transport_group *g)
{
    (void)g;
    tc_side_streams_make_room(&set);
}

/* Connects to peer i, which allows so many streams. */
static void connect_to(size_t i, uint32_t streams)
{
    static const struct tc_transport_events events = {.on_ready = on_ready, .on_gone = on_gone};
    struct tc_h2_opts opts;
    struct tc_rstr *address = tc_rstr_str("10.0.0.1:80");
    tc_h2_opts_init(&opts, false);
    opts.limits.max_receive_message_bytes = SIZE_MAX;
    pipes[i] = fake_pipe_new(loop);
    peers[i] = fake_h2_new(pipes[i], 1, true);
    transports[i] = tc_transport_new(loop, fake_pipe_end(pipes[i], 0), &opts, address, &all_transports, &events, NULL);
    tc_rstr_unref(address);
    tc_transport_group_init(&groups[i], NULL, on_wait);
    tc_transport_group_join(&groups[i], transports[i], &events, 0);
    fake_h2_setting(peers[i], 3, streams);
    run(1);
}

static int setup(void **state)
{
    (void)state;
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    tc_list_init(&all_transports);
    struct tc_rstr *authority = tc_rstr_str("orders");
    tc_side_streams_init(&set, loop, authority);
    tc_rstr_unref(authority);
    for (unsigned i = 0; i < WATCHES; i++)
        watches[i] =
            (struct noted){.base = {.kind = &kind, .on_message = on_message, .on_end = on_end}, .number = 10 * (i + 1)};
    connect_to(0, 100);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_side_streams_fini(&set);
    for (unsigned i = 0; i < WATCHES; i++) {
        tc_side_watch_end(&watches[i].base);
        tc_buf_fini(&watches[i].heard);
    }
    for (size_t i = 0; i < PEERS; i++) {
        if (!peers[i])
            continue;
        if (transports[i])
            tc_transport_close(transports[i]);
        run(1);
        fake_h2_free(peers[i]);
        fake_pipe_free(pipes[i]);
        peers[i] = NULL;
        transports[i] = NULL;
    }
    tc_loop_free(loop);
    return 0;
}

static void watch(unsigned i)
{
    tc_side_streams_watch(&set, &watches[i].base);
}

/* Asserts what watch i has heard since the last call. */
static void assert_heard(unsigned i, const char *text)
{
    assert_string_equal(tc_buf_cstr(&watches[i].heard), text);
    tc_buf_clear(&watches[i].heard);
}

/* Returns the number of open streams on transport 0, RPCs included. */
static size_t side_streams_open(void)
{
    return tc_h2_conn_open_streams(tc_transport_h2(transports[0]));
}

/* Returns the stream of the peer's next request, which must have this message, or 0 if none has come. */
static uint32_t requested(size_t i, const char *message)
{
    run(1);
    const struct fake_h2_frame *f = fake_h2_expect(peers[i], FAKE_H2_HEADERS, 0);
    if (!f)
        return 0;
    assert_non_null(strstr(f->headers, ":path: /test.Side/Watch\n"));
    assert_non_null(strstr(f->headers, ":authority: orders\n"));
    assert_null(strstr(f->headers, "grpc-timeout"));
    uint32_t id = f->stream;
    f = fake_h2_expect(peers[i], FAKE_H2_DATA, id);
    assert_non_null(f);
    assert_int_equal(f->len, 5 + strlen(message));
    assert_memory_equal(f->payload + 5, message, strlen(message));
    assert_true(f->flags & FAKE_H2_END_STREAM);
    return id;
}

static void send_headers(size_t i, uint32_t id)
{
    fake_h2_headers(peers[i], id, ":status: 200\ncontent-type: application/grpc\n", false);
}

static void send_message(size_t i, uint32_t id, const char *message)
{
    fake_h2_message(peers[i], id, message, strlen(message), false);
    run(1);
}

static void send_end(size_t i, uint32_t id, const char *status)
{
    char fields[128];
    snprintf(fields, sizeof(fields), ":status: 200\ncontent-type: application/grpc\ngrpc-status: %s\n", status);
    fake_h2_headers(peers[i], id, fields, true);
    run(1);
}

static void one_stream_for_all_watches(void **state)
{
    TC_CASE(WR17);
    (void)state;
    watch(1);
    assert_int_equal(requested(0, "20"), 0); /* no transport yet */
    tc_side_streams_use(&set, transports[0]);
    uint32_t id = requested(0, "20");
    assert_int_equal(id, 1);
    watch(2); /* a larger number: the request stays */
    run(10);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), 0);
    send_headers(0, id);
    send_message(0, id, "a");
    send_message(0, id, "b");
    run(TC_SIDE_PACE_MS);
    assert_heard(1, "a b ");
    assert_heard(2, "a b ");
    watch(0); /* a smaller number: another request, on a new stream */
    run(1);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_RST_STREAM, id), 1);
    tc_side_watch_end(&watches[0].base);
    id = requested(0, "20");
    assert_true(id != 0);
    tc_side_watch_end(&watches[1].base);
    tc_side_watch_end(&watches[1].base);
    id = requested(0, "30");
    tc_side_watch_end(&watches[2].base);
    run(1);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_RST_STREAM, id), 1);
    assert_true(tc_list_empty(&set.all));
    assert_int_equal(tc_h2_conn_open_streams(tc_transport_h2(transports[0])), 0);
}

static void keys_have_streams_of_their_own(void **state)
{
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watches[0].base.key = tc_slice_str("a");
    watches[1].base.key = tc_slice_str("b");
    watch(0);
    uint32_t a = requested(0, "10");
    watch(1);
    uint32_t b = requested(0, "20");
    send_headers(0, b);
    send_message(0, b, "x");
    assert_heard(0, "");
    assert_heard(1, "x ");
    assert_true(a != b && a != 0);
}

/* The next stream is opened 1 s, 1.6 s, ... after the start of the stream that ended, with 20 % jitter. */
static void an_end_backs_off(void **state)
{
    TC_CASE(WR17);
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    uint32_t id = requested(0, "10");
    send_end(0, id, "14");
    assert_heard(0, "end:14 ");
    run(700);
    assert_int_equal(requested(0, "10"), 0);
    run(600);
    id = requested(0, "10");
    assert_true(id != 0);
    send_end(0, id, "0");
    assert_heard(0, "end:0 ");
    run(1100);
    assert_int_equal(requested(0, "10"), 0);
    run(1000);
    id = requested(0, "10");
    assert_true(id != 0);
    /* A message resets the backoff. After a stream that lasted longer than the backoff the next is opened at once. */
    send_headers(0, id);
    send_message(0, id, "m");
    run(5000);
    fake_h2_rst(peers[0], id, 2);
    run(1);
    assert_heard(0, "m end:13 ");
    id = requested(0, "10");
    assert_true(id != 0);
    send_end(0, id, "14");
    run(2000);
    assert_true(requested(0, "10") != 0);
}

/* tc_side_streams_reset_backoff opens a stream in backoff at once, and the next delay is the first one again. A stream
 * in backoff that has no watches ends. */
static void a_reset_ends_the_backoff(void **state)
{
    TC_CASE(CH12);
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    for (unsigned i = 0; i < 12; i++) { /* the 12th backoff is the longest: 120 s, with jitter */
        send_end(0, requested(0, "10"), "14");
        run(i < 11 ? 200000 : 1);
    }
    tc_side_streams_reset_backoff(&set);
    uint32_t id = requested(0, "10");
    assert_true(id != 0);
    tc_side_streams_reset_backoff(&set); /* nothing is in backoff */
    assert_int_equal(requested(0, "10"), 0);
    send_end(0, id, "14");
    run(1300);
    id = requested(0, "10"); /* the first backoff again */
    assert_true(id != 0);
    send_end(0, id, "14");
    tc_side_watch_end(&watches[0].base);
    tc_side_streams_reset_backoff(&set);
    run(1);
    assert_true(tc_list_empty(&set.all));
    watch(0);
    id = requested(0, "10");
    assert_true(id != 0);
    send_end(0, id, "12");
    tc_side_streams_reset_backoff(&set); /* does not open a stream that the server does not implement */
    assert_int_equal(requested(0, "10"), 0);
}

static void unimplemented_ends_it_for_the_connection(void **state)
{
    TC_CASE(WR17);
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(1);
    send_end(0, requested(0, "20"), "12");
    assert_heard(1, "end:12 ");
    watch(0);
    run(300000);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), 0);
    connect_to(1, 100);
    tc_side_streams_use(&set, transports[1]);
    assert_true(requested(1, "10") != 0);
}

static void a_stream_moves_to_the_next_transport(void **state)
{
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    uint32_t id = requested(0, "10");
    connect_to(1, 100);
    tc_side_streams_use(&set, transports[1]);
    assert_true(requested(1, "10") != 0);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_RST_STREAM, id), 1);
    tc_side_streams_use(&set, NULL);
    run(10000);
    assert_heard(0, "");
    assert_int_equal(tc_h2_conn_open_streams(tc_transport_h2(transports[1])), 0);
}

static struct tc_h2_stream *open_rpc(size_t i, struct tc_arena *arena, int *error)
{
    static const struct tc_h2_client_events events = {.on_done = NULL};
    static const struct tc_h2_request request = {.path = {"/a/b", 4}, .authority = {"orders", 6}};
    struct tc_h2_stream *s = tc_transport_open(transports[i], &request, arena, &events, NULL, error);
    run(1);
    return s;
}

static void on_rpc_capacity(struct tc_capacity_wait *wait, struct tc_transport *t)
{
    (void)wait, (void)t;
}

static void a_stream_waits_in_line(void **state)
{
    (void)state;
    struct tc_arena arena;
    int error = 0;
    tc_arena_init(&arena, 0, 0);
    connect_to(1, 2);
    struct tc_h2_stream *first = open_rpc(1, &arena, &error), *second = open_rpc(1, &arena, &error);
    assert_true(first && second && fake_h2_count(peers[1], FAKE_H2_HEADERS, 0) == 2);
    tc_side_streams_use(&set, transports[1]);
    watch(0);
    watch(2); /* joins watch 0's stream; the request stays */
    assert_int_equal(requested(1, "10"), 0);
    tc_side_watch_end(&watches[2].base);
    tc_h2_stream_cancel(first, TC_H2_CANCEL);
    assert_true(requested(1, "10") != 0);
    /* The closed stream still counts until its RST_STREAM is written: the new one waits, and its last watch ends while
     * it waits. */
    tc_side_streams_use(&set, NULL);
    tc_side_streams_use(&set, transports[1]);
    tc_side_watch_end(&watches[0].base);
    tc_h2_stream_cancel(second, TC_H2_CANCEL);
    run(1);
    tc_arena_fini(&arena);
}

/* Side streams leave RPCs one stream of the peer's limit. When the limit falls, side streams close once an RPC
 * waits. */
static void side_streams_leave_room_for_rpcs(void **state)
{
    static const struct {
        uint32_t limit;
        unsigned open;
    } rows[] = {{0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 3}, {UINT32_MAX, 3}};
    struct tc_capacity_wait wait = {.fn = on_rpc_capacity};
    struct tc_arena arena;
    int error = 0;
    (void)state;
    tc_arena_init(&arena, 0, 0);
    watches[0].base.key = tc_slice_str("a");
    watches[1].base.key = tc_slice_str("b");
    watches[2].base.key = tc_slice_str("c");
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        fake_h2_setting(peers[0], 3, rows[i].limit);
        run(1);
        tc_side_streams_use(&set, transports[0]);
        for (unsigned k = 0; k < 3; k++) {
            if (i == 0)
                watch(k);
            tc_buf_clear(&watches[k].heard);
        }
        if (i == 0)
            assert_heard(0, ""); /* never from inside tc_side_streams_watch */
        run(1);
        assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), rows[i].open);
        for (unsigned k = 0; k < 3; k++)
            assert_heard(k, k < rows[i].open ? "" : "end:12 ");
    }
    fake_h2_setting(peers[0], 3, 1);
    run(1);
    assert_null(open_rpc(0, &arena, &error));
    assert_int_equal(error, TORC_EAGAIN);
    tc_transport_wait(transports[0], &wait);
    assert_heard(0, "");
    run(1);
    for (unsigned k = 0; k < 3; k++)
        assert_heard(k, "end:12 ");
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_RST_STREAM, 0), 3);
    tc_list_remove(&wait.link);
    struct tc_h2_stream *rpc = open_rpc(0, &arena, &error);
    assert_non_null(rpc);
    tc_h2_stream_cancel(rpc, TC_H2_CANCEL);
    /* The limit rises: the streams are opened again after their backoffs. */
    fake_h2_setting(peers[0], 3, 100);
    run(3000);
    assert_int_equal(side_streams_open(), 3);
    tc_arena_fini(&arena);
}

/* The server lowers its limit of streams to 0, and then ends the stream. The watch hears of the end at once, and after
 * the backoff that there is no room. */
static void an_end_is_told_where_no_stream_is_allowed(void **state)
{
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    uint32_t id = requested(0, "10");
    fake_h2_setting(peers[0], 3, 0);
    run(1);
    assert_heard(0, "");
    send_end(0, id, "14");
    assert_heard(0, "end:14 ");
    run(2000);
    assert_heard(0, "end:12 ");
}

/* A server sends as fast as it can. The watch hears the first message at once. In each TC_SIDE_PACE_MS afterwards at
 * most TC_SIDE_MESSAGES messages are read, and when that time is over the watch hears the newest of them. */
static void messages_are_read_at_a_pace(void **state)
{
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    uint32_t id = requested(0, "10");
    char text[16];
    send_headers(0, id);
    for (unsigned i = 0; i < 2 * TC_SIDE_MESSAGES; i++) {
        snprintf(text, sizeof(text), "%u", i);
        fake_h2_message(peers[0], id, text, strlen(text), false);
    }
    run(1);
    assert_heard(0, "0 ");
    run(TC_SIDE_PACE_MS);
    assert_heard(0, "16 "); /* the newest of the messages that were read */
    run(TC_SIDE_PACE_MS);
    assert_heard(0, "31 ");
    run(10 * TC_SIDE_PACE_MS);
    assert_heard(0, "");
    send_message(0, id, "a");
    assert_heard(0, "a ");
    send_message(0, id, "b");
    fake_h2_headers(peers[0], id, "grpc-status: 14\n", true);
    run(1);
    assert_heard(0, "end:14 ");
}

/* A watch that joins hears the newest message or end, by a task. */
static void a_watch_that_joins_hears_the_newest(void **state)
{
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    uint32_t id = requested(0, "10");
    watch(1);
    run(1);
    assert_heard(1, "");
    send_headers(0, id);
    send_message(0, id, "a");
    watch(2);
    assert_heard(2, "");
    run(1);
    assert_heard(2, "a ");
    assert_heard(0, "a ");
    fake_h2_headers(peers[0], id, "grpc-status: 14\n", true);
    run(1);
    tc_side_watch_end(&watches[2].base);
    tc_buf_clear(&watches[2].heard);
    watch(2);
    run(1);
    assert_heard(2, "end:14 ");
    connect_to(1, 100);
    tc_side_watch_end(&watches[2].base);
    tc_side_streams_use(&set, transports[1]);
    watch(2); /* nothing came on this transport */
    run(1);
    assert_heard(2, "");
}

/* The backoff and UNIMPLEMENTED bind a watch that comes after the stream's last watch has ended. */
static void an_end_outlives_its_watches(void **state)
{
    (void)state;
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    send_end(0, requested(0, "10"), "14");
    tc_side_watch_end(&watches[0].base);
    watch(0);
    run(700);
    assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), 0);
    tc_buf_clear(&watches[0].heard);
    run(600);
    uint32_t id = requested(0, "10");
    send_end(0, id, "14");
    tc_side_watch_end(&watches[0].base);
    run(3000);
    assert_true(tc_list_empty(&set.all)); /* the backoff is over */
    watch(0);
    send_end(0, requested(0, "10"), "12");
    tc_buf_clear(&watches[0].heard);
    for (unsigned round = 0; round < 3; round++) { /* UNIMPLEMENTED binds watches of any key */
        tc_side_watch_end(&watches[0].base);
        watches[0].base.key = tc_slice_str(round == 1 ? "other" : "");
        watch(0);
        run(300000);
        assert_heard(0, "end:12 ");
        assert_int_equal(fake_h2_count(peers[0], FAKE_H2_HEADERS, 0), 0);
    }
    tc_side_watch_end(&watches[0].base);
    assert_true(!tc_list_empty(&set.all) && set.all.next->next == &set.all);
    connect_to(1, 100);
    tc_side_streams_use(&set, transports[1]);
    assert_true(tc_list_empty(&set.all));
    watch(0);
    assert_true(requested(1, "10") != 0);
}

static void a_large_message_ends_it(void **state)
{
    (void)state;
    static char large[MESSAGE_MAX + 1];
    tc_side_streams_use(&set, transports[0]);
    watch(0);
    uint32_t id = requested(0, "10");
    send_headers(0, id);
    fake_h2_message(peers[0], id, large, MESSAGE_MAX, false);
    run(1);
    assert_int_equal(watches[0].heard.len, MESSAGE_MAX + 1);
    run(TC_SIDE_PACE_MS);
    tc_buf_clear(&watches[0].heard);
    fake_h2_message(peers[0], id, large, sizeof(large), false);
    run(1);
    assert_heard(0, "end:8 ");
    run(1300);
    assert_true(requested(0, "10") != 0);
}

/* The callback of watch `first` ends the watches of `mask` (bits 0 to 2). Bit 3: the first callback that comes, that of
 * watch 0, also calls tc_side_streams_fini. */
static void callbacks_may_end_anything(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 3; first++)
        for (unsigned mask = 0; mask < 16; mask++)
            for (unsigned end = 0; end < 2; end++) {
                tc_side_streams_use(&set, transports[0]);
                for (unsigned i = 0; i < 3; i++) {
                    watches[i].ends = i == first ? mask & 7 : 0;
                    watch(i);
                }
                uint32_t id = requested(0, "10");
                assert_true(id != 0);
                fini_inside = mask & 8;
                if (end) {
                    send_end(0, id, "14");
                } else {
                    send_headers(0, id);
                    send_message(0, id, "m");
                }
                assert_false(fini_inside); /* the callback came */
                const char *heard = end ? "end:14 " : "m ";
                for (unsigned i = first; i < 3; i++)
                    if (!(mask & 8) && !(i > first && mask >> i & 1))
                        assert_heard(i, heard);
                for (unsigned i = 0; mask & 8 && i < 3; i++)
                    assert_heard(i, i == 0 ? heard : ""); /* the end of the set is the end of the watches */
                /* Without watch 0 the stream needs another request. */
                if (!end && (mask & 9) == 1 && mask != 7)
                    assert_true(requested(0, mask & 2 ? "30" : "20") != 0);
                for (unsigned i = 0; i < 3; i++) {
                    tc_side_watch_end(&watches[i].base);
                    tc_buf_clear(&watches[i].heard);
                }
                run(2000); /* a backoff outlives its watches */
                while (fake_h2_next(peers[0])) {
                }
                assert_true(tc_list_empty(&set.all));
                if (mask & 8) {
                    struct tc_rstr *authority = tc_rstr_str("orders");
                    tc_side_streams_init(&set, loop, authority);
                    tc_rstr_unref(authority);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_stream_for_all_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_have_streams_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_backs_off, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reset_ends_the_backoff, setup, teardown),
        cmocka_unit_test_setup_teardown(unimplemented_ends_it_for_the_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_moves_to_the_next_transport, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_waits_in_line, setup, teardown),
        cmocka_unit_test_setup_teardown(side_streams_leave_room_for_rpcs, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_is_told_where_no_stream_is_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_are_read_at_a_pace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_watch_that_joins_hears_the_newest, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_outlives_its_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_message_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(callbacks_may_end_anything, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
