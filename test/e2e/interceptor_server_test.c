/* Interceptors of servers: what they see and in which order, refusals, delays, and what they add.
 *
 * setup makes a server with the interceptors "outer" and "inner" of kits/watch.h, and a channel to the server, for each
 * test; teardown frees both and asserts that the interceptors were released once. Some tests free all of this and make
 * it again between their scenes. Server and channel share one runtime, which the test's thread drives: hooks, handlers
 * and callbacks run inside torc_runtime_poll, the functions that wait, and those that free the server or the runtime.
 * `refusals` lists the hooks of a server that return a verdict. The words of kit_watch.events are in kits/watch.h
 * ("i.7": on_end of "inner" with status 7). */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "base/common.h"
#include "support/cmocka.h"
#include "support/kits/watch.h"

#define STREAM "/t/Stream"
enum { MESSAGE_MAX = 16 };

static torc_server *server;
static torc_server_call *streamed; /* the call of STREAM, for the test to answer; NULL: none, or finished */
static int handled, cancelled;     /* calls of on_echo and on_stream; calls of on_cancel */

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    handled++;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* Answers with a message that is too large. */
static void on_large(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    torc_server_call_reply(call, "more than sixteen", MESSAGE_MAX + 1);
}

/* Answers with the value of x-added in the request, or "-", and a trailer x-handler. */
static void on_seen(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    const char *value = torc_metadata_find(torc_server_call_metadata(call), "x-added", NULL);
    torc_metadata *trailers = torc_metadata_new();
    torc_metadata_add_string(trailers, "x-handler", "t");
    torc_server_call_send(call, value ? value : "-", value ? strlen(value) : 1, 0, 0);
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, trailers);
    torc_metadata_free(trailers);
}

/* Fails with status details, in two fields, and a trailer x-handler. */
static void on_details(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request, (void)arg;
    torc_metadata *trailers = torc_metadata_new();
    torc_metadata_add_string(trailers, "x-handler", "t");
    for (int i = 0; i < 2; i++)
        torc_metadata_add(trailers, "grpc-status-details-bin", "\x08\x09", 2);
    torc_server_call_finish(call, TORC_STATUS_FAILED_PRECONDITION, "no", trailers);
    torc_metadata_free(trailers);
}

static void on_cancel(torc_server_call *call, void *arg)
{
    (void)arg;
    assert_ptr_equal(call, streamed);
    cancelled++;
}

static void on_stream(torc_server_call *call, void *arg)
{
    const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_cancel = on_cancel};
    handled++;
    streamed = call;
    assert_int_equal(torc_server_call_set_events(call, &events, arg), 0);
}

/* Adds a method. Sets the handler's size. */
static void add(const char *method, struct torc_handler handler)
{
    handler.size = sizeof(handler);
    assert_int_equal(torc_server_add_method(server, method, &handler, NULL), 0);
}

static int setup(void **state)
{
    (void)state;
    struct torc_interceptor a = kit_watch_interceptor_of(&kit_watch.outer, "outer"),
                            b = kit_watch_interceptor_of(&kit_watch.inner, "inner");
    const struct torc_interceptor *const list[] = {&a, &b, NULL};
    kit_watch.events[0] = '\0';
    kit_watch.rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = kit_watch.rt, .interceptors = list};
    o.max_send_message_bytes = o.max_receive_message_bytes = MESSAGE_MAX;
    torc_error *error = NULL;
    char *bound, target[64];
    server = torc_server_new(&o, &error);
    assert_non_null(server);
    add(KIT_WATCH_ECHO, (struct torc_handler){.unary = on_echo});
    add(KIT_WATCH_SEEN, (struct torc_handler){.unary = on_seen});
    add("/t/Details", (struct torc_handler){.unary = on_details});
    add("/t/Large", (struct torc_handler){.unary = on_large});
    add(STREAM, (struct torc_handler){.stream = on_stream});
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error), 0);
    assert_int_equal(torc_server_start(server, &error), 0);
    snprintf(target, sizeof(target), "ipv4:%s", bound);
    torc_free(bound);
    struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    kit_watch.ch = torc_channel_new(kit_watch.rt, target, &co, &error);
    assert_non_null(kit_watch.ch);
    handled = cancelled = 0;
    streamed = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(kit_watch.ch);
    torc_server_free(server);
    if (streamed)
        torc_server_call_finish(streamed, TORC_STATUS_OK, NULL, NULL);
    assert_int_equal(torc_runtime_free(kit_watch.rt), 0);
    torc_rpc_resume(kit_watch.outer.pending, 0, NULL);
    torc_rpc_resume(kit_watch.inner.pending, 0, NULL);
    assert_int_equal(kit_watch.outer.releases, 1);
    assert_int_equal(kit_watch.inner.releases, 1);
    assert_int_equal(kit_watch.inner.picks + kit_watch.inner.opened, 0);
    return 0;
}

