/* Calls that wait for a picker, the explanation of a call, and watches of a channel's state.
 *
 * Every test has a channel on virtual time that never connects (kits/channel.h). The test publishes pickers and states
 * itself, and turns the loop. No call gets a connection. Calls pick again, and watches are called, from the serial
 * queue, never from inside of `publish` or `go`. The channel owns the published pickers; a test owns its outcomes
 * (`fini`) and its watches. One thread. */
#include <string.h>

#include "api/explain.h"
#include "base/json.h"
#include "base/mem.h"
#include "channel/call_internal.h"
#include "channel/call_start.h"
#include "support/cmocka.h"
#include "support/kits/channel.h"

static struct kit_channel k;

static int setup(void **state)
{
    (void)state;
    kit_channel_init(&k, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_channel_fini(&k);
    return 0;
}

/* A picker with a scripted answer, which records the calls that asked. */
struct scripted {
    struct tc_picker base;
    enum tc_pick_kind kind;
    int code; /* of the pick's status; 0: the pick has none */
};

static struct tc_buf asked; /* the last letter of each call's path */
static bool traced;         /* a pick was asked for a trace */

static enum tc_pick_kind pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct scripted *s = (struct scripted *)picker;
    if (args->waiting) /* for the deadline's text: not a pick */
        return s->kind;
    tc_buf_append(&asked, args->path.data + args->path.len - 1, 1);
    if (s->code)
        out->status = tc_status_make(s->code, TORC_LAYER_LB, "as scripted");
    if (args->trace) {
        traced = true;
        args->trace->policy = tc_slice_str("quo\"te\\back\nline\x01");
        args->trace->cluster = tc_slice_str("gr\xc3\xbc\xc3\x9f\x65");
        args->trace->endpoint = tc_slice_of("bad\xff", 4);
        args->trace->walked = tc_arena_calloc(args->arena, 1, sizeof(*args->trace->walked));
        args->trace->walked[0].endpoint = tc_slice_str("10.0.0.1:80");
        args->trace->walked[0].reason = tc_slice_str("\"}],{");
        args->trace->n_walked = 1;
        args->trace->has_hash = true;
        args->trace->hash = 0xabc;
    }
    return s->kind;
}

static void free_picker(struct tc_picker *picker)
{
    tc_free(picker);
}

/* Publishes a picker with this answer. The channel owns the picker. */
static void publish(enum tc_pick_kind kind, int code)
{
    static const struct tc_picker_ops ops = {pick, free_picker};
    struct scripted *s = TC_NEW(struct scripted);
    s->base.ops = &ops;
    tc_lref_init(&s->base.ref);
    s->kind = kind;
    s->code = code;
    tc_channel_set_state(k.ch, TORC_CONNECTIVITY_READY, NULL, &s->base);
}

/* Asserts which calls asked since the last expect_asked, in order. */
static void expect_asked(const char *want)
{
    assert_int_equal(asked.len, strlen(want));
    if (asked.len)
        assert_memory_equal(asked.data, want, asked.len);
    tc_buf_fini(&asked);
}

struct outcome {
    struct tc_call *call; /* NULL after the end */
    int code;             /* -1 while it runs */
    char *text;           /* of the status, owned; NULL while the call runs */
};

static void on_done(void *arg, const struct tc_call_end *end)
{
    struct outcome *o = arg;
    assert_int_equal(o->code, -1);
    assert_int_equal(end->attempts, 0);
    o->code = end->status.code;
    o->text = tc_strdup(tc_status_text(&end->status));
    o->call = NULL;
}

/* Starts a call that reports its end to `o`, for `fini` at the end of the test. timeout_ns 0: no deadline. */
static void begin(struct outcome *o, const char *method, bool wait, uint64_t timeout_ns)
{
    static const struct tc_call_events events = {.on_done = on_done};
    struct tc_call_opts opts = {.method = tc_slice_str(method), .wait_for_ready = wait, .timeout_ns = timeout_ns};
    *o = (struct outcome){.code = -1};
    o->call = tc_call_start(k.ch, &opts, &events, o);
}

static void fini(struct outcome *o)
{
    if (o->call)
        tc_call_cancel(o->call);
    tc_free(o->text);
}

