/* The rules of gRPC for what a server takes and answers, against a scripted client (fakes/h2 over fakes/pipe) on a
 * manual loop.
 *
 * Most tests are lists of `expect`: one request on a connection of its own, and what must come back. The server has the
 * unary method /t.S/Unary; every other valid path reaches on_any. Both handlers echo. A test that needs more steps
 * calls `init` or init_with, which makes loop, server and client and connects the two, and `fini`, which frees them. */
#include <stdio.h>

#include "base/mem.h"
#include "http2/encoding.h"
#include "server/call.h"
#include "server/server.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

#define POST(path) ":method: POST\n:scheme: http\n:path: " path "\n"
#define REST ":authority: a\nte: trailers\ncontent-type: application/grpc\n"
#define REQUEST POST("/t.S/Any") REST
#define UNARY POST("/t.S/Unary") REST

struct fixture {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct fake_h2 *peer;
    struct tc_server *server;
    unsigned calls;              /* of both handlers */
    struct tc_server_call *call; /* the last that on_any got */
    char metadata[512];          /* its headers: "name=value;" for each */
};

static void on_end(void *arg, const struct tc_status *why)
{
    (void)arg, (void)why;
}

static void on_message(void *arg, struct tc_rstr *message)
{
    tc_server_call_reply(arg, tc_rstr_slice(message));
    tc_rstr_unref(message);
}

static const struct tc_server_call_events events = {.on_message = on_message, .on_end = on_end};

/* Records the request's headers. The events echo the first message. */
static void on_any(void *arg, struct tc_server_call *call)
{
    struct fixture *f = arg;
    const struct tc_headers *h = tc_server_call_metadata(call);
    f->calls++;
    f->call = call;
    f->metadata[0] = '\0';
    for (size_t i = 0; i < h->len; i++)
        snprintf(f->metadata + strlen(f->metadata), sizeof(f->metadata) - strlen(f->metadata), "%.*s=%.*s;",
                 (int)h->data[i].name.len, h->data[i].name.data, (int)h->data[i].value.len, h->data[i].value.data);
    tc_server_call_set_events(call, &events, call);
    tc_server_call_read(call);
}

static void on_unary(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    ((struct fixture *)arg)->calls++;
    tc_server_call_reply(call, tc_rstr_slice(request));
}

static void init_with(struct fixture *f, const struct tc_server_opts *opts)
{
    memset(f, 0, sizeof(*f));
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 3});
    f->server = tc_server_new(f->loop, opts);
    tc_server_set_default(f->server, on_any, f);
    tc_server_add_unary(f->server, "/t.S/Unary", on_unary, f);
    f->pipe = fake_pipe_new(f->loop);
    f->peer = fake_h2_new(f->pipe, 1, false);
    tc_server_accept(f->server, fake_pipe_end(f->pipe, 0));
    fake_h2_start(f->peer);
    tc_loop_drain(f->loop);
}

static void init(struct fixture *f)
{
    init_with(f, NULL);
}

static void fini(struct fixture *f)
{
    tc_server_free(f->server);
    tc_loop_drain(f->loop);
    fake_h2_free(f->peer);
    fake_pipe_free(f->pipe);
    tc_loop_free(f->loop);
}

/* Sends a request whose DATA is these bytes (NULL: the message "x"), on a connection of its own. `reset`: the code of
 * the RST_STREAM that must come, -1: `answer` must be in the headers or trailers. `calls`: how often a handler must be
 * called. */
static void expect(const char *fields, struct tc_slice data, const char *answer, int reset, unsigned calls)
{
    struct fixture f;
    init(&f);
    fake_h2_headers(f.peer, 1, fields, false);
    if (data.data)
        fake_h2_data(f.peer, 1, data.data, data.len, true);
    else
        fake_h2_message(f.peer, 1, "x", 1, true);
    tc_loop_drain(f.loop);
    assert_int_equal(f.calls, calls);
    const struct fake_h2_frame *frame = NULL;
    if (reset >= 0) {
        frame = fake_h2_expect(f.peer, FAKE_H2_RST_STREAM, 1);
        assert_non_null(frame);
        assert_int_equal(frame->payload[3], reset);
    } else {
        while ((frame = fake_h2_expect(f.peer, FAKE_H2_HEADERS, 1)) && !strstr(frame->headers, answer)) {
        }
        if (!frame)
            fail_msg("no '%s' for\n%s", answer, fields);
    }
    fini(&f);
}