/* Drives the runtime until n RPCs have ended on the server; asserts that both interceptors saw n ends. */
static void turn_until_ends(int n)
{
    while (kit_watch.outer.ends < n)
        torc_runtime_poll(kit_watch.rt, -1);
    assert_int_equal(kit_watch.inner.ends, n);
    assert_int_equal(kit_watch.outer.ends, n);
}

/* --- order and verdicts --- */

static void test_order(void **state)
{
    (void)state;
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
    turn_until_ends(1);
    kit_watch_expect_events("os is o<(m) i<(m) i>(m) o>(m) i=0 o=0 i.0 o.0");
    kit_watch_expect("/t/Unknown", 0, TORC_STATUS_UNIMPLEMENTED, "");
    kit_watch_expect_events(""); /* Torc answers by itself */
}

/* The hooks at which "inner" refuses the RPC, delays it, or frees the server. */
static const struct {
    enum kit_watch_hook at;
    int handled;        /* calls of the handler */
    const char *events; /* of the refusal with PERMISSION_DENIED */
} refusals[] = {
    {KIT_WATCH_START, 0, "os is o=7 i.7 o.7"},
    {KIT_WATCH_RECEIVED, 0, "os is o<(m) i<(m) i=7 o=7 i.7 o.7"},
    {KIT_WATCH_SENT, 1, "os is o<(m) i<(m) i>(m) i=7 o=7 i.7 o.7"},
    {KIT_WATCH_STATUS, 1, "os is o<(m) i<(m) i>(m) o>(m) i=0 o=7 i.7 o.7"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
        handled = 0;
        kit_watch.inner.at = refusals[i].at;
        kit_watch.inner.verdict = TORC_STATUS_PERMISSION_DENIED;
        kit_watch.inner.text = "not you";
        kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_PERMISSION_DENIED, "not you");
        turn_until_ends((int)i + 1);
        kit_watch_expect_events(refusals[i].events);
        assert_string_equal(kit_watch.last_text, "not you");
        assert_int_equal(handled, refusals[i].handled);
    }
}

static void test_no_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
        kit_watch.inner.at = refusals[i].at;
        kit_watch.inner.verdict = -7;
        kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_INTERNAL, "the interceptor \"inner\" gave -7 for on_");
    }
    turn_until_ends(TC_ARRAY_LEN(refusals));
}

/* --- delays --- */

static void test_resumed(void **state)
{
    (void)state;
    static const int verdicts[] = {0, TORC_STATUS_DATA_LOSS};
    int n = 0;
    for (size_t v = 0; v < TC_ARRAY_LEN(verdicts); v++)
        for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
            torc_result *r;
            torc_stream *s = kit_watch_start_delayed(refusals[i].at, &r);
            for (int turns = 0; turns < 20; turns++)
                torc_runtime_poll(kit_watch.rt, 0);
            assert_null(r);
            kit_watch_resume(&kit_watch.inner, verdicts[v], "resumed so");
            torc_result_free(kit_watch_finish(s));
            assert_int_equal(torc_result_code(r), verdicts[v]);
            assert_string_equal(torc_result_text(r), verdicts[v] ? "resumed so" : "");
            if (!verdicts[v])
                kit_watch_expect_message(torc_result_response(r), "m");
            torc_result_free(r);
            turn_until_ends(++n);
        }
}

/* The client gives up while the RPC is delayed: the hooks that follow see CANCELLED, and resuming later is harmless. */
static void test_pending_and_cancel(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(refusals[i].at, &r);
        torc_stream_cancel(s);
        torc_result_free(kit_watch_finish(s));
        torc_result_free(r);
        turn_until_ends((int)i + 1);
        assert_non_null(strstr(kit_watch.events, " i.1 o.1"));
        assert_non_null(strstr(kit_watch.events, " o=1 "));
        kit_watch.events[0] = '\0';
        kit_watch_resume(&kit_watch.inner, TORC_STATUS_ABORTED, "late");
    }
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
}

