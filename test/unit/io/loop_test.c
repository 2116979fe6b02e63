/* The loop: the order within a turn, timers, posts, wake-ups, its end, forks. main says which tests run on a real loop
 * over libuv (REAL), which on a manual loop (MANUAL), and which on both. The setup of REAL and MANUAL stores the loop
 * in *state, and teardown frees it; a_loop_ends_while_others_post makes real loops of its own. The test's thread turns
 * the loop; other threads post to it and wake it. In two_loops_wake_each_other another thread turns a second loop.
 * `trace`, which the setups empty, tells in what order steps and events ran. The clock_gettime of this file lets a test
 * make the clock gain time or stand still; such a test ends with a clock that runs. */
#include "io/loop.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/watch.h"
#include "support/cmocka.h"

/* The names of what has run, in order; `note` appends them. */
static char trace[256];

/* The clock gains clock_step_ns with each reading, as if the machine were slow or the process were stopped for a while.
 * clock_skew_ns is the sum so far. */
static atomic_long clock_step_ns;
static atomic_long clock_skew_ns;
/* The time at which the clock stands still; 0: the clock runs. */
static atomic_long clock_stopped_ns;

/* Replaces the C library's clock_gettime, also for libuv. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ts)
{
    long rc = syscall(SYS_clock_gettime, id, ts);
    long stopped_ns = atomic_load(&clock_stopped_ns);
    if (stopped_ns) {
        ts->tv_sec = stopped_ns / 1000000000;
        ts->tv_nsec = stopped_ns % 1000000000;
        return (int)rc;
    }
    long skew_ns = atomic_fetch_add(&clock_skew_ns, atomic_load(&clock_step_ns)) + ts->tv_nsec;
    ts->tv_sec += skew_ns / 1000000000;
    ts->tv_nsec = skew_ns % 1000000000;
    return (int)rc;
}

static void note(const char *what)
{
    size_t used = strlen(trace);
    assert_true(used + strlen(what) < sizeof(trace));
    memcpy(trace + used, what, strlen(what) + 1);
}

/* A task and a timer. After init_step each of them notes the step's name when it runs, then defers `then_defer`, queues
 * `then_end` for the turn's end, and cancels `then_cancel`. NULL: nothing to do. All pointers are borrowed. */
struct step {
    struct tc_task task;
    struct tc_timer timer;
    struct tc_loop *loop;
    const char *name;
    struct step *then_defer, *then_end;
    struct tc_task *then_cancel;
};

static void run_step(struct step *s)
{
    note(s->name);
    if (s->then_defer)
        tc_loop_defer(s->loop, &s->then_defer->task);
    if (s->then_end)
        tc_loop_at_turn_end(s->loop, &s->then_end->task);
    if (s->then_cancel)
        tc_task_cancel(s->then_cancel);
}

static void on_step(struct tc_task *task)
{
    run_step(TC_CONTAINER_OF(task, struct step, task));
}

static void on_step_timer(struct tc_timer *timer)
{
    run_step(TC_CONTAINER_OF(timer, struct step, timer));
}

static struct step step(struct tc_loop *loop, const char *name)
{
    return (struct step){.loop = loop, .name = name};
}

/* Called where the step stays: its task and its timer are not copied afterwards. */
static void init_step(struct step *s)
{
    tc_task_init(&s->task, on_step);
    tc_timer_init(&s->timer, s->loop, on_step_timer);
}

static int setup(void **state)
{
    trace[0] = 0;
    *state = tc_loop_new(NULL);
    return *state ? 0 : -1;
}

static int setup_manual(void **state)
{
    trace[0] = 0;
    *state = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 7});
    return 0;
}

static int teardown(void **state)
{
    tc_loop_free(*state);
    return 0;
}

static void serial_is_fifo_and_runs_what_it_queues(void **state)
{
    struct tc_loop *loop = *state;
    struct step a = step(loop, "a"), b = step(loop, "b"), c = step(loop, "c"), end = step(loop, "|");
    init_step(&a), init_step(&b), init_step(&c), init_step(&end);
    a.then_defer = &c;
    tc_loop_at_turn_end(loop, &end.task);
    tc_loop_defer(loop, &a.task);
    tc_loop_defer(loop, &b.task);
    tc_loop_defer(loop, &a.task); /* stays where it is */
    assert_true(tc_task_pending(&a.task));
    assert_true(tc_loop_turn(loop, 0));
    assert_string_equal(trace, "abc|");
    assert_false(tc_loop_turn(loop, 0));
}

