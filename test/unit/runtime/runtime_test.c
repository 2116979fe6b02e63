/* Driving a runtime: which thread drives, which ones wait, which are refused or cancelled. Also posts, waits for a
 * channel's state, the default runtime, a deadline that has passed, handles that are freed under a waiting thread,
 * fork, and a peer that resets.
 *
 * Sockets and time are real. Most tests call one backend, kit_backends_one, which runs on a thread of its own; its
 * counts go on from test to test. Each test frees its channels and ends its runtimes. In TORC_RUNTIME_CALLER the test's
 * threads drive the loop, and callbacks run on the thread that drives. A runtime of TORC_RUNTIME_THREAD, as the default
 * runtime is, runs callbacks on its own thread. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <torc/torc.h>

#include "runtime/runtime.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

/* Makes a blocking call, and returns 1 if it ended with OK, else 0. */
static int unary_ok(torc_channel *ch)
{
    torc_result *r = torc_unary(ch, "a/b", "x", 1, NULL);
    int ok = torc_result_code(r) == TORC_STATUS_OK;
    torc_result_free(r);
    return ok;
}

/* A thread that makes blocking calls. The channel is borrowed. calls: how many `work` makes; hang_when_cancelled sets 1
 * when its RPC has ended. ok: how many calls ended as expected. */
struct worker {
    pthread_t thread;
    torc_channel *ch;
    int calls, ok;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < w->calls; i++)
        w->ok += unary_ok(w->ch);
    return NULL;
}

/* Four threads make blocking calls side by side. Without a thread of the runtime's own one of them drives, the others
 * wait and take over. Asserts that every call ends with OK. */
static void run_workers(torc_runtime *rt)
{
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    struct worker w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = (struct worker){.ch = ch, .calls = 100 + 50 * i};
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].ok, w[i].calls);
    }
    torc_channel_free(ch);
}

static void test_blocking_threads_without_loop_thread(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    run_workers(rt);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void test_blocking_threads_with_loop_thread(void **state)
{
    (void)state;
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    run_workers(rt);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void *hang_until_deadline(void *arg)
{
    struct worker *w = arg;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 2000};
    torc_result *r = torc_unary(w->ch, "torc.test.Backend/Hang", "", 0, &o);
    w->ok = torc_result_code(r) == TORC_STATUS_DEADLINE_EXCEEDED;
    torc_result_free(r);
    return NULL;
}

/* While one thread drives during a long wait, a second thread's calls end. */
static void test_second_thread_while_first_waits(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    assert_true(unary_ok(ch));
    struct worker w = {.ch = ch};
    uint64_t before = kit_backends_counts(kit_backends_one, 0).requests;
    pthread_create(&w.thread, NULL, hang_until_deadline, &w);
    while (kit_backends_counts(kit_backends_one, 0).requests == before)
        sched_yield();
    for (int i = 0; i < 20; i++)
        assert_true(unary_ok(ch));
    /* A poll beside a driving thread is not an error. */
    assert_true(torc_runtime_poll(rt, 5) >= 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.ok, 1);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void *hang_when_cancelled(void *arg)
{
    hang_until_deadline(arg);
    ((struct worker *)arg)->calls = 1;
    pthread_testcancel();
    return NULL;
}

/* Two threads wait for RPCs: one drives the loop, the other sleeps. pthread_cancel ends a thread only after its RPC: a
 * thread that ended inside Torc would keep the loop or the lock. */
static void test_a_cancelled_thread_leaves_first(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    assert_true(unary_ok(ch));
    struct worker w[2] = {{.ch = ch}, {.ch = ch}};
    uint64_t before = kit_backends_counts(kit_backends_one, 0).requests;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, hang_when_cancelled, &w[i]), 0);
    while (kit_backends_counts(kit_backends_one, 0).requests < before + 2)
        sched_yield();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_cancel(w[i].thread), 0);
    for (int i = 0; i < 2; i++) {
        void *value = NULL;
        pthread_join(w[i].thread, &value);
        assert_ptr_equal(value, PTHREAD_CANCELED);
        assert_int_equal(w[i].calls, 1);
        assert_int_equal(w[i].ok, 1);
    }
    assert_true(unary_ok(ch));
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* Adds to *arg, an int: 1 for OK, else 1000. */
static void on_unary(const torc_result *result, void *arg)
{
    *(int *)arg += torc_result_code(result) == TORC_STATUS_OK ? 1 : 1000;
}

