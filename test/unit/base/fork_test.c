/* fork waits for the locks and the foreign sections of other threads. A child that is forked while another thread makes
 * the process's first JSON object can parse JSON. The log's first line does not wait for the lock that a fork holds.
 *
 * base/json.c seeds jansson when the library is loaded. Otherwise jansson would read a seed from /dev/urandom for its
 * first object. The first test would hold up that read while it forks, and its child would wait for the seed for ever.
 *
 * In the first two tests the test's thread forks, while a second thread makes the object, or holds what the fork waits
 * for. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/json.h"
#include "base/log.h"
#include "base/wait.h"
#include "support/cmocka.h"

static atomic_bool holds_up;
/* `there`: the thread is in the read of the seed, or has made its object; `go_on`: the read may end. */
static sem_t there, go_on;

/* Replaces libc's open, also for jansson. Holds up a thread that opens /dev/urandom while `holds_up` is set. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
    va_end(ap);
    if (atomic_load(&holds_up) && strcmp(path, "/dev/urandom") == 0) {
        sem_post(&there);
        sem_wait(&go_on);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static bool parses(void)
{
    json_t *v = tc_json_parse(tc_slice_str("{\"a\": {}}"), NULL);
    bool ok = v != NULL;
    json_decref(v);
    return ok;
}

/* `arg` is a bool: the thread stores in it whether it could parse. */
static void *first_object(void *arg)
{
    *(bool *)arg = parses();
    sem_post(&there);
    return NULL;
}

/* Must be the first test: if the process had made a JSON object before, the test would not find a missing seed. */
static void a_child_parses_while_the_parent_makes_its_first_object(void **state)
{
    (void)state;
    pthread_t thread;
    bool ok = false;
    int status;
    sem_init(&there, 0, 0);
    sem_init(&go_on, 0, 0);
    atomic_store(&holds_up, true);
    assert_int_equal(pthread_create(&thread, NULL, first_object, &ok), 0);
    sem_wait(&there);
    pid_t child = fork();
    if (child == 0) {
        atomic_store(&holds_up, false);
        setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = 2, .rlim_max = 2}); /* ends a child in a busy loop */
        _exit(!parses());
    }
    atomic_store(&holds_up, false);
    sem_post(&go_on);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ok);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A thread that holds a lock, or is in a foreign section, while another thread forks. */
struct holder {
    pthread_t thread;
    struct tc_lock *lock; /* NULL: the section */
    sem_t holds, forked;
    atomic_bool given; /* set just before the thread gives the lock or leaves the section */
};

static void hold(struct holder *h)
{
    if (h->lock)
        tc_lock_take(h->lock);
    else
        tc_foreign_enter();
}

static void give(struct holder *h)
{
    if (h->lock)
        tc_lock_give(h->lock);
    else
        tc_foreign_leave();
}

/* Keeps the lock or the section until fork has returned, for 100 ms at most. A fork that does not wait returns before
 * `given` is set. */
static void *hold_up_a_fork(void *arg)
{
    struct holder *h = arg;
    hold(h);
    sem_post(&h->holds);
    struct timespec until = tc_wait_until(tc_system_clock.monotonic_ns(NULL) + 100 * TC_NS_PER_MS);
    (void)tc_wait_semaphore(&h->forked, &until);
    atomic_store(&h->given, true);
    give(h);
    return NULL;
}

/* Asserts that a fork waits until another thread gives the lock, or leaves the section (`lock` NULL), and that the
 * child finds the lock free. */
static void expect_fork_waits(struct tc_lock *lock)
{
    struct holder h = {.lock = lock};
    int status;
    sem_init(&h.holds, 0, 0);
    sem_init(&h.forked, 0, 0);
    assert_int_equal(pthread_create(&h.thread, NULL, hold_up_a_fork, &h), 0);
    sem_wait(&h.holds);
    pid_t child = fork();
    if (child == 0)
        _exit(lock && pthread_mutex_trylock(&lock->mutex) != 0);
    bool waited = atomic_load(&h.given);
    sem_post(&h.forked);
    assert_int_equal(pthread_join(h.thread, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(waited);
    sem_destroy(&h.holds);
    sem_destroy(&h.forked);
}

static void a_fork_waits_for_what_other_threads_hold(void **state)
{
    (void)state;
    struct tc_lock of_an_object;
    for (int rank = 0; rank < TC_RANKS; rank++)
        expect_fork_waits(tc_lock_of_process((enum tc_lock_rank)rank));
    tc_lock_init(&of_an_object, TC_RANK_TLS_SOURCE);
    expect_fork_waits(&of_an_object);
    tc_lock_fini(&of_an_object);
    expect_fork_waits(NULL);
}

/* A thread in a foreign section may log the process's first line while a fork waits for the section and holds the log's
 * lock. So the check whether the line is wanted must not take that lock. No test before this one logs. */
static void the_first_line_takes_no_lock(void **state)
{
    (void)state;
    tc_lock_take(tc_lock_of_process(TC_RANK_LOG));
    (void)tc_log_enabled(TC_LOG_BASE, TORC_LOG_WARN);
    tc_lock_give(tc_lock_of_process(TC_RANK_LOG));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_parses_while_the_parent_makes_its_first_object),
        cmocka_unit_test(a_fork_waits_for_what_other_threads_hold),
        cmocka_unit_test(the_first_line_takes_no_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
