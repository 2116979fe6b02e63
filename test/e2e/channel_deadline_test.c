/* A deadline that both sides watch: the outcome must not depend on which side ends the call first. The server resets
 * the call with CANCEL. A reset after the deadline ends the call with DEADLINE_EXCEEDED, a reset before the deadline
 * with CANCELLED.
 *
 * The test's thread plays the server, frame by frame on a real socket, and turns the client's loop in between. Time is
 * real. */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/fakes/h2.h"

/* Long enough to connect on a busy machine. */
#define TIMEOUT_MS 1000

/* A server of one connection, played on the test's thread. */
struct server {
    int listener, fd;
    char target[64];
    struct fake_h2 *peer;
};

static void server_init(struct server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
    snprintf(s->target, sizeof(s->target), "ipv4:127.0.0.1:%u", (unsigned)ntohs(a.sin_port));
    s->fd = -1;
    s->peer = fake_h2_new_raw(true);
}

static void server_fini(struct server *s)
{
    fake_h2_free(s->peer);
    close(s->fd);
    close(s->listener);
}

static void server_flush(struct server *s)
{
    struct tc_buf *out = fake_h2_take(s->peer);
    if (out->len)
        assert_int_equal(send(s->fd, out->data, out->len, MSG_NOSIGNAL), (ssize_t)out->len);
    tc_buf_clear(out);
}

/* Runs client and server until the server has the request's HEADERS. Returns the stream's number. */
static uint32_t server_await_request(struct server *s, torc_runtime *rt)
{
    for (;;) {
        torc_runtime_poll(rt, 1);
        if (s->fd < 0) {
            s->fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
            if (s->fd < 0)
                continue;
            fake_h2_start(s->peer);
        }
        char bytes[4096];
        ssize_t n = recv(s->fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            fake_h2_feed(s->peer, bytes, (size_t)n);
        server_flush(s);
        const struct fake_h2_frame *f = fake_h2_expect(s->peer, FAKE_H2_HEADERS, 0);
        if (f)
            return f->stream;
    }
}

struct outcome {
    bool done;
    int code;
    char message[256];
};

static void on_unary(const torc_result *result, void *arg)
{
    struct outcome *o = arg;
    o->done = true;
    o->code = torc_result_code(result);
    snprintf(o->message, sizeof(o->message), "%s", torc_result_text(result));
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Makes a call whose stream the server resets with CANCEL, before or after the deadline. Returns the outcome. */
static struct outcome reset_by_server(bool late)
{
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *rt = torc_runtime_new(&ro, NULL);
    struct server s;
    server_init(&s);
    torc_channel *ch = torc_channel_new(rt, s.target, NULL, NULL);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = late ? TIMEOUT_MS : 60000,
                                  .wait_for_ready = TORC_ON};
    uint64_t begun = now_ms();
    struct outcome outcome = {0};
    assert_int_equal(torc_unary_async(ch, "a/b", "x", 1, &o, on_unary, &outcome, NULL, NULL), 0);
    uint32_t stream = server_await_request(&s, rt);
    assert_false(outcome.done);
    /* The loop does not turn before the reset is sent. Then a turn takes in the reset before the due timer. */
    while (late && now_ms() < begun + TIMEOUT_MS + 5)
        poll(NULL, 0, 1);
    fake_h2_rst(s.peer, stream, 8);
    server_flush(&s);
    while (!outcome.done)
        torc_runtime_poll(rt, 100);
    torc_channel_free(ch);
    server_fini(&s);
    assert_int_equal(torc_runtime_free(rt), 0);
    return outcome;
}

static void test_reset_after_the_deadline(void **state)
{
    (void)state;
    struct outcome o = reset_by_server(true);
    assert_int_equal(o.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(o.message, "deadline exceeded after 1.000 s while waiting for the response of 127.0.0.1:"));
}

static void test_reset_before_the_deadline(void **state)
{
    (void)state;
    struct outcome o = reset_by_server(false);
    assert_int_equal(o.code, TORC_STATUS_CANCELLED);
    assert_non_null(strstr(o.message, "stream reset by the server with CANCEL (8)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reset_after_the_deadline),
        cmocka_unit_test(test_reset_before_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