static void test_application_epoll(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    int fd = epoll_create1(EPOLL_CLOEXEC), done = 0;
    struct epoll_event ev = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(fd, EPOLL_CTL_ADD, torc_runtime_fd(rt), &ev), 0);
    for (int i = 0; i < 20; i++)
        torc_unary_async(ch, "a/b", "x", 1, NULL, on_unary, &done, NULL, NULL);
    while (done < 20) {
        int n = epoll_wait(fd, &ev, 1, torc_runtime_timeout_ms(rt));
        assert_true(n >= 0);
        assert_true(torc_runtime_poll(rt, 0) >= 0);
    }
    assert_int_equal(done, 20);
    close(fd);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* An RPC that the backend does not answer. done: calls of on_hanging. */
struct hanging {
    torc_channel *ch;
    int code, done;
};

static void on_hanging(const torc_result *result, void *arg)
{
    struct hanging *h = arg;
    h->code = torc_result_code(result);
    h->done++;
}

/* The timeout of RPCs, for which the thread that drives sets a timer. */
enum { TIMER_MS = 2000 };

static void start_hanging(void *arg)
{
    struct hanging *h = arg;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = TIMER_MS};
    assert_int_equal(torc_unary_async(h->ch, "torc.test.Backend/Hang", "", 0, &o, on_hanging, h, NULL, NULL), 0);
}

static void *call_once(void *arg)
{
    struct worker *w = arg;
    w->ok = unary_ok(w->ch);
    return NULL;
}

/* The application waits for the descriptor with the timeout that it was told. Meanwhile a blocking call of another
 * thread drives the loop, sets an earlier timer, and leaves: the descriptor becomes readable. */
static void test_a_blocking_call_leaves_work_to_the_epoll(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    struct pollfd pfd = {.fd = torc_runtime_fd(rt), .events = POLLIN};
    while (torc_runtime_timeout_ms(rt) == 0)
        assert_true(torc_runtime_poll(rt, 0) >= 0);
    assert_int_equal(torc_runtime_timeout_ms(rt), -1); /* there is nothing to do */
    assert_int_equal(poll(&pfd, 1, 0), 0);
    struct hanging h = {.ch = ch};
    struct worker w = {.ch = ch};
    assert_int_equal(torc_runtime_post(rt, start_hanging, &h), 0);
    assert_int_equal(pthread_create(&w.thread, NULL, call_once, &w), 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.ok, 1);
    assert_int_equal(h.done, 0);
    assert_int_equal(poll(&pfd, 1, 0), 1); /* the timeout that the application was told is no longer true */
    while (h.done == 0) {
        int told = torc_runtime_timeout_ms(rt);
        assert_in_range(told, 0, TIMER_MS + 10);
        assert_true(poll(&pfd, 1, told) >= 0);
        assert_true(torc_runtime_poll(rt, 0) >= 0);
    }
    assert_int_equal(h.code, TORC_STATUS_DEADLINE_EXCEEDED);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

static void test_thread_mode_refuses_driving(void **state)
{
    (void)state;
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    assert_int_equal(torc_runtime_poll(rt, 0), TORC_ESTATE);
    assert_int_equal(torc_runtime_fd(rt), TORC_ESTATE);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(torc_runtime_free(NULL), 0);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = (enum torc_runtime_mode)7};
    assert_null(torc_runtime_new(&o, NULL));
}

enum { POSTS = 8 };

static struct {
    int marks[POSTS]; /* in the order of the calls */
    int n;
} posted;

static void note_order(void *arg)
{
    posted.marks[posted.n++] = *(const int *)arg;
}