static void test_pending_and_deadline(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
        int64_t timeout_ms = 10;
        kit_watch_delay(&kit_watch.inner, refusals[i].at);
        kit_watch_expect(KIT_WATCH_ECHO, timeout_ms, TORC_STATUS_DEADLINE_EXCEEDED, "");
        /* On a slow machine the RPC may end before its hook is called: the test then tries again with a longer
         * deadline. Before the next try, an RPC without a deadline shows that the server has seen the end of the last
         * try. */
        while (!kit_watch.inner.pending) {
            kit_watch.inner.at = KIT_WATCH_NEVER;
            kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
            kit_watch_delay(&kit_watch.inner, refusals[i].at);
            kit_watch_expect(KIT_WATCH_ECHO, timeout_ms *= 2, TORC_STATUS_DEADLINE_EXCEEDED, "");
        }
        while (kit_watch.outer.ends < kit_watch.outer.starts)
            torc_runtime_poll(kit_watch.rt, -1);
        assert_int_equal(kit_watch.inner.ends, kit_watch.inner.starts);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
    }
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
}

static void test_pending_and_server_end(void **state)
{
    for (size_t i = 0; i < 2 * TC_ARRAY_LEN(refusals); i++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(refusals[i / 2].at, &r);
        if (i % 2)
            assert_int_equal(torc_server_stop(server, 0), 0);
        torc_server_free(server);
        server = NULL;
        assert_int_equal(kit_watch.outer.ends, 1);
        assert_int_equal(kit_watch.inner.ends, 1);
        assert_int_equal(kit_watch.outer.releases, 1);
        torc_result_free(kit_watch_finish(s));
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
        torc_result_free(r);
        teardown(state);
        setup(state);
    }
}

static void test_pending_and_runtime_free(void **state)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(refusals[i].at, &r);
        torc_channel_free(kit_watch.ch);
        assert_int_equal(torc_runtime_free(kit_watch.rt), 0);
        assert_int_equal(kit_watch.outer.ends, 1);
        torc_stream_free(s);
        torc_result_free(r);
        torc_server_free(server);
        assert_int_equal(kit_watch.inner.releases, 1);
        torc_rpc_resume(kit_watch.inner.pending, 0, NULL);
        setup(state);
    }
}

/* --- metadata and messages of interceptors --- */

/* In on_start of "outer". */
static void add_all(torc_rpc *rpc)
{
    assert_int_equal(torc_rpc_add_metadata(rpc, "x-added", "early", 5), 0);
    assert_int_equal(torc_rpc_add_header(rpc, "x-head", "h", 1), 0);
    assert_int_equal(torc_rpc_add_trailer(rpc, "x-tail", "t", 1), 0);
    assert_int_equal(torc_rpc_add_header(rpc, ":path", "h", 1), TORC_EINVAL);
    assert_int_equal(torc_rpc_add_trailer(rpc, "grpc-status", "0", 1), TORC_EINVAL);
    assert_string_equal(torc_metadata_find(torc_rpc_metadata(rpc), "x-added", NULL), "early");
    assert_string_equal(torc_rpc_method(rpc), KIT_WATCH_SEEN);
    assert_string_equal(torc_rpc_target(rpc), "");
    assert_int_equal(strncmp(torc_rpc_authority(rpc), "127.0.0.1:", 10), 0);
    assert_int_equal(strncmp(torc_rpc_peer(rpc), "127.0.0.1:", 10), 0);
    assert_int_equal(torc_rpc_time_left(rpc), 0);
    assert_int_equal(torc_rpc_attempts(rpc), 0);
    assert_null(torc_rpc_headers(rpc));
    const torc_server_call *call = torc_rpc_server_call(rpc);
    assert_int_equal(torc_server_call_secure(call), 0);
    assert_int_equal(torc_server_call_peer_name(call, 0, NULL, NULL), TORC_ENOTFOUND);
}

/* In on_status of "inner". */
static void add_late(torc_rpc *rpc)
{
    assert_int_equal(torc_rpc_add_metadata(rpc, "x-added", "late", 4), TORC_ESTATE);
    assert_int_equal(torc_rpc_add_header(rpc, "x-head", "late", 4),
                     TORC_ESTATE); /* the initial metadata was sent with the message */
    assert_int_equal(torc_rpc_add_trailer(rpc, "x-late", "l", 1), 0);
    assert_string_equal(torc_metadata_find(torc_rpc_headers(rpc), "x-head", NULL), "h");
    assert_string_equal(torc_metadata_find(torc_rpc_trailers(rpc), "x-handler", NULL), "t");
}