static void what_the_turn_end_queues_runs_at_once_or_without_waiting(void **state)
{
    struct tc_loop *loop = *state;
    struct step end = step(loop, "e"), serial = step(loop, "s"), end2 = step(loop, "f");
    init_step(&end), init_step(&serial), init_step(&end2);
    end.then_defer = &serial;
    end.then_end = &end2;
    tc_loop_at_turn_end(loop, &end.task);
    assert_true(tc_loop_turn(loop, -1));
    assert_string_equal(trace, "es");
    assert_int_equal(tc_loop_timeout_ms(loop), 0);
    assert_true(tc_loop_turn(loop, -1));
    assert_string_equal(trace, "esf");
}

static void cancelled_tasks_do_not_run(void **state)
{
    struct tc_loop *loop = *state;
    struct step a = step(loop, "a"), b = step(loop, "b"), c = step(loop, "c");
    init_step(&a), init_step(&b), init_step(&c);
    a.then_cancel = &b.task;
    tc_loop_defer(loop, &a.task);
    tc_loop_defer(loop, &b.task);
    tc_loop_at_turn_end(loop, &c.task);
    tc_task_cancel(&c.task);
    tc_task_cancel(&c.task);
    tc_loop_turn(loop, 0);
    assert_string_equal(trace, "a");
}

struct endless {
    struct tc_task task;
    struct tc_loop *loop;
    int runs, stop_at;
};

static void on_endless(struct tc_task *task)
{
    struct endless *e = TC_CONTAINER_OF(task, struct endless, task);
    if (++e->runs < e->stop_at)
        tc_loop_defer(e->loop, &e->task);
}

static void a_turn_is_bounded(void **state)
{
    struct endless e = {.loop = *state, .stop_at = 15000};
    tc_task_init(&e.task, on_endless);
    tc_loop_defer(e.loop, &e.task);
    tc_loop_turn(e.loop, -1);
    assert_int_equal(e.runs, 10000);
    assert_int_equal(tc_loop_timeout_ms(e.loop), 0);
    tc_loop_turn(e.loop, -1);
    assert_int_equal(e.runs, 15000);
}

/* `arg`: the descriptor (int *), of which one byte is read. */
static void on_pipe_readable(void *arg, unsigned events, bool error)
{
    assert_false(error);
    assert_int_equal(events, TC_WATCH_READ);
    int *fd = arg;
    char byte;
    assert_int_equal(read(*fd, &byte, 1), 1);
    note("event ");
}

static void events_come_before_timers_after_an_idle_gap(void **state)
{
    struct tc_loop *loop = *state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct tc_watch *watch = tc_watch_new(loop, fds[0], on_pipe_readable, &fds[0]);
    tc_watch_set(watch, TC_WATCH_READ);
    struct step timer = step(loop, "timer "), serial = step(loop, "serial");
    init_step(&timer), init_step(&serial);
    tc_timer_start(&timer.timer, 1);
    tc_loop_defer(loop, &serial.task);
    assert_int_equal(write(fds[1], "x", 1), 1);
    /* The loop stands still until the timer is overdue, as in a process that was stopped. */
    uint64_t until_ns = tc_loop_clock_ns(loop) + 5 * TC_NS_PER_MS;
    while (tc_loop_clock_ns(loop) < until_ns)
        sched_yield();
    assert_true(tc_loop_turn(loop, -1));
    assert_string_equal(trace, "event timer serial");
    tc_watch_close(watch);
    close(fds[0]);
    close(fds[1]);
}

static void timers_are_never_early(void **state)
{
    struct tc_loop *loop = *state;
    for (uint64_t delay = 1; delay < 8; delay++) {
        trace[0] = 0;
        struct step timer = step(loop, "t");
        init_step(&timer);
        uint64_t start_ns = tc_loop_clock_ns(loop);
        tc_timer_start(&timer.timer, delay);
        while (trace[0] == 0)
            tc_loop_turn(loop, -1);
        assert_true(tc_loop_clock_ns(loop) - start_ns >= delay * TC_NS_PER_MS);
        assert_false(tc_timer_active(&timer.timer));
    }
}

