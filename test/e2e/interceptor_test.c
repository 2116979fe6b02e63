/* Interceptors of a channel: the order of their hooks, also with retries and hedges, what each verdict does at each
 * hook, which metadata they add, which messages they replace, and which lists of interceptors a channel rejects.
 *
 * The channel, its two interceptors ("outer" and "inner") and the backend come from support/kits/watch.h: each test has
 * a new runtime and channel, and all share the backend. Some tests free this channel and make another one, with
 * interceptors of their own; the teardown frees it. The test's thread drives the runtime over real sockets, so hooks
 * run on this thread. Delays: interceptor_delay_test.c; threads: interceptor_threads_test.c; servers:
 * interceptor_server_test.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "base/common.h"
#include "support/cmocka.h"
#include "support/kits/watch.h"

/* --- order --- */

static void test_order(void **state)
{
    (void)state;
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
    kit_watch_expect_events("os is o>(m) i>(m) oa1 ia1 i<(m) o<(m) i=0 o=0 i.0 o.0");
    assert_true(kit_watch.inner.picks > 0);
    assert_int_equal(kit_watch.inner.opened, 1);
    assert_int_equal(kit_watch.inner.closed, 1);
    assert_int_equal(kit_watch.inner.sent, 1);
    assert_int_equal(kit_watch.inner.received, 1);
    assert_int_equal(kit_watch.inner.bytes, 2);
    kit_watch_expect(KIT_WATCH_FAIL, 0, TORC_STATUS_INVALID_ARGUMENT, "");
    assert_non_null(strstr(kit_watch.events, "i=3 o=3 i.3 o.3"));
}

static void test_not_for_explain(void **state)
{
    (void)state;
    torc_result_free(torc_explain(kit_watch.ch, KIT_WATCH_ECHO, NULL));
    kit_watch_expect_events("");
}

/* --- verdicts --- */

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        enum kit_watch_hook at;
        const char *events; /* all of them; NULL: only their end is compared */
    } cases[] = {
        {KIT_WATCH_START, "os is o=7 i.7 o.7"}, /* an interceptor whose on_start refuses gets no on_status */
        {KIT_WATCH_ATTEMPT, NULL},
        {KIT_WATCH_SENT, NULL},
        {KIT_WATCH_RECEIVED, NULL},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        kit_watch.inner.at = cases[i].at;
        kit_watch.inner.verdict = TORC_STATUS_PERMISSION_DENIED;
        kit_watch_expect(KIT_WATCH_RETRY, 0, TORC_STATUS_PERMISSION_DENIED,
                         "the interceptor \"inner\" refused the RPC");
        assert_non_null(strstr(kit_watch.events, i == 0 ? "o=7 i.7 o.7" : "i=7 o=7 i.7 o.7"));
        if (cases[i].events)
            assert_string_equal(kit_watch.events, cases[i].events);
        kit_watch.events[0] = '\0';
        kit_watch.inner.text = "not today";
        torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL);
        assert_string_equal(torc_result_text(r), "not today");
        assert_int_equal(torc_error_layer(torc_result_error(r)), TORC_LAYER_INTERCEPTOR);
        assert_int_equal(torc_result_attempts(r), cases[i].at == KIT_WATCH_RECEIVED);
        torc_result_free(r);
        assert_string_equal(kit_watch.last_text, "not today");
        kit_watch.inner.text = NULL;
        kit_watch.events[0] = '\0';
    }
    assert_int_equal(kit_watch.outer.ends, 8);
    assert_int_equal(kit_watch.inner.ends, 8);
    assert_int_equal(kit_watch.inner.opened, kit_watch.inner.closed);
}

/* The outer interceptor refuses the RPC: the inner interceptor never hears of the RPC. */
static void test_refused_outside(void **state)
{
    (void)state;
    kit_watch.outer.at = KIT_WATCH_START;
    kit_watch.outer.verdict = TORC_STATUS_UNAUTHENTICATED;
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_UNAUTHENTICATED, "outer");
    kit_watch_expect_events("os o.16");
    assert_int_equal(kit_watch.inner.ends, 0);
}

