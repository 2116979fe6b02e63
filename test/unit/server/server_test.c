/* The server and its side of HTTP/2, against a scripted client: kits/server_pipe, on a manual loop.
 *
 * `init` connects the client to a server with three methods. /t.S/Echo is unary: it echoes, or fails if the message is
 * "fail". /t.S/Stream echoes a stream, compressed for a client that takes gzip. /t.S/Hold counts events in the fixture
 * and answers nothing: its call stays open until a test, the client or the server ends it. `fini` frees all. */
#include <stdio.h>

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/server_pipe.h"

#define REQUEST_TO KIT_SERVER_PIPE_REQUEST
#define REQUEST REQUEST_TO("/t.S/Echo")

struct fixture {
    struct kit_server_pipe k;
    struct tc_server_call *call;                   /* the last call of /t.S/Hold; NULL: none, or one has ended since */
    unsigned messages, half_closes, written, ends; /* events of /t.S/Hold */
    int end_code;                                  /* of the status that the last on_end had */
    char metadata[512], path[64]; /* of the last request to /t.S/Hold; metadata: "name=value;" for each field */
};

static void hold_on_message(void *arg, struct tc_rstr *message)
{
    struct fixture *f = arg;
    f->messages++;
    tc_rstr_unref(message);
}

static void hold_on_half_close(void *arg)
{
    ((struct fixture *)arg)->half_closes++;
}

static void hold_on_written(void *arg)
{
    ((struct fixture *)arg)->written++;
}

static void hold_on_end(void *arg, const struct tc_status *why)
{
    struct fixture *f = arg;
    f->ends++;
    f->end_code = why->code;
    /* The metadata lives until on_end returns. */
    struct tc_server_counts counts;
    tc_server_counts(f->k.server, &counts);
    if (counts.open_calls == 0 && f->call)
        assert_non_null(tc_headers_find(tc_server_call_metadata(f->call), tc_slice_str(":path")));
    f->call = NULL;
}

static const struct tc_server_call_events hold_events = {.on_message = hold_on_message,
                                                         .on_half_close = hold_on_half_close,
                                                         .on_written = hold_on_written,
                                                         .on_end = hold_on_end};

static void on_hold(void *arg, struct tc_server_call *call)
{
    struct fixture *f = arg;
    f->call = call;
    f->metadata[0] = '\0';
    const struct tc_headers *h = tc_server_call_metadata(call);
    for (size_t i = 0; i < h->len; i++) {
        size_t at = strlen(f->metadata);
        snprintf(f->metadata + at, sizeof(f->metadata) - at, "%.*s=%.*s;", (int)h->data[i].name.len,
                 h->data[i].name.data, (int)h->data[i].value.len, h->data[i].value.data);
    }
    struct tc_slice path = tc_server_call_path(call);
    snprintf(f->path, sizeof(f->path), "%.*s", (int)path.len, path.data);
    tc_server_call_set_events(call, &hold_events, f);
}

static void on_unary(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    if (request->len == 4 && memcmp(request->data, "fail", 4) == 0)
        tc_server_call_finish(call, TORC_STATUS_ABORTED, "as you \xc3\xa9 wish%", NULL);
    else
        tc_server_call_reply(call, tc_rstr_slice(request));
}

/* Echoes a stream, one message at a time. */
static void echo_message(void *arg, struct tc_rstr *message)
{
    tc_server_call_send_ref(arg, message);
    tc_rstr_unref(message);
}

static void echo_half_close(void *arg)
{
    tc_server_call_finish(arg, TORC_STATUS_OK, NULL, NULL);
}

static void echo_written(void *arg)
{
    tc_server_call_read(arg);
}

static const struct tc_server_call_events echo_events = {
    .on_message = echo_message, .on_half_close = echo_half_close, .on_written = echo_written};

static void on_stream_echo(void *arg, struct tc_server_call *call)
{
    (void)arg;
    tc_server_call_set_events(call, &echo_events, call);
    struct tc_headers h;
    tc_headers_init(&h, tc_server_call_arena(call));
    tc_headers_add(&h, tc_slice_str("x-backend"), tc_slice_str("b1"));
    tc_headers_add(&h, tc_slice_str("y-bin"), tc_slice_of("\0\1", 2));
    tc_server_call_send_headers(call, &h, TC_H2_GZIP);
    tc_server_call_read(call);
}

