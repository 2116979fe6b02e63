/* Two kinds of wait end the process with SIGABRT and a reason on stderr: a wait without a limit that lasts more than an
 * hour of the world's time, and a wait on a thread that did not make the world.
 *
 * For each wait `dies` forks a child process, which makes the world, and dies without freeing anything. In
 * wait_elsewhere and poll_elsewhere the child's main thread makes the world, and a second thread waits. The test itself
 * has no world. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/testing/kit.h"

#define SERVER "10.0.0.1:443"

/* Runs fn in a child process; stores up to 4095 bytes of its stderr and a NUL. Returns the signal that ended
 * the child, or 0. */
static int dies(void (*fn)(void), char said[4096])
{
    int ends[2];
    size_t n = 0;
    ssize_t got;
    int status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], 2);
        fn();
        _exit(0);
    }
    close(ends[1]);
    while (n < 4095 && (got = read(ends[0], said + n, 4095 - n)) > 0)
        n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Makes a world and a channel to a silent server. Nobody frees them: the child process dies. */
static torc_channel *silent_channel(void)
{
    torc_testing *world = torc_testing_new(1, NULL);
    torc_testing_set_host(world, SERVER, TORC_TESTING_SILENT);
    return torc_channel_new(NULL, SERVER, NULL, NULL);
}

static void wait_for_ever(void)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON};
    char said[128];
    say(silent_channel(), &o, said);
}

static void *other_thread(void *arg)
{
    char said[128];
    say(arg, NULL, said);
    return NULL;
}

static void wait_elsewhere(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, silent_channel());
    pthread_join(thread, NULL);
}

static void *polling_thread(void *arg)
{
    torc_runtime_poll(arg, 0);
    return NULL;
}

static void poll_elsewhere(void)
{
    pthread_t thread;
    torc_testing_new(1, NULL);
    pthread_create(&thread, NULL, polling_thread, torc_runtime_new(NULL, NULL));
    pthread_join(thread, NULL);
}

static void test_a_wait_without_end(void **state)
{
    (void)state;
    char said[4096];
    assert_int_equal(dies(wait_for_ever, said), SIGABRT);
    assert_non_null(strstr(said, "more than an hour without a limit"));
    /* By default compilers for 32-bit ARM and RISC-V emit no unwind tables, which a backtrace needs. */
#if defined(__GLIBC__) && !defined(__arm__) && !defined(__riscv)
    assert_non_null(strstr(said, "_death(")); /* a frame of this program, "..._death" */
#endif
}

static void test_a_thread_of_the_application(void **state)
{
    (void)state;
    char said[4096];
    assert_int_equal(dies(wait_elsewhere, said), SIGABRT);
    assert_non_null(strstr(said, "a thread that did not make the world"));
    assert_int_equal(dies(poll_elsewhere, said), SIGABRT);
    assert_non_null(strstr(said, "a thread that did not make the world"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_without_end),
        cmocka_unit_test(test_a_thread_of_the_application),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
