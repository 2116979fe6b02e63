/* The xDS client's transport over a real socket: what a stream reports about a message that the server does or does not
 * read, and about the stream's end. The interface is xds/client/transport.h.
 *
 * Each server plays one function, which acts once the first part of the test's message has come. A server's number is
 * its function's place in `plays` of main. The message exceeds the HTTP/2 windows, so a server gets the rest only if it
 * enlarges them. The servers run in a process of their own (hostile/server.h). The transport and its callbacks run on
 * the test's thread, which drives the runtime. */
#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/hostile/rows.h"
#include "support/hostile/server.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "runtime/runtime.h"
#include "xds/domain/xds_transport.h"

enum { MESSAGE_BYTES = 1000000 }; /* more than a stream's initial window */

/* Waits for the stream and the first part of its message. Returns the stream's number, or 0 if the part does not
 * come. */
static uint32_t begin(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    return hostile_await(p, FAKE_H2_DATA) ? id : 0;
}

/* Ends the stream with UNAVAILABLE. */
static void ends_the_stream(struct hostile_peer *p)
{
    fake_h2_headers(hostile_frames(p), begin(p),
                    ":status: 200\ncontent-type: application/grpc\ngrpc-status: 14\ngrpc-message: bye\n", true);
    hostile_await_close(p);
}

/* Closes the connection. */
static void goes(struct hostile_peer *p)
{
    begin(p);
}

/* Enlarges the windows, so that the whole message comes. */
static void reads(struct hostile_peer *p)
{
    uint32_t id = begin(p);
    fake_h2_window(hostile_frames(p), 0, MESSAGE_BYTES);
    fake_h2_window(hostile_frames(p), id, MESSAGE_BYTES);
    hostile_await_close(p);
}

/* Announces a message of 65 MiB, which is above the limit of a response. */
static void sends_too_much(struct hostile_peer *p)
{
    uint32_t id = begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_data(hostile_frames(p), id, "\0\4\x10\0\0", 5, false);
    hostile_await_close(p);
}

/* Ends the stream with RESOURCE_EXHAUSTED. */
static void has_enough(struct hostile_peer *p)
{
    fake_h2_headers(hostile_frames(p), begin(p), ":status: 200\ncontent-type: application/grpc\ngrpc-status: 8\n",
                    true);
    hostile_await_close(p);
}

/* The reports of a stream: the number of calls of on_sent, of those with `taken`, and of on_status; then the code and
 * the layer (enum torc_layer) of the status. */
struct seen {
    int sent, taken, ended, code, layer;
};

static void on_message(void *arg, struct tc_rstr *message)
{
    (void)arg;
    tc_rstr_unref(message);
    fail();
}

static void on_sent(void *arg, bool taken)
{
    struct seen *s = arg;
    assert_int_equal(s->ended, 0);
    s->sent++;
    s->taken += taken;
}

static void on_status(void *arg, const struct tc_status *status)
{
    struct seen *s = arg;
    s->ended++;
    s->code = status->code;
    s->layer = status->layer;
}

static void on_failure(void *arg, const struct tc_status *failure)
{
    (void)arg;
    (void)failure;
}

static const struct tc_xds_stream_events events = {on_message, on_sent, on_status};

static struct hostile *servers; /* made and freed by main */

/* Sends a message to server i, and runs the loop until the stream has ended or the message was taken. Returns what the
 * stream reported. */
static struct seen send_to(size_t i)
{
    struct seen seen = {0};
    torc_runtime *rt = torc_runtime_new(
        &(struct torc_runtime_options){TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER}, NULL);
    struct tc_channel_transport_factory f;
    struct tc_xds_server server = {.uri = tc_rstr_str(hostile_address(servers, i))};
    char *message = tc_calloc(1, MESSAGE_BYTES);
    tc_channel_transport_init(&f, rt, NULL, &tc_backoff_default);
    struct tc_xds_transport *t = f.base.create(&f.base, &server, on_failure, NULL);
    struct tc_xds_stream *s = t->ops->open(t, "/a.B/C", &events, &seen);
    s->ops->read(s);
    s->ops->send(s, tc_slice_of(message, MESSAGE_BYTES));
    while (!seen.ended && !seen.taken)
        assert_true(torc_runtime_poll(rt, 1000) >= 0);
    if (!seen.ended)
        s->ops->cancel(s);
    t->ops->shutdown(t);
    tc_free(message);
    tc_rstr_unref(server.uri);
    torc_runtime_free(rt);
    return seen;
}

static void a_server_that_ends_the_stream(void **state)
{
    (void)state;
    struct seen seen = send_to(0);
    assert_int_equal(seen.sent, 1);
    assert_int_equal(seen.taken, 0);
    assert_int_equal(seen.code, TORC_STATUS_UNAVAILABLE);
    assert_int_equal(seen.layer, TORC_LAYER_PEER);
}

static void a_server_that_goes(void **state)
{
    (void)state;
    struct seen seen = send_to(1);
    assert_int_equal(seen.sent, 1);
    assert_int_equal(seen.taken, 0);
    assert_int_equal(seen.code, TORC_STATUS_UNAVAILABLE);
    assert_int_equal(seen.layer, TORC_LAYER_CONNECT);
}

static void a_server_that_reads(void **state)
{
    (void)state;
    struct seen seen = send_to(2);
    assert_int_equal(seen.sent, 1);
    assert_int_equal(seen.ended, 0);
}

/* Both are RESOURCE_EXHAUSTED. The layer tells a response above the client's limit from a status that the server
 * sent. */
static void limits_of_both_sides(void **state)
{
    (void)state;
    struct seen ours = send_to(3), theirs = send_to(4);
    assert_int_equal(ours.code, TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(ours.layer, TORC_LAYER_LIMIT);
    assert_int_equal(theirs.code, TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(theirs.layer, TORC_LAYER_PEER);
}

int main(void)
{
    tc_builtin_init();
    hostile_play_fn *plays[] = {ends_the_stream, goes, reads, sends_too_much, has_enough};
    servers = hostile_new(plays, TC_ARRAY_LEN(plays), NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_ends_the_stream),
        cmocka_unit_test(a_server_that_goes),
        cmocka_unit_test(a_server_that_reads),
        cmocka_unit_test(limits_of_both_sides),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    hostile_free(servers);
    return rc;
}