static void timeout_bounds_the_wait(void **state)
{
    struct tc_loop *loop = *state;
    assert_false(tc_loop_turn(loop, 5));
    assert_int_equal(tc_loop_timeout_ms(loop), -1);
    struct step timer = step(loop, "t");
    init_step(&timer);
    tc_timer_start(&timer.timer, 50000);
    int ms = tc_loop_timeout_ms(loop);
    assert_in_range(ms, 1, 50001);
    tc_timer_stop(&timer.timer);
    assert_int_equal(tc_loop_timeout_ms(loop), -1);
}

static void a_wait_that_is_over_before_it_began_ends(void **state)
{
    struct tc_loop *loop = *state;
    struct step timer = step(loop, "t");
    init_step(&timer);
    tc_timer_start(&timer.timer, 5);
    atomic_store(&clock_step_ns, 3000000);
    tc_loop_turn(loop, 2); /* hangs if the wake-up is lost */
    for (int i = 0; i < 10 && trace[0] == 0; i++)
        tc_loop_turn(loop, -1);
    atomic_store(&clock_step_ns, 0);
    assert_string_equal(trace, "t");
    assert_false(tc_loop_turn(loop, 1)); /* nothing is left to run */
}

/* Posts. */

enum { THREADS = 4, POSTS = 20000 };

struct post {
    struct tc_task task;
    struct poster *poster;
    int number;
};

struct poster {
    struct tc_loop *loop;
    pthread_t thread;
    struct post *posts; /* POSTS of them, owned by the test */
    int seen;           /* posts that have run; the loop's thread alone uses it */
};

static int total_seen;

static void on_post(struct tc_task *task)
{
    struct post *p = TC_CONTAINER_OF(task, struct post, task);
    assert_int_equal(p->number, p->poster->seen); /* FIFO for each thread */
    p->poster->seen++;
    total_seen++;
}

static void *post_all(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < POSTS; i++) {
        tc_loop_post(p->loop, &p->posts[i].task);
        if (i % 64 == 0)
            sched_yield(); /* lets the loop fall asleep in between */
    }
    return NULL;
}

static void posts_from_four_threads_all_arrive_in_order(void **state)
{
    struct poster posters[THREADS];
    total_seen = 0;
    for (int t = 0; t < THREADS; t++) {
        struct poster *p = &posters[t];
        *p = (struct poster){.loop = *state, .posts = tc_calloc(POSTS, sizeof(struct post))};
        for (int i = 0; i < POSTS; i++) {
            p->posts[i].poster = p;
            p->posts[i].number = i;
            tc_task_init(&p->posts[i].task, on_post);
        }
        assert_int_equal(pthread_create(&p->thread, NULL, post_all, p), 0);
    }
    /* Waiting without limit: a lost wake-up hangs the test. */
    while (total_seen < THREADS * POSTS)
        tc_loop_turn(*state, -1);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(posters[t].thread, NULL);
        assert_int_equal(posters[t].seen, POSTS);
        tc_free(posters[t].posts);
    }
}

/* One of two players. Its task runs on `mine` and posts the other's task to `theirs`, until neither has a run left. */
struct pingpong {
    struct tc_loop *mine, *theirs;
    struct tc_task task;
    struct pingpong *other;
    int left; /* runs of the task to come */
    atomic_bool done;
};

static void on_ping(struct tc_task *task)
{
    struct pingpong *p = TC_CONTAINER_OF(task, struct pingpong, task);
    p->left--;
    if (p->left == 0 && p->other->left == 0)
        atomic_store(&p->done, true);
    else
        tc_loop_post(p->theirs, &p->other->task);
}

static void *run_pong(void *arg)
{
    struct pingpong *p = arg;
    while (!atomic_load(&p->done))
        tc_loop_turn(p->mine, -1);
    return NULL;
}

static void two_loops_wake_each_other(void **state)
{
    struct tc_loop *other = tc_loop_new(NULL);
    struct pingpong a = {.mine = *state, .theirs = other, .left = 5000};
    struct pingpong b = {.mine = other, .theirs = *state, .left = 5000, .other = &a};
    a.other = &b;
    tc_task_init(&a.task, on_ping);
    tc_task_init(&b.task, on_ping);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_pong, &b), 0);
    tc_loop_post(a.mine, &a.task);
    while (a.left > 0)
        tc_loop_turn(a.mine, -1);
    pthread_join(thread, NULL);
    assert_int_equal(b.left, 0);
    tc_loop_free(other);
}