static void test_no_verdict(void **state)
{
    (void)state;
    static const int wrong[] = {-1, 17, 65535, 65537};
    for (enum kit_watch_hook at = KIT_WATCH_START; at < KIT_WATCH_HOOKS; at++)
        for (size_t i = 0; i < TC_ARRAY_LEN(wrong); i++) {
            kit_watch.inner.at = at;
            kit_watch.inner.verdict = wrong[i];
            kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_INTERNAL, "which is not a verdict");
        }
    assert_int_equal(kit_watch.outer.ends, kit_watch.inner.ends);
}

static int pending_alone(torc_rpc *rpc, void *state, void *arg)
{
    (void)rpc, (void)state, (void)arg;
    return TORC_PENDING;
}

static void test_pending_without_suspend(void **state)
{
    (void)state;
    const struct torc_interceptor a = {TORC_SIZE(torc_interceptor), .on_start = pending_alone};
    const struct torc_interceptor *const list[] = {&a, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, NULL);
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_INTERNAL,
                     "\"interceptors[0]\" delayed on_start without torc_rpc_suspend");
}

static void test_status_replaced(void **state)
{
    (void)state;
    kit_watch.inner.at = KIT_WATCH_STATUS;
    kit_watch.inner.verdict = TORC_STATUS_ABORTED;
    kit_watch.inner.text = "instead";
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_ABORTED, "instead");
    assert_non_null(strstr(kit_watch.events, "i=0 o=10 i.10 o.10"));
    kit_watch.inner.text = NULL; /* a verdict without a text leaves the failure's text */
    kit_watch_expect(KIT_WATCH_FAIL, 0, TORC_STATUS_ABORTED, "the request must be the number of a status, 0 to 16");
    kit_watch.events[0] = '\0';
    kit_watch.inner.verdict = 0;
    kit_watch_expect(KIT_WATCH_FAIL, 0, TORC_STATUS_INVALID_ARGUMENT, "");
    assert_non_null(strstr(kit_watch.events, "i=3 o=3 i.3 o.3"));
}

/* --- metadata, the peer, an RPC without a response --- */

static void add_one(torc_rpc *rpc)
{
    assert_int_equal(torc_rpc_add_metadata(rpc, "X-Added", "yes", 3), 0);
    assert_int_equal(torc_rpc_add_metadata(rpc, "grpc-x", "no", 2), TORC_EINVAL);
    assert_int_equal(torc_rpc_add_metadata(rpc, NULL, "no", 2), TORC_EINVAL);
    assert_string_equal(torc_metadata_find(torc_rpc_metadata(rpc), "x-added", NULL), "yes");
    assert_string_equal(torc_rpc_method(rpc), KIT_WATCH_ECHO);
    assert_string_equal(torc_rpc_target(rpc), kit_backends_target(kit_watch.kit));
    assert_string_equal(torc_rpc_authority(rpc), kit_backends_address(kit_watch.kit, 0));
    assert_string_equal(torc_rpc_peer(rpc), "");
    assert_null(torc_rpc_headers(rpc));
    assert_int_equal(torc_rpc_time_left(rpc), 0);
}

static void read_all(torc_rpc *rpc)
{
    assert_string_equal(torc_metadata_find(torc_rpc_metadata(rpc), "x-added", NULL), "yes");
    assert_non_null(torc_metadata_find(torc_rpc_headers(rpc), "x-backend", NULL));
    assert_string_equal(torc_rpc_peer(rpc), kit_backends_address(kit_watch.kit, 0));
    assert_int_equal(torc_rpc_layer(rpc), TORC_LAYER_NONE);
}

static char peer_seen[64]; /* what the last see_peer saw */

static void see_peer(torc_rpc *rpc)
{
    snprintf(peer_seen, sizeof(peer_seen), "%s", torc_rpc_peer(rpc));
}

/* The peer of a stream is known as soon as a message has come, while the stream goes on. */
static void test_peer_before_the_end(void **state)
{
    (void)state;
    const torc_message *m = NULL;
    kit_watch.inner.at = KIT_WATCH_RECEIVED;
    kit_watch.inner.in_hook = see_peer;
    torc_stream *s = torc_stream_open(kit_watch.ch, KIT_WATCH_ECHO, NULL, NULL);
    assert_int_equal(torc_stream_send(s, "m", 1, 0, -1), 0);
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    assert_string_equal(peer_seen, kit_backends_address(kit_watch.kit, 0));
    assert_int_equal(kit_watch.inner.ends, 0);
    torc_result_free(kit_watch_finish(s));
    assert_int_equal(kit_watch.inner.ends, 1);
}