/* Calls pick again in the order in which they came, and only once if several pickers were published before that. No
 * call asks a picker twice. */
static void test_order_and_turns(void **state)
{
    (void)state;
    struct outcome o[4];
    begin(&o[0], "/s/a", false, 0);
    begin(&o[1], "/s/b", true, 0);
    begin(&o[2], "/s/c", false, 0);
    tc_loop_drain(k.loop);
    expect_asked("");
    publish(TC_PICK_QUEUE, 0);
    expect_asked(""); /* the calls pick from the serial queue */
    publish(TC_PICK_QUEUE, 0);
    publish(TC_PICK_QUEUE, 0);
    tc_loop_drain(k.loop);
    expect_asked("abc");
    tc_loop_drain(k.loop);
    expect_asked("");
    begin(&o[3], "/s/d", false, 0);
    tc_loop_drain(k.loop);
    expect_asked("d");
    /* A call that is cancelled while it waits does not pick again. */
    tc_call_cancel(o[1].call);
    o[1].call = NULL;
    publish(TC_PICK_QUEUE, 0);
    tc_loop_drain(k.loop);
    expect_asked("acd");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(o[i].code, -1);
        fini(&o[i]);
    }
}

static void test_fail_and_drop(void **state)
{
    (void)state;
    struct outcome plain, waits;
    begin(&plain, "/s/a", false, 0);
    begin(&waits, "/s/b", true, 0);
    tc_loop_drain(k.loop);
    publish(TC_PICK_FAIL, TORC_STATUS_UNAVAILABLE);
    tc_loop_drain(k.loop);
    expect_asked("ab");
    assert_int_equal(plain.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(plain.text, "as scripted");
    assert_int_equal(waits.code, -1);
    /* A drop fails wait-for-ready calls, too. */
    publish(TC_PICK_DROP, TORC_STATUS_UNAVAILABLE);
    tc_loop_drain(k.loop);
    expect_asked("b");
    assert_int_equal(waits.code, TORC_STATUS_UNAVAILABLE);
    fini(&plain);
    fini(&waits);
}

/* A54: statuses that a control plane must not give to RPCs become INTERNAL, with the picker's text. */
static void test_status_of_the_control_plane(void **state)
{
    (void)state;
    static const int illegal[] = {TORC_STATUS_INVALID_ARGUMENT, TORC_STATUS_NOT_FOUND,
                                  TORC_STATUS_ALREADY_EXISTS,   TORC_STATUS_FAILED_PRECONDITION,
                                  TORC_STATUS_ABORTED,          TORC_STATUS_OUT_OF_RANGE,
                                  TORC_STATUS_DATA_LOSS};
    struct outcome o;
    publish(TC_PICK_QUEUE, 0);
    for (int code = 1; code <= 16; code++) {
        bool bad = false;
        for (size_t i = 0; i < TC_ARRAY_LEN(illegal); i++)
            bad |= illegal[i] == code;
        begin(&o, "/s/a", false, 0);
        tc_loop_drain(k.loop);
        publish(code % 2 ? TC_PICK_FAIL : TC_PICK_DROP, code);
        tc_loop_drain(k.loop);
        assert_int_equal(o.code, bad ? TORC_STATUS_INTERNAL : code);
        assert_non_null(strstr(o.text, "as scripted"));
        const char *illegally = code % 2 ? "Illegal status code from LB pick;" : "Illegal status code from LB drop;";
        assert_true(bad == (strstr(o.text, illegally) != NULL));
        fini(&o);
        publish(TC_PICK_QUEUE, 0);
        tc_loop_drain(k.loop);
    }
    tc_buf_fini(&asked);
}

static void test_deadline_while_queued(void **state)
{
    (void)state;
    struct outcome first, second;
    begin(&first, "/s/a", false, 2 * TC_NS_PER_S);
    begin(&second, "/s/b", true, 3 * TC_NS_PER_S);
    tc_loop_advance(k.loop, 1999);
    assert_int_equal(first.code, -1);
    tc_loop_advance(k.loop, 1);
    assert_int_equal(first.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(first.text, "deadline exceeded after 2.000 s while waiting for a connected endpoint of "
                                       "ipv4:10.0.0.1:80, which is CONNECTING"));
    publish(TC_PICK_FAIL, TORC_STATUS_UNAVAILABLE);
    tc_loop_drain(k.loop);
    expect_asked("b");
    tc_loop_advance(k.loop, 1000);
    assert_int_equal(second.code, TORC_STATUS_DEADLINE_EXCEEDED);
    expect_asked("");
    fini(&first);
    fini(&second);
}

/* tc_channel_shutdown ends a waiting call without on_done. */
static void test_channel_ends(void **state)
{
    (void)state;
    struct outcome o;
    begin(&o, "/s/a", true, 0);
    tc_loop_drain(k.loop);
    publish(TC_PICK_QUEUE, 0);
    tc_channel_shutdown(k.ch); /* while the waiting call is about to pick again */
    k.ch = NULL;
    tc_loop_drain(k.loop);
    expect_asked("");
    assert_int_equal(o.code, -1);
    o.call = NULL;
    fini(&o);
}

/* The explanation is one JSON object, whatever bytes the names in it have. */
static void test_explanation_is_json(void **state)
{
    (void)state;
    struct outcome o;
    begin(&o, "/s/a", true, 0);
    o.call->asked.explain = true;
    tc_loop_drain(k.loop);
    publish(TC_PICK_QUEUE, 0);
    tc_loop_drain(k.loop);
    assert_true(traced);
    json_t *v = json_loads(tc_call_explain(o.call), 0, NULL);
    assert_non_null(v);
    assert_string_equal(json_string_value(json_object_get(v, "policy")), "quo\"te\\back\nline\x01");
    assert_string_equal(json_string_value(json_object_get(v, "cluster")), "gr\xc3\xbc\xc3\x9f\x65");
    assert_string_equal(json_string_value(json_object_get(v, "hash")), "0x0000000000000abc");
    assert_true(json_is_string(json_object_get(v, "endpoint")));
    json_t *step = json_array_get(json_object_get(v, "walked"), 0);
    assert_string_equal(json_string_value(json_object_get(step, "endpoint")), "10.0.0.1:80");
    assert_string_equal(json_string_value(json_object_get(step, "reason")), "\"}],{");
    json_decref(v);
    tc_buf_fini(&asked);
    fini(&o);
}

/* --- watches --- */

struct watcher {
    struct tc_channel_watch watch;
    struct tc_buf seen;           /* first letters of the states since the last expect_seen: "ICT(text)R" */
    struct watcher *remove, *add; /* what the next call of the watch removes and adds; NULL: nothing */
};

static void on_watch(struct tc_channel_watch *watch, enum torc_connectivity state, const struct tc_status *status)
{
    struct watcher *w = TC_CONTAINER_OF(watch, struct watcher, watch);
    tc_buf_append_char(&w->seen, torc_connectivity_name(state)[0]);
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_buf_printf(&w->seen, "(%s)", tc_status_text(status));
    if (w->remove)
        tc_channel_watch_remove(&w->remove->watch);
    if (w->add)
        tc_channel_watch_add(k.ch, &w->add->watch);
    w->remove = w->add = NULL;
}

static void watch_init(struct watcher *w)
{
    *w = (struct watcher){.watch.fn = on_watch};
    tc_list_init(&w->watch.link);
}

/* Turns the loop, and asserts which states the watch has seen since the last expect_seen. */
static void expect_seen(struct watcher *w, const char *want)
{
    tc_loop_drain(k.loop);
    assert_string_equal(tc_buf_cstr(&w->seen), want);
    tc_buf_fini(&w->seen);
}

/* Publishes a state, with a picker that queues. text: the reason of a failure; NULL: none. */
static void go(enum torc_connectivity state, const char *text)
{
    struct tc_status status = {0};
    if (text)
        status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "%s", text);
    tc_channel_set_state(k.ch, state, &status, tc_picker_queue());
    tc_status_fini(&status);
}

