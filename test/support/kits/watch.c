/* Interceptors that record calls of their hooks, with a backend and a channel.
 *
 * on_pick, on_wire and release are counted. Each other hook adds a word to kit_watch.events. The hooks with a verdict
 * return 0, or, at the hook that the test chose (`at`), the test's verdict, after a call of the test's function
 * (`in_hook`). If the verdict is TORC_PENDING, the watcher stores the torc_pending for the test. The teardown resumes a
 * torc_pending that the test has left, once the runtime is freed. The state of each RPC serves to assert that on_start
 * comes once, before on_end.
 *
 * The one kit_watch belongs to the tests of a program: the group's fixtures make and free the backend, the fixtures of
 * each test the runtime and the channel. Methods of the backend run on the backend's thread. */
#include "support/kits/watch.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"

struct kit_watch kit_watch;

struct state {
    int started;
};

/* Adds a word to the events: the letter of the interceptor, then `what`. */
static void note(const struct kit_watcher *w, const char *what)
{
    size_t at = strlen(kit_watch.events);
    snprintf(kit_watch.events + at, sizeof(kit_watch.events) - at, "%s%c%s", at ? " " : "", w->name, what);
}

/* Does at a hook what the test has set for it (in_hook, verdict, text). Returns the verdict; 0 at other hooks. */
static int answer(struct kit_watcher *w, torc_rpc *rpc, enum kit_watch_hook at)
{
    if (w->at != at)
        return 0;
    if (w->in_hook)
        w->in_hook(rpc);
    if (w->verdict == TORC_PENDING) {
        CHECK(!w->pending);
        w->pending = torc_rpc_suspend(rpc);
        CHECK(w->pending);
        CHECK(!torc_rpc_suspend(rpc));
    }
    if (w->text)
        CHECK(torc_rpc_set_text(rpc, w->text) == 0);
    return w->verdict;
}

static int on_start(torc_rpc *rpc, void *state, void *arg)
{
    struct state *s = state;
    CHECK(s->started == 0);
    s->started = 1;
    struct kit_watcher *w = arg;
    w->starts++;
    note(w, "s");
    return answer(w, rpc, KIT_WATCH_START);
}

static int on_attempt(torc_rpc *rpc, uint32_t number, void *state, void *arg)
{
    (void)state;
    char what[32];
    snprintf(what, sizeof(what), "a%u", number);
    note(arg, what);
    CHECK(torc_rpc_attempts(rpc) == number);
    return answer(arg, rpc, KIT_WATCH_ATTEMPT);
}

static int on_message(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)state;
    char what[32];
    snprintf(what, sizeof(what), "%s(%.*s)", sent ? ">" : "<", (int)torc_message_size(*message),
             (const char *)torc_message_data(*message));
    note(arg, what);
    return answer(arg, rpc, sent ? KIT_WATCH_SENT : KIT_WATCH_RECEIVED);
}

static int on_status(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)state;
    char what[32];
    snprintf(what, sizeof(what), "=%d", code);
    note(arg, what);
    return answer(arg, rpc, KIT_WATCH_STATUS);
}

static void on_pick(torc_rpc *rpc, const torc_pick *pick, void *state, void *arg)
{
    (void)rpc, (void)state;
    struct kit_watcher *w = arg;
    w->picks++;
    CHECK(torc_pick_attempt(pick) >= 1);
    if (torc_pick_outcome(pick) == TORC_PICK_COMPLETE) {
        CHECK(strcmp(torc_pick_policy(pick), "pick_first") == 0);
        CHECK(strcmp(torc_pick_endpoint(pick), kit_backends_address(kit_watch.kit, 0)) == 0);
        CHECK(strcmp(torc_pick_text(pick), "") == 0);
    }
}