/* Status details of the handler are sent with the handler's status, but not with a status that replaces it. */
static void test_details(void **state)
{
    (void)state;
    for (int replaced = 0; replaced < 2; replaced++) {
        kit_watch.inner.at = replaced ? KIT_WATCH_STATUS : KIT_WATCH_NEVER;
        kit_watch.inner.verdict = TORC_STATUS_ABORTED;
        torc_result *r = torc_unary(kit_watch.ch, "/t/Details", "m", 1, NULL);
        assert_int_equal(torc_result_code(r), replaced ? TORC_STATUS_ABORTED : TORC_STATUS_FAILED_PRECONDITION);
        assert_int_equal(torc_metadata_find(torc_result_trailers(r), "grpc-status-details-bin", NULL) != NULL,
                         !replaced);
        assert_string_equal(torc_metadata_find(torc_result_trailers(r), "x-handler", NULL), "t");
        torc_result_free(r);
    }
}

static void test_added(void **state)
{
    (void)state;
    kit_watch.outer.at = KIT_WATCH_START;
    kit_watch.outer.in_hook = add_all;
    kit_watch.inner.at = KIT_WATCH_STATUS;
    kit_watch.inner.in_hook = add_late;
    torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_SEEN, "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    kit_watch_expect_message(torc_result_response(r), "early");
    assert_string_equal(torc_metadata_find(torc_result_headers(r), "x-head", NULL), "h");
    assert_string_equal(torc_metadata_find(torc_result_trailers(r), "x-tail", NULL), "t");
    assert_string_equal(torc_metadata_find(torc_result_trailers(r), "x-handler", NULL), "t");
    assert_string_equal(torc_metadata_find(torc_result_trailers(r), "x-late", NULL), "l");
    torc_result_free(r);
    turn_until_ends(1);
}

static void add_header(torc_rpc *rpc)
{
    assert_int_equal(torc_rpc_add_header(rpc, "x-head", "h", 1), 0);
}

/* Initial metadata that a hook added is sent also when the RPC is refused. */
static void test_added_and_refused(void **state)
{
    (void)state;
    kit_watch.outer.at = KIT_WATCH_START;
    kit_watch.outer.in_hook = add_header;
    kit_watch.inner.at = KIT_WATCH_START;
    kit_watch.inner.verdict = TORC_STATUS_UNAUTHENTICATED;
    torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAUTHENTICATED);
    assert_string_equal(torc_result_text(r), "the interceptor \"inner\" refused the RPC");
    assert_string_equal(torc_metadata_find(torc_result_headers(r), "x-head", NULL), "h");
    torc_result_free(r);
}

static void test_added_while_pending(void **state)
{
    (void)state;
    torc_result *r = NULL;
    torc_stream *s = NULL;
    kit_watch_delay(&kit_watch.outer, KIT_WATCH_START);
    assert_int_equal(torc_unary_async(kit_watch.ch, KIT_WATCH_SEEN, "m", 1, NULL, kit_watch_drop_result, &r, &s, NULL),
                     0);
    kit_watch_turn_until_pending(&kit_watch.outer);
    assert_int_equal(torc_pending_add_metadata(kit_watch.outer.pending, "x-added", "late", 4), 0);
    kit_watch_resume(&kit_watch.outer, 0, NULL);
    torc_result_free(kit_watch_finish(s));
    kit_watch_expect_message(torc_result_response(r), "late");
    torc_result_free(r);
}

static void test_set_while_pending(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_SENT; at <= KIT_WATCH_RECEIVED; at++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(at, &r);
        assert_int_equal(torc_pending_set_message(kit_watch.inner.pending, torc_message_new("set", 3)), 0);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
        torc_result_free(kit_watch_finish(s));
        kit_watch_expect_message(torc_result_response(r), "set");
        torc_result_free(r);
    }
}

/* --- streams --- */

/* Opens a stream of STREAM, and drives the runtime until the handler has the call in `streamed`. stream_end frees the
 * stream. */