static void test_posts_keep_their_order(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    int marks[POSTS];
    for (int i = 0; i < POSTS; i++) {
        marks[i] = i;
        assert_int_equal(torc_runtime_post(rt, note_order, &marks[i]), 0);
    }
    assert_int_equal(posted.n, 0);
    assert_int_equal(torc_runtime_timeout_ms(rt), 0);
    assert_int_equal(torc_runtime_poll(rt, 0), 1);
    assert_int_equal(posted.n, POSTS);
    assert_memory_equal(posted.marks, marks, sizeof(marks));
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* After an idle gap, an answer that waits unread is taken in before the deadline fires. */
static void test_events_before_timers_after_idle_gap(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = TIMER_MS};
    int done = 0;
    uint64_t before = kit_backends_counts(kit_backends_one, 0).requests;
    assert_int_equal(torc_unary_async(ch, "a/b", "x", 1, &o, on_unary, &done, NULL, NULL), 0);
    while (kit_backends_counts(kit_backends_one, 0).requests == before)
        torc_runtime_poll(rt, 0);
    /* Nobody drives until the answer is there and the deadline is over. The test is about the real clock, so it
     * waits. */
    uint64_t end = tc_system_clock.monotonic_ns(NULL) + (TIMER_MS + 200) * TC_NS_PER_MS;
    struct pollfd pfd = {.fd = torc_runtime_fd(rt), .events = POLLIN};
    while (done == 0 && poll(&pfd, 1, -1) != 1)
        continue;
    while (tc_system_clock.monotonic_ns(NULL) < end)
        poll(NULL, 0, 10);
    while (done == 0)
        torc_runtime_poll(rt, 100);
    assert_int_equal(done, 1);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* The end of a runtime ends its RPCs with an error. */
static void test_free_ends_calls(void **state)
{
    (void)state;
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    int done = 0;
    torc_stream *call = NULL;
    torc_unary_async(ch, "torc.test.Backend/Hang", "", 0, NULL, on_unary, &done, &call, NULL);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(done, 1000);
    /* Handles stay valid after the end of their runtime, until they are freed. */
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_error_code(torc_result_error(r)), TORC_ECLOSED);
    torc_result_free(r);
    assert_int_equal(torc_channel_state(ch, true), TORC_CONNECTIVITY_SHUTDOWN);
    torc_stream_free(call);
    torc_channel_free(ch);
}

/* --- the state of a channel, by threads that wait for it --- */

/* A wait of 0 ms still looks at the state. */
static void test_waits_of_no_time_look(void **state)
{
    (void)state;
    for (enum torc_runtime_mode mode = TORC_RUNTIME_THREAD; mode <= TORC_RUNTIME_CALLER; mode++) {
        torc_runtime *rt = kit_backends_runtime(mode);
        torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
        enum torc_connectivity now = TORC_CONNECTIVITY_SHUTDOWN;
        assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 0, &now), 0);
        assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
        assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, 0, &now), TORC_ETIMEDOUT);
        assert_int_equal(torc_channel_connect(ch, 0), TORC_ETIMEDOUT);
        assert_int_equal(torc_channel_connect(ch, -1), 0); /* the call before began to connect */
        assert_int_equal(torc_channel_connect(ch, 0), 0);
        assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 0, &now), TORC_ETIMEDOUT);
        assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, 0, &now), 0);
        assert_int_equal(now, TORC_CONNECTIVITY_READY);
        torc_channel_free(ch);
        assert_int_equal(torc_runtime_free(rt), 0);
    }
}

/* A callback may look at the state by a wait of 0 ms. A longer or unlimited wait is refused. */
static void look(void *arg)
{
    torc_channel *ch = arg;
    enum torc_connectivity now = TORC_CONNECTIVITY_SHUTDOWN;
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 0, &now), 0);
    assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, 0, &now), TORC_ETIMEDOUT);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, 1, &now), TORC_EDEADLK);
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, -1, &now), TORC_EDEADLK);
}

static void test_a_callback_looks(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    assert_int_equal(torc_runtime_post(rt, look, ch), 0);
    assert_int_equal(torc_runtime_poll(rt, 0), 1);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* Only -1 waits for ever. */
static void test_other_negative_times(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    enum torc_connectivity now = TORC_CONNECTIVITY_SHUTDOWN;
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, -2, &now), TORC_EINVAL);
    assert_int_equal(now, TORC_CONNECTIVITY_SHUTDOWN);
    assert_int_equal(torc_channel_connect(ch, -2), TORC_EINVAL);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_IDLE);
    assert_int_equal(torc_runtime_post(rt, look, ch), 0); /* the poll has something to do */
    assert_int_equal(torc_runtime_poll(rt, -2), TORC_EINVAL);
    assert_int_equal(torc_runtime_poll(rt, 0), 1);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* --- the default runtime --- */

/* Sets *arg, an int, to the error of torc_runtime_default_free inside a callback. */
static void free_inside(void *arg)
{
    *(int *)arg = torc_runtime_default_free();
}

/* Any part of the process may hold the default runtime: torc_runtime_free refuses it, and torc_runtime_default_free
 * alone ends it. */
