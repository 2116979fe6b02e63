/* An interceptor holds a response message while its RPC ends. The scenes are all combinations of how the RPC is made,
 * how it ends, and how and when the interceptor lets the message go. The RPC of a scene must end exactly once: with the
 * code of code_of_ends or of code_of_event, whichever comes first; or, if neither ends it, with CANCELLED when the test
 * closes the world. In the other test no message is held when the deadline comes: the application has not asked for it.
 *
 * Several tasks of the serial queue lie between the end of the server's stream and the end of the RPC. The message may
 * be resumed before, between or after these tasks.
 *
 * `world` is a channel on virtual time with one connection to a scripted server in memory (fakes/h2). Each scene, and
 * each case of the other test, opens and closes a world of its own. The test owns `held` until it resumes the message,
 * at the latest in world_close, after the runtime has been freed. One thread: the test turns the loop. Read `struct
 * scene` and `play` first. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "base/mem.h"
#include "runtime/create.h"
#include "subchannel/connection.h"
#include "subchannel/pool.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { TIMEOUT_MS = 60000 };

/* How the RPC is made. AGAIN: its first attempt fails, and the message is the second attempt's. HEDGES: all attempts
 * start at once; HEDGE: the first attempt alone. */
enum made { PLAIN, RETRY, RETRY_AGAIN, HEDGE, HEDGE_AGAIN, HEDGES, MADE };
/* How the server ends the stream while the message is held. */
enum server_end { RUNNING, ENDS_OK, ENDS_NOT_FOUND, RESETS, SERVER_ENDS };
/* An event after the server's end. */
enum event { NOTHING, DEADLINE, CANCEL, FREE_STREAM, FREE_CHANNEL, FREE_RUNTIME, EVENTS };
/* How the interceptor lets the message go. */
enum verdict { PASSES, REPLACES, REFUSES, NEVER, VERDICTS };
/* When the interceptor lets the message go. 0 to 5: while the server's end passes the serial queue, after this many
 * hops of `world.resume`; BEFORE_EVENT: after the queue has been drained; AFTER_EVENT: after the event. */
enum when { BETWEEN_TASKS, BEFORE_EVENT = 6, AFTER_EVENT, WHENS };

struct scene {
    enum made made;
    bool stream; /* else unary */
    bool two;    /* the held message is the second one, which a unary RPC must not get */
    enum server_end server_end;
    enum event event;
    enum verdict verdict;
    enum when when;
};

/* An attempt to connect. Its task grants it; it is freed when it is granted or cancelled. */
struct tc_connect {
    struct tc_task task;
    tc_connect_fn fn;
    void *arg;
};

static struct {
    struct tc_loop *loop;
    torc_runtime *rt;
    torc_channel *ch;
    struct fake_pipe *pipe;
    struct fake_h2 *peer;
    torc_stream *rpc;
    torc_pending *held;
    const struct scene *scene;
    struct tc_task resume;
    int hops;    /* how often `resume` goes to the end of the serial queue before it resumes the message */
    int passing; /* messages that pass before one is held */
    int done, code, messages, ends;
} world;

static void drain(void)
{
    tc_loop_drain(world.loop);
}

/* --- the connection --- */

static void on_granted(struct tc_task *task)
{
    struct tc_connect *c = TC_CONTAINER_OF(task, struct tc_connect, task);
    assert_null(world.pipe);
    world.pipe = fake_pipe_new(world.loop);
    world.peer = fake_h2_new(world.pipe, 1, true);
    c->fn(c->arg, fake_pipe_end(world.pipe, 0), NULL);
    fake_h2_start(world.peer);
    tc_free(c);
}

static struct tc_connect *connect_start(struct tc_loop *loop, const struct tc_addr *addr,
                                        const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg)
{
    (void)addr, (void)opts;
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->fn = fn;
    c->arg = arg;
    tc_task_init(&c->task, on_granted);
    tc_loop_defer(loop, &c->task);
    return c;
}

static void connect_cancel(struct tc_connect *c)
{
    tc_task_cancel(&c->task);
    tc_free(c);
}

/* --- the interceptor, the application --- */

static int hold(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg)
{
    (void)message, (void)state, (void)arg;
    if (sent || world.passing-- > 0)
        return 0;
    assert_null(world.held);
    world.held = torc_rpc_suspend(rpc);
    return TORC_PENDING;
}