/* Every state is delivered in order, even if several come in one turn. A state that is repeated before its delivery is
 * delivered once, a failure with the newest reason. */
static void test_watch_sees_all(void **state)
{
    (void)state;
    struct watcher w;
    watch_init(&w);
    tc_channel_exit_idle(k.ch);
    tc_loop_drain(k.loop);
    tc_channel_watch_add(k.ch, &w.watch);
    expect_seen(&w, "");
    go(TORC_CONNECTIVITY_READY, NULL);
    go(TORC_CONNECTIVITY_IDLE, NULL);
    go(TORC_CONNECTIVITY_CONNECTING, NULL);
    assert_int_equal(w.seen.len, 0); /* watches are called from the serial queue */
    go(TORC_CONNECTIVITY_TRANSIENT_FAILURE, "one");
    go(TORC_CONNECTIVITY_TRANSIENT_FAILURE, "two");
    go(TORC_CONNECTIVITY_READY, NULL);
    go(TORC_CONNECTIVITY_READY, NULL);
    expect_seen(&w, "RICT(two)R");
    assert_int_equal(torc_channel_state(k.ch, false), TORC_CONNECTIVITY_READY);
    go(TORC_CONNECTIVITY_TRANSIENT_FAILURE, "three");
    tc_loop_drain(k.loop);
    go(TORC_CONNECTIVITY_TRANSIENT_FAILURE, "four");
    expect_seen(&w, "T(three)T(four)");
    tc_channel_watch_remove(&w.watch);
    tc_channel_watch_remove(&w.watch);
    go(TORC_CONNECTIVITY_IDLE, NULL);
    expect_seen(&w, "");
}