static void test_the_default_runtime_stays(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        torc_runtime *rt = torc_runtime_default();
        int inside = 0;
        assert_int_equal(torc_runtime_free(rt), TORC_ESTATE);
        assert_ptr_equal(torc_runtime_default(), rt);
        assert_int_equal(torc_runtime_post(rt, free_inside, &inside), 0);
        torc_channel *ch = torc_channel_new(NULL, kit_backends_target(kit_backends_one), NULL, NULL);
        assert_true(unary_ok(ch)); /* runs after the posted function */
        assert_int_equal(inside, TORC_EDEADLK);
        assert_int_equal(torc_runtime_default_free(), 0);
        assert_int_equal(torc_runtime_default_free(), 0); /* there is none */
        assert_false(unary_ok(ch));
        torc_channel_free(ch);
    }
}

/* --- a deadline that has passed --- */

struct passed {
    torc_channel *ch;
    bool done;
    int code;
    uint32_t attempts;
};

static void on_passed(const torc_result *result, void *arg)
{
    struct passed *p = arg;
    p->done = true;
    p->code = torc_result_code(result);
    p->attempts = torc_result_attempts(result);
    assert_non_null(strstr(torc_result_text(result), "deadline exceeded after 0.000 s, before the request was sent"));
}

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Starts an RPC while the time that the loop read for its turn is behind the clock. */
static void start_passed(void *arg)
{
    struct passed *p = arg;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = -1};
    uint64_t begun = clock_ns();
    while (clock_ns() < begun + 1000000) {
    }
    assert_int_equal(torc_unary_async(p->ch, "a/b", "x", 1, &o, on_passed, p, NULL, NULL), 0);
}