static void on_wire(torc_rpc *rpc, const torc_wire *wire, void *state, void *arg)
{
    (void)state;
    struct kit_watcher *w = arg;
    w->opened += torc_wire_event(wire) == TORC_WIRE_OPENED;
    w->closed += torc_wire_event(wire) == TORC_WIRE_ENDED;
    w->sent += torc_wire_event(wire) == TORC_WIRE_SENT;
    w->received += torc_wire_event(wire) == TORC_WIRE_RECEIVED;
    w->bytes += (int64_t)torc_wire_bytes(wire);
    CHECK(strcmp(torc_wire_peer(wire), kit_backends_address(kit_watch.kit, 0)) == 0);
    CHECK(!torc_rpc_trailers(rpc)); /* the outcome is for on_status and on_end */
    CHECK(strcmp(torc_rpc_text(rpc), "") == 0);
    CHECK(torc_rpc_layer(rpc) == TORC_LAYER_NONE);
}

static void on_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    const struct state *s = state;
    struct kit_watcher *w = arg;
    char what[32];
    snprintf(what, sizeof(what), ".%d", code);
    note(w, what);
    w->ends++;
    CHECK(s->started == 1);
    CHECK(!torc_rpc_suspend(rpc));
    CHECK(torc_rpc_set_text(rpc, "") == TORC_ESTATE);
    CHECK(torc_rpc_add_metadata(rpc, "a", "b", 1) == TORC_ESTATE);
    snprintf(kit_watch.last_text, sizeof(kit_watch.last_text), "%s", torc_rpc_text(rpc));
}

static void on_release(void *arg)
{
    ((struct kit_watcher *)arg)->releases++;
}

struct torc_interceptor kit_watch_interceptor_of(struct kit_watcher *w, const char *name)
{
    *w = (struct kit_watcher){.name = name[0], .at = KIT_WATCH_NEVER};
    return (struct torc_interceptor){.size = sizeof(struct torc_interceptor),
                                     .state_size = sizeof(struct state),
                                     .name = name,
                                     .on_start = on_start,
                                     .on_attempt = on_attempt,
                                     .on_message = on_message,
                                     .on_status = on_status,
                                     .on_pick = on_pick,
                                     .on_wire = on_wire,
                                     .on_end = on_end,
                                     .release = on_release,
                                     .arg = w};
}

/* --- the server's methods --- */

static void on_retry_call(void *arg, struct tc_server_call *call)
{
    (void)arg;
    if (kit_watch.server_calls++ < kit_watch.server_fails)
        tc_server_call_finish(call, TORC_STATUS_UNAVAILABLE, "scripted", NULL);
    else
        tc_server_call_reply(call, tc_slice_str("done"));
}

static void on_silent_call(void *arg, struct tc_server_call *call)
{
    (void)arg;
    tc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void on_seeing_call(void *arg, struct tc_server_call *call)
{
    (void)arg;
    const struct tc_header *h = tc_headers_find(tc_server_call_metadata(call), tc_slice_str("x-added"));
    snprintf(kit_watch.server_saw, sizeof(kit_watch.server_saw), "%.*s", h ? (int)h->value.len : 1,
             h ? h->value.data : "-");
    tc_server_call_reply(call, tc_slice_str("seen"));
}

static void install(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, KIT_WATCH_RETRY, on_retry_call, NULL);
    tc_server_add_method(server, KIT_WATCH_HEDGE, on_retry_call, NULL);
    tc_server_add_method(server, KIT_WATCH_SILENT, on_silent_call, NULL);
    tc_server_add_method(server, KIT_WATCH_SILENT_HEDGE, on_silent_call, NULL);
    tc_server_add_method(server, KIT_WATCH_SEEN, on_seeing_call, NULL);
}

const char kit_watch_config[] =
    "{\"methodConfig\":[{\"name\":[{\"service\":\"retry\"}],\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":"
    "\"0.001s\",\"maxBackoff\":\"0.001s\",\"backoffMultiplier\":1,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}},"
    "{\"name\":[{\"service\":\"hedge\"}],\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"1000s\","
    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}";

static torc_channel *channel_make(void)
{
    const struct torc_interceptor a = kit_watch_interceptor_of(&kit_watch.outer, "outer"),
                                  b = kit_watch_interceptor_of(&kit_watch.inner, "inner");
    const struct torc_interceptor *const list[] = {&a, &b, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .interceptors = list};
    return kit_backends_channel(kit_watch.kit, kit_watch.rt, &o, kit_watch_config);
}

