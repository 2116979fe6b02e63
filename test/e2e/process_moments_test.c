/* Processes that exit, fork, cancel a thread or free a runtime at one chosen moment. Each scene is a child process,
 * which is killed after HANG_S seconds. A scene ends with FINE if all went well.
 *
 * The test's own process never calls Torc, so each scene is the first to use Torc and OpenSSL: an exit handler that a
 * scene registers before this use runs after Torc's handler. Most scenes have a second thread, `other`, which is inside
 * a function of Torc at the moment in question; code_of_other says what the function returned. Scenes that call exit
 * end in an exit handler of this file if all goes well. Semaphores give the order of the threads' steps. Only the
 * scenes with a fork inside a callback have a backend (kits/backends.h). */
#include <errno.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/exit.h"
#include "base/fork.h"
#include "base/thread.h"
#include "runtime/blocking.h"
#include "runtime/runtime_internal.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/sanitizer.h"

#define HANG_S 120

/* Under the thread sanitizer a child of a process with threads must not start one; the address sanitizer's allocator
 * may hang in such a child. */
#if SANITIZER_THREAD || SANITIZER_ADDRESS
#define NO_FORK
#endif

/* Longer than the second that an exit waits (base/exit.h). */
#define LONG_MS 1300

/* Exit statuses of a scene. EARLY: a thread returned or was cancelled too early, or was not cancelled. TWICE: the child
 * of a fork ran a callback that is its parent's. WRONG: anything else that must not be. */
enum { FINE = 0, EARLY = 3, WRONG = 4, TWICE = 5 };

/* Asserts that the scene ends with FINE. */
static void run_scene(void (*scene)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(HANG_S);
        scene();
        _exit(WRONG);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        print_message("%s %d\n", WIFSIGNALED(status) ? "signal" : "exit status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    assert_int_equal(status, 0);
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0 && errno == EINTR) {
    }
}

/* Waits for the semaphore. Returns false if it was not posted within `ms` milliseconds. */
static bool wait_for_ms(sem_t *sem, long ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int rc;
    while ((rc = sem_clockwait(sem, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR) {
    }
    return rc == 0;
}

/* Sleeps for 1 ms, before the caller looks again at what it waits for. */
static void look_again(void)
{
    poll(NULL, 0, 1);
}

static torc_runtime *rt;
static torc_channel *ch;
static pthread_t other;
/* began: a function holds its thread. go_on: hold_thread may return. returned: Torc's function, which `other` was in,
 * has returned. */
static sem_t began, go_on, returned;
static int code_of_other; /* what the function of `other` returned; TORC_EFORK for one without a result */

/* Makes the semaphores, and a runtime in this mode. */
static void start_scene(enum torc_runtime_mode mode)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = mode};
    sem_init(&began, 0, 0);
    sem_init(&go_on, 0, 0);
    sem_init(&returned, 0, 0);
    rt = torc_runtime_new(&o, NULL);
    if (!rt)
        _exit(WRONG);
}

/* An exit handler, registered before Torc's first use, so that it runs after Torc's handler. Ends the scene, with FINE
 * if code_of_other is TORC_EFORK. */
static void join_other(void)
{
    pthread_join(other, NULL);
    _exit(code_of_other == TORC_EFORK ? FINE : WRONG);
}

/* Holds the thread that calls it until go_on is posted. */
static void hold_thread(void *arg)
{
    (void)arg;
    sem_post(&began);
    wait_for(&go_on);
}

/* --- exit while the watch of a waiting thread is queued in the loop's turn --- */

/* Holds the loop until the exit no longer waits for it. In exit_while_watch_is_queued the watch of the waiting thread,
 * which is on that thread's stack, is queued behind this callback: the thread must not return meanwhile. */
static void hold_beyond_exit(void *arg)
{
    (void)arg;
    sem_post(&began);
    while (!tc_exiting())
        look_again();
    if (wait_for_ms(&returned, LONG_MS))
        _exit(EARLY);
}

static void *connect_for_a_while(void *arg)
{
    (void)arg;
    code_of_other = torc_channel_connect(ch, 50);
    sem_post(&returned);
    return NULL;
}

static bool somebody_waits(void)
{
    tc_runtime_lock(rt);
    bool waits = !tc_list_empty(&rt->waiters);
    tc_runtime_unlock(rt);
    return waits;
}