enum { LATE_POSTS = 100 }; /* of each thread; all threads' posts are fewer than the turns that tc_loop_free may take */

/* A thread that posts to a loop, and wakes it, until the loop has taken LATE_POSTS of the thread's posts or refuses
 * one. */
struct late_poster {
    struct tc_loop *loop; /* a reference, which the thread drops */
    pthread_t thread;
    unsigned posted, refused;
    atomic_uint *ran; /* posts of all threads that have run; borrowed */
};

/* Frees itself when it runs. */
struct counted_task {
    struct tc_task task;
    atomic_uint *ran;
};

static void on_counted(struct tc_task *task)
{
    struct counted_task *t = TC_CONTAINER_OF(task, struct counted_task, task);
    atomic_fetch_add(t->ran, 1);
    tc_free(t);
}

static void *post_until_refused(void *arg)
{
    struct late_poster *p = arg;
    while (p->posted < LATE_POSTS && p->refused == 0) {
        struct counted_task *t = TC_NEW(struct counted_task);
        tc_task_init(&t->task, on_counted);
        t->ran = p->ran;
        bool taken = p->posted % 2 ? tc_loop_post(p->loop, &t->task) : tc_loop_post_quietly(p->loop, &t->task);
        p->posted += taken;
        p->refused += !taken;
        tc_loop_wake(p->loop);
        if (!taken)
            tc_free(t);
    }
    tc_loop_unref(p->loop);
    return NULL;
}

/* Each post is run before the loop has ended, or refused. */
static void a_loop_ends_while_others_post(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        struct tc_loop *loop = tc_loop_new(NULL);
        struct late_poster posters[3];
        atomic_uint ran = 0;
        for (size_t i = 0; i < TC_ARRAY_LEN(posters); i++) {
            posters[i] = (struct late_poster){.loop = tc_loop_ref(loop), .ran = &ran};
            assert_int_equal(pthread_create(&posters[i].thread, NULL, post_until_refused, &posters[i]), 0);
        }
        while (atomic_load(&ran) < 4 * round)
            tc_loop_turn(loop, 0);
        tc_loop_free(loop);
        unsigned posted = 0, ran_by_then = atomic_load(&ran);
        for (size_t i = 0; i < TC_ARRAY_LEN(posters); i++) {
            pthread_join(posters[i].thread, NULL);
            posted += posters[i].posted;
        }
        assert_int_equal(ran_by_then, posted);
        assert_int_equal(atomic_load(&ran), posted);
    }
}

static void *wake(void *arg)
{
    tc_loop_wake(arg);
    return NULL;
}

static void wake_ends_a_wait_before_and_during_it(void **state)
{
    struct tc_loop *loop = *state;
    tc_loop_wake(loop);
    tc_loop_turn(loop, -1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake, loop), 0);
    tc_loop_turn(loop, -1);
    pthread_join(thread, NULL);
}

/* tc_loop_turn_posts runs posts and what they queue, but no events and no timers, up to a millisecond after events were
 * last taken in. Later it does nothing, and a full turn runs the post. */
