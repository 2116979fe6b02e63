/* The echo backend: it stops reading from a client that sends and does not read, and goes on when the client reads; and
 * the method that repeats a message. */
#include "controlplane/backend.h"

#include "base/mem.h"
#include "support/cmocka.h"
#include "support/kits/server.h"

#define MESSAGE_BYTES ((size_t)256 << 10)
#define MESSAGES 400

struct writer {
    struct tc_call *call;
    struct tc_rstr *message;
    size_t sent, received;
    bool done;
    int code;
};

static void send_next(struct writer *w)
{
    if (w->done || w->sent == MESSAGES)
        return;
    w->sent++;
    assert_int_equal(tc_call_send(w->call, tc_rstr_ref(w->message), w->sent == MESSAGES), 0);
}

static void on_written(void *arg)
{
    send_next(arg);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct writer *w = arg;
    assert_int_equal(message->len, MESSAGE_BYTES);
    w->received++;
    tc_rstr_unref(message);
    tc_call_read(w->call, 1);
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    struct writer *w = arg;
    w->done = true;
    w->code = end->status.code;
}

static void test_back_pressure(void **state)
{
    (void)state;
    static const struct tc_call_events events = {
        .on_written = on_written, .on_message = on_message, .on_done = on_done};
    struct kit_server k;
    struct writer w = {0};
    kit_server_init(&k);
    struct tc_backend *backend = tc_backend_new(k.server, &(struct tc_backend_opts){.name = "b"});
    char *zeros = tc_calloc(1, MESSAGE_BYTES);
    w.message = tc_rstr_new(zeros, MESSAGE_BYTES);
    tc_free(zeros);
    w.call = tc_call_start(k.channel, &(struct tc_call_opts){.method = tc_slice_str("/a.B/C")}, &events, &w);
    send_next(&w);
    KIT_SERVER_UNTIL(&k, w.sent >= 2);
    /* Runs until nothing moves: the windows and the sockets are full. */
    while (tc_loop_turn(k.loop, 100))
        assert_true(w.sent < MESSAGES);
    assert_true(w.sent < MESSAGES);
    assert_int_equal(w.received, 0);
    tc_call_read(w.call, 1);
    KIT_SERVER_UNTIL(&k, w.done);
    assert_int_equal(w.code, TORC_STATUS_OK);
    assert_int_equal(w.received, MESSAGES);
    tc_rstr_unref(w.message);
    kit_server_fini(&k);
    tc_backend_free(backend);
}

struct reader {
    struct tc_call *call;
    size_t received, wanted;
    bool done;
    int code;
};

static void on_repeated(void *arg, struct tc_rstr *message)
{
    struct reader *r = arg;
    assert_true(tc_slice_eq_str(tc_rstr_slice(message), "again"));
    tc_rstr_unref(message);
    if (++r->received < r->wanted) {
        tc_call_read(r->call, 1);
        return;
    }
    tc_call_cancel(r->call);
    r->done = true;
}

static void on_repeat_done(void *arg, const struct tc_call_end *end)
{
    struct reader *r = arg;
    r->done = true;
    r->code = end->status.code;
}

/* Repeat: sends messages, in more than one go, until the client has enough; an RPC without a message is refused. */
static void test_repeat(void **state)
{
    (void)state;
    static const struct tc_call_events events = {.on_message = on_repeated, .on_done = on_repeat_done};
    const struct tc_call_opts opts = {.method = tc_slice_str("/torc.test.Backend/Repeat")};
    struct kit_server k;
    struct reader r = {.wanted = 3000}, empty = {0};
    kit_server_init(&k);
    struct tc_backend *backend = tc_backend_new(k.server, &(struct tc_backend_opts){.name = "b"});
    r.call = tc_call_start(k.channel, &opts, &events, &r);
    assert_int_equal(tc_call_send(r.call, tc_rstr_new("again", 5), true), 0);
    tc_call_read(r.call, 1);
    KIT_SERVER_UNTIL(&k, r.done);
    assert_int_equal(r.received, r.wanted);
    empty.call = tc_call_start(k.channel, &opts, &events, &empty);
    assert_int_equal(tc_call_send_end(empty.call), 0);
    tc_call_read(empty.call, 1);
    KIT_SERVER_UNTIL(&k, empty.done);
    assert_int_equal(empty.code, TORC_STATUS_INVALID_ARGUMENT);
    kit_server_fini(&k);
    tc_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
