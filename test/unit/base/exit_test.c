/* The exit handler: what it calls, in which order, and before which other handlers. A forked child exits in each
 * case. */
#include "base/exit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"
#include "support/cmocka.h"

static char trace[16];     /* a letter for each operation that was called: s stop, i idle, t stopped */
static const char *wanted; /* the trace that `look` expects */

static void note(char c)
{
    size_t n = strlen(trace);
    if (n < sizeof(trace) - 1)
        trace[n] = c;
}

static void stop(void)
{
    note('s');
}

/* Returns true from the second call on. */
static bool idle(void)
{
    note('i');
    tc_exit_progress();
    return strchr(trace, 'i') != strrchr(trace, 'i');
}

static void stopped(void)
{
    note('t');
}

/* Registered before Torc's handler, so it runs after Torc's handler, as OpenSSL's handlers do. */
static void look(void)
{
    bool closed = !tc_foreign_enter();
    _exit(strcmp(trace, wanted) == 0 && closed && tc_exiting() ? 0 : 2);
}

/* A child registers the part and exits. Asserts that the operations of `steps`, in the letters of `trace`, are called
 * before a handler that was registered earlier. */
static void expect_exit(const struct tc_exit_ops *ops, const char *steps)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        wanted = steps;
        atexit(look);
        tc_exit_register(TC_EXIT_LOOPS, ops);
        exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The exit waits until the part is idle, and closes foreign libraries. */
static void a_part_is_stopped_before_earlier_handlers(void **state)
{
    (void)state;
    static const struct tc_exit_ops whole = {.stop = stop, .idle = idle, .stopped = stopped};
    static const struct tc_exit_ops least = {.stop = stop};
    expect_exit(&whole, "siit");
    expect_exit(&least, "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_part_is_stopped_before_earlier_handlers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
