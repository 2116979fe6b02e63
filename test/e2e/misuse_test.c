/* Handles that are misused: NULL arguments, calls in the wrong state, streams that are freed inside each callback or
 * closed while callbacks run on another thread, channels and servers that are freed twice. Each accepted RPC with
 * callbacks has exactly one last callback. The last callback of a stream frees the argument of the callbacks, so that a
 * sanitizer sees a callback that comes later.
 *
 * The tests share an echo server (kits/backends.h), a channel, and a runtime whose thread runs the callbacks. Tests of
 * the end of a runtime, and of handles that are freed twice, make a runtime and a channel of their own;
 * test_server_freed_twice makes a server too. With TORC_RUNTIME_CALLER the callbacks of such a runtime run on the
 * test's thread. test_cancel_releases_a_receiver has a thread that waits for messages. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;
static torc_channel *ch;
static atomic_int ended; /* calls of on_done and on_end so far */

static int setup(void **state)
{
    (void)state;
    kit = kit_backends_open(TORC_RUNTIME_THREAD, &rt, &ch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return kit_backends_close(kit, rt, ch);
}

/* Waits until `ended` is n at least. Asserts that `ended` is n. */
static void wait_ended(int n)
{
    while (atomic_load(&ended) < n)
        sched_yield();
    assert_int_equal(atomic_load(&ended), n);
}

/* --- arguments that are NULL or wrong --- */

/* Asserts that the function that returned the result was refused with this enum torc_code. Frees the result. */
static void expect_refused(torc_result *r, int code)
{
    assert_int_equal(torc_error_code(torc_result_error(r)), code);
    assert_int_not_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_string_not_equal(torc_error_text(torc_result_error(r)), "");
    assert_null(torc_result_response(r));
    assert_int_equal(torc_result_attempts(r), 0);
    torc_result_free(r);
}

static void test_null_streams(void **state)
{
    (void)state;
    const torc_message *m;
    const torc_metadata *headers;
    const char *peer;
    assert_int_equal(torc_stream_send(NULL, "", 0, 0, -1), TORC_EINVAL);
    assert_int_equal(torc_stream_half_close(NULL), TORC_EINVAL);
    assert_int_equal(torc_stream_want(NULL, 1), TORC_EINVAL);
    assert_int_equal(torc_stream_receive(NULL, -1, &m), TORC_EINVAL);
    assert_int_equal(torc_stream_headers(NULL, -1, &headers), TORC_EINVAL);
    assert_int_equal(torc_stream_peer(NULL, -1, &peer), TORC_EINVAL);
    assert_int_equal(torc_stream_close(NULL), TORC_EINVAL);
    torc_stream_cancel(NULL);
    torc_stream_free(NULL);
    expect_refused(torc_stream_finish(NULL), TORC_EINVAL);
    expect_refused(torc_unary(NULL, "a/b", "", 0, NULL), TORC_EINVAL);
    expect_refused(torc_unary(ch, NULL, "", 0, NULL), TORC_EINVAL);
    expect_refused(torc_unary(ch, "nothing", "", 0, NULL), TORC_EINVAL);
    expect_refused(torc_unary(ch, "a/b", NULL, 5, NULL), TORC_EINVAL);
    expect_refused(torc_explain(NULL, "a/b", NULL), TORC_EINVAL);
}

static void test_null_results_and_messages(void **state)
{
    (void)state;
    assert_int_equal(torc_result_code(NULL), TORC_STATUS_UNKNOWN);
    assert_string_equal(torc_result_text(NULL), "");
    assert_string_equal(torc_result_peer(NULL), "");
    assert_null(torc_result_error(NULL));
    assert_null(torc_result_response(NULL));
    assert_null(torc_result_headers(NULL));
    assert_null(torc_result_trailers(NULL));
    assert_null(torc_result_explain(NULL));
    assert_int_equal(torc_result_attempts(NULL), 0);
    assert_int_equal(torc_result_detail(NULL, 0, NULL, NULL, NULL), TORC_EINVAL);
    assert_null(torc_result_ref(NULL));
    torc_result_free(NULL);
    assert_null(torc_message_data(NULL));
    assert_int_equal(torc_message_size(NULL), 0);
    assert_null(torc_message_ref(NULL));
    torc_message_unref(NULL);
}

static void never(torc_stream *s, const torc_result *result, void *arg)
{
    (void)s, (void)result, (void)arg;
    abort();
}

static void never_fn(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
    abort();
}

static void test_starts_that_are_refused(void **state)
{
    (void)state;
    torc_error *error = NULL;
    struct torc_stream_events events = {.size = sizeof(events), .on_done = never};
    struct { /* events of a newer version: a function behind those that the library knows */
        struct torc_stream_events known;
        void *later;
    } later = {.known = {.size = sizeof(later), .on_done = never}, .later = &later};
    assert_null(torc_stream_start(ch, "a/b", NULL, NULL, NULL, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_null(torc_stream_start(ch, "a/b", NULL, &events, NULL, &error)); /* refused: the error is set already */
    torc_error_clear(&error);
    assert_null(torc_stream_start(ch, "a/b", NULL, &later.known, NULL, &error));
    assert_int_equal(torc_error_code(error), TORC_EUNSUPPORTED);
    torc_error_clear(&error);
    assert_null(torc_stream_start(NULL, "a/b", NULL, &events, NULL, &error));
    torc_error_clear(&error);
    assert_null(torc_stream_start(ch, "/a", NULL, &events, NULL, NULL));
    events.on_done = NULL;
    assert_null(torc_stream_start(ch, "a/b", NULL, &events, NULL, NULL));
    events = (struct torc_stream_events){.size = 0, .on_done = never};
    assert_null(torc_stream_start(ch, "a/b", NULL, &events, NULL, NULL));
    assert_null(torc_stream_open(NULL, "a/b", NULL, NULL));
    assert_int_equal(torc_unary_async(ch, "a/b", "", 0, NULL, NULL, NULL, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_unary_async(ch, "a/b", NULL, 1, NULL, never_fn, NULL, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_unary_async(ch, "", "", 0, NULL, never_fn, NULL, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_explain_async(NULL, "a/b", NULL, never_fn, NULL, NULL, NULL), TORC_EINVAL);
}

static void test_arguments_of_a_stream(void **state)
{
    (void)state;
    const torc_message *m;
    const torc_metadata *headers;
    torc_stream *s = torc_stream_open(ch, "a.B/Chat", NULL, NULL);
    assert_int_equal(torc_stream_send(s, NULL, 1, 0, -1), TORC_EINVAL);
    assert_int_equal(torc_stream_send(s, "", 0, 8, -1), TORC_EINVAL);
    assert_int_equal(torc_stream_send(s, "", 0, 0, -2), TORC_EINVAL);
    assert_int_equal(torc_stream_receive(s, -2, &m), TORC_EINVAL);
    assert_int_equal(torc_stream_receive(s, -1, NULL), TORC_EINVAL);
    assert_int_equal(torc_stream_headers(s, INT64_MIN, &headers), TORC_EINVAL);
    assert_int_equal(torc_stream_headers(s, -1, NULL), TORC_EINVAL);
    assert_int_equal(torc_stream_peer(s, -1, NULL), TORC_EINVAL);
    assert_int_equal(torc_stream_send(s, NULL, 0, TORC_SEND_LAST, INT64_MAX), 0);
    assert_int_equal(torc_stream_receive(s, INT64_MAX, &m), 1);
    assert_int_equal(torc_message_size(m), 0);
    torc_stream_cancel(s);
    torc_stream_cancel(s);
    torc_result *a = torc_stream_finish(s), *b = torc_stream_finish(s);
    assert_ptr_equal(a, b);
    torc_result_free(a);
    torc_result_free(b);
    torc_stream_cancel(s);
    assert_int_equal(torc_stream_close(s), 0);
}

/* --- calls and frees inside callbacks --- */

enum where { ON_HEADERS, ON_MESSAGE, ON_WRITABLE, ON_DONE, NOWHERE };

/* The argument of a stream's callbacks, which use it one at a time. on_done frees it. */
struct subject {
    enum where freed_in; /* the callback that frees the stream */
    bool freed;          /* the stream was freed */
    int messages;        /* received so far */
    char *block;         /* freed with the subject; each callback that gets the stream writes to it */
};

static struct subject *subject_new(enum where freed_in)
{
    struct subject *x = calloc(1, sizeof(*x));
    x->freed_in = freed_in;
    x->block = calloc(1, 64);
    return x;
}

/* Called inside a callback. Asserts that functions that wait are refused there. */
static void expect_deadlock(torc_stream *s)
{
    const torc_message *m;
    const torc_metadata *headers;
    assert_int_equal(torc_stream_send(s, "", 0, 0, -1), TORC_EDEADLK);
    assert_int_equal(torc_stream_send(s, "", 0, 0, 10), TORC_EDEADLK);
    assert_int_equal(torc_stream_receive(s, 1, &m), TORC_EDEADLK);
    assert_int_equal(torc_stream_headers(s, -1, &headers), TORC_EDEADLK);
    assert_int_equal(torc_stream_close(s), TORC_EDEADLK);
    expect_refused(torc_unary(ch, "a/b", "", 0, NULL), TORC_EDEADLK);
    expect_refused(torc_explain(ch, "a/b", NULL), TORC_EDEADLK);
}

/* The common part of the callbacks. Frees the stream if `where` is freed_in: the caller then no longer uses `s`. */
static void visit(struct subject *x, torc_stream *s, enum where where)
{
    x->block[0]++;
    CHECK(!x->freed);
    expect_deadlock(s);
    if (where != ON_DONE)
        expect_refused(torc_stream_finish(s), TORC_EDEADLK);
    if (x->freed_in != where)
        return;
    x->freed = true;
    torc_stream_free(s);
}

static void on_headers(torc_stream *s, const torc_metadata *headers, void *arg)
{
    CHECK(torc_metadata_find(headers, "x-backend", NULL));
    visit(arg, s, ON_HEADERS);
}

static void on_message(torc_stream *s, const torc_message *message, void *arg)
{
    struct subject *x = arg;
    const torc_message *m;
    x->messages++;
    CHECK(torc_message_data(message));
    CHECK(torc_stream_receive(s, 0, &m) == TORC_ESTATE);
    CHECK(torc_stream_want(s, 1) == 0);
    visit(x, s, ON_MESSAGE);
}

/* Sends until there is no room, so that on_writable comes, or until the RPC is over. */
static void fill(torc_stream *s)
{
    while (torc_stream_send(s, "message", 7, 0, 0) == 0) {
    }
}

static void on_writable(torc_stream *s, void *arg)
{
    struct subject *x = arg;
    visit(x, s, ON_WRITABLE);
    if (x->freed)
        return;
    if (x->messages < 20)
        fill(s);
    else
        torc_stream_half_close(s);
}

static void on_done(torc_stream *s, const torc_result *result, void *arg)
{
    struct subject *x = arg;
    if (!s) {
        CHECK(torc_result_code(result) == TORC_STATUS_CANCELLED);
    } else {
        visit(x, s, ON_DONE);
        if (!x->freed) {
            torc_result *r = torc_stream_finish(s); /* does not wait: the RPC has ended */
            CHECK(r == result);
            torc_result_free(r);
        }
    }
    free(x->block);
    free(x);
    atomic_fetch_add(&ended, 1);
}

static const struct torc_stream_events events = {.size = sizeof(events),
                                                 .on_headers = on_headers,
                                                 .on_message = on_message,
                                                 .on_writable = on_writable,
                                                 .on_done = on_done};

/* Starts a stream whose subject is `arg`. Runs on the loop's thread: on another thread, a callback could free the
 * stream before the last use here. */
static void chat(void *arg)
{
    torc_stream *s = torc_stream_start(ch, "a.B/Chat", NULL, &events, arg, NULL);
    assert_non_null(s);
    torc_stream_want(s, 1);
    fill(s);
}

static void test_free_in_each_callback(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        int before = atomic_load(&ended);
        assert_int_equal(torc_runtime_post(rt, chat, subject_new((enum where)(i % NOWHERE))), 0);
        wait_ended(before + 1);
    }
}

/* torc_stream_start copies the table of events: the caller may overwrite the table at once. */
static void test_events_are_copied(void **state)
{
    (void)state;
    int before = atomic_load(&ended);
    struct torc_stream_events mine = events;
    torc_stream *s = torc_stream_start(ch, "a.B/Chat", NULL, &mine, subject_new(ON_DONE), NULL);
    memset(&mine, 0x5a, sizeof(mine));
    torc_stream_half_close(s);
    wait_ended(before + 1);
}

static void test_free_and_close_from_another_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        int before = atomic_load(&ended);
        torc_stream *s = torc_stream_start(ch, "torc.test.Backend/Repeat", NULL, &events, subject_new(NOWHERE), NULL);
        torc_stream_want(s, 1000000);
        fill(s);
        for (int turns = i % 20; turns > 0; turns--)
            sched_yield();
        if (i % 2) {
            assert_int_equal(torc_stream_close(s), 0);
            assert_int_equal(atomic_load(&ended), before + 1);
        } else {
            torc_stream_cancel(s);
            wait_ended(before + 1);
            torc_stream_free(s);
        }
    }
}

/* --- unary RPCs --- */

struct unary {
    atomic_int calls;
    int code;
};

static void on_unary(const torc_result *result, void *arg)
{
    struct unary *u = arg;
    u->code = torc_result_code(result);
    atomic_fetch_add(&u->calls, 1);
}

static void test_unary_is_told_after_free(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct unary u = {.code = -1};
        torc_stream *s = NULL;
        const torc_message *m;
        assert_int_equal(torc_unary_async(ch, "torc.test.Backend/Hang", "x", 1, NULL, on_unary, &u, &s, NULL), 0);
        assert_int_equal(torc_stream_send(s, "", 0, 0, -1), TORC_ESTATE);
        assert_int_equal(torc_stream_half_close(s), TORC_ESTATE);
        assert_int_equal(torc_stream_want(s, 1), TORC_ESTATE);
        assert_int_equal(torc_stream_receive(s, -1, &m), TORC_ESTATE);
        if (i % 3 == 0) {
            torc_stream_free(s);
            while (!atomic_load(&u.calls))
                sched_yield();
        } else if (i % 3 == 1) {
            assert_int_equal(torc_stream_close(s), 0);
        } else {
            torc_stream_cancel(s);
            torc_result *r = torc_stream_finish(s);
            assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
            torc_result_free(r);
            assert_int_equal(torc_stream_close(s), 0);
        }
        assert_int_equal(atomic_load(&u.calls), 1);
        assert_int_equal(u.code, TORC_STATUS_CANCELLED);
    }
}

static void test_finish_of_a_unary_rpc(void **state)
{
    (void)state;
    struct unary u = {.code = -1};
    torc_stream *s = NULL;
    assert_int_equal(torc_unary_async(ch, "a.B/Echo", "x", 1, NULL, on_unary, &u, &s, NULL), 0);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_message_size(torc_result_response(r)), 1);
    torc_result_free(r);
    torc_stream_free(s);
    while (!atomic_load(&u.calls))
        sched_yield();
}

/* --- the end of the runtime --- */

static void on_end(torc_stream *s, const torc_result *result, void *arg)
{
    CHECK(s);
    CHECK(torc_result_code(result) == TORC_STATUS_UNAVAILABLE);
    free(arg);
    atomic_fetch_add(&ended, 1);
}

static void test_last_callbacks_come_before_the_runtime_is_gone(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        enum { N = 20 };
        torc_runtime *own = kit_backends_runtime(round % 2 ? TORC_RUNTIME_THREAD : TORC_RUNTIME_CALLER);
        torc_channel *c = torc_channel_new(own, kit_backends_target(kit), NULL, NULL);
        int before = atomic_load(&ended);
        struct unary u[N] = {{0}};
        torc_stream *s[N];
        for (int i = 0; i < N; i++) {
            s[i] = torc_stream_start(c, "torc.test.Backend/Hang", NULL,
                                     &(struct torc_stream_events){.size = sizeof(events), .on_done = on_end},
                                     calloc(1, 64), NULL);
            assert_int_equal(torc_unary_async(c, "torc.test.Backend/Hang", "x", 1, NULL, on_unary, &u[i], NULL, NULL),
                             0);
        }
        assert_int_equal(torc_runtime_free(own), 0);
        assert_int_equal(atomic_load(&ended), before + N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(atomic_load(&u[i].calls), 1);
            assert_int_equal(torc_stream_want(s[i], 1), TORC_ECLOSED);
            if (i % 2)
                torc_stream_free(s[i]);
            else
                assert_int_equal(torc_stream_close(s[i]), 0);
        }
        assert_null(torc_stream_open(c, "a/b", NULL, NULL));
        expect_refused(torc_unary(c, "a/b", "", 0, NULL), TORC_ECLOSED);
        torc_channel_free(c);
    }
}

