/* Interceptors that delay an RPC, or its hedged attempts side by side, and resume them in time or too late. Whatever
 * ends the RPC, on_end comes once. Also hooks that free the stream or the channel of their RPC, and hooks that fork.
 *
 * The fixtures of kits/watch.h give each test a runtime and a channel with the interceptors "outer" and "inner". The
 * teardown frees both and resumes the delays that a test has left. test_hedges_side_by_side replaces the channel by one
 * with an interceptor of its own. Many tests go through all hooks that can delay (KIT_WATCH_START to KIT_WATCH_STATUS).
 *
 * The test's thread drives the client's runtime, so hooks and callbacks run inside torc_runtime_poll, torc_runtime_free
 * and the functions that wait. The backend has a thread of its own and is reached over real sockets.
 * test_late_second_attempt has a second runtime, with a thread, whose channel has no interceptors. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/common.h"
#include "support/cmocka.h"
#include "support/kits/watch.h"

static void test_resumed_with_a_verdict(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        torc_result *r, *same;
        torc_stream *s = kit_watch_start_delayed(at, &r);
        assert_null(r);
        kit_watch_resume(&kit_watch.inner, TORC_STATUS_DATA_LOSS, "resumed so");
        same = kit_watch_finish(s);
        assert_int_equal(torc_result_code(same), TORC_STATUS_DATA_LOSS);
        assert_string_equal(torc_result_text(same), "resumed so");
        torc_result_free(same);
        torc_result_free(r);
    }
    assert_int_equal(kit_watch.inner.ends, KIT_WATCH_HOOKS);
    assert_int_equal(kit_watch.outer.ends, KIT_WATCH_HOOKS);
    torc_result *r;
    torc_stream *s = kit_watch_start_delayed(KIT_WATCH_START, &r);
    kit_watch_resume(&kit_watch.inner, TORC_PENDING, NULL); /* a resumption cannot delay again: INTERNAL */
    torc_result_free(kit_watch_finish(s));
    assert_int_equal(torc_result_code(r), TORC_STATUS_INTERNAL);
    torc_result_free(r);
}

/* The deadline passes while the RPC is delayed. If the machine is so slow that the deadline passes before the delay
 * begins, the test tries again with a longer deadline. */
static void test_pending_and_deadline(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 10};
        torc_result *r = NULL;
        kit_watch_delay(&kit_watch.inner, at);
        for (; !kit_watch.inner.pending; o.timeout_ms *= 2) {
            torc_result_free(r);
            r = NULL;
            assert_int_equal(
                torc_unary_async(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, &o, kit_watch_drop_result, &r, NULL, NULL), 0);
            while (!r)
                torc_runtime_poll(kit_watch.rt, -1);
        }
        assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
        assert_non_null(strstr(torc_result_text(r), "while waiting for the interceptor \"inner\""));
        torc_result_free(r);
        kit_watch_resume(&kit_watch.inner, 0, NULL); /* too late, and harmless */
        assert_int_equal(kit_watch.inner.ends, kit_watch.outer.ends);
    }
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
}

/* The deadline passes while on_attempt delays the second attempt. The loop takes in the resumption and the deadline in
 * one turn: the second attempt ends before it is sent, but the first attempt was sent. */