static void exit_while_watch_is_queued(void)
{
    atexit(join_other);
    start_scene(TORC_RUNTIME_THREAD);
    ch = torc_channel_new(rt, "ipv4:127.0.0.1:1", NULL, NULL);
    torc_runtime_post(rt, hold_thread, NULL);
    wait_for(&began);
    torc_runtime_post(rt, hold_beyond_exit, NULL);
    pthread_create(&other, NULL, connect_for_a_while, NULL);
    while (!somebody_waits())
        look_again();
    sem_post(&go_on);
    wait_for(&began);
    exit(WRONG);
}

static void exit_while_a_watch_is_queued(void **state)
{
    (void)state;
    run_scene(exit_while_watch_is_queued);
}

/* --- exit while a thread is in torc_runtime_free --- */

static void *free_runtime(void *arg)
{
    (void)arg;
    code_of_other = torc_runtime_free(rt);
    return NULL;
}

/* Makes a runtime with a thread, whose loop is inside `callback` while `other` frees the runtime. Posts go_on once
 * torc_runtime_free has begun. Uses OpenSSL, so that the runtime's thread runs OpenSSL's cleanup at its end. */
static void free_on_other_thread(void (*callback)(void *arg))
{
    atexit(join_other);
    torc_credentials_unref(torc_credentials_tls(NULL, NULL));
    start_scene(TORC_RUNTIME_THREAD);
    torc_runtime_post(rt, callback, NULL);
    wait_for(&began);
    pthread_create(&other, NULL, free_runtime, NULL);
    while (!atomic_load(&rt->closed))
        look_again();
    sem_post(&go_on);
}

static void exit_while_freed(void)
{
    free_on_other_thread(hold_beyond_exit);
    exit(WRONG);
}

/* Exits on the loop's thread, once `other` is in torc_runtime_free. */
static void leave(void *arg)
{
    hold_thread(arg);
    exit(WRONG);
}

static void exit_in_callback_while_freed(void)
{
    free_on_other_thread(leave);
    for (;;)
        pause();
}

static void exit_while_a_runtime_is_freed(void **state)
{
    (void)state;
    run_scene(exit_while_freed);
    run_scene(exit_in_callback_while_freed);
}

/* --- a runtime is freed while the watch of a waiting thread is queued --- */

enum { SHORT_MS = 200 };

static void *wait_for_a_state(void *arg)
{
    (void)arg;
    code_of_other = torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, SHORT_MS, NULL);
    sem_post(&returned);
    return NULL;
}

static void *only_free_runtime(void *arg)
{
    torc_runtime_free(rt);
    return arg;
}

/* The timeout of `other` passes while the watch, which is on the stack of `other`, is still queued in the loop. `other`
 * must not return before the loop has dropped the watch. */
static void free_while_watch_is_queued(void)
{
    pthread_t freer;
    start_scene(TORC_RUNTIME_THREAD);
    ch = torc_channel_new(rt, "ipv4:127.0.0.1:1", NULL, NULL);
    torc_runtime_post(rt, hold_thread, NULL);
    wait_for(&began);
    pthread_create(&other, NULL, wait_for_a_state, NULL);
    while (!somebody_waits())
        look_again();
    pthread_create(&freer, NULL, only_free_runtime, NULL);
    while (!atomic_load(&rt->closed))
        look_again();
    if (wait_for_ms(&returned, LONG_MS))
        _exit(EARLY);
    sem_post(&go_on);
    pthread_join(other, NULL);
    pthread_join(freer, NULL);
    _exit(code_of_other == TORC_ETIMEDOUT ? FINE : WRONG);
}

static void free_while_a_watch_is_queued(void **state)
{
    (void)state;
    run_scene(free_while_watch_is_queued);
}

/* --- exit while a server is freed: its first runtime is freed already, and its second one is being freed --- */

static torc_server *server;

static void *free_server(void *arg)
{
    (void)arg;
    torc_server_free(server);
    code_of_other = TORC_EFORK;
    return NULL;
}