/* chunk: the most bytes of one read of the server; 0: unlimited. opts NULL: the defaults. */
static void init(struct fixture *f, const struct tc_server_opts *opts, size_t chunk)
{
    memset(f, 0, sizeof(*f));
    kit_server_pipe_init(&f->k, opts);
    tc_server_add_method(f->k.server, "/t.S/Hold", on_hold, f);
    tc_server_add_method(f->k.server, "/t.S/Stream", on_stream_echo, f);
    tc_server_add_unary(f->k.server, "/t.S/Echo", on_unary, f);
    kit_server_pipe_connect(&f->k, chunk);
}

static void fini(struct fixture *f)
{
    kit_server_pipe_fini(&f->k);
}

/* Sends a whole request: these header fields and, unless it is NULL, a message. Runs the loop. */
static void ask(struct fixture *f, uint32_t id, const char *fields, const char *message)
{
    fake_h2_headers(f->k.peer, id, fields, false);
    if (message)
        fake_h2_message(f->k.peer, id, message, strlen(message), true);
    else
        fake_h2_data(f->k.peer, id, "", 0, true);
    tc_loop_drain(f->k.loop);
}

/* Skips frames up to the next HEADERS frame of the stream. Asserts that it has come, that `part` is in it, and that it
 * ends the stream exactly if `end` is set. */
static void expect_headers(struct fixture *f, uint32_t id, const char *part, bool end)
{
    const struct fake_h2_frame *frame = fake_h2_expect(f->k.peer, FAKE_H2_HEADERS, id);
    assert_non_null(frame);
    if (!strstr(frame->headers, part))
        fail_msg("no '%s' in\n%s", part, frame->headers);
    assert_int_equal(end, (frame->flags & FAKE_H2_END_STREAM) != 0);
}

static void unary(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct fixture f;
        init(&f, NULL, chunk);
        ask(&f, 1, REQUEST, "hello");
        expect_headers(&f, 1, ":status: 200\ncontent-type: application/grpc\n", false);
        const struct fake_h2_frame *frame = fake_h2_next(f.k.peer);
        assert_int_equal(frame->type, FAKE_H2_DATA);
        assert_int_equal(frame->flags, 0);
        assert_memory_equal(frame->payload, "\0\0\0\0\5hello", 10);
        expect_headers(&f, 1, "grpc-status: 0\n", true);
        ask(&f, 3, REQUEST, "fail");
        expect_headers(&f, 3, "grpc-status: 10\ngrpc-message: as you %C3%A9 wish%25\n", true);
        ask(&f, 5, REQUEST, NULL);
        expect_headers(&f, 5, "grpc-status: 13\ngrpc-message: unary request without a message\n", true);
        ask(&f, 7, REQUEST_TO("/t.S/None"), "x");
        expect_headers(&f, 7, "grpc-status: 12\ngrpc-message: unknown method /t.S/None\n", true);
        struct tc_server_counts counts;
        tc_server_counts(f.k.server, &counts);
        assert_int_equal(counts.requests, 4);
        assert_int_equal(counts.connections, 1);
        assert_int_equal(counts.open_calls, 0);
        fini(&f);
    }
}