static void test_late_second_attempt(void **state)
{
    (void)state;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 200};
    torc_result *r = NULL;
    for (; !kit_watch.inner.pending; o.timeout_ms *= 2) { /* a longer deadline, if the machine was too slow */
        kit_watch.server_calls = 0;
        kit_watch.server_fails = 1;
        torc_result_free(r);
        r = NULL;
        assert_int_equal(
            torc_unary_async(kit_watch.ch, KIT_WATCH_RETRY, "m", 1, &o, kit_watch_drop_result, &r, NULL, NULL), 0);
        for (int attempt = 1; attempt <= 2 && !r; attempt++) {
            if (kit_watch.inner.pending)
                kit_watch_resume(&kit_watch.inner, 0, NULL);
            kit_watch_delay(&kit_watch.inner, KIT_WATCH_ATTEMPT);
            while (!r && !kit_watch.inner.pending)
                torc_runtime_poll(kit_watch.rt, -1);
        }
        if (r && kit_watch.inner.pending)
            kit_watch_resume(&kit_watch.inner, 0, NULL); /* without effect: the RPC has ended */
    }
    /* Waits until the deadline has passed, but does not drive the loop: an RPC of another runtime, which begins later
     * and has a longer timeout, reaches its deadline. */
    torc_runtime *other = kit_backends_runtime(TORC_RUNTIME_THREAD);
    torc_channel *ch = kit_backends_channel(kit_watch.kit, other, NULL, NULL);
    torc_result *late = torc_unary(ch, KIT_WATCH_HANG, "m", 1, &o);
    assert_int_equal(torc_result_code(late), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(late);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(other), 0);
    kit_watch_resume(&kit_watch.inner, 0, NULL);
    while (!r)
        torc_runtime_poll(kit_watch.rt, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(torc_result_attempts(r), 1);
    assert_null(strstr(torc_result_text(r), "before the request was sent"));
    torc_result_free(r);
}

static void test_pending_and_cancel(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(at, &r);
        torc_stream_cancel(s);
        torc_result_free(kit_watch_finish(s));
        assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
        torc_result_free(r);
        kit_watch_resume(&kit_watch.inner, TORC_STATUS_ABORTED, "late");
        assert_int_equal(kit_watch.inner.ends, at + 1);
    }
}

/* on_status cannot delay an RPC that was cancelled. */
static void test_status_of_a_cancelled_rpc(void **state)
{
    (void)state;
    torc_result *r = NULL;
    torc_stream *s = NULL;
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_STATUS);
    assert_int_equal(torc_unary_async(kit_watch.ch, KIT_WATCH_HANG, "m", 1, NULL, kit_watch_drop_result, &r, &s, NULL),
                     0);
    torc_stream_cancel(s);
    torc_result_free(kit_watch_finish(s));
    assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
    torc_result_free(r);
    assert_non_null(kit_watch.inner.pending); /* on_status was called, and its TORC_PENDING counted as 0 */
    kit_watch_resume(&kit_watch.inner, TORC_STATUS_ABORTED, NULL);
}

static void test_pending_and_free(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        torc_result *r;
        torc_stream_free(kit_watch_start_delayed(at, &r));
        while (!r)
            torc_runtime_poll(kit_watch.rt, -1);
        assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
        torc_result_free(r);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
        assert_int_equal(kit_watch.inner.ends, at + 1);
    }
}

static void test_pending_and_channel_free(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(at, &r);
        torc_pending *late = kit_watch.inner.pending;
        torc_channel_free(kit_watch.ch);
        torc_result_free(kit_watch_finish(s));
        assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
        torc_result_free(r);
        assert_int_equal(kit_watch.inner.ends, 1);
        assert_int_equal(kit_watch.outer.ends, 1);
        kit_watch_channel_renew();
        torc_rpc_resume(late, 0, NULL);
    }
}

static void test_pending_and_runtime_free(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(at, &r);
        torc_channel_free(kit_watch.ch);
        assert_int_equal(torc_runtime_free(kit_watch.rt), 0);
        assert_non_null(r);
        assert_int_not_equal(torc_result_code(r), TORC_STATUS_OK);
        torc_result_free(r);
        assert_int_equal(kit_watch.inner.ends, 1);
        torc_stream_free(s);
        assert_int_equal(kit_watch.inner.releases, 1);
        torc_rpc_resume(kit_watch.inner.pending, 0, NULL);
        kit_watch_setup_in(TORC_RUNTIME_CALLER);
    }
}

static torc_pending *unused;

static void suspend_for_nothing(torc_rpc *rpc)
{
    unused = torc_rpc_suspend(rpc);
    torc_rpc_resume(unused, TORC_STATUS_ABORTED, "late"); /* without effect: the hook returns 0 */
}