#define NO_DATA tc_slice_of(NULL, 0)
enum { PROTOCOL_ERROR = 1 };

static void http_of_requests(void **state)
{
    TC_CASE(SV01);
    TC_CASE(SV02);
    TC_CASE(SV03);
    (void)state;
    expect(":method: GET\n:scheme: http\n:path: /t.S/Any\n" REST, NO_DATA, ":status: 405\ngrpc-status: 13\n", -1, 0);
    expect(":method: GET\n:scheme: http\n:path: /t.S/Any\n" REST, NO_DATA, "\nallow: POST\n", -1, 0);
    static const char *const bad[] = {"application/foo", "application/grpcfoo", "text/plain", ""};
    static const char *const good[] = {"application/grpc+json", "application/grpc;v=1", "application/grpc+proto"};
    char fields[256];
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        snprintf(fields, sizeof(fields), POST("/t.S/Any") ":authority: a\ncontent-type: %s\n", bad[i]);
        expect(fields, NO_DATA, ":status: 415\ngrpc-status: 3\n", -1, 0);
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        snprintf(fields, sizeof(fields), POST("/t.S/Any") ":authority: a\ncontent-type: %s\n", good[i]);
        expect(fields, NO_DATA, "grpc-status: 0\n", -1, 1);
    }
}

/* HTTP/2 demands that a path begin with a slash: nghttp2 resets a request with any other path. */
static void paths(void **state)
{
    TC_CASE(SV04);
    (void)state;
    expect(POST("/") REST, NO_DATA, "grpc-status: 12\ngrpc-message: malformed method name\n", -1, 0);
    expect(POST("//s/m") REST, NO_DATA, "grpc-status: 12\n", -1, 0);
    expect(POST("/s") REST, NO_DATA, "grpc-status: 12\n", -1, 0);
    expect(POST("/s/") REST, NO_DATA, "grpc-status: 12\n", -1, 0);
    expect(POST("x/y") REST, NO_DATA, NULL, PROTOCOL_ERROR, 0);
    expect(POST("/s/m") REST, NO_DATA, "grpc-status: 0\n", -1, 1);
}

static void headers_of_connections(void **state)
{
    TC_CASE(SV05);
    TC_CASE(SV06);
    (void)state;
    expect(REQUEST "connection: close\n", NO_DATA, NULL, PROTOCOL_ERROR, 0);
    expect(REQUEST "host: a\nhost: b\n", NO_DATA, NULL, PROTOCOL_ERROR, 0);
}

static void host_is_the_authority(void **state)
{
    TC_CASE(SV07);
    (void)state;
    struct fixture f;
    init(&f);
    fake_h2_headers(f.peer, 1, POST("/t.S/Any") "k: v\ncontent-type: application/grpc\nhost: h\n", true);
    tc_loop_drain(f.loop);
    assert_string_equal(f.metadata, ":path=/t.S/Any;:authority=h;k=v;");
    fake_h2_headers(f.peer, 3,
                    REQUEST "host: h\ngrpc-timeout: 1S\ngrpc-encoding: gzip\ngrpc-accept-encoding: gzip\n"
                            "user-agent: u\ngrpc-x: y\n",
                    true);
    tc_loop_drain(f.loop);
    assert_string_equal(f.metadata, ":path=/t.S/Any;:authority=a;user-agent=u;grpc-x=y;");
    fini(&f);
    expect(POST("/t.S/Any") "content-type: application/grpc\n", NO_DATA, NULL, PROTOCOL_ERROR, 0);
}