/* Headers, message and status leave together, however many frames the message has. */
static void an_answer_is_one_write(void **state)
{
    (void)state;
    struct fixture f;
    char *text = tc_calloc(1, 40001);
    init(&f, NULL, 0);
    ask(&f, 1, REQUEST, "hello");
    size_t before = fake_pipe_writes(f.k.pipe, 0);
    ask(&f, 3, REQUEST, "hello");
    assert_int_equal(fake_pipe_writes(f.k.pipe, 0) - before, 1);
    memset(text, 'x', 40000);
    before = fake_pipe_writes(f.k.pipe, 0);
    ask(&f, 5, REQUEST, text);
    assert_int_equal(fake_pipe_writes(f.k.pipe, 0) - before, 1);
    for (uint32_t id = 1; id <= 5; id += 2) {
        expect_headers(&f, id, ":status: 200\n", false);
        expect_headers(&f, id, "grpc-status: 0\n", true);
    }
    /* The status leaves with the last of several messages. */
    fake_h2_headers(f.k.peer, 7, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    before = fake_pipe_writes(f.k.pipe, 0);
    for (int i = 0; i < 3; i++)
        tc_server_call_send(f.call, tc_slice_of("abc", 3));
    tc_server_call_finish(f.call, TORC_STATUS_OK, NULL, NULL);
    tc_loop_drain(f.k.loop);
    assert_int_equal(fake_pipe_writes(f.k.pipe, 0) - before, 3);
    expect_headers(&f, 7, ":status: 200\n", false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fake_h2_next(f.k.peer)->type, FAKE_H2_DATA);
    expect_headers(&f, 7, "grpc-status: 0\n", true);
    assert_int_equal(f.ends, 1);
    tc_free(text);
    fini(&f);
}

static void rejects_what_is_not_grpc(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *answer;
    } rows[] = {
        {":method: GET\n:scheme: http\n:path: /t.S/Echo\n:authority: a\ncontent-type: application/grpc\n",
         ":status: 405\n"},
        {":method: POST\n:scheme: http\n:path: /t.S/Echo\n:authority: a\ncontent-type: text/plain\n", ":status: 415\n"},
        {":method: POST\n:scheme: http\n:path: /t.S/Echo\n:authority: a\n", ":status: 415\n"},
        {REQUEST "grpc-timeout: 1\n", "grpc-status: 13\ngrpc-message: malformed grpc-timeout\n"},
        {REQUEST "x-bin: $$$\n", "grpc-status: 13\ngrpc-message: binary header that is not valid base64\n"},
        {REQUEST "grpc-encoding: br\n", "grpc-accept-encoding: identity,gzip\ngrpc-status: 12\n"},
        {REQUEST "grpc-timeout: 0n\n", "grpc-status: 4\ngrpc-message: the deadline of the request has passed\n"},
        /* Fields that may come once: the last counts. */
        {REQUEST "grpc-timeout: 1S\ngrpc-timeout: 1\n", "grpc-status: 13\ngrpc-message: malformed grpc-timeout\n"},
        {REQUEST "grpc-timeout: 1\ngrpc-timeout: 1S\n", ":status: 200\n"},
        {REQUEST "grpc-encoding: gzip\ngrpc-encoding: br\n", "grpc-status: 12\n"},
        {REQUEST "grpc-encoding: br\ngrpc-encoding: gzip\n", ":status: 200\n"},
        {REQUEST "content-type: text/plain\n", ":status: 415\n"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct fixture f;
        init(&f, NULL, i % 2);
        ask(&f, 1, rows[i].fields, "x");
        expect_headers(&f, 1, rows[i].answer, strcmp(rows[i].answer, ":status: 200\n") != 0);
        ask(&f, 3, REQUEST, "x");
        expect_headers(&f, 3, ":status: 200\n", false);
        fini(&f);
    }
}

static void header_limit(void **state)
{
    (void)state;
    struct fixture f;
    struct tc_buf fields = {0};
    init(&f, NULL, 0);
    tc_buf_append_str(&fields, REQUEST);
    for (int i = 0; i < 300; i++)
        tc_buf_printf(&fields, "x%d: 0123456789012345678901234567890123456789\n", i);
    ask(&f, 1, tc_buf_cstr(&fields), "x");
    expect_headers(&f, 1, "grpc-status: 8\n", true);
    ask(&f, 3, REQUEST, "x");
    expect_headers(&f, 3, ":status: 200\n", false);
    tc_buf_fini(&fields);
    fini(&f);
}

static void message_limit(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    fake_h2_headers(f.k.peer, 1, REQUEST, false);
    fake_h2_data(f.k.peer, 1, "\0\xff\xff\xff\xff", 5, false);
    tc_loop_drain(f.k.loop);
    expect_headers(&f, 1, "grpc-status: 8\ngrpc-message: received message larger than max (4294967295 vs. 4194304)\n",
                   true);
    assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_RST_STREAM, 1));
    fini(&f);
}

static void streaming_with_metadata_and_gzip(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct fixture f;
        init(&f, NULL, chunk);
        fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Stream") "grpc-accept-encoding: identity,gzip\n", false);
        fake_h2_message(f.k.peer, 1, "one", 3, false);
        tc_loop_drain(f.k.loop);
        expect_headers(&f, 1, "grpc-encoding: gzip\nx-backend: b1\ny-bin: AAE\n", false);
        const struct fake_h2_frame *frame = fake_h2_next(f.k.peer);
        assert_int_equal(frame->payload[0], 1);
        fake_h2_message(f.k.peer, 1, "two", 3, false);
        fake_h2_message(f.k.peer, 1, "three", 5, true);
        tc_loop_drain(f.k.loop);
        assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_DATA, 1));
        assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_DATA, 1));
        expect_headers(&f, 1, "grpc-status: 0\n", true);
        fini(&f);
    }
}