static void a_turn_for_posts_leaves_events_and_timers(void **state)
{
    struct tc_loop *loop = *state;
    struct step posted = step(loop, "p"), timer = step(loop, "t"), end = step(loop, "|");
    init_step(&posted), init_step(&timer), init_step(&end);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct tc_watch *watch = tc_watch_new(loop, fds[0], on_pipe_readable, &fds[0]);
    tc_watch_set(watch, TC_WATCH_READ);
    long now_ns = (long)tc_loop_clock_ns(loop);
    atomic_store(&clock_stopped_ns, now_ns);
    tc_loop_turn(loop, 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    tc_timer_start(&timer.timer, 0);
    posted.then_end = &end;
    tc_loop_post_quietly(loop, &posted.task);
    atomic_store(&clock_stopped_ns, now_ns + 1000000);
    assert_true(tc_loop_turn_posts(loop));
    assert_string_equal(trace, "p|");
    assert_false(tc_loop_in_turn(loop));
    assert_false(tc_loop_turn_posts(loop));

    tc_loop_post_quietly(loop, &posted.task);
    atomic_store(&clock_stopped_ns, now_ns + 1000001);
    assert_false(tc_loop_turn_posts(loop));
    assert_string_equal(trace, "p|");
    atomic_store(&clock_stopped_ns, now_ns + 2000000);
    assert_true(tc_loop_turn(loop, 0));
    assert_string_equal(trace, "p|event tp|");
    atomic_store(&clock_stopped_ns, 0);
    tc_watch_close(watch);
    close(fds[0]);
    close(fds[1]);
}

static void the_fd_tells_of_posts_between_turns(void **state)
{
    struct tc_loop *loop = *state;
    while (tc_loop_timeout_ms(loop) == 0)
        tc_loop_turn(loop, 0);
    struct pollfd pfd = {.fd = tc_loop_fd(loop), .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, 0), 0);
    struct step posted = step(loop, "p");
    init_step(&posted);
    tc_loop_post(loop, &posted.task);
    assert_int_equal(poll(&pfd, 1, 0), 1);
    tc_loop_turn(loop, 0);
    assert_string_equal(trace, "p");
}

static void the_fd_tells_of_a_new_descriptor_after_a_turn(void **state)
{
    struct tc_loop *loop = *state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct tc_watch *watch = tc_watch_new(loop, fds[0], on_pipe_readable, &fds[0]);
    tc_watch_set(watch, TC_WATCH_READ);
    assert_int_equal(tc_loop_timeout_ms(loop), 0);
    tc_loop_turn(loop, 0);
    assert_int_equal(tc_loop_timeout_ms(loop), -1);
    struct pollfd pfd = {.fd = tc_loop_fd(loop), .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, 0), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(poll(&pfd, 1, 0), 1);
    assert_true(tc_loop_turn(loop, 0));
    assert_string_equal(trace, "event ");
    tc_watch_close(watch);
    close(fds[0]);
    close(fds[1]);
}

static void on_in_turn(struct tc_task *task)
{
    struct step *s = TC_CONTAINER_OF(task, struct step, task);
    note(tc_loop_in_turn(s->loop) ? "in" : "out");
}

static void in_turn_is_true_inside_only(void **state)
{
    struct step s = step(*state, "");
    tc_task_init(&s.task, on_in_turn);
    assert_false(tc_loop_in_turn(s.loop));
    tc_loop_defer(s.loop, &s.task);
    tc_loop_turn(s.loop, 0);
    assert_string_equal(trace, "in");
    assert_false(tc_loop_in_turn(s.loop));
}

static void a_forked_child_leaves_the_loop_alone(void **state)
{
    struct tc_loop *loop = *state;
    struct step deferred = step(loop, "d"), posted = step(loop, "p");
    init_step(&deferred), init_step(&posted);
    assert_false(tc_loop_forked(loop));
    while (tc_loop_timeout_ms(loop) == 0)
        tc_loop_turn(loop, 0);
    pid_t pid = fork();
    if (pid == 0) {
        tc_loop_defer(loop, &deferred.task);
        tc_loop_post(loop, &posted.task);
        bool good = tc_loop_forked(loop) && !tc_loop_turn(loop, 0) && trace[0] == 0;
        struct tc_loop *own = tc_loop_new(NULL);
        good = good && own && !tc_loop_forked(own);
        deferred.loop = own;
        tc_task_init(&deferred.task, on_step);
        tc_loop_defer(own, &deferred.task);
        good = good && tc_loop_turn(own, -1) && trace[0] == 'd';
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The child's post did not wake the parent. */
    struct pollfd pfd = {.fd = tc_loop_fd(loop), .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, 0), 0);
}

/* Returns whether the signal reports a fault in the program: cmocka and sanitizers catch such signals. */
static bool is_fault(int sig)
{
    return sig == SIGILL || sig == SIGABRT || sig == SIGBUS || sig == SIGFPE || sig == SIGSEGV || sig == SIGSYS;
}

static void no_signal_handler_is_installed(void **state)
{
    (void)state;
    for (int sig = 1; sig < 32; sig++) {
        struct sigaction action;
        if (is_fault(sig) || sigaction(sig, NULL, &action) != 0)
            continue;
        if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
            fail_msg("signal %d has a handler", sig);
    }
}