/* A deadline that has passed ends its RPC on a busy loop, too, before the first attempt: nothing is sent. */
static void test_a_passed_deadline_on_a_busy_loop(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    struct passed p = {.ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL)};
    assert_int_equal(torc_channel_connect(p.ch, -1), 0);
    assert_int_equal(torc_runtime_post(rt, start_passed, &p), 0);
    while (!p.done)
        torc_runtime_poll(rt, -1);
    assert_int_equal(p.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(p.attempts, 0);
    torc_channel_free(p.ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* --- handles that are freed under a waiting thread --- */

struct connecter {
    pthread_t thread;
    torc_channel *ch;
    int rc;
};

static void *connect_to(void *arg)
{
    struct connecter *c = arg;
    c->rc = torc_channel_connect(c->ch, -1);
    return NULL;
}

/* The end of the channel, or of its runtime, ends a wait. Once the channel is no longer IDLE, the thread is inside
 * torc_channel_connect. */
static void end_under_a_waiter(bool free_runtime)
{
    for (enum torc_runtime_mode mode = TORC_RUNTIME_THREAD; mode <= TORC_RUNTIME_CALLER; mode++) {
        torc_runtime *rt = kit_backends_runtime(mode);
        struct connecter c = {.ch = torc_channel_new(rt, "unix:/nonexistent/socket", NULL, NULL)};
        assert_int_equal(pthread_create(&c.thread, NULL, connect_to, &c), 0);
        while (torc_channel_state(c.ch, false) == TORC_CONNECTIVITY_IDLE)
            sched_yield();
        if (free_runtime)
            assert_int_equal(torc_runtime_free(rt), 0);
        torc_channel_free(c.ch);
        pthread_join(c.thread, NULL);
        assert_int_equal(c.rc, TORC_ECLOSED);
        if (!free_runtime)
            assert_int_equal(torc_runtime_free(rt), 0);
    }
}

static void test_channel_freed_under_a_waiter(void **state)
{
    (void)state;
    end_under_a_waiter(false);
}

static void test_runtime_freed_under_a_waiter(void **state)
{
    (void)state;
    end_under_a_waiter(true);
}

struct reader {
    pthread_t thread;
    torc_stream *call;
    int rc;
};

static void *receive(void *arg)
{
    struct reader *r = arg;
    const torc_message *m = NULL;
    r->rc = torc_stream_receive(r->call, -1, &m);
    return NULL;
}

/* Only the reader drives, so the reader is inside torc_stream_receive once the server has the call. */
static void test_call_freed_under_a_reader(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    struct reader r = {.call = torc_stream_open(ch, "torc.test.Backend/Hang", NULL, NULL)};
    assert_non_null(r.call);
    while (kit_backends_counts(kit_backends_one, 0).open_calls > 0) /* calls of tests before */
        sched_yield();
    assert_int_equal(pthread_create(&r.thread, NULL, receive, &r), 0);
    while (kit_backends_counts(kit_backends_one, 0).open_calls == 0)
        sched_yield();
    torc_stream_free(r.call);
    pthread_join(r.thread, NULL);
    assert_int_equal(r.rc, 0);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* --- fork, and a peer that resets --- */

/* A child process gets TORC_EFORK from the parent's runtime and channel. */
static void test_fork(void **state)
{
    (void)state;
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit_backends_one), NULL, NULL);
    assert_true(unary_ok(ch));
    uint64_t connections = kit_backends_counts(kit_backends_one, 0).connections;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        torc_result *r;
        int bad = 0;
        r = torc_unary(ch, "a/b", "x", 1, NULL);
        bad |= torc_error_code(torc_result_error(r)) != TORC_EFORK;
        torc_result_free(r);
        bad |= (torc_unary_async(ch, "a/b", "x", 1, NULL, on_unary, NULL, NULL, NULL) != TORC_EFORK) << 1;
        bad |= (torc_runtime_poll(rt, 0) != TORC_EFORK) << 2;
        bad |= (torc_runtime_fd(rt) != TORC_EFORK) << 3;
        bad |= (torc_channel_new(rt, "ipv4:127.0.0.1:1", NULL, NULL) != NULL) << 4;
        torc_channel_free(ch);
        bad |= (torc_runtime_free(rt) != TORC_EFORK) << 5;
        /* A runtime of the child's own works. */
        struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
        torc_runtime *own = torc_runtime_new(&o, NULL);
        torc_channel *other = torc_channel_new(own, kit_backends_target(kit_backends_one), NULL, NULL);
        bad |= !unary_ok(other) << 6;
        _exit(bad);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    /* The parent's connection is unchanged. */
    assert_true(unary_ok(ch));
    assert_int_equal(kit_backends_counts(kit_backends_one, 0).connections, connections + 1);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

/* Accepts up to 20 connections of the listening socket *arg, an int, and resets each. */
static void *resetting_peer(void *arg)
{
    int fd = *(int *)arg;
    for (int i = 0; i < 20; i++) {
        int s = accept(fd, NULL, NULL);
        if (s < 0)
            break;
        /* Sends an empty SETTINGS frame, which makes the client's connection ready, and then resets. */
        static const unsigned char settings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
        if (send(s, settings, sizeof(settings), MSG_NOSIGNAL) < 0)
            i = 20;
        struct linger l = {.l_onoff = 1, .l_linger = 0};
        setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
        close(s);
    }
    return NULL;
}

/* A peer that resets the connection while the client writes must not end the program by SIGPIPE. */
static void test_sigpipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 16), 0);
    getsockname(fd, (struct sockaddr *)&in, &len);
    pthread_t peer;
    pthread_create(&peer, NULL, resetting_peer, &fd);
    char target[64];
    snprintf(target, sizeof(target), "ipv4:127.0.0.1:%u", ntohs(in.sin_port));
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    char *big = calloc(1, 1 << 20);
    for (int i = 0; i < 10; i++) {
        torc_channel *ch = torc_channel_new(rt, target, NULL, NULL);
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 2000};
        torc_result *r = torc_unary(ch, "a/b", big, 1 << 20, &o);
        assert_int_not_equal(torc_result_code(r), TORC_STATUS_OK);
        torc_result_free(r);
        torc_channel_reset_backoff(ch);
        torc_channel_free(ch);
    }
    free(big);
    shutdown(fd, SHUT_RDWR);
    pthread_join(peer, NULL);
    close(fd);
    assert_int_equal(torc_runtime_free(rt), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking_threads_without_loop_thread),
        cmocka_unit_test(test_blocking_threads_with_loop_thread),
        cmocka_unit_test(test_second_thread_while_first_waits),
        cmocka_unit_test(test_a_cancelled_thread_leaves_first),
        cmocka_unit_test(test_application_epoll),
        cmocka_unit_test(test_a_blocking_call_leaves_work_to_the_epoll),
        cmocka_unit_test(test_thread_mode_refuses_driving),
        cmocka_unit_test(test_posts_keep_their_order),
        cmocka_unit_test(test_events_before_timers_after_idle_gap),
        cmocka_unit_test(test_free_ends_calls),
        cmocka_unit_test(test_waits_of_no_time_look),
        cmocka_unit_test(test_a_callback_looks),
        cmocka_unit_test(test_other_negative_times),
        cmocka_unit_test(test_the_default_runtime_stays),
        cmocka_unit_test(test_a_passed_deadline_on_a_busy_loop),
        cmocka_unit_test(test_channel_freed_under_a_waiter),
        cmocka_unit_test(test_runtime_freed_under_a_waiter),
        cmocka_unit_test(test_call_freed_under_a_reader),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_sigpipe),
    };
    return cmocka_run_group_tests(tests, kit_backends_one_setup, kit_backends_one_teardown);
}