/* A unary RPC that ends with OK and without a response is INTERNAL to interceptors, as it is to the application. */
static void test_no_response(void **state)
{
    (void)state;
    static const char *const methods[] = {KIT_WATCH_SILENT, KIT_WATCH_SILENT_HEDGE};
    for (size_t i = 0; i < TC_ARRAY_LEN(methods); i++) {
        kit_watch_expect(methods[i], 0, TORC_STATUS_INTERNAL, "no response message");
        kit_watch_expect_events("os is o>(m) i>(m) oa1 ia1 i=13 o=13 i.13 o.13");
    }
}

static void test_metadata(void **state)
{
    (void)state;
    kit_watch.outer.at = KIT_WATCH_START;
    kit_watch.outer.in_hook = add_one;
    kit_watch.inner.at = KIT_WATCH_STATUS;
    kit_watch.inner.in_hook = read_all;
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_OK, "");
}

static void add_for_seen(torc_rpc *rpc)
{
    assert_int_equal(torc_rpc_add_metadata(rpc, "x-added", "yes", 3), 0);
}

static void test_metadata_is_sent(void **state)
{
    (void)state;
    kit_watch.inner.at = KIT_WATCH_START;
    kit_watch.inner.in_hook = add_for_seen;
    kit_watch_expect("/t/Seen", 0, TORC_STATUS_OK, "");
    assert_string_equal(kit_watch.server_saw, "yes");
}

/* --- attempts --- */

static void test_retries(void **state)
{
    (void)state;
    kit_watch.server_fails = 2;
    kit_watch_expect(KIT_WATCH_RETRY, 0, TORC_STATUS_OK, "");
    assert_non_null(strstr(kit_watch.events, "oa1 ia1 oa2 ia2 oa3 ia3"));
    assert_non_null(strstr(kit_watch.events, "i=0 o=0 i.0 o.0"));
    assert_int_equal(kit_watch.inner.opened, 3);
    assert_int_equal(kit_watch.inner.closed, 3);
    assert_int_equal(kit_watch.inner.ends, 1);
}

static void refuse_second(torc_rpc *rpc)
{
    kit_watch.inner.verdict = torc_rpc_attempts(rpc) == 2 ? TORC_STATUS_CANCELLED : 0;
}

static void test_refused_retry(void **state)
{
    (void)state;
    kit_watch.server_fails = 2;
    kit_watch.inner.at = KIT_WATCH_ATTEMPT;
    kit_watch.inner.in_hook = refuse_second;
    kit_watch_expect(KIT_WATCH_RETRY, 0, TORC_STATUS_CANCELLED, "inner");
    assert_int_equal(kit_watch.server_calls, 1);
}

static void test_hedges(void **state)
{
    (void)state;
    kit_watch.server_fails = 1;
    kit_watch_expect(KIT_WATCH_HEDGE, 0, TORC_STATUS_OK, "");
    assert_non_null(strstr(kit_watch.events, "oa1 ia1"));
    assert_non_null(strstr(kit_watch.events, "oa2 ia2"));
    assert_non_null(strstr(kit_watch.events, "i<(done) o<(done) i=0 o=0 i.0 o.0"));
    assert_int_equal(kit_watch.inner.opened, kit_watch.inner.closed);
    kit_watch.events[0] = '\0';
    kit_watch.server_calls = 0;
    kit_watch.inner.at = KIT_WATCH_ATTEMPT;
    kit_watch.inner.in_hook = refuse_second;
    kit_watch_expect(KIT_WATCH_HEDGE, 0, TORC_STATUS_CANCELLED, "inner");
    assert_non_null(strstr(kit_watch.events, "i=1 o=1 i.1 o.1"));
    assert_int_equal(kit_watch.inner.opened, kit_watch.inner.closed);
    assert_int_equal(kit_watch.inner.ends, 2);
}

/* --- messages --- */

/* An on_message: replaces the message by one with the letter at `arg` behind it. A message has 62 bytes at most. */
static int append_letter(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)rpc, (void)state, (void)sent;
    char text[64];
    int n = snprintf(text, sizeof(text), "%.*s%c", (int)torc_message_size(*message),
                     (const char *)torc_message_data(*message), *(const char *)arg);
    *message = torc_message_new(text, (size_t)n);
    return 0;
}