static void timeouts(void **state)
{
    TC_CASE(SV08);
    TC_CASE(SV09);
    (void)state;
    static const char *const bad[] = {"1234x", "1", "-1S", "000000000S", ""};
    char fields[256];
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        snprintf(fields, sizeof(fields), REQUEST "grpc-timeout: %s\n", bad[i]);
        expect(fields, NO_DATA,
               ":status: 400\ngrpc-status: 13\ngrpc-message: malformed grpc-timeout\ncontent-type: application/grpc\n",
               -1, 0);
    }
    expect(REQUEST "x-bin: $$$\n", NO_DATA, ":status: 400\ngrpc-status: 13\ngrpc-message: binary header that is not",
           -1, 0);
    expect(REQUEST "grpc-timeout: 0S\n", NO_DATA, "grpc-status: 4\n", -1, 0);
    expect(REQUEST "grpc-timeout: 99999999H\n", NO_DATA, "grpc-status: 0\n", -1, 1);
}

static void encodings(void **state)
{
    TC_CASE(SV11);
    TC_CASE(SV12);
    TC_CASE(SV13);
    (void)state;
    expect(REQUEST "grpc-encoding: foo\n", NO_DATA,
           "grpc-accept-encoding: identity,gzip\ngrpc-status: 12\n"
           "grpc-message: grpc-encoding \"foo\" is not supported, but identity and gzip are\n",
           -1, 0);
    expect(REQUEST "grpc-encoding: foo\ngrpc-encoding: identity\n", NO_DATA, "grpc-status: 0\n", -1, 1);
    expect(REQUEST, tc_slice_of("\1\0\0\0\1x", 6), "grpc-status: 13\n", -1, 1);
    expect(REQUEST "grpc-encoding: identity\n", tc_slice_of("\1\0\0\0\1x", 6), "grpc-status: 13\n", -1, 1);
    expect(REQUEST, tc_slice_of("\2\0\0\0\1x", 6), "grpc-status: 13\n", -1, 1);
    /* "x" as gzip: first with one wrong bit in its checksum, then as it should be. */
    expect(REQUEST "grpc-encoding: gzip\n",
           tc_slice_of("\1\0\0\0\x15\x1f\x8b\x08\0\0\0\0\0\0\3\xab\0\0\x82\x16\xdc\x8c\1\0\0\0", 26),
           "grpc-status: 13\n", -1, 1);
    expect(REQUEST "grpc-encoding: gzip\n",
           tc_slice_of("\1\0\0\0\x15\x1f\x8b\x08\0\0\0\0\0\0\3\xab\0\0\x83\x16\xdc\x8c\1\0\0\0", 26),
           "grpc-status: 0\n", -1, 1);
}

/* A name that has gzip in it is another encoding. */
static void encodings_of_answers(void **state)
{
    TC_CASE(SV29);
    (void)state;
    static const char *const with[] = {"gzip", "identity,gzip", "x-gzip , gzip", "deflate,\tgzip,br"};
    static const char *const without[] = {"identity,x-gzip", "gzipped", "", "gzip;q=1", "Gzip"};
    char fields[256];
    for (size_t i = 0; i < TC_ARRAY_LEN(with) + TC_ARRAY_LEN(without); i++) {
        bool gzip = i < TC_ARRAY_LEN(with);
        struct fixture f;
        init(&f);
        snprintf(fields, sizeof(fields), REQUEST "grpc-accept-encoding: %s\n",
                 gzip ? with[i] : without[i - TC_ARRAY_LEN(with)]);
        fake_h2_headers(f.peer, 1, fields, false);
        tc_loop_drain(f.loop);
        tc_server_call_send_headers(f.call, NULL, TC_H2_GZIP);
        tc_loop_drain(f.loop);
        const struct fake_h2_frame *frame = fake_h2_expect(f.peer, FAKE_H2_HEADERS, 1);
        assert_non_null(frame);
        if (gzip != (strstr(frame->headers, "grpc-encoding: gzip\n") != NULL))
            fail_msg("%s: %s", fields, frame->headers);
        fini(&f);
    }
}