static void on_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)rpc, (void)state, (void)arg;
    assert_int_equal(world.done, 0);
    world.ends++;
    world.code = code;
}

static void on_result(const torc_result *result, void *arg)
{
    (void)arg;
    world.done++;
    world.code = torc_result_code(result);
}

static void on_message(torc_stream *stream, const torc_message *message, void *arg)
{
    (void)stream, (void)message, (void)arg;
    assert_int_equal(world.done, 0);
    world.messages++;
}

static void on_done(torc_stream *stream, const torc_result *result, void *arg)
{
    (void)stream;
    on_result(result, arg);
}

/* --- the world --- */

#define CONFIG(policy) "{\"methodConfig\":[{\"name\":[{}]," policy "}]}"
#define RETRIES                                                                                                        \
    "\"retryPolicy\":{\"maxAttempts\":3,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":1,"      \
    "\"retryableStatusCodes\":[\"UNAVAILABLE\",\"NOT_FOUND\"]}"
#define HEDGING(delay)                                                                                                 \
    "\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"" delay "\",\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}"

static void world_open(enum made made)
{
    static const char *const configs[] = {
        [PLAIN] = "{}",
        [RETRY] = CONFIG(RETRIES),
        [RETRY_AGAIN] = CONFIG(RETRIES),
        [HEDGE] = CONFIG(HEDGING("1000s")),
        [HEDGE_AGAIN] = CONFIG(HEDGING("1000s")),
        [HEDGES] = CONFIG(HEDGING("0s")),
    };
    static const struct tc_connector connector = {.start = connect_start, .cancel = connect_cancel};
    const struct torc_interceptor interceptor = {TORC_SIZE(torc_interceptor), .on_message = hold, .on_end = on_end};
    const struct torc_interceptor *const list[] = {&interceptor, NULL};
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .service_config_json = configs[made], .interceptors = list};
    torc_error *error = NULL;
    memset(&world, 0, sizeof(world));
    world.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    world.rt = tc_runtime_new_on(world.loop, NULL);
    tc_pool_set_connector(tc_runtime_pool(world.rt), &connector);
    world.ch = torc_channel_new(world.rt, "ipv4:10.0.0.1:80", &o, &error);
    assert_null(error);
}

static void channel_free(void)
{
    torc_channel_free(world.ch);
    world.ch = NULL;
}

static void runtime_free(void)
{
    if (world.rt)
        assert_int_equal(torc_runtime_free(world.rt), 0);
    world.rt = NULL;
}

static void stream_free(void)
{
    torc_stream_free(world.rpc);
    world.rpc = NULL;
}

static void world_close(void)
{
    stream_free();
    channel_free();
    runtime_free();
    torc_rpc_resume(world.held, 0, NULL);
    drain();
    fake_h2_free(world.peer);
    fake_pipe_free(world.pipe);
    tc_loop_free(world.loop);
}

/* --- a scene --- */

#define RESPONSE_HEADERS ":status: 200\ncontent-type: application/grpc\n"

static void end_stream(uint32_t stream, int code)
{
    char fields[32];
    snprintf(fields, sizeof(fields), "grpc-status: %d\n", code);
    fake_h2_headers(world.peer, stream, fields, true);
}

/* Turns the loop. Returns the stream of the next request, which must have come. */
static uint32_t await_request(void)
{
    drain();
    const struct fake_h2_frame *request = fake_h2_expect(world.peer, FAKE_H2_HEADERS, 0);
    assert_non_null(request);
    return request->stream;
}