static void call_events(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold") "k: v\nz-bin: YQ,Yg==\nuser-agent: me\n", false);
    fake_h2_message(f.k.peer, 1, "one", 3, false);
    tc_loop_drain(f.k.loop);
    assert_string_equal(f.path, "/t.S/Hold");
    assert_string_equal(f.metadata, ":path=/t.S/Hold;:authority=a;k=v;z-bin=a;z-bin=b;user-agent=me;");
    assert_int_equal(f.messages, 0);
    tc_server_call_read(f.call);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.messages, 1);
    fake_h2_data(f.k.peer, 1, "", 0, true);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.half_closes, 0);
    tc_server_call_read(f.call);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.half_closes, 1);
    tc_server_call_send(f.call, tc_slice_of("a", 1));
    tc_server_call_send(f.call, tc_slice_of("b", 1));
    tc_server_call_finish(f.call, TORC_STATUS_OK, NULL, NULL);
    tc_server_call_send(f.call, tc_slice_of("c", 1));
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.end_code, TORC_STATUS_OK);
    assert_int_equal(fake_h2_count(f.k.peer, FAKE_H2_DATA, 1), 2);
    fini(&f);
}

static void client_cancels(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    assert_non_null(f.call);
    fake_h2_rst(f.k.peer, 1, 8);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.end_code, TORC_STATUS_CANCELLED);
    /* The client closes the connection. */
    fake_h2_headers(f.k.peer, 3, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    fake_pipe_finish(f.k.pipe, 1);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.ends, 2);
    assert_int_equal(f.end_code, TORC_STATUS_CANCELLED);
    struct tc_server_counts counts;
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_connections, 0);
    fini(&f);
}

static void deadline(void **state)
{
    TC_CASE(SV10);
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold") "grpc-timeout: 250m\n", false);
    tc_loop_drain(f.k.loop);
    tc_loop_advance(f.k.loop, 249);
    assert_int_equal(f.ends, 0);
    tc_loop_advance(f.k.loop, 1);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.end_code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_RST_STREAM, 1));
    fini(&f);
}

static void reset_and_close(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    tc_server_call_send(f.call, tc_slice_of("lost", 4));
    tc_server_call_reset(f.call, 11);
    assert_int_equal(f.ends, 0);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.end_code, TORC_STATUS_CANCELLED);
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_RST_STREAM, 1);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], 11);
    fake_h2_headers(f.k.peer, 3, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    tc_server_call_send(f.call, tc_slice_of("lost", 4));
    tc_server_close_connections(f.k.server);
    assert_int_equal(f.ends, 1);
    tc_loop_drain(f.k.loop);
    assert_int_equal(f.ends, 2);
    assert_int_equal(f.end_code, TORC_STATUS_UNAVAILABLE);
    assert_true(fake_pipe_closed(f.k.pipe, 0));
    fini(&f);
}

static void freed_with_open_calls(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    tc_server_call_send(f.call, tc_slice_of("lost", 4));
    fini(&f);
    assert_int_equal(f.ends, 0);
}

/* Replaces the client with a new one, which has sent nothing yet, not even the preface. */
static void reconnect(struct fixture *f)
{
    fake_h2_free(f->k.peer);
    tc_server_close_connections(f->k.server);
    tc_loop_drain(f->k.loop);
    fake_pipe_free(f->k.pipe);
    f->k.pipe = fake_pipe_new(f->k.loop);
    f->k.peer = fake_h2_new(f->k.pipe, 1, false);
    tc_server_accept(f->k.server, fake_pipe_end(f->k.pipe, 0));
}

static void too_many_streams(void **state)
{
    TC_CASE(SV25);
    (void)state;
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.http2.limits.max_concurrent_streams = 2;
    struct fixture f;
    init(&f, &opts, 0);
    const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_SETTINGS, 0);
    assert_memory_equal(frame->payload, "\0\3\0\0\0\2", 6);
    fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold"), false);
    fake_h2_headers(f.k.peer, 3, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    struct tc_server_counts counts;
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_calls, 2);
    assert_int_equal(counts.open_connections, 1);
    fake_h2_headers(f.k.peer, 5, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_calls, 0);
    assert_int_equal(counts.open_connections, 0);
    frame = fake_h2_expect(f.k.peer, FAKE_H2_GOAWAY, 0);
    assert_non_null(frame);
    assert_int_equal(frame->payload[7], 1);
    fini(&f);
    /* A client that has not acknowledged the limit may not know it: the stream is refused, the connection stays. */
    init(&f, &opts, 0);
    reconnect(&f);
    fake_h2_bytes(f.k.peer, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    fake_h2_frame(f.k.peer, FAKE_H2_SETTINGS, 0, 0, "", 0);
    for (uint32_t id = 1; id <= 5; id += 2)
        fake_h2_headers(f.k.peer, id, REQUEST_TO("/t.S/Hold"), false);
    tc_loop_drain(f.k.loop);
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_calls, 2);
    frame = fake_h2_expect(f.k.peer, FAKE_H2_RST_STREAM, 5);
    assert_non_null(frame);
    assert_int_equal(frame->payload[3], 7);
    fini(&f);
}