int kit_watch_group_setup(void **state)
{
    (void)state;
    kit_watch.kit = kit_backends_new(1, NULL);
    kit_backends_do(kit_watch.kit, install, 0, NULL);
    return 0;
}

int kit_watch_group_teardown(void **state)
{
    (void)state;
    kit_backends_free(kit_watch.kit);
    return 0;
}

int kit_watch_setup_in(enum torc_runtime_mode mode)
{
    kit_watch.rt = kit_backends_runtime(mode);
    kit_watch.ch = channel_make();
    kit_watch.events[0] = '\0';
    kit_watch.server_calls = kit_watch.server_fails = 0;
    return 0;
}

int kit_watch_setup(void **state)
{
    (void)state;
    return kit_watch_setup_in(TORC_RUNTIME_CALLER);
}

int kit_watch_setup_thread(void **state)
{
    (void)state;
    return kit_watch_setup_in(TORC_RUNTIME_THREAD);
}

int kit_watch_teardown(void **state)
{
    (void)state;
    torc_channel_free(kit_watch.ch);
    int rc = torc_runtime_free(kit_watch.rt);
    torc_rpc_resume(kit_watch.outer.pending, 0, NULL);
    torc_rpc_resume(kit_watch.inner.pending, 0, NULL);
    assert_int_equal(kit_watch.outer.releases, 1);
    assert_int_equal(kit_watch.inner.releases, 1);
    return rc;
}

void kit_watch_expect(const char *method, int64_t timeout_ms, int code, const char *text)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = timeout_ms};
    torc_result *r = torc_unary(kit_watch.ch, method, "m", 1, &o);
    assert_int_equal(torc_result_code(r), code);
    if (!strstr(torc_result_text(r), text))
        fail_msg("\"%s\" is not in \"%s\"", text, torc_result_text(r));
    torc_result_free(r);
}

void kit_watch_expect_events(const char *wanted)
{
    assert_string_equal(kit_watch.events, wanted);
    kit_watch.events[0] = '\0';
}

void kit_watch_delay(struct kit_watcher *w, enum kit_watch_hook at)
{
    w->at = at;
    w->verdict = TORC_PENDING;
}

void kit_watch_resume(struct kit_watcher *w, int verdict, const char *text)
{
    torc_pending *p = w->pending;
    w->pending = NULL;
    w->at = KIT_WATCH_NEVER;
    torc_rpc_resume(p, verdict, text);
}

void kit_watch_turn_until_pending(const struct kit_watcher *w)
{
    while (!w->pending)
        torc_runtime_poll(kit_watch.rt, -1);
}

void kit_watch_channel_renew(void)
{
    while (!kit_watch.outer.releases)
        torc_runtime_poll(kit_watch.rt, 0);
    assert_int_equal(kit_watch.inner.releases, 1);
    kit_watch.ch = channel_make();
}

torc_result *kit_watch_finish(torc_stream *s)
{
    torc_result *r = torc_stream_finish(s);
    torc_stream_free(s);
    return r;
}

void kit_watch_drop_result(const torc_result *result, void *arg)
{
    *(torc_result **)arg = torc_result_ref(result);
}

torc_stream *kit_watch_start_delayed(enum kit_watch_hook at, torc_result **result)
{
    torc_stream *s = NULL;
    *result = NULL;
    kit_watch_delay(&kit_watch.inner, at);
    assert_int_equal(
        torc_unary_async(kit_watch.ch, KIT_WATCH_ECHO, "m", 1, NULL, kit_watch_drop_result, result, &s, NULL), 0);
    kit_watch_turn_until_pending(&kit_watch.inner);
    return s;
}

void kit_watch_expect_message(const torc_message *m, const char *text)
{
    assert_int_equal(torc_message_size(m), strlen(text));
    assert_memory_equal(torc_message_data(m), text, strlen(text));
}