/* Watches may be removed and added from inside a watch. */
static void test_watch_changes_inside(void **state)
{
    (void)state;
    struct watcher a, b, c;
    watch_init(&a);
    watch_init(&b);
    watch_init(&c);
    tc_channel_exit_idle(k.ch);
    tc_loop_drain(k.loop);
    tc_channel_watch_add(k.ch, &a.watch);
    tc_channel_watch_add(k.ch, &b.watch);
    a.remove = &b;
    a.add = &c;
    go(TORC_CONNECTIVITY_READY, NULL);
    expect_seen(&a, "R");
    expect_seen(&b, "");
    expect_seen(&c, ""); /* c gets later states only */
    go(TORC_CONNECTIVITY_IDLE, NULL);
    expect_seen(&a, "I");
    expect_seen(&c, "I");
    a.remove = &a;
    go(TORC_CONNECTIVITY_CONNECTING, NULL);
    expect_seen(&a, "C");
    expect_seen(&c, "C");
    go(TORC_CONNECTIVITY_READY, NULL);
    expect_seen(&a, "");
    expect_seen(&c, "R");
    /* No watch is called after the shutdown, not even for states that were on their way. */
    go(TORC_CONNECTIVITY_IDLE, NULL);
    tc_channel_shutdown(k.ch);
    k.ch = NULL;
    expect_seen(&c, "");
}

struct told {
    int n;
    enum torc_connectivity state;
};

static void on_state(torc_channel *channel, enum torc_connectivity state, const char *text, void *arg)
{
    struct told *t = arg;
    assert_true((channel == NULL) == (state == TORC_CONNECTIVITY_SHUTDOWN));
    assert_non_null(text);
    t->n++;
    t->state = state;
}

/* torc_channel_watch_state calls back once, as soon as the state differs. */
static void test_watch_once(void **state)
{
    (void)state;
    struct told same = {0}, other = {0};
    tc_channel_exit_idle(k.ch);
    tc_loop_drain(k.loop);
    go(TORC_CONNECTIVITY_READY, NULL);
    tc_loop_drain(k.loop);
    assert_int_equal(torc_channel_watch_state(k.ch, TORC_CONNECTIVITY_READY, on_state, &same), 0);
    assert_int_equal(torc_channel_watch_state(k.ch, TORC_CONNECTIVITY_IDLE, on_state, &other), 0);
    assert_int_equal(other.n, 0);
    tc_loop_drain(k.loop);
    assert_int_equal(same.n, 0);
    assert_int_equal(other.n, 1);
    assert_int_equal(other.state, TORC_CONNECTIVITY_READY);
    go(TORC_CONNECTIVITY_TRANSIENT_FAILURE, "gone");
    go(TORC_CONNECTIVITY_IDLE, NULL);
    tc_loop_drain(k.loop);
    assert_int_equal(same.n, 1);
    assert_int_equal(same.state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(other.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order_and_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fail_and_drop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_status_of_the_control_plane, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadline_while_queued, setup, teardown),
        cmocka_unit_test_setup_teardown(test_channel_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_explanation_is_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_sees_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_changes_inside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