/* The server's headers (part 0), its trailers (part 1), or a single block that is both (part 2) are larger than the
 * client's SETTINGS allow. */
static void client_takes_few_headers(void **state)
{
    TC_CASE(SV31);
    (void)state;
    char large[300];
    memset(large, 'x', sizeof(large));
    for (int part = 0; part < 3; part++) {
        struct fixture f;
        struct tc_headers h;
        init(&f, NULL, 0);
        fake_h2_setting(f.k.peer, 6, 400);
        fake_h2_headers(f.k.peer, 1, REQUEST_TO("/t.S/Hold"), false);
        tc_loop_drain(f.k.loop);
        tc_headers_init(&h, tc_server_call_arena(f.call));
        tc_headers_add(&h, tc_slice_str("k"), tc_slice_of(large, sizeof(large)));
        if (part == 0)
            tc_server_call_send_headers(f.call, &h, TC_H2_IDENTITY);
        if (part <= 1)
            tc_server_call_send(f.call, tc_slice_str("hi"));
        if (part >= 1)
            tc_server_call_finish(f.call, TORC_STATUS_ABORTED, "a longer text: 0123456789", &h);
        tc_loop_drain(f.k.loop);
        const struct fake_h2_frame *frame = fake_h2_expect(f.k.peer, FAKE_H2_RST_STREAM, 1);
        assert_non_null(frame);
        assert_int_equal(frame->payload[3], 2);
        assert_int_equal(f.ends, 1);
        assert_int_equal(f.end_code, TORC_STATUS_INTERNAL);
        /* The next RPC of the connection is served. */
        ask(&f, 3, REQUEST, "hi");
        assert_non_null(fake_h2_expect(f.k.peer, FAKE_H2_DATA, 3));
        fini(&f);
    }
}

/* Each request gives credit for window updates. Updates beyond the credit and the allowance for glitches end the
 * connection. */
static void windows_of_requests(void **state)
{
    (void)state;
    enum { REQUESTS = 8000 };
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    opts.http2.limits.max_concurrent_streams = REQUESTS;
    struct fixture f;
    struct tc_server_counts counts;
    init(&f, &opts, 0);
    for (uint32_t id = 1; id < 2 * REQUESTS; id += 2) {
        fake_h2_headers(f.k.peer, id, REQUEST_TO("/t.S/Hold"), false);
        for (int i = 0; i < 3; i++)
            fake_h2_window(f.k.peer, id, 1);
        if (id % 100 == 99)
            tc_loop_drain(f.k.loop);
    }
    tc_loop_drain(f.k.loop);
    tc_server_counts(f.k.server, &counts);
    assert_int_equal(counts.open_calls, REQUESTS);
    int windows = 0;
    for (; counts.open_connections && windows < 100000; windows += 100) {
        for (int i = 0; i < 100; i++)
            fake_h2_window(f.k.peer, 1, 1);
        tc_loop_drain(f.k.loop);
        tc_server_counts(f.k.server, &counts);
    }
    assert_in_range(windows, REQUESTS, REQUESTS + 20100);
    assert_int_equal(f.ends, REQUESTS);
    fini(&f);
}

static void bad_preface(void **state)
{
    TC_CASE(SV28);
    (void)state;
    struct fixture f;
    init(&f, NULL, 0);
    reconnect(&f);
    fake_h2_bytes(f.k.peer, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    tc_loop_drain(f.k.loop);
    assert_true(fake_pipe_closed(f.k.pipe, 0));
    fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary),
        cmocka_unit_test(an_answer_is_one_write),
        cmocka_unit_test(rejects_what_is_not_grpc),
        cmocka_unit_test(header_limit),
        cmocka_unit_test(message_limit),
        cmocka_unit_test(streaming_with_metadata_and_gzip),
        cmocka_unit_test(call_events),
        cmocka_unit_test(client_cancels),
        cmocka_unit_test(deadline),
        cmocka_unit_test(reset_and_close),
        cmocka_unit_test(freed_with_open_calls),
        cmocka_unit_test(too_many_streams),
        cmocka_unit_test(client_takes_few_headers),
        cmocka_unit_test(windows_of_requests),
        cmocka_unit_test(bad_preface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