/* Makes another channel for the kit, with two interceptors: the outer one appends "a", the inner one "b". Sent messages
 * have 40 bytes at most. */
static void use_letters(void)
{
    static char letters[] = "ab";
    const struct torc_interceptor a = {TORC_SIZE(torc_interceptor), .on_message = append_letter, .arg = &letters[0]};
    const struct torc_interceptor b = {TORC_SIZE(torc_interceptor), .on_message = append_letter, .arg = &letters[1]};
    const struct torc_interceptor *const list[] = {&a, &b, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .max_send_message_bytes = 40, .interceptors = list};
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, NULL);
}

static void test_replaced_messages(void **state)
{
    (void)state;
    use_letters();
    torc_result *r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL);
    kit_watch_expect_message(torc_result_response(r), "mabba"); /* sent a, b; received b, a */
    torc_result_free(r);
    torc_stream *s = torc_stream_open(kit_watch.ch, KIT_WATCH_ECHO, NULL, NULL);
    for (int i = 0; i < 5; i++) {
        char text[16];
        const torc_message *m;
        snprintf(text, sizeof(text), "%d", i);
        assert_int_equal(torc_stream_send(s, text, 1, i == 4 ? TORC_SEND_LAST : 0, -1), 0);
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
        snprintf(text, sizeof(text), "%dabba", i);
        kit_watch_expect_message(m, text);
    }
    r = kit_watch_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    /* The limit of 40 bytes applies to the message as the interceptors leave it, here with 41 bytes. */
    r = torc_unary(kit_watch.ch, KIT_WATCH_ECHO, "123456789012345678901234567890123456789", 39, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
}

static int store_nothing(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)rpc, (void)sent, (void)state, (void)arg;
    *message = NULL;
    return 0;
}

static void test_message_of_nothing(void **state)
{
    (void)state;
    const struct torc_interceptor a = {TORC_SIZE(torc_interceptor), .name = "n", .on_message = store_nothing};
    const struct torc_interceptor *const list[] = {&a, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, NULL);
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_INTERNAL, "the interceptor \"n\" stored NULL instead of a message");
    assert_null(torc_message_new(NULL, 1));
    torc_message *empty = torc_message_new(NULL, 0);
    assert_int_equal(torc_message_size(empty), 0);
    torc_message_unref(empty);
}

/* --- lists that are rejected, arguments that are NULL, interceptors made by names --- */