static void exit_while_server_is_freed(void)
{
    pthread_t freer;
    atexit(join_other);
    start_scene(TORC_RUNTIME_THREAD);
    torc_runtime *first = torc_runtime_new(NULL, NULL);
    torc_runtime *const more[] = {rt, NULL};
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = first, .runtimes = more};
    server = torc_server_new(&o, NULL);
    torc_runtime_post(rt, hold_thread, NULL);
    torc_runtime_post(rt, hold_beyond_exit, NULL);
    wait_for(&began);
    if (!server || torc_runtime_free(first) != 0)
        _exit(WRONG);
    pthread_create(&freer, NULL, only_free_runtime, NULL);
    while (!atomic_load(&rt->closed))
        look_again();
    pthread_create(&other, NULL, free_server, NULL);
    while (!somebody_waits()) /* until `other` waits for the second runtime's loop */
        look_again();
    sem_post(&go_on);
    wait_for(&began);
    exit(WRONG);
}

static void exit_while_a_server_is_freed(void **state)
{
    (void)state;
    run_scene(exit_while_server_is_freed);
}

/* --- a thread of Torc that ends when OpenSSL may no longer be called --- */

/* `arg`: the tc_thread. */
static void *join_thread_of_torc(void *arg)
{
    tc_thread_join(arg);
    code_of_other = TORC_EFORK;
    return NULL;
}

/* An exit handler, registered before Torc's first use: lets the thread end when Torc's handler has run, after which
 * Torc no longer calls OpenSSL. */
static void let_thread_end(void)
{
    sem_post(&go_on);
    join_other();
}

static void exit_while_joined(void)
{
    struct tc_thread *thread;
    atexit(let_thread_end);
    torc_credentials_unref(torc_credentials_tls(NULL, NULL));
    start_scene(TORC_RUNTIME_THREAD);
    if (tc_thread_start(&thread, hold_thread, NULL) != 0)
        _exit(WRONG);
    wait_for(&began);
    pthread_create(&other, NULL, join_thread_of_torc, thread);
    exit(WRONG);
}

static void exit_while_a_thread_is_joined(void **state)
{
    (void)state;
    run_scene(exit_while_joined);
}

/* --- OpenSSL stays usable at exit: threads that the exit does not wait for may still be inside OpenSSL --- */

/* An exit handler, registered before OpenSSL's first use: if OpenSSL had a handler of its own, that handler would have
 * run before. */
static void use_openssl(void)
{
    _exit(OPENSSL_init_crypto(0, NULL) == 1 ? FINE : WRONG);
}

static void exit_after_tls(void)
{
    atexit(use_openssl);
    torc_credentials_unref(torc_credentials_tls(NULL, NULL));
    exit(WRONG);
}

static void openssl_outlasts_an_exit(void **state)
{
    (void)state;
    run_scene(exit_after_tls);
}

/* --- a cancelled thread ends only after it has left its locks and OpenSSL, so that a fork finds no lock held --- */

static bool credentials_made, lock_given; /* set by the threads at the end of their work */

static void *make_credentials(void *arg)
{
    (void)arg;
    pthread_cancel(pthread_self()); /* takes effect at the next cancellation point */
    torc_credentials_unref(torc_credentials_tls(NULL, NULL));
    credentials_made = true;
    pthread_testcancel();
    return NULL;
}

/* Cancels its own thread, then takes locks and enters a foreign section: the cancellation takes effect when the thread
 * has left all of them. */
static void *hold_locks(void *arg)
{
    struct tc_lock *first = tc_lock_of_process(TC_RANK_COUNTERS), *second = tc_lock_of_process(TC_RANK_BACKGROUND);
    pthread_cancel(pthread_self());
    tc_lock_take(first);
    tc_lock_take(second);
    tc_lock_give(first);
    bool inside = tc_foreign_enter();
    pthread_testcancel();
    tc_lock_give(second);
    pthread_testcancel();
    if (inside)
        tc_foreign_leave();
    lock_given = true;
    pthread_testcancel();
    return arg;
}

/* Runs fn on a thread to its end. Returns whether the thread was cancelled. */
static bool is_cancelled_at_end(void *(*fn)(void *arg))
{
    void *value;
    pthread_create(&other, NULL, fn, NULL);
    pthread_join(other, &value);
    return value == PTHREAD_CANCELED;
}