/* --- handles that are freed twice --- */

static int told; /* how often on_release was called */

static void on_release(void *arg)
{
    (void)arg;
    told++;
}

/* A second and a third torc_channel_free do nothing, as long as a stream still holds the channel. */
static void test_freed_twice(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        torc_runtime *own = kit_backends_runtime(round % 2 ? TORC_RUNTIME_THREAD : TORC_RUNTIME_CALLER);
        torc_channel *c = torc_channel_new(own, kit_backends_target(kit), NULL, NULL);
        torc_stream *s = torc_stream_open(c, "torc.test.Backend/Hang", NULL, NULL);
        torc_channel_free(c);
        torc_channel_free(c);
        torc_result *r = torc_stream_finish(s);
        assert_int_equal(torc_result_code(r), TORC_STATUS_CANCELLED);
        torc_channel_free(c);
        torc_result_free(r);
        torc_stream_free(s);
        assert_int_equal(torc_runtime_free(own), 0);
    }
}

/* Stores the call at `arg` and does not finish it: the call holds the server while the test frees the server twice. */
static void on_kept(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)request;
    *(torc_server_call **)arg = call;
}

static void test_server_freed_twice(void **state)
{
    (void)state;
    torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_CALLER);
    struct torc_server_options options = {TORC_SIZE(torc_server_options), .runtime = own};
    torc_server_call *kept = NULL;
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = on_kept, .release = on_release, .arg = &kept};
    torc_server *server = torc_server_new(&options, NULL);
    char *bound = NULL;
    told = 0;
    assert_int_equal(torc_server_add_method(server, "a.B/Keep", &handler, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    torc_channel *c = torc_channel_new(own, bound, NULL, NULL);
    torc_free(bound);
    struct unary u = {.code = -1};
    assert_int_equal(torc_unary_async(c, "a.B/Keep", "", 0, NULL, on_unary, &u, NULL, NULL), 0);
    while (!kept)
        torc_runtime_poll(own, -1);
    torc_server_free(server);
    torc_server_free(server);
    assert_int_equal(told, 1);
    assert_int_equal(torc_server_call_reply(kept, "", 0), TORC_ECLOSED);
    torc_channel_free(c);
    assert_int_equal(torc_runtime_free(own), 0);
}

/* --- a thread that waits --- */

/* Receives from the stream `arg`. Returns, as a pointer, the first result of torc_stream_receive that is not 1. */
static void *receive_until_the_end(void *arg)
{
    const torc_message *m;
    int rc;
    while ((rc = torc_stream_receive(arg, -1, &m)) == 1) {
    }
    return (void *)(intptr_t)rc;
}

/* A thread that waits for a message gets the end of the stream when another thread cancels the stream. */
static void test_cancel_releases_a_receiver(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        torc_stream *s =
            torc_stream_open(ch, i % 2 ? "torc.test.Backend/Hang" : "torc.test.Backend/Repeat", NULL, NULL);
        pthread_t thread;
        assert_int_equal(torc_stream_send(s, "again", 5, 0, -1), 0);
        pthread_create(&thread, NULL, receive_until_the_end, s);
        for (int turns = i % 10; turns > 0; turns--)
            sched_yield();
        void *rc = NULL;
        torc_stream_cancel(s);
        pthread_join(thread, &rc);
        assert_ptr_equal(rc, NULL);
        torc_stream_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null_streams),
        cmocka_unit_test(test_null_results_and_messages),
        cmocka_unit_test(test_starts_that_are_refused),
        cmocka_unit_test(test_arguments_of_a_stream),
        cmocka_unit_test(test_free_in_each_callback),
        cmocka_unit_test(test_events_are_copied),
        cmocka_unit_test(test_freed_twice),
        cmocka_unit_test(test_server_freed_twice),
        cmocka_unit_test(test_free_and_close_from_another_thread),
        cmocka_unit_test(test_unary_is_told_after_free),
        cmocka_unit_test(test_finish_of_a_unary_rpc),
        cmocka_unit_test(test_last_callbacks_come_before_the_runtime_is_gone),
        cmocka_unit_test(test_cancel_releases_a_receiver),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
