/* The echo service of `torc backend`: its methods, its delay, and the bound on requests that wait for the delay. While
 * a client sends and does not read, the service stops reading; it goes on when the client reads.
 *
 * Each test opens a struct backend, or several one after the other: a server with the echo of cmd/torc/echo.h, and a
 * client, over real sockets. The backend's thread drives the server's runtime, until backend_close stops that thread.
 * The test's thread drives the client's runtime, inside the blocking calls. */
#include "echo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

#define MESSAGE_BYTES ((size_t)256 << 10)
enum { MESSAGES = 400, REPEATED = 3000, DELAY_MS = 50 };

/* A server whose thread does what `torc backend` does, and a channel, whose runtime the test's thread drives. */
struct backend {
    torc_runtime *rt;
    torc_server *server;
    struct echo *echo;
    pthread_t thread;
    atomic_bool stop;
    char *address;
    torc_runtime *client;
    torc_channel *ch;
};

static void *serve(void *arg)
{
    struct backend *b = arg;
    while (!atomic_load(&b->stop)) {
        torc_runtime_poll(b->rt, echo_timeout_ms(b->echo));
        echo_run_due(b->echo);
    }
    return NULL;
}

static void backend_open(struct backend *b, const struct echo_opts *opts)
{
    *b = (struct backend){.rt = kit_backends_runtime(TORC_RUNTIME_CALLER), .echo = echo_new(opts)};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = b->rt};
    b->server = torc_server_new(&o, NULL);
    assert_int_equal(echo_add(b->echo, b->server, NULL), 0);
    assert_int_equal(torc_server_listen(b->server, "127.0.0.1:0", torc_credentials_insecure(), &b->address, NULL), 0);
    assert_int_equal(torc_server_start(b->server, NULL), 0);
    assert_int_equal(pthread_create(&b->thread, NULL, serve, b), 0);
    b->client = kit_backends_runtime(TORC_RUNTIME_CALLER);
    b->ch = torc_channel_new(b->client, b->address, NULL, NULL);
}

static void on_stop(void *arg)
{
    atomic_store(&((struct backend *)arg)->stop, true);
}

static void backend_close(struct backend *b)
{
    torc_channel_free(b->ch);
    torc_runtime_free(b->client);
    torc_runtime_post(b->rt, on_stop, b);
    pthread_join(b->thread, NULL);
    torc_server_free(b->server);
    torc_runtime_free(b->rt);
    echo_free(b->echo);
    torc_free(b->address);
}

static const struct echo_opts plain = {.name = "b"};

static void test_back_pressure(void **state)
{
    (void)state;
    struct backend b;
    const torc_message *m;
    int sent = 0, received = 0, rc;
    char *zeros = calloc(1, MESSAGE_BYTES);
    backend_open(&b, &plain);
    torc_stream *s = torc_stream_open(b.ch, "a.B/C", NULL, NULL);
    while ((rc = torc_stream_send(s, zeros, MESSAGE_BYTES, 0, 500)) == 0)
        assert_true(++sent < MESSAGES);
    assert_int_equal(rc, TORC_ETIMEDOUT); /* the windows and the buffers are full */
    while (received < sent) {
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        assert_int_equal(torc_message_size(m), MESSAGE_BYTES);
        received++;
    }
    assert_int_equal(torc_stream_send(s, "last", 4, TORC_SEND_LAST, -1), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_int_equal(torc_message_size(m), 4);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(s);
    free(zeros);
    backend_close(&b);
}

static void test_repeat(void **state)
{
    (void)state;
    struct backend b;
    const torc_message *m;
    backend_open(&b, &plain);
    torc_stream *s = torc_stream_open(b.ch, "torc.test.Backend/Repeat", NULL, NULL);
    assert_int_equal(torc_stream_send(s, "again", 5, TORC_SEND_LAST, -1), 0);
    for (int i = 0; i < REPEATED; i++) {
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        assert_int_equal(torc_message_size(m), 5);
    }
    torc_stream_close(s);
    s = torc_stream_open(b.ch, "torc.test.Backend/Repeat", NULL, NULL);
    assert_int_equal(torc_stream_half_close(s), 0);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_INVALID_ARGUMENT);
    torc_result_free(r);
    torc_stream_free(s);
    backend_close(&b);
}