/* Manual mode. */

static void manual_time_moves_only_by_advance(void **state)
{
    struct tc_loop *loop = *state;
    struct step a = step(loop, "a"), b = step(loop, "b"), c = step(loop, "c"), d = step(loop, "d");
    init_step(&a), init_step(&b), init_step(&c), init_step(&d);
    uint64_t start_ms = tc_loop_now_ms(loop);
    int64_t start_real_ns = tc_loop_realtime_ns(loop);
    tc_timer_start(&b.timer, 20);
    tc_timer_start(&a.timer, 10);
    tc_timer_start(&c.timer, 20);
    a.then_defer = &d;
    tc_loop_drain(loop);
    assert_string_equal(trace, "");
    tc_loop_advance(loop, 9);
    assert_string_equal(trace, "");
    tc_loop_advance(loop, 1);
    assert_string_equal(trace, "ad");
    tc_loop_advance(loop, 100);
    assert_string_equal(trace, "adbc");
    assert_int_equal(tc_loop_now_ms(loop), start_ms + 110);
    assert_int_equal(tc_loop_realtime_ns(loop) - start_real_ns, 110 * (int64_t)TC_NS_PER_MS);
    assert_int_equal(tc_loop_fd(loop), -1);
    assert_null(tc_loop_uv(loop));
}

static void manual_order_is_due_time_then_start(void **state)
{
    struct tc_loop *loop = *state;
    struct step s[5];
    const char *names[5] = {"0", "1", "2", "3", "4"};
    for (int i = 0; i < 5; i++) {
        s[i] = step(loop, names[i]);
        init_step(&s[i]);
    }
    tc_timer_start(&s[0].timer, 100);
    tc_loop_advance(loop, 60);
    tc_timer_start(&s[1].timer, 40); /* due with 0, started later */
    tc_timer_start(&s[2].timer, 39);
    tc_timer_start(&s[3].timer, 0);
    tc_timer_start(&s[4].timer, UINT64_MAX); /* clamped, and never reached here */
    tc_timer_start(&s[0].timer, 40);         /* restarted: now behind 1 */
    tc_loop_drain(loop);
    assert_string_equal(trace, "3");
    tc_loop_advance(loop, 40);
    assert_string_equal(trace, "3210");
    assert_true(tc_timer_active(&s[4].timer));
    tc_timer_stop(&s[4].timer);
    tc_timer_stop(&s[4].timer);
    assert_int_equal(tc_loop_timeout_ms(loop), -1);
}

static void seeded_random_numbers_repeat(void **state)
{
    struct tc_loop *again = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 7});
    for (int i = 0; i < 10; i++)
        assert_int_equal(tc_rng_u64(tc_loop_rng(*state)), tc_rng_u64(tc_loop_rng(again)));
    tc_loop_free(again);
}

#define REAL(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define MANUAL(f) cmocka_unit_test_setup_teardown(f, setup_manual, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL(serial_is_fifo_and_runs_what_it_queues),
        REAL(what_the_turn_end_queues_runs_at_once_or_without_waiting),
        REAL(cancelled_tasks_do_not_run),
        REAL(a_turn_is_bounded),
        REAL(events_come_before_timers_after_an_idle_gap),
        REAL(timers_are_never_early),
        REAL(timeout_bounds_the_wait),
        REAL(a_wait_that_is_over_before_it_began_ends),
        REAL(posts_from_four_threads_all_arrive_in_order),
        REAL(two_loops_wake_each_other),
        cmocka_unit_test(a_loop_ends_while_others_post),
        REAL(wake_ends_a_wait_before_and_during_it),
        REAL(a_turn_for_posts_leaves_events_and_timers),
        REAL(the_fd_tells_of_posts_between_turns),
        REAL(the_fd_tells_of_a_new_descriptor_after_a_turn),
        REAL(in_turn_is_true_inside_only),
        REAL(a_forked_child_leaves_the_loop_alone),
        REAL(no_signal_handler_is_installed),
        MANUAL(serial_is_fifo_and_runs_what_it_queues),
        MANUAL(cancelled_tasks_do_not_run),
        MANUAL(a_turn_is_bounded),
        MANUAL(manual_time_moves_only_by_advance),
        MANUAL(manual_order_is_due_time_then_start),
        MANUAL(seeded_random_numbers_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