/* A hook calls torc_rpc_suspend and then returns a verdict other than TORC_PENDING: it delays nothing, and resuming its
 * torc_pending does not end the delay of another hook. */
static void test_suspended_for_nothing(void **state)
{
    (void)state;
    torc_result *r = NULL;
    kit_watch.outer.at = KIT_WATCH_START;
    kit_watch.outer.in_hook = suspend_for_nothing;
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_START);
    assert_int_equal(
        torc_unary_async(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL, kit_watch_drop_result, &r, NULL, NULL), 0);
    kit_watch_turn_until_pending(&kit_watch.inner);
    for (int i = 0; i < 3; i++)
        torc_runtime_poll(kit_watch.rt, 0);
    assert_null(r);
    kit_watch_resume(&kit_watch.inner, 0, NULL);
    while (!r)
        torc_runtime_poll(kit_watch.rt, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
}

static void test_added_while_pending(void **state)
{
    (void)state;
    torc_result *r = NULL;
    torc_stream *s = NULL;
    kit_watch_delay(&kit_watch.outer, KIT_WATCH_START);
    assert_int_equal(torc_unary_async(kit_watch.ch, "/t/Seen", "m", 1, NULL, kit_watch_drop_result, &r, &s, NULL), 0);
    kit_watch_turn_until_pending(&kit_watch.outer);
    kit_watch_expect_events("os"); /* no further hook is called meanwhile */
    assert_int_equal(torc_pending_add_metadata(kit_watch.outer.pending, "x-added", "late", 4), 0);
    assert_int_equal(torc_pending_add_metadata(kit_watch.outer.pending, ":path", "late", 4), TORC_EINVAL);
    kit_watch_resume(&kit_watch.outer, 0, NULL);
    torc_result_free(kit_watch_finish(s));
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_string_equal(kit_watch.server_saw, "late");
    torc_result_free(r);
}

static void test_set_while_pending(void **state)
{
    (void)state;
    for (int received = 0; received < 2; received++) {
        torc_result *r;
        torc_stream *s = kit_watch_start_delayed(received ? KIT_WATCH_RECEIVED : KIT_WATCH_SENT, &r);
        assert_int_equal(torc_pending_set_message(kit_watch.inner.pending, NULL), TORC_EINVAL);
        assert_int_equal(torc_pending_set_message(kit_watch.inner.pending, torc_message_new("x", 1)), 0);
        assert_int_equal(torc_pending_set_message(kit_watch.inner.pending, torc_message_new("set", 3)), 0);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
        torc_result_free(kit_watch_finish(s));
        kit_watch_expect_message(torc_result_response(r), "set");
        torc_result_free(r);
    }
}

/* While a sent message is delayed, no other follows: the sender has no room, and the half-close waits behind the
 * delayed message. */
static void test_sender_waits(void **state)
{
    (void)state;
    torc_stream *s = torc_stream_open(kit_watch.ch, KIT_WATCH_ECHO, NULL, NULL);
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_SENT);
    assert_int_equal(torc_stream_send(s, "1", 1, 0, 0), 0);
    kit_watch_turn_until_pending(&kit_watch.inner);
    assert_int_equal(torc_stream_send(s, "2", 1, 0, 0), TORC_EAGAIN);
    kit_watch_resume(&kit_watch.inner, 0, NULL);
    assert_int_equal(torc_stream_send(s, "2", 1, 0, -1), 0);
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_SENT);
    assert_int_equal(torc_stream_send(s, "3", 1, 0, -1), 0);
    kit_watch_turn_until_pending(&kit_watch.inner);
    assert_int_equal(torc_stream_half_close(s), 0);
    assert_int_equal(torc_stream_half_close(s), TORC_ESTATE);
    kit_watch_resume(&kit_watch.inner, 0, NULL);
    const torc_message *m;
    for (const char *text = "123"; *text; text++) {
        const char one[] = {*text, '\0'};
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        kit_watch_expect_message(m, one);
    }
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    torc_result *r = kit_watch_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
}