/* Makes the RPC, and turns the loop until the interceptor holds its message. Returns the message's stream. */
static uint32_t begin(const struct scene *s)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_message = on_message,
                                                     .on_done = on_done};
    const struct torc_call_options o = {TORC_SIZE(torc_call_options),
                                        .timeout_ms = s->event == DEADLINE ? TIMEOUT_MS : 0, .wait_for_ready = 1};
    world.passing = s->two;
    if (s->stream) {
        world.rpc = torc_stream_start(world.ch, "/s/M", &o, &events, NULL, NULL);
        assert_int_equal(torc_stream_want(world.rpc, 3), 0);
        assert_int_equal(torc_stream_send(world.rpc, "m", 1, TORC_SEND_LAST, 0), 0);
    } else {
        assert_int_equal(torc_unary_async(world.ch, "/s/M", "m", 1, &o, on_result, NULL, &world.rpc, NULL), 0);
    }
    uint32_t stream = await_request();
    if (s->made == RETRY_AGAIN || s->made == HEDGE_AGAIN) {
        fake_h2_headers(world.peer, stream, RESPONSE_HEADERS "grpc-status: 14\n", true);
        drain();
        if (s->made == RETRY_AGAIN)
            tc_loop_advance(world.loop, 1300);
        stream = await_request();
    }
    fake_h2_headers(world.peer, stream, RESPONSE_HEADERS, false);
    for (int i = 0; i <= s->two; i++)
        fake_h2_message(world.peer, stream, "x", 1, false);
    drain();
    assert_non_null(world.held);
    return stream;
}

static void server_end(const struct scene *s, uint32_t stream)
{
    if (s->server_end == RESETS)
        fake_h2_rst(world.peer, stream, 2); /* INTERNAL_ERROR */
    else if (s->server_end != RUNNING)
        end_stream(stream, s->server_end == ENDS_OK ? TORC_STATUS_OK : TORC_STATUS_NOT_FOUND);
}

static void resume(const struct scene *s)
{
    if (s->verdict == NEVER)
        return;
    if (s->verdict == REPLACES)
        assert_int_equal(torc_pending_set_message(world.held, torc_message_new("other", 5)), 0);
    torc_rpc_resume(world.held, s->verdict == REFUSES ? TORC_STATUS_DATA_LOSS : 0, "refused");
    world.held = NULL;
}

static void on_resume(struct tc_task *task)
{
    if (world.hops-- > 0)
        tc_loop_defer(world.loop, task);
    else
        resume(world.scene);
}

static void happen(const struct scene *s)
{
    switch (s->event) {
    case DEADLINE:
        tc_loop_advance(world.loop, TIMEOUT_MS);
        break;
    case CANCEL:
        torc_stream_cancel(world.rpc);
        break;
    case FREE_STREAM:
        stream_free();
        break;
    case FREE_CHANNEL:
        channel_free();
        break;
    case FREE_RUNTIME:
        runtime_free();
        break;
    case NOTHING:
    case EVENTS:
        break;
    }
}

/* Returns the code with which the RPC ends once the message is let go: that of a refusal, else that of a second
 * response of a unary RPC, else that of the server's end. -1: the RPC goes on, or the message is never let go. */
static int code_of_ends(const struct scene *s)
{
    static const int codes[] = {[RUNNING] = -1,
                                [ENDS_OK] = TORC_STATUS_OK,
                                [ENDS_NOT_FOUND] = TORC_STATUS_NOT_FOUND,
                                [RESETS] = TORC_STATUS_INTERNAL};
    if (s->verdict == NEVER)
        return -1;
    if (s->verdict == REFUSES)
        return TORC_STATUS_DATA_LOSS;
    if (s->two && !s->stream)
        return TORC_STATUS_INTERNAL; /* more than one response */
    return codes[s->server_end];
}

/* Returns the code with which the event ends the RPC; -1: there is no event. */
static int code_of_event(const struct scene *s)
{
    static const int codes[] = {[NOTHING] = -1,
                                [DEADLINE] = TORC_STATUS_DEADLINE_EXCEEDED,
                                [CANCEL] = TORC_STATUS_CANCELLED,
                                [FREE_STREAM] = TORC_STATUS_CANCELLED,
                                [FREE_CHANNEL] = TORC_STATUS_CANCELLED,
                                [FREE_RUNTIME] = TORC_STATUS_UNAVAILABLE};
    return codes[s->event];
}

/* Fails with the scene's numbers if `got` is not `wanted`. */
static void expect(const struct scene *s, const char *what, int got, int wanted)
{
    if (got != wanted)
        fail_msg("%s: %d, expected %d. Scene: made %d, stream %d, two %d, server_end %d, event %d, verdict %d, when %d",
                 what, got, wanted, (int)s->made, s->stream, s->two, (int)s->server_end, (int)s->event, (int)s->verdict,
                 (int)s->when);
}