static void sizes_of_messages(void **state)
{
    TC_CASE(SV14);
    (void)state;
    expect(REQUEST, tc_slice_of("\0\0\x40\0\1", 5), "grpc-status: 8\n", -1, 1);
    /* 8 MiB of zeros are about 8 KiB of gzip. */
    char *zeros = tc_calloc(1, 8 << 20);
    struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(zeros, 8 << 20));
    struct tc_buf message = {0};
    uint8_t prefix[5] = {1, (uint8_t)(packed->len >> 24), (uint8_t)(packed->len >> 16), (uint8_t)(packed->len >> 8),
                         (uint8_t)packed->len};
    tc_buf_append(&message, prefix, 5);
    tc_buf_append_slice(&message, tc_rstr_slice(packed));
    expect(REQUEST "grpc-encoding: gzip\n", tc_buf_slice(&message), "grpc-status: 8\n", -1, 1);
    tc_buf_fini(&message);
    tc_rstr_unref(packed);
    tc_free(zeros);
}

static void messages_of_unary_requests(void **state)
{
    TC_CASE(SV15);
    (void)state;
    expect(UNARY, tc_slice_of("", 0), "grpc-status: 13\n", -1, 0);
    expect(UNARY, tc_slice_of("\0\0\0\0\0\0\0\0\0\0", 10), "grpc-status: 13\n", -1, 0);
    expect(UNARY, tc_slice_of("\0\0\0\0\0", 5), "grpc-status: 0\n", -1, 1);
}

static void trailers_before_the_client_ends(void **state)
{
    TC_CASE(SV16);
    (void)state;
    struct fixture f;
    init(&f);
    fake_h2_headers(f.peer, 1, REQUEST, false);
    fake_h2_message(f.peer, 1, "x", 1, false);
    tc_loop_drain(f.loop);
    const struct fake_h2_frame *frame;
    while ((frame = fake_h2_expect(f.peer, FAKE_H2_HEADERS, 1)) && !strstr(frame->headers, "grpc-status: 0\n")) {
    }
    assert_non_null(frame);
    frame = fake_h2_expect(f.peer, FAKE_H2_RST_STREAM, 1);
    assert_non_null(frame);
    assert_memory_equal(frame->payload, "\0\0\0\0", 4);
    fini(&f);
}

/* With status_at_end, tc_server_end sends its status on an open call. A call that has a status already keeps it. */
static void ends_are_told(void **state)
{
    (void)state;
    struct tc_server_opts opts;
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_API, "the server ends");
    struct fixture f;
    tc_server_opts_init(&opts);
    opts.status_at_end = true;
    init_with(&f, &opts);
    fake_h2_headers(f.peer, 1, REQUEST, false);
    fake_h2_headers(f.peer, 3, REQUEST, false);
    tc_loop_drain(f.loop);
    tc_server_call_finish(f.call, TORC_STATUS_NOT_FOUND, "answered", NULL); /* of stream 3 */
    tc_server_end(f.server, &why);
    tc_status_fini(&why);
    tc_loop_drain(f.loop);
    int answered = 0, told = 0;
    const struct fake_h2_frame *frame;
    while ((frame = fake_h2_next(f.peer))) {
        if (frame->type == FAKE_H2_RST_STREAM)
            assert_memory_equal(frame->payload, "\0\0\0\0", 4); /* the client has not ended its side */
        if (frame->type != FAKE_H2_HEADERS)
            continue;
        answered += frame->stream == 3 && strstr(frame->headers, "grpc-status: 5\n");
        told += frame->stream == 1 && strstr(frame->headers, "grpc-status: 14\ngrpc-message: the server ends\n");
    }
    assert_int_equal(answered, 1);
    assert_int_equal(told, 1);
    fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_of_requests),
        cmocka_unit_test(paths),
        cmocka_unit_test(headers_of_connections),
        cmocka_unit_test(host_is_the_authority),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(encodings),
        cmocka_unit_test(encodings_of_answers),
        cmocka_unit_test(sizes_of_messages),
        cmocka_unit_test(messages_of_unary_requests),
        cmocka_unit_test(trailers_before_the_client_ends),
        cmocka_unit_test(ends_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