static void cancel_and_fork(void)
{
    if (!is_cancelled_at_end(make_credentials) || !credentials_made)
        _exit(EARLY);
    if (!is_cancelled_at_end(hold_locks) || !lock_given)
        _exit(EARLY);
    pid_t child = fork();
    if (child == 0)
        _exit(FINE);
    int status = WRONG;
    _exit(waitpid(child, &status, 0) == child && status == 0 ? FINE : WRONG);
}

static void a_thread_is_cancelled_behind_its_locks(void **state)
{
    (void)state;
    run_scene(cancel_and_fork);
}

/* --- a callback forks, and returns in the child too --- */

#ifndef NO_FORK
static bool is_child;
static unsigned n_done, n_fine, n_behind; /* calls of on_done, those of them with OK, calls of come_behind */
static pid_t child_of_callback;
static int child_status = -1; /* of the child of the callback, as waitpid gives it */

/* The parent waits for the child's end: if the child wrongly writes to the connections that both share, the child's
 * bytes come first. */
static void fork_here(void)
{
    child_of_callback = fork();
    is_child = child_of_callback == 0;
    if (!is_child && waitpid(child_of_callback, &child_status, 0) != child_of_callback)
        _exit(WRONG);
}

static bool forks_when_done; /* the first on_done forks; false: the callback that starts the calls forks */

static void on_done(torc_stream *call, const torc_result *r, void *arg)
{
    (void)call;
    (void)arg;
    if (is_child)
        _exit(TWICE);
    n_done++;
    n_fine += torc_result_code(r) == 0;
    if (forks_when_done && n_done == 1)
        fork_here();
}

static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_done = on_done};
static torc_stream *calls[2];

static void start_calls(void)
{
    for (int i = 0; i < 2; i++) {
        calls[i] = torc_stream_start(ch, "test.Echo/Echo", NULL, &events, NULL, NULL);
        torc_stream_send(calls[i], "x", 1, TORC_SEND_LAST, 0);
        torc_stream_want(calls[i], 1);
        torc_stream_want(calls[i], 1);
    }
}

static void start_and_fork(void *arg)
{
    (void)arg;
    start_calls();
    if (!forks_when_done)
        fork_here();
}

/* Posted behind start_and_fork. */
static void come_behind(void *arg)
{
    (void)arg;
    if (is_child)
        _exit(TWICE);
    n_behind++;
}

static void fork_in_callback(void)
{
    struct kit_backends *kit = kit_backends_new(1, NULL);
    start_scene(TORC_RUNTIME_CALLER);
    ch = torc_channel_new(rt, kit_backends_target(kit), NULL, NULL);
    if (torc_channel_connect(ch, 60000) != 0)
        _exit(WRONG);
    torc_runtime_post(rt, start_and_fork, NULL);
    torc_runtime_post(rt, come_behind, NULL);
    while (n_done < 2 && !is_child)
        torc_runtime_poll(rt, 1000);
    if (is_child)
        _exit(torc_runtime_poll(rt, 0) == TORC_EFORK ? FINE : WRONG);
    if (child_status != 0)
        _exit(WIFEXITED(child_status) ? WEXITSTATUS(child_status) : WRONG);
    torc_result *r = torc_unary(ch, "test.Echo/Echo", "x", 1, NULL);
    if (torc_result_code(r) != 0)
        _exit(WRONG);
    /* The connection made before the fork is still in use. */
    _exit(n_fine == 2 && n_behind == 1 && kit_backends_counts(kit, 0).connections == 1 ? FINE : WRONG);
}

static void fork_in_event(void)
{
    forks_when_done = true;
    fork_in_callback();
}
#endif

static void the_child_of_a_callback_leaves_the_turn_to_the_parent(void **state)
{
    (void)state;
#ifndef NO_FORK
    run_scene(fork_in_callback);
    run_scene(fork_in_event);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_while_a_watch_is_queued),
        cmocka_unit_test(exit_while_a_runtime_is_freed),
        cmocka_unit_test(free_while_a_watch_is_queued),
        cmocka_unit_test(exit_while_a_server_is_freed),
        cmocka_unit_test(exit_while_a_thread_is_joined),
        cmocka_unit_test(openssl_outlasts_an_exit),
        cmocka_unit_test(a_thread_is_cancelled_behind_its_locks),
        cmocka_unit_test(the_child_of_a_callback_leaves_the_turn_to_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