/* While a received message is delayed, no other message is received. The status comes after the last message. */
static void test_receiver_waits(void **state)
{
    (void)state;
    const torc_message *m;
    torc_stream *s = torc_stream_open(kit_watch.ch, KIT_WATCH_ECHO, NULL, NULL);
    for (const char *text = "123"; *text; text++)
        assert_int_equal(torc_stream_send(s, text, 1, text[1] ? 0 : TORC_SEND_LAST, -1), 0);
    kit_watch_delay(&kit_watch.inner, KIT_WATCH_RECEIVED);
    assert_int_equal(torc_stream_want(s, 100), 0);
    for (int i = 1; i <= 3; i++) {
        kit_watch_turn_until_pending(&kit_watch.inner);
        while (i == 3 && !kit_watch.inner.closed)
            torc_runtime_poll(kit_watch.rt, -1);
        assert_int_equal(kit_watch.inner.received, i);
        assert_null(strchr(kit_watch.events, '='));
        assert_int_equal(torc_stream_receive(s, 0, &m), TORC_EAGAIN);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
        kit_watch_delay(&kit_watch.inner, KIT_WATCH_RECEIVED);
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        assert_int_equal(*(const char *)torc_message_data(m), '0' + i);
    }
    assert_int_equal(torc_stream_receive(s, -1, &m), 0);
    torc_result *r = kit_watch_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    assert_int_equal(kit_watch.inner.ends, 1);
}

/* The server has ended the RPC while a received message is delayed. The interceptor then refuses the message, or the
 * application cancels: either decides the outcome. */
static void test_outcome_behind_a_message(void **state)
{
    (void)state;
    for (int cancel = 0; cancel < 2; cancel++) {
        torc_result *r;
        kit_watch.inner.closed = 0;
        torc_stream *s = kit_watch_start_delayed(KIT_WATCH_RECEIVED, &r);
        while (!kit_watch.inner.closed)
            torc_runtime_poll(kit_watch.rt, -1);
        assert_null(r);
        if (cancel)
            torc_stream_cancel(s);
        else
            kit_watch_resume(&kit_watch.inner, TORC_STATUS_DATA_LOSS, "bad bytes");
        torc_result_free(kit_watch_finish(s));
        assert_int_equal(torc_result_code(r), cancel ? TORC_STATUS_CANCELLED : TORC_STATUS_DATA_LOSS);
        torc_result_free(r);
        assert_int_equal(kit_watch.inner.ends, cancel + 1);
        kit_watch_resume(&kit_watch.inner, 0, NULL);
    }
}

/* --- hooks that free the stream or the channel of their RPC --- */

static torc_stream *doomed; /* the RPC's stream; NULL: freed */

static void free_stream(torc_rpc *rpc)
{
    (void)rpc;
    torc_stream_free(doomed);
    doomed = NULL;
}

static void free_channel(torc_rpc *rpc)
{
    (void)rpc;
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = NULL;
}

/* A hook frees the stream or the channel: the RPC ends, and on_end comes once. If the hook is one of those before the
 * response (up to KIT_WATCH_SENT), the status is CANCELLED. */
static void test_freed_in_hooks(void **state)
{
    (void)state;
    static void (*const frees[])(torc_rpc *) = {free_stream, free_channel};
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++)
        for (size_t i = 0; i < TC_ARRAY_LEN(frees); i++) {
            torc_result *r = NULL;
            kit_watch.inner.at = at;
            kit_watch.inner.in_hook = frees[i];
            assert_int_equal(
                torc_unary_async(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL, kit_watch_drop_result, &r, &doomed, NULL),
                0);
            while (!r)
                torc_runtime_poll(kit_watch.rt, -1);
            if (at <= KIT_WATCH_SENT)
                assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
            torc_result_free(r);
            assert_int_equal(kit_watch.inner.ends, 1);
            torc_stream_free(doomed);
            torc_channel_free(kit_watch.ch);
            kit_watch_channel_renew();
        }
}