static torc_stream *stream_begin(void)
{
    torc_stream *s = torc_stream_open(kit_watch.ch, STREAM, NULL, NULL);
    while (!streamed)
        torc_runtime_poll(kit_watch.rt, -1);
    return s;
}

/* Finishes and frees the stream. Asserts its status code. */
static void stream_end(torc_stream *s, int code)
{
    torc_result *r = kit_watch_finish(s);
    assert_int_equal(torc_result_code(r), code);
    torc_result_free(r);
}

/* While a message is delayed, the handler gets no other, and the client's half-close waits behind it. */
static void test_receiver_waits(void **state)
{
    (void)state;
    const torc_message *m;
    torc_stream *s = stream_begin();
    for (const char *text = "123"; *text; text++)
        assert_int_equal(torc_stream_send(s, text, 1, text[1] ? 0 : TORC_SEND_LAST, -1), 0);
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_RECEIVED);
    assert_int_equal(torc_server_call_want(streamed, 100), 0);
    for (int i = 1; i <= 3; i++) {
        kit_watch_turn_until_pending(&kit_watch.inner);
        for (int turns = 0; turns < 20; turns++)
            torc_runtime_poll(kit_watch.rt, 0);
        assert_int_equal(torc_server_call_receive(streamed, 0, &m), TORC_EAGAIN);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
        if (i < 3)
            kit_watch_delay(&kit_watch.inner, KIT_WATCH_RECEIVED);
        while (torc_server_call_receive(streamed, 0, &m) != 1)
            torc_runtime_poll(kit_watch.rt, -1);
        assert_int_equal(*(const char *)torc_message_data(m), '0' + i);
    }
    while (torc_server_call_receive(streamed, 0, &m) != 0)
        torc_runtime_poll(kit_watch.rt, -1);
    torc_server_call_finish(streamed, TORC_STATUS_OK, NULL, NULL);
    streamed = NULL;
    stream_end(s, TORC_STATUS_OK);
}

/* Messages and the status wait behind a delayed message, which a larger one then replaces. */
static void test_sender_waits(void **state)
{
    (void)state;
    const torc_message *m;
    torc_stream *s = stream_begin();
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_SENT);
    for (const char *text = "123"; *text; text++)
        assert_int_equal(torc_server_call_send(streamed, text, 1, 0, 0), 0);
    torc_server_call_finish(streamed, TORC_STATUS_NOT_FOUND, "behind", NULL);
    streamed = NULL;
    kit_watch_turn_until_pending(&kit_watch.inner);
    for (int turns = 0; turns < 20; turns++)
        torc_runtime_poll(kit_watch.rt, 0);
    assert_int_equal(torc_stream_receive(s, 0, &m), TORC_EAGAIN);
    kit_watch_expect_events("os is i>(1)");
    assert_int_equal(torc_pending_set_message(kit_watch.inner.pending, torc_message_new("one", 3)), 0);
    kit_watch_resume(&kit_watch.inner, 0, NULL);
    static const char *const wanted[] = {"one", "2", "3"};
    for (size_t i = 0; i < TC_ARRAY_LEN(wanted); i++) {
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        kit_watch_expect_message(m, wanted[i]);
    }
    stream_end(s, TORC_STATUS_NOT_FOUND);
    turn_until_ends(1);
    kit_watch_expect_events("o>(one) i>(2) o>(2) i>(3) o>(3) i=5 o=5 i.5 o.5");
}

/* An interceptor refuses a message of a running stream: on_cancel is called, and torc_server_call_finish returns
 * TORC_ECANCELED. */
static void test_stream_refused(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_SENT; at <= KIT_WATCH_RECEIVED; at++) {
        torc_stream *s = stream_begin();
        kit_watch.inner.at = at;
        kit_watch.inner.verdict = TORC_STATUS_DATA_LOSS;
        cancelled = 0;
        if (at == KIT_WATCH_SENT) {
            assert_int_equal(torc_server_call_send(streamed, "a", 1, 0, 0), 0);
            assert_int_equal(torc_server_call_send(streamed, "b", 1, 0, 0), 0);
        } else {
            assert_int_equal(torc_stream_send(s, "a", 1, 0, -1), 0);
            assert_int_equal(torc_server_call_want(streamed, 2), 0);
        }
        while (!cancelled)
            torc_runtime_poll(kit_watch.rt, -1);
        assert_int_equal(torc_server_call_send(streamed, "c", 1, 0, 0), TORC_ECANCELED);
        assert_int_equal(torc_server_call_finish(streamed, TORC_STATUS_OK, NULL, NULL), TORC_ECANCELED);
        streamed = NULL;
        stream_end(s, TORC_STATUS_DATA_LOSS);
        assert_int_equal(cancelled, 1);
    }
    turn_until_ends(2);
}