/* Asserts that no channel is made with this list, and that the error's text contains `text`. */
static void expect_list_refused(const struct torc_interceptor *const *list, const char *text)
{
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    assert_null(torc_channel_new(kit_watch.rt, "ipv4:127.0.0.1:1", &o, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    if (!strstr(torc_error_text(error), text))
        fail_msg("\"%s\" is not in \"%s\"", text, torc_error_text(error));
    torc_error_free(error);
}

static void test_malformed(void **state)
{
    (void)state;
    struct kit_watcher w;
    struct torc_interceptor good = kit_watch_interceptor_of(&w, "good"), bad = good;
    const struct torc_interceptor *const two[] = {&good, &bad, NULL};
    bad.state_size = 65537;
    expect_list_refused(two, "interceptors[1]: state_size: is 65537");
    bad.state_size = -1;
    expect_list_refused(two, "interceptors[1]: state_size: is -1");
    bad.size = 0;
    expect_list_refused(two, "interceptors[1]: size is 0");
    const struct torc_interceptor *many[66] = {NULL};
    for (size_t i = 0; i < 65; i++)
        many[i] = &good;
    expect_list_refused(many, "more than 64");
    assert_int_equal(w.releases, 0);
    many[64] = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = many};
    torc_channel *full = torc_channel_new(kit_watch.rt, kit_backends_target(kit_watch.kit), &o, NULL);
    torc_result *r = torc_unary(full, KIT_WATCH_ECHO, "m", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_channel_free(full);
    while (!w.releases)
        torc_runtime_poll(kit_watch.rt, 0);
    assert_int_equal(w.ends, 64);
    assert_int_equal(w.releases, 64);
}

static void test_null(void **state)
{
    (void)state;
    assert_null(torc_rpc_method(NULL));
    assert_null(torc_rpc_target(NULL));
    assert_null(torc_rpc_authority(NULL));
    assert_string_equal(torc_rpc_peer(NULL), "");
    assert_int_equal(torc_rpc_time_left(NULL), 0);
    assert_int_equal(torc_rpc_attempts(NULL), 0);
    assert_null(torc_rpc_metadata(NULL));
    assert_int_equal(torc_rpc_add_metadata(NULL, "a", "b", 1), TORC_EINVAL);
    assert_int_equal(torc_rpc_set_text(NULL, "a"), TORC_EINVAL);
    assert_null(torc_rpc_headers(NULL));
    assert_null(torc_rpc_trailers(NULL));
    assert_string_equal(torc_rpc_text(NULL), "");
    assert_int_equal(torc_rpc_layer(NULL), TORC_LAYER_NONE);
    assert_null(torc_rpc_suspend(NULL));
    assert_int_equal(torc_pending_add_metadata(NULL, "a", "b", 1), TORC_EINVAL);
    assert_int_equal(torc_pending_set_message(NULL, torc_message_new("a", 1)), TORC_EINVAL);
    torc_rpc_resume(NULL, 0, NULL);
    assert_int_equal(torc_pick_outcome(NULL), 0);
    assert_int_equal(torc_pick_attempt(NULL), 0);
    assert_string_equal(torc_pick_endpoint(NULL), "");
    assert_string_equal(torc_pick_policy(NULL), "");
    assert_string_equal(torc_pick_cluster(NULL), "");
    assert_int_equal(torc_pick_code(NULL), TORC_STATUS_OK);
    assert_string_equal(torc_pick_text(NULL), "");
    assert_int_equal(torc_wire_event(NULL), 0);
    assert_int_equal(torc_wire_attempt(NULL), 0);
    assert_string_equal(torc_wire_peer(NULL), "");
    assert_int_equal(torc_wire_bytes(NULL), 0);
    assert_int_equal(torc_wire_code(NULL), TORC_STATUS_OK);
}

/* A binding makes interceptors by the names of their fields, without a struct. */
static void test_by_names(void **state)
{
    (void)state;
    int (*start)(torc_rpc *, void *, void *) = kit_watch_interceptor_of(&kit_watch.inner, "inner").on_start;
    const void *pointer;
    memcpy(&pointer, &start, sizeof(pointer));
    torc_options *i = torc_options_new("torc_interceptor", NULL), *o = torc_options_new("torc_channel_options", NULL);
    assert_int_equal(torc_options_set(i, "name", "bound", NULL), 0);
    assert_int_equal(torc_options_set(i, "state_size", "16", NULL), 0);
    assert_int_equal(torc_options_set(i, "state_size", "70000", NULL), TORC_EINVAL);
    assert_int_equal(torc_options_set_pointer(i, "on_start", pointer, NULL), 0);
    assert_int_equal(torc_options_set_pointer(i, "arg", &kit_watch.inner, NULL), 0);
    const void *list[] = {torc_options_data(i), NULL};
    assert_int_equal(torc_options_set_pointer(o, "credentials", torc_credentials_insecure(), NULL), 0);
    assert_int_equal(torc_options_set_pointer(o, "interceptors", list, NULL), 0);
    torc_channel_free(kit_watch.ch);
    kit_watch.ch = torc_channel_new(kit_watch.rt, kit_backends_target(kit_watch.kit), torc_options_data(o), NULL);
    torc_options_free(i);
    torc_options_free(o);
    kit_watch.inner.at = KIT_WATCH_START;
    kit_watch.inner.verdict = TORC_STATUS_ABORTED;
    kit_watch_expect(KIT_WATCH_ECHO, 0, TORC_STATUS_ABORTED, "\"bound\"");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_watch_setup, kit_watch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_order),
        TEST(test_not_for_explain),
        TEST(test_refused),
        TEST(test_refused_outside),
        TEST(test_no_verdict),
        TEST(test_pending_without_suspend),
        TEST(test_status_replaced),
        TEST(test_peer_before_the_end),
        TEST(test_no_response),
        TEST(test_metadata),
        TEST(test_metadata_is_sent),
        TEST(test_retries),
        TEST(test_refused_retry),
        TEST(test_hedges),
        TEST(test_replaced_messages),
        TEST(test_message_of_nothing),
        TEST(test_malformed),
        TEST(test_null),
        TEST(test_by_names),
    };
    return cmocka_run_group_tests(tests, kit_watch_group_setup, kit_watch_group_teardown);
}