/* The channel is freed right after torc_unary_async has returned: the hooks see CANCELLED. */
static void test_channel_freed_behind_it(void **state)
{
    (void)state;
    torc_result *r = NULL;
    assert_int_equal(
        torc_unary_async(kit_watch.ch, KIT_WATCH_HANG, "m", 1, NULL, kit_watch_drop_result, &r, NULL, NULL), 0);
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = NULL;
    while (!r)
        torc_runtime_poll(kit_watch.rt, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
    torc_result_free(r);
    assert_int_equal(kit_watch.inner.ends, 1);
    assert_non_null(strstr(kit_watch.events, "i=1 o=1 i.1 o.1"));
}

/* --- hedged attempts that are delayed side by side --- */

static torc_pending *attempts[4]; /* by number */
static int attempts_begun;

static int keep_attempt(torc_rpc *rpc, uint32_t number, void *state, void *arg)
{
    (void)state, (void)arg;
    attempts[number] = torc_rpc_suspend(rpc);
    attempts_begun++;
    return TORC_PENDING;
}

/* Three hedged attempts wait side by side. The attempt that is resumed wins, and is the only one that a connection
 * gets; the others are resumed too late. */
static void test_hedges_side_by_side(void **state)
{
    (void)state;
    static const char hedging[] = "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,"
                                  "\"hedgingDelay\":\"0s\"}}]}";
    const struct torc_interceptor a = {TORC_SIZE(torc_interceptor), .on_attempt = keep_attempt};
    const struct torc_interceptor *const list[] = {&a, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    torc_result *r = NULL;
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, hedging);
    assert_int_equal(
        torc_unary_async(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL, kit_watch_drop_result, &r, NULL, NULL), 0);
    while (attempts_begun < 3)
        torc_runtime_poll(kit_watch.rt, -1);
    torc_rpc_resume(attempts[2], 0, NULL); /* wins */
    while (!r)
        torc_runtime_poll(kit_watch.rt, -1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_int_equal(torc_result_attempts(r), 1);
    torc_result_free(r);
    torc_rpc_resume(attempts[1], 0, NULL);
    torc_rpc_resume(attempts[3], TORC_STATUS_ABORTED, NULL);
    kit_watch_expect(KIT_WATCH_FAIL, -1, TORC_STATUS_DEADLINE_EXCEEDED, "");
}

/* --- a fork inside a hook --- */

static pid_t child;

static void fork_here(torc_rpc *rpc)
{
    (void)rpc;
    child = fork();
    assert_true(child >= 0);
}

/* The RPC stays the parent's, where it succeeds. In the child on_end is not called, and torc_unary fails with
 * TORC_EFORK. */
static void test_fork_in_hooks(void **state)
{
    (void)state;
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++) {
        kit_watch.inner.at = at;
        kit_watch.inner.in_hook = fork_here;
        int ends = kit_watch.outer.ends;
        torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL);
        if (child == 0) {
            bool heard = kit_watch.inner.ends != ends || kit_watch.outer.ends != ends;
            _exit(heard || torc_error_code(torc_result_error(r)) != TORC_EFORK ? 1 : 0);
        }
        int status = -1;
        assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
        torc_result_free(r);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(kit_watch.inner.ends, ends + 1);
        assert_int_equal(kit_watch.outer.ends, ends + 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_watch_setup, kit_watch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_resumed_with_a_verdict),    TEST(test_pending_and_deadline),  TEST(test_pending_and_cancel),
        TEST(test_status_of_a_cancelled_rpc), TEST(test_pending_and_free),      TEST(test_pending_and_channel_free),
        TEST(test_pending_and_runtime_free),  TEST(test_suspended_for_nothing), TEST(test_added_while_pending),
        TEST(test_set_while_pending),         TEST(test_sender_waits),          TEST(test_receiver_waits),
        TEST(test_outcome_behind_a_message),  TEST(test_freed_in_hooks),        TEST(test_channel_freed_behind_it),
        TEST(test_hedges_side_by_side),       TEST(test_fork_in_hooks),         TEST(test_late_second_attempt),
    };
    return cmocka_run_group_tests(tests, kit_watch_group_setup, kit_watch_group_teardown);
}