/* The handler's status ends the delay of a received message. */
static void test_finished_while_receiving(void **state)
{
    (void)state;
    torc_stream *s = stream_begin();
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_RECEIVED);
    assert_int_equal(torc_stream_send(s, "a", 1, 0, -1), 0);
    assert_int_equal(torc_server_call_want(streamed, 1), 0);
    kit_watch_turn_until_pending(&kit_watch.inner);
    assert_int_equal(torc_server_call_finish(streamed, TORC_STATUS_ABORTED, NULL, NULL), 0);
    streamed = NULL;
    stream_end(s, TORC_STATUS_ABORTED);
    turn_until_ends(1);
    kit_watch_resume(&kit_watch.inner, TORC_STATUS_DATA_LOSS, NULL);
}

/* Requests of a unary method without a message, or with two, are INTERNAL. The handler is not called. */
static void test_unary_shape(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(kit_watch.ch, KIT_WATCH_ECHO, NULL, NULL);
    assert_int_equal(torc_stream_half_close(s), 0);
    stream_end(s, TORC_STATUS_INTERNAL);
    s = torc_stream_open(kit_watch.ch, KIT_WATCH_ECHO, NULL, NULL);
    assert_int_equal(torc_stream_send(s, "1", 1, 0, -1), 0);
    assert_int_equal(torc_stream_send(s, "2", 1, TORC_SEND_LAST, -1), 0);
    stream_end(s, TORC_STATUS_INTERNAL);
    turn_until_ends(2);
    assert_int_equal(handled, 0);
}

/* Requests and replies that are too large: on_end sees the status that the client gets. */
static void test_bad_messages(void **state)
{
    (void)state;
    torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "more than sixteen", MESSAGE_MAX + 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    turn_until_ends(1);
    kit_watch_expect_events("os is i=8 o=8 i.8 o.8");
    assert_int_equal(handled, 0);
    r = torc_unary(kit_watch.ch, "/t/Large", "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    turn_until_ends(2);
    kit_watch_expect_events("os is o<(m) i<(m) i>(more than sixteen) o>(more than sixteen) i=0 o=0 i.8 o.8");
    assert_non_null(strstr(kit_watch.last_text, "message to send larger than max (17 vs. 16)"));
}

/* --- begin and end --- */

/* If torc_server_new fails, the interceptors are not released. */
static void test_malformed(void **state)
{
    (void)state;
    struct kit_watcher w;
    torc_error *error = NULL;
    struct torc_interceptor good = kit_watch_interceptor_of(&w, "good"), bad = good;
    bad.state_size = 65537;
    const struct torc_interceptor *const list[] = {&good, &bad, NULL};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = kit_watch.rt, .interceptors = list};
    assert_null(torc_server_new(&o, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_non_null(strstr(torc_error_text(error), "interceptors[1]: state_size: is 65537"));
    torc_error_free(error);
    assert_int_equal(w.releases, 0);
}

static void free_server(torc_rpc *rpc)
{
    (void)rpc;
    torc_server_free(server);
    server = NULL;
}

/* A hook that frees the server: the RPC ends, and on_end comes once. */
static void test_freed_in_hooks(void **state)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(refusals); i++) {
        kit_watch.inner.at = refusals[i].at;
        kit_watch.inner.in_hook = free_server;
        torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL);
        assert_non_null(r);
        torc_result_free(r);
        turn_until_ends(1);
        teardown(state);
        setup(state);
    }
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_order),
        T(test_refused),
        T(test_no_verdict),
        T(test_resumed),
        T(test_pending_and_cancel),
        T(test_pending_and_deadline),
        T(test_pending_and_server_end),
        T(test_pending_and_runtime_free),
        T(test_added),
        T(test_details),
        T(test_added_and_refused),
        T(test_added_while_pending),
        T(test_set_while_pending),
        T(test_receiver_waits),
        T(test_sender_waits),
        T(test_stream_refused),
        T(test_finished_while_receiving),
        T(test_unary_shape),
        T(test_bad_messages),
        T(test_malformed),
        T(test_freed_in_hooks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