static void play(const struct scene *s)
{
    bool first = s->when != AFTER_EVENT; /* the verdict comes before the event */
    int ends = code_of_ends(s), event = code_of_event(s);
    int code = first && ends >= 0 ? ends : event >= 0 ? event : ends;
    world_open(s->made);
    server_end(s, begin(s));
    if (s->when < BEFORE_EVENT) {
        world.scene = s;
        world.hops = (int)s->when;
        tc_task_init(&world.resume, on_resume);
        tc_loop_defer(world.loop, &world.resume);
    } else {
        drain();
        if (first)
            resume(s);
    }
    drain();
    expect(s, "over before the event", world.done, first && ends >= 0);
    happen(s);
    drain();
    expect(s, "over after the event", world.done, event >= 0 || (first && ends >= 0));
    if (!first)
        resume(s);
    drain();
    expect(s, "over", world.done, code >= 0);
    if (s->stream && first && s->verdict != NEVER)
        expect(s, "messages", world.messages, s->two + (s->verdict != REFUSES));
    if (code >= 0)
        expect(s, "code", world.code, code);
    world_close();
    expect(s, "on_done", world.done, 1);
    expect(s, "on_end", world.ends, 1);
    if (code < 0)
        expect(s, "code at the end", world.code, TORC_STATUS_CANCELLED);
}

static void test_every_scene(void **state)
{
    (void)state;
    struct scene s = {0};
    int scenes = 0;
    for (s.made = 0; s.made < MADE; s.made++)
        for (int kind = 0; kind < 4; kind++)
            for (s.server_end = 0; s.server_end < SERVER_ENDS; s.server_end++)
                for (s.event = 0; s.event < EVENTS; s.event++)
                    for (s.verdict = 0; s.verdict < VERDICTS; s.verdict++)
                        for (s.when = 0; s.when < WHENS; s.when++) {
                            s.stream = kind & 1;
                            s.two = kind & 2;
                            play(&s);
                            scenes++;
                        }
    assert_int_equal(scenes, 6 * 4 * 4 * 6 * 4 * 8);
}

/* --- messages that the application has not asked for --- */

/* The server's message comes, then the end of the server's stream (`ends` 1: OK, 2: NOT_FOUND; 0: no end), then the
 * deadline. Without the server's end the RPC gets DEADLINE_EXCEEDED. Otherwise the application asks for the message
 * after the deadline, and the RPC keeps the server's status, unless an interceptor holds the message: then the RPC gets
 * DEADLINE_EXCEEDED too. */
static void test_a_deadline_after_the_end(void **state)
{
    (void)state;
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_message = on_message,
                                                     .on_done = on_done};
    static const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = TIMEOUT_MS,
                                               .wait_for_ready = 1};
    for (enum made made = 0; made < MADE; made++)
        for (int ends = 0; ends < 3; ends++)
            for (int holds = 0; holds < 2; holds++) {
                world_open(made);
                world.passing = holds ? 0 : 1;
                world.rpc = torc_stream_start(world.ch, "/s/M", &o, &events, NULL, NULL);
                assert_int_equal(torc_stream_send(world.rpc, "m", 1, TORC_SEND_LAST, 0), 0);
                uint32_t stream = await_request();
                fake_h2_headers(world.peer, stream, RESPONSE_HEADERS, false);
                fake_h2_message(world.peer, stream, "x", 1, false);
                if (ends)
                    end_stream(stream, ends == 1 ? TORC_STATUS_OK : TORC_STATUS_NOT_FOUND);
                drain();
                tc_loop_advance(world.loop, TIMEOUT_MS);
                assert_int_equal(world.done, !ends);
                if (ends) {
                    assert_int_equal(torc_stream_want(world.rpc, 1), 0);
                    drain();
                    assert_int_equal(world.messages, !holds);
                    tc_loop_advance(world.loop, 1); /* an interceptor that holds the message has no time left */
                }
                assert_int_equal(world.done, 1);
                assert_int_equal(world.code, !ends || holds ? TORC_STATUS_DEADLINE_EXCEEDED
                                             : ends == 1    ? TORC_STATUS_OK
                                                            : TORC_STATUS_NOT_FOUND);
                world_close();
                assert_int_equal(world.ends, 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_deadline_after_the_end),
        cmocka_unit_test(test_every_scene),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