static const struct row {
    const char *method, *request;
    int code;
    const char *part; /* the response contains it; NULL: any response */
    int64_t timeout_ms;
} rows[] = {
    {"a.B/C", "x", TORC_STATUS_OK, "x", 0},
    {"torc.test.Backend/Count", "", TORC_STATUS_OK, "2", 0},
    {"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "", TORC_STATUS_UNIMPLEMENTED, NULL, 0},
    {"torc.test.Backend/Count", "", TORC_STATUS_OK, "3", 0},
    {"torc.test.Backend/Fail", "5", TORC_STATUS_NOT_FOUND, NULL, 0},
    {"torc.test.Backend/Fail", "17", TORC_STATUS_INVALID_ARGUMENT, NULL, 0},
    {"torc.test.Backend/Fail", "", TORC_STATUS_INVALID_ARGUMENT, NULL, 0},
    {"torc.test.Backend/Hang", "x", TORC_STATUS_DEADLINE_EXCEEDED, NULL, 100},
    {"torc.test.Backend/Headers", "", TORC_STATUS_OK, ":path: /torc.test.Backend/Headers\n", 0},
    {"torc.test.Backend/Headers", "", TORC_STATUS_OK, ":authority: 127.0.0.1:", 0},
    {"torc.test.Backend/Headers", "", TORC_STATUS_OK, "x-a: 1\nx-load-metrics-bin: AAE=\nx-a: 2\n", 0},
};

/* Makes the call of the row, with the row's timeout and otherwise these options, and asserts its outcome. The load
 * report and x-backend come back, except with UNIMPLEMENTED and DEADLINE_EXCEEDED. */
static void expect_row(struct backend *b, const struct row *row, const struct torc_call_options *with)
{
    struct torc_call_options o = *with;
    o.timeout_ms = row->timeout_ms;
    torc_result *r = torc_unary(b->ch, row->method, row->request, strlen(row->request), &o);
    const torc_message *m = torc_result_response(r);
    if (torc_result_code(r) != row->code || (row->part && !strstr(torc_message_data(m), row->part)))
        fail_msg("%s: %d %s \"%s\"", row->method, torc_result_code(r), torc_result_text(r),
                 m ? (const char *)torc_message_data(m) : "");
    bool answers = row->code != TORC_STATUS_UNIMPLEMENTED && row->code != TORC_STATUS_DEADLINE_EXCEEDED;
    size_t size = 0;
    const char *load = torc_metadata_find(torc_result_trailers(r), "endpoint-load-metrics-bin", &size);
    assert_int_equal(load != NULL, answers);
    assert_int_equal(size, answers ? 2 : 0);
    /* The service names itself in the headers of a call, or, if the call fails without headers, in the trailers. */
    const torc_metadata *names = row->code ? torc_result_trailers(r) : torc_result_headers(r);
    const char *name = torc_metadata_find(names, "x-backend", NULL);
    assert_int_equal(name != NULL, answers);
    assert_string_equal(answers ? name : "", answers ? "b" : "");
    torc_result_free(r);
}

static void test_methods(void **state)
{
    (void)state;
    struct backend b;
    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add_string(metadata, "x-a", "1");
    torc_metadata_add(metadata, "x-load-metrics-bin", "\0\1", 2);
    torc_metadata_add_string(metadata, "x-a", "2");
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = metadata};
    for (int delayed = 0; delayed < 2; delayed++) {
        backend_open(&b, &(struct echo_opts){.name = "b", .delay_ms = delayed ? DELAY_MS : 0});
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            int64_t begun_ms = torc_time_ms();
            expect_row(&b, &rows[i], &o);
            if (delayed && rows[i].code != TORC_STATUS_UNIMPLEMENTED)
                assert_true(torc_time_ms() - begun_ms >= DELAY_MS);
        }
        assert_int_equal(echo_requests(b.echo), sizeof(rows) / sizeof(rows[0]) - 1);
        backend_close(&b);
    }
    backend_open(&b, &(struct echo_opts){.name = "b", .fail_code = TORC_STATUS_ABORTED, .fail_percent = 100});
    expect_row(&b, &(struct row){"a.B/C", "x", TORC_STATUS_ABORTED, NULL, 0}, &o);
    expect_row(&b, &(struct row){"torc.test.Backend/Count", "", TORC_STATUS_OK, "2", 0}, &o);
    backend_close(&b);
    torc_metadata_free(metadata);
}

/* Four requests of 256 KiB come at once. max_held, 600,000 bytes, has room for two, which wait for the delay until
 * their deadline. The service refuses the other two. */
static void test_held_requests_are_bounded(void **state)
{
    (void)state;
    struct backend b;
    torc_stream *s[4];
    char *zeros = calloc(1, MESSAGE_BYTES);
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 2000};
    backend_open(&b, &(struct echo_opts){.name = "b", .delay_ms = 3600000, .max_held = 600000});
    for (int round = 0; round < 2; round++) { /* requests of the first round no longer count */
        int refused = 0, held = 0;
        for (int i = 0; i < 4; i++) {
            s[i] = torc_stream_open(b.ch, "a.B/C", &o, NULL);
            assert_int_equal(torc_stream_send(s[i], zeros, MESSAGE_BYTES, TORC_SEND_LAST, -1), 0);
        }
        for (int i = 0; i < 4; i++) {
            torc_result *r = torc_stream_finish(s[i]);
            refused += torc_result_code(r) == TORC_STATUS_RESOURCE_EXHAUSTED;
            held += torc_result_code(r) == TORC_STATUS_DEADLINE_EXCEEDED;
            torc_result_free(r);
            torc_stream_free(s[i]);
        }
        assert_int_equal(refused, 2);
        assert_int_equal(held, 2);
    }
    free(zeros);
    backend_close(&b);
}

/* An echo that waits for the delay, and a Hang, end by their deadlines. Another waiting echo ends when the server is
 * freed. */
static void test_the_end_meanwhile(void **state)
{
    (void)state;
    struct backend b;
    backend_open(&b, &(struct echo_opts){.name = "b", .delay_ms = 3600000});
    const struct row late[] = {{"a.B/C", "x", TORC_STATUS_DEADLINE_EXCEEDED, NULL, 100},
                               {"torc.test.Backend/Hang", "x", TORC_STATUS_DEADLINE_EXCEEDED, NULL, 100}};
    torc_stream *s = torc_stream_open(b.ch, "a.B/C", NULL, NULL);
    assert_int_equal(torc_stream_send(s, "x", 1, TORC_SEND_LAST, -1), 0);
    for (int i = 0; i < 2; i++) {
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = late[i].timeout_ms};
        torc_result *r = torc_unary(b.ch, late[i].method, "x", 1, &o);
        assert_int_equal(torc_result_code(r), late[i].code);
        torc_result_free(r);
    }
    torc_server_free(b.server);
    b.server = NULL;
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    torc_stream_free(s);
    backend_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back_pressure),     cmocka_unit_test(test_repeat),
        cmocka_unit_test(test_methods),           cmocka_unit_test(test_held_requests_are_bounded),
        cmocka_unit_test(test_the_end_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
